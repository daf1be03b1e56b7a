"""What a failed run leaves: logs and ``analyze_fail.ir``, turned into findings.

Works on lines and dumps that were read elsewhere; knows nothing of the rules of ``irtool lint``.
"""

from __future__ import annotations
