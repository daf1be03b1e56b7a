"""``irtool lsp``: the language server for editors."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from irtool.cli.configuration import load_custom_rules, read_configuration
from irtool.cli.report import Failure, note
from irtool.report.plain import is_terminal

if TYPE_CHECKING:
    from irtool.editor.project import Project


def command() -> int:
    """The language server for editors, over standard input and output.

    Editors start it; docs/editor.md says how. Needs the extra irtool[lsp].
    """
    try:
        from irtool.editor.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("pygls", "lsprotocol"):
            raise
        hint = "python -m pip install 'irtool[lsp]'"
        raise Failure("the language server needs pygls", hint=hint, code="CLI001") from None
    if is_terminal(sys.stdin):
        note("waits for an editor, which starts it itself: docs/editor.md says how")
    serve(project_of, note)
    return 0


def project_of(folder: str, context: Mapping[str, object]) -> Project:
    """A folder's settings; where they make no sense, none, and why.

    Args:
        folder: that is open in the editor; empty: the working directory.
        context: what the editor says of the run, which goes before the settings.
    """
    from irtool.editor.project import Project

    folder = folder or os.getcwd()
    try:
        configuration = read_configuration(None, folder)
        load_custom_rules(configuration)
    except Failure as failure:
        trouble = f"{failure.place}: {failure.message}" if failure.place else failure.message
        return Project(folder, context, trouble=trouble)
    return Project(
        folder, {**configuration.context, **context}, configuration.lint, configuration.path
    )
