"""The networks of learners, certificates left out: the numbers that are free in a layout, chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.learners.approximating import approximating
from anchorhead.constructions.learners.layouts import direct, many, sequence, transformer
from anchorhead.constructions.learners.layouts.transformer import LinkedStep, least_far
from anchorhead.constructions.learners.link_heads import line_head, link_grid, link_head
from anchorhead.constructions.single.head import best_head
from anchorhead.errors import AnchorheadError
from anchorhead.language.targets import target_of
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.many_learners import ManyLearners
from anchorhead.lemmas.learners.anchors import ROOM, Anchors
from anchorhead.lemmas.learners.average import Average
from anchorhead.lemmas.learners.own_anchors import Piece, SequenceStep
from anchorhead.lemmas.learners.score import Scoring
from anchorhead.lemmas.learners.threshold import Clip
from anchorhead.lemmas.learners.update import Update
from anchorhead.network import Network
from anchorhead.network.dtypes import dtype_name

CLIP_ANCHORS = {"float64": 5, "float32": 7}
"""With these hardtanh is proven within 7.3e-13 and 2.4e-6: its share is then no more than the rounding of w."""
CLIP_ROOM = 2.0**40
"""How far logits of a threshold stay from overflow when |w| is 1."""
ANY_SCORES = (-8.0, 8.0)
"""Where a link that serves on the whole line needs no range, or none is stated."""
LEAST_REACH = 2.0**20
FAR_SCORES = 2.0**24
"""How large scores may be before the logits of others come within reach, in the sequence layout."""
MAX_NUMBERS = 2**26
"""The most numbers that the Embed of a sequence may hold."""


def squared_network(target: Descent, sharpness: float, dtype: str) -> Network:
    """The network of a descent on the squared loss; sharpness: h, a power of two, so that queries are exact."""
    step = Average.of(target, sharpness, dtype, clip_of(target, dtype))
    return approximating(direct.build(target, step, dtype), target)


def balanced_sharpness(residual: float, dtype: str) -> float:
    """The power of two where 13 (h r)^4, what two sharpnesses leave, meets the rounding 8 u / h, 4 times over."""
    unit = float(np.finfo(dtype).eps) / 2
    return float(2.0 ** round(np.log2((8 * unit / (52 * residual**4)) ** 0.2)))


def clip_of(target: Descent, dtype: str) -> Clip | None:
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
        found = np.stack([slopes / tau, offsets, values[:, 0] * tau], axis=1)
    if not float(np.abs(found).max()) <= float(np.finfo(dtype).max) / CLIP_ROOM:
        raise AnchorheadError(
            f"threshold={target.threshold:g} with rate={target.rate:g}: steps of {tau:.3g} are beyond what heads in "
            f"{dtype} can tell; {'leave it out' if tau < 1 else 'give a smaller one'}"
        )
    return Clip.of(found.astype(dtype))


def linked_network(target: Descent, dtype: str, score_sharpness: float, sharpness: float) -> Network:
    """The network of a descent on any loss in the transformer layout.

    score_sharpness   h of the layer score, a power of two
    sharpness         h of the layer collect, a power of two
    """
    of_two, scores = target.loss.form == "g(s, y)", target.scores
    if of_two and (scores is None or target.labels is None):
        raise AnchorheadError(f"the link {target.loss.link} needs a range of scores and of labels: give both")
    held: Anchors = (
        link_grid(target.loss, scores or ANY_SCORES, target.labels or 0.0, dtype)
        if of_two
        else link_head(target.loss, scores or ANY_SCORES, dtype).parts
    )
    scoring = Scoring.of(score_sharpness, target.loss.form == "phi(s - y)", dtype)
    far = 2.0 ** math.ceil(math.log2(least_far(scoring, held, target.labels)))
    if not far <= float(np.finfo(dtype).max) / ROOM:
        what = "a grid" if of_two else "heads"
        raise AnchorheadError(f"the link {target.loss.link} is too steep for {what} in {dtype}: smooth it more")
    step = LinkedStep(scoring, held, far, Average.of(target, sharpness, dtype, clip_of(target, dtype)))
    return approximating(transformer.build(target, step, dtype), target)


def sequence_network(
    target: Descent, dtype: str, scores: tuple[float, float] | None = None, labels: float = 4.0
) -> Network:
    """The network of a descent on any loss in the sequence layout.

    scores   the range of phi's argument that the head serves, in place of the target's own; see Descent
    labels   the largest |y|: for the residuals of a straight link, for the part for -y of the form phi(s) - y, and for
             the grid of the form g(s, y)
    """
    target = replace(target, scores=scores or target.scores or _scores(target, labels))
    if target.loss.form == "g(s, y)":
        target = replace(target, labels=target.labels or labels)
    if target.threshold:
        raise AnchorheadError('layout="sequence" has no threshold: use layout="transformer", or decay in its place')
    pieces = _pieces(target, labels, dtype)
    _require_room(target, pieces)
    step = SequenceStep(tuple(pieces), _reach(pieces, dtype), -target.rate, Update.of(target))
    return approximating(sequence.build(target, step, dtype), target)


def _scores(target: Descent, labels: float) -> tuple[float, float]:
    """What residuals of a straight link reach with a safe rate (see lemmas.learners.box), with some room; for others a
    range that serves standardised examples."""
    if target.loss.link.affine() is None:
        return ANY_SCORES
    grown = (1 + target.momentum) / (1 - target.momentum)
    reach = 1.125 * grown * np.sqrt(target.examples) * max(labels, 1.0)
    return -reach, reach


def _pieces(target: Descent, labels: float, dtype: str) -> list[Piece]:
    """The parts of the head for the link; their sum is what is read."""
    loss, scores = target.loss, target.scores or ANY_SCORES
    if loss.form == "g(s, y)":
        return [Piece.of_grid(link_grid(loss, scores, target.labels or labels, dtype))]
    parts = link_head(loss, scores, dtype).parts
    pieces = [Piece.of_head(part, 1.0, -1.0 if loss.form == "phi(s - y)" else 0.0) for part in parts]
    if loss.form == "phi(s) - y":
        pieces += [Piece.of_head(part, 0.0, 1.0, -1.0) for part in line_head(labels or 1.0, dtype).parts]
    return pieces


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
    needed = max(LEAST_REACH, 4 * (FAR_SCORES * steepest + highest))
    if not needed <= float(np.finfo(dtype).max) / 2**20:
        raise AnchorheadError(f"the link's head is too steep for {dtype}: a slope of {steepest:.3g}; use float64")
    return float(2.0 ** np.ceil(np.log2(needed)))


def many_network(target: ManyLearners, dtype: str) -> Network:
    """The network of many learners."""
    heads = tuple(link_head(loss, (-target.reach, target.reach), dtype).parts for loss in target.losses)
    step = many.ManyStep.of(target, heads, balanced_sharpness(target.reach / 4, dtype))
    return approximating(many.build(target, step, dtype), target)
