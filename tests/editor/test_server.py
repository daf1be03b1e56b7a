"""The server over its standard streams, asked by a client as editors ask it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient

from tests.editor.opened import REJECTED, SAMPLES, VALIDATE, at, opened, sample_text

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


async def test_every_feature_is_offered_and_answers(client: LanguageClient) -> None:
    document = open_sample(client)
    place = at(opened(REJECTED), "%8(CNode_23) = ", "MatMul")
    whole = types.Range(types.Position(0, 0), types.Position(400, 0))
    context = types.ReferenceContext(True)
    found = await client.text_document_references_async(
        types.ReferenceParams(context, document, place)
    )
    assert len(found or ()) == 2
    ask = types.DocumentHighlightParams(document, at(opened(REJECTED), "%8("))
    assert len(await client.text_document_document_highlight_async(ask) or ()) == 2
    symbols = types.DocumentSymbolParams(document)
    outline = await client.text_document_document_symbol_async(symbols)
    assert [type(each) for each in outline or ()] == [types.DocumentSymbol] * 3
    folds = await client.text_document_folding_range_async(types.FoldingRangeParams(document))
    assert folds
    tokens = await client.text_document_semantic_tokens_full_async(
        types.SemanticTokensParams(document)
    )
    assert tokens is not None
    assert len(tokens.data) % 5 == 0
    part = await client.text_document_semantic_tokens_range_async(
        types.SemanticTokensRangeParams(document, types.Range(place, place))
    )
    assert part is not None
    assert 0 < len(part.data) < len(tokens.data)
    lenses = await client.text_document_code_lens_async(types.CodeLensParams(document))
    assert len(lenses or ()) == 2
    asked = types.WorkspaceSymbolParams('op == "MatMul"')
    assert len(await client.workspace_symbol_async(asked) or ()) == 3
    jumps = types.ImplementationParams(document, place)
    assert await client.text_document_implementation_async(jumps) == []
    jumps = types.DeclarationParams(document, place)
    assert await client.text_document_declaration_async(jumps) == []
    jumps = types.TypeDefinitionParams(document, place)
    assert await client.text_document_type_definition_async(jumps) == []
    await answers(client)
    hints = await client.text_document_inlay_hint_async(types.InlayHintParams(document, whole))
    assert hints
    shown = types.CodeActionContext(client.diagnostics[URI])
    fixes = await client.text_document_code_action_async(
        types.CodeActionParams(document, whole, shown)
    )
    titles = [fix.title for fix in fixes or ()]
    assert titles[0] == "Write in_strategy ((2, 4), (1, 4)) into this dump"


async def answers(client: LanguageClient) -> None:
    """Wait until the analyses have said something of the open sample."""
    while not client.diagnostics.get(URI):
        await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)


async def test_findings_come_by_themselves_and_go_when_the_text_is_mended(
    client: LanguageClient,
) -> None:
    open_sample(client)
    await answers(client)
    assert [each.code for each in client.diagnostics[URI]] == ["STR001"]
    text = sample_text(REJECTED).replace("((2, 4), (1, 2))", "((2, 4), (1, 4))")
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(2, URI),
            [types.TextDocumentContentChangeWholeDocument(text)],
        )
    )
    await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    document = types.TextDocumentIdentifier(URI)
    place = at(opened(REJECTED), "%8(CNode_23) = ", "MatMul")
    for _ in range(200):
        found = await client.text_document_hover_async(types.HoverParams(document, place))
        assert found is not None
        if "verdict" in found.contents.value:  # type: ignore[union-attr]
            break
        await asyncio.sleep(0.1)
    assert "- verdict: legal" in found.contents.value  # type: ignore[union-attr]
    assert "STR001" not in [each.code for each in client.diagnostics[URI]]


async def test_findings_are_taken_back_when_a_document_is_closed(client: LanguageClient) -> None:
    document = open_sample(client)
    await answers(client)
    client.text_document_did_close(types.DidCloseTextDocumentParams(document))
    while client.diagnostics[URI]:
        await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    assert not client.diagnostics[URI]


async def test_commands_search_and_tell_why(client: LanguageClient) -> None:
    uri = (SAMPLES / VALIDATE).as_uri()
    item = types.TextDocumentItem(uri, "mindspore-ir", 1, sample_text(VALIDATE))
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    found = await client.workspace_execute_command_async(
        types.ExecuteCommandParams("irtool.search", arguments=[uri, 'op == "AllReduce"'])
    )
    assert (found["why_no_query"], found["note"]) == ("", "")
    lines = [symbol["location"]["range"]["start"]["line"] for symbol in found["found"]]
    assert lines
    wrong = await client.workspace_execute_command_async(
        types.ExecuteCommandParams("irtool.search", arguments=[uri, "op =="])
    )
    assert "column" in wrong["why_no_query"]
    unknown = await client.workspace_execute_command_async(
        types.ExecuteCommandParams("irtool.search", arguments=[uri, 'op == "MatMull"'])
    )
    assert unknown["note"].startswith("irtool knows no operator MatMull; did you mean MatMul or ")
    why = types.ExecuteCommandParams("irtool.why", arguments=[uri, lines[0]])
    for _ in range(200):
        text = await client.workspace_execute_command_async(why)
        if text:
            break
        await asyncio.sleep(0.1)
    assert "why it is here: " in text
    assert any(text in message.message for message in client.messages)
    places = await client.workspace_execute_command_async(
        types.ExecuteCommandParams("irtool.places", arguments=[uri, lines[0]])
    )
    assert lines[0] in [place["range"]["start"]["line"] for place in places]


async def test_a_document_that_is_not_open_is_not_an_error(client: LanguageClient) -> None:
    elsewhere = types.TextDocumentIdentifier("file:///nowhere.ir")
    params = types.HoverParams(elsewhere, types.Position(0, 0))
    assert await client.text_document_hover_async(params) is None
