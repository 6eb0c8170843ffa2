"""The view "One head", as people use it: with the mouse, with keys, through links, and what it hands out."""

from __future__ import annotations

import runpy
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.play.waiting import settle, until

STATE = "anchorhead.current().state()"
EVALUATE = "([head, points]) => Array.from(anchorhead.evaluate(head, points))"
EVEN = {"source": "named", "name": "tanh", "low": -3, "high": 3, "placement": "uniform", "count": 5, "c": 1.5}


def handles(opened):
    return opened.get_by_role("slider", name="Anchor").and_(opened.locator("circle.handle"))


def value_handle(opened, n):
    return opened.get_by_role("slider", name=f"Anchor {n} of ")


def drag(opened, handle, dx, dy):
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    opened.mouse.move(x, y)
    opened.mouse.down()
    opened.mouse.move(x + dx / 2, y + dy / 2)
    opened.mouse.move(x + dx, y + dy)
    opened.mouse.up()
    settle(opened)


def go(opened, state):
    """Follows a link within the page."""
    opened.evaluate(
        "(state) => new Promise((done) => {"
        "  addEventListener('hashchange', done, { once: true }); location.hash = anchorhead.toHash('head', state); })",
        state,
    )
    settle(opened)


def part(opened):
    return opened.evaluate(STATE)["own"]["parts"][0]


def test_dragging_an_anchor_up_raises_its_value_alone(page_of):
    opened = page_of("head", EVEN)
    before = float(value_handle(opened, 3).get_attribute("aria-valuenow"))
    drag(opened, value_handle(opened, 3), 0, -60)
    after = opened.evaluate(STATE)
    assert after["placement"] == "own"
    assert after["selected"] == 2
    assert after["own"]["parts"][0]["values"][2] > before + 0.1
    assert np.allclose(after["own"]["parts"][0]["values"][:2], np.tanh([-3, -1.5]))
    assert after["own"]["parts"][0]["slopes"] == [-4, -2, 0, 2, 4]
    assert "measured" in opened.locator(".verdict").inner_text()


def test_dragging_an_anchor_sideways_moves_where_it_acts(page_of):
    opened = page_of("head", EVEN)
    handle = value_handle(opened, 3)
    before = handle.bounding_box()["x"]
    drag(opened, handle, 70, 0)
    assert handle.bounding_box()["x"] == pytest.approx(before + 70, abs=2)
    moved = part(opened)
    assert moved["slopes"][2] > 0
    assert moved["slopes"][:2] + moved["slopes"][3:] == [-4, -2, 2, 4]
    assert moved["values"][2] == pytest.approx(0, abs=1e-12)


def test_the_last_anchor_moves_by_its_offset_alone(page_of):
    opened = page_of("head", EVEN)
    drag(opened, value_handle(opened, 5), -40, 0)
    moved = part(opened)
    assert moved["slopes"] == [-4, -2, 0, 2, 4]
    assert moved["offsets"][4] > -6
    assert moved["offsets"][:4] == [-6, -1.5, 0, -1.5]


def test_keys_move_an_anchor_and_choose_another(page_of):
    opened = page_of("head", EVEN | {"selected": 2})
    handle = value_handle(opened, 3)
    handle.focus()
    opened.keyboard.press("ArrowUp")
    settle(opened)
    once = part(opened)["values"][2]
    opened.keyboard.press("Shift+ArrowUp")
    settle(opened)
    assert once > 0.005
    assert part(opened)["values"][2] == pytest.approx(11 * once, rel=0.3)
    opened.keyboard.press("ArrowRight")
    settle(opened)
    assert part(opened)["slopes"][2] > 0
    opened.keyboard.press("]")
    settle(opened)
    assert opened.evaluate(STATE)["selected"] == 3
    assert opened.evaluate("document.activeElement.getAttribute('aria-label')").startswith("Anchor 4 of 5")


def test_slope_and_offset_have_handles_of_their_own(page_of):
    opened = page_of("head", EVEN | {"selected": 3})
    drag(opened, opened.get_by_role("slider", name="Anchor 4: offset"), 0, -30)
    raised = part(opened)
    assert raised["offsets"][3] > -1.5
    assert raised["slopes"] == [-4, -2, 0, 2, 4]
    opened.get_by_role("slider", name="Anchor 4: slope").focus()
    opened.keyboard.press("ArrowUp")
    settle(opened)
    assert part(opened)["slopes"][3] > 2
    assert part(opened)["offsets"] == raised["offsets"]


