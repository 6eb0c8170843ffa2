"""The stories of the theorems: errors are those of Python's networks and lie under their proven bounds."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.play.conftest import show
from tests.play.waiting import until

STEPS = [(story, step) for story in ("heads", "layers") for step in range(5)]


def run_code(page: Any, folder: Path) -> dict[str, Any]:
    (folder / "code.py").write_text(page.evaluate("anchorhead.current().python()"))
    return runpy.run_path(str(folder / "code.py"))


def test_one_head_errs_as_in_python_and_under_its_proven_bound(page_of: Callable[..., Any], tmp_path: Path) -> None:
    page = page_of("theorems")
    for anchors, c in ((2, 2.75), (8, 2.75), (13, 1.0), (64, 5.0)):
        show(page, "theorems", {"step": 2, "anchors": anchors, "c": c})
        found = page.evaluate("anchorhead.current().measured()")
        made = run_code(page, tmp_path)
        assert found["error"] == pytest.approx(made["error"], abs=1e-12)
        assert 0 < found["error"] <= made["net"].certificate.bound
        assert found["theorem"] == pytest.approx(2 / anchors, rel=1e-15)
        assert found["error"] <= found["theorem"]


def test_several_heads_err_as_in_python_and_under_their_proven_bound(
    page_of: Callable[..., Any], tmp_path: Path
) -> None:
    page = page_of("theorems")
    for tokens, heads, c in ((3, 1, 2.75), (8, 4, 2.75), (12, 8, 4.0)):
        show(page, "theorems", {"step": 4, "tokens": tokens, "heads": heads, "c": c})
        found = page.evaluate("anchorhead.current().measured()")
        made = run_code(page, tmp_path)
        assert found["error"] == pytest.approx(made["error"], abs=1e-12)
        assert 0 < found["error"] <= made["net"].certificate.bound
        assert found["theorem"] == pytest.approx(2 / ((tokens - 2) * heads), rel=1e-15)


def test_two_layers_err_as_in_python(page_of: Callable[..., Any], tmp_path: Path) -> None:
    page = page_of("theorems")
    for name in ("max(x, y)", "exp(−3(x² + y²))"):
        show(page, "theorems", {"story": "layers", "step": 3, "f": name, "side": 5, "c": 2.75})
        found = page.evaluate("anchorhead.current().measured()")
        assert found["error"] == pytest.approx(run_code(page, tmp_path)["error"], abs=1e-12)


def test_two_layers_keep_to_the_line_of_the_proof_for_every_function(page_of: Callable[..., Any]) -> None:
    page = page_of("theorems", {"story": "layers", "step": 4})
    names = page.evaluate("anchorhead.FUNCTIONS.map((one) => one.name)")
    assert len(names) == 5
    for name in names:
        page.get_by_label("Function f").select_option(name)
        for side in (2, 7, 16):
            page.get_by_label("Anchors along an axis, p").fill(str(side))
            found = page.evaluate("anchorhead.current().measured()")
            assert 0 < found["error"] <= found["theorem"], (name, side)


def test_the_networks_of_the_stories_compute_what_is_drawn(mathematics: Any) -> None:
    differences = mathematics.evaluate("""() => {
        const { run, singleHead, severalHeads, gridHead, FUNCTIONS } = anchorhead;
        const one = singleHead({ low: -1, high: 1, anchors: 9, c: 2.75 });
        const many = severalHeads({ low: -1, high: 1, tokens: 6, heads: 3, c: 4 });
        const grid = gridHead({ f: FUNCTIONS[0].f, side: 5, c: 2.75 });
        const found = [];
        for (let s = -1.5; s <= 1.5; s += 0.07) {
            found.push(run(one.network(), [[s]]).output[0][0] - one.value(s));
            found.push(run(many.network(), Array(6).fill([s])).output[4][0] - many.value(s));
            const [x, y] = [Math.sin(9 * s), Math.cos(7 * s)];
            for (const token of run(grid.network(), [[x], [y]]).output) found.push(token[0] - grid.value(x, y));
        }
        return found;
    }""")
    assert len(differences) > 150
    assert np.abs(differences).max() < 1e-14


def test_every_step_has_words_a_picture_and_code(page_of: Callable[..., Any]) -> None:
    page = page_of("theorems")
    seen = set()
    for story, step in STEPS:
        if step == 0:
            page.get_by_text({"heads": "Heads cut lines off", "layers": "Two layers, any function"}[story]).click()
        until(page, f"anchorhead.current().state().story === '{story}' && anchorhead.current().state().step === {step}")
        seen.add(page.inner_text("#story-step"))
        assert len(page.inner_text(".words-of")) > 80
        assert len(page.inner_text(".verdict")) > 10
        assert page.locator(".stage svg.chart").first.is_visible()
        assert "import" in page.evaluate("anchorhead.current().python()")
        assert "<svg" in page.evaluate("anchorhead.svgText(anchorhead.current().svg())")
        if step < 4:
            page.get_by_role("button", name="Next").click()
    assert len(seen) == 10
    assert page.get_by_role("button", name="Next").is_disabled()


def test_steps_are_reached_by_keyboard(page_of: Callable[..., Any]) -> None:
    page = page_of("theorems")
    page.get_by_role("button", name="Step 1: Anchors").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("anchorhead.current().state().step") == 2
    assert page.evaluate("document.activeElement.getAttribute('aria-current')") == "step"
    page.keyboard.press("End")
    assert page.evaluate("anchorhead.current().state().step") == 4
    page.get_by_label("Heads H").focus()
    page.keyboard.press("ArrowRight")
    until(page, "anchorhead.current().state().heads === 5")
    until(page, "document.querySelector('.verdict').textContent.includes('2/30')")


def test_sharpness_that_is_too_small_is_owned_up_to(page_of: Callable[..., Any]) -> None:
    page = page_of("theorems", {"step": 4, "tokens": 16, "heads": 16, "c": 0.5})
    assert "above the line" in page.inner_text(".verdict")


def test_stories_fit_a_small_screen_and_their_state_a_link(page_of: Callable[..., Any]) -> None:
    page = page_of("theorems", width=360, color_scheme="dark")
    for story, step in (("heads", 0), ("layers", 1), ("layers", 3)):
        state = {"story": story, "step": step, "anchors": 5, "tokens": 9, "heads": 2, "side": 4, "c": 3.5, "s": -0.25}
        state |= {"x": 0.5, "y": 0.75, "f": "max(x, y)"}
        show(page, "theorems", state)
        assert page.evaluate("anchorhead.current().state()") == state
        assert page.evaluate("document.documentElement.scrollWidth") == 360
    show(page, "theorems", {"story": 7, "step": "x", "anchors": 1e9, "c": None, "f": {}})
    assert page.evaluate("anchorhead.current().state().anchors") == 8
