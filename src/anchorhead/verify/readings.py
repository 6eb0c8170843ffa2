"""Attention and softmax groups lowered to readings: per asker and head, a logit and a value for every key that is seen.

Masks, kinds of tokens, shared keys and softmax groups live here and nowhere else. A reading whose logits are affine in
one number t, as the dtype has it, is what lemmas are about; t is a form with errors, what it stands for is told by that
form, and the logits are exact functions of t up to their own rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anchorhead.verify.forms import Forms, Quantities, mapped
from anchorhead.verify.grammar import Attention, Stream
from anchorhead.verify.rounding import SLACK, Arithmetic, own_error, power_of_two
from anchorhead.verify.scalar.part import Part, silent


@dataclass(frozen=True, eq=False)
class Reading:
    """Logits in one number t, a form (1, 1) with an interval.

    logits   slopes, offsets and errors; its values are not set
    keys     which of the keys that were given these are: all, or after `heard` those that may weigh anything
    ends     between what t lies, as computed
    every    the logits of all keys that were given, and between what lies the number that they are in
    cancels  whether it asks with a number that is rounded, though no input moves it, so that t is 0: where that is one
             entry of the query, `every` is in it
    number   which number t is: of one name are sums of the same products of the same numbers, each in an order of its
             own, that are off the exact sum by at most `rounded`; None: t is like no other
    """

    t: Forms
    logits: Part
    keys: np.ndarray
    ends: tuple[float, float]
    every: tuple[Part, tuple[float, float]]
    cancels: bool = False
    number: int | tuple[int, int] | bytes | None = None
    rounded: float = 0.0

    @property
    def far(self) -> float:
        """A bound on |t|."""
        return max(abs(self.ends[0]), abs(self.ends[1]))

    @property
    def constant(self) -> bool:
        return not self.logits.slopes.any()

    @property
    def still(self) -> bool:
        """Whether no input moves its weights, for its logits are constant, or a single key is heard."""
        return self.constant or len(self.keys) == 1


def seen(layer: Attention, stream: Stream, kind: str, place: int) -> np.ndarray:
    """The tokens, numbered input, register, state, that the token at a place of a kind sees."""
    inputs, registers, states = stream.inputs or 0, stream.registers, stream.states
    first = {"input": 0, "register": inputs, "state": inputs + registers}
    every = np.arange(inputs + registers + states)
    own_registers = every[inputs : inputs + registers]
    if layer.grid is not None:
        return own_registers[: int(np.prod(layer.grid))]
    if layer.mask is None or (layer.mask == "causal" and kind == "state"):
        return every
    if kind == "register":
        return own_registers
    if layer.mask == "causal":
        return np.concatenate([every[: place + 1], own_registers])
    if layer.mask == "self+registers":
        return np.concatenate([[first[kind] + place], own_registers])
    return every[inputs:]


def lowered(
    query: Forms,
    keys: Forms,
    quantities: Quantities,
    model: Arithmetic,
    bias: np.ndarray | None = None,
    toward: Forms | None = None,
) -> Reading | None:
    """The logits sum_e q_e k_e + bias of a query (1, size) and keys (keys, size); None where not affine in one number.
    toward: the number that they are said to be affine in, each being a sum of its own.

    Constants may have errors: (q + dq)(k + dk) is off by |q||dk| + |k||dq| + |dq||dk|.
    """
    used = ~query.zero[0] & ~keys.zero.all(axis=0)
    if not keys.fixed[:, used].all():
        return None
    varying = np.flatnonzero(used & ~query.fixed[0])
    if toward is not None:
        return mixed(_dot(query, keys, bias, quantities, model), toward, quantities, model)
    if len(varying) > 1:
        return None
    if len(varying):
        return _in_entry(query, keys, used, int(varying[0]), quantities, model, bias)
    found = _in_entry(query, keys, used, None, quantities, model, bias)
    rounded = np.flatnonzero(used & (query.error[0] > 0))
    if len(rounded) == 1:
        again = _in_entry(query, keys, used, int(rounded[0]), quantities, model, bias)
        found = replace(found, every=again.every)
    return replace(found, cancels=len(rounded) > 0)


def _in_entry(
    query: Forms,
    keys: Forms,
    used: np.ndarray,
    entry: int | None,
    quantities: Quantities,
    model: Arithmetic,
    bias: np.ndarray | None,
) -> Reading:
    """Logits in one entry of a query, the others being constants; None: all are."""
    rest = np.flatnonzero(used & (np.arange(len(used)) != (-1 if entry is None else entry)))
    q, dq = query.constant[0, rest], query.error[0, rest]
    k, dk = keys.constant[:, rest], keys.error[:, rest]
    added = np.zeros(len(k)) if bias is None else bias
    products, most = q * k, (np.abs(q) + dq) * (np.abs(k) + dk) * SLACK
    exact = power_of_two(q) & (dq == 0) | power_of_two(k) & (dk == 0)
    sizes, terms = most.sum(axis=1) + np.abs(added), (most != 0).sum(axis=1) + (added != 0)
    exact_sizes = np.where(exact, most, 0.0).sum(axis=1) + np.abs(added)
    wrong = (np.abs(q) * dk + np.abs(k) * dq + dq * dk).sum(axis=1) * SLACK
    own = np.where((terms <= 1) & exact.all(axis=1), 0.0, own_error(terms) * sizes)
    offsets = products.sum(axis=1) + added
    t, slopes, steep = Forms.constants(np.zeros((1, 1))), np.zeros(len(k)), np.zeros(len(k))
    if entry is not None:
        t, slopes, steep = query.features([entry]), keys.constant[:, entry], keys.error[:, entry]
    found = reading(t, slopes, offsets, sizes, exact_sizes, terms, wrong + own, steep, quantities, model)
    return replace(found, number=entry)


def reading(
    t: Forms,
    slopes: np.ndarray,
    offsets: np.ndarray,
    sizes: np.ndarray,
    exact_sizes: np.ndarray,
    terms: np.ndarray,
    wrong: np.ndarray,
    wrong_slope: np.ndarray,
    quantities: Quantities,
    model: Arithmetic,
    whole: bool = False,
) -> Reading:
    nothing = np.zeros(len(slopes))
    part = Part(slopes, offsets, nothing, sizes, exact_sizes, terms, wrong, wrong_slope, nothing, model, whole)
    low, high = (float(end[0, 0]) for end in t.ends(quantities))
    return Reading(t.pruned(), part, np.arange(len(slopes)), (low, high), (part, (low, high)))


def heard(readings: Sequence[Reading | None]) -> list[Reading | None]:
    """The readings without the keys that weigh nothing. Readings with the same logits keep the same keys: those that
    are heard for some t between the ends of all of them, so that one proof serves all."""
    groups: dict[tuple, list[Reading]] = {}
    for one in readings:
        if one is not None:
            groups.setdefault((one.logits.slopes.tobytes(), one.logits.offsets.tobytes()), []).append(one)
    keys: dict[int, np.ndarray] = {}
    for group in groups.values():
        ends = min(one.ends[0] for one in group), max(one.ends[1] for one in group)
        loud = np.logical_or.reduce([~silent(one.logits, [ends], one.logits.model) for one in group])
        keys.update({id(one): np.flatnonzero(loud) for one in group})
    return [
        None if one is None else replace(one, logits=one.logits.only(keys[id(one)]), keys=keys[id(one)])
        for one in readings
    ]


def mixed(logits: Forms, toward: Forms, quantities: Quantities, model: Arithmetic) -> Reading | None:
    """Logits (1, keys) that are sums of their own, each with its error, all along one direction of the quantities; None
    where they are not.

    t is the number for which the steepest logit is right as computed: its error, divided by its slope, is one of t, and
    every other logit errs by its own and by |slope| times that. It is counted in units of a form (1, 1) that it is said
    to stand for, `toward`, and from where that is.
    """
    ids = np.union1d(logits.ids, toward.ids)
    size, nothing = quantities.size(ids), np.zeros(logits.shape[1])
    coefficients, offsets = logits.aligned(ids).coefficients[0], logits.constant[0]
    meant, middle = toward.aligned(ids).coefficients[0, 0], float(toward.constant[0, 0])
    steep = np.abs(coefficients).max(axis=1, initial=0.0)
    top = int(steep.argmax())
    if not steep[top] > 0:
        t = Forms.constants(np.zeros((1, 1)))
        found = reading(
            t, nothing, offsets, nothing, nothing, nothing, logits.error[0], nothing, quantities, model, True
        )
        return replace(found, cancels=True)
    along = int(np.abs(coefficients[top]).argmax())
    if meant[along] == 0:
        return None
    direction = coefficients[top] / (coefficients[top, along] / meant[along])
    slopes = coefficients[:, along] / direction[along]
    straight = slopes[:, None] * direction
    off = np.abs(coefficients - straight) @ size * SLACK
    if (off > 1e-3 * (steep.sum() + 1)).any():
        return None
    off += own_error(2) * ((np.abs(coefficients) + np.abs(straight)) @ size + np.abs(offsets) + np.abs(slopes * middle))
    wrong = logits.error[0] + off
    moved = wrong[top] / abs(slopes[top]) * SLACK
    share = logits.approximation[0, top] / abs(slopes[top])
    t = Forms(ids, direction[None, None], np.array([[middle]]), np.array([[share]]), np.array([[moved - share]]))
    wrong = wrong + np.abs(slopes) * moved * SLACK
    wrong[top] = 0.0
    offsets = offsets - slopes * middle
    return reading(t, slopes, offsets, nothing, nothing, nothing, wrong, nothing, quantities, model, True)


def _dot(query: Forms, keys: Forms, bias: np.ndarray | None, quantities: Quantities, model: Arithmetic) -> Forms:
    """The logits (1, keys) as forms of their own, keys being constants with errors: what these add may round by as much
    again, being added to a number of the dtype."""
    result = mapped(keys.constant, bias, query, quantities, model)
    uncertain = query.size(quantities) @ keys.error.T * (2 + 4 * model.gamma(query.shape[1] + 1) + 1e-9)
    return Forms(result.ids, *result.arrays[:3], result.rounding + uncertain)
