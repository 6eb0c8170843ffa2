"""Sphinx's settings."""

from __future__ import annotations

from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

import anchorhead
from tools.docstrings import structured

project = "Anchorhead"
author = "the Anchorhead authors"
version = release = anchorhead.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 2
html_theme = "furo"
html_title = "Anchorhead"
html_show_copyright = False
html_math_renderer = "mathml"
html_static_path = ["static"]
html_extra_path = ["extra"]
html_css_files = ["wide.css"]
smartquotes = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"


BAR = '<mo stretchy="false">&#x0007C;</mo>'
CLOSE_BAR = '<mo stretchy="false" lspace="0" rspace="0">&#x0007C;</mo>'
"""Without the space that browsers put around a bar, as around a relation: ours are absolute values."""


def mathml(latex: str, display: str) -> str:
    """A formula as MathML, which browsers show without scripts and without a network."""
    return convert(latex, display=display).replace(BAR, CLOSE_BAR)


def formula(self: Any, node: Any) -> None:
    """A formula in the text."""
    self.body.append(mathml(node.astext(), "inline"))
    raise SkipNode


def displayed_formula(self: Any, node: Any) -> None:
    self.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>')
    raise SkipNode


def docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = structured(lines)


def signature(app: Any, what: str, name: str, thing: Any, options: Any, given: str | None, result: str | None) -> Any:
    """Defaults that a factory makes have no text that Sphinx can read."""
    return (given and given.replace("<factory>", "...")), result


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", (formula, None), (displayed_formula, None))
    app.connect("autodoc-process-docstring", docstring)
    app.connect("autodoc-process-signature", signature)
