"""Heads of two keys as sigmoids: they err by no more than is derived, in the worst arithmetic and in torch's."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from flint import arb

import anchorhead as ah
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.mlp import Affine, Hidden, Mlp
from anchorhead.network import Network
from anchorhead.network.direct import TwoKeys as Runs
from anchorhead.network.direct.steps import Neurons
from anchorhead.network.direct.two_keys import SigmoidHead
from anchorhead.proof.heads.two_keys import two_keys
from anchorhead.verify import verify
from anchorhead.verify.balls import precision
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.rounding import EXP_ULPS, MODELS, SILENT
from anchorhead.verify.series import _read, that_runs
from anchorhead.verify.two_keys import Keys, TwoKeys

from .heads_directly import exact_read


def keys(*triples: tuple[float, float, float], dtype: str = "float64") -> Keys:
    a, g, v = (np.array(one, dtype).astype(np.float64) for one in zip(*triples, strict=True))
    return a, g, v


HEADS: dict[str, tuple[Keys, str, float]] = {
    "tanh, float32": (keys((-1, 0, -1), (1, 0, 1)), "float32", 30.0),
    "a sigmoid off 1, float32": (
        keys((-0.911119, -0.0173, -0.559), (0.088881, -0.0173, 0.441), dtype="float32"), "float32", 9.0,
    ),
    "far from 0, float32": (keys((0.3, 0.0, 7.1), (1.7, -20.0, -3.3), dtype="float32"), "float32", 40.0),
    "steep, float64": (keys((-300.0, 0.125, 0.0), (271.8, 3.0, 1e-3)), "float64", 2.0),
    "scaled, float64": (keys((0.0, 0.0, 0.0), (1.0, 0.0, 0.7)), "float64", 60.0),
    "sigmoid, float64": (keys((0.0, 0.0, 0.0), (1.0, 0.0, 1.0)), "float64", 900.0),
}  # fmt: skip


def both(name: str) -> tuple[TwoKeys, Runs, float]:
    """As the verifier reads it, as it is run, and the builder's bound."""
    own, dtype, reach = HEADS[name]
    found = two_keys(own, reach, dtype)
    assert found is not None
    mine = _read({key: getattr(found[0], key) for key in Runs.__dataclass_fields__}, dtype)
    assert isinstance(mine, TwoKeys)
    return mine, *found


def places(name: str) -> np.ndarray:
    """All over the interval, where the sigmoid turns, at its ends, and tiny numbers."""
    (a, g, _), dtype, reach = HEADS[name]
    centre, width = -(g[1] - g[0]) / (a[1] - a[0]), 1 / (a[1] - a[0])
    t = [np.linspace(-reach, reach, 60), centre + width * np.linspace(-40, 40, 161), [1e-40, -1e-44, 1e-310, 0.0]]
    t = np.unique(np.concatenate(t).astype(dtype).astype(np.float64))
    return t[np.abs(t) <= reach]


def worst_reads(found: Runs, t: float, dtype: str) -> list[arb]:
    """Every operation off by u, or by 4 ulp, to all sides; what is a power of two, or 0, rounds nothing."""
    u = arb(MODELS[dtype].unit)
    reads = []
    for one, two, three, four, five, six in product((-1, 1), repeat=6):
        whole = found.rate in (1.0, 2.0, 0.5)
        x = arb(found.rate) * t * (1 + u * (0 if whole else one)) + found.lead
        x = x * (1 + u * (two if found.lead else 0))
        s = 1 / ((1 + (-x).exp() * (1 + 2 * EXP_ULPS * u * three)) * (1 + u * four)) * (1 - u * four)
        y = s * found.scale * (1 + u * (0 if abs(found.scale) in (1.0, 2.0) else five)) + found.shift
        reads.append(y * (1 + u * six))
    return reads


