"""Texts of a picture in graphviz's language: labels are html-like, tooltips plain; all escaped."""

from __future__ import annotations

from html import escape as escape_html

from irtool.report.picture.colours import Colouring
from irtool.report.picture.legend import counts_text, legend_rows
from irtool.report.picture.looks import Run
from irtool.report.picture.model import LegendRow, Picture
from irtool.report.text import escape, shortened

_LONGEST = 200
_COLUMNS = 4


def html(text: str) -> str:
    """Text inside graphviz's html-like labels: nothing in it is markup or steers a terminal.

    Args:
        text: as it is; an empty one becomes a blank, which graphviz asks for.
    """
    return escape_html(escape(text), quote=True) or " "


def plain(text: str) -> str:
    """Text of a quoted attribute: backslashes and entities stay what they are.

    Args:
        text: as it is; line feeds become graphviz's, and long lines are cut in the middle.
    """
    lines = (
        escape_html(shortened(escape(line), _LONGEST), quote=False) for line in text.split("\n")
    )
    return "\\n".join(line.replace("\\", "\\\\") for line in lines)


def run_html(run: Run) -> str:
    """Text of one look; nothing for no text.

    Args:
        run: a text with size, weight and colour; an empty one without a size becomes a blank.
    """
    if not run.text:
        return html("") if run.size is None else ""
    text = f"<B>{html(run.text)}</B>" if run.bold else html(run.text)
    size = f' POINT-SIZE="{run.size}"' if run.size is not None else ""
    colour = f' COLOR="{run.colour}"' if run.colour is not None else ""
    return f"<FONT{size}{colour}>{text}</FONT>" if size or colour else text


def head_label(picture: Picture, colours: Colouring, crowded: bool) -> str:
    """Title and legend, as one table above the picture.

    Args:
        picture: its title, notes and counts are written.
        colours: what they mean.
        crowded: whether ties are shown by height alone.

    Returns:
        an html-like label, its angle brackets included.
    """
    title = html(shortened(picture.title, 110))
    rows = [_wide(f'<B><FONT POINT-SIZE="18">{title}</FONT></B>')]
    notes = (counts_text(picture), *picture.notes)
    rows += [_wide(f'<FONT COLOR="#555555">{html(note)}</FONT>') for note in notes]
    if colours.title:
        rows.append(_wide(f"colours: {html(colours.title)}"))
    legend = legend_rows(picture, colours, crowded)
    for start in range(0, len(legend), _COLUMNS):
        some = legend[start : start + _COLUMNS]
        cells = "".join(_legend_cell(row) for row in some)
        rows.append(f"<TR>{cells}{'<TD></TD><TD></TD>' * (_COLUMNS - len(some))}</TR>")
    style = 'BORDER="0" CELLBORDER="0" CELLSPACING="1" CELLPADDING="2"'
    return f"<<TABLE {style}>{''.join(rows)}</TABLE>>"


def _wide(text: str) -> str:
    return f'<TR><TD ALIGN="LEFT" COLSPAN="{2 * _COLUMNS}">{text}</TD></TR>'


def _legend_cell(row: LegendRow) -> str:
    if row.colour and row.symbol:
        symbol = f'<FONT COLOR="{row.colour}"><B>{html(row.symbol)}</B></FONT>'
        key = f'<TD WIDTH="22">{symbol}</TD>'
    elif row.colour:
        key = f'<TD BGCOLOR="{row.colour}" BORDER="1" COLOR="#555555" WIDTH="22"></TD>'
    else:
        key = f'<TD WIDTH="22">{html(row.symbol)}</TD>'
    # Fonts that stand in for Helvetica are wider than graphviz thinks.
    text = html(row.text) + 3 * "&#160;"
    return f'{key}<TD ALIGN="LEFT"><FONT POINT-SIZE="10">{text}</FONT></TD>'
