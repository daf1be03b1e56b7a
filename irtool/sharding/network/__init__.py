"""The check of a whole network: which nodes are sharded, under what, and what follows between them.

``context`` holds what a dump doesn't say; ``graphs`` walks the dump as MindSpore's parallel pass
does; ``calls`` turns nodes into operator calls; ``strategies`` finds what the user asked for;
``judged`` judges every operator; ``reshape``, ``edges``, ``weights`` and ``data`` say what follows
between operators; ``report`` is the answer.
"""
