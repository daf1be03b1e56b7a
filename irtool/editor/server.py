"""The server: hands what clients ask to the features, and what the analyses say to clients."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Mapping
from typing import BinaryIO, TypeVar, cast

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from irtool.editor.document import Document
from irtool.editor.features.actions import actions
from irtool.editor.features.definition import definition, source_line
from irtool.editor.features.diagnostics import diagnostics
from irtool.editor.features.folding import folding
from irtool.editor.features.hover import hover
from irtool.editor.features.inlays import inlays
from irtool.editor.features.lenses import PLACES, WHY, lenses, places, why
from irtool.editor.features.outline import outline
from irtool.editor.features.partners import earlier, later
from irtool.editor.features.references import highlights, references
from irtool.editor.features.search import query_error, query_note, search
from irtool.editor.features.tokens import LEGEND, tokens
from irtool.editor.project import Project
from irtool.editor.protocol import Protocol
from irtool.editor.store import Store
from irtool.editor.streams import Incoming, Outgoing, complaints
from irtool.editor.text import UTF16
from irtool.ir.version import VERSION

ProjectOf = Callable[[str, Mapping[str, object]], Project]
"""What reads the settings of a folder; the second is the context that the client gives."""


SEARCH = "irtool.search"
"""The command that searches: arguments are the URI and the query."""
_WATCHED = ("**/irtool.toml", "**/pyproject.toml", "**/*.py", "**/case.json")
"""Files whose changes may change answers."""
_THREADS = 12
"""That wait for answers about whole documents; one more listens to the client."""
Place = TypeVar("Place")
Answer = TypeVar("Answer")


class Server(LanguageServer):
    """The language server: it hands questions to the features, and findings to the client."""

    def __init__(self, project_of: ProjectOf) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            "irtool", VERSION, protocol_cls=Protocol, max_workers=_THREADS
        )
        self.store = Store(self._news)
        self.loop: asyncio.AbstractEventLoop | None = None
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

    def ask(self, uri: str, question: Callable[[Document], Answer]) -> Answer | None:
        """What a question about a whole document is answered with; waits, so not on the loop.

        Answers of some megabytes are written by the thread that waits for them, too.
        """
        if self.loop is None:
            return None
        asked = self.store.ask(uri, question)
        return asyncio.run_coroutine_threadsafe(asked, self.loop).result()

    def _news(self, document: Document) -> Callable[[], None]:
        """More is known of a document."""
        params = types.PublishDiagnosticsParams(
            document.uri, diagnostics(document), document.version
        )
        is_complete = document.answers.is_complete

        def tell() -> None:
            self.text_document_publish_diagnostics(params)
            if is_complete:
                self._refresh()

        return tell

    def _refresh(self) -> None:
        """Tell the client that hints and lenses are others now."""
        workspace = self.client_capabilities.workspace
        if workspace is None:
            return
        if workspace.inlay_hint is not None and workspace.inlay_hint.refresh_support:
            self.workspace_inlay_hint_refresh(None)
        if workspace.code_lens is not None and workspace.code_lens.refresh_support:
            self.workspace_code_lens_refresh(None)


def make_server(project_of: ProjectOf) -> Server:
    """A server with all features, which waits to be started."""
    server = Server(project_of)
    for register in (_documents, _places, _things, _wholes, _parts, _commands, _files):
        register(server)
    return server


def serve(project_of: ProjectOf, complain: Callable[[str], None]) -> None:
    """Serve one client over the standard streams, until it says that it is done.

    Args:
        project_of: reads the settings of a folder.
        complain: is told in one line what could not be done with a message of the client.
    """
    # The analyses run beside the main loop; a hover should wait for a turn of a millisecond.
    sys.setswitchinterval(0.001)
    # A collection of everything takes seconds beside a large dump: the store does it at rest.
    gc.set_threshold(2_000, 10, 1_000_000)
    incoming = Incoming(sys.stdin.buffer, complain)
    # The protocol closes what it writes to, which the process still flushes when it ends.
    outgoing = Outgoing(sys.stdout.buffer)
    with complaints(complain):
        make_server(project_of).start_io(cast("BinaryIO", incoming), cast("BinaryIO", outgoing))


def _documents(server: Server) -> None:
    """What clients tell of their documents."""

    @server.feature(types.INITIALIZE)
    def _(params: types.InitializeParams) -> None:
        server.set_up(params)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def _(params: types.DidOpenTextDocumentParams) -> None:
        server.loop = asyncio.get_running_loop()
        opened = params.text_document
        server.store.open(opened.uri, opened.text, opened.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def _(params: types.DidChangeTextDocumentParams) -> None:
        changed = params.text_document
        server.store.change(changed.uri, list(params.content_changes), changed.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def _(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.store.close(uri)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    @server.feature(types.SHUTDOWN)
    def _(*_: object) -> None:
        server.store.stop()


def _places(server: Server) -> None:
    """Jumps: from a position to places."""

    async def asked(
        identified: types.TextDocumentIdentifier,
        position: types.Position,
        feature: Callable[[Document, types.Position], list[Place]],
    ) -> list[Place]:
        document = await server.store.document(identified.uri)
        return feature(document, position) if document is not None else []

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def _(params: types.DefinitionParams) -> list[types.Location]:
        return await asked(params.text_document, params.position, definition)

    @server.feature(types.TEXT_DOCUMENT_TYPE_DEFINITION)
    async def _(params: types.TypeDefinitionParams) -> list[types.Location]:
        return await asked(params.text_document, params.position, source_line)

    @server.feature(types.TEXT_DOCUMENT_IMPLEMENTATION)
    async def _(params: types.ImplementationParams) -> list[types.Location]:
        return await asked(params.text_document, params.position, later)

    @server.feature(types.TEXT_DOCUMENT_DECLARATION)
    async def _(params: types.DeclarationParams) -> list[types.Location]:
        return await asked(params.text_document, params.position, earlier)

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    async def _(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
        return await asked(params.text_document, params.position, highlights)


def _things(server: Server) -> None:
    """What is known of the thing at a position."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def _(params: types.HoverParams) -> types.Hover | None:
        document = await server.store.document(params.text_document.uri)
        return hover(document, params.position) if document is not None else None

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def _(params: types.ReferenceParams) -> list[types.Location] | None:
        declared = params.context.include_declaration
        uri = params.text_document.uri
        return await server.store.ask(uri, lambda d: references(d, params.position, declared))


