"""Ranks whose dumps are equal up to their own numbers are one class."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from irtool import DumpError, load_run
from irtool.syntax.run.classes import Fingerprints

TINY = "# IR entry: @main_1\n# Total subgraphs: 1\n\n# Total params: 0\n\n"


def put(folder: Path, *names: str, text: str = TINY) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


# -- classes of ranks --------------------------------------------------------------------------


def as_rank(text: str, own: int, other: int) -> str:
    """A dump as the same stage's rank ``other`` would have it: groups and peers move along."""
    shift = other - own
    text = re.sub(
        r"(rank_list|group_rank_ids): \(([\d, ]+)\)",
        lambda m: f"{m[1]}: ({', '.join(str(int(r) + shift) for r in m[2].split(', '))})",
        text,
    )
    text = re.sub(r'(group: "\d+-)\d+', rf"\g<1>{10**15 + other}", text)
    text = re.sub(
        r"(primitive_attrs: \{[^{}]*(?:src|dest)_rank: I64\()(\d+)",
        lambda m: m[1] + str(int(m[2]) + shift),
        text,
    )
    return re.sub(r"0x[0-9a-f]{6,}", lambda m: f"0x{int(m[0], 16) + 16 * other:x}", text)


def test_equal_ranks_are_folded(tmp_path: Path, samples: Path) -> None:
    for stage in (0, 4):
        text = (samples / f"pipeline_run/rank_{stage}/20_validate_0080.ir").read_text()
        for rank in range(stage, stage + 4):
            put(tmp_path / f"rank_{rank}", "20_validate_0080.ir", text=as_rank(text, stage, rank))
    run = load_run(tmp_path)
    assert [item.ranks for item in run.classes()] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    # One constant of one rank, and it stands alone.
    path = tmp_path / "rank_2/20_validate_0080.ir"
    path.write_text(path.read_text().replace("Bool(0)", "Bool(1)", 1))
    assert [item.ranks for item in load_run(tmp_path).classes()] == [(0, 1, 3), (2,), (4, 5, 6, 7)]


def test_an_unreadable_rank_equals_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in range(3):
        put(tmp_path / f"rank_{rank}", "20_validate_0080.ir")
    from irtool.syntax import run as module

    real = module.read_content

    def refuse(path: str) -> object:
        if "rank_1" in path:
            raise DumpError(path, "permission denied")
        return real(path)

    monkeypatch.setattr(module, "read_content", refuse)
    classes = load_run(tmp_path).classes()
    assert [(item.ranks, bool(item.fingerprint)) for item in classes] == [
        ((0, 2), True),
        ((1,), False),
    ]


SLICES = """\
  %1(a) = PrimFunc_StridedSlice(%0, (I64({0}), I64(0)), (I64({1}), I64(8)), (I64(1), I64(1))) \
{{instance name: {2}}} cnode_primal_attrs: {{unique_id: "41"}}
  %2(b) = StridedSliceGrad(%1, (I64(8), I64(8)), (I64({0}), I64(0)), (I64({1}), I64(8)), \
(I64(1), I64(1))) cnode_primal_attrs: {{forward_unique_id: "41"}}
"""


def test_slices_of_redistribution_may_differ_and_those_of_the_user_may_not() -> None:
    same = Fingerprints()
    inserted = "redistribution_op_4422429581742500503StridedSlice_"
    assert same.of(SLICES.format(0, 4, inserted), 0) == same.of(SLICES.format(4, 8, inserted), 1)
    assert same.of(SLICES.format(0, 4, inserted), 0) != same.of(SLICES.format(4, 6, inserted), 1)
    assert same.of(SLICES.format(0, 4, "mine"), 0) != same.of(SLICES.format(4, 8, "mine"), 1)
    forward, backward = SLICES.splitlines()
    moved = [text.format(0, 4, "mine") for text in (forward,)] + [backward.format(4, 8)]
    assert same.of(SLICES.format(0, 4, "mine"), 0) != same.of("\n".join(moved), 0)


def test_a_slice_of_redistribution_that_took_the_name_of_a_users_slice() -> None:
    same = Fingerprints()
    tie = 'unique_id: "41", forward_comm_node_unique_id: "7"'
    merged = SLICES.replace('unique_id: "41"', tie, 1)
    assert same.of(merged.format(0, 4, "mine"), 0) == same.of(merged.format(4, 8, "mine"), 1)
    assert same.of(merged.format(0, 4, "mine"), 0) != same.of(merged.format(4, 6, "mine"), 1)


def test_copies_for_recomputation_are_numbered_anew() -> None:
    same = Fingerprints()
    two = "".join(
        f"  %{place}(a) = ReLU(%para1_x) cnode_attrs: {{{{recompute_id: I64({{{place}}})}}}}\n"
        for place in range(2)
    )
    assert same.of(two.format(14, 31), 0) == same.of(two.format(7, 2), 1)
    assert same.of(two.format(14, 14), 0) != same.of(two.format(7, 2), 1)


def test_renumbering_keeps_different_things_different() -> None:
    same = Fingerprints()
    two = "  %0(a_1) = call @G_12(%para0_x)\n  %1(a_2) = call @G_{0}(%0, $(@G_12:b_{1}))\n"
    assert same.of(two.format(13, 5), 0) == same.of(two.replace("12", "40").format(41, 5), 0)
    assert same.of(two.format(13, 5), 0) != same.of(two.format(12, 5), 0)
    assert same.of(two.format(13, 5), 0) == same.of(two.format(13, 6), 0)
    send = (
        "  %0(a) = Send(%1) primitive_attrs: {{dest_rank: I64({0})}}"
        " cnode_attrs: {{dest_rank: I64({1})}}"
    )
    assert same.of(send.format(4, 1), 0) == same.of(send.format(5, 1), 1)
    assert same.of(send.format(4, 1), 0) != same.of(send.format(4, 1), 1)
    assert same.of(send.format(4, 1), 0) != same.of(send.format(4, 2), 0)
    group = '  %0(a) = AllReduce(%1) primitive_attrs: {{group: "2-{0}", rank_list: ({1}, {2})}}'
    assert same.of(group.format(10**15, 0, 1), 0) == same.of(group.format(10**16, 2, 3), 2)
    assert same.of(group.format(10**15, 0, 1), 0) != same.of(group.format(10**15, 0, 2), 0)


def test_any_other_change_of_a_dump_changes_its_fingerprint(samples: Path) -> None:
    text = (samples / "pipeline_run/rank_0/20_validate_0080.ir").read_text()
    fingerprints = Fingerprints()
    base = fingerprints.of(text, 0)
    # What is renumbered or left out may change without notice: debug names, source lines, …
    ignored = re.compile(
        r"^ *%\d+\(([^()]*)\) =|^Total number of nodes:.*|^subgraph instance:.*|^ *# In file .*",
        re.MULTILINE,
    )
    spans = [found.span() for found in ignored.finditer(text)]
    words = list(re.finditer(r"\d+|[A-Za-z_]+", text))
    for word in random.Random(5).sample(words, 400):
        if any(begin <= word.start() < end for begin, end in spans):
            continue
        new = str(int(word[0]) + 1) if word[0].isdigit() else word[0] + "x"
        changed = text[: word.start()] + new + text[word.end() :]
        line = text[text.rfind("\n", 0, word.start()) + 1 : word.end() + 20]
        assert fingerprints.of(changed, 0) != base, line
