"""The faces that the solver and the prover see, for expressions and for callables."""

import ast
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from flint import arb

from anchorhead.errors import AnchorheadError
from anchorhead.language import targets
from anchorhead.language.targets import CallableTarget, ScalarTarget, parse, target_of


def test_a_target_from_everything_that_a_user_writes() -> None:
    gelu = target_of("gelu", (-10, 10))
    assert isinstance(gelu, ScalarTarget)
    assert (gelu.name, gelu.outputs, gelu.kinks) == ("gelu", 1, ())
    assert (
        target_of("gelu(x)", (-10, 10))
        == gelu
        == target_of(parse("gelu(t)", "t").substitute({"t": parse("x")}), (-10, 10))
    )
    both = target_of(["sin(x)", "abs", "x + 1"], on=(-1, 1))
    assert isinstance(both, ScalarTarget)
    assert (both.name, both.outputs, both.kinks) == ("[sin, abs, x + 1]", 3, (0.0,))
    assert both.values(np.zeros((4, 2))).shape == (4, 2, 3)
    assert [float(ball) for ball in both.ball(arb(0))] == [0, 0, 1]
    assert target_of("hardtanh(x, -2, 2)", (-3, 3)).name == "hardtanh(x, -2, 2)"
    assert isinstance(target_of(np.abs, (-1, 1)), CallableTarget)


@pytest.mark.parametrize(
    ("spec", "on", "message"),
    [
        ("gelu", (1, 1), "single point"), ("gelu", (2, 1), "lower end above"),
        ("gelu", (0, math.inf), "not bounded"), ("gelu", (0, math.nan), "not bounded"),
        ("gelu", 3, "not a domain"), ("gelu", ("a", "b"), "not a domain"),
        ("gelu", (-1.7e308, 1.7e308), "wider"), (3, (0, 1), "not a target"), ([], (0, 1), "not a target"),
        ([3], (0, 1), "not a target"), ("gellu", (0, 1), "did you mean gelu"),
        ("clip", (0, 1), r"write clip\(x, low, high\)"),
        ("1/x", (-1, 1), "x = 0"), (["x", "log(x)"], (0, 1), "x = 0"),
    ],
)  # fmt: skip
def test_bad_targets_are_refused(spec: object, on: object, message: str) -> None:
    with pytest.raises(AnchorheadError, match=message):
        target_of(spec, on)  # type: ignore[arg-type]


CALLABLES = [
    (np.abs, (-1, 1.7), [0]),
    (lambda x: np.maximum(x - 0.3, 0) + np.sin(20 * x), (-1, 1.7), [0.3]),
    (lambda x: np.abs(np.sin(5 * x)), (-2, 2), [k * math.pi / 5 for k in range(-3, 4)]),
    (lambda x: sum(np.maximum(x - 0.137 * k, 0) * (-1) ** k for k in range(20)), (-1, 4),
     [0.137 * k for k in range(20)]),
    (lambda x: np.abs(x - 1005.123), (1000, 1010), [1005.123]),
    (lambda x: 1e-6 * np.abs(x), (-1e-6, 1e-6), [0]),
    (lambda x: np.clip(x, -1, 1) * 1e5 + 7e8, (-2, 3), [-1, 1]),
    (lambda x: np.sqrt(np.abs(x - 0.2)), (-1, 4), [0.2]),
    (lambda x: np.stack([np.abs(x - 0.1), np.maximum(x, 0.3)], 1), (-1, 1), [0.1, 0.3]),
    (torch.nn.functional.hardswish, (-5, 5), [-3, 3]),
    (lambda x: np.tanh(x) ** 3, (-3, 3), []),
    (lambda x: np.tanh(1e4 * x), (-3, 3), []),
    (np.sin, (1000, 1010), []),
    (lambda x: np.exp(-(x**2)), (-4, 4), []),
    (lambda x: 0 * x + 1, (-1, 1), []),
    (torch.nn.functional.gelu, (-6, 6), []),
]  # fmt: skip


