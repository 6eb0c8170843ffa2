"""Softmax attention as ONNX nodes: MatMul, Softmax, Add and changes of shape, nothing else."""

from __future__ import annotations

import math
from functools import partial, reduce
from typing import Any

import numpy as np
from onnx import numpy_helper
from torch import Tensor

from anchorhead.export.onnx_graph import Flow, Graph
from anchorhead.export.onnx_linear import Flows, array, on_each
from anchorhead.network.modules.attention import AttentionModule
from anchorhead.network.stream import Kind


def attended(graph: Graph, module: AttentionModule, name: str, tokens: Flows) -> Flows:
    """y = skip(x) + bias + sum over heads of what is read, for each kind of token that is needed."""
    keys: Flows = {kind: _heads(graph, tokens[kind], module.key, f"{name}.key") for kind in module.seen}
    values: Flows = {kind: _heads(graph, tokens[kind], module.value, f"{name}.value") for kind in module.seen}
    result: Flows = {}
    for kind in module.kinds:
        x = tokens[kind]
        parts = [] if module.skip is None else [on_each(graph, module.skip, f"{name}.skip", x)]
        if kind in module.asking:
            queries = _heads(graph, x, module.query, f"{name}.query")
            parts.append(_written(graph, module, name, _read(graph, module, kind, queries, keys, values)))
        if not parts:
            nothing = np.zeros((module.query.shape[-1], module.out.shape[1]), graph.store.dtype)
            parts.append(graph.matmul(x, Flow(graph.constant(nothing, f"{name}.nothing"), False)))
        if module.bias is not None:
            parts.append(Flow(graph.constant(array(module.bias), f"{name}.bias"), False))
        result[kind] = reduce(graph.add, parts)
    return result


def _heads(graph: Graph, x: Flow, weight: Tensor, name: str) -> Flow:
    """Queries, keys or values, (..., tokens, features) to (..., heads, tokens, size)."""
    heads, size, width = weight.shape
    known = Flow(graph.constant(array(weight).reshape(heads * size, width).T, name), False)
    return graph.transposed(graph.reshaped(graph.matmul(x, known), heads, size), 1, 0, 2)


def _written(graph: Graph, module: AttentionModule, name: str, read: Flow) -> Flow:
    """sum_h O_h read_h: the heads' values side by side, times all O_h one below the other."""
    heads, outputs, size = module.out.shape
    weight = array(module.out).transpose(0, 2, 1).reshape(heads * size, outputs)
    beside = graph.reshaped(graph.transposed(read, 1, 0, 2), heads * size)
    return graph.matmul(beside, Flow(graph.constant(weight, f"{name}.out"), False))


def _read(graph: Graph, module: AttentionModule, kind: Kind, queries: Flow, keys: Flows, values: Flows) -> Flow:
    """The averages that one kind of token reads, (..., heads, tokens, value size)."""
    if module.grid is not None:
        weights = graph.softmax(_grid_logits(graph, module.grid, int(module.query.shape[1]), queries, keys["register"]))
        return graph.matmul(weights, graph.sliced(values["register"], -2, 0, module.points))
    if module.mask == "self+registers" and kind != "register":
        return _self_and_registers(graph, kind, queries, keys, values)
    visible = module.visible[kind]
    logits = [graph.matmul(queries, graph.transposed(keys[seen], 0, 2, 1)) for seen in visible]
    if module.mask == "causal" and kind == "input":
        logits[0] = graph.add(logits[0], _later(graph, queries))
    weights = graph.softmax(graph.beside(logits, -1, 3))
    counts = module.stream.count()
    parts = [
        graph.matmul(_part(graph, weights, seen, visible, counts), values[seen]) if len(visible) > 1
        else graph.matmul(weights, values[seen])
        for seen in visible
    ]  # fmt: skip
    return reduce(graph.add, parts)


def _part(graph: Graph, weights: Flow, seen: Kind, visible: tuple[Kind, ...], counts: dict[Kind, Any]) -> Flow:
    """The weights of one kind of token. How many inputs there are may be free: ends are counted from the back."""
    behind = sum(counts[kind] for kind in visible[visible.index(seen) + 1 :])
    start = 0 if seen == visible[0] else -(behind + counts[seen])
    return graph.sliced(weights, -1, start, -behind if behind else None)


def _later(graph: Graph, queries: Flow) -> Flow:
    """-inf where a token would see a later one, else 0: (tokens, tokens)."""
    count = graph.node("Shape", queries.name, start=-2, end=-1)
    square = graph.node("Concat", count, count, axis=0)
    endless = numpy_helper.from_array(np.array([-np.inf], graph.store.dtype))
    full = graph.node("ConstantOfShape", square, value=endless)
    one = graph.constant(np.array(1, dtype=np.int64), "one")
    return Flow(graph.node("Trilu", full, one, upper=1), False)


def _self_and_registers(graph: Graph, kind: Kind, queries: Flow, keys: Flows, values: Flows) -> Flow:
    own_key, own_value = graph.unsqueezed(keys[kind], -1), graph.unsqueezed(values[kind], -2)
    own = graph.squeezed(graph.matmul(graph.unsqueezed(queries, -2), own_key), -1)
    shared = [graph.matmul(queries, graph.transposed(keys["register"], 0, 2, 1))] if "register" in keys else []
    weights = graph.softmax(graph.beside([own, *shared], -1, 3))
    first = graph.unsqueezed(graph.sliced(weights, -1, 0, 1), -1)
    read = graph.squeezed(graph.matmul(first, own_value), -2)
    if not shared:
        return read
    return graph.add(read, graph.matmul(graph.sliced(weights, -1, 1, None), values["register"]))


def _grid_logits(graph: Graph, sides: tuple[int, ...], size: int, queries: Flow, keys: Flow) -> Flow:
    """Sums over axes of the logits along each, for all points, row by row."""
    each = size // len(sides)
    parts: list[Flow] = []
    for axis, side in enumerate(sides):
        stride = math.prod(sides[axis + 1 :])
        block = (axis * each, (axis + 1) * each)
        along = graph.sliced(graph.sliced(keys, -2, 0, side * stride, stride), -1, *block)
        parts.append(graph.matmul(graph.sliced(queries, -1, *block), graph.transposed(along, 0, 2, 1)))
    return reduce(partial(_grown, graph), parts)


def _grown(graph: Graph, logits: Flow, part: Flow) -> Flow:
    """Every logit so far with every one along the next axis: (..., points) and (..., side) to (..., points * side)."""
    every = graph.add(graph.unsqueezed(logits, -1), graph.unsqueezed(part, -2))
    kept = [0] * (2 + every.batched)
    return Flow(graph.node("Reshape", every.name, graph.numbers(*kept, -1)), every.batched)