def _wholes(server: Server) -> None:
    """What is asked of a whole document: answers are long, so that threads write them."""

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    @server.thread()
    def _(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol] | None:
        return server.ask(params.text_document.uri, outline)

    @server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
    @server.thread()
    def _(params: types.FoldingRangeParams) -> list[types.FoldingRange] | None:
        asked = server.client_capabilities.text_document
        said = asked.folding_range if asked is not None else None
        most = said.range_limit if said is not None else None
        return server.ask(params.text_document.uri, lambda d: folding(d, most))

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, LEGEND)
    @server.thread()
    def _(params: types.SemanticTokensParams) -> types.SemanticTokens | None:
        return server.ask(params.text_document.uri, tokens)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    @server.thread()
    def _(params: types.CodeLensParams) -> list[types.CodeLens] | None:
        return server.ask(params.text_document.uri, lenses)

    @server.feature(types.WORKSPACE_SYMBOL)
    @server.thread()
    def _(params: types.WorkspaceSymbolParams) -> list[types.SymbolInformation]:
        symbols: list[types.SymbolInformation] = []
        for uri in server.store.uris:
            symbols += server.ask(uri, lambda d: search(d, params.query)) or []
        return symbols


def _parts(server: Server) -> None:
    """What is asked of a part of a document."""

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, LEGEND)
    async def _(params: types.SemanticTokensRangeParams) -> types.SemanticTokens | None:
        return await server.store.ask(params.text_document.uri, lambda d: tokens(d, params.range))

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def _(params: types.InlayHintParams) -> list[types.InlayHint] | None:
        return await server.store.ask(params.text_document.uri, lambda d: inlays(d, params.range))

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions([types.CodeActionKind.QuickFix]),
    )
    async def _(params: types.CodeActionParams) -> list[types.CodeAction] | None:
        given = params.context.diagnostics
        uri = params.text_document.uri
        return await server.store.ask(uri, lambda d: actions(d, params.range, given))


def _commands(server: Server) -> None:
    """What code lenses, and menus of clients, do."""

    @server.command(WHY)
    async def _(uri: str, line: int) -> str:
        document = await server.store.document(uri)
        text = why(document, line) if document is not None else ""
        if text and not server.options.get("shows"):
            server.window_show_message(types.ShowMessageParams(types.MessageType.Info, text))
        return text

    @server.command(PLACES)
    async def _(uri: str, line: int) -> list[types.Location]:
        locations = await server.store.ask(uri, lambda d: places(d, line)) or []
        if not server.options.get("shows"):
            text = ", ".join(str(place.range.start.line + 1) for place in locations) or "none"
            message = types.ShowMessageParams(types.MessageType.Info, f"lines: {text}")
            server.window_show_message(message)
        return locations

    @server.command(SEARCH)
    async def _(uri: str, query: str) -> dict[str, object]:
        symbols = await server.store.ask(uri, lambda d: search(d, query)) or []
        note = "" if symbols else query_note(query)
        return {"found": symbols, "why_no_query": query_error(query), "note": note}


def _files(server: Server) -> None:
    """Files beside the dumps, whose changes may change answers."""

    @server.feature(types.INITIALIZED)
    async def _(params: types.InitializedParams) -> None:
        server.store.warm_up()
        workspace = server.client_capabilities.workspace
        watched = workspace.did_change_watched_files if workspace is not None else None
        if watched is None or not watched.dynamic_registration:
            return
        options = types.DidChangeWatchedFilesRegistrationOptions(
            [types.FileSystemWatcher(pattern) for pattern in _WATCHED]
        )
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        registration = types.Registration("files", method, options)
        server.client_register_capability(types.RegistrationParams([registration]))

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def _(params: types.DidChangeWatchedFilesParams) -> None:
        server.read_settings()
        server.store.reread()
