"""The options of ``irtool parse``: declared once, and passed whole."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from irtool.cli import complete
from irtool.cli import options as shared
from irtool.cli.parameters import Option
from irtool.ir.dataclass import dataclass


class ParseForm(str, Enum):
    """Output formats of ``irtool parse``."""

    table = "table"
    json = "json"
    ndjson = "ndjson"
    csv = "csv"
    parquet = "parquet"
    ir = "ir"


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """What the command line asks of dumps, as it is typed."""

    format: Annotated[
        ParseForm, Option("--format", "-f", help="table is for people; ir prints back.")
    ] = ParseForm.table
    where: shared.Where = None
    group_by: Annotated[
        str | None,
        Option(
            metavar="FIELD[,FIELD]",
            help="Count nodes and bytes by fields: op,phase.",
            complete=complete.fields,
        ),
    ] = None
    history: Annotated[
        str | None,
        Option(
            metavar="NODE",
            help="What each pass made of a node: %12, a name, or a query.",
            complete=complete.nodes_or_query,
        ),
    ] = None
    reduce: Annotated[
        str | None,
        Option(
            metavar="NODE",
            help="The smallest part around a node that still reads and shows its findings.",
            complete=complete.nodes,
        ),
    ] = None
    keep: Annotated[
        str | None,
        Option(
            metavar="CODE[,CODE]",
            help="With --reduce: findings that have to stay.",
            complete=complete.codes,
        ),
    ] = None
    redact: Annotated[
        bool,
        Option("--redact", help="Print it with names, paths and scopes replaced."),
    ] = False
    limit: shared.Limit = None
    rank: shared.Rank = None
    graph: shared.GraphNumber = None
    jobs: shared.Jobs = None
    output_file: shared.OutputFile = None

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of ``--group-by``."""
        return _parts(self.group_by)

    @property
    def kept_codes(self) -> tuple[str, ...]:
        """The codes of ``--keep``; empty: all that rules say of the node."""
        return tuple(code.upper() for code in _parts(self.keep))


def _parts(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) if text else ()
