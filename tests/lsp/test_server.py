"""The server over its standard streams, asked by a client as editors ask it."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient

from tests.lsp.opened import REJECTED, SAMPLES, at, opened, sample_text

URI = (SAMPLES / REJECTED).as_uri()
pytestmark = pytest.mark.asyncio


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=[sys.executable, "-m", "irtool", "lsp"])
)
async def client(lsp_client: LanguageClient) -> AsyncGenerator[None]:
    await lsp_client.initialize_session(
        types.InitializeParams(
            capabilities=types.ClientCapabilities(),
            workspace_folders=[types.WorkspaceFolder(SAMPLES.as_uri(), "samples")],
        )
    )
    yield
    await lsp_client.shutdown_session()


def open_sample(client: LanguageClient, text: str | None = None) -> types.TextDocumentIdentifier:
    content = sample_text(REJECTED) if text is None else text
    item = types.TextDocumentItem(URI, "mindspore-ir", 1, content)
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    return types.TextDocumentIdentifier(URI)


async def test_a_client_asks_for_hover_and_definition(client: LanguageClient) -> None:
    document = open_sample(client)
    place = at(opened(REJECTED), "%8(CNode_23) = PrimFunc_MatMul(", "%6")
    found = await client.text_document_hover_async(types.HoverParams(document, place))
    assert found is not None
    assert "%6 ReLU" in found.contents.value  # type: ignore[union-attr]
    places = await client.text_document_definition_async(types.DefinitionParams(document, place))
    assert isinstance(places, list)
    assert [place.range.start.line + 1 for place in places] == [68]  # type: ignore[union-attr]


async def test_answers_are_those_of_the_text_as_it_is_now(client: LanguageClient) -> None:
    document = open_sample(client)
    place = at(opened(REJECTED), "%8(CNode_23) = PrimFunc_MatMul(", "%6")
    added = types.TextDocumentContentChangePartial(
        types.Range(types.Position(0, 0), types.Position(0, 0)), "\n"
    )
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(types.VersionedTextDocumentIdentifier(2, URI), [added])
    )
    place.line += 1
    places = await client.text_document_definition_async(types.DefinitionParams(document, place))
    assert isinstance(places, list)
    assert [place.range.start.line + 1 for place in places] == [69]  # type: ignore[union-attr]


async def test_a_document_that_is_not_open_is_not_an_error(client: LanguageClient) -> None:
    elsewhere = types.TextDocumentIdentifier("file:///nowhere.ir")
    params = types.HoverParams(elsewhere, types.Position(0, 0))
    assert await client.text_document_hover_async(params) is None
