"""Two runs: their sides, graphs, tensors by step and rank, hyperparameters, suspects."""
