"""Pages in a real browser: what a person does, and what they see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import irtool
from irtool.ir.comments import Comments, Scope
from irtool.ir.dump import Dump
from irtool.ir.statement import PrimitiveTarget
from irtool.report.model import (
    Answer,
    Column,
    Explorer,
    Link,
    Picture,
    Report,
    Table,
)
from irtool.report.page import charts
from irtool.report.page.graph.data import graph_data
from irtool.report.page.graph.page import graph_page
from irtool.report.page.keys import node_key
from irtool.report.page.write import render_page
from irtool.report.picture.overlay import Mark, Overlay
from tests.report.page.conftest import wait

Opened = Callable[[str], Any]

EVIL = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>"


def hostile() -> Dump:
    """A dump whose every name is html that would run."""
    text = b"subgraph @g() {\n  %0(a) = PrimFunc_ReLU(%para1_x)\n  Return(%0)\n}\n"
    graph = irtool.load(text).graphs[0]
    items = tuple(
        replace(node, name=EVIL, target=PrimitiveTarget(EVIL), instance_name=EVIL,
                comments=Comments((Scope(f"Default/{EVIL}", ),)))
        for node in graph.nodes[:1]
    )  # fmt: skip
    return Dump((replace(graph, items=(*items, *graph.nodes[1:])),), path=EVIL)


@pytest.fixture(scope="module")
def gpt(samples: Path) -> str:
    return render_page(graph_page(irtool.load(samples / "gpt" / "20_validate_0080.ir")))


def keys(browser: Any, *names: str) -> None:
    """Press keys where the focus is."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    chain = ActionChains(browser)
    for name in names:
        chain.send_keys(getattr(Keys, name, name))
    chain.perform()


def chosen(browser: Any) -> str:
    return browser.execute_script(
        "return document.querySelector('.canvas').getAttribute('aria-activedescendant') || ''"
    )


def heading(browser: Any) -> str:
    return browser.execute_script(
        "const panel = document.querySelector('.panel');"
        "return panel.hidden ? '' : panel.querySelector('h2').textContent"
    )


