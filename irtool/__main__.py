"""The process's entry: ``irtool`` and ``python -m irtool``."""

from __future__ import annotations

import sys


def main() -> int:
    """Run irtool and return its exit status, also if Ctrl-C comes while it is imported: 130."""
    try:
        from irtool.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
