"""``irtool recover``: its answer for scripts, and its report for people."""
