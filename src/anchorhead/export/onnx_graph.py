"""Nodes of an ONNX graph, written one after the other; a graph inside a Loop sees the names of the one around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper


@dataclass(frozen=True)
class Flow:
    """A value of the graph; `batched` says whether it has the axis of the batch in front or is the same for all."""

    name: str
    batched: bool


@dataclass(eq=False)
class Store:
    """What all graphs of a model share: the constants, each kept once, and the names that are taken."""

    dtype: str
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)
    prologue: list[onnx.NodeProto] = field(default_factory=list)
    count: int = 0

    def used(self, nodes: Iterable[onnx.NodeProto]) -> list[onnx.TensorProto]:
        """The constants that nodes read, those inside loops included."""
        names = set(_read(nodes))
        return [tensor for name, tensor in self.constants.items() if name in names]

    def fresh(self, what: str) -> str:
        self.count += 1
        return f"{what}_{self.count}"


@dataclass(eq=False)
class Graph:
    """A list of nodes that is being written. Axes are counted from the back, so that a batch in front changes none."""

    store: Store
    nodes: list[onnx.NodeProto] = field(default_factory=list)

    def inner(self) -> Graph:
        """The body of a Loop in this graph."""
        return Graph(self.store)

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = self.store.fresh(op)
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, array: np.ndarray, name: str) -> str:
        """A constant of the whole model; weights come in its dtype."""
        if name not in self.store.constants:
            self.store.constants[name] = numpy_helper.from_array(np.asarray(array, order="C"), name)
        return name

    def numbers(self, *values: int) -> str:
        """A list of whole numbers: axes, shapes, ends."""
        array = np.array(values, dtype=np.int64)
        return self.constant(array, f"numbers_{'_'.join(map(str, values))}")

    def matmul(self, left: Flow, right: Flow) -> Flow:
        return Flow(self.node("MatMul", left.name, right.name), left.batched or right.batched)

    def add(self, left: Flow, right: Flow) -> Flow:
        return Flow(self.node("Add", left.name, right.name), left.batched or right.batched)

    def softmax(self, x: Flow) -> Flow:
        return Flow(self.node("Softmax", x.name, axis=-1), x.batched)

    def reshaped(self, x: Flow, *last: int) -> Flow:
        """All axes but the first ones kept: (batch,) tokens, then those that are given; -1: what is left."""
        shape = [0] * (1 + x.batched) + list(last)
        return Flow(self.node("Reshape", x.name, self.numbers(*shape)), x.batched)

    def transposed(self, x: Flow, *order: int) -> Flow:
        """The axes without the batch's, in another order."""
        perm = [0, *(1 + axis for axis in order)] if x.batched else list(order)
        return Flow(self.node("Transpose", x.name, perm=perm), x.batched)

    def unsqueezed(self, x: Flow, axis: int) -> Flow:
        return Flow(self.node("Unsqueeze", x.name, self.numbers(axis)), x.batched)

    def squeezed(self, x: Flow, axis: int) -> Flow:
        return Flow(self.node("Squeeze", x.name, self.numbers(axis)), x.batched)

    def sliced(self, x: Flow, axis: int, start: int, stop: int | None, step: int = 1) -> Flow:
        end = np.iinfo(np.int64).max if stop is None else stop
        inputs = (self.numbers(one) for one in (start, end, axis, step))
        return Flow(self.node("Slice", x.name, *inputs), x.batched)

    def batched(self, x: Flow, axes: int) -> Flow:
        """The value with the batch's axis in front of its `axes` axes."""
        if x.batched:
            return x
        return Flow(self.node("Expand", x.name, self._batch(axes)), True)

    def beside(self, parts: list[Flow], axis: int, axes: int) -> Flow:
        """Values of so many axes, without the batch's, joined along one of them."""
        if len(parts) == 1:
            return parts[0]
        if any(part.batched for part in parts):
            parts = [self.batched(part, axes) for part in parts]
        return Flow(self.node("Concat", *(part.name for part in parts), axis=axis), parts[0].batched)

    def _batch(self, axes: int) -> str:
        """The shape (batch, 1, ..., 1), made once, before all else."""
        name, before = f"batch_{axes}", self.store.prologue
        if not any(name in node.output for node in before):
            if not before:
                before.append(helper.make_node("Shape", ["x"], ["batch"], name="batch", start=0, end=1))
            ones = self.numbers(*[1] * axes)
            before.append(helper.make_node("Concat", ["batch", ones], [name], name=name, axis=0))
        return name


def _read(nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
    for node in nodes:
        yield from node.input
        for attribute in node.attribute:
            yield from _read(attribute.g.node)
