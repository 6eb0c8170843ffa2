"""A softmax over a tensor grid of anchors that computes functions of several quantities, f_1 … f_m.

build   heads.grids, whose grids constructions.grids.grid_network lays out
read    along every axis j a token asks with t_j = x_j - origin_j, and the keys, the values and nothing else are those
        of the grid whose error is known. Further axes pick: one of their points has the logit 0, all others are out of
        reach of every sum of logits, so that values of that point alone are read. Where t_j is 0 in place of an x_j
        that is hidden from a token, the origin stands for it: f must not depend on it
bound   |read + bias - f| <= exact + rounding (proof.grids), with f as new quantities: an entry that is read is the form
        f_n - bias_n. Zeros are read exactly
run     network.direct
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from anchorhead.heads.grids.grid_rounding import asked_error
from anchorhead.lemmas import interval
from anchorhead.lemmas.known import Known
from anchorhead.lemmas.record import Notes
from anchorhead.network import Attention
from anchorhead.proof.arithmetic.affine_forms import NOTHING, Forms, mapped
from anchorhead.proof.arithmetic.readings import Keys, Readings, Refusal, constants, of_grid
from anchorhead.proof.arithmetic.silence import out_of_reach, rounding_of
from anchorhead.proof.grids.proven_grid import GridClaim


def after_grid(known: Known, layer: Attention) -> Known:
    """What is known after an attention over a grid: its functions join the sources."""
    claim = known.claim(GridClaim)
    if known.sources.own or not claim.covers(known.sources):
        raise Refusal("the box of a grid is smaller than that of its variables")
    if layer.heads != 1 or len(layer.grid or ()) < claim.grid.atom.variables:
        raise Refusal("an attention has more heads, or fewer axes, than the grid that it is said to be")
    axes = of_grid(layer, known.inputs, known.others, known.sources, known.arithmetic)
    values = constants(layer.value[0], known.others.tokens(slice(layer.points)), known.arithmetic)
    if not values.exact:
        raise Refusal("the values of a grid are rounded")
    table = values.values.reshape(*(layer.grid or ()), -1)
    skip, passing = interval.skipped(layer, known.inputs, known.sources, known.arithmetic)
    reads = [_entries(axes, table, token, claim, known) for token in range(len(known.inputs.constant))]
    for token, (_, notes) in enumerate(reads):
        for one in notes:
            known.record.add(token, one)
    sources, before = claim.after(known.sources), passing.beside(len(claim.tokens))
    weight = np.concatenate([layer.output[0].astype(np.float64), skip], axis=1)
    joined = Forms.joined([Forms.joined([form for form, _ in reads]), before], axis=1)
    inputs = mapped(weight, layer.bias, joined, sources, known.arithmetic)
    others = interval.of_others(layer, known.inputs, known.others, known.sources, known.arithmetic)
    return known.explained(inputs, others, sources)


def _entries(
    axes: tuple[Readings, ...], table: Float[np.ndarray, "..."], token: int, claim: GridClaim, known: Known
) -> tuple[Forms, list[Notes]]:
    """What a token reads, entry by entry, over the sources and the functions, and which function each entry is."""
    d = claim.grid.atom.variables
    shown = table[(..., *(_picked(axes, axis, token, known) for axis in range(d, len(axes))), slice(None))]
    before, count = known.sources.count, len(claim.tokens)
    form = Forms.constants(np.zeros((1, shown.shape[-1]))).over(NOTHING, before + count)
    own = [n for n, reader in enumerate(claim.tokens) if reader == token]
    hidden, notes = None, []
    for entry in range(shown.shape[-1]):
        values = shown[..., entry]
        if not values.any():
            continue
        hidden = _asked(axes[:d], token, claim, known) if hidden is None else hidden
        atom = claim.grid.atom
        function = next((n for n in own if np.array_equal(values, atom.values[..., n])), None)
        if function is None:
            raise Refusal("the values of a grid are not those that it is said to have")
        if (hidden & claim.depends[function]).any():
            raise Refusal("a function depends on what is hidden from the token that reads it")
        own.remove(function)
        form.coefficients[0, entry, before + function] = 1.0
        form.constant[0, entry] = -float(atom.bias[function])
        form.approximation[0, entry], form.rounding[0, entry] = claim.grid.exact, claim.grid.rounding
        if claim.step is not None:
            numbers = 1.0, 0.0, 1.0, -float(atom.bias[function]), claim.grid.total
            notes.append(Notes.of_unit((claim.step, 0, function), numbers, [(0, entry)]))
    return form, notes


def _asked(axes: tuple[Readings, ...], token: int, claim: GridClaim, known: Known) -> Bool[np.ndarray, " axes"]:
    """Which axes a token asks along at the origin, because their variable is hidden from it; along all others it asks
    with x - origin, and the keys are the grid's."""
    grid, hidden = claim.grid, np.zeros(len(axes), bool)
    for j, (readings, place) in enumerate(zip(axes, claim.places, strict=True)):
        keys, t = readings.keys[readings.kinds[token]], readings.t.features(slice(token, token + 1))
        slopes, offsets = (array.astype(np.float64) for array in grid.atom.axes[j])
        if not keys.plain.all() or not (np.array_equal(keys.slopes, slopes) and np.array_equal(keys.offsets, offsets)):
            raise Refusal("the keys of a grid are not those that it is said to have")
        origin, (low, high) = float(grid.atom.origins[j]), (grid.low[j], grid.high[j])
        if not t.varying.any() and t.constant[0, 0] == 0 and low <= origin <= high:
            hidden[j] = True
            continue
        wanted = np.eye(known.sources.count)[place]
        same = (
            np.array_equal(t.coefficients[0, 0], wanted) and t.constant[0, 0] == -origin and not t.approximation.any()
        )
        if not same or not t.rounding[0, 0] <= asked_error(low, high, origin, known.arithmetic):
            raise Refusal("a grid is not asked with its variables, each less its origin")
    return hidden


