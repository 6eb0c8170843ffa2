"""From a file to a report: what the file claims is derived again from its weights and its program."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from anchorhead.verify.certificate import Certificate, Intervals, read_certificate, require_only
from anchorhead.verify.context import Context, Step
from anchorhead.verify.equality.compare import difference
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.files import Stored, read_file
from anchorhead.verify.folders.folder import verify_folder
from anchorhead.verify.folders.written_out import verify_written_out
from anchorhead.verify.grammar import Network, read_network
from anchorhead.verify.grids.callables import is_callable, read_given
from anchorhead.verify.grids.tensor import Grids
from anchorhead.verify.kernel import kernel_bound
from anchorhead.verify.learners.learner import bound_for_learner, bound_for_one_prompt, is_learner
from anchorhead.verify.learners.target import is_many
from anchorhead.verify.named import read_claims
from anchorhead.verify.programs.exact import Exact
from anchorhead.verify.programs.program import Attend, Input, Program, read_lowered, read_program
from anchorhead.verify.programs.text import formula, printable, shortened
from anchorhead.verify.rounding import arithmetic_of
from anchorhead.verify.series import read_series
from anchorhead.verify.walk import compared, walk

Tell = Callable[[int, int, str], object]
"""Told how much is done, of how much, and what comes next."""


@dataclass(frozen=True, repr=False)
class Report:
    """What was checked.

    verified      whether the stated bound follows
    why           one line: that it does, or what is not justified and where
    stated        the bound of the certificate         found   what follows, as far as this verifier can tell
    steps         everything that was explained, by which lemma, with the error that it leaves
    assumptions   what the verification rests on beside the file
    unverified    what is stated and was not looked at
    function      what the program of the file computes, in full
    """

    verified: bool
    why: str
    stated: float
    found: float
    steps: tuple[Step, ...] = ()
    assumptions: tuple[str, ...] = ()
    seconds: float = 0.0
    unverified: tuple[str, ...] = ()
    function: str = ""

    @property
    def largest(self) -> Step | None:
        """The step that leaves the largest error."""
        return max(self.steps, key=lambda step: step.error, default=None)

    @property
    def line(self) -> str:
        """The one line."""
        return f"{'verified' if self.verified else 'NOT VERIFIED'}: {self.why}"

    def __str__(self) -> str:
        lines = [f"{step.where}: {step.lemma}, {step.what}, error {step.error:.3g}" for step in self.steps]
        if self.largest is not None:
            lines.append(f"largest contribution: {self.largest.where}, {self.largest.what}, {self.largest.error:.3g}")
        if shortened(self.function) != self.function:
            lines.append(f"the program: {self.function}")
        lines += [f"assumed: {one}" for one in self.assumptions]
        lines += [f"not verified: {one}" for one in self.unverified]
        return "\n".join(map(printable, [*lines, f"{self.seconds:.2f} s", self.line]))

    __repr__ = __str__


@dataclass(eq=False)
class _Known:
    """What a user gives beside the file (see `verify`), and what the report will say."""

    given: Callable[..., Any] | None
    prompt: np.ndarray | None
    wanted: float | None
    tell: Tell
    stated: float = float("nan")
    found: float = float("nan")
    steps: list[Step] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    unverified: list[str] = field(default_factory=list)
    function: str = ""


def verify(
    source: str | Path | bytes,
    function: Callable[..., Any] | None = None,
    prompt: np.ndarray | None = None,
    stated: float | None = None,
    tell: Tell = lambda done, total, what: None,
) -> Report:
    """The report on a file, given by its path or as its bytes, or on the folder of an attention-only model; damaged
    ones and wrong claims give a report too.

    function   the callable that a network approximates: files hold its digest
    prompt     a prompt of a learner, (tokens, features), whose bound is to be shown, and not that of all prompts
    stated     the bound for that prompt; None: whatever follows
    tell       told how far the work is
    """
    started = time.perf_counter()
    known = _Known(function, prompt, stated, tell)
    try:
        with np.errstate(all="ignore"):  # what overflows is infinite or NaN, and then nothing follows
            if not isinstance(source, bytes) and Path(source).is_dir():
                where = _verify_folder(Path(source), known)
            else:
                where = _verify(read_file(source), known)
        what = f"|network - ({shortened(known.function)})| <=" if known.function else "error at most"
        why = f"{what} {known.stated:.6g} {where}; {known.found:.6g} follows"
        verified = True
    except NotVerified as error:
        why, verified = str(error), False
    except OverflowError:
        why, verified = "numbers on the way to the bound are too large for float64", False
    except Exception as error:  # whatever a damaged file leads to, it is not verified
        why, verified = f"the verifier could not make sense of it: {error!r}"[:300], False
    return Report(
        verified, printable(why), known.stated, known.found, tuple(known.steps), tuple(known.assumptions),
        time.perf_counter() - started, tuple(known.unverified), known.function,
    )  # fmt: skip


def _verify(stored: Stored, known: _Known) -> str:
    """Fills in what is known, and says where the bound holds; NotVerified unless it does."""
    known.unverified.append("the certificate's words (method, target, reference), labels and names of features")
    network, program = read_network(stored), read_program(stored)
    known.function = formula(program)
    opaque = is_callable(program)
    require(known.given is None or opaque, "function= is for callables, which files do not keep: leave it out")
    if is_learner(program) or is_many(program):
        return _verify_learner(stored, network, program, known)
    require(known.prompt is None, "prompt= is for learners: leave it out")
    return _verify_network(stored, network, program, known)


def _verify_network(stored: Stored, network: Network, program: Program, known: _Known) -> str:
    """A certificate for all inputs of a box; where the program is about a callable, given that."""
    tokens, features = network.embed.tokens, network.embed.weight.shape[2]
    certificate = read_certificate(stored, (tokens or 1, features))
    known.stated = certificate.bound
    if tokens is None:
        return _verify_written_out(network, program, certificate, known)
    _check_fit(network, program, certificate)
    model = replace(arithmetic_of(network.dtype), direct="direct" in certificate.evaluations)
    known.assumptions.append(f"arithmetic: {model}")
    function, off, where = None, 0.0, "on the stated box"
    if is_callable(program):
        require(certificate.evaluations == ("plain",), "a grid has no other evaluation than 'plain'")
        function = read_given(stored, program, certificate, known.given)
        known.assumptions += function.assumed
        where += ", given the function and its constant"
    else:
        require_only(certificate, "excluded")
        program, off = _as_built(stored, program, network, certificate, known)
        where += _but_for(certificate.excluded)
    bound = certificate.bound - off
    exact = Exact(program, certificate.low, certificate.high, certificate.excluded, function)
    if isinstance(program.steps[program.outputs[0]], Attend):
        require_only(certificate)
        require(certificate.evaluations == ("plain",), "a kernel smoother has no other evaluation than 'plain'")
        require(off == 0, "a kernel smoother that was written as another program is not modelled")
        error, grids = np.array([[kernel_bound(network, program, exact, certificate)]]), Grids(exact, model)
        known.steps.append(Step("layer 1 (Attention)", "kernel", "attention as attention", float(error[0, 0])))
    else:
        series = read_series(stored, network.dtype) if model.direct else []
        context = Context(exact, model, read_claims(stored), known.tell, known.steps, series=series)
        error, grids = _shared_out(network, context, bound)
    known.found = _with(float(error.max()), off)
    if not known.found <= certificate.bound:
        token, feature = np.unravel_index(int(error.argmax()), error.shape)
        raise NotVerified(
            f"the bound {certificate.bound:.6g} does not follow at output {feature} of token {token}: only "
            f"{known.found:.6g} could be shown"
        )
    grids.verify(known.tell)
    covered = " and ".join(f"'{one}'" for one in certificate.evaluations)
    return where + f", for the evaluations {covered}" * (len(certificate.evaluations) > 1)


def _verify_written_out(network: Network, program: Program, certificate: Certificate, known: _Known) -> str:
    """A layer of an attention-only model: any number of tokens, each on its own."""
    require(known.given is None, "a layer is verified without a function")
    _check_fit(network, program, certificate, (None, certificate.low.shape[1]))
    known.assumptions.append(f"arithmetic: {arithmetic_of(network.dtype)}")
    known.found, step = verify_written_out(network, program, certificate)
    known.steps.append(step)
    return "for any number of tokens, each of which is what the norm of the certificate puts out"


def _but_for(excluded: Intervals) -> str:
    """What a condition leaves out, in words."""
    first = [f", for inputs that give its functions no argument between {a:g} and {b:g}" for a, b in excluded[:1]]
    return "".join(first) + f", nor in {len(excluded) - 1} more intervals" * (len(excluded) > 1)


def _verify_folder(folder: Path, known: _Known) -> str:
    """The layers of an attention-only model, each for the bound that is stated of it."""
    require(known.given is None and known.prompt is None, "a folder is verified without a function and a prompt")
    known.unverified.append("the Python code in the folder")
    known.assumptions += ["arithmetic: that of the folder's dtype, exp within 4 ulp, sums in any order"]
    layers = verify_folder(folder, known.tell)
    for layer in layers:
        on = f"heads within {layer.relative:.3g} max(1, |s|) for s in [{layer.low:.4g}, {layer.high:.4g}]"
        known.steps.append(Step(layer.name, "feed-forward layer", on, layer.bound))
        known.stated = float(np.fmax(known.stated, layer.stated))
        known.found = float(np.fmax(known.found, layer.bound))
    covered = [f"'{one}'" for one in layers[0].evaluations if all(one in layer.evaluations for layer in layers)]
    require(bool(covered), "no evaluation is stated of all layers")
    return f"in every layer, on all that its norm puts out, for the evaluations {', '.join(covered)}"


def _as_built(
    stored: Stored, written: Program, network: Network, certificate: Certificate, known: _Known
) -> tuple[Program, float]:
    """The program in the form of which the network was built, and how far it is from what was written, at most."""
    lowered = read_lowered(stored)
    if lowered is None:
        return written, 0.0
    require(not certificate.excluded, "a condition on the arguments of functions, where these were written otherwise")
    _check_fit(network, lowered, certificate)
    off = float(difference(written, lowered, certificate.low, certificate.high).max())
    known.steps.append(Step("program", "equal forms", "as it was written, and as it was built", off))
    require(
        off < certificate.bound,
        f"the program says {shortened(known.function)}, and what the network was built for was not found to be the "
        f"same: they may be {off:.3g} apart, more than the bound {certificate.bound:.6g}",
    )
    return lowered, off


def _with(error: float, off: float) -> float:
    """The sum of two errors, rounded up."""
    return float(np.nextafter(error + off, np.inf)) if off else error


def _shared_out(network: Network, context: Context, bound: float) -> tuple[np.ndarray, Grids]:
    """The error of every output, and grids with the allowances that the bound leaves: errors are affine in these."""
    before = len(context.steps)

    def error(scale: float) -> tuple[np.ndarray, Grids]:
        del context.steps[before:]
        context.grids = Grids(context.exact, context.model, scale)
        difference = compared(walk(network, context), context.exact)
        return difference.size(context.quantities), context.grids

    found, grids = error(0.0)
    if not grids.waiting or not found.max() < bound:
        return found, grids
    grows = error(1.0)[0] - found
    most = np.where(grows > 0, (bound - found) / np.where(grows > 0, grows, 1.0), np.inf).min()
    return error(0.9999 * float(most))


def _verify_learner(stored: Stored, network: Network, program: Program, known: _Known) -> str:
    """The bound for a prompt that is given, or what the certificate states: for one prompt, or for those of a box."""
    known.assumptions.append(f"arithmetic: {arithmetic_of(network.dtype)}")
    if known.prompt is not None:
        known.found = bound_for_one_prompt(network, program, known.prompt, known.wanted)
        known.stated, where = known.found if known.wanted is None else known.wanted, "for this prompt"
    else:
        where = _verify_stated_prompts(stored, network, program, known)
    known.steps.append(Step("all steps", "growth", "the path of exact gradient descent", known.found))
    require(
        known.found <= known.stated,
        f"the bound {known.stated:.6g} does not follow {where}: only {known.found:.6g} could be shown",
    )
    return where


def _verify_stated_prompts(stored: Stored, network: Network, program: Program, known: _Known) -> str:
    """A certificate for one prompt, whose box is that prompt, or for all of a box that keep to its conditions."""
    tokens, features = network.embed.tokens, network.embed.weight.shape[2]
    certificate = read_certificate(stored, (1 if tokens is None else tokens, features))
    known.stated, low, high = certificate.bound, certificate.low, certificate.high
    require(certificate.dtype == network.dtype, f"the certificate is for {certificate.dtype}, not {network.dtype}")
    require(certificate.evaluations == ("plain",), "a learner has no other evaluation than 'plain'")
    if (low == high).all():
        known.found = bound_for_one_prompt(network, program, np.array(low), certificate.bound)
        return "for the stated prompt"
    require(not is_many(program), "many learners are verified for one prompt: give prompt=")
    require(bool((low == low[0]).all() and (high == high[0]).all()), "a box of prompts is the same for all examples")
    known.found, shown = bound_for_learner(network, program, low[0], high[0], certificate.conditions, certificate.bound)
    known.assumptions.append(f"prompts show examples as {shown} and its negative")
    return "for all prompts of the box that keep to its conditions"


def _check_fit(
    network: Network, program: Program, certificate: Certificate, inputs: tuple[int | None, int] | None = None
) -> None:
    """The network, the program and the certificate speak of the same inputs, outputs and numbers."""
    require(
        certificate.dtype == network.dtype, f"the certificate is for {certificate.dtype}, weights are {network.dtype}"
    )
    require(program.token_axis == network.token_axis, "the program and the network differ in their axis of tokens")
    given = program.steps[0]
    require(isinstance(given, Input), "the first step of the program is no input")
    shape = certificate.low.shape if inputs is None else inputs
    require((given.tokens, len(given.features)) == shape, f"the program takes other inputs than {shape}")
    if given.low is not None:
        inside = (given.low <= certificate.low).all() and (certificate.high <= given.high).all()
        require(bool(inside), "the box of the certificate is larger than the program's")
