"""The view that opens networks: files, inputs, what is shown, and the examples that it comes with."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.network import Network
from tests.networks import network
from tests.play.conftest import show
from tests.play.waiting import settle, until
from tools.make_golden import GOLDEN, file_name

EXAMPLES = [one["name"] for one in json.loads((files("anchorhead.play") / "examples" / "examples.json").read_text())]


@pytest.mark.slow_for("logistic-learner", "truncated-line")
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_load_pass_the_check_and_are_small(name: str) -> None:
    with_path = files("anchorhead.play") / "examples" / f"{name}.safetensors"
    net = ah.load(str(with_path))
    assert net.certificate is not None
    assert net.certificate.kind == "proven"
    assert ah.check(net)
    assert len(with_path.read_bytes()) < 40_000


def output_of(page: Any) -> np.ndarray:
    return np.array(page.evaluate("anchorhead.current().result().output"))


@pytest.mark.slow
def test_the_python_code_of_examples_gives_what_the_page_shows(
    page_of: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = page_of("network")
    for name in EXAMPLES:
        show(page, "network", {"example": name})
        (tmp_path / "code.py").write_text(page.evaluate("anchorhead.current().python()"))
        made = runpy.run_path(str(tmp_path / "code.py"))
        ours = np.atleast_2d(Network.__call__(made["net"], np.array(made["x"]), outside="ignore"))
        # some read values of 1e5 that cancel, so that the order of a sum shows, in ours as well
        allowed = 1e-10 if name in ("product-and-maximum", "logistic-learner") else 1e-12
        np.testing.assert_allclose(output_of(page), ours, rtol=0, atol=allowed, err_msg=name)
        assert "proven" in capsys.readouterr().out


def test_a_file_of_the_users_is_opened_and_shown(page_of: Callable[..., Any], tmp_path: Path) -> None:
    net = network("parts (float64)")
    net.save(tmp_path / "own.safetensors")
    page = page_of("network")
    page.set_input_files("#network-file", tmp_path / "own.safetensors")
    page.get_by_label("z", exact=True).fill("0.25")
    page.get_by_label("x", exact=True).fill("-0.5")
    page.get_by_label("y", exact=True).fill("0.75")
    until(page, "anchorhead.current().state().rows[0].join() === '-0.5,0.75,0.25'")
    settle(page)
    # its neurons read large values that cancel: torch's own sums differ from processor to processor
    np.testing.assert_allclose(output_of(page), [net([-0.5, 0.75, 0.25])], rtol=0, atol=1e-10)
    text = page.inner_text("main")
    assert net.certificate is not None
    assert net.certificate.target in text
    assert "abs(s)" in page.text_content(".layers")
    assert 'ah.load("own.safetensors")' in page.evaluate("anchorhead.current().python()")
    assert page.evaluate("anchorhead.current().state().file") == "own.safetensors"


@pytest.mark.parametrize(
    "name",
    ["parts, tokens (float32)", "grid, uniform (float64)", "neurons, uniform (float32)", "callable, fitted (float32)"],
)
def test_terms_are_shown_in_the_words_of_python(name: str, page_of: Callable[..., Any], tmp_path: Path) -> None:
    """Of a file of today, and of one from when files held words."""
    certificate = network(name).certificate
    assert certificate is not None
    network(name).save(tmp_path / "today.safetensors")
    before = GOLDEN / "format-3-words" / file_name(name)
    page = page_of("network")
    for path in (tmp_path / "today.safetensors", before):
        page.set_input_files("#network-file", path)
        until(page, f"anchorhead.current().opened().file === '{path.name}'")
        text = page.text_content(".certificate")
        for term in certificate.terms:
            assert str(term) in text
        for term in certificate.reference:
            assert f"to compare: {term}" in text


def test_a_dropped_file_is_opened(page_of: Callable[..., Any]) -> None:
    page = page_of("network")
    page.evaluate("""() => {
        const one = JSON.parse(document.getElementById("tables").textContent).networks.at(-1);
        const bytes = Uint8Array.from(atob(one.file), (sign) => sign.charCodeAt(0));
        const data = new DataTransfer();
        data.items.add(new File([bytes], "dropped.safetensors"));
        document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }""")
    until(page, "anchorhead.current().opened().file === 'dropped.safetensors'")
    assert page.get_by_label("Input: the examples").is_visible()


def test_a_file_that_is_none_of_ours_leaves_a_message_and_what_was_there(
    page_of: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "text.safetensors").write_text("no network, only words, and some more of them")
    page = page_of("network")
    before = output_of(page)
    page.set_input_files("#network-file", tmp_path / "text.safetensors")
    page.wait_for_selector(".problem")
    assert "not a safetensors file" in page.inner_text(".problem")
    np.testing.assert_array_equal(output_of(page), before)


def test_names_in_a_file_are_text_and_never_code(page_of: Callable[..., Any], tmp_path: Path) -> None:
    net = network("attention (float64)")
    bad = "<img src=x onerror=\"document.title='broken'\">"
    first = replace(net.embed, features=(bad, *(net.embed.features or ())[1:]))
    Network([first, *net.layers[1:]]).save(tmp_path / "names.safetensors")
    page = page_of("network")
    page.set_input_files("#network-file", tmp_path / "names.safetensors")
    until(page, "anchorhead.current().opened().file === 'names.safetensors'")
    assert bad in page.text_content(".layers")
    assert page.locator(".layers img").count() == 0
    assert "broken" not in page.title()


def test_a_learner_takes_examples_and_shows_its_steps(page_of: Callable[..., Any]) -> None:
    page = page_of("network", {"example": "learner"})
    page.get_by_label("Input: the examples").fill("0.5 0.25\n-0.5 -0.25\n0.1 0.2")
    until(page, "anchorhead.current().state().rows.length === 3")
    settle(page)
    net = ah.load(str(files("anchorhead.play") / "examples" / "learner.safetensors"))
    prompt = net.prompt([[0.5], [-0.5], [0.1]], [0.25, -0.25, 0.2])  # type: ignore[attr-defined]
    np.testing.assert_allclose(output_of(page)[0], net(prompt), rtol=0, atol=1e-12)
    page.get_by_label(re.compile("Step of the repeat")).fill("7")
    until(page, "anchorhead.current().state().chosen.step === 6")
    slider = page.get_by_label(re.compile("Step of the repeat"))
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.3 * box["width"], middle)
    page.mouse.down()
    for share in (0.4, 0.6, 0.8):  # it stays under the pointer while the picture changes
        page.mouse.move(box["x"] + share * box["width"], middle)
        page.wait_for_timeout(40)
    page.mouse.up()
    until(page, "anchorhead.current().state().chosen.step > 13")
    page.get_by_label("Input: the examples").fill("0.5 x")
    assert "Line 1 must hold 2 numbers" in page.locator(".problem").first.inner_text()


def test_inputs_outside_of_the_box_are_pointed_out(page_of: Callable[..., Any]) -> None:
    page = page_of("network", {"example": "gelu"})
    assert "proven to be within" in page.inner_text("main")
    page.get_by_label("x", exact=True).fill("12")
    page.get_by_text("outside of the box").wait_for()
    page.get_by_label("x", exact=True).fill("")
    page.get_by_text("holds no number").wait_for()


def test_the_output_is_drawn_along_one_input(page_of: Callable[..., Any]) -> None:
    page = page_of("network", {"example": "two-variables", "along": 1, "rows": [[0.25, 0.5]]})
    drawn = page.get_by_role("img", name=re.compile("The output along y"))
    assert drawn.locator("path.line").get_attribute("d").count("L") == 120
    page.get_by_label("Along", exact=True).select_option(label="x")
    until(page, "anchorhead.current().state().along === 0")
    assert page.get_by_role("img", name=re.compile("The output along x")).is_visible()
    page.get_by_label("Example", exact=True).select_option("learner")
    assert page.get_by_label("Along", exact=True).count() == 0


def test_the_state_of_the_view_makes_the_same_view_again(page_of: Callable[..., Any]) -> None:
    page = page_of("network", {"example": "product-and-maximum"})
    page.get_by_label("Layer", exact=True).select_option("2")
    page.get_by_label("x of token 1", exact=True).fill("0.875")
    until(page, "anchorhead.current().state().rows[1][0] === 0.875")
    state = page.evaluate("anchorhead.current().state()")
    settle(page)
    before = output_of(page)
    show(page, "head")
    show(page, "network", state)
    assert page.evaluate("anchorhead.current().state()") == state
    np.testing.assert_array_equal(output_of(page), before)
    for damaged in (
        {"rows": "?"},
        {"example": 3, "chosen": 7},
        {"rows": [[None]], "chosen": {"place": {}, "step": -1}},
    ):
        show(page, "network", damaged)
        assert page.locator(".heatmap").is_visible()


def test_the_view_works_by_keyboard_and_on_a_small_screen(page_of: Callable[..., Any]) -> None:
    page = page_of("network", {"example": "truncated-line"}, width=360, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.get_by_label("x of token 0, slider").focus()
    before = page.evaluate("anchorhead.current().state().rows[0][0]")
    page.keyboard.press("ArrowRight")
    until(page, f"anchorhead.current().state().rows[0][0] > {before}")
    settle(page)
    page.get_by_label("Head", exact=True).focus()
    page.keyboard.press("ArrowDown")
    until(page, "anchorhead.current().state().chosen.head === 1")
    assert page.evaluate("document.activeElement.dataset.control") == "head"
    assert "<svg" in page.evaluate("anchorhead.svgText(anchorhead.current().svg())")
