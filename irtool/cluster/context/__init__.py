"""The context of a run, found once for all commands: from what is given, and from the dumps."""
