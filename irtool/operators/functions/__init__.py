"""Operators whose sharding the notation can't say: one module a family."""
