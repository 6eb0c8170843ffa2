"""A network as an ONNX model, written from the grammar itself: what one reads there is the layers that there are."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
import onnx
from onnx import helper

from anchorhead.errors import AnchorheadError
from anchorhead.export.carried import texts
from anchorhead.export.onnx_graph import Flow, Graph, Store
from anchorhead.export.onnx_layers import embedded, stepped
from anchorhead.network import Network

OPSET = 17
IR_VERSION = 8
"""Both of 2022: old runtimes read them too."""
MAX_BYTES = 2**31 - 2**26
"""What the weights may take: a file of ONNX's format, protobuf, ends at 2 GiB, and names and nodes need room too."""


def make(network: Network) -> onnx.ModelProto:
    """The model of x (batch, tokens, inputs) to y (batch, tokens, outputs), without a token axis (batch, inputs) to
    (batch, outputs). The batch is free, 1 or more, since onnxruntime refuses some products of no matrices; so are the
    tokens where the network takes any number."""
    size = network.parameters * np.dtype(network.dtype).itemsize
    if size > MAX_BYTES:
        raise AnchorheadError(
            f'the weights of this network take {size:,} bytes: an ONNX file ends at 2 GiB; export it to="torch"'
        )
    module = network.module()
    store = Store(network.dtype)
    graph = Graph(store)
    x = Flow("x", True)
    tokens = embedded(graph, module.embed, x if network.token_axis else graph.unsqueezed(x, -2))
    for number, step in enumerate(module.steps):
        tokens = stepped(graph, step, f"steps.{number}", tokens)
    y = graph.batched(tokens[network.output], 2)
    y = y if network.token_axis else graph.squeezed(y, -2)
    graph.nodes.append(helper.make_node("Identity", [y.name], ["y"], name="y"))
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(network.dtype))
    last = network.streams[-1]
    made = helper.make_model(
        helper.make_graph(
            [*store.prologue, *graph.nodes],
            "anchorhead",
            [helper.make_tensor_value_info("x", kind, _shape(network, network.embed.tokens, network.embed.inputs))],
            [helper.make_tensor_value_info("y", kind, _shape(network, last.count()[network.output], last.width))],
            store.used([*store.prologue, *graph.nodes]),
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="anchorhead",
        producer_version=version("anchorhead"),
        doc_string=network.describe(),
    )
    helper.set_model_props(made, texts(network))
    onnx.checker.check_model(made)
    return made


def to_bytes(model: onnx.ModelProto, network: Network) -> bytes:
    """The file's content; texts are inside the model."""
    return model.SerializeToString()


def _shape(network: Network, tokens: int | None, features: int) -> tuple[str | int, ...]:
    return ("batch", "tokens" if tokens is None else tokens, features) if network.token_axis else ("batch", features)
