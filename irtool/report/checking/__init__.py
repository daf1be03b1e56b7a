"""``irtool check``: its answers for scripts, and its reports for people."""