def click(browser: Any, selector: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    element = browser.find_element(By.CSS_SELECTOR, selector)
    ActionChains(browser).move_to_element(element).click().perform()


def boxes(browser: Any) -> int:
    """How many boxes the picture has, in sight or not."""
    status = browser.execute_script("return document.querySelector('.status').textContent")
    return int(status.rpartition("; ")[2].split()[0].replace(",", ""))


def search(browser: Any, text: str) -> list[str]:
    keys(browser, "/")
    keys(browser, text)
    return browser.execute_script(
        "return [...document.querySelectorAll('.results li b')].map((row) => row.textContent)"
    )


# -- the graph ---------------------------------------------------------------------------------


def test_a_page_draws_boxes_and_lines(opened: Opened, gpt: str) -> None:
    browser = opened(gpt)
    count = browser.execute_script(
        "return ['.box', '.line', '.legend li'].map((name) =>"
        " document.querySelectorAll(name).length)"
    )
    assert count[0] > 20
    assert count[1] > 20
    assert count[2] > 4


def test_no_box_overlaps_another(opened: Opened, gpt: str) -> None:
    """Boxes of all groups opened by three steps stand apart, inside the group that holds them."""
    browser = opened(gpt)
    click(browser, ".tools button")
    for _ in range(3):
        keys(browser, "HOME", "e", "ESCAPE", "ESCAPE", "ESCAPE", "e")
    overlaps = browser.execute_script(
        """
        const boxes = [...document.querySelectorAll('.box:not(.open)')].map((box) =>
          [box.id, box.querySelector('.body').getBoundingClientRect()]);
        const found = [];
        for (const [a, left] of boxes) for (const [b, right] of boxes) {
          if (a < b && left.left < right.right - 1 && right.left < left.right - 1
              && left.top < right.bottom - 1 && right.top < left.bottom - 1) found.push([a, b]);
        }
        return [boxes.length, found];
        """
    )
    assert overlaps[0] > 5
    assert overlaps[1] == []


def test_search_finds_by_operator_name_and_scope(opened: Opened, gpt: str) -> None:
    browser = opened(gpt)
    assert all("BatchMatMul" in row for row in search(browser, "op:batchmatmul"))
    keys(browser, "ESCAPE")
    assert search(browser, "%12 ")[0].startswith("%12 ")
    keys(browser, "ESCAPE")
    rows = search(browser, "softmax scope:1-layer")
    assert rows
    keys(browser, "ENTER")
    assert heading(browser) in {row.replace(" ", "  ", 1) for row in rows}
    assert chosen(browser).startswith("box-")


def test_search_takes_a_number_as_a_whole(opened: Opened, gpt: str) -> None:
    browser = opened(gpt)
    rows = search(browser, "id:%1")
    assert [row.split()[0] for row in rows] == ["%1"]
    keys(browser, "ESCAPE")
    rows = search(browser, "id:22")
    assert {row.split()[0] for row in rows} == {"%22", "%para22"}


def test_only_a_colon_makes_a_word_ask_for_a_field(opened: Opened) -> None:
    dump = irtool.load(b"subgraph @g() {\n  %0(a) = PrimFunc_Grids(%para1_x)\n  Return(%0)\n}\n")
    browser = opened(render_page(graph_page(dump)))
    assert search(browser, "ids") == ["%0 Grids"]
    keys(browser, "ESCAPE")
    assert search(browser, "id:ids") == []


def test_nodes_without_a_name_do_not_come_first(opened: Opened, samples: Path) -> None:
    dump = irtool.load(samples / "control_flow" / "01_type_inference_0001.ir")
    nameless = [node.op for node in dump.nodes() if not node.name]
    assert set(nameless) == {"Return"}
    rows = search(opened(render_page(graph_page(dump))), "r n")
    assert any(row.endswith("Return") for row in rows)
    assert not rows[0].endswith("Return")


def test_search_says_that_nothing_was_found(opened: Opened, gpt: str) -> None:
    browser = opened(gpt)
    assert search(browser, "no such operator") == []
    assert "nothing found" in browser.execute_script(
        "return document.querySelector('.results').textContent"
    )


def test_a_click_opens_a_group_and_its_title_closes_it(opened: Opened, gpt: str) -> None:
    browser = opened(gpt)
    closed = ".box.group:not(.open)"
    group = browser.execute_script(f"return document.querySelector('{closed}').id")
    expanded = f"return document.getElementById('{group}').ariaExpanded"
    before = boxes(browser)
    click(browser, f"#{group}")
    assert browser.execute_script(expanded) == "true"
    assert boxes(browser) > before
    click(browser, f"#{group} .title")
    assert browser.execute_script(expanded) == "false"
    assert boxes(browser) == before


def test_a_click_on_a_node_shows_its_facts(opened: Opened, samples: Path) -> None:
    dump = irtool.load(samples / "gpt" / "20_validate_0080.ir")
    node = next(dump.nodes(where=irtool.query('op == "AllReduce" and phase == "forward"')))
    browser = opened(render_page(graph_page(dump)))
    search(browser, f"id:{node.id} op:AllReduce")
    keys(browser, "ENTER")
    text = browser.execute_script("return document.querySelector('.panel').innerText")
    for expected in (node.id, "AllReduce", f"{node.line:,}", str(node.scope), "0-3", "Float32",
                     str(node.instance_name), "forward reduction"):  # fmt: skip
        assert expected in text, expected


def test_edges_and_partners_lead_to_other_nodes(opened: Opened, samples: Path) -> None:
    dump = irtool.load(samples / "gpt" / "20_validate_0080.ir")
    node = next(dump.nodes(op="LayerNorm"))
    browser = opened(render_page(graph_page(dump)))
    search(browser, f"id:{node.id} op:LayerNorm")
    keys(browser, "ENTER")
    first = heading(browser)
    partner = browser.execute_script("return document.querySelector('.panel .go').textContent")
    assert "LayerNormGrad" in partner
    keys(browser, "ENTER", "ENTER")  # into the panel, along its first link
    assert heading(browser) == partner.replace(" ", "  ", 1)
    browser.execute_script("document.querySelector('.canvas').focus()")
    keys(browser, "BACKSPACE")
    assert heading(browser) == first


def test_the_keyboard_alone_is_enough(opened: Opened, gpt: str) -> None:
    browser = opened(gpt)
    browser.execute_script("document.querySelector('.canvas').focus()")
    keys(browser, "HOME")
    visited = [chosen(browser)]
    for name in ("ARROW_DOWN", "ARROW_DOWN", "ARROW_RIGHT", "ARROW_UP", "ARROW_LEFT"):
        keys(browser, name)
        visited.append(chosen(browser))
    assert len(set(visited)) >= 4
    keys(browser, "ESCAPE")
    assert chosen(browser).startswith("group-")
    keys(browser, "?")
    assert browser.execute_script("return document.activeElement.className") == "keys"
    keys(browser, "ESCAPE")
    scale = "return document.querySelector('.canvas > g').getAttribute('transform')"
    before = browser.execute_script(scale)
    keys(browser, "+")
    assert browser.execute_script(scale) != before


def test_tab_reaches_every_control_and_focus_is_seen(opened: Opened, gpt: str) -> None:
    browser = opened(gpt)
    browser.execute_script("document.activeElement.blur()")
    reached: list[str] = []
    for _ in range(10):
        keys(browser, "TAB")
        name, seen = browser.execute_script(
            "const at = document.activeElement; const style = getComputedStyle(at);"
            "return [at.id || at.getAttribute('aria-label') || at.type,"
            " style.outlineStyle !== 'none' || style.boxShadow !== 'none']"
        )
        reached.append(name)
        assert seen, name
    assert "theme" in reached
    assert "Colour by" in reached
    assert any(name.startswith("Search") for name in reached)
    assert any(name.startswith("Graph") for name in reached)


def test_passing_nodes_are_hidden_until_asked_for(opened: Opened, gpt: str) -> None:
    browser = opened(gpt)
    status = "return document.querySelector('.status').textContent"
    assert "passing ones hidden" in browser.execute_script(status)
    click(browser, ".tools input[type=checkbox]")
    assert "hidden" not in browser.execute_script(status)


def test_names_full_of_html_stay_text(opened: Opened) -> None:
    dump = hostile()
    node = next(dump.nodes())
    graph = graph_page(dump)
    table = Table(
        EVIL,
        [Column(EVIL)],
        [[Link(EVIL, node_key(node))]],
    )
    browser = opened(
        render_page(Report(f"</title>{EVIL}", Answer(EVIL),
                         [table, *graph.elements]))
    )  # fmt: skip
    assert search(browser, "script")
    keys(browser, "ENTER")
    assert "<script>" in browser.execute_script("return document.querySelector('.panel').innerText")
    assert browser.execute_script("return window.hacked") is None
    assert browser.execute_script("return document.querySelectorAll('img').length") == 0


def test_light_and_dark(opened: Opened, gpt: str) -> None:
    browser = opened(gpt)
    ground = "return getComputedStyle(document.body).backgroundColor"
    seen = set[str]()
    for _ in range(3):
        click(browser, "#theme")
        seen.add(browser.execute_script(ground))
    assert seen == {"rgb(255, 255, 255)", "rgb(20, 23, 28)"}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_prints_dark_on_white_whatever_the_screen_shows(opened: Opened, theme: str) -> None:
    browser = opened(render_page(Report("t", Answer("a"), [])))
    browser.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
    assert browser.execute_script(shown) == ["rgb(26, 31, 41)", "rgb(255, 255, 255)"]
    hidden = "return getComputedStyle(document.querySelector('#theme')).display"
    assert browser.execute_script(hidden) == "none"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_dump_of_several_graphs_is_joined_at_its_calls(opened: Opened, samples: Path) -> None:
    dump = irtool.load(samples / "control_flow" / "01_type_inference_0001.ir")
    browser = opened(render_page(graph_page(dump)))
    assert browser.execute_script("return document.querySelectorAll('.line.calls').length") > 5


# -- tables ------------------------------------------------------------------------------------


def cells(browser: Any, column: int) -> list[str]:
    return browser.execute_script(
        "return [...document.querySelectorAll('tbody tr')].map((row) => row.cells[arguments[0]]"
        ".textContent)",
        column,
    )


@pytest.fixture
def table(opened: Opened) -> Any:
    rows = [[f"node {n}", n * 1024, None if n == 3 else n / 7] for n in (10, 2, 33, 3, 1)]
    rows += [["more", n, 0.0] for n in range(1000)]
    columns = [Column("name"), Column("size", "bytes"), Column("part", "share")]
    return opened(render_page(Report("t", Answer("a"), [Table("T", columns, rows)])))


def test_a_table_sorts_numbers_as_numbers(table: Any) -> None:
    click(table, "th:nth-child(2) button")
    assert cells(table, 1)[:3] == ["0 B", "1 B", "2 B"]
    click(table, "th:nth-child(2) button")
    assert cells(table, 1)[:3] == ["33.0 KiB", "10.0 KiB", "3.0 KiB"]
    assert (
        table.execute_script("return document.querySelectorAll('th')[1].ariaSort") == "descending"
    )
    click(table, "th:nth-child(2) button")
    assert cells(table, 0)[:2] == ["node 10", "node 2"]


def test_a_table_sorts_names_by_the_numbers_in_them(table: Any) -> None:
    click(table, "th:nth-child(1) button")
    click(table, "th:nth-child(1) button")
    assert cells(table, 0)[:5] == ["node 33", "node 10", "node 3", "node 2", "node 1"]


def test_a_table_filters_and_shows_more(table: Any) -> None:
    assert len(cells(table, 0)) == 200
    click(table, ".more")
    assert len(cells(table, 0)) == 400
    click(table, ".filter input")
    keys(table, "node 33")
    assert cells(table, 0) == ["node 33"]
    assert table.execute_script("return document.querySelector('output').textContent") == (
        "1 of 1,005 rows"
    )


def test_a_table_leads_to_the_graph(opened: Opened, samples: Path) -> None:
    dump = irtool.load(samples / "gpt" / "20_validate_0080.ir")
    node = next(dump.nodes(op="Softmax"))
    table = Table("T", [Column("node")], [["x"]] * 30 + [[Link(node.id, node_key(node))]])
    (graph,) = graph_page(dump).elements
    assert isinstance(graph, Explorer)
    browser = opened(render_page(Report("t", Answer("a"), [table, graph])))
    click(browser, "td .link")
    assert heading(browser) == f"{node.id}  Softmax"
    assert browser.execute_script(
        "const { top, bottom } = document.querySelector('.viewer').getBoundingClientRect();"
        "return top >= -1 && bottom <= innerHeight + 1"
    )


CENTRE = """
const middle = (element) => {
  const place = element.getBoundingClientRect();
  return [place.x + place.width / 2, place.y + place.height / 2];
};
const [x, y] = middle(document.querySelector('.canvas'));
const near = [...document.querySelectorAll('.box')].map((box) => {
  const [bx, by] = middle(box);
  return [Math.hypot(bx - x, by - y), box.textContent];
});
return near.sort((a, b) => a[0] - b[0])[0];
"""


def test_a_graph_opens_at_what_matters(opened: Opened, samples: Path) -> None:
    dump = irtool.load(samples / "gpt" / "20_validate_0080.ir")
    nodes = list(dump.nodes(op="Softmax"))
    largest = Overlay("cost", "cost", "seconds", {nodes[0]: Mark(1.0), nodes[1]: Mark(2.0)})
    for first in (next(dump.nodes(op="GeLU")), None):
        data = graph_data(dump, None, [largest], first=first)
        browser = opened(render_page(Report("t", Answer("a"), [Explorer("G", data)])))
        distance, text = browser.execute_script(CENTRE)
        assert ("GeLU" if first else "Softmax") in text
        assert distance < 60


@pytest.mark.parametrize("swapped", [False, True])
def test_an_error_stands_out_whatever_numbers_are_laid_over_it(
    swapped: bool, opened: Opened, samples: Path
) -> None:
    dump = irtool.load(samples / "gpt" / "20_validate_0080.ir")
    node = next(dump.nodes(op="GeLU"))
    number = Overlay("cost", "cost", "seconds", {node: Mark(1.0)})
    finding = Overlay("findings", "findings", marks={node: Mark(severity="error")})
    laid = [finding, number] if swapped else [number, finding]
    browser = opened(
        render_page(Report("t", Answer("a"), [Explorer("G", graph_data(dump, None, laid))]))
    )
    marked = "return [...document.querySelectorAll('.box.marked')].map((box) => box.textContent)"
    (text,) = browser.execute_script(marked)
    assert "GeLU" in text
    assert "!" in text


def test_groups_open_step_by_step_until_all_are_open(opened: Opened, gpt: str) -> None:
    browser = opened(gpt)
    browser.execute_script("document.querySelector('.canvas').focus()")
    counts = [boxes(browser)]
    for _ in range(6):
        keys(browser, "e")
        counts.append(boxes(browser))
    assert counts == sorted(counts)
    assert counts[-1] == counts[-2] == 251


# -- addresses, the map ------------------------------------------------------------------------


def test_the_address_names_the_chosen_node(opened: Opened, gpt: str) -> None:
    browser = opened(gpt)
    search(browser, "softmaxbackward")
    keys(browser, "ENTER")
    named = heading(browser)
    assert "SoftmaxBackward" in named
    address = browser.current_url
    assert "#node=" in address
    keys(browser, "ESCAPE", "ESCAPE", "ESCAPE", "ESCAPE", "ESCAPE", "ESCAPE", "ESCAPE", "ESCAPE")
    assert heading(browser) != named
    browser.get("about:blank")
    browser.get(address)
    wait(browser, "return document.documentElement.dataset.ready")
    assert heading(browser) == named, "a link leads back to it"


def test_an_address_of_no_node_is_no_harm(opened: Opened, gpt: str) -> None:
    browser = opened(gpt)
    browser.execute_script("location.hash = 'node=nothing%22%3E<b>'")
    assert heading(browser) == ""
    assert boxes(browser) > 0


def test_search_says_how_many_and_of_what(opened: Opened, gpt: str) -> None:
    browser = opened(gpt)
    rows = search(browser, "attention")
    told = browser.execute_script("return document.querySelector('.results .count').textContent")
    assert int(told.split()[0]) >= len(rows)
    assert "found: " in told
    keys(browser, "DOWN")
    row = browser.execute_script(
        "return document.querySelector('.results [aria-selected=true] b').textContent"
    )
    assert row == rows[1], "the count is no row that one can choose"


def test_the_map_shows_what_is_in_sight_and_moves_it(opened: Opened, gpt: str) -> None:
    browser = opened(gpt)
    seen = (
        "const seen = document.querySelector('.map .seen').getBoundingClientRect();"
        "const map = document.querySelector('.map').getBoundingClientRect();"
        "return [map.width, map.height, seen.top - map.top, seen.height]"
    )
    width, height, top, tall = browser.execute_script(seen)
    assert 0 < width <= 182
    assert 0 < height <= 132
    assert tall < height, "not all of it is in sight"
    browser.execute_script(
        "const map = document.querySelector('.map'); const r = map.getBoundingClientRect();"
        "map.setPointerCapture = () => {};"
        "map.dispatchEvent(new PointerEvent('pointerdown',"
        " { clientX: r.left + r.width / 2, clientY: r.bottom - 2, pointerId: 1 }))"
    )
    assert browser.execute_script(seen)[2] > top, "the view went down"
    click(browser, ".tools .end button:nth-of-type(4)")


def test_a_timeline_zooms_and_shows_all_again(opened: Opened) -> None:
    spans = [charts.Span(0.0, 1.0, "forward"), charts.Span(1.0, 3.0, "back")]
    picture = Picture("P", charts.timeline([charts.Lane("stage 0", spans)]), "a timeline")
    browser = opened(render_page(Report("t", Answer("a"), [picture])))
    view = "return document.querySelector('.picture svg').getAttribute('viewBox')"
    whole = browser.execute_script(view)
    keys(browser, "+")
    assert browser.execute_script(view) == whole, "only once it was chosen"
    browser.execute_script("document.querySelector('.picture').focus()")
    keys(browser, "+", "+")
    width = float(browser.execute_script(view).split()[2])
    assert 0.5 < width / float(whole.split()[2]) < 0.7
    keys(browser, "RIGHT")
    assert float(browser.execute_script(view).split()[0]) > 0
    keys(browser, "0")
    assert browser.execute_script(view) == whole
