"""The table of known lines: every entry with the line that it was made for."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

import pytest

from irtool.linting.failure.known import KnownLine, known_lines, read_known_lines
from irtool.linting.failure.record import Record, exception_of, parse_line
from irtool.linting.failure.report import Place, next_command
from tests.linting.failure.conftest import Read

ENTRIES = known_lines().entries
EXAMPLES = [(entry, line) for entry in ENTRIES for line in entry.examples]
COMMANDS = {"check", "comm", "diff", "explain", "memory", "parse", "pipeline", "plan", "recover"}
"""Commands of irtool that may be proposed."""
_SEEN = re.compile(r"printed: \S+|documented: .+|text: [\d.x]+")


def record_of(line: str) -> Record:
    record = parse_line(line)
    found = exception_of(line)
    if found is not None and record.level == "plain":
        return replace(record, level="exception", message=found[1])
    return record


@pytest.mark.parametrize(("entry", "line"), EXAMPLES, ids=[entry.id for entry, _ in EXAMPLES])
def test_the_example_is_found_by_its_own_entry(entry: KnownLine, line: str) -> None:
    matched = known_lines().match(record_of(line))
    assert matched is not None
    assert matched[0].id == entry.id


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.id for entry in ENTRIES])
def test_every_entry_says_where_its_example_comes_from(entry: KnownLine) -> None:
    assert entry.examples
    assert _SEEN.fullmatch(entry.seen), entry.seen


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.id for entry in ENTRIES])
def test_every_place_of_a_message_is_in_each_of_its_patterns_or_optional(entry: KnownLine) -> None:
    wanted = set(re.findall(r"\{([a-z_]+)", entry.message + entry.meaning)) - {"op"}
    offered = {name for each in entry.templates for name in each.names}
    assert wanted <= offered


@pytest.mark.parametrize(("entry", "line"), EXAMPLES, ids=[entry.id for entry, _ in EXAMPLES])
def test_every_finding_has_a_command_that_can_be_typed(
    read: Read, entry: KnownLine, line: str
) -> None:
    for finding in read([line]).findings:
        command = next_command(finding, Place("run", "run"))
        words = shlex.split(command)
        assert words[0] == "irtool"
        assert words[1] in COMMANDS
        assert "{" not in command


def test_two_entries_of_one_name_are_refused() -> None:
    text = '[[line]]\nid = "a"\ncode = "b"\ntext = "c"\n' * 2
    with pytest.raises(ValueError, match="there are two"):
        list(read_known_lines(text))


@pytest.mark.parametrize(
    "wrong", ['role = "culprit"', 'levels = ["loud"]', 'text = "{a}{b}"', 'colour = "red"']
)
def test_an_entry_that_makes_no_sense_is_named(wrong: str) -> None:
    text = f'[[line]]\nid = "odd"\ncode = "b"\n{wrong}\n'
    with pytest.raises(ValueError, match="entry 'odd'"):
        list(read_known_lines(text))
