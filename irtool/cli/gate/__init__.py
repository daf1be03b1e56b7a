"""``irtool gate``: structural regressions against a golden dump, and budgets."""