@pytest.mark.parametrize(("f", "on", "kinks"), CALLABLES)
def test_kinks_of_callables_are_found_by_search(f, on: tuple[float, float], kinks: list[float]) -> None:
    assert target_of(f, on).kinks == pytest.approx(kinks, abs=1e-9 * (on[1] - on[0]))


@pytest.mark.parametrize(("f", "at"), [(np.sign, 0), (lambda x: np.where(x < 0.3, 0, x), 0.3), (np.floor, 1)])
def test_a_jump_of_a_callable_is_named(f, at: float) -> None:
    with pytest.raises(AnchorheadError, match=f"not continuous at x = {at}"):
        _ = target_of(f, (-0.7, 1.9) if at != 1 else (0.5, 1.9)).kinks


def test_a_callable_without_arrays_is_vectorised_and_says_so() -> None:
    with pytest.warns(UserWarning, match="takes no arrays") as caught:
        target = target_of(lambda x: math.sin(x) if x > 0 else 0.0, (-1, 1))
    assert len(caught) == 1
    np.testing.assert_allclose(target.values([-0.5, 0.5])[:, 0], [0, math.sin(0.5)])


def test_a_callable_of_vectors_and_of_tensors() -> None:
    assert target_of(lambda x: np.stack([x, x**2], axis=-1), (0, 1)).values(np.zeros((3, 4))).shape == (
        3,
        4,
        2,
    )
    np.testing.assert_allclose(
        target_of(torch.nn.functional.silu, (0, 1)).values([0.5]), target_of("silu", (0, 1)).values([0.5])
    )


@pytest.mark.parametrize(
    ("f", "on", "message"),
    [
        (np.log, (-1, 1), r"log is nan at x = -1\.0"),
        (lambda x: 1 / x, (0, 1), r"inf at x = 0\.0"),
        (lambda x: np.where(x > 0.5, np.nan, x), (0, 1), "nan at x = 0.5"),
        (lambda x: x / x.max(), (0.5, 1), "on its own x alone"),
        (lambda x: np.random.default_rng().random(x.shape), (0, 1), "chance"),
        (lambda x: "a", (0, 1), "no usable values"),
        (lambda x: x * 1j, (0, 1), "no usable values"),
        (lambda x, y: x, (0, 1), "takes 2 arguments, x, y"),
    ],
)
def test_bad_callables_are_refused(f, on: tuple[float, float], message: str) -> None:
    with pytest.raises(AnchorheadError, match=message):
        target_of(f, on)


def test_a_callable_is_saved_as_a_digest_and_recognised() -> None:
    target = CallableTarget(np.sin, -1, 1, lipschitz=1)
    assert len(target.digest) == 64
    assert CallableTarget(lambda x: np.sin(x), -1, 1).digest == target.digest
    assert CallableTarget(np.tanh, -1, 1).digest != target.digest
    assert CallableTarget(np.sin, -1, 2).digest != target.digest
    with pytest.raises(AnchorheadError, match="lipschitz=-1"):
        CallableTarget(np.sin, -1, 1, lipschitz=-1)


def test_the_room_imports_what_it_may() -> None:
    recorded = (
        "ramp.py",
        "mlp.py",
        "kernel_smoother.py",
        "several.py",
        "opaque_several.py",
        "expressions.py",
        "descent.py",
        "many_learners.py",
    )  # these know how a network stores its target
    own = [path for path in Path(targets.__file__).parent.glob("*.py") if path.name not in recorded]
    for path in own:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                own = ("language.targets", "language.analysis", "language.expressions")
                rooms = ("decimals", "errors", "given", "read_only", *own)
                allowed = (*(f"anchorhead.{room}" for room in rooms), "numpy", "flint", "jaxtyping")
                assert name.startswith(allowed) or name.split(".")[0] in sys.stdlib_module_names, (path, name)


def test_a_lipschitz_constant_that_values_contradict_is_refused():
    with pytest.raises(AnchorheadError, match=r"changes by .* and lipschitz=0.1 allows"):
        CallableTarget(lambda x: np.sin(5 * x), -3, 3, lipschitz=0.1)
    CallableTarget(lambda x: np.abs(x) + 1e9, -3, 3, lipschitz=1)