def test_numbers_in_the_table_are_the_head(page_of):
    opened = page_of("head", EVEN)
    opened.get_by_label("value of anchor 2").fill("0.25")
    opened.get_by_label("slope of anchor 1").fill("-7")
    settle(opened)
    state = opened.evaluate(STATE)
    assert state["placement"] == "own"
    assert (part(opened)["values"][1], part(opened)["slopes"][0]) == (0.25, -7)
    opened.get_by_label("offset of anchor 1").fill("")
    assert opened.get_by_label("offset of anchor 1").get_attribute("aria-invalid") == "true"
    assert opened.evaluate(STATE) == state


def test_one_anchor_more_changes_nothing_until_it_is_moved(page_of):
    opened = page_of("head", EVEN | {"selected": 1})
    drag(opened, value_handle(opened, 2), 0, -30)
    points = np.linspace(-3, 3, 31).tolist()
    before = opened.evaluate(STATE)["own"]
    opened.get_by_role("slider", name="Anchors", exact=True).press("ArrowRight")
    settle(opened)
    after = opened.evaluate(STATE)["own"]
    assert len(after["parts"][0]["values"]) == 6
    heads = [opened.evaluate(EVALUATE, [own | {"dtype": "float64"}, points]) for own in (before, after)]
    assert np.allclose(*heads, atol=1e-14, rtol=0)


def test_shipped_heads_are_proven_and_others_measured(page_of):
    opened = page_of("head", {"name": "gelu", "low": -10, "high": 10, "placement": "solved", "count": 8})
    badge = opened.locator(".badge")
    assert badge.inner_text() == "proven"
    assert "8.53e−7" in opened.locator(".verdict").inner_text()
    assert opened.locator("path.band.proven").count() == 2  # the band and its mark in the legend
    opened.get_by_label("to", exact=True).fill("9")
    until(opened, "document.querySelector('.badge').textContent === 'measured'")
    assert opened.locator("path.band.proven").count() == 0
    opened.get_by_text("bfloat16").click()
    opened.get_by_label("to", exact=True).fill("10")
    settle(opened)
    until(opened, "document.querySelector('.badge').textContent === 'measured'")


def test_solved_anchors_are_better_than_even_ones(page_of):
    opened = page_of("head", {"source": "expression", "text": "sin(3*x)/(1 + x**2)", "low": -2, "high": 2, "count": 9})
    found = "(document.querySelector('.verdict').textContent.match(/found is ([^,]+),/) ?? [0, 'not yet'])[1]"
    error = f"Number({found}.replace('−', '-'))"
    even = opened.evaluate(error)
    opened.get_by_text("Solved", exact=True).click()
    until(opened, f"{error} < {even / 50}")


def test_a_wrong_expression_is_told_with_its_place_and_the_picture_stays(page_of):
    opened = page_of("head", EVEN)
    opened.get_by_text("Expression", exact=True).click()
    opened.get_by_label("Expression in x").fill("sin(3*x) + foo(x)")
    settle(opened)
    told = opened.get_by_role("alert")
    assert "column 12: foo is not a function here" in told.inner_text()
    assert opened.get_by_label("Expression in x").get_attribute("aria-invalid") == "true"
    assert opened.locator("path.line.head").first.get_attribute("d").startswith("M")
    opened.get_by_label("Expression in x").fill("log(x)")
    settle(opened)
    assert "no finite value at −3" in told.inner_text()
    opened.get_by_label("Expression in x").fill("exp(x)")
    settle(opened)
    assert told.inner_text() == ""
    assert opened.evaluate(STATE)["text"] == "exp(x)"


def test_a_function_can_be_drawn_with_the_mouse_and_with_keys(page_of):
    opened = page_of("head", EVEN)
    opened.get_by_text("Drawn", exact=True).click()
    settle(opened)
    pad = opened.locator("svg.pad")
    box = pad.bounding_box()
    opened.mouse.move(box["x"] + 60, box["y"] + 40)
    opened.mouse.down()
    opened.mouse.move(box["x"] + 120, box["y"] + 40)
    opened.mouse.up()
    settle(opened)
    drawn = opened.evaluate(STATE)["drawn"]
    assert drawn.count(max(drawn)) > 8
    point = opened.get_by_role("slider", name="Drawn function")
    point.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        opened.keyboard.press(key)
    settle(opened)
    after = opened.evaluate(STATE)["drawn"]
    assert sum(one != other for one, other in zip(drawn, after, strict=True)) == 1


