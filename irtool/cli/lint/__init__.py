"""``irtool lint``: findings for a pull request."""
