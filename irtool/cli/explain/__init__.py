"""``irtool explain``: what a code means, and what a failed run says."""
