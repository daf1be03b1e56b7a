"""MindSpore's double recursive search, reproduced step by step.

The order of the modules is that of the search: ``operators`` (what takes part, in which order),
``tensors`` and ``kinds`` (how it is seen), ``elimination`` (what is left out of the search),
``cut_costs`` and ``partition`` (two-way cuts, one a round), ``sources``, ``fitting`` and
``spreading`` (strategies of what was left out), ``search`` (all of it).

It is a heuristic, and is kept as MindSpore has it, oddities included: the point of it is to say
what MindSpore will choose, and what that costs beside the optimum.
"""
