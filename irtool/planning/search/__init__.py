"""The exact search: candidates, tables of what they cost, bounds, and the least sum of all.

In the order of the search: ``problem`` (what is asked), ``candidates`` (strategies of an operator
that are legal), ``tables`` (what they and pairs of them cost), ``elimination`` and ``exact`` (the
least sum), ``bounds`` (below which no plan can be).
"""
