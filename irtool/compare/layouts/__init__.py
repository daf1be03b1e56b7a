"""Runs that are cut over devices: tensors of all ranks put together, as one would hold them."""
