"""Anchors of each example: registers that carry w ask those of their own, and weigh what they read alike.

Token (i, k) holds anchor k of the head for the link phi as it meets example i: slope_k x_i, offset_k, value_k x_i. A
register for each example carries w and asks: its logits

    slope_k (w . x_i) + offset_k          (for phi(s - y): slope_k (w . x_i - y_i) + offset_k)

are those of the head at the score s_i, so it reads phi(s_i) x_i. A logit also adds up *gates*, products of constants
that are 0 for the anchors that a register means, and at most -reach for all other tokens, whatever else their logits
are. A second attention weighs all registers alike, with logits that are exactly 0, and w takes the mean. For
phi(s) - y one more part stands for -y, a line in y; for g(s, y) anchors are points of a grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from anchorhead.heads.atom import Part
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.losses import LinkForm
from anchorhead.lemmas.learners.average import Moments
from anchorhead.lemmas.learners.links import Anchors
from anchorhead.lemmas.learners.loop import StepError
from anchorhead.lemmas.learners.norms import length_of
from anchorhead.lemmas.learners.update import Update
from anchorhead.proof.arithmetic.arithmetic import Arithmetic


@dataclass(frozen=True, eq=False)
class Piece:
    """One softmax: slopes of the score and of the label, offsets, two that add up, and values, (p,) each."""

    of_score: np.ndarray
    of_label: np.ndarray
    offsets: np.ndarray
    offsets_y: np.ndarray
    values: np.ndarray

    @classmethod
    def of_head(cls, part: Part, score: float, label: float, sign: float = 1.0) -> Piece:
        """A head on one argument, score times s + label times y, with its values multiplied by a sign."""
        slopes, offsets, values = part.astype(np.float64)
        return cls(score * slopes, label * slopes, offsets, np.zeros(len(slopes)), sign * values[:, 0])

    @classmethod
    def of_grid(cls, atom: GridAtom) -> Piece:
        """A grid over s and y."""
        (along_s, at_s), (along_y, at_y) = ([one.astype(np.float64) for one in axis] for axis in atom.axes)
        pairs = [np.meshgrid(one, two, indexing="ij") for one, two in ((along_s, along_y), (at_s, at_y))]
        (of_score, of_label), (offsets, offsets_y) = ([np.ravel(array) for array in pair] for pair in pairs)
        return cls(of_score, of_label, offsets, offsets_y, atom.values.astype(np.float64).reshape(-1))

    def __len__(self) -> int:
        return len(self.values)


def pieces_of(form: LinkForm, held: Anchors, labels: Sequence[Part]) -> tuple[Piece, ...]:
    """The softmaxes of what stands for a link; labels: the parts of a head for y, which is taken off."""
    if isinstance(held, GridAtom):
        return (Piece.of_grid(held),)
    label = -1.0 if form == "phi(s - y)" else 0.0
    own = (Piece.of_head(part, 1.0, label) for part in held)
    return *own, *(Piece.of_head(part, 0.0, 1.0, -1.0) for part in labels)


@dataclass(frozen=True, eq=False)
class SequenceStep:
    """What a step does to every register: numbers as they are stored.

    pieces     the softmaxes; what they read adds up to the push
    reach      by how much the logits of other examples, other parts and registers are lowered
    output     by which the mean push is multiplied: minus the rate
    update     what is kept of w and v
    gates      of how many products a logit is the sum beside those of the anchor
    """

    pieces: tuple[Piece, ...]
    reach: float
    output: float
    update: Update
    gates: int

    @classmethod
    def of(cls, target: Descent, pieces: tuple[Piece, ...], reach: float, dtype: str) -> SequenceStep:
        """Gates are the bits of an example's number and their opposites, parts, and one for registers."""
        gates = 2 * (target.examples - 1).bit_length() + len(pieces) + 1
        return cls(pieces, reach, float(np.dtype(dtype).type(-target.rate)), Update.of(target, dtype), gates)

    @cached_property
    def terms(self) -> int:
        """Of how many products a logit is the sum where the anchor is meant: with w, with the label, and offsets."""
        more = ("of_label", "offsets", "offsets_y")
        return len(self.update.kept) + sum(any(getattr(piece, name).any() for piece in self.pieces) for name in more)

    @cached_property
    def steepest(self) -> float:
        return max(float(np.abs([piece.of_score, piece.of_label]).max()) for piece in self.pieces)

    @cached_property
    def highest(self) -> float:
        """The largest |offset|."""
        return max(float((np.abs(piece.offsets) + np.abs(piece.offsets_y)).max()) for piece in self.pieces)

    @cached_property
    def largest(self) -> float:
        """The largest |value|, parts added up."""
        return sum(float(np.abs(piece.values).max()) for piece in self.pieces)

    def error(self, target: Descent, at: Moments, model: Arithmetic) -> StepError:
        """How far a step is from the exact one from the same w and v, links being known up to what `at` says.

        Registers add the same exact number to what each of them carries, so they stray by what rounding adds alone.
        """
        rate, off = abs(self.output), float(abs(Fraction(self.output) + Fraction(target.rate)))
        tiny = 1e3 * at.examples * model.tiny * (1 + self.largest) * (1 + at.x.max())
        tiny = tiny * (1 + self.steepest) * (1 + at.w.sum())
        read = at.xe + tiny
        push = at.xr + read
        uneven = math.expm1(2 * model.exp_error + float(model.gamma(2 * at.examples + 2))) * push
        sums_w, sums_v, _ = self.update.summed(rate * (push + uneven), len(self.pieces), at.w, at.v, model)
        wrong_w, wrong_v = self.update.wrong(target, at.w, at.v)
        once, shared = rate * uneven + tiny, rate * read + off * push
        of_w = length_of(shared + once + sums_w + wrong_w)
        apart_w, of_v, apart_v = 2 * length_of(once + sums_w), 0.0, 0.0
        if target.momentum:
            of_v, apart_v = length_of(shared + once + sums_v + wrong_v), 2 * length_of(once + sums_v)
        return StepError(of_w, of_v, of_w, (apart_w, apart_v))
