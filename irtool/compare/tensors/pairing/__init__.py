"""Which operators and tensors of two runs belong together."""
