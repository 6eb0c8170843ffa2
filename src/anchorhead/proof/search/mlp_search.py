"""The largest error of a converted network that a search finds, to hold against the bound that a proof gives.

Errors add up where many neurons err at once. The search begins at inputs from all over the box and at its corners,
those at which a neuron's pre-activation is largest or smallest among them, and climbs from the worst
(proof.search.callable_search). To begin where activations bend finds no larger errors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.domain import Box
from anchorhead.language.expressions.precision import precision
from anchorhead.language.interpret import run
from anchorhead.language.numbers import Balls
from anchorhead.language.of_targets import program_of
from anchorhead.language.targets.mlp import Mlp
from anchorhead.network import Network
from anchorhead.proof.enclosures.balls import lower
from anchorhead.proof.search.callable_search import EACH, Search

EVALUATIONS = 20_000
MAX_PRODUCTS, MAX_BALLS = 2e9, 3e5
"""How many products the search may spend on the network, and on the target at the worst input, in balls."""
MAX_NUMBERS = 2**21
"""How many numbers of one layer a batch may hold."""
CLIMBERS, FIRST = 16, 0.01
"""How many climb, and with steps of which size, as a part of the box."""
PRECISION = 256


@dataclass(frozen=True, eq=False)
class Worst:
    """The largest error found, its input, the number of its output entry (all tokens in a row), and how many inputs
    were compared."""

    error: float
    x: Float[np.ndarray, "..."]
    output: int
    evaluations: int


def worst_error(network: Network, target: Mlp, on: Box, seed: int = 0, evaluations: int = EVALUATIONS) -> Worst:
    """The largest |network(x) - target(x)| found over the box, x in float64.

    The target is computed in extended precision where its activations are relu and abs, and else in float64, which
    rounds. The error returned is therefore computed again at the worst input, in balls, and is a lower bound of the
    true one; of networks with more than 300,000 weights it is what extended precision gives.
    """
    box, shape, program = on.broadcast_to(target.input_shape), target.input_shape, program_of(target)
    maps = [*(layer.affine for layer in target.hidden), target.readout]
    weights = sum(one.weight.size for one in maps)

    def computed(x: np.ndarray) -> np.ndarray:
        return network(x.reshape(-1, *shape), outside="ignore").reshape(len(x), -1)

    def errors(x: np.ndarray) -> np.ndarray:
        return np.abs(computed(x) - program(x.reshape(-1, *shape)).reshape(len(x), -1))

    allowed = max(64, min(int(evaluations), int(MAX_PRODUCTS / max(network.parameters, 10 * weights))))
    low, high = (end.reshape(-1).astype(np.float64) for end in (box.low, box.high))
    rows = max(1, MAX_NUMBERS // max(one.outputs for one in maps))
    search = Search.of(lambda x: errors(x).max(axis=1), low, high, seed, rows)
    anywhere = search.anywhere()
    some = search.rng.choice(len(anywhere), min(len(anywhere), allowed // 2), replace=False)
    starts = np.concatenate([_corners(search, [one.weight for one in maps], allowed // 10), anywhere[some]])
    _, x = search.climbed(starts, 1 + int(0.4 * allowed / (CLIMBERS * EACH)), FIRST, CLIMBERS)
    y = computed(x[None])
    if not np.isfinite(y).all():
        found = np.where(np.isfinite(y[0]), 0.0, np.inf)
    else:
        found = np.array(_ball_errors(target, x, y[0])) if weights <= MAX_BALLS else errors(x[None])[0].astype(float)
    return Worst(float(found.max()), x.reshape(shape).copy(), int(found.argmax()), search.evaluations)


def _corners(search: Search, weights: list[np.ndarray], rows: int) -> Float[np.ndarray, "rows inputs"]:
    """Corners at which an entry of some layer is as large or as small as the box allows, by the signs of the product of
    all weights up to there."""
    found, weight = [], np.eye(len(search.low))
    for one in weights:
        weight = one @ weight
        some = search.rng.choice(len(weight), min(len(weight), 1 + rows // (2 * len(weights))), replace=False)
        up = weight[some] > 0
        found += [np.where(up, search.high, search.low), np.where(up, search.low, search.high)]
    return np.concatenate(found)


def _ball_errors(target: Mlp, x: np.ndarray, y: np.ndarray) -> list[float]:
    """Lower bounds of |y - target(x)|."""
    program = program_of(target)
    with precision(PRECISION):
        tokens = Balls().constant(x.reshape(target.tokens or 1, -1), None)
        exact = run(program, [tokens], Balls())[program.output].reshape(-1)
        return [max(lower(abs(ball - one)), 0.0) for one, ball in zip(y.tolist(), exact, strict=True)]
