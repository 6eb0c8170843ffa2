"""Whether the output of a token depends on earlier tokens alone: read off weights, proven of expressions, or refuted.

An expression is proven causal by multiplying it out (normal_form): what is left must not contain later tokens.
It is refuted by two inputs that agree up to a token and give it outputs which differ, computed in balls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.build import number
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.normal_form import depends_on
from anchorhead.language.expressions.precision import precision
from anchorhead.language.several import SeveralVariables
from anchorhead.language.targets.mlp import Mlp
from anchorhead.language.targets.opaque_several import CallableSeveral

PAIRS = 2_000
PRECISION = 200
SAME = 1e-9
"""Values of a callable that differ by no more than this part of their size count as equal: it rounds."""


def require_causal(target: Mlp) -> None:
    """Raises unless output token i depends on input tokens up to i only, naming the weights that break it."""
    if target.tokens is None:
        raise AnchorheadError("causal=True without tokens: say how many tokens the network's vectors hold, tokens=")
    features = target.inputs // target.tokens
    latest = np.arange(target.inputs) // features
    origin: list[np.ndarray] = []
    maps = [*(layer.affine for layer in target.hidden), target.readout]
    for affine in maps:
        reach = np.where(affine.weight != 0, latest, -1)
        origin.append(reach.argmax(axis=1))
        latest = reach.max(axis=1)
    own = np.arange(target.outputs) // (target.outputs // target.tokens)
    broken = np.flatnonzero(latest > own)
    if not len(broken):
        return
    output = int(broken[0])
    path, place = [], output
    for layer in range(len(maps) - 1, -1, -1):
        before = int(origin[layer][place])
        path.append(f"layer {layer + 1}'s weight[{place}, {before}] = {maps[layer].weight[place, before]:.4g}")
        place = before
    raise AnchorheadError(
        f"causal=True, but output token {own[output]} depends on input token {latest[output]}: "
        f"{', which reads '.join(path)}. Set such weights to 0, or leave out causal="
    )


def without_later_tokens(target: SeveralVariables) -> SeveralVariables:
    """The same functions written without later tokens; raises where one depends on them, with a counterexample."""
    if target.tokens is None:
        raise AnchorheadError("causal=True without tokens: say how many tokens there are, tokens= and features=")
    low, high = np.array(target.low), np.array(target.high)
    middle = dict(zip(target.variables, low / 2 + high / 2, strict=True))
    features, result = len(target.variables) // target.tokens, []
    for place, expression in enumerate(target.expressions):
        token = place // target.columns
        later = [name for name in target.variables[(token + 1) * features :] if name in expression.variables]
        left = depends_on(expression) if later else frozenset()
        if left & set(later):
            raise _refuted(expression, token, target.variables, features, (low, high))
        middles = {name: number(float(middle[name])) for name in later}
        result.append(expression.substitute(middles) if later else expression)
    return replace(target, functions=tuple(result))


def _refuted(
    expression: Expression,
    token: int,
    variables: Sequence[str],
    features: int,
    box: tuple[np.ndarray, np.ndarray],
) -> AnchorheadError:
    """What is wrong with an output: two inputs for which it differs, certainly; or else that nothing is known."""

    def values(x: Float[np.ndarray, "n inputs"]) -> Float[np.ndarray, "n 1"]:
        return np.asarray(expression.values(dict(zip(variables, x.T, strict=True))) * np.ones(len(x)))[:, None]

    found = _differing(values, token, features, box)
    if found is not None:
        with precision(PRECISION):
            points = [{name: arb(float(v)) for name, v in zip(variables, x, strict=True)} for x in found]
            balls = [expression.ball(point) for point in points]
            if not balls[0].overlaps(balls[1]):
                return _counterexample(token, features, found, [float(ball.mid()) for ball in balls])
    later = ", ".join(name for name in variables[(token + 1) * features :] if name in expression.variables)
    return AnchorheadError(
        f"causal=True: {expression}, an output of token {token}, is written with {later}, and it was neither proven "
        "that it does not depend on this, nor found that it does: write it without, or leave out causal="
    )


def require_causal_values(target: CallableSeveral) -> int:
    """How many pairs of inputs were tried on a function of which only values are known; raises if one refutes it."""
    tokens = target.tokens or 1
    features, columns = len(target.variables) // tokens, target.outputs // tokens
    for token in range(tokens - 1):

        def own(x: Float[np.ndarray, "n inputs"], token: int = token) -> Float[np.ndarray, "n columns"]:
            return target.values(x)[:, token * columns : (token + 1) * columns]

        found = _differing(own, token, features, (np.array(target.low), np.array(target.high)))
        if found is not None:
            y = [own(x[None])[0] for x in found]
            worst = int(np.abs(y[0] - y[1]).argmax())
            raise _counterexample(token, features, found, [float(one[worst]) for one in y])
    return PAIRS * (tokens - 1)


def _differing(
    values: Callable[[np.ndarray], np.ndarray], token: int, features: int, box: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray] | None:
    """Two inputs that agree up to a token, and for which its values differ most, if by more than rounding."""
    rng = np.random.default_rng(0)
    low, high = (np.asarray(end, np.float64) for end in box)
    first, second = rng.uniform(low, high, (2, PAIRS, len(low)))
    ends = rng.random(second.shape)
    second = np.where(ends < 0.2, low, np.where(ends > 0.8, high, second))
    second[:, : (token + 1) * features] = first[:, : (token + 1) * features]
    one, two = values(first), values(second)
    size = np.maximum(np.abs(one), np.abs(two))
    off = np.where(np.isfinite(one) & np.isfinite(two), np.abs(one - two) - SAME * size, -1.0).max(axis=1)
    worst = int(off.argmax())
    return (first[worst], second[worst]) if off[worst] > 0 else None


def _counterexample(
    token: int, features: int, found: tuple[np.ndarray, np.ndarray], outputs: Sequence[float]
) -> AnchorheadError:
    later = np.flatnonzero(found[0] != found[1]) // features
    one, two = (np.round(x.reshape(-1, features), 6).tolist() for x in found)
    return AnchorheadError(
        f"causal=True, but output token {token} depends on input token {int(later.min())} or later: the inputs {one} "
        f"and {two} agree up to token {token}, and an output of it is {outputs[0]:.6g} and {outputs[1]:.6g}. Leave out "
        "causal=, or change the function"
    )
