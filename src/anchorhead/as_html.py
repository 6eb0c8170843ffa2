"""What objects show of themselves in notebooks: small tables and drawings, in HTML and SVG.

All that is given is text and is escaped, save for `Markup`, which only this module makes. Words take the notebook's own
colour, lines are half transparent: light and dark pages will do. Nothing is loaded from anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

TONES = {"proven": "#009E73", "measured": "#E69F00"}
"""Colours of the two kinds of certificate, which can be told apart on white and on black."""
BLUE, LINE = "#3a8fc7", "rgba(128, 128, 128, 0.35)"
WIDE, HIGH = 320, 130
"""Pixels of a drawing."""
MAX_ROWS, MAX_DOTS, MAX_BOXES = 60, 8, 9
SHORT = 28
"""Signs of a cell that is not broken into lines."""


class Markup(str):
    """HTML that is safe to show."""

    __slots__ = ()


def text(value: Any) -> Markup:
    """A value in words; what a page would obey rather than show is replaced."""
    if isinstance(value, Markup):
        return value
    plain = "".join(sign if sign.isprintable() or sign == "\n" else "\N{REPLACEMENT CHARACTER}" for sign in str(value))
    return Markup(escape(plain).replace("\n", "<br>"))


def block(title: Any, *parts: Any, kind: str = "") -> Markup:
    """A box with a heading in bold, at its left a line in the colour of a kind of certificate."""
    colour = TONES.get(kind, "rgba(128, 128, 128, 0.5)")
    content = "".join(f"<div>{text(part)}</div>" for part in parts if part)
    return Markup(
        f'<div style="border-left: 3px solid {colour}; padding: 0.2em 0 0.2em 0.8em; margin: 0.3em 0">'
        f"{f'<div><b>{text(title)}</b></div>' if title else ''}{content}</div>"
    )


def table(heads: Sequence[Any], rows: Iterable[Sequence[Any]]) -> Markup:
    """A table with a line of headings, none if there are none; of very many rows, the first."""
    rows = list(rows)
    place = "text-align: left; vertical-align: top; padding: 0.15em 0.8em 0.15em 0; color: inherit"
    head = "".join(f'<th style="{place}">{text(one)}</th>' for one in heads)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{place}; border-top: 1px solid {LINE}{_unbroken(one)}">{text(one)}</td>' for one in row)
        + "</tr>"
        for row in rows[:MAX_ROWS]
    )
    more = f"<div>and {len(rows) - MAX_ROWS:,} more rows</div>" if len(rows) > MAX_ROWS else ""
    head = f"<thead><tr>{head}</tr></thead>" if heads else ""
    style = "border-collapse: collapse; background: transparent; margin: 0.2em 0; color: inherit; font-size: inherit"
    return Markup(f'<table style="{style}">{head}<tbody>{body}</tbody></table>{more}')


def _unbroken(value: Any) -> str:
    """Short cells stay in one line."""
    return "; white-space: nowrap" if len(str(value)) <= SHORT else ""


def folded(summary: Any, content: Any) -> Markup:
    """What is seen when it is clicked at."""
    return Markup(f"<details><summary>{text(summary)}</summary>{text(content)}</details>")


def shown(thing: Any) -> Markup:
    """The HTML of an object of this package, or its text."""
    own = getattr(thing, "_repr_html_", None)
    return Markup(own()) if own is not None else text(thing)


def curve(what: str, x: Sequence[float], *lines: Sequence[float]) -> Markup:
    """Lines over an interval, the first broad and grey, the others in blue, with the ends of both axes in numbers."""
    finite = [y for line in lines for y in line if math.isfinite(y)]
    if not finite or len(x) < 2:
        return Markup()
    low, high = min(finite), max(finite)
    left, right, top, bottom = 62.0, WIDE - 8.0, 10.0, HIGH - 22.0
    across, up = (right - left) / (x[-1] - x[0]), (bottom - top) / ((high - low) or 1.0)
    drawn = []
    for number, line in enumerate(lines):
        places = " ".join(
            f"{left + (a - x[0]) * across:.1f},{bottom - (b - low) * up:.1f}"
            for a, b in zip(x, line, strict=True)
            if math.isfinite(b)
        )
        look = (
            f'stroke="{LINE}" stroke-width="7"'
            if number == 0 and len(lines) > 1
            else f'stroke="{BLUE}" stroke-width="2"'
        )
        drawn.append(f'<polyline points="{places}" fill="none" {look} stroke-linejoin="round" stroke-linecap="round"/>')
    marks = [(left, HIGH - 6, "start", x[0]), (right, HIGH - 6, "end", x[-1])]
    marks += [(left - 6, bottom, "end", low), (left - 6, top + 8, "end", high)]
    words = "".join(_word(a, b, side, f"{value:.4g}") for a, b, side, value in marks)
    return _drawing(what, WIDE, HIGH, "".join(drawn) + words)


def flow(what: str, boxes: Sequence[tuple[str, int]]) -> Markup:
    """Layers from left to right, each with a dot for each of its heads; of many the first and the last."""
    if len(boxes) > MAX_BOXES:
        boxes = [*boxes[: MAX_BOXES - 2], ("…", 0), boxes[-1]]
    drawn, step = [], 92.0
    for number, (name, heads) in enumerate(boxes):
        x = 4 + number * step
        drawn.append(
            f'<rect x="{x}" y="6" width="80" height="38" rx="5" fill="none" stroke="{LINE}" stroke-width="1.5"/>'
        )
        drawn.append(_word(x + 40, 22, "middle", name))
        if number:
            drawn.append(f'<path d="M{x - 11} 25 h8" stroke="{LINE}" stroke-width="2"/>')
        if heads > MAX_DOTS:
            drawn.append(_word(x + 40, 38, "middle", f"{heads:,} heads"))
        for dot in range(heads if heads <= MAX_DOTS else 0):
            drawn.append(f'<circle cx="{x + 40 + 8 * (dot - (heads - 1) / 2):.1f}" cy="34" r="3" fill="{BLUE}"/>')
    return _drawing(what, int(8 + step * len(boxes)), 50, "".join(drawn))


def _word(x: float, y: float, side: str, words: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="11" text-anchor="{side}" fill="currentColor">{text(words)}</text>'


def _drawing(what: str, wide: int, high: int, content: str) -> Markup:
    style = "max-width: 100%; height: auto; font-family: sans-serif"
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" '
        f'role="img" aria-label="{text(what)}" style="{style}">{content}</svg>'
    )
