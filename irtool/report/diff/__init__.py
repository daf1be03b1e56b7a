"""``irtool diff``: its answers for scripts and its reports for people, a module a question."""
