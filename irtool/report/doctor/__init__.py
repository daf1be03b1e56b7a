"""``irtool doctor``: its answer for scripts, and its report for people."""
