"""The form in which an expression is saved: its nodes in order, each naming its arguments by their places.

    sin(x)**2 + x     {"nodes": [["variable", "x"], ["sin", 0], ["integer_power", 2, 1], ["add", 2, 0]]}

A row is the operation, the data of number, variable, integer_power and where, then the places of the
arguments; the last row is the expression. Reading builds every node anew with the checks and the caps of the
parser.
"""

from __future__ import annotations

from typing import Any

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.build import MAX_NODES, check_size, make
from anchorhead.language.expressions.expression import Data, Expression, postorder

_WITH_DATA: dict[str, type] = {"number": float, "variable": str, "integer_power": int, "where": str}


def to_json(expression: Expression) -> dict[str, Any]:
    nodes = postorder(expression)
    place = {node: index for index, node in enumerate(nodes)}
    return {
        "nodes": [
            [node.op, *([node.data] if node.op in _WITH_DATA else []), *(place[arg] for arg in node.args)]
            for node in nodes
        ]
    }


def from_json(data: Any) -> Expression:
    rows = data.get("nodes") if isinstance(data, dict) else None
    if not isinstance(rows, list) or not rows:
        raise AnchorheadError('a saved expression is {"nodes": [[operation, ...], ...]}, with at least one node')
    if len(rows) > MAX_NODES:
        raise AnchorheadError(f"a saved expression with {len(rows):,} nodes: at most {MAX_NODES:,} are allowed")
    nodes: list[Expression] = []
    for index, row in enumerate(rows):
        try:
            nodes.append(_node(row, nodes))
        except AnchorheadError as error:
            raise AnchorheadError(f"node {index} of a saved expression: {error}") from error
    return check_size(nodes[-1])


def _node(row: Any, nodes: list[Expression]) -> Expression:
    if not isinstance(row, list) or not row or not isinstance(row[0], str):
        raise AnchorheadError(f"{str(row)[:80]} is not a list that begins with an operation")
    op, *rest = row
    value: Data = None
    if op in _WITH_DATA:
        wanted = _WITH_DATA[op]
        allowed = (int, float) if wanted is float else wanted
        if not rest or isinstance(rest[0], bool) or not isinstance(rest[0], allowed):
            raise AnchorheadError(f"{op} needs data of type {wanted.__name__}, not {str(rest[:1])[:80]}")
        try:
            value = wanted(rest.pop(0))
        except OverflowError as error:
            raise AnchorheadError("a number that no float64 can hold") from error
    for place in rest:
        if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < len(nodes):
            raise AnchorheadError(f"argument {str(place)[:80]} is not the place of an earlier node")
    return make(op, tuple(nodes[place] for place in rest), value)
