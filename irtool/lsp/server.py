"""The server: hands what clients ask to the features, and what the analyses say to clients."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import cast

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from irtool import __version__
from irtool.lsp.document import Document
from irtool.lsp.features.definition import definition, source_line
from irtool.lsp.features.hover import hover
from irtool.lsp.project import Project
from irtool.lsp.protocol import Protocol
from irtool.lsp.store import Store
from irtool.lsp.text import UTF16

ProjectOf = Callable[[str, Mapping[str, object]], Project]
"""What reads the settings of a folder; the second is the context that the client gives."""


class Server(LanguageServer):
    """irtool for editors."""

    def __init__(self, project_of: ProjectOf) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            "irtool", __version__, protocol_cls=Protocol
        )
        self.store = Store(self._tell)
        self.project_of = project_of
        self.options: Mapping[str, object] = {}

    def set_up(self, params: types.InitializeParams) -> None:
        """Take the folder and the options of the client."""
        options = params.initialization_options
        self.options = cast("Mapping[str, object]", options) if isinstance(options, dict) else {}
        self.read_settings()

    def read_settings(self) -> None:
        """Read the folder's settings, at the beginning and when they have changed."""
        given = self.options.get("context")
        context: Mapping[str, object] = {}
        if isinstance(given, dict):
            context = cast("dict[str, object]", given)
        folder = self.workspace.root_path or ""
        if not folder and self.workspace.folders:
            folder = to_fs_path(next(iter(self.workspace.folders))) or ""
        self.store.project = self.project_of(folder, context)
        encoding = self.workspace.position_encoding
        self.store.units = str(getattr(encoding, "value", encoding) or UTF16)

    def _tell(self, document: Document) -> None:
        """More is known of a document."""


def make_server(project_of: ProjectOf) -> Server:
    """A server with all features, which waits to be started."""
    server = Server(project_of)
    _documents(server)
    _positions(server)
    return server


def serve(project_of: ProjectOf) -> None:
    """Serve one client over the standard streams, until it says that it is done."""
    # The analyses run beside the main loop; a hover should wait for a turn of a millisecond.
    sys.setswitchinterval(0.001)
    make_server(project_of).start_io()


def _documents(server: Server) -> None:
    """What clients tell of their documents."""

    @server.feature(types.INITIALIZE)
    def _(params: types.InitializeParams) -> None:
        server.set_up(params)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def _(params: types.DidOpenTextDocumentParams) -> None:
        opened = params.text_document
        server.store.open(opened.uri, opened.text, opened.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def _(params: types.DidChangeTextDocumentParams) -> None:
        changed = params.text_document
        server.store.change(changed.uri, list(params.content_changes), changed.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def _(params: types.DidCloseTextDocumentParams) -> None:
        server.store.close(params.text_document.uri)

    @server.feature(types.SHUTDOWN)
    def _(*_: object) -> None:
        server.store.stop()


def _positions(server: Server) -> None:
    """What is asked of a place in a document."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def _(params: types.HoverParams) -> types.Hover | None:
        document = await server.store.document(params.text_document.uri)
        return hover(document, params.position) if document is not None else None

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def _(params: types.DefinitionParams) -> list[types.Location]:
        document = await server.store.document(params.text_document.uri)
        return definition(document, params.position) if document is not None else []

    @server.feature(types.TEXT_DOCUMENT_TYPE_DEFINITION)
    async def _(params: types.TypeDefinitionParams) -> list[types.Location]:
        document = await server.store.document(params.text_document.uri)
        return source_line(document, params.position) if document is not None else []
