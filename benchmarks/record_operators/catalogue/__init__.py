"""Calls of MindSpore's operators, one module a family; each has ``FORMS``."""
