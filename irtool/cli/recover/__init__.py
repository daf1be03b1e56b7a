"""``irtool recover``: devices or layers came or went."""
