"""The protocol's connection, with texts of documents kept by us.

pygls keeps texts, too, but ends lines where Python does (form feeds, U+2028), so that a change in a
dump that holds such a character would go to another place; and a dump of 100 MB need not be held
twice.  A request whose parameters are not those of its method is answered with an error, which
pygls only shows to the user: the client would wait for ever.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, cast

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.protocol import LanguageServerProtocol

_NAME = 80
"""Letters of a method in an error: it may be anything."""


def lsp_method(name: str) -> Any:
    """Marks a method as the protocol's own part of handling a message."""

    def mark(function: Any) -> Any:
        function.method_name = name
        return function

    return mark


class Protocol(LanguageServerProtocol):
    """Hands openings, changes and closings to the server and keeps no texts."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A message, as its method wants it.

        Raises:
            JsonRpcException: it is none; a request has been answered with an error by then.
        """
        try:
            return super().structure_message(data)
        except JsonRpcException:
            number = data.get("id")
            if "method" in data and isinstance(number, int | str):
                invalid = f"the parameters are not those of {str(data['method'])[:_NAME]}"
                error = JsonRpcInvalidParams(invalid).to_response_error()
                self._send_response(number, None, error)  # pyright: ignore[reportUnknownMemberType]
            raise

    def _handed(self, name: str, params: object) -> Generator[Any, Any, None]:
        features = cast("dict[str, Any]", self.fm.features)  # pyright: ignore[reportUnknownMemberType]
        handler = features.get(name)
        if handler is not None:
            yield handler, (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(
        self, params: types.DidOpenTextDocumentParams
    ) -> Generator[Any, Any, None]:
        yield from self._handed(types.TEXT_DOCUMENT_DID_OPEN, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(
        self, params: types.DidChangeTextDocumentParams
    ) -> Generator[Any, Any, None]:
        yield from self._handed(types.TEXT_DOCUMENT_DID_CHANGE, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(
        self, params: types.DidCloseTextDocumentParams
    ) -> Generator[Any, Any, None]:
        yield from self._handed(types.TEXT_DOCUMENT_DID_CLOSE, params)
