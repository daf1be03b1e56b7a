"""``irtool comm``: what is communicated, hangs, reuse of subgraphs, and fusion."""
