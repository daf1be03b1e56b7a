"""Open documents: reads them, asks the analyses, and begins anew when a text changes."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from threading import Event
from typing import TypeVar

from lsprotocol import types
from pygls.uris import to_fs_path

from irtool.editor.analyse import analyses
from irtool.editor.answers import NO_ANSWERS, Answers
from irtool.editor.document import Document, open_document
from irtool.editor.features.hover import thing_text
from irtool.editor.project import Project
from irtool.editor.text import UTF16, Text
from irtool.ir.dataclass import dataclass

Answer = TypeVar("Answer")
logger = logging.getLogger(__name__)

PAUSE = 0.3
"""Seconds without a change before a text is read again."""
_QUIET = 10.0
"""Seconds after the last change or closing before what is left of old texts is taken away."""


@dataclass(eq=False)
class _Opened:
    """One text of an open document and what is made of it."""

    uri: str
    text: Text
    version: int | None
    pause: float
    document: asyncio.Future[Document]
    work: asyncio.Task[None] | None = None
    dropped: Event = field(default_factory=Event)

    @property
    def is_busy(self) -> bool:
        """Whether it is still read or asked about."""
        return self.work is not None and not self.work.done()


class Store:
    """The open documents by URI.

    Args:
        news: makes, off the loop, what is to be told when a document was read or has more answers,
            and gives what tells it, on the loop.
    """

    def __init__(self, news: Callable[[Document], Callable[[], None]]) -> None:
        self.project = Project()
        self.units = UTF16
        self._opened: dict[str, _Opened] = {}
        self._news = news
        self._tidying: asyncio.TimerHandle | None = None
        self._has_old_texts = False
        # One thread reads, so that an opened dump need not wait for another one's analyses.
        self._readers = ThreadPoolExecutor(1, "read")
        self._analysts = ThreadPoolExecutor(1, "analyse")
        self._helpers = ThreadPoolExecutor(1, "help")

    def warm_up(self) -> None:
        """Load, while nobody waits, what the first document would have to wait for."""

        def load() -> None:
            text = Text("subgraph @f() {\n  %0(a) = MatMul(F32(1), F32(2))\n  Return(%0)\n}\n")
            document = open_document("", "", text, self.project.fresh())
            document.prepare()
            for node in document.dump.nodes():
                thing_text(document, node)
            for _ in analyses(document):
                pass

        self._readers.submit(load)

    # -- what clients say ----------------------------------------------------------------------

    def open(self, uri: str, text: str, version: int | None) -> None:
        """Take in a document that the client opened, and start to read it."""
        self._begin(uri, Text(text, self.units), version, 0.0)

    def change(
        self, uri: str, changes: list[types.TextDocumentContentChangeEvent], version: int | None
    ) -> None:
        """Parts of a document, or all of it, have other text now."""
        known = self._opened.get(uri)
        if known is None:
            return
        text = known.text
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                text = text.replaced(change.range, change.text)
            else:
                text = Text(change.text, self.units)
        self._begin(uri, text, version, PAUSE)

    def close(self, uri: str) -> None:
        """A document was closed."""
        known = self._opened.pop(uri, None)
        if known is not None:
            _drop(known)
            self._has_old_texts = True
            self._tidy_later()

    def reread(self) -> None:
        """Settings have changed: all answers may be others."""
        for opened in list(self._opened.values()):
            self._begin(opened.uri, opened.text, opened.version, 0.0)

    def stop(self) -> None:
        """No more answers are wanted."""
        for opened in self._opened.values():
            _drop(opened)
        self._opened.clear()
        for pool in (self._readers, self._analysts, self._helpers):
            pool.shutdown(wait=False, cancel_futures=True)

    # -- what features ask ---------------------------------------------------------------------

    async def document(self, uri: str) -> Document | None:
        """The document as its text is now, once it is read; None where it is not open."""
        while (opened := self._opened.get(uri)) is not None:
            try:
                return await asyncio.shield(opened.document)
            except asyncio.CancelledError:
                if not opened.document.cancelled():
                    raise  # the request was, not the reading
        return None

    async def ask(self, uri: str, question: Callable[[Document], Answer]) -> Answer | None:
        """What a question about a whole document is answered with, off the loop."""
        document = await self.document(uri)
        if document is None:
            return None
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._helpers, question, document)

    @property
    def uris(self) -> list[str]:
        """URIs of all open documents."""
        return list(self._opened)

    # -- work ----------------------------------------------------------------------------------

    def _begin(self, uri: str, text: Text, version: int | None, pause: float) -> None:
        known = self._opened.get(uri)
        loop = asyncio.get_running_loop()
        opened = _Opened(uri, text, version, pause, loop.create_future())
        self._opened[uri] = opened
        opened.work = loop.create_task(self._work(opened))
        if known is not None:
            _drop(known)
            self._has_old_texts = True
            self._tidy_later()

    async def _work(self, opened: _Opened) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(opened.pause)
        document = await loop.run_in_executor(self._readers, self._read, opened)
        if opened.dropped.is_set():
            return
        opened.document.set_result(document)

        def tell(publish: Callable[[], None]) -> None:
            if not opened.dropped.is_set():
                publish()

        def ask() -> None:
            loop.call_soon_threadsafe(tell, self._news(document))
            for answers in _careful(document):
                if opened.dropped.is_set():
                    return
                document.answers = answers
                loop.call_soon_threadsafe(tell, self._news(document))

        await loop.run_in_executor(self._analysts, ask)
        self._tidy_later()

    def _read(self, opened: _Opened) -> Document:
        path = to_fs_path(opened.uri) or ""
        document = open_document(
            opened.uri, path, opened.text, self.project.fresh(), opened.version
        )
        document.prepare()
        first = next(document.dump.nodes(), None)
        if first is not None:
            thing_text(document, first)  # loads what every hover needs
        # A collection visits every object there is, and everybody waits for it: what an open
        # document consists of is not looked at again until a document is dropped.
        gc.freeze()
        return document

    def _tidy_later(self) -> None:
        """Take away what old texts and analyses leave, once nobody has changed anything a while."""
        if self._tidying is not None:
            self._tidying.cancel()
        self._tidying = asyncio.get_running_loop().call_later(_QUIET, self._tidy)

    def _tidy(self) -> None:
        if any(opened.is_busy for opened in self._opened.values()):
            self._tidy_later()
            return
        if self._has_old_texts:
            gc.unfreeze()
            self._has_old_texts = False
        gc.collect()
        gc.freeze()


def _careful(document: Document) -> Iterator[Answers]:
    """The answers; where an analysis fails, what there is, and that it did."""
    answers = NO_ANSWERS
    try:
        for answers in analyses(document):
            yield answers
    except Exception as error:  # whatever it is, the editor goes on
        logger.exception("an analysis of %s failed", document.path)
        text = f"an analysis failed: {type(error).__name__}: {error}"
        yield replace(answers, troubles=(*answers.troubles, text), is_complete=True)


def _drop(opened: _Opened) -> None:
    opened.dropped.set()
    opened.document.cancel()
    if opened.work is not None:
        opened.work.cancel()
