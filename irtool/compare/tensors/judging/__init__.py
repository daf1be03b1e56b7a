"""Whether an operator pair introduces error, and what is told of the first that does."""
