"""Tensor dumps as they lie on disk, read into one model."""
