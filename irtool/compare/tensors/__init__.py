"""Tensor dumps of two runs: reading them, finding what belongs together, naming the first fault."""
