"""The shell: tabs, theme, keyboard, small and large windows, colours that can be read."""

from __future__ import annotations

import pytest

from tests.play.waiting import settle, until

VIEWS = "[...document.querySelectorAll('[role=tab]')].map((tab) => tab.dataset.view)"

CONTRAST = """() => {
    const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
        .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
        .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
    const numbers = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
    const behind = (node) => {
        for (let at = node; at; at = at.parentElement) {
            const [r, g, b, opacity = 1] = numbers(getComputedStyle(at).backgroundColor);
            if (opacity === 1 && r !== undefined) return [r, g, b];
        }
        return [255, 255, 255];
    };
    const low = [];
    for (const node of document.querySelectorAll("body *")) {
        const own = [...node.childNodes].some((one) => one.nodeType === 3 && one.textContent.trim());
        if (!own || !node.checkVisibility() || node.closest("script, style, noscript, title, .skip")) continue;
        const style = getComputedStyle(node);
        const words = numbers(node instanceof SVGElement ? style.fill : style.color).slice(0, 3);
        const [a, b] = [light(words), light(behind(node))].sort((one, other) => other - one);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5) low.push([node.tagName, node.textContent.slice(0, 30), ratio]);
    }
    return low;
}"""

NAMELESS = """() => [...document.querySelectorAll("button, input, select, [tabindex]")]
    .filter((node) => node.checkVisibility() && node.id !== "view")
    .filter((node) => !(node.getAttribute("aria-label") || node.labels?.length || node.textContent.trim()))
    .map((node) => node.outerHTML.slice(0, 120))"""


def views(opened):
    return opened.evaluate(VIEWS)


def test_no_view_is_wider_than_the_window(page_of):
    opened = page_of()
    for view in views(opened):
        opened.locator(f"#tab-{view}").click()
        for width in (360, 768, 1440, 3840):
            opened.set_viewport_size({"width": width, "height": 800})
            settle(opened)
            assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth"), (view, width)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(page_of, theme):
    """WCAG's 4.5 to 1, in every view."""
    opened = page_of(color_scheme=theme)
    for view in views(opened):
        opened.locator(f"#tab-{view}").click()
        opened.wait_for_timeout(250)  # transitions of colours end
        assert opened.evaluate(CONTRAST) == [], view


def test_everything_that_takes_the_focus_has_a_name(page_of):
    opened = page_of()
    for view in views(opened):
        opened.locator(f"#tab-{view}").click()
        assert opened.evaluate(NAMELESS) == [], view


def test_the_theme_can_be_chosen(page_of):
    opened = page_of(color_scheme="light")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = opened.evaluate(paper)
    opened.get_by_label("Theme").select_option("dark")
    dark = opened.evaluate(paper)
    assert light != dark
    opened.get_by_label("Theme").select_option("auto")
    assert opened.evaluate(paper) == light
    opened.emulate_media(color_scheme="dark")
    assert opened.evaluate(paper) == dark


def test_the_tab_key_goes_through_the_page_from_top_to_bottom(page_of):
    opened = page_of()
    seen = []
    for _ in range(9):
        opened.keyboard.press("Tab")
        seen.append(opened.evaluate("document.activeElement.textContent.trim() || document.activeElement.id"))
    first = opened.locator("[role=tab][aria-selected=true]").inner_text()
    assert seen[:5] == ["Skip to the view", first, "Copy link", "Save SVG", "Copy Python"]
    assert opened.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_the_skip_link_leads_to_the_view_and_leaves_the_address_alone(page_of):
    opened = page_of()
    before = opened.url
    opened.keyboard.press("Tab")
    opened.keyboard.press("Enter")
    assert opened.evaluate("document.activeElement.id") == "view"
    assert opened.url == before


def test_arrow_keys_change_the_view(page_of):
    opened = page_of()
    names = views(opened)
    opened.locator("[role=tab][aria-selected=true]").focus()
    for name in [*names[1:], names[0]]:
        opened.keyboard.press("ArrowRight")
        assert opened.evaluate("document.activeElement.dataset.view") == name
        assert opened.locator("[role=tab][aria-selected=true]").count() == 1
        assert opened.url.partition("#")[2].startswith(f"view={name}&s=")
    opened.keyboard.press("End")
    assert opened.evaluate("document.activeElement.dataset.view") == names[-1]


def test_copies_are_announced(page_of):
    opened = page_of(permissions=["clipboard-read", "clipboard-write"])
    opened.get_by_role("button", name="Copy Python").click()
    until(opened, "document.getElementById('announcements').textContent.includes('Python')")
    assert opened.locator("#announcements").get_attribute("class") == "toast"  # for those who look, too
    assert "import" in opened.evaluate("navigator.clipboard.readText()")
    opened.get_by_role("button", name="Copy link").click()
    until(opened, "document.getElementById('announcements').textContent.includes('link')")
    assert opened.evaluate("navigator.clipboard.readText()") == opened.url


def test_nothing_moves_for_people_who_asked_for_that(page_of):
    opened = page_of(reduced_motion="reduce")
    moving = """() => [...document.querySelectorAll("*")].filter((node) =>
        getComputedStyle(node).transitionDuration !== "0s" || getComputedStyle(node).animationName !== "none").length"""
    assert opened.evaluate(moving) == 0
