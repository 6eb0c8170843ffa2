"""Linear maps as ONNX nodes: MatMul and Add, on each token or across the sequence."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from anchorhead.export.onnx_graph import Flow, Graph
from anchorhead.network.modules.tokens import LinearModule
from anchorhead.network.stream import KINDS, Kind

Flows = dict[Kind, Flow]


def linear(graph: Graph, module: LinearModule, name: str, tokens: Flows) -> Flows:
    if not module.across:
        return {kind: on_each(graph, module, name, tokens[kind]) for kind in module.kinds}
    x = graph.beside([tokens[kind] for kind in KINDS if kind in tokens], -2, 2)
    if module.mix is None:
        out, features, inside, width = module.weight.shape
        dense = array(module.weight).reshape(out * features, inside * width).T
        known = Flow(graph.constant(dense, f"{name}.weight"), False)
        flat = Flow(graph.node("Reshape", x.name, graph.numbers(*[0] * x.batched, 1, inside * width)), x.batched)
        y = graph.matmul(flat, known)
        y = Flow(graph.node("Reshape", y.name, graph.numbers(*[0] * x.batched, out, features)), x.batched)
    else:
        y = graph.matmul(weight(graph, module.mix, f"{name}.mix"), _on_features(graph, module, name, x))
    return {"input": y if module.bias is None else graph.add(y, weight(graph, module.bias, f"{name}.bias"))}


def on_each(graph: Graph, module: LinearModule, name: str, x: Flow) -> Flow:
    """The map on the features of each token."""
    y = _on_features(graph, module, name, x)
    return y if module.bias is None else graph.add(y, weight(graph, module.bias, f"{name}.bias"))


def _on_features(graph: Graph, module: LinearModule, name: str, x: Flow) -> Flow:
    known = Flow(graph.constant(array(module.weight).swapaxes(-1, -2), f"{name}.weight"), False)
    if module.weight.dim() == 2:
        return graph.matmul(x, known)
    blocks, _, size = module.weight.shape
    apart = graph.transposed(graph.reshaped(x, blocks, size), 1, 0, 2)
    return graph.reshaped(graph.transposed(graph.matmul(apart, known), 1, 0, 2), -1)


def array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()


def weight(graph: Graph, tensor: Tensor, name: str) -> Flow:
    """A weight as it is, a constant of the model."""
    return Flow(graph.constant(array(tensor), name), False)