def _picked(axes: tuple[Readings, ...], axis: int, token: int, known: Known) -> int:
    """The point of an axis whose values a token reads: at logit 0, all others out of reach of the whole sums."""
    keys, t = _constant(axes[axis], token)
    logits, sizes = keys.slopes * t + keys.offsets, np.abs(keys.slopes * t) + keys.sizes
    own = np.flatnonzero((sizes == 0) & (keys.offset_error == 0) & (keys.slope_error * abs(t) == 0))
    if not len(own):
        raise Refusal("a token picks no point of a grid's axis")
    most = [_largest_logit(readings, token, known) for number, readings in enumerate(axes) if number != axis]
    reach, terms = sum(size for size, _ in most), sum(count for _, count in most) + keys.terms.max()
    wrong = rounding_of(reach + sizes, terms, known.arithmetic) + keys.offset_error + keys.slope_error * abs(t)
    others = np.delete(logits + reach + wrong, own[0])
    if not out_of_reach(others, -reach - float(wrong[own[0]])).all():
        raise Refusal("a token reads more than one point of a grid's axis")
    return int(own[0])


def _constant(readings: Readings, token: int) -> tuple[Keys, float]:
    """The keys that a token meets, and the number that it asks with, where that does not depend on the input."""
    keys = readings.keys[readings.kinds[token]]
    if readings.t.varying[0, token] and not keys.still:
        raise Refusal("a point of a grid is picked by what depends on the input")
    return keys, float(readings.t.constant[0, token])


def _largest_logit(readings: Readings, token: int, known: Known) -> tuple[float, int]:
    """A bound on the sum of the absolute values of a logit's terms, and how many there are."""
    keys = readings.keys[readings.kinds[token]]
    reach = float(readings.t.features(slice(token, token + 1)).size(known.sources)[0, 0])
    sizes = (np.abs(keys.slopes) + keys.slope_error) * reach + keys.sizes + keys.offset_error
    return float(sizes.max()), int(keys.terms.max())
