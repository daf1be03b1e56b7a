"""Names of a dump are other people's: no output of any command lets one steer what shows it."""

from __future__ import annotations

import json
import re
import xml.dom.minidom
from pathlib import Path

import pytest

from irtool.cli.main import main

STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
"""What moves a terminal's cursor, or the order in which people read."""
NAMES = {
    "control": "Z\x1b[31m\x07\x9b\u202e\u2028\x7f\x08q",
    "markup": "Z</script><img/src=x/onerror=alert(1)>&lt;&#39;q",
    "annotation": "Z%0A::error::x]]>--><!--q",
    "bytes": "Z\udcff\udcfeq",
}
COMMANDS = [
    *(["parse", "$B", "-f", form] for form in ("table", "json", "ndjson", "csv")),
    ["parse", "$B", "--where", "line > 0"],
    ["parse", "$B", "--group-by", "op,scope", "-f", "csv"],
    *(["check", "$B", "--operators", "--parameters", "-f", f] for f in ("table", "json", "html")),
    *(["check", "$B", "--against", "$V", "-f", form] for form in ("table", "html")),
    *(["cost", "$B", "-f", form] for form in ("table", "html")),
    *(["plan", "$B", "-f", f] for f in ("table", "html", "strategy", "shard", "msjob")),
    *(["diff", "$B", "$V", "-f", form] for form in ("table", "json", "html")),
    *(["memory", "$V", "-f", form] for form in ("table", "svg", "html")),
    *(["comm", "groups", "$V", "-f", form] for form in ("table", "html")),
    *(
        ["lint", "$B", "-f", form]
        for form in ("text", "concise", "json", "sarif", "github", "gitlab", "junit", "html")
    ),
    ["gate", "$V", "$V"],
    ["recover", "$B", "--lost", "1"],
    *(["viz", "$B", "-f", form] for form in ("dot", "html", "model-explorer")),
]


def renamed(text: str, name: str) -> str:
    """A dump whose scopes, nodes, parameters, groups and source lines have a name in theirs."""
    text = re.sub(r"(with scope: \()(Default/)", lambda m: f"{m[0]}{name.replace('/', '')}/", text)
    text = re.sub(r"%para1_\w+", lambda m: m[0] + name, text)
    text = re.sub(r"(\n  %\d+\(\w+)(\) = )", lambda m: m[1] + name + m[2], text, count=3)
    text = re.sub(r'(group: "[^"]*)"', lambda m: f'{m[1]}{name}"', text)
    text = re.sub(r"(instance name: \{?\w+)", lambda m: m[0] + name, text, count=5)
    return re.sub(r"In file (\S+?):(\d+)", lambda m: f"In file {m[1]}{name}:{m[2]}", text)


@pytest.mark.parametrize("kind", NAMES)
def test_no_output_lets_a_name_through(
    samples: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], kind: str
) -> None:
    paths: dict[str, str] = {}
    for key, part in (("$B", "begin"), ("$V", "validate")):
        (source,) = (samples / "mlp_semi_auto").glob(f"*{part}*.ir")
        made = tmp_path / source.name
        text = renamed(source.read_text("utf-8", "surrogateescape"), NAMES[kind])
        made.write_text(text, "utf-8", "surrogateescape")
        paths[key] = str(made)
    (tmp_path / "case.json").write_bytes((samples / "mlp_semi_auto/case.json").read_bytes())
    for command in COMMANDS:
        status = main([paths.get(word, word) for word in command])
        said = capsysbinary.readouterr()
        # A file of strategies goes by the names of nodes, and can't say some of these.
        allowed = (0, 1, 2) if "strategy" in command else (0, 1)
        assert status in allowed, (command, said.err)
        assert b"CLI999" not in said.err
        form = command[-1]
        for stream in said:
            found = STEERING.search(stream.decode("utf-8", "surrogateescape"))
            assert found is None, (command, found)
        if form == "html":
            assert b"<img/src=x" not in said.out, command
        if form in ("svg", "junit"):
            xml.dom.minidom.parseString(said.out)
        if form in ("json", "sarif", "gitlab", "model-explorer"):
            json.loads(said.out)
        if form == "github":
            assert not re.search(rb"^::error::x", said.out, re.MULTILINE)
