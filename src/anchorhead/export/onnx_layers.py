"""The grammar's layers as ONNX nodes, kind by kind, from the modules that know what is read later.

A sequence is kept as its three kinds of token, as in network.modules. A Flow with a batch has shape (batch, tokens,
features), one without (tokens, features); those of heads (batch, heads, tokens, size) and (heads, tokens, size).
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper
from torch import nn

from anchorhead.export.onnx_attention import attended
from anchorhead.export.onnx_graph import Flow, Graph
from anchorhead.export.onnx_linear import Flows, array, linear, weight
from anchorhead.network.modules.attention import AttentionModule
from anchorhead.network.modules.network import EmbedModule, RepeatModule
from anchorhead.network.modules.tokens import LinearModule, SoftmaxModule
from anchorhead.network.stream import Kind


def embedded(graph: Graph, module: EmbedModule, x: Flow) -> Flows:
    """Output token i is weight_i x_source(i) + bias_i; registers and states are constants."""
    tokens: Flows = {}
    if "input" in module.kinds:
        if module.source is not None:
            source = graph.constant(module.source.numpy(), "embed.source")
            x = Flow(graph.node("Gather", x.name, source, axis=1), True)
        dense = array(module.weight).swapaxes(-1, -2)
        known = Flow(graph.constant(dense, "embed.weight"), False)
        if dense.ndim == 3:
            x = graph.squeezed(graph.matmul(graph.unsqueezed(x, -2), known), -2)
        else:
            x = graph.matmul(x, known)
        tokens["input"] = graph.add(x, weight(graph, module.bias, "embed.bias"))
    for kind in ("register", "state"):
        constant = getattr(module, kind)
        if kind in module.kinds and constant is not None:
            tokens[kind] = weight(graph, constant, f"embed.{kind}")
    return tokens


def stepped(graph: Graph, module: nn.Module, name: str, tokens: Flows) -> Flows:
    """What leaves a layer after the Embed; `name` is that of its weights in the state_dict."""
    match module:
        case LinearModule():
            return linear(graph, module, name, tokens)
        case SoftmaxModule():
            return {kind: _softmax(graph, module, tokens[kind]) for kind in module.kinds}
        case AttentionModule():
            return attended(graph, module, name, tokens)
        case RepeatModule():
            return _repeated(graph, module, name, tokens)
        case _:
            raise TypeError(f"a {type(module).__name__} is not a layer")


def _softmax(graph: Graph, module: SoftmaxModule, x: Flow) -> Flow:
    if len(set(module.groups)) == 1:
        apart = graph.reshaped(x, len(module.groups), module.groups[0])
        return graph.reshaped(graph.softmax(apart), -1)
    ends = np.cumsum(module.groups).tolist()
    parts = [graph.sliced(x, -1, end - size, end) for size, end in zip(module.groups, ends, strict=True)]
    return graph.beside([graph.softmax(part) for part in parts], -1, 2)


def _repeated(graph: Graph, module: RepeatModule, name: str, tokens: Flows) -> Flows:
    """A Loop; once is no loop. What a step makes different for each input has the batch's axis from the start."""
    if module.times == 1:
        after = _once(graph, module, name, tokens)
        return {kind: after[kind] for kind in module.kinds}
    while True:
        body = graph.inner()
        carried: Flows = {kind: Flow(graph.store.fresh(kind), flow.batched) for kind, flow in tokens.items()}
        after = _once(body, module, name, carried)
        grown: list[Kind] = [kind for kind in tokens if after[kind].batched and not tokens[kind].batched]
        if not grown:
            break
        for kind in grown:
            tokens = {**tokens, kind: graph.batched(tokens[kind], 2)}
    after: Flows = {kind: body.batched(after[kind], 2) if tokens[kind].batched else after[kind] for kind in tokens}
    left: Flows = {kind: Flow(graph.store.fresh(kind), flow.batched) for kind, flow in tokens.items()}
    times = graph.constant(np.array(module.times, dtype=np.int64), f"{name}.times")
    always = graph.constant(np.array(True), "always")
    inputs = [times, always, *(flow.name for flow in tokens.values())]
    loop = graph.store.fresh("Loop")
    outputs = [flow.name for flow in left.values()]
    written = _body(body, list(carried.values()), [after[kind] for kind in tokens], loop)
    graph.nodes.append(helper.make_node("Loop", inputs, outputs, name=loop, body=written))
    return {kind: left[kind] for kind in module.kinds}


def _once(graph: Graph, module: RepeatModule, name: str, tokens: Flows) -> Flows:
    for number, step in enumerate(module.steps):
        tokens = stepped(graph, step, f"{name}.steps.{number}", tokens)
    return tokens


def _body(graph: Graph, carried: list[Flow], after: list[Flow], loop: str) -> onnx.GraphProto:
    """The graph of one step. Its outputs are names of their own: a value that stays as it is may not be both."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(graph.store.dtype))
    step, go_on = f"{loop}_step", f"{loop}_go_on"
    still = graph.node("Identity", go_on)
    leaving = [graph.node("Identity", flow.name) for flow in after]
    inputs = [
        helper.make_tensor_value_info(step, TensorProto.INT64, ()),
        helper.make_tensor_value_info(go_on, TensorProto.BOOL, ()),
        *(helper.make_tensor_value_info(flow.name, kind, _free(flow)) for flow in carried),
    ]
    outputs = [
        helper.make_tensor_value_info(still, TensorProto.BOOL, ()),
        *(helper.make_tensor_value_info(out, kind, _free(flow)) for out, flow in zip(leaving, after, strict=True)),
    ]
    return helper.make_graph(graph.nodes, loop, inputs, outputs)


def _free(flow: Flow) -> list[None]:
    """A shape of which the number of axes is known."""
    return [None] * (2 + flow.batched)
