"""Pictures on a page: only what draws gets in."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from irtool.report.text import escape

_SVG = "http://www.w3.org/2000/svg"
_ELEMENTS = frozenset(
    ("svg", "g", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text",
     "tspan", "title", "desc", "defs", "marker", "lineargradient", "stop", "clippath")
)  # fmt: skip
_ATTRIBUTES = frozenset(
    ("viewbox", "width", "height", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "cx", "cy", "r",
     "rx", "ry", "d", "points", "transform", "class", "id", "fill", "stroke", "opacity", "offset",
     "fill-opacity", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-linecap",
     "stroke-linejoin", "stroke-miterlimit", "font-family", "font-size", "font-weight",
     "font-style", "text-anchor", "dominant-baseline", "marker-end", "marker-start", "refx",
     "refy", "markerwidth", "markerheight", "orient", "gradientunits", "stop-color",
     "stop-opacity", "clip-path", "preserveaspectratio", "text-decoration", "textlength")
)  # fmt: skip
_LOCAL = re.compile(r"url\(#[\w.-]+\)")


class NoPicture(ValueError):
    """The text is no svg."""


def clean_svg(text: str) -> str:
    """The picture's drawing elements and attributes; scripts, styles and links are left out.

    Args:
        text: an svg document, or an ``<svg>`` element; what stands before it is left out.

    Raises:
        NoPicture: it is not one well-formed ``svg`` element.
    """
    if "<!ENTITY" in text:
        raise NoPicture("the picture defines entities")
    start = text.find("<svg")
    try:
        root = ET.fromstring(text[max(start, 0) :])
    except ET.ParseError as error:
        raise NoPicture(f"the picture is no well-formed svg: {error}") from None
    if _local(root.tag) != "svg":
        raise NoPicture(f"the picture is <{_local(root.tag)}>, not <svg>")
    ET.register_namespace("", _SVG)
    return ET.tostring(_cleaned(root), encoding="unicode")


def _cleaned(element: ET.Element) -> ET.Element:
    # A picture can be deep (groups in groups), so this does not call itself.
    result = ET.Element(element.tag)
    pending = [(element, result)]
    while pending:
        source, target = pending.pop()
        target.text, target.tail = _harmless(source.text), _harmless(source.tail)
        for name, value in source.attrib.items():
            if name.lower() in _ATTRIBUTES and _draws(value):
                target.set(name, escape(value))
        pending += [(child, ET.SubElement(target, child.tag)) for child in _drawing(source)]
    result.tail = None
    return result


def _drawing(element: ET.Element) -> list[ET.Element]:
    """Children that draw; a link is replaced by what it holds."""
    drawn: list[ET.Element] = []
    pending = list(reversed(list(element)))
    while pending:
        child = pending.pop()
        name = _local(child.tag)
        if name == "a":
            pending += reversed(list(child))
        elif name in _ELEMENTS:
            drawn.append(child)
    return drawn


def _harmless(text: str | None) -> str | None:
    return None if text is None else "\n".join(escape(line) for line in text.split("\n"))


def _draws(value: str) -> bool:
    return "url(" not in value.lower() or _LOCAL.fullmatch(value.strip()) is not None


def _local(tag: object) -> str:
    return tag.rpartition("}")[2].lower() if isinstance(tag, str) else ""
