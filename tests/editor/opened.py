"""Opens samples as an editor would, and names places in them by what stands there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lsprotocol.types import Location, Position, Range

from irtool.editor.analyse import analyses
from irtool.editor.document import Document, open_document
from irtool.editor.project import Project
from irtool.editor.text import Text

SAMPLES = Path(__file__).parents[2] / "samples"
REJECTED = "mlp_rejected/step_parallel_begin_0018.ir"
BEGIN = "mlp_semi_auto/step_parallel_begin_0018.ir"
VALIDATE = "mlp_semi_auto/20_validate_0080.ir"
FLOW = "control_flow/01_type_inference_0001.ir"


def sample_text(name: str) -> str:
    """A sample, line ends as they are."""
    return (SAMPLES / name).read_bytes().decode()


def opened(
    name: str,
    text: str | None = None,
    *,
    folder: Path | None = None,
    context: Mapping[str, object] | None = None,
    lint: Mapping[str, object] | None = None,
    answered: bool = False,
) -> Document:
    """A sample as an open document, with the answers of all analyses if these are wanted."""
    project = Project(str(folder or SAMPLES), context or {}, lint or {})
    path = SAMPLES / name
    content = sample_text(name) if text is None else text
    document = open_document(path.as_uri(), str(path), Text(content), project, 1)
    if answered:
        for answers in analyses(document):
            document.answers = answers
    return document


def at(document: Document, before: str, name: str = "") -> Position:
    """The position of ``name`` behind the first place where ``before`` stands."""
    content = document.text.content
    start = content.index(before)
    if name:
        start = content.index(name, start + len(before))
    return document.text.position(start)


def text_in(document: Document, where: Range | None) -> str:
    """What stands in a range."""
    assert where is not None
    text = document.text
    return text.content[text.offset(where.start) : text.offset(where.end)]


def line_of(document: Document, location: Location) -> str:
    """The line that a location of this document begins in."""
    assert location.uri == document.uri
    return document.text.line(document.text.line_at(document.text.offset(location.range.start)))
