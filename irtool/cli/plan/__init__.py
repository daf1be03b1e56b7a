"""``irtool plan``: better strategies."""
