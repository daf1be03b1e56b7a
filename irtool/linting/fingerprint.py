"""Fingerprints: names of findings that outlive the next compilation of the same network.

A fingerprint is made of the rule, the pass and folder of the dump, the scope, the operator, the
user's statement of Python and the finding's own key: of nothing that is renumbered, hashed or an
address, and not of line numbers.  Numbers of layers do not count either, so that a layer that is
added in front of others renames nothing.  Findings that agree in all of it are counted: first what
they say, then who says the same, so that a layer more of those that say the same renames no other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from hashlib import blake2b

from irtool.ir.finding import Finding

_PASSING = re.compile(
    r"0x[0-9a-fA-F]+"  # addresses
    r"|-op\d+\b"  # counters of full names
    r"|(?<=_)\d{9,}\b"  # hashes of redistribution operators and groups
    r"|%\d+\b"
    r"|\bCNode_\d+\b"
    r"|\b\d+-\d{6,}\b"
)

_LAYER = re.compile(r"(?<=[./_-])\d+(?=[./_\s-]|$)|(?<![A-Za-z0-9])\d+(?=-)")
"""Numbers of layers and cells in scopes, names of parameters and pieces of text."""


def fingerprinted(findings: Iterable[Finding], place_of: Callable[[Finding], str]) -> list[Finding]:
    """The findings with their fingerprints, by which a baseline knows them again.

    Args:
        findings: in an order that does not change from run to run.
        place_of: pass and folder of a finding's dump, the same on every machine.
    """
    said: dict[tuple[str, ...], dict[object, int]] = {}
    counts: Counter[object] = Counter()
    made: list[Finding] = []
    for finding in findings:
        source = finding.source
        key = (
            finding.code,
            place_of(finding),
            lasting(finding.scope or ""),
            finding.op or "",
            "" if source is None else re.split(r"[/\\]", source.path)[-1],
            "" if source is None else " ".join(source.text.split()),
            lasting(finding.key),
        )
        messages = said.setdefault(key, {})
        what = (finding.severity, finding.message, finding.fix)
        number = messages.setdefault(what, len(messages))
        again = counts[key, what]
        counts[key, what] += 1
        text = "\0".join((*key, f"{number}.{again}" if again else str(number)))
        digest = blake2b(text.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
        made.append(replace(finding, fingerprint=digest))
    return made


def lasting(text: str) -> str:
    """A text without what changes from one compilation to the next.

    Args:
        text: of a finding.
    """
    return _LAYER.sub("#", _PASSING.sub("#", text))
