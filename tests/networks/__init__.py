"""The one table of networks that every suite uses: bounds, check, tampering, files, exporters, pictures, the page.

A new construction is one row in a file of this folder. Suites take names by their tags, `names("float64", "causal")`,
and build by name, `network("head (float64)")`; each is built once in a process, and only where it is used.
"""

from __future__ import annotations

from functools import cache

from anchorhead.network import Network

from . import converted, functions, heads, layers, learners, truncated_linear
from .inputs import inputs
from .row import DTYPES, KINDS, TAGS, Row

__all__ = ["DTYPES", "KINDS", "ROWS", "TAGS", "Row", "inputs", "names", "network", "row_of", "tags"]

ROWS: dict[str, Row] = {
    one.name: one for part in (layers, heads, truncated_linear, converted, functions, learners) for one in part.ROWS
}


def names(*wanted: str, without: tuple[str, ...] = ()) -> list[str]:
    """The names "row (dtype)" that have all tags wanted and none of the others; dtypes and kinds are tags, too."""
    unknown = {*wanted, *without} - {*TAGS, *KINDS, *DTYPES}
    if unknown:
        raise ValueError(f"{unknown}: no tag, kind or dtype")
    every = [f"{name} ({dtype})" for name in ROWS for dtype in DTYPES]
    return [name for name in every if {*wanted} <= tags(name) and not {*without} & tags(name)]


def row_of(name: str) -> Row:
    """The row of a name "row (dtype)"."""
    return ROWS[_parts(name)[0]]


def tags(name: str) -> frozenset[str]:
    """The tags of a name, its kind and its dtype."""
    return row_of(name).tags | {row_of(name).kind, _parts(name)[1]}


@cache
def network(name: str) -> Network:
    """The network of a name."""
    return row_of(name).build(_parts(name)[1])


def _parts(name: str) -> tuple[str, str]:
    what, _, dtype = name.removesuffix(")").rpartition(" (")
    return what, dtype
