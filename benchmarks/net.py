"""A net under every answer: what does a change alter?

    python benchmarks/net.py                         # against the kept answers (tests/net)
    python benchmarks/net.py --against main          # against another revision, run beside this one
    python benchmarks/net.py --against main --all    # every command x format x sample (minutes)
    python benchmarks/net.py --against main --folder ../shared/corpus/planning
    python benchmarks/net.py --record                # say what changed, and keep the answers of now

Each question is asked in this process. Answers are compared without what may differ from run to
run (times, versions, paths), and what differs is told by class: command, format, kind of change,
and where in the answer, each with a count and an example. Exit status: 0 nothing changed; 1
something did.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The revision that is asked comes first: PYTHONPATH names it where it is another one.
sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).parent]
sys.path.append(str(ROOT))

from benchmarks import (  # noqa: E402 - found by the line above
    net_answers,
    net_changes,
    net_judgements,
    net_networks,
    net_questions,
    net_variants,
)
from benchmarks.net_answers import Answer  # noqa: E402
from benchmarks.net_questions import Question  # noqa: E402

KEPT = ROOT / "tests" / "net"
"""Where answers are kept, a file for each material and command."""
BESIDE = ROOT / "build" / "net"
"""Where answers of other revisions stay, so that they are asked only once."""

COLLECT = 50
"""Questions between two collections of garbage."""

Sections = dict[str, tuple[str, ...]]


def prepare() -> None:
    """Make this process one where answers don't depend on the terminal or on what was cached."""
    os.chdir(ROOT)
    os.environ.update(COLUMNS="110", NO_COLOR="1")
    os.environ.setdefault("IRTOOL_CACHE_DIR", tempfile.mkdtemp(prefix="irtool-net-"))
    os.environ.pop("IRTOOL_DEBUG", None)
    os.environ.pop("GITHUB_STEP_SUMMARY", None)