def test_a_link_holds_the_state(page_of):
    opened = page_of("head", EVEN | {"selected": 2})
    drag(opened, value_handle(opened, 3), 12, -25)
    opened.get_by_text("float32", exact=True).click()
    state = opened.evaluate(STATE)
    until(opened, f"JSON.stringify(anchorhead.fromHash(location.hash).state) === JSON.stringify({STATE})")
    other = page_of("head")
    assert other.evaluate(STATE) != state
    other.evaluate("(hash) => { location.hash = hash; }", opened.evaluate("location.hash"))
    until(other, f"JSON.stringify({STATE}) === JSON.stringify(anchorhead.fromHash(location.hash).state)")
    assert other.evaluate(STATE) == state
    assert len(opened.url.partition("#")[2]) < 1500


DAMAGED = [
    {"source": "expression", "text": "import os", "low": 3, "high": -3},
    {"name": "constructor", "count": 1e9, "c": "x", "dtype": "float8", "placement": "own", "own": {"parts": 3}},
    {"placement": "own", "own": {"origin": 0, "bias": 0, "parts": [{"slopes": [1], "offsets": [], "values": [None]}]}},
    {"source": "named", "name": "log", "low": -5, "high": 5, "selected": -3},
    [1, 2],
]


def test_a_damaged_link_does_no_harm(page_of):
    opened = page_of()
    for state in DAMAGED:
        go(opened, state)
        assert opened.locator("path.line.head").first.get_attribute("d").startswith("M"), state
        assert opened.evaluate(STATE)["count"] == 9, state
    opened.evaluate("() => { location.hash = '#view=nowhere&s=%%%'; }")
    assert opened.locator("path.line.head").first.get_attribute("d").startswith("M")


def test_the_picture_is_saved_as_svg_with_its_colours(page_of):
    opened = page_of("head", EVEN)
    with opened.expect_download() as waiting:
        opened.get_by_role("button", name="Save SVG").click()
    assert waiting.value.suggested_filename == "anchorhead-head.svg"
    root = ElementTree.parse(waiting.value.path()).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    paths = [one for one in root.iter("{http://www.w3.org/2000/svg}path") if "line" in one.get("class", "")]
    assert len(paths) == 2
    assert all("stroke: rgb" in one.get("style") for one in paths)
    assert root.find("{http://www.w3.org/2000/svg}title").text.startswith("tanh and a head of 5 anchors")
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))


RUNS = [
    {"name": "relu", "low": -1, "high": 1, "placement": "solved", "count": 3},
    {"name": "tanh", "low": -10, "high": 10, "placement": "solved", "count": 4, "dtype": "float32"},
    EVEN,
    EVEN | {"dtype": "float32"},
    EVEN | {"dtype": "bfloat16"},
    {"source": "expression", "text": "exp(-x**2)", "low": -2, "high": 2, "placement": "solved", "count": 6},
    {"source": "drawn", "low": 0, "high": 1, "placement": "uniform", "count": 12, "c": 3},
]


def test_the_python_code_runs_and_makes_the_same_head(page_of, tmp_path, capsys):
    opened = page_of()
    for state in RUNS:
        go(opened, state)
        code = opened.evaluate("anchorhead.current().python()")
        file = tmp_path / "head.py"
        file.write_text(code, encoding="utf-8")
        head = runpy.run_path(str(file))["head"]
        assert capsys.readouterr().out
        opened.get_by_text("Your own", exact=True).click()
        settle(opened)
        own = opened.evaluate(STATE)["own"]
        points = np.linspace(state["low"], state["high"], 101)
        kind = "float64" if state.get("dtype", "float64") == "float64" else "float32"
        seen = opened.evaluate(EVALUATE, [own | {"dtype": kind}, points.tolist()])
        scale = max(1.0, *(abs(value) for part in own["parts"] for value in part["values"]))
        within = {"float64": 1e-12, "float32": 1e-5}[kind]
        assert np.abs(np.asarray(head(points.astype(kind)), dtype=float) - seen).max() <= within * scale, state
        assert ("ah.head" in code) == (state.get("source") != "drawn")
