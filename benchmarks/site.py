"""Hooks of mkdocs: pages that are made of the program itself, and links that lead out of docs/.

The pages are made when the site is built, so they cannot be out of date:
``reference/commands.md`` of the command line, ``reference/operators.md`` of the table of operators,
``reference/json.md`` of the answers, ``reference/api.md`` of the library's docstrings.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # mkdocs reads hooks from anywhere

_LINK = re.compile(r"\[([^\[\]]*)\]\((?!\w+:|#|/)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made."""
    from mkdocs.structure.files import File

    for name, text in generated().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links to files of the repository that are no pages lead to it, or are plain text."""
    return inside_links(markdown, page.file.src_uri, config.repo_url or "")


def inside_links(markdown: str, page: str, repository: str) -> str:
    """The text of a page with its links out of docs/ led to the repository.

    Args:
        markdown: the text.
        page: its path in docs.
        repository: the repository's address; "" where it has none yet: the link's text stays.
    """

    def led(found: re.Match[str]) -> str:
        target = _joined(PurePosixPath("docs", page).parent, found[2])
        if target.startswith("docs/") and not target.endswith(".ipynb"):
            return found[0]
        return f"[{found[1]}]({repository}/blob/main/{target})" if repository else found[1]

    return _LINK.sub(led, markdown)


def _joined(folder: PurePosixPath, target: str) -> str:
    parts = list(folder.parts)
    for part in target.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def generated() -> dict[str, str]:
    """The texts of the pages that are made, by their paths in docs."""
    return {
        "reference/commands.md": "\n".join(commands_page()) + "\n",
        "reference/operators.md": operators_page(),
        "reference/json.md": "\n".join(json_page()) + "\n",
        "reference/api.md": "\n".join(api_page()) + "\n",
    }


# -- commands --------------------------------------------------------------------------------------


def commands_page() -> Iterator[str]:
    """Every command with its options and examples."""
    from irtool.cli.commands import COMMANDS
    from irtool.cli.main import _command_of

    yield "# Commands\n\nMade of the command line itself."
    yield "What every command keeps to: [contract](../contract.md).\n"
    for name, entry in COMMANDS.items():
        command = _command_of(name)
        inner = getattr(command, "commands", None)
        yield f"## irtool {name}\n\n{_cell(entry.help)}\n"
        if (ROOT / "docs" / f"{name}.md").exists():
            yield f"More: [{name}](../{name}.md).\n"
        for word, each in (inner or {"": command}).items():
            if word:
                yield f"### irtool {name} {word}\n"
            yield from _command_lines(f"{name} {word}".strip(), each)


def _command_lines(words: str, command: Any) -> Iterator[str]:
    from irtool.cli.help import EXAMPLES

    yield f"{command.help or ''}\n"
    yield "| option | |\n| --- | --- |"
    for each in command.params:
        if not getattr(each, "hidden", False):
            names = each.metavar or each.name if each.param_type_name == "argument" else None
            flags = names or ", ".join((*each.opts, *each.secondary_opts))
            value = f" {each.metavar}" if names is None and each.metavar else ""
            yield f"| `{_cell(flags + value)}` | {_cell(each.help or '')} |"
    examples = EXAMPLES.get(words, ())
    if examples:
        yield "\n```\n" + "\n".join(examples) + "\n```"
    yield ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


# -- operators, answers, library -------------------------------------------------------------------


def operators_page() -> str:
    """The sharding rules of all operators, as ``irtool rules --operators`` prints them."""
    from click.testing import CliRunner

    from irtool.cli.main import app

    table = CliRunner().invoke(app, ["rules", "--operators", "--format", "markdown"]).output
    notation = "the notation is told in [custom operators](../custom-operators.md)"
    return f"# Operators\n\nWhat `irtool rules --operators` prints; {notation}.\n\n{table}"


def json_page() -> Iterator[str]:
    """A list of the pages of answers."""
    from irtool.report.reference import ANSWERS

    yield "# JSON\n\n`--format json` of every command has a versioned schema."
    yield "A page and a schema for each answer:\n"
    for name in ANSWERS:
        yield f"- [{name}](../json-{name}.md) ([schema](../json-{name}.schema.json))"


def api_page() -> Iterator[str]:
    """The library's functions and classes, as their docstrings tell them."""
    import irtool

    yield "# Python\n\nMade of docstrings. How they go together: [from Python](../library.md).\n"
    for name in sorted(irtool.__all__):
        value = getattr(irtool, name)
        if inspect.isclass(value) or callable(value):
            yield from _member(name, value)


def _member(name: str, value: Any) -> Iterator[str]:
    yield f"## irtool.{name}\n"
    try:
        # Annotations are texts, which a reader needs no quotation marks around.
        bare = re.sub(
            r"""(: |-> )(['"])(.*?)\2(?=[,)=]| =|$)""", r"\1\3", str(inspect.signature(value))
        )
        signature = f"{name}{bare}"
    except (TypeError, ValueError):
        signature = name
    yield f"```python\n{signature}\n```\n"
    for line in (inspect.getdoc(value) or "").splitlines():
        text = re.sub(r":(?:func|class|mod|attr|meth):`~?([^`]+)`", r"`\1`", line)
        item = re.fullmatch(r" {4}(\w+): (.*)", text)
        if re.fullmatch(r"(Args|Returns|Raises|Attributes|Yields):", text):
            yield f"\n**{text[:-1]}**\n"
        elif text == "Example:":  # the last section
            yield "\n```python"
        else:
            yield f"- `{item[1]}`: {_cell(item[2])}" if item else text.strip()
    yield "```\n" if "\nExample:\n" in (inspect.getdoc(value) or "") else ""
    if inspect.isclass(value):
        yield from _class_members(value)


def _class_members(kind: type) -> Iterator[str]:
    """Properties and methods of a class, those of our own bases too, with their first lines."""
    bases = [base for base in kind.__mro__ if base.__module__.startswith("irtool.")]
    members = {name: value for base in reversed(bases) for name, value in vars(base).items()}
    told: list[str] = []
    for name, value in sorted(members.items()):
        is_property = isinstance(value, (property, cached_property))
        text = inspect.getdoc(value)
        if name.startswith("_") or not text or not (is_property or inspect.isfunction(value)):
            continue
        first = _cell(re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text.split("\n\n")[0]))
        told.append(f"- `{name}{'' if is_property else '()'}`: {first}")
    if told:
        yield "**Properties and methods**\n\n" + "\n".join(told) + "\n"
