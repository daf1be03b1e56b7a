"""``irtool parse``: what is in a dump."""
