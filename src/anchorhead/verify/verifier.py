"""From a file to a report: what the file claims is derived again from its weights and its program."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from anchorhead.verify.certificate import Certificate, read_certificate
from anchorhead.verify.claims import Pool
from anchorhead.verify.context import Context, Step
from anchorhead.verify.equality.compare import difference
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.exact import Exact
from anchorhead.verify.files import Stored, read_file
from anchorhead.verify.grammar import Network, read_network
from anchorhead.verify.grids.tensor import Grids
from anchorhead.verify.kernels import kernel_bound
from anchorhead.verify.learners.learner import bound_for_learner, is_learner
from anchorhead.verify.program import Attend, Input, Program, read_lowered, read_program
from anchorhead.verify.rounding import arithmetic_of
from anchorhead.verify.text import formula
from anchorhead.verify.walk import compared, walk


@dataclass(frozen=True)
class Report:
    """What was checked.

    verified      whether the stated bound follows
    why           one line: that it does, or what is not justified and where
    stated        the bound of the certificate         found   what follows, as far as this verifier can tell
    steps         everything that was explained, by which lemma, with the error that it leaves
    assumptions   what the verification rests on beside the file
    unverified    evaluations that the certificate covers, beside attention as it is written, which is verified
    """

    verified: bool
    why: str
    stated: float
    found: float
    steps: tuple[Step, ...] = ()
    assumptions: tuple[str, ...] = ()
    seconds: float = 0.0
    unverified: tuple[str, ...] = ()

    @property
    def largest(self) -> Step | None:
        """The step that leaves the largest error."""
        return max(self.steps, key=lambda step: step.error, default=None)

    def __str__(self) -> str:
        lines = [f"{step.where}: {step.lemma}, {step.what}, error {step.error:.3g}" for step in self.steps]
        if self.largest is not None:
            lines.append(f"largest contribution: {self.largest.where}, {self.largest.what}, {self.largest.error:.3g}")
        lines += [f"assumed: {one}" for one in self.assumptions]
        lines.append("not verified: the certificate's words (method, target, reference), labels and names of features")
        lines += [f"not verified: that the bound covers the evaluation {one!r}" for one in self.unverified]
        lines.append(f"{self.seconds:.2f} s")
        return "\n".join([*lines, f"{'verified' if self.verified else 'NOT VERIFIED'}: {self.why}"])


@dataclass(eq=False)
class _Known:
    stated: float = float("nan")
    found: float = float("nan")
    steps: list[Step] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    unverified: list[str] = field(default_factory=list)
    function: str = ""


def verify(path: str | Path) -> Report:
    """The report on a file; damaged files and wrong claims give a report too."""
    started = time.perf_counter()
    known = _Known()
    try:
        _verify(read_file(path), known)
        why = f"|network - ({known.function})| <= {known.stated:.6g} on the stated box; {known.found:.6g} follows"
        verified = True
    except NotVerified as error:
        why, verified = str(error), False
    except Exception as error:  # whatever a damaged file leads to, it is not verified
        why, verified = f"the verifier could not make sense of it: {error!r}"[:300], False
    return Report(
        verified, why, known.stated, known.found, tuple(known.steps), tuple(known.assumptions),
        time.perf_counter() - started, tuple(known.unverified),
    )  # fmt: skip


def _verify(stored: Stored, known: _Known) -> None:
    network, program = read_network(stored), read_program(stored)
    tokens, features = network.embed.tokens, network.embed.weight.shape[2]
    known.function = formula(program)
    if is_learner(program):
        _verify_learner(stored, network, program, known)
        return
    require(tokens is not None, "a network of any number of tokens is not verified yet")
    certificate = read_certificate(stored, (tokens, features))  # type: ignore[arg-type]
    known.stated = certificate.bound
    known.unverified += certificate.evaluations[1:]
    _check_fit(network, program, certificate)
    program, off = _as_built(stored, program, network, certificate, known)
    bound = certificate.bound - off
    model = arithmetic_of(network.dtype)
    known.assumptions.append(f"arithmetic: {model}")
    exact = Exact(program, certificate.low, certificate.high, certificate.excluded)
    if isinstance(program.steps[program.outputs[0]], Attend):
        require(off == 0, "a kernel smoother that was written as another program is not modelled")
        known.found = kernel_bound(network, program, exact, certificate)
        known.steps.append(Step("layer 1 (Attention)", "kernel", "attention as attention", known.found))
        return
    limit = (1 - 1e-5) * bound if len(network.layers) == 1 else 0.0
    context = Context(exact, model, pool_of(stored), limit)
    try:
        error, grids = _shared_out(network, context, bound, grid_errors(stored))
    finally:
        known.steps += context.steps
    known.found = float(np.nextafter(error.max() + off, np.inf)) if off else float(error.max())
    if not known.found <= certificate.bound:
        token, feature = np.unravel_index(int(error.argmax()), error.shape)
        raise NotVerified(
            f"the bound {certificate.bound:.6g} does not follow at output {feature} of token {token}: only "
            f"{known.found:.6g} could be shown"
        )
    grids.verify(network.dtype)


def _as_built(
    stored: Stored, written: Program, network: Network, certificate: Certificate, known: _Known
) -> tuple[Program, float]:
    """The program in the form of which the network was built, and how far it is from what was written, at most."""
    lowered = read_lowered(stored)
    if lowered is None:
        return written, 0.0
    _check_fit(network, lowered, certificate)
    off = float(difference(written, lowered, certificate.low, certificate.high).max())
    known.steps.append(Step("program", "equal forms", "as it was written, and as it was built", off))
    require(
        off < certificate.bound,
        f"the program says {known.function}, and what the network was built for was not found to be the same: they may "
        f"be {off:.3g} apart, more than the bound {certificate.bound:.6g}",
    )
    return lowered, off


def _shared_out(network: Network, context: Context, bound: float, hints: Sequence[float]) -> tuple[np.ndarray, Grids]:
    """The error of every output, and grids with the allowances that the bound leaves: errors are affine in these."""

    def error(scale: float) -> tuple[np.ndarray, Grids]:
        context.steps.clear()
        context.grids = Grids(context.exact, context.model, hints, scale)
        difference = compared(walk(network, context), context.exact)
        return difference.size(context.quantities), context.grids

    found, grids = error(0.0)
    if not grids.waiting or not found.max() < bound:
        return found, grids
    grows = error(1.0)[0] - found
    most = np.where(grows > 0, (bound - found) / np.where(grows > 0, grows, 1.0), np.inf).min()
    return error(0.9999 * float(most))


def grid_errors(stored: Stored) -> list[float]:
    """Errors of grids that the derivation mentions: hints, never trusted."""
    entries = (stored.derivation or {}).get("entries")
    found = []
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("lemma") == "grid head":
            numbers = [entry.get(name) for name in ("error", "rounding")]
            found.append(sum(float(one) for one in numbers if isinstance(one, int | float)))
    return [one for one in found if np.isfinite(one) and one > 0] or [1.0]


def _verify_learner(stored: Stored, network: Network, program: Program, known: _Known) -> None:
    """A certificate for all prompts of a box; its conditions are those that it states."""
    certificate = read_certificate(stored, (1, network.embed.weight.shape[2]))
    known.stated = certificate.bound
    require(certificate.dtype == network.dtype, f"the certificate is for {certificate.dtype}, not {network.dtype}")
    known.assumptions += [f"arithmetic: {arithmetic_of(network.dtype)}", "prompts show every example with either sign"]
    known.found = bound_for_learner(
        network, program, certificate.low[0], certificate.high[0], certificate.conditions, certificate.bound
    )
    known.steps.append(Step("all steps", "growth", "the path of exact gradient descent", known.found))
    require(
        known.found <= certificate.bound,
        f"the bound {certificate.bound:.6g} does not follow for all prompts: only {known.found:.6g} could be shown",
    )


def _check_fit(network: Network, program: Program, certificate: Certificate) -> None:
    """The network, the program and the certificate speak of the same inputs, outputs and numbers."""
    require(
        certificate.dtype == network.dtype, f"the certificate is for {certificate.dtype}, weights are {network.dtype}"
    )
    require(program.token_axis == network.token_axis, "the program and the network differ in their axis of tokens")
    given = program.steps[0]
    require(isinstance(given, Input), "the first step of the program is no input")
    shape = certificate.low.shape
    require((given.tokens, len(given.features)) == shape, f"the program takes other inputs than {shape}")
    if given.low is not None:
        inside = (given.low <= certificate.low).all() and (certificate.high <= given.high).all()
        require(bool(inside), "the box of the certificate is larger than the program's")


def pool_of(stored: Stored) -> Pool:
    """Numbers that the derivation mentions: hints, never trusted."""
    data = (stored.derivation or {}).get("data")
    places = [data, data.get("neurons")] if isinstance(data, dict) else []
    inner, outer = {(1.0, 0.0)}, {(1.0, 0.0)}
    for place in places:
        for shape in (place.get("shapes") or ()) if isinstance(place, dict) else ():
            try:
                numbers = [float(shape[name]) for name in ("in_scale", "in_shift", "out_scale", "out_shift")]
            except (TypeError, KeyError, ValueError):
                continue
            if np.isfinite(numbers).all() and numbers[0] > 0 and numbers[2] > 0:
                inner.add((numbers[0], numbers[1]))
                outer.add((numbers[2], numbers[3]))
    named = [
        array for name, array in stored.tensors.items() if name.startswith("derivation.") and name.endswith(".values")
    ]
    values = [array.astype(np.float64).reshape(-1) for array in named[:64] if array.size and np.isfinite(array).all()]
    return Pool(tuple(sorted(inner)[:64]), tuple(sorted(outer)[:64]), tuple(v for v in values if v.any()))
