"""Which files are MindSpore's own."""

from __future__ import annotations

import pytest

from irtool.ir.framework import framework_part, is_framework


@pytest.mark.parametrize(
    ("path", "before"),
    [
        ("/env/lib/python3.11/site-packages/mindspore/nn/cell.py", "/env/lib/python3.11/"),
        ("/usr/lib/python3/dist-packages/mindspore/nn/cell.py", "/usr/lib/python3/"),
        ("C:\\Python\\Lib\\site-packages\\mindspore\\nn\\cell.py", "C:\\Python\\Lib\\"),
    ],
)
def test_installed_packages_are_told_by_their_folder(path: str, before: str) -> None:
    assert is_framework(path)
    assert framework_part(path) == (before, path.removeprefix(before))


@pytest.mark.parametrize(
    "path", ["/home/me/mindspore/net.py", "/env/site-packages/mindspore_gs/net.py", "net.py", ""]
)
def test_what_is_called_alike_elsewhere_is_the_users(path: str) -> None:
    assert not is_framework(path)
    assert framework_part(path) == (path, "")
