"""Dumps of msprobe: calls and modules, and what lies beside them."""
