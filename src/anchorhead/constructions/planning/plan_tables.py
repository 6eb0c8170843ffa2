"""A plan as text, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from itertools import groupby
from math import floor, isfinite, log10
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from anchorhead.as_html import Markup, table, text

if TYPE_CHECKING:
    from anchorhead.constructions.planning.plan import Row

WIDTH = 100
MAX_TERMS = 20
"""Of more terms than these, the first are listed."""
LONGEST = 999_999
"""The largest whole number that is written with all its digits."""


def listed(found: Sequence[tuple[str, str]]) -> list[str]:
    """What the terms became, as one paragraph; none where there are none."""
    if not found:
        return []
    lines = [wrap(f"{term}: {what}", WIDTH - 2, subsequent_indent="  ") for term, what in found[:MAX_TERMS]]
    more = [[f"and {len(found) - MAX_TERMS:,} more"]] if len(found) > MAX_TERMS else []
    return ["\n".join(["found", *(f"  {line}" for own in [*lines, *more] for line in own)])]


MISSED, MISSES = "!", "larger than the error asked for"


def text_table(rows: Sequence[Row]) -> str:
    """A block of lines for each error, of at most 100 columns; notes below, by letter."""
    notes = _notes(rows)
    columns: dict[str, Callable[[Row], str]] = {
        "form": lambda row: row.form,
        "layout": lambda row: row.layout,
        "anchors\nplaced": lambda row: row.placement,
        "lay-\ners": lambda row: short(row.layers),
        "heads\nH": lambda row: short(row.heads),
        "anchors\np": lambda row: short(row.anchors),
        "beta": lambda row: short(row.beta),
        "para-\nmeters": lambda row: short(row.parameters),
        "largest\nlogit": lambda row: short(row.largest_logit),
        "bound": lambda row: short(row.bound) + _mark(row) + (f" {notes[row.note]}" if row.note else "  "),
        "mult.-\nadds": lambda row: short(row.multiply_adds),
    }
    columns = {name: cell for name, cell in columns.items() if any(cell(row) != "-" for row in rows)}
    blocks = [(within, [[cell(row) for cell in columns.values()] for row in block]) for within, block in _blocks(rows)]
    headings = [("\n" + name).split("\n")[-2:] for name in columns]
    lines = [[heading[0] for heading in headings], [heading[1] for heading in headings]]
    every = [*lines, *(cells for _, block in blocks for cells in block)]
    widths = [max(len(cells[place]) for cells in every) for place in range(len(columns))]
    text = [_aligned(cells, widths) for cells in lines]
    for within, block in blocks:
        text += ["", *([] if within is None else [f"within {within:g}"]), *(_aligned(cells, widths) for cells in block)]
    said = {letter: note for note, letter in notes.items()} | ({MISSED: MISSES} if any(map(_mark, rows)) else {})
    below = [
        line for letter, note in said.items() for line in wrap(f"{letter}  {note}", WIDTH, subsequent_indent="   ")
    ]
    return "\n".join([*text, *([""] if below else []), *below])


def _mark(row: Row) -> str:
    """A sign where the bound is larger than what is asked for."""
    if row.bound is None or row.within is None:
        return ""
    return MISSED if row.bound > row.within else ""


def _notes(rows: Sequence[Row]) -> dict[str, str]:
    """What rows have to say, each with a letter."""
    notes: dict[str, str] = {}
    for row in rows:
        if row.note:
            notes.setdefault(row.note, chr(ord("a") + len(notes)))
    return notes


def html_table(rows: Sequence[Row]) -> Markup:
    """A line for each row, the error first; notes below, by letter."""
    notes = _notes(rows)
    columns: dict[str, Callable[[Row], str]] = {
        "within": lambda row: "-" if row.within is None else f"{row.within:g}",
        "form": lambda row: row.form,
        "layout": lambda row: row.layout,
        "anchors placed": lambda row: row.placement,
        "layers": lambda row: short(row.layers),
        "heads H": lambda row: short(row.heads),
        "anchors p": lambda row: short(row.anchors),
        "parameters": lambda row: short(row.parameters),
        "largest logit": lambda row: short(row.largest_logit),
        "bound": lambda row: short(row.bound) + (f" ({notes[row.note]})" if row.note else ""),
    }
    below = "".join(f"<div>({letter}) {text(note)}</div>" for note, letter in notes.items())
    return Markup(table(tuple(columns), [[cell(row) for cell in columns.values()] for row in rows]) + below)


def csv_table(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(rows[0])], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()


def latex_table(rows: Sequence[Row]) -> str:
    """A complete tabular: \\usepackage{booktabs} is all that it needs."""
    columns: dict[str, Callable[[Row], str]] = {
        "form": lambda row: row.form,
        "layout": lambda row: row.layout,
        "anchors": lambda row: row.placement,
        "layers": lambda row: _latex(row.layers),
        "$H$": lambda row: _latex(row.heads),
        "$p$": lambda row: _latex(row.anchors),
        r"$\beta$": lambda row: _latex(row.beta),
        "parameters": lambda row: _latex(row.parameters),
        "largest logit": lambda row: _latex(row.largest_logit),
        "bound": lambda row: _latex(row.bound) + ("" if row.reachable else "$^{*}$"),
        "multiply-adds": lambda row: _latex(row.multiply_adds),
    }
    lines = [rf"\begin{{tabular}}{{lll{'r' * (len(columns) - 3)}}}", r"\toprule", " & ".join(columns) + r" \\"]
    for within, block in _blocks(rows):
        lines.append(r"\midrule")
        lines += [] if within is None else [rf"\multicolumn{{{len(columns)}}}{{l}}{{within {_latex(within)}}} \\"]
        lines += [" & ".join(cell(row) for cell in columns.values()) + r" \\" for row in block]
    lines.append(r"\bottomrule")
    if not all(row.reachable for row in rows):
        notes = "; ".join(dict.fromkeys(row.note.replace("%", r"\%").replace("_", r"\_") for row in rows if row.note))
        lines.append(rf"\multicolumn{{{len(columns)}}}{{l}}{{$^{{*}}$ {notes}}} \\")
    return "\n".join([*lines, r"\end{tabular}", ""])


def short(number: float | None) -> str:
    """Three digits; whole numbers in full while they are short; a dash for what is not known."""
    if number is None or not isfinite(number):
        return "-"
    if isinstance(number, int) and number <= LONGEST:
        return f"{number:,}"
    if number == 0 or (isinstance(number, float) and 1e-2 <= abs(number) < 1000):
        return f"{number:.3g}"
    mantissa, exponent = _split(number)
    return f"{mantissa:.3g}e{exponent}"


def _latex(number: float | None) -> str:
    text = short(number)
    if text == "-":
        return "--"
    mantissa, _, exponent = text.partition("e")
    whole = mantissa.replace(",", r"\,")
    if not exponent:
        return f"${whole}$"
    return f"$10^{{{exponent}}}$" if whole == "1" else rf"${whole}\cdot 10^{{{exponent}}}$"


def _split(number: float) -> tuple[float, int]:
    """number = mantissa 10^exponent, the mantissa as it is written."""
    exponent = floor(log10(abs(number)))
    mantissa = float(f"{number / 10**exponent:.3g}") if exponent < 300 else number / 10.0**exponent
    return (mantissa / 10, exponent + 1) if abs(mantissa) >= 10 else (mantissa, exponent)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    both = enumerate(zip(cells, widths, strict=True))
    texts = [cell.ljust(width) if place < 3 else cell.rjust(width) for place, (cell, width) in both]
    return " ".join(texts).rstrip()


def _blocks(rows: Sequence[Row]) -> list[tuple[float | None, list[Any]]]:
    return [(within, list(block)) for within, block in groupby(rows, key=lambda row: row.within)]