def answers(questions: Sequence[Question]) -> Iterator[tuple[Question, Answer]]:
    """The questions' answers, garbage being collected between them, not within.

    What irtool keeps for the next question is not garbage: it is looked at only once.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        for number, question in enumerate(questions, 1):
            yield question, net_answers.ask(question)
            if number % COLLECT == 0:
                gc.collect()
                gc.freeze()
    finally:
        gc.unfreeze()
        if enabled:
            gc.enable()


# -- kept answers --------------------------------------------------------------------------------


def file_of(question: Question) -> Path:
    """The file below ``KEPT`` that holds the answer to a question."""
    return Path(question.material, f"{question.command.replace(' ', '-')}.txt")


def kept_now(questions: Sequence[Question]) -> dict[Path, str]:
    """What would be kept of these questions now, by file."""
    files: dict[Path, list[tuple[Question, Answer]]] = {}
    for question, answer in answers(questions):
        files.setdefault(file_of(question), []).append((question, answer))
    return {path: net_answers.kept_text(found) for path, found in files.items()}


def kept_by(jobs: int, questions: Sequence[Question]) -> dict[Path, str]:
    """What would be kept of these questions, asked in several processes."""
    if jobs < 2:
        return kept_now(questions)
    files: dict[Path, str] = {}
    groups = sorted(net_questions.by_material(questions).values(), key=len, reverse=True)
    with ProcessPoolExecutor(jobs, initializer=prepare) as pool:
        for found in pool.map(kept_now, groups):
            files.update(found)
    return files


def kept_before(path: Path) -> str:
    """What a file keeps; of one that a merge left in conflict, what the other side keeps."""
    file = KEPT / path
    if not file.exists():
        return ""
    text = file.read_text(encoding="utf-8")
    if "\n<<<<<<< " in f"\n{text}":
        name = file.relative_to(ROOT).as_posix()
        shown = subprocess.run(
            ["git", "show", f"HEAD:{name}"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        return shown.stdout
    return text


def compare_kept(files: Mapping[Path, str], whole: bool) -> net_changes.Changes:
    """What differs between answers of now and those that are kept.

    Args:
        files: the answers of now, as ``kept_now`` gives them.
        whole: these are all the answers; else what is kept of other questions stays out of it.
    """
    changes: net_changes.Changes = {}
    everything = {path.relative_to(KEPT) for path in KEPT.rglob("*.txt")} if whole else set[Path]()
    for path in sorted({*files, *everything}):
        before, text = kept_before(path), files.get(path, "")
        if before == text:
            continue
        old, new = net_answers.read_kept(before), net_answers.read_kept(text)
        for line in dict.fromkeys((*old, *new)) if whole else new:
            net_changes.compare(changes, line, old.get(line), new.get(line))
    return changes


def record(files: Mapping[Path, str], whole: bool) -> None:
    """Keep these answers; if they are all there are, no others."""
    for path, text in files.items():
        kept = text if whole else net_answers.joined(kept_before(path), text)
        (KEPT / path).parent.mkdir(parents=True, exist_ok=True)
        (KEPT / path).write_text(kept, encoding="utf-8", newline="\n")
    if not whole:
        return
    for path in sorted(KEPT.rglob("*"), reverse=True):
        if path in (net_judgements.KEPT, net_networks.KEPT, net_variants.KEPT):
            continue
        if path.is_file() and path.relative_to(KEPT) not in files:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()


# -- another revision ----------------------------------------------------------------------------


def ask_into(folder: Path, questions: Sequence[Question]) -> None:
    """Ask, and write the answers below a folder, a file a material."""
    folder.mkdir(parents=True, exist_ok=True)
    for material, asked in net_questions.by_material(questions).items():
        file = answers_file(folder, material)
        if file.exists():
            continue
        found = {q.line: {"exit": (a.status,), **a.sections} for q, a in answers(asked)}
        packed = zlib.compress(json.dumps(found).encode("utf-8", "surrogatepass"), 1)
        file.with_suffix(".part").write_bytes(packed)
        file.with_suffix(".part").replace(file)


def answers_file(folder: Path, material: str) -> Path:
    return folder / f"{hashlib.sha256(material.encode()).hexdigest()[:20]}.z"


def answers_of(folder: Path, material: str) -> dict[str, Sections]:
    file = answers_file(folder, material)
    return json.loads(zlib.decompress(file.read_bytes())) if file.exists() else {}


def git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def ask_revision(revision: str, arguments: argparse.Namespace, listed: list[Question]) -> Path:
    """Ask another revision the questions of this one; its answers stay for the next time."""
    commit = git("rev-parse", "--verify", f"{revision}^{{commit}}").strip()
    key = hashlib.sha256("\n".join(question.line for question in listed).encode())
    for module in ("net_answers.py", "net_questions.py"):
        key.update((ROOT / "benchmarks" / module).read_bytes())
    key.update(git("status", "--porcelain", "samples").encode())
    key.update(git("rev-parse", "HEAD:samples").encode())
    folder = BESIDE / f"{commit[:12]}-{key.hexdigest()[:12]}"
    with tempfile.TemporaryDirectory(prefix="irtool-net-") as scratch:
        tree = Path(scratch, "tree")
        git("worktree", "add", "--detach", "--quiet", str(tree), commit)
        try:
            command = [sys.executable, __file__, "--into", str(folder), *selection(arguments)]
            environment = {**os.environ, "PYTHONPATH": str(tree)}
            subprocess.run(command, check=True, env=environment)
        finally:
            git("worktree", "remove", "--force", str(tree))
    return folder


def selection(arguments: argparse.Namespace) -> list[str]:
    """The options that say what is asked, for another process."""
    words = ["--all"] if arguments.all else []
    for folder in arguments.folder:
        words += ["--folder", folder]
    for word in arguments.only:
        words += ["--only", word]
    return words


def compare_revision(arguments: argparse.Namespace, asked: list[Question]) -> net_changes.Changes:
    """What differs between the answers of now and those of another revision."""
    folder = ask_revision(arguments.against, arguments, asked)
    changes: net_changes.Changes = {}
    for material, questions in net_questions.by_material(asked).items():
        old = answers_of(folder, material)
        for question, answer in answers(questions):
            new = json.loads(json.dumps({"exit": (answer.status,), **answer.sections}))
            net_changes.compare(changes, question.line, old.get(question.line), new)
    return changes


# -- command line --------------------------------------------------------------------------------


def chosen(arguments: argparse.Namespace) -> list[Question]:
    """The questions that the options choose."""
    if arguments.all or arguments.folder:
        folders = arguments.folder or ["samples"]
        asked = net_questions.all_questions(ROOT, folders)
    else:
        asked = net_questions.kept_questions(ROOT)
    return [item for item in asked if all(word in item.line for word in arguments.only)]


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", metavar="REV", help="another revision, not the kept answers")
    parser.add_argument("--record", action="store_true", help="keep the answers of now")
    parser.add_argument("--all", action="store_true", help="every command x format x sample")
    parser.add_argument("--folder", action="append", default=[], help="dumps to ask of instead")
    only = "questions that hold this: 'irtool check', gpt, '-f json'"
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help=only)
    most = "classes told of one command and format (12; 0: all)"
    parser.add_argument("--most", type=int, default=12, metavar="N", help=most)
    jobs = "processes that ask, unless --against (as many as there are processors)"
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help=jobs)
    parser.add_argument("--into", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.record and arguments.against:
        parser.error("--record compares with the kept answers, not with another revision")
    if (arguments.all or arguments.folder) and not (arguments.against or arguments.into):
        parser.error("--all and --folder need --against REV: these answers are not kept")
    return arguments


def main() -> int:
    arguments = read_arguments()
    prepare()
    asked, whole = chosen(arguments), not arguments.only
    if arguments.into:
        ask_into(Path(arguments.into), asked)
        return 0
    if arguments.against:
        changes = compare_revision(arguments, asked)
    else:
        files = kept_by(arguments.jobs, asked)
        changes = compare_kept(files, whole)
    for line in net_changes.told(changes, arguments.most):
        print(line)
    print(f"{len(asked)} questions, {len(changes)} classes of change")
    if arguments.record:
        record(files, whole)
        if whole:
            print(*(f"other judgements of {name}" for name in net_judgements.record()), sep="\n")
            print(*(f"other answer of {name}" for name in net_networks.record()), sep="\n")
            print(*(f"other answer of {line}" for line in net_variants.record()), sep="\n")
            from tests.compare import kept_verdicts  # another revision may not have it

            print(*(f"other verdicts in {name}" for name in kept_verdicts.record()), sep="\n")
        return 0
    return 1 if changes else 0


if __name__ == "__main__":
    sys.exit(main())
