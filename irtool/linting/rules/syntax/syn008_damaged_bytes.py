"""SYN008: bytes that are no text."""

from __future__ import annotations

from irtool.linting.rules.syntax.reading import ReadingRule


class DamagedBytes(ReadingRule):
    """NUL bytes, or bytes that are not UTF-8."""

    code = "SYN008"
    name = "damaged-bytes"
    severity = "warning"
    summary = "The file holds bytes that are no text"
    explanation = """
        Dumps are UTF-8. A NUL byte is left by a file system that lost a block; other bytes come
        from names in another encoding, which is harmless, or from damage.
        """
    hint = "copy the file again; names in another encoding do no harm"
    bad = "# Scope: (Default/r\\xe9seau)"
    good = "# Scope: (Default/réseau)"
    cases = ("tests/linting/evidence/gate/golden_mixer.validate, damaged",)
