"""A head, what it approximates, and how well; also from numbers of one's own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from anchorhead.as_html import block, curve, folded, table
from anchorhead.as_html import shown as shown_html
from anchorhead.certificate import Certificate
from anchorhead.constructions.derivations import head_entries
from anchorhead.constructions.single.head_network import head_network
from anchorhead.decimals import beyond_float64, counted
from anchorhead.domain import Box, interval_text
from anchorhead.effort import Effort
from anchorhead.errors import AnchorheadError
from anchorhead.given import shown
from anchorhead.heads.atom import Atom, Part
from anchorhead.heads.solver.measure import estimate
from anchorhead.heads.solver.problem import Problem
from anchorhead.language.targets import CallableTarget, ScalarTarget, target_of
from anchorhead.lemmas.one_number import OneNumber
from anchorhead.lemmas.prove import prove_functions
from anchorhead.network import Network
from anchorhead.network.claim_table import ClaimTable
from anchorhead.network.dtypes import dtype_name
from anchorhead.network.named_inputs import side_by_side
from anchorhead.network.tensors import as_numbers, require_dense
from anchorhead.progress import Progress, Status, progress_line
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of, require_model
from anchorhead.proof.arithmetic.overflow import require_room
from anchorhead.proof.arithmetic.readings import Refusal
from anchorhead.proof.enclosures.ranges import range_of
from anchorhead.proof.heads.head import HeadBound, prove_head, target_words
from anchorhead.proof.heads.whole_head import WholeHead
from anchorhead.proof.statement import Statement

POINTS = 161
"""Through which a notebook draws a head."""
RANGE_CELLS = 64
"""On which the range of a function is enclosed: of no account, but for heads that are not what they are said to be."""
PROOFS = 10_000_000
"""The work (anchorhead.effort) that may go into the proofs of a head."""


@dataclass(frozen=True, eq=False)
class Head:
    """A head on a scalar: softmaxes that add up, what they approximate, and how well.

    parts        the softmaxes; each has slopes, offsets and values
    anchors      how many anchors there are in all
    network      the same as a Network of one token, which saves, exports and runs anywhere

        >>> head = ah.head("tanh", on=(-4, 4), within=1e-6)  # two anchors are tanh, exactly
        >>> head.anchors, len(head.parts)
        (2, 1)
    """

    atom: Atom
    target: ScalarTarget | CallableTarget
    network: Network

    @classmethod
    def of(
        cls,
        slopes: Any,
        offsets: Any = None,
        values: Any = None,
        *,
        bias: Any = 0.0,
        origin: float = 0.0,
        dtype: Any = "float64",
    ) -> BareHead:
        """A head from numbers of one's own: r(s) = bias + sum_k values_k softmax_k(slopes_k (s - origin) + offsets_k).

        slopes, offsets   (p,), one for each anchor; values (p,), or (p, m) for m outputs
        or                slopes alone: several softmaxes that add up, as head.parts are
        Nothing is known of it until `certify` proves what it is worth.

            >>> own = ah.Head.of([-1.0, 1.0], [0.0, 0.0], [-1.0, 1.0])  # tanh, exactly
            >>> own.certify("tanh", on=(-4, 4)).certificate.bound < 1e-14
            True
        """
        kind = dtype_name(dtype)
        numbers = [one for one in (slopes, offsets, values) if offsets is not None or values is not None]
        if any(one is None or not (as_numbers(one).size and np.isfinite(as_numbers(one)).all()) for one in numbers):
            raise AnchorheadError("slopes, offsets and values of a head: finite numbers, one of each for every anchor")
        if offsets is None and values is None:
            parts = [Part.of(part.slopes, part.offsets, part.values, kind) for part in _parts(slopes)]
        else:
            parts = [Part.of(as_numbers(slopes), as_numbers(offsets), as_numbers(values), kind)]
        outputs = parts[0].values.shape[1]
        if any(part.values.shape[1] != outputs for part in parts):
            raise AnchorheadError("softmaxes that add up have values of the same length each")
        whole = np.broadcast_to(as_numbers(bias), (outputs,))
        return BareHead(Atom.of(parts, float(origin), whole, kind))

    def __matmul__(self, other: Any) -> Network:
        return self.network @ other

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.atom.parts

    @property
    def anchors(self) -> int:
        return self.atom.anchors

    @property
    def dtype(self) -> str:
        return self.atom.dtype

    @property
    def on(self) -> tuple[float, float]:
        return self.target.low, self.target.high

    @property
    def certificate(self) -> Certificate:
        if self.network.certificate is None:
            raise AnchorheadError("the head has no certificate")
        return self.network.certificate

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """r(s), entry by entry, as the dtype computes it: head(0.3), or head(x=0.3) by the name of the variable.

        A number gives a number, an array or a tensor one of the same shape; several functions add an axis.
        """
        alone = len(inputs) == 1 and not named
        s = inputs[0] if alone else side_by_side(self.network.variables, inputs, named)[..., 0]
        given = require_dense(s) if isinstance(s, torch.Tensor) else as_numbers(s)
        y = self.network(given.reshape(-1, 1, 1))
        shape = tuple(given.shape) if self.target.outputs == 1 else (*given.shape, self.target.outputs)
        return y.reshape(shape)[()]

    def save(self, path: Any) -> None:
        """Writes the network, the target and the certificate to one safetensors file."""
        self.network.save(path)

    def describe(self) -> str:
        return self.network.describe()

    def _repr_html_(self) -> str:
        """The head over its target, its anchors and its certificate."""
        low, high = self.on
        s = np.linspace(low, high, POINTS)
        exact, computed = (
            np.asarray(y, np.float64).reshape(POINTS, -1)[:, 0] for y in (self.target.values(s), self(s))
        )
        known = self.certificate
        title = f"{self.target.name} on {interval_text(low, high)}: {known.kind} within {known.bound:.3g}"
        rows = [
            (
                number,
                *(f"{value:.8g}" for value in (slope, offset)),
                ", ".join(f"{one:.8g}" for one in np.ravel(values)),
            )
            for number, part in enumerate(self.parts, start=1)
            for slope, offset, values in zip(part.slopes, part.offsets, part.values, strict=True)
        ]
        return block(
            title,
            f"{counted(self.anchors, 'anchor')} in {counted(len(self.parts), 'part')}, {self.dtype}",
            curve("the function, broad and grey, and the head over it", s.tolist(), exact.tolist(), computed.tolist()),
            folded("anchors", table(("part", "slope", "offset", "value"), rows)),
            folded("certificate", shown_html(known)),
            kind=known.kind,
        )

    def __repr__(self) -> str:
        parts = f" in {len(self.parts)} parts" if len(self.parts) > 1 else ""
        known = f"{self.certificate.kind} within {self.certificate.bound:.3g}"
        where = f"{self.target.name} on {interval_text(*self.on)}"
        return f"Head({where}: {counted(self.anchors, 'anchor')}{parts}, {self.dtype}, {known})"


@dataclass(frozen=True, eq=False)
class BareHead:
    """Softmaxes on a scalar of which nothing is claimed: numbers that compute. `certify` makes a Head of it."""

    atom: Atom

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.atom.parts

    @property
    def anchors(self) -> int:
        return self.atom.anchors

    def __call__(self, s: Any) -> Any:
        """r(s), entry by entry, as the dtype computes it."""
        y = self.atom(as_numbers(s))
        return (y[..., 0] if y.shape[-1] == 1 else y)[()]

    def certify(
        self, function: Any, on: Any, *, lipschitz: float | None = None, progress: Progress | bool | None = True
    ) -> Head:
        """The head with a certificate of how far it is from a function on an interval, whatever that comes to.

        function, on, lipschitz   as in ah.head
        """
        target = target_of(function, on, lipschitz)
        if target.outputs != len(self.atom.bias):
            raise AnchorheadError(
                f"{target.outputs} functions for a head of {len(self.atom.bias)} outputs: one for each"
            )
        with progress_line(progress, "proving a head") as tell, beyond_float64():
            return certified_head(self.atom, target, Effort(PROOFS), tell)

    def __repr__(self) -> str:
        return f"BareHead({counted(self.anchors, 'anchor')} in {counted(len(self.parts), 'part')}, {self.atom.dtype})"


def certified_head(
    atom: Atom,
    target: ScalarTarget | CallableTarget,
    proofs: Effort,
    progress: Progress | None,
    bound: HeadBound | None = None,
    within: float | None = None,
) -> Head:
    """The head with its certificate: proven where the target is known (bound: by this proof), else measured.

    within   the error asked for, if one was
    """
    model = require_model(atom.dtype)
    network = head_network(atom, target)
    box = Box.of((target.low, target.high))
    require_room(network, box)
    opaque = isinstance(target, CallableTarget) and target.lipschitz is None
    if progress:
        progress(Status("measuring" if opaque else "proving", atom.anchors))
    step = network.program.output if network.program is not None else 0
    if opaque:
        certificate = _measured(atom, target, box)
        exact, rounding = (term.amount for term in certificate.terms)
        entries = head_entries(atom, target, exact, rounding, step, measured=True)
        network = network.with_entries(entries, ClaimTable.empty())
    else:
        bound = bound or prove_head(atom.parts, atom.origin, atom.bias, target, model, proofs)
        if not np.isfinite(bound.total):
            raise AnchorheadError(f"no bound on the error of a head with such numbers for {target.name} is finite")
        found = prove_functions(network, claim_of(atom, target, bound, step), box, cast=False)
        exact, rounding = found.worst
        bound = replace(bound, exact=exact, rounding=rounding)
        if not np.isfinite(bound.total):
            raise AnchorheadError(f"no bound could be proven for {target.name}: try a smaller domain or a larger error")
        certificate = bound.statement(target).certificate(box, atom.dtype, within)
        entries = head_entries(atom, target, bound.exact, bound.rounding, step)
        network = network.with_entries(entries, found.claims)
    return Head(atom, target, network.with_(certificate=certificate))


def claim_of(atom: Atom, target: ScalarTarget | CallableTarget, bound: HeadBound, step: int | None = None) -> OneNumber:
    """Functions of the input itself, and what is proven of the head that is to compute them; step: of the program."""

    def prove(whole: WholeHead, error: float) -> tuple[float, float]:
        if error > 0 or not (target.low <= whole.ends[0] and whole.ends[1] <= target.high):
            raise Refusal("the number that its heads ask with is not the input")
        if not whole.computes(atom, arithmetic_of(atom.dtype)):
            raise Refusal("its weights are not those that the proof is about")
        return bound.exact, bound.rounding

    return OneNumber(np.ones((1, 1)), np.zeros(1), *_range(target), prove, step=step)


def _range(target: ScalarTarget | CallableTarget) -> tuple[np.ndarray, np.ndarray]:
    """Between what each function lies."""
    low, high = np.array([target.low]), np.array([target.high])
    if isinstance(target, ScalarTarget):
        ends = [range_of(expression, low, high, RANGE_CELLS) for expression in target.expressions]
        return tuple(np.concatenate(some) for some in zip(*ends, strict=True))  # type: ignore[return-value]
    middle = np.asarray(target.values((low + high) / 2), np.float64).reshape(-1)
    reach = (target.lipschitz or 0.0) * (target.high - target.low)
    return middle - reach, middle + reach


def _measured(atom: Atom, target: ScalarTarget | CallableTarget, box: Box) -> Certificate:
    """For a callable of which nothing but values is known."""
    found = estimate(atom, Problem.of(target.values, target.kinks, target.low, target.high), count=5000)
    if not np.isfinite(found.total):
        raise AnchorheadError(f"no error could be measured for {target.name}: try a smaller domain or a larger error")
    method = f"largest error found by a search, at s = {found.at:.8g}; rounding bounded at the same points"
    terms = HeadBound(found.exact, found.rounding, found.total, found.at).terms()
    return Statement(found.total, terms, method, target_words(target)).measured(box, atom.dtype)


def _parts(given: Any) -> tuple[Part, ...]:
    parts = tuple(given) if isinstance(given, tuple | list) else ()
    if not parts or not all(isinstance(part, Part) for part in parts):
        raise AnchorheadError(f"{shown(given)}: give slopes, offsets and values, or parts as head.parts has them")
    return parts
