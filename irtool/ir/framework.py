"""Which files are MindSpore's own: a line of them is no place in the user's code."""

from __future__ import annotations

_PACKAGES = ("site-packages/mindspore/", "dist-packages/mindspore/")
"""Where Python installs MindSpore: its own folder, or that of a Linux distribution."""


def is_framework(path: str) -> bool:
    """Whether a file belongs to MindSpore rather than to its user.

    Args:
        path: of the file, with either kind of slashes.
    """
    return bool(framework_part(path)[1])


def framework_part(path: str) -> tuple[str, str]:
    """A file's path up to the folder of packages, and from there on if it is MindSpore's.

    Args:
        path: of the file, with either kind of slashes.

    Returns:
        both parts, which make the path together; the second one is "" where the file is a user's.
    """
    plain = path.replace("\\", "/")
    places = [place for package in _PACKAGES if (place := plain.find(package)) >= 0]
    begin = min(places, default=len(path))
    return path[:begin], path[begin:]
