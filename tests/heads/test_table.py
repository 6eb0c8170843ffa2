"""The table that ships: every function is in it, its bounds are proven again, and a damaged one is refused."""

import dataclasses
import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from flint import arb

import anchorhead as ah
from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.single import head as construction
from anchorhead.decimals import round_up
from anchorhead.effort import Effort
from anchorhead.errors import AnchorheadError
from anchorhead.heads.tables import table
from anchorhead.heads.tables.table import STANDARD, Entry, Frontier, frontiers, lookup, read, write
from anchorhead.language.targets import NAMED, target_of
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.heads.head import prove_head

DTYPES = ("float64", "float32")
KEYS = [(name, *on, dtype) for name, domains in STANDARD.items() for on in domains for dtype in DTYPES]


PROMISED = [
    ("sigmoid", (-10, 10), 1e-14, "float64", 2),
    ("tanh", (-10, 10), 1e-14, "float64", 2),
    ("relu", (-1, 1), 1e-9, "float64", 3),
    ("relu", (-1, 1), 1e-11, "float64", 4),
    ("hardtanh", (-2, 2), 1e-9, "float64", 4),
    ("silu", (-10, 10), 1e-6, "float64", 3),
    ("abs", (-1, 1), 1e-9, "float64", 5),
    ("square", (-1, 1), 1e-6, "float64", 3),
    ("gelu", (-10, 10), 2e-5, "float64", 7),
    ("gelu", (-10, 10), 1e-6, "float64", 8),
    ("sin", (-math.pi, math.pi), 1e-6, "float64", 6),
    ("relu", (-1, 1), 1e-4, "float32", 3),
    ("relu", (-1, 1), 1e-5, "float32", 4),
    ("hardtanh", (-2, 2), 1e-4, "float32", 4),
    ("gelu", (-10, 10), 2e-5, "float32", 9),
]


@cache
def known(name: str, low: float, high: float, dtype: Any) -> Frontier:
    found = lookup(name, low, high, dtype, str(arithmetic_of(dtype)))
    assert found is not None
    return found


def prove(entry: Entry, function: str, low: float, high: float):
    atom = entry.atom
    target = target_of(function, (low, high))
    return prove_head(atom.parts, atom.origin, atom.bias, target, arithmetic_of(atom.dtype))


def test_every_function_without_a_parameter_to_choose_is_in_the_table():
    free = {name for name, named in NAMED.items() if all(default is not None for _, default in named.parameters)}
    assert set(STANDARD) == free
    assert {one.key for one in frontiers()} == set(KEYS)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_more_anchors_have_smaller_bounds(key):
    heads = known(*key).heads
    assert heads
    for fewer, more in itertools.pairwise(heads):
        assert fewer.atom.anchors < more.atom.anchors
        assert fewer.bound > more.bound


@pytest.mark.parametrize(
    "key",
    [pytest.param(key, marks=[pytest.mark.slow] if n % 4 in (1, 2) else []) for n, key in enumerate(KEYS)],
    ids=str,
)
def test_bounds_are_proven_again(key):
    """One head of each function on each domain, few anchors here and many there, every other one in float32 and all of
    them with `make slow`; `make table` proves them all."""
    heads = known(*key).heads
    entry = heads[KEYS.index(key) * 7 % min(len(heads), 8)]
    again = prove(entry, *key[:3])
    assert again.exact <= entry.exact * (1 + 1e-9)
    assert again.rounding <= entry.rounding * (1 + 1e-6)  # other processors find other last digits; 1% more is stated
    assert math.isclose(round_up(again.total), entry.bound, rel_tol=1e-2)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_no_sampled_error_exceeds_the_bound(key):
    """As the dtype computes it, next to kinks, ends and the crossings of neighbouring anchors."""
    name, low, high, dtype = key
    target: Any = target_of(name, (low, high))
    rng = np.random.default_rng(0)
    for entry in known(*key).heads:
        atom = entry.atom
        places = [low, high, *target.kinks]
        for part in atom.parts:
            slopes, offsets, _ = part.astype(np.float64)
            with np.errstate(divide="ignore", invalid="ignore"):
                places += list(atom.origin - np.diff(offsets) / np.diff(slopes))
        steps = np.geomspace(1e-16, 1, 150) * (high - low)
        near = [p + sign * steps for p in places if low <= p <= high for sign in (-1, 1)]
        s = np.concatenate([rng.uniform(low, high, 1000), *near])
        s = s.astype(dtype).astype(np.float64)
        s = s[(s >= low) & (s <= high)]
        y = atom(s)[:, 0].astype(np.float64)
        for worst in np.argsort(np.abs(y - target.values(s)[:, 0]))[-3:]:
            assert abs(arb(float(y[worst])) - target.ball(arb(float(s[worst])))[0]) <= arb(entry.bound)


@pytest.mark.parametrize(("name", "within", "dtype"), [("gelu", 1e-6, "float64"), ("abs", 3e-5, "float32")])
def test_a_head_of_the_table_is_what_the_solver_would_certify(name, within, dtype, monkeypatch):
    on = (-10.0, 10.0)
    shipped = ah.head(name, on, within, dtype=dtype)
    monkeypatch.setattr(construction, "lookup", lambda *_: None)
    search = construction._Search(shipped.target, BuildRequest(within, dtype), Effort(construction.PROOFS))
    proven = search.certified(shipped.atom).certificate
    assert dataclasses.asdict(shipped.certificate) | {"terms": None} == dataclasses.asdict(proven) | {"terms": None}
    assert shipped.certificate.kind == "proven"
    assert shipped.certificate.bound <= within


