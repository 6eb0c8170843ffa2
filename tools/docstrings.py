"""Docstrings as reStructuredText: paragraphs, formulas that are indented, and columns of names with what they mean."""

from __future__ import annotations

import re
from collections.abc import Iterator

ENTRY = re.compile(r"(\S(?:.*?\S)?) {2,}(\S.*)")
CODE = re.compile(r"`([^`]+)`")


def structured(lines: list[str]) -> list[str]:
    """The lines of a docstring as lines of reStructuredText."""
    return [line for block in _blocks(lines) for line in (*_structured(block), "")]


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Stretches between blank lines."""
    block: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line)
        elif block:
            yield block
            block = []


def _structured(block: list[str]) -> list[str]:
    if all(line.startswith(" ") for line in block) or block[0].startswith(">>>"):
        return _as_it_stands(block)
    heads = [ENTRY.fullmatch(line) for line in block if not line.startswith(" ")]
    if not any(heads):
        return [_escaped(line.strip()) for line in block]
    if any(head and "  " in head[2] for head in heads):
        return _as_it_stands(block)
    return _definitions(block)


def _as_it_stands(block: list[str]) -> list[str]:
    language = "pycon" if block[0].lstrip().startswith(">>>") else "text"
    return [f".. code-block:: {language}", "", *(f"    {line}" for line in block)]


def _definitions(block: list[str]) -> list[str]:
    """Each name a term; lines that are indented go on with what was said of it."""
    result: list[str] = []
    for line in block:
        entry = ENTRY.fullmatch(line)
        if line.startswith(" "):
            result.append(f"    {_escaped(line.strip())}")
        elif entry:
            result += [f"``{entry[1]}``", f"    {_escaped(entry[2])}"]
        else:
            name, _, text = line.partition(":")
            result += [f"``{name}``", f"    {_escaped(text.strip()) or '...'}"]
    return result


def _escaped(text: str) -> str:
    """Characters that would mean something to reStructuredText; `code` stays code."""
    parts = CODE.split(text)
    plain = [re.sub(r"([\\*|_])", r"\\\1", part) for part in parts[::2]]
    code = [f"``{part}``" for part in parts[1::2]]
    return "".join(piece for pair in zip(plain, [*code, ""], strict=True) for piece in pair)
