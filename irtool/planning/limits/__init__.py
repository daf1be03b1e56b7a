"""The cheapest choices that fit into a limit of memory, and proofs of what a search leaves open.

A price on bytes (``memory``) gives a bound; what it leaves is closed by mixing and packing what is
known (``mix``, ``pack``), then by looking at the few choices that may still be better (``narrow``,
``labels``, ``layers``).
"""
