"""A head as a theorem of Coq: what it is off by in exact arithmetic, stated with its weights and proven by intervals.

    Theorem within : forall x, low <= x <= high -> Rabs (head x - f x) <= eps

The weights are the stored ones, dyadic rationals; eps is what the certificate's bound leaves beside the rounding. Where
it leaves enough, a second theorem, computed_within, is about what floating point makes of it (computed.py). The
file stands for itself: `coqc` accepts it with the libraries that CoqInterval brings (Debian: coq, libcoq-interval).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import version
from importlib.resources import files

from anchorhead.certificate import Certificate
from anchorhead.decimals import counted
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.export.coq.anywhere import Anywhere
from anchorhead.export.coq.computed import Computed, Rounding, theorem
from anchorhead.export.coq.erf import Integrals
from anchorhead.export.coq.pieces import Piece, kink_cuts, pieces_of
from anchorhead.export.coq.proof import Settings, interval_settings, joined, lemma
from anchorhead.export.coq.terms import decimal, dyadic, term
from anchorhead.heads.atom import Atom
from anchorhead.language.expressions.expression import postorder
from anchorhead.language.symbolic import expressions_of
from anchorhead.language.targets import ScalarTarget
from anchorhead.network import Network
from anchorhead.proof.heads.head import head_errors, target_words
from anchorhead.proof.heads.whole_head import read_network

RESOURCES = ("preamble.v", "functions.v")
BY_INTEGRAL, COMPUTED = ("erf.v",), ("sums.v", "computed.v", "floats.v")
ANYWHERE, SIDES = ("anywhere.v",), ("sides.v",)
PREPARE = (
    "rewrite ?tanh_softplus. unfold expm1, log1p, sigmoid, softplus, Rpower. "
    "rewrite ?tanh_by_exp, ?max_by_abs, ?min_by_abs. decide_conditions."
)


def make(network: Network, settings: Settings | None = None) -> str:
    """The text of the file; refuses with a reason what is no head on a scalar, or has nothing proven.

    settings  how the proof goes about it, where the usual way is too slow for Coq
    """
    settings = settings or Settings()
    certificate, target = known(network)
    try:
        form = read_network(network, Box.of((target.low, target.high))).atom(network.dtype)
    except AnchorheadError as error:
        raise AnchorheadError(f"only heads on a scalar can be exported to Coq: {error}") from error
    alone = target.outputs == 1
    theorems = [
        _Theorem(form, target, certificate, output, "" if alone else f"_{output + 1}", settings)
        for output in range(target.outputs)
    ]
    by_integral = any(one.erf.arguments for one in theorems)
    computed = any(one.computed for one in theorems)
    anywhere = any(isinstance(one.computed, Anywhere) for one in theorems)
    resources = [
        *RESOURCES,
        *(BY_INTEGRAL if by_integral else ()),
        *(COMPUTED if computed else ()),
        *(ANYWHERE if anywhere else ()),
        *(SIDES if any(one.sides for one in theorems) else ()),
    ]
    parts = [
        _comment(network, certificate, target, form, computed),
        _libraries(by_integral, computed),
        *map(_resource, resources),
        *(line for one in theorems for line in one.lines()),
    ]
    return "\n".join(parts)


def to_bytes(made: str, network: Network) -> bytes:
    """What a file holds."""
    return made.encode()


def error_left(certificate: Certificate, rounding: float = 0.0) -> tuple[int, int] | None:
    """The number with the fewest digits, and of these the largest, from the certified error in exact arithmetic to what
    the bound leaves beside rounding, the certificate's or more: (digits, exponent), which is digits 10^exponent. None
    if nothing is left."""
    exact, certified = map(Fraction, head_errors(certificate))
    most = Fraction(certificate.bound) - max(certified, Fraction(rounding))
    if most < exact:
        return None
    if most == 0:
        return 0, 0
    exponent = math.floor(math.log10(most)) + 1
    while True:
        digits = math.floor(most / Fraction(10) ** exponent)
        if digits * Fraction(10) ** exponent >= exact:
            return (digits, exponent) if digits else (0, 0)
        exponent -= 1


def known(network: Network) -> tuple[Certificate, ScalarTarget]:
    """The certificate and the target, as far as Coq can be told of them."""
    certificate, program = network.certificate, network.program
    if certificate is None or program is None:
        raise AnchorheadError("the network has no certificate: a file of Coq states a bound, and there is none")
    try:
        expressions, names = expressions_of(program)
        head_errors(certificate)
    except AnchorheadError as error:
        raise AnchorheadError(_no_head(certificate)) from error
    low, high = program.input.low, program.input.high
    if len(names) != 1 or low is None or high is None:
        raise AnchorheadError(_no_head(certificate))
    if certificate.kind != "proven":
        raise AnchorheadError(f"the certificate says {certificate.kind!r}: only proven bounds can be stated in Coq")
    return certificate, ScalarTarget(expressions, float(low.item()), float(high.item()))


def _no_head(certificate: Certificate) -> str:
    return (
        f"only heads on a scalar can be exported to Coq, as ah.head makes them, of functions that are known: "
        f"this network is for {certificate.target}"
    )


def _libraries(by_integral: bool, computed: bool) -> str:
    names = ["Coq Require Import Reals List Permutation ZArith Lra Lia"]
    names += ["Flocq Require Import Core Relative"] if computed else []
    names += ["Coquelicot Require Import Coquelicot"] if by_integral else []
    names += ["Interval Require Import Tactic"]
    return "\n".join([*(f"From {name}." for name in names), "Import ListNotations.", "Open Scope R_scope.\n"])


def _comment(network: Network, certificate: Certificate, target: ScalarTarget, form: Atom, computed: bool) -> str:
    anchors = sum(len(part.slopes) for part in form.parts)
    exact, rounding = head_errors(certificate)
    words = (
        f"{target_words(target)} as attention: {counted(anchors, 'anchor')}, weights as {network.dtype} stores them.",
        f"Certificate: {certificate.bound!r} in all, of which {exact!r} in exact arithmetic and {rounding!r} rounding.",
        f"within: the part in exact arithmetic{', and computed_within: all of it' if computed else ''}.",
        f"Written by anchorhead {version('anchorhead')}; coqc on this file checks it (Debian: coq, libcoq-interval).",
    )
    return "\n".join(f"(* {line.replace('(*', '( *').replace('*)', '* )')} *)" for line in words) + "\n"


class _Theorem:
    """Definitions, lemmas and theorems of one output."""

    def __init__(
        self,
        form: Atom,
        target: ScalarTarget,
        certificate: Certificate,
        output: int,
        suffix: str,
        settings: Settings,
    ) -> None:
        self.form, self.target, self.certificate, self.output, self.suffix = form, target, certificate, output, suffix
        self.settings = settings
        exact, _ = head_errors(certificate)
        self.cuts = kink_cuts(target.pieces)
        self.computed, eps = self._rounding(exact) if settings.computed else (None, None)
        eps = eps or error_left(certificate)
        if eps is None:
            raise AnchorheadError("the certificate's parts add up to more than its bound: ah.check says more")
        self.eps, self.error = eps, eps[0] * 10.0 ** eps[1] or 1.0  # a constant is met exactly, at any precision
        self.expression = target.expressions[output].core
        self.unknown = _kinks_between_floats(target)
        self.sides = bool(self.unknown) and any(node.op in ("min", "max") for node in postorder(self.expression))
        self.erf = Integrals.of(self.expression, target.variable, target.low, target.high, self.error, suffix)
        self.cuts = [*self.cuts, *self.erf.cuts]
        if isinstance(self.computed, Computed):
            self.computed = Computed.of(form, output, target, certificate.dtype, exact, self.cuts)

    def _rounding(self, exact: float) -> tuple[Rounding | None, tuple[int, int] | None]:
        """How rounding is bounded, by sizes alone if that is enough, and the error left to exact arithmetic."""
        known = self.form, self.output, self.target, self.certificate.dtype
        for find in (lambda: Anywhere.of(*known), lambda: Computed.of(*known, exact, self.cuts)):
            computed: Rounding | None = find()
            rounding = None if computed is None else computed.left(self.certificate.bound, exact)
            eps = None if rounding is None else error_left(self.certificate, rounding)
            if eps is not None:
                return computed, eps
        return None, None

    def lines(self) -> list[str]:
        form, target, suffix = self.form, self.target, self.suffix
        head, function = f"head{suffix}", f"f{suffix}"
        claim = f"Rabs ({head} x - {function} x) <= {decimal(*self.eps)}"
        on = target.low, target.high
        pieces = pieces_of(form, self.output, *on, self.cuts, self.error, parts=self.settings.parts)
        lemmas = [(f"piece{suffix}_{number}", piece) for number, piece in enumerate(pieces, start=1)]
        computed = () if self.computed is None else (self._about_computed(self.computed),)
        return [
            *self._head(head),
            f"Definition {function} (x : R) : R := {term(self.expression)}.\n",
            *self.erf.lemmas(),
            *(self._lemma(name, claim, piece, (head, function)) for name, piece in lemmas),
            f"Theorem within{suffix} : forall x, {dyadic(target.low)} <= x <= {dyadic(target.high)} -> {claim}.",
            joined(lemmas),
            *computed,
        ]

    def _head(self, head: str) -> list[str]:
        """The weights and the head that they are."""
        form, output = self.form, self.output
        parts = [
            f"Definition {head}_part_{number} : list anchor := [\n  "
            + ";\n  ".join(
                f"({dyadic(float(a))}, {dyadic(float(b))}, {dyadic(float(v))})"
                for a, b, v in zip(part.slopes, part.offsets, part.values[:, output], strict=True)
            )
            + "\n].\n"
            for number, part in enumerate(form.parts, start=1)
        ]
        s = "x" if form.origin == 0 else f"(x - {dyadic(form.origin)})"
        means = [f"mean {head}_part_{number + 1} {s}" for number in range(len(form.parts))]
        bias = [dyadic(float(form.bias[output]))] if form.bias[output] else []
        return [*parts, f"Definition {head} (x : R) : R := {' + '.join([*means, *bias])}.\n"]

    def _lemma(self, name: str, claim: str, piece: Piece, names: tuple[str, str]) -> str:
        across = self.sides and any(piece.low < low and high < piece.high for low, high in self.unknown)
        settings = replace(self.settings, degree=0.0) if across else self.settings  # Taylor models know no kinks
        how = interval_settings(self.form, self.output, piece, self.error, settings)
        return lemma(name, claim, piece, self.form, names, how, self._prepare(piece))

    def _prepare(self, piece: Piece) -> str:
        """What is done to the function on a piece before CoqInterval sees it."""
        sides = "decide_sides x. " if self.sides else ""
        return f"{self.erf.tactic(piece.low, piece.high)} {sides}{PREPARE}".strip()

    def _about_computed(self, computed: Rounding) -> str:
        ends = self.target.low, self.target.high
        return theorem(computed, self.suffix, ends, self.eps, self.certificate.bound, self._prepare)


def _kinks_between_floats(target: ScalarTarget) -> list[tuple[Fraction, Fraction]]:
    """Enclosures of kinks that are not known exactly."""
    kinks = (kink for kink in target.pieces.kinks if not kink.smooth)
    ends = ((float(kink.at.lower()), float(kink.at.upper())) for kink in kinks)
    return [(Fraction(low), Fraction(high)) for low, high in ends if low != high]


def _resource(name: str) -> str:
    return files("anchorhead.export.coq").joinpath(name).read_text()
