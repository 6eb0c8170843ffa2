"""The steps of learners: the numbers that are free in a layout, chosen; and the networks that are written from them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.learners.layouts import sequence
from anchorhead.constructions.learners.link_heads import link_grid, link_head
from anchorhead.constructions.learners.written import network_of
from anchorhead.constructions.single.head import best_head
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Part
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets import target_of
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.many_learners import ManyLearners
from anchorhead.lemmas.learners.average import Average
from anchorhead.lemmas.learners.links import Anchors
from anchorhead.lemmas.learners.own_anchors import Piece, pieces_of
from anchorhead.lemmas.learners.score import Scoring
from anchorhead.lemmas.learners.steps import (
    OUT_OF_REACH,
    ScoreLinks,
    SequenceLinks,
    link_of,
    linked_step,
    many_step,
    sequence_step,
    squared_step,
)
from anchorhead.network import Network
from anchorhead.network.dtypes import dtype_name
from anchorhead.proof.arithmetic.silence import SILENT

CLIP_ANCHORS = {"float64": 5, "float32": 7}
"""With these hardtanh is proven within 7.3e-13 and 2.4e-6: its share is then no more than the rounding of w."""
ROOM = 2.0**20
"""How far logits stay from overflow, more than proofs ask for."""
CLIP_ROOM = 2.0**40
"""How far logits of a threshold stay from overflow when |w| is 1."""
ANY_SCORES = (-8.0, 8.0)
"""Where a link that serves on the whole line needs no range, or none is stated."""
FAR_SCORES = 2.0**24
"""How large scores may be before the logits of others come within reach, in the sequence layout."""
MAX_NUMBERS = 2**26
"""The most numbers that the Embed of a sequence may hold."""


def squared_network(target: Descent, sharpness: float, dtype: str) -> Network:
    """The network of a descent on the squared loss; sharpness: h, a power of two, so that queries are exact."""
    step = squared_step(Average.of(target, sharpness, dtype, clip_of(target, dtype)))
    return network_of(target, step, dtype)


def balanced_sharpness(residual: float, dtype: str) -> float:
    """The power of two where 13 (h r)^4, what two sharpnesses leave, meets the rounding 8 u / h, 4 times over."""
    unit = float(np.finfo(dtype).eps) / 2
    return float(2.0 ** round(np.log2((8 * unit / (52 * residual**4)) ** 0.2)))


def clip_of(target: Descent, dtype: str) -> Part | None:
    """The head for clip(w, -tau, tau) = tau hardtanh(w / tau), tau = rate threshold; none without a threshold.

    Slopes are those of the head for hardtanh over tau, values times tau, so an error of that head counts tau times.
    """
    if not target.threshold:
        return None
    tau = target.rate * target.threshold
    request = BuildRequest(dtype=dtype_name(dtype), anchors=CLIP_ANCHORS[dtype])
    (part,) = best_head(target_of("hardtanh", (-2.0, 2.0)), request).parts
    slopes, offsets, values = part.astype(np.float64)
    with np.errstate(over="ignore"):
        found = slopes / tau, offsets, values[:, 0] * tau
    if not float(np.abs(found).max()) <= float(np.finfo(dtype).max) / CLIP_ROOM:
        raise AnchorheadError(
            f"threshold={target.threshold:g} with rate={target.rate:g}: steps of {tau:.3g} are beyond what heads in "
            f"{dtype} can tell; {'leave it out' if tau < 1 else 'give a smaller one'}"
        )
    return Part.of(*found, dtype_name(dtype))


def linked_network(target: Descent, dtype: str, score_sharpness: float, sharpness: float) -> Network:
    """The network of a descent on any loss in the transformer layout."""
    held, clip = link_anchors(target, dtype), clip_of(target, dtype)
    return network_of(target, linked(target, held, clip, score_sharpness, sharpness, dtype), dtype)


def link_anchors(target: Descent, dtype: str) -> Anchors:
    """What stands for the link of a descent."""
    if target.loss.form != "g(s, y)":
        return link_head(target.loss.link, target.scores or ANY_SCORES, dtype_name(dtype)).parts
    if target.scores is None or target.labels is None:
        raise AnchorheadError(f"the link {target.loss.link} needs a range of scores and of labels: give both")
    return link_grid(target.loss.link, target.scores, target.labels, dtype_name(dtype))


def linked(
    target: Descent, held: Anchors, clip: Part | None, score_sharpness: float, sharpness: float, dtype: str
) -> ScoreLinks:
    """The step of a descent in the transformer layout.

    score_sharpness   h of the layer score, a power of two
    sharpness         h of the layer collect, a power of two

    What is not meant is lowered so far that it is out of reach at every score: twice the logits and SILENT would do in
    exact arithmetic, and sums of a few terms round by less than the rest.
    """
    scoring = Scoring.of(score_sharpness, dtype)
    least = 4 * (link_of(target, held).logits(scoring.most) + 2 * SILENT)
    far = 2.0 ** math.ceil(math.log2(least))
    if not far <= float(np.finfo(dtype).max) / ROOM:
        what = "a grid" if isinstance(held, GridAtom) else "heads"
        raise AnchorheadError(f"the link {target.loss.link} is too steep for {what} in {dtype}: smooth it more")
    return linked_step(target, held, far, scoring, Average.of(target, sharpness, dtype, clip), dtype)


def anchored(target: Descent, labels: float, dtype: str) -> SequenceLinks:
    """The step of a descent in the sequence layout.

    labels   the largest |y|, for the part for -y of the form phi(s) - y
    """
    if target.threshold:
        raise AnchorheadError('layout="sequence" has no threshold: use layout="transformer", or decay in its place')
    form, held = target.loss.form, link_anchors(target, dtype)
    line: tuple[Part, ...] = ()
    if form == "phi(s) - y":
        line = link_head(parse("x"), (-labels or -1.0, labels or 1.0), dtype_name(dtype)).parts
    pieces = pieces_of(form, held, line)
    _require_room(target, pieces)
    return sequence_step(target, held, line, _reach(pieces, dtype), dtype)


def _require_room(target: Descent, pieces: Sequence[Piece]) -> None:
    """Refuses a sequence with too many weights."""
    n, d, each = target.examples, target.features, sum(len(piece.values) for piece in pieces)
    width = sequence.Slots(target, len(pieces)).width
    numbers = n * each * width * (d + 2)
    if numbers > MAX_NUMBERS:
        raise AnchorheadError(
            f"{n:,} examples with {each} anchors each and {d} features make {n * each:,} tokens of {width} "
            f"features, {numbers:,} weights: at most {MAX_NUMBERS:,}. Use fewer examples, or another layout"
        )


def _reach(pieces: Sequence[Piece], dtype: str) -> float:
    """A power of two, far above all logits for scores up to FAR_SCORES."""
    steepest = max(float(np.abs([piece.of_score, piece.of_label]).max()) for piece in pieces)
    highest = max(float((np.abs(piece.offsets) + np.abs(piece.offsets_y)).max()) for piece in pieces)
    needed = max(OUT_OF_REACH, 4 * (FAR_SCORES * steepest + highest))
    if not needed <= float(np.finfo(dtype).max) / ROOM:
        raise AnchorheadError(f"the link's head is too steep for {dtype}: a slope of {steepest:.3g}; use float64")
    return float(2.0 ** np.ceil(np.log2(needed)))


def many_network(target: ManyLearners, dtype: str) -> Network:
    """The network of many learners."""
    reach, stored = (-target.reach, target.reach), dtype_name(dtype)
    held = [link_head(loss.link, reach, stored).parts for loss in target.losses]
    return network_of(target, many_step(target, held, balanced_sharpness(target.reach / 4, dtype), dtype), dtype)
