"""Two checkpoints: which parameters differ, and how."""
