"""How loose a proven bound is; and the paper's own task, a random ReLU network on sequences, built in every way."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anchorhead.constructions.build_request import FORMS, LAYOUTS, BuildRequest, Form, Layout
from anchorhead.constructions.passes.run import proven_mlp
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Dtype
from anchorhead.language.expressions.parser import parse
from anchorhead.language.forms import mlp_of
from anchorhead.language.targets.mlp import Affine, Hidden, Mlp
from anchorhead.network import Attention, Network
from anchorhead.progress import Progress, Status, progress_line
from anchorhead.proof.search.mlp_search import worst_error

SAMPLES = 2000


@dataclass(frozen=True)
class Looseness:
    """bound: what is proven; error: the largest that a search found; range: over which outputs were seen to go."""

    bound: float
    error: float
    range: float

    @property
    def ratio(self) -> float:
        return self.bound / max(self.error, 1e-300)


def looseness(network: Network, seed: int = 0) -> Looseness:
    """The bound of a converted network beside the largest error that a search finds."""
    known, program = network.derivation, network.lowered
    if known is None or program is None or known.kind != "mlp" or network.certificate is None:
        raise AnchorheadError("how loose a bound is can be told of a converted network with its certificate")
    target, on = mlp_of(program), network.certificate.on
    box = on.broadcast_to(target.input_shape)
    x = np.random.default_rng(seed).uniform(box.low, box.high, (SAMPLES, *target.input_shape))
    y = program(x)
    worst = worst_error(network, target, on, seed)
    return Looseness(network.certificate.bound, worst.error, float(y.max() - y.min()))


@dataclass(frozen=True)
class TaskRow:
    """One way to build the network, its sizes and its errors; seconds: to convert and prove."""

    dtype: str
    form: str
    layout: str
    heads: int
    anchors: int
    parameters: int
    within: float
    bound: float
    error: float
    relative: float
    seconds: float


def paper_task(
    tokens: int = 20,
    features: int = 5,
    neurons: int = 10,
    within: Sequence[tuple[Dtype, float]] = (("float64", 1e-6), ("float32", 2e-2)),
    seed: int = 0,
    progress: Progress | bool | None = True,
) -> list[TaskRow]:
    """The paper's experiment: X uniform in [0, 1]^(tokens x features), a ReLU network with standard normal weights.

    Rows for both forms in both layouts, in each dtype within the error that is asked for there.
    """
    target = random_relu_network(tokens, features, neurons, seed)
    ways: list[tuple[Dtype, float, Form, Layout]]
    ways = [(dtype, error, form, layout) for dtype, error in within for form in FORMS[:2] for layout in LAYOUTS]
    rows = []
    with progress_line(progress, "converting") as tell:
        for done, (dtype, error, form, layout) in enumerate(ways):
            tell(Status(f"{form}, {layout}, {dtype}", share=done / len(ways)))
            began = time.perf_counter()
            network = proven_mlp(target, Box.of((0, 1)), BuildRequest(error, dtype, form, layout)).network
            seconds = time.perf_counter() - began
            found = looseness(network, seed)
            heads = sum(layer.heads for layer in network.layers if isinstance(layer, Attention))
            anchors = max(entry.anchors for entry in network.derivation.entries)  # type: ignore[union-attr]
            rows.append(
                TaskRow(
                    dtype,
                    form,
                    layout,
                    heads,
                    anchors,
                    network.parameters,
                    error,
                    found.bound,
                    found.error,
                    found.bound / found.range,
                    seconds,
                )
            )
    return rows


def random_relu_network(tokens: int, features: int, neurons: int, seed: int) -> Mlp:
    """tokens x features inputs, one hidden layer, as many outputs; all weights and biases standard normal."""
    rng = np.random.default_rng(seed)
    size = tokens * features
    hidden = Hidden.of(rng.standard_normal((neurons, size)), rng.standard_normal(neurons), parse("relu(x)"))
    return Mlp((hidden,), Affine(rng.standard_normal((size, neurons)), rng.standard_normal(size)), tokens)
