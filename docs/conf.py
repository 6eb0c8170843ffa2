"""Sphinx's settings."""

from __future__ import annotations

from typing import Any

import anchorhead

project = "Anchorhead"
author = "the Anchorhead authors"
version = release = anchorhead.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 2
html_theme = "furo"
html_title = "Anchorhead"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"


def as_written(
    app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:  # the names are Sphinx's
    """Docstrings are laid out by hand, with formulas in columns: they are shown as they are."""
    if any(lines):
        lines[:] = ["::", "", *(f"    {line}" for line in lines), ""]


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", as_written)
