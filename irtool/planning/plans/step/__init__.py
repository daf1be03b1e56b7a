"""Where the seconds of a step go, by what ``check`` predicts."""
