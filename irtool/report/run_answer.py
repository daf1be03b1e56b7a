"""Answers about a run: they hold the context that they were given for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, TypeAlias, cast, get_args

from msgspec import Meta

from irtool.cluster.context.model import Assumption, RunContext, Source, shown
from irtool.operators.layout import UserLayout
from irtool.report.answer import AnswerObject, Json, doc


class ContextValue(AnswerObject, frozen=True, kw_only=True):
    """A value of the parallel context, and where it comes from."""

    value: Annotated[Json, doc("as MindSpore's setting has it")]
    origin: Annotated[Source, doc("`assumed`: stated nowhere, MindSpore's default is taken")]
    path: Annotated[str | None, doc("the file that says it")]
    what: Annotated[str | None, doc("what in it says so")]


_ORIGINS = {"type": "object", "additionalProperties": {"enum": list(get_args(Source))}}
CONTEXT = Meta(
    description="the parallel context, by key; beside them `origins`: of each key its origin alone",
    extra_json_schema={"properties": {"origins": _ORIGINS}},
)
"""What the context of an answer is, in schemas and on pages."""


class RunAnswer(AnswerObject, frozen=True, kw_only=True):
    """An answer about a run, with the context that it was given for."""

    context: Annotated[dict[str, ContextValue], CONTEXT]
    assumptions: Annotated[list[str], doc("what the answer takes for granted, as texts")]
    contradictions: Annotated[list[str], doc("what two sources say differently, as texts")]


def context_fields(context: RunContext, more: Iterable[str] = ()) -> dict[str, Any]:
    """The fields of :class:`RunAnswer`.

    Args:
        context: of the run, with origins.
        more: assumptions beside those of the context, as sentences.
    """
    values: dict[str, object] = {
        key: ContextValue(
            value=_context_value(entry.value),
            origin=entry.origin.source,
            path=entry.origin.path or None,
            what=entry.origin.what or None,
        )
        for key, entry in context.entries.items()
    }
    values["origins"] = {key: entry.origin.source for key, entry in context.entries.items()}
    return {
        "context": values,
        "assumptions": [*map(assumption_text, context.assumptions), *more],
        "contradictions": [contradiction.message for contradiction in context.contradictions],
    }


Known: TypeAlias = Sequence[tuple[Sequence[str], RunContext]]
"""Several compilations: the dumps of each with its context."""


class CompilationContext(RunAnswer, frozen=True, kw_only=True):
    """The context of one compilation."""

    files: Annotated[Sequence[str], doc("its dumps")]


class CompilationsAnswer(RunAnswer, frozen=True, kw_only=True):
    """An answer about several compilations: its context is that of the first of them."""

    contexts: Annotated[
        list[CompilationContext],
        doc("of each compilation; of a comparison the left or judged one before the other"),
    ]


def no_context() -> dict[str, Any]:
    """The fields of :class:`RunAnswer` where an answer rests on what files say alone."""
    return context_fields(RunContext(None))


def contexts_fields(known: Known) -> dict[str, Any]:
    """The fields of :class:`CompilationsAnswer`; without a compilation they are empty.

    Args:
        known: dumps of each compilation with its context; the first one's stands for all.
    """
    contexts = [
        CompilationContext(files=list(files), **context_fields(context)) for files, context in known
    ]
    first = context_fields(known[0][1] if known else RunContext(None))
    return {**first, "contexts": contexts}


def assumption_text(item: Assumption) -> str:
    """``dataset_strategy data_parallel (MindSpore's default)``.

    Args:
        item: a key of the context, what is taken for it, and why.
    """
    return f"{item.key} {shown(item.value)} ({item.why})"


def _context_value(value: object) -> Json:
    if isinstance(value, UserLayout):
        return {
            "device_matrix": list(value.device_matrix),
            "tensor_map": [_context_value(entry) for entry in value.tensor_map],
        }
    if isinstance(value, tuple | list):
        return [_context_value(item) for item in cast("Sequence[object]", value)]
    return value
