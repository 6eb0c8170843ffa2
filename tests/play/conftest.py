"""Real Chromium for the tests of the page: `page_of` opens it from a file, as a user does."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from anchorhead.play import page
from tests.play.waiting import until

ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's chromium, no browser of playwright's own; skips without either."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium on this machine")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=ARGUMENTS, headless=True)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("play") / "playground.html"
    file.write_text(page(), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def tabs(browser: Any) -> Iterator[tuple[Any, list[Any]]]:
    """A context, and pages of it that no test uses: to load one anew is a quarter of the work that a context is."""
    context = browser.new_context()
    yield context, []
    context.close()


@pytest.fixture
def page_of(browser: Any, tabs: tuple[Any, list[Any]], page_file: Path) -> Iterator[Callable[..., Any]]:
    """page_of(view, state, width=…, height=…, **options of a context): an open page.

    Errors in the page and requests to anywhere fail the test when it ends. With options the context is the page's own.
    """
    context, free = tabs
    own: list[Any] = []
    taken: list[Any] = []
    listeners = Listeners()

    def open_page(view: str = "head", state: Any = None, width: int = 1280, height: int = 900, **options: Any) -> Any:
        if options:
            own.append(browser.new_context(**options))
            opened = own[-1].new_page()
        else:
            opened = free.pop() if free else context.new_page()
            taken.append(opened)
            opened.bring_to_front()
        opened.set_viewport_size({"width": width, "height": height})
        return _opened(opened, page_file.as_uri() + hash_of(view, state), listeners)

    yield open_page
    for one in own:
        one.close()
    for one in taken:
        _leave(one, listeners)
    free.extend(taken)
    assert not listeners.wrong, listeners.wrong


@pytest.fixture(scope="session")
def mathematics(browser: Any, page_file: Path) -> Iterator[Any]:
    """A page for tests that call functions of window.anchorhead and change nothing: opened once."""
    listeners = Listeners()
    context = browser.new_context()
    yield _opened(context.new_page(), page_file.as_uri(), listeners)
    context.close()
    assert not listeners.wrong, listeners.wrong


class Listeners:
    """What goes wrong in pages."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.of = {"console": self.console, "pageerror": self.error, "request": self.request}

    def console(self, message: Any) -> None:
        if message.type == "error":
            self.wrong.append(message.text)

    def error(self, error: Any) -> None:
        self.wrong.append(str(error))

    def request(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:", "about:")):
            self.wrong.append(request.url)


def _opened(page: Any, address: str, listeners: Listeners) -> Any:
    page.set_default_timeout(20_000)
    for event, listener in listeners.of.items():
        page.on(event, listener)
    page.goto(address)
    until(page, "window.anchorhead !== undefined")
    return page


def _leave(page: Any, listeners: Listeners) -> None:
    """Nothing of a test stays with its page: what it kept, where the mouse is, who listens."""
    page.evaluate("localStorage.clear()")
    page.mouse.up()
    page.mouse.move(0, 0)
    page.goto("about:blank")
    for event, listener in listeners.of.items():
        page.remove_listener(event, listener)


def hash_of(view: str, state: Any = None) -> str:
    """The part of an address after #, as link.js writes it."""
    if state is None:
        return f"#view={view}"
    text = base64.urlsafe_b64encode(json.dumps(state).encode()).decode().rstrip("=")
    return f"#view={view}&s={text}"


def show(opened: Any, view: str, state: Any = None) -> None:
    """The same page with another view and state, as when its address is changed."""
    # at once: the shell's timer may write the address in between
    script = """(hash) => {
        history.replaceState(null, "", hash);
        dispatchEvent(new HashChangeEvent("hashchange"));
    }"""
    opened.evaluate(script, hash_of(view, state))