@pytest.mark.parametrize("name", HEADS)
def test_sigmoids_err_by_no_more_than_is_derived(name: str) -> None:
    own, dtype, reach = HEADS[name]
    mine, theirs, bound = both(name)
    error, size, _ = mine.read(own, -reach, reach, MODELS[dtype], True)
    t = places(name)
    read = torch.tensor(t.astype(dtype))
    for operation in SigmoidHead(theirs, dtype).operations(read, read.new_empty(0)):
        operation()
    worst = 0.0
    with precision(300):
        for at, found in zip(t.tolist(), read.tolist(), strict=True):
            exact = exact_read(own, at)
            assert abs(arb(found) - exact) <= min(error, bound)
            assert abs(found) <= size
            worst = max(worst, *(float(abs(one - exact)) for one in worst_reads(theirs, at, dtype)))
    assert 0.7 * error < worst <= min(error, bound)


@pytest.mark.parametrize("number", ["rate", "lead", "scale", "shift"])
@pytest.mark.parametrize("name", HEADS)
def test_sigmoids_with_another_number_are_as_far_off(name: str, number: str) -> None:
    """Between the two exact functions, at many places."""
    own, dtype, reach = HEADS[name]
    mine, _, _ = both(name)
    off = replace(mine, **{number: getattr(mine, number) + 2.0**-8})
    try:
        error, *_ = off.read(own, -reach, reach, MODELS[dtype], True)
    except NotVerified:
        return
    with precision(300):
        for at in places(name).tolist():
            x = arb(off.rate) * at + off.lead
            assert abs(arb(off.scale) / (1 + (-x).exp()) + off.shift - exact_read(own, at)) <= error


def test_heads_of_more_keys_are_no_sigmoids() -> None:
    """Unless nothing is heard of the others, anywhere; two keys have two slopes, and numbers are those of the dtype."""
    (a, g, v), dtype, _ = HEADS["tanh, float32"]
    mine, _, _ = both("tanh, float32")
    for offset in (-1.0, -700.0, -900.0):
        wider = tuple(np.append(one, more) for one, more in zip((a, g, v), (0.0, offset, 5.0), strict=True))
        assert (that_runs([mine], wider, np.zeros(3)) is mine) == (offset < -SILENT)  # type: ignore[arg-type]
    with pytest.raises(NotVerified, match="float32"):
        _read({**mine.__dict__, "slopes": a, "offsets": g, "values": v, "rate": 2.0 + 1e-12}, dtype)
    with pytest.raises(NotVerified, match="not two"):
        _read({**mine.__dict__, **{name: [-1.0, 0.0, 1.0] for name in ("slopes", "offsets", "values")}}, dtype)
    with pytest.raises(NotVerified, match="one slope"):
        _read({**mine.__dict__, "slopes": [0.0, 0.0], "offsets": [0.0, 1.0], "values": v}, dtype)


def network(name: str, dtype: str, form: str) -> Network:
    rng = np.random.default_rng(0)
    hidden = Hidden.of(rng.normal(size=(40, 3)), rng.normal(size=40), parse(f"{name}(x)"))
    target = Mlp((hidden,), Affine(rng.normal(size=(2, 40)), rng.normal(size=2)))
    return ah.convert(target, on=(-2, 2), within=1.0, dtype=dtype, form=form, layout="transformer")


@pytest.mark.parametrize("dtype", MODELS)
@pytest.mark.parametrize("form", ["two-layer", "attention-softmax"])
@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_networks_run_by_sigmoids_and_are_verified(name: str, form: str, dtype: str, tmp_path) -> None:
    net = network(name, dtype, form)
    direct = net._calls.direct(torch.device("cpu"))
    assert direct is not None
    heads = [group.head for step in direct.steps if isinstance(step, Neurons) for group in step.groups]
    assert heads
    assert all(isinstance(head, SigmoidHead) for head in heads)
    net.save(tmp_path / "net.safetensors")
    assert verify(tmp_path / "net.safetensors").verified
    assert net.derivation is not None
    for number in ("rate", "lead", "scale", "shift"):
        rows = [{**row, number: row[number] + 2.0**-10} for row in net.derivation.data["series"]]
        net.with_(derivation=replace(net.derivation, data={**net.derivation.data, "series": rows})).save(
            tmp_path / "forged.safetensors"
        )
        assert not verify(tmp_path / "forged.safetensors").verified