@pytest.mark.parametrize(("name", "on", "within", "dtype", "anchors"), PROMISED)
def test_what_the_library_promises_comes_from_the_table(name, on, within, dtype, anchors, monkeypatch):
    _no_solver(monkeypatch)
    head = ah.head(name, on, within, dtype=dtype)
    assert head.anchors <= anchors
    assert head.certificate.kind == "proven"
    assert head.certificate.bound <= within


@pytest.mark.parametrize(("name", "anchors"), [("relu", 4), pytest.param("abs", 5, marks=pytest.mark.slow)])
def test_the_solver_is_no_better(name, anchors, monkeypatch):
    shipped = ah.head(name, (-1, 1), anchors=anchors)
    monkeypatch.setattr(construction, "lookup", lambda *_: None)
    solved = ah.head(name, (-1, 1), anchors=anchors).certificate.bound
    # both are as good as rounding allows, and what that costs differs by a little with the last digits of the weights
    assert shipped.certificate.bound <= 1.05 * solved


def test_a_request_between_levels_takes_the_fewest_anchors_that_do(monkeypatch):
    _no_solver(monkeypatch)
    heads = known("gelu", -10.0, 10.0, "float64").heads
    for fewer, more in itertools.pairwise(heads):
        assert ah.head("gelu", (-10, 10), fewer.bound).anchors == fewer.atom.anchors
        assert ah.head("gelu", (-10, 10), math.nextafter(fewer.bound, 0)).anchors == more.atom.anchors
        stated = ah.head("gelu", (-10, 10), anchors=fewer.atom.anchors).certificate.bound
        assert fewer.bound <= stated <= 1.02 * fewer.bound


def test_what_the_table_does_not_serve_is_solved(monkeypatch):
    asked = _no_solver(monkeypatch)
    capped: tuple[dict[str, Any], ...] = ({"max_value": 1e-3}, {"max_slope": 1e-3})
    for options in capped:
        with pytest.raises(LookupError):
            ah.head("relu", (-1, 1), 1e-6, **options)
    assert ah.head("relu", (-1, 1), anchors=3, placement="uniform").certificate.bound > 0.01
    for spec, on in (("relu", (-1, 2)), ("relu(x) + x", (-1, 1)), ("sin", (-3, 3)), ("hardtanh(x, -1, 2)", (-2, 2))):
        with pytest.raises(LookupError):
            ah.head(spec, on, 1e-3)
    assert len(asked) == 6


def test_another_model_of_arithmetic_ignores_the_table():
    assert lookup("gelu", -10.0, 10.0, "float64", "float64, exp within 1 ulp") is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "on", "k", "shift"),
    [
        ("relu", (-1, 1), 20, 20),
        ("abs", (-10, 10), -20, -20),
        ("leaky_relu", (-1, 1), 3, 3),
        ("square", (-1, 1), -4, -8),
        ("sqrt", (1, 4), 6, 3),
        ("reciprocal", (0.5, 2), 5, -5),
    ],
)
def test_powers_of_two_scale_heads_and_bounds(name, on, k, shift, dtype):
    low, high = (float(end) for end in on)
    before = known(name, low, high, dtype)
    after = known(name, math.ldexp(low, k), math.ldexp(high, k), dtype)
    s = np.random.default_rng(1).uniform(low, high, 500).astype(dtype)
    for one, two in zip(before.heads, after.heads, strict=True):
        assert (two.atom(np.ldexp(s, k)) == np.ldexp(one.atom(s), shift)).all()
        assert math.isclose(two.exact + two.rounding, math.ldexp(one.exact + one.rounding, shift), rel_tol=1e-12)
    middle = min(len(after.heads) - 1, 2)
    again = prove(after.heads[middle], name, after.low, after.high)
    assert again.total <= (after.heads[middle].exact + after.heads[middle].rounding) * (1 + 1e-9)


def test_only_intervals_that_a_power_of_two_reaches_are_scaled():
    model = str(arithmetic_of("float64"))
    for name, low, high in (("relu", -3.0, 3.0), ("relu", -1.0, 2.0), ("sqrt", 2.0, 8.0), ("tanh", -20.0, 20.0)):
        assert lookup(name, low, high, "float64", model) is None
    assert lookup("relu", -(2.0**60), 2.0**60, "float64", model) is None


def test_a_table_survives_writing_and_reading(tmp_path):
    path = tmp_path / "table.jsonl"
    write(path, read(table.PATH)[0], frontiers())
    assert path.read_bytes() == table.PATH.read_bytes()


@pytest.mark.parametrize("damage", ["digit", "cut", "header", "text"])
def test_a_damaged_table_is_refused(damage, tmp_path):
    whole = table.PATH.read_bytes()
    middle = whole.index(b"0x1.", len(whole) // 2) + 5
    other = b"1" if whole[middle : middle + 1] != b"1" else b"2"
    damaged = {
        "digit": whole[:middle] + other + whole[middle + 1 :],
        "cut": whole[: len(whole) // 2],
        "header": whole[20:],
        "text": b"no table",
    }
    path = tmp_path / "table.jsonl"
    path.write_bytes(damaged[damage])
    with pytest.raises(AnchorheadError, match=r"table of heads in .* is damaged .*: install anchorhead again"):
        read(path)


def _no_solver(monkeypatch) -> list:
    """A solver that takes note and gives up."""
    asked = []

    def refuse(*args, **options):
        asked.append(args)
        raise LookupError("the solver was asked")

    for name in ("smallest", "improvements"):
        monkeypatch.setattr(construction, name, refuse)
    return asked
