"""Graphs for Google's Model Explorer: what ``irtool viz --format model-explorer`` writes.

``model-explorer --extensions=irtool.report.model_explorer dump.ir`` opens dumps directly: Model
Explorer then imports :mod:`irtool.report.model_explorer.main`, the only module here that needs it.
"""
