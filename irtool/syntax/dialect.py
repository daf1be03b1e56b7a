"""Which versions of MindSpore spell a dump the way this one is spelled."""

from __future__ import annotations

_EVIDENCE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("2.8.0 or later", ("\njit config {",)),
    ("2.7.1 or later", ("\ncompile_phase: ",)),
    ("2.7.0 or later", (", is_parameter>", ", is_view_input", ", is_inplace>")),
    ("2.3.0 or later", ("Node counting information:", "# Parameters: ", " = PrimFunc_")),
    ("2.2 or 2.3", ("(CNode_", "(ValueNode_")),
    ("2.1 or 2.2", (": Bool(", ": I64(", "(I64(", ", I64(")),
    ("2.0.0 to 2.2", ("# IR entry: @", "# Total subgraphs: ", "analyze_fail.ir to get")),
    ("2.0 alpha to rc1", ("#Total subgraph: ", "[@@", "analyze_fail.dat to get")),
    ("1.9 or 1.10", (", NoShape>",)),
    ("1.7 or 1.8", ("subgraph instance: ",)),
    ("1.5 or 1.6", (">, ref_key=:", "], (")),
    ("1.4 or 1.5", ("]x(",)),
    ("1.0 to 1.3", ("]x[const vector][",)),
)
"""Ranges of versions, newest first, with spellings that no older version has."""

_SAMPLE = 50_000


def dialect_of(text: str) -> str:
    """The newest range whose spelling occurs near the beginning, or ``unknown``.

    Args:
        text: of a dump, without a byte order mark.

    Returns:
        As ``2.3.0 or later``.
    """
    sample = text[:_SAMPLE]
    for name, spellings in _EVIDENCE:
        if any(spelling in sample for spelling in spellings):
            return name
    return "unknown"
