"""Loss curves of two runs: reading them from whatever a run left, and comparing them by step."""
