"""Fuzzing: mutated inputs through every command, limits a case, findings made small and kept.

``benchmarks/fuzz.py`` is the driver; ``tests/fuzz`` replays what was kept.
"""
