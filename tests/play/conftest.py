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


@pytest.fixture
def page_of(browser: Any, page_file: Path) -> Iterator[Callable[..., Any]]:
    """page_of(view, state, width=…, height=…, **options of a context): an open page.

    Errors in the page and requests to anywhere fail the test when it ends.
    """
    contexts: list[Any] = []
    wrong: list[str] = []

    def open_page(view: str = "head", state: Any = None, width: int = 1280, height: int = 900, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        return _opened(context, page_file.as_uri() + hash_of(view, state), wrong)

    yield open_page
    for context in contexts:
        context.close()
    assert not wrong, wrong


@pytest.fixture(scope="session")
def mathematics(browser: Any, page_file: Path) -> Iterator[Any]:
    """A page for tests that call functions of window.anchorhead and change nothing: opened once."""
    wrong: list[str] = []
    context = browser.new_context()
    yield _opened(context, page_file.as_uri(), wrong)
    context.close()
    assert not wrong, wrong


def _opened(context: Any, address: str, wrong: list[str]) -> Any:
    opened = context.new_page()
    opened.set_default_timeout(20_000)
    opened.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("request", lambda request: wrong.append(request.url) if _outside(request.url) else None)
    opened.goto(address)
    until(opened, "window.anchorhead !== undefined")
    return opened


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


def _outside(address: str) -> bool:
    return not address.startswith(("file:", "data:", "blob:", "about:"))
