"""``irtool viz``: a picture of a dump."""
