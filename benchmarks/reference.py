"""Write docs/json-*.md and their schemas from the classes of the answers.

python benchmarks/reference.py           # write what is not current
python benchmarks/reference.py --check   # exit 1 where something is not
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from irtool.report.reference import ANSWERS, page_of, schema_of

DOCS = Path(__file__).resolve().parents[1] / "docs"


def texts() -> dict[Path, str]:
    """The files in docs and what they should hold."""
    made: dict[Path, str] = {}
    for name in ANSWERS:
        made[DOCS / f"json-{name}.md"] = page_of(name)
        schema = json.dumps(schema_of(name), indent=1, sort_keys=True)
        made[DOCS / f"json-{name}.schema.json"] = f"{schema}\n"
    return made


def main() -> int:
    """Write or check them all."""
    stale = [
        path
        for path, text in texts().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        print(path.relative_to(DOCS.parent))
        if "--check" not in sys.argv[1:]:
            path.write_text(texts()[path], encoding="utf-8")
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
