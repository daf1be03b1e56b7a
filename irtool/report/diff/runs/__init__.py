"""``irtool diff RUN RUN``: graphs, tensors, losses and hyperparameters of two runs."""
