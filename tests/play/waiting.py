"""Waiting for the page without evaluating texts in it, which its content security policy forbids."""

from __future__ import annotations

from typing import Any


def until(page: Any, expression: str, tries: int = 200) -> None:
    """Asks again, 25 ms apart, until the expression is true in the page."""
    for _ in range(tries):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(25)
    raise AssertionError(f"never true: {expression}")


def settle(page: Any) -> None:
    """Two frames: what was asked for is drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
