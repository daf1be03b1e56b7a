"""``python -m irtool``."""

from __future__ import annotations

import sys

from irtool.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
