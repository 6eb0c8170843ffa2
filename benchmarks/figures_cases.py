"""The cases of `benchmarks.figures`: every construction, form, layout and dtype, each a call that a user would make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise, product
from typing import Any

import numpy as np

Build = Callable[[], Any]
BOTH = ("float64", "float32")

_NAMED = {
    **dict.fromkeys(("gelu", "silu", "tanh", "sigmoid", "softplus", "mish", "elu", "hardswish"), (-10, 10)),
    **dict.fromkeys(("relu", "abs", "square", "exp", "leaky_relu"), (-1, 1)),
    **dict.fromkeys(("log", "reciprocal"), (0.5, 2)),
    "sin": (-np.pi, np.pi),
    "erf": (-4, 4),
    "sqrt": (1, 4),
}
_SOLVED = {
    "sin(3*x)*exp(x)": (1e-3, 1e-6),
    "exp(-4*x**2)": (1e-3, 1e-6),
    "1/(1 + 25*x**2)": (1e-3, 1e-6),
    "sin(10*x)": (1e-3,),
    "sin(50*x)": (1e-3,),
    "abs(x - 0.3) + x**2": (1e-3,),
    "max(sin(3*x), x)": (1e-3,),
    "x**5 - x": (1e-6,),
    "log(1.1 + x)": (1e-4,),
    "relu(x - 0.5) - relu(x + 0.5)": (1e-6,),
    "tanh(5*x)*x": (1e-4,),
}
_BOXES: dict[str, tuple[str, float]] = {
    "x*y": ("xy", 1e-6),
    "x*y + sin(z)": ("xyz", 1e-4),
    "sin(3*x)*cos(2*y) + exp(x*y)": ("xy", 1e-6),
    "exp(x*y)": ("xy", 1e-3),
    "max(x, y)": ("xy", 1e-6),
    "max(x, min(y, z)) + abs(x - z)": ("xyz", 1e-4),
    "sin(x*y) + exp(z*w) + relu(u - x)": ("xyzwu", 1e-4),
    "1/(1 + x**2 + y**2)": ("xy", 1e-4),
    "1/(1 + x**2 + y**2 + z**2)": ("xyz", 1e-3),
    "x*y*z": ("xyz", 1e-4),
    "exp(sin(x + 2*y))": ("xy", 1e-4),
    "sqrt(2 + x*y)": ("xy", 1e-4),
    "sin(x + y + z + w)": ("xyzw", 1e-5),
}

_GAIN, _SUM = "beta*(Rc2 + 9)", "(beta*(Rc2 + 9) + Rf)"
_FORCE = "(P0*S + 19.62*M - k*V0/S)"
_VOLUME = f"(S/(2*k)*(sqrt({_FORCE}**2 + 4*k*P0*V0*Ta/T0) - {_FORCE}))"
DEEP: dict[str, tuple[str, dict[str, tuple[float, float]], float]] = {
    "borehole": (
        "2*pi*Tu*(Hu - Hl)/(log(r/rw)*(1 + 2*L*Tu/(log(r/rw)*rw**2*Kw) + Tu/Tl))",
        {
            "rw": (0.05, 0.15),
            "r": (100, 50_000),
            "Tu": (63_070, 115_600),
            "Hu": (990, 1110),
            "Tl": (63.1, 116),
            "Hl": (700, 820),
            "L": (1120, 1680),
            "Kw": (9855, 12_045),
        },
        0.3,
    ),
    "OTL circuit": (
        f"(12*Rb2/(Rb1 + Rb2) + 0.74)*{_GAIN}/{_SUM} + 11.35*Rf/{_SUM} + 0.74*Rf*{_GAIN}/({_SUM}*Rc1)",
        {"Rb1": (50, 150), "Rb2": (25, 70), "Rf": (0.5, 3), "Rc1": (1.2, 2.5), "Rc2": (0.25, 1.2), "beta": (50, 300)},
        5e-3,
    ),
    "piston": (
        f"2*pi*sqrt(M/(k + S**2*P0*V0*Ta/(T0*{_VOLUME}**2)))",
        {
            "M": (30, 60),
            "S": (0.005, 0.02),
            "V0": (0.002, 0.01),
            "k": (1000, 5000),
            "P0": (90_000, 110_000),
            "Ta": (290, 296),
            "T0": (340, 360),
        },
        1e-3,
    ),
    "Friedman": (
        "10*sin(pi*x1*x2) + 20*(x3 - 0.5)**2 + 10*x4 + 5*x5",
        {f"x{i}": (0, 1) for i in range(1, 6)},
        2.8e-2,
    ),
    "Ishigami": (
        "sin(x1) + 7*sin(x2)**2 + 0.1*x3**4*sin(x1)",
        {f"x{i}": (-np.pi, np.pi) for i in range(1, 4)},
        2.8e-2,
    ),
    "six variables": ("exp(sin(x*y) + z)/(1 + w**2 + u*v)", dict.fromkeys("xyzwuv", (0, 1)), 1e-6),
}
"""The functions by which surrogates of computer experiments are compared, on their usual boxes, within a thousandth of
how much they vary there; and a composition."""


def cases() -> dict[str, Build]:
    """Every case by its name."""
    parts = (_heads(), _truncated(), _converted(), _boxes(), _deep(), _callables(), _learners(), _models())
    return {name: build for part in parts for name, build in part}


def _heads() -> Iterator[tuple[str, Build]]:
    import anchorhead as ah

    def named(*given: Any, **words: Any) -> Build:
        return lambda: ah.head(*given, **words)

    for (name, on), (dtype, within) in product(_NAMED.items(), (("float64", 1e-6), ("float32", 1e-3))):
        yield f"head {name} within {within:g}, {dtype}", named(name, on=on, within=within, dtype=dtype)
    for name in ("gelu", "sin", "relu"):
        yield f"head {name}, 6 anchors, float64", named(name, on=_NAMED[name], anchors=6)
    for expression, errors in _SOLVED.items():
        for within in errors:
            yield f"head {expression} within {within:g}, float64", named(expression, on=(-1, 1), within=within)
    for expression in ("sin(3*x)*exp(x)", "tanh(5*x)*x", "abs(x - 0.3) + x**2"):
        words = {"within": 1e-3, "dtype": "float32"}
        yield f"head {expression} within 0.001, float32", named(expression, on=(-1, 1), **words)
    for name, within in (("gelu", 1e-2), ("sin", 1e-2), ("relu", 1e-2)):
        words = {"within": within, "placement": "uniform"}
        yield f"head {name} within {within:g}, uniform", named(name, on=_NAMED[name], **words)
    yield "head [sin, cos] within 1e-05, float64", named(["sin(x)", "cos(x)"], on=(-2, 2), within=1e-5)


def _truncated() -> Iterator[tuple[str, Build]]:
    import anchorhead as ah

    rng = np.random.default_rng(0)
    w, t = rng.normal(size=(8, 4)), rng.normal(size=8)
    for dtype, words in product(BOTH, ({"anchors": 8}, {"anchors": 64}, {"anchors": 512}, {"heads": 1}, {"heads": 8})):
        said = ", ".join(f"{count} {what}" for what, count in words.items())

        def build(dtype: str = dtype, words: dict[str, int] = words) -> Any:
            return ah.truncated_linear(w, t, low=-1, high=1, dtype=dtype, **words)

        yield f"truncated linear, {said}, {dtype}", build


def mlp(*sizes: int, activation: str = "ReLU") -> Any:
    """Weights that are the same every time."""
    import torch

    rng, modules = np.random.default_rng(sum(sizes)), []
    for inputs, outputs in pairwise(sizes):
        linear = torch.nn.Linear(inputs, outputs, dtype=torch.float64)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(rng.normal(size=(outputs, inputs)) / np.sqrt(inputs)))
            linear.bias.copy_(torch.from_numpy(0.3 * rng.normal(size=outputs)))
        modules += [linear, getattr(torch.nn, activation)()]
    return torch.nn.Sequential(*modules[:-1])


def _converted() -> Iterator[tuple[str, Build]]:
    import anchorhead as ah

    def converted(*sizes: int, activation: str = "ReLU", within: float = 1e-4, **words: Any) -> Build:
        return lambda: ah.convert(mlp(*sizes, activation=activation), on=(-1, 1), within=within, **words)

    for form, layout, dtype in product(("two-layer", "attention-softmax"), ("transformer", "sequence"), BOTH):
        words: dict[str, Any] = {"tokens": 4, "form": form, "layout": layout, "dtype": dtype}
        yield f"convert 8-16-4, {form}, {layout}, {dtype}", converted(8, 16, 4, within=1e-2, **words)
    for layout, dtype in product(("transformer", "sequence"), BOTH):
        words = {"tokens": 2, "form": "deep", "layout": layout, "dtype": dtype}
        yield f"convert 4-8-8-2, deep, {layout}, {dtype}", converted(4, 8, 8, 2, within=1e-2, **words)
    for activation in ("GELU", "Tanh", "SiLU", "Sigmoid", "ELU"):
        yield f"convert 4-16-2, {activation}, float64", converted(4, 16, 2, activation=activation)
    yield "convert 100-10-100, 20 tokens, float64", converted(100, 10, 100, within=1e-6, tokens=20)
    yield "convert 16-256-1, float64", converted(16, 256, 1)
    yield "convert 16-256-1, float32", converted(16, 256, 1, within=0.1, dtype="float32")
    yield "convert 2-16-16-16-1, float64", converted(2, 16, 16, 16, 1)
    yield "convert 4-8-2, uniform", converted(4, 8, 2, within=0.5, placement="uniform")
    yield "convert spline, float64", _spline
    yield "convert kernel smoother, float64", lambda: _smoother("float64")
    yield "convert kernel smoother, float32", lambda: _smoother("float32")


def _spline() -> Any:
    from scipy.interpolate import CubicSpline

    import anchorhead as ah

    x = np.linspace(0, 3, 7)
    return ah.convert(CubicSpline(x, np.sin(x)), on=(0, 3), within=1e-4)


def _smoother(dtype: str) -> Any:
    import anchorhead as ah
    from anchorhead.convert import KernelSmoother

    rng = np.random.default_rng(3)
    smoother = KernelSmoother(rng.normal(size=(20, 3)), rng.normal(size=20), 0.7)
    return ah.convert(smoother, on=(-1, 1), dtype=dtype)


def _boxes() -> Iterator[tuple[str, Build]]:
    import anchorhead as ah

    def boxed(expression: Any, names: str, within: float, **words: Any) -> Build:
        return lambda: ah.approximate(expression, on=dict.fromkeys(names, (-1, 1)), within=within, **words)

    for expression, (names, within) in _BOXES.items():
        yield f"approximate {expression} within {within:g}, float64", boxed(expression, names, within)
    for expression in ("x*y", "exp(x*y)", "max(x, y)", "sin(x + y + z + w)"):
        names, _ = _BOXES[expression]
        yield f"approximate {expression} within 0.01, float32", boxed(expression, names, 1e-2, dtype="float32")
    for layout in ("sequence", "transformer"):
        yield f"approximate x*y + sin(z), {layout}", boxed("x*y + sin(z)", "xyz", 1e-4, layout=layout)
    yield "approximate x*y*z within 0.2, uniform", boxed("x*y*z", "xyz", 0.2, placement="uniform")
    yield "approximate two outputs, float64", boxed(["x*y", "sin(x) + y"], "xy", 1e-4)


def _deep() -> Iterator[tuple[str, Build]]:
    import anchorhead as ah

    for name, (expression, on, within) in DEEP.items():

        def build(expression: str = expression, on: Any = on, within: float = within) -> Any:
            return ah.approximate(expression, on=on, within=within)

        yield f"approximate {name} within {within:g}", build


def _callables() -> Iterator[tuple[str, Build]]:
    import anchorhead as ah

    def bump(x: np.ndarray) -> np.ndarray:
        return np.exp(-3 * (x**2).sum(axis=1))

    def called(names: str, within: float, **words: Any) -> Build:
        return lambda: ah.approximate(bump, on=dict.fromkeys(names, (-1, 1)), within=within, **words)

    yield "callable of 1 input, measured", lambda: ah.approximate(_wave, on={"a": (-1, 1)}, within=1e-4)
    yield "callable of 2 inputs, measured", called("ab", 1e-3)
    yield "callable of 2 inputs, Lipschitz", called("ab", 0.1, lipschitz=1.5)


def _wave(x: np.ndarray) -> np.ndarray:
    return np.sin(3 * x) * np.exp(x)


def _learners() -> Iterator[tuple[str, Build]]:
    from anchorhead import incontext

    def learner(loss: str, **words: Any) -> Build:
        words = {"steps": 10, "rate": 0.05, "features": 3, "on": (-1, 1), "examples": 20, **words}
        return lambda: incontext.gradient_descent(loss=loss, **words)

    losses = ("squared", "logistic", "poisson", "huber", "absolute", "quantile", "hinge")
    for loss, layout in product(losses, ("transformer", "sequence")):
        yield f"learner {loss}, {layout}, float64", learner(loss, layout=layout)
    for dtype in BOTH:
        yield f"learner squared, direct, {dtype}", learner("squared", dtype=dtype)
        yield f"learner squared, momentum, {dtype}", learner("squared", momentum=0.5, intercept=True, dtype=dtype)
        yield f"learner squared, threshold, {dtype}", learner("squared", threshold=0.01, dtype=dtype)
    yield "learner logistic, 100 steps, float64", learner("logistic", steps=100)


def _models() -> Iterator[tuple[str, Build]]:
    import anchorhead as ah

    def model(family: str, within: float, **words: Any) -> Build:
        def build() -> Any:
            import torch
            import transformers

            torch.manual_seed(0)
            small = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 99}
            config = getattr(transformers, f"{family}Config")(**small, intermediate_size=128, **words)
            return ah.attention_only(getattr(transformers, f"{family}Model")(config).eval(), within=within)[1]

        return build

    yield "attention-only BERT within 1e-05", model("Bert", 1e-5)
    yield "attention-only BERT, relu within 1e-05", model("Bert", 1e-5, hidden_act="relu")
    yield "attention-only Llama within 1e-04", model("Llama", 1e-4)
