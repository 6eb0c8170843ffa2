"""What a head is taken for: proven for the worst of all that share a proof, and only where inputs may be."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anchorhead.verify import rounding
from anchorhead.verify.claims import Claims, Unit, _Job, _without
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.files import read_file
from anchorhead.verify.forms import Forms
from anchorhead.verify.programs.exact import Exact
from anchorhead.verify.programs.program import Apply, Input, Program, read_program
from anchorhead.verify.readings import Reading
from anchorhead.verify.scalar.cells import Claim, prove
from anchorhead.verify.scalar.part import Part

from ..files import written
from ..naming import TANH
from . import adversary

MODEL = rounding.MODELS["float32"]


def claims() -> tuple[Claims, Unit]:
    """Those of tanh on [-2, 2], and a head that computes it."""
    with tempfile.TemporaryDirectory() as folder:
        program = read_program(read_file(written("head (float32)", Path(folder))))
    exact = Exact(program, np.array([[-2.0]]), np.array([[2.0]]))
    part, *_ = adversary.head("tanh, float32")
    reading = Reading(exact.of(0), part, np.arange(2), (-2.0, 2.0), (part, (-2.0, 2.0)))
    return Claims(exact, MODEL), Unit(reading, (part,), TANH)


@pytest.mark.parametrize("what", ["wrong", "value_error", "lean"])
def test_of_two_heads_with_one_proof_the_worse_counts(what: str) -> None:
    found, unit = claims()
    (part,) = unit.parts
    worse = replace(unit, parts=(replace(part, **{what: 1e-2 if what == "lean" else np.full(2, 1e-2)}),))
    for both in ((unit, worse), (worse, unit)):
        assert all(one is not None and one.error >= 4e-3 for one in found.explain(both))
    again, _ = claims()
    (alone,) = again.explain([unit])
    (more,) = again.explain([worse])
    assert alone is not None
    assert more is not None
    assert alone.error < 1e-5
    assert more.error >= 4e-3


def test_a_proof_covers_what_it_was_made_for() -> None:
    _, unit = claims()
    _, claim, *_ = adversary.head("tanh, float32")
    job = _Job(unit.parts, claim, -1.0, 1.0)
    assert job.covers(_Job(unit.parts, claim, -0.5, 1.0))
    for low, high in ((-1.1, 1.0), (-1.0, 1.1)):
        assert not job.covers(_Job(unit.parts, claim, low, high))
    off = tuple(replace(part, wrong=np.full(2, 1e-9)) for part in unit.parts)
    assert not job.covers(_Job(off, claim, -1.0, 1.0))


def test_what_is_excluded_shrinks_by_the_error() -> None:
    left, right = _without([(0.0, 1.0)], 0.1, -1.0, 2.0)
    assert left == pytest.approx((-1.0, 0.1))
    assert right == pytest.approx((0.9, 2.0))
    assert left[1] >= 0.1
    assert right[0] <= 0.9
    assert _without([(0.0, 1.0)], 0.6, -1.0, 2.0) == [(-1.0, 2.0)]


@pytest.mark.parametrize("off", [0.0, 2e-3])
@pytest.mark.parametrize("text", ["sqrt(x)", "abs(x - 0.5)**0.5", "x**2"])
def test_arguments_that_are_off_move_heads_of_steep_functions_no_further(text: str, off: float) -> None:
    """A head on [0, 1] whose t is off by so much, either way, and then beyond where a root is defined."""
    apply = Apply((adversary.expression(text),), np.zeros(1, int), (0,), ("x",))
    program = Program((Input(("x",), 1, None, None, None), apply), ("x", "y"), (1,), (), False)
    exact = Exact(program, np.zeros((1, 1)), np.ones((1, 1)))
    at, nothing = np.arange(33) / 32, np.zeros(33)
    part = Part(2048 * at, -1024 * at**2, adversary.function_values(text, (0, 1), 33), nothing, nothing, nothing,
                nothing, nothing, nothing, MODEL, whole=True)  # fmt: skip
    t = Forms(*(exact.of(0).ids, *exact.of(0).arrays[:3]), np.full((1, 1), off))
    ends = float(t.ends(exact.quantities)[0][0, 0]), float(t.ends(exact.quantities)[1][0, 0])
    unit = Unit(
        Reading(t, part, np.arange(33), ends, (part, ends)),
        (part,),
        replace(TANH, of=replace(TANH.of, entry=(1, 0, 0))),
    )
    (found,) = Claims(exact, MODEL).explain([unit])
    assert found is not None
    assert found.form.ids.tolist() == exact.of(1).ids.tolist()
    meant, x = adversary.function_values(text, (0, 1), 4001), np.linspace(0, 1, 4001)
    worst = max(float(np.abs(adversary.head_values(part, x + by) - meant).max()) for by in (-off, 0, off))
    assert worst - 1e-12 <= found.error <= 1.25 * worst


def test_heads_that_are_computed_otherwise_lean_as_well() -> None:
    """tanh, off by 1e-2 at a t that is off by 1e-2: at 0 its slope is 1."""
    part, claim, ends, _ = adversary.head("tanh, float32")
    found = prove([replace(part, lean=1e-2, direct=(1e-2, 1.0))], claim, [ends], MODEL)
    assert 0.02 <= found.total <= 0.022


@pytest.mark.parametrize("power", [0, 300, 960])
def test_heads_on_tiny_numbers_lean_as_well(power: int) -> None:
    """sigmoid(steep t) at a t that is off by 0.1 / steep: at 0 it is off by 0.024979, or nothing is said of it."""
    steep = 2.0**power
    nothing, slopes, model = np.zeros(2), np.array([0.0, steep]), rounding.MODELS["float64"]
    part = Part(slopes, nothing, np.array([0.0, 1.0]), *[nothing] * 6, model, lean=0.1 / steep)
    claim = Claim(adversary.expression(f"sigmoid({steep!r} * x)"), 1.0, 0.0, 1.0, 0.0)
    try:
        found = prove([part], claim, [(-3 / steep, 3 / steep)], model)
    except NotVerified:
        assert power == 960
        return
    assert 0.024979 <= found.total <= 0.032
