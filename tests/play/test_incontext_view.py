"""The learner in the page: its path is that of Python's network, and its examples can be clicked, dragged and typed."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anchorhead import incontext
from anchorhead.constructions.learners.learner import Learner
from anchorhead.constructions.learners.networks import squared_network
from tests.play.conftest import show
from tests.play.waiting import settle, until

EXAMPLES = [[-0.9, 0.5], [-0.6, 0.38], [-0.3, 0.2], [0.0, 0.06], [0.3, -0.1], [0.85, 0.9]]


CLASSES = [[-0.9, 0], [-0.4, 0], [-0.2, 1], [0.2, 1], [0.6, 0], [0.9, 1]]


def in_python(rate: float, sharpness: float | None = None, loss: str = "squared") -> np.ndarray:
    net = incontext.gradient_descent(loss, steps=60, rate=rate, features=1, intercept=True, on=(-1, 1), labels=(-1, 1))
    if sharpness is not None:
        net = Learner.of(squared_network(net.descent, sharpness, "float64"))
    examples = np.array(EXAMPLES if loss == "squared" else CLASSES)
    X, y = examples[:, :1], examples[:, 1]
    return net(net.prompt(X, y), path=True)


def test_the_path_is_that_of_the_python_learner(page_of: Callable[..., Any]) -> None:
    page = page_of("incontext")
    for rate in (0.1, 0.5):
        show(page, "incontext", {"examples": EXAMPLES, "rate": rate})
        found = np.array(page.evaluate("anchorhead.current().path()"))
        np.testing.assert_allclose(found, in_python(rate), rtol=0, atol=1e-12)


def test_the_logistic_path_is_that_of_the_python_learner(page_of: Callable[..., Any]) -> None:
    page = page_of("incontext", {"loss": "logistic", "examples": CLASSES, "rate": 2.0})
    found, ours = np.array(page.evaluate("anchorhead.current().path()")), in_python(2.0, loss="logistic")
    # three layers a step, each with its own large values that cancel: the order of sums shows sooner
    np.testing.assert_allclose(found, ours, rtol=0, atol=4e-12)
    assert np.abs(ours).max() > 0.5


def test_the_logistic_loss_takes_labels_and_has_code(
    page_of: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = page_of("incontext", {"examples": EXAMPLES})
    page.get_by_text("logistic", exact=True).click()
    until(page, "anchorhead.current().state().loss === 'logistic'")
    assert {y for _, y in page.evaluate("anchorhead.current().state().examples")} == {0, 1}
    until(page, "document.querySelector('.verdict').textContent.includes('sigmoid')")
    page.locator(".example").nth(1).focus()
    page.keyboard.press("ArrowDown")
    until(page, "anchorhead.current().state().examples[1][1] === 0")
    settle(page)
    (tmp_path / "code.py").write_text(page.evaluate("anchorhead.current().python()"))
    made = runpy.run_path(str(tmp_path / "code.py"))
    np.testing.assert_allclose(page.evaluate("anchorhead.current().path()"), made["path"], rtol=0, atol=4e-12)
    assert "logistic" in capsys.readouterr().out


def test_a_sharp_learner_takes_the_same_path_too(page_of: Callable[..., Any]) -> None:
    page = page_of("incontext", {"examples": EXAMPLES, "rate": 0.5, "sharpness": 2.0})
    found = np.array(page.evaluate("anchorhead.current().path()"))
    np.testing.assert_allclose(found, in_python(0.5, sharpness=2.0), rtol=0, atol=1e-14)
    assert np.abs(found - in_python(0.5)).max() > 1e-3


def test_the_python_code_takes_the_same_path(
    page_of: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = page_of("incontext")
    for sharpness in (2.0**-11, 0.5):
        show(page, "incontext", {"examples": EXAMPLES, "sharpness": sharpness})
        (tmp_path / "code.py").write_text(page.evaluate("anchorhead.current().python()"))
        made = runpy.run_path(str(tmp_path / "code.py"))
        np.testing.assert_allclose(page.evaluate("anchorhead.current().path()"), made["path"], rtol=0, atol=1e-12)
        assert ("proven" in capsys.readouterr().out) == (sharpness < 0.1)


def test_a_click_adds_an_example_and_dragging_moves_it(page_of: Callable[..., Any]) -> None:
    page = page_of("incontext", {"examples": EXAMPLES})
    plane = page.locator(".plane")
    box = plane.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + 60)
    until(page, "anchorhead.current().state().examples.length === 7")
    until(page, "document.querySelectorAll('.example').length === 7")
    added = page.locator(".example").nth(6).bounding_box()
    page.mouse.move(added["x"] + added["width"] / 2, added["y"] + added["height"] / 2)
    page.mouse.down()
    page.mouse.move(added["x"] - 150, added["y"] + 100, steps=4)
    page.mouse.up()
    moved = page.evaluate("anchorhead.current().state().examples")
    assert len(moved) == 7
    assert moved[6][0] < 0.1


def test_examples_are_moved_and_removed_by_keyboard_and_typed(page_of: Callable[..., Any]) -> None:
    page = page_of("incontext", {"examples": EXAMPLES})
    page.locator(".example").nth(3).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowUp")
    until(page, "anchorhead.current().state().examples[3].join() === '0.02,0.16'")
    page.keyboard.press("Delete")
    until(page, "anchorhead.current().state().examples.length === 5")
    page.get_by_label("y of example 1", exact=True).fill("-0.75")
    until(page, "anchorhead.current().state().examples[0][1] === -0.75")
    page.get_by_label("y of example 1", exact=True).fill("7")
    assert page.get_by_label("y of example 1", exact=True).get_attribute("aria-invalid") == "true"
    page.get_by_role("button", name="Add an example").click()
    until(page, "anchorhead.current().state().examples.length === 6")
    page.get_by_role("button", name="Remove example 2", exact=True).click()
    until(page, "anchorhead.current().state().examples.length === 5")


def test_a_rate_that_diverges_is_refused_as_in_python(page_of: Callable[..., Any]) -> None:
    page = page_of("incontext", {"examples": EXAMPLES, "rate": 2.0})
    text = page.locator(".problem").inner_text()
    assert "too large" in text
    assert page.evaluate("anchorhead.current().path()") is None
    with pytest.raises(ValueError, match="too large") as refused:
        in_python(2.0)
    assert text.split()[-1].rstrip(".") in str(refused.value)
    page.get_by_label("Rate", exact=True).fill("1")
    until(page, "anchorhead.current().path() !== null")


def test_it_plays_and_pauses(page_of: Callable[..., Any]) -> None:
    page = page_of("incontext", {"examples": EXAMPLES})
    page.get_by_role("button", name="Play").click()
    until(page, "anchorhead.current().state().step > 2")
    page.get_by_role("button", name="Pause").click()
    step = page.evaluate("anchorhead.current().state().step")
    page.wait_for_timeout(300)
    assert page.evaluate("anchorhead.current().state().step") == step


def test_the_state_makes_the_same_view_again_and_damage_does_no_harm(page_of: Callable[..., Any]) -> None:
    state = {"loss": "squared", "examples": EXAMPLES, "rate": 0.7, "step": 11, "sharpness": 0.25}
    page = page_of("incontext", state, width=360, color_scheme="dark")
    assert page.evaluate("anchorhead.current().state()") == state
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert "After 11 steps" in page.inner_text(".verdict")
    assert "<circle" in page.evaluate("anchorhead.svgText(anchorhead.current().svg())")
    for damaged in ({"examples": [[2, 3]]}, {"examples": 1, "rate": "fast"}, {"step": 1e9, "sharpness": -3}):
        show(page, "incontext", damaged)
        assert page.locator(".example").count() == 8
    show(page, "incontext", {"examples": []})
    assert "at least one example" in page.inner_text(".problem")
    assert page.evaluate("anchorhead.current().python()") is None
