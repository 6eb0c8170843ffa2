"""Losses by their links: the derivative dl/ds of a loss l(s, y) at the score s = w . x + b.

Four forms are told apart, because each is laid out in its own way:

    "phi(s - y)"   a function of the residual: squared, Huber, smoothed absolute and quantile losses
    "phi(s) - y"   the link of a generalised linear model less the label: logistic, Poisson
    "y phi(y s)"   a function of the margin, for labels -1 and 1: smoothed hinge
    "g(s, y)"      anything else
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_number, shown
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.parser import parse

LinkForm = Literal["phi(s - y)", "phi(s) - y", "y phi(y s)", "g(s, y)"]
FORMS: tuple[LinkForm, ...] = ("phi(s - y)", "phi(s) - y", "y phi(y s)", "g(s, y)")
Array = Float[np.ndarray, "..."]


@dataclass(frozen=True, eq=False)
class Loss:
    """A loss by its link.

    link        phi in the variable x, or g in the variables s and y
    labels      which labels it takes, in words
    parameters  the numbers that were chosen, such as Huber's delta
    value       l(s, y) in numpy, where it is known: for objectives and pictures; of the margin in its form
    """

    name: str
    form: LinkForm
    link: Expression
    labels: str = "numbers"
    parameters: Mapping[str, float] = field(default_factory=dict)
    value: Callable[[Array, Array], Array] | None = None

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise AnchorheadError(f"form={self.form!r} of a link: one of {', '.join(FORMS)}")
        allowed = {"s", "y"} if self.form == "g(s, y)" else {"x"}
        if not set(self.link.variables) <= allowed:
            raise AnchorheadError(
                f"the link {self.link} of the form {self.form} has the variables {', '.join(self.link.variables)}: "
                f"it is a function of {' and '.join(sorted(allowed))}"
            )

    def derivative(self, s: Array, y: Array) -> Array:
        """dl/ds, entry by entry, in float64; for "y phi(y s)" s is the margin and the derivative is by the margin,
        because prompts hold y x in place of x."""
        if self.form == "g(s, y)":
            return self.link.values({"s": s, "y": y})
        phi = self.link.values({"x": self.argument(s, y)})
        return phi - y if self.form == "phi(s) - y" else phi

    def curvature(self, s: Array, y: Array) -> Array:
        """d^2 l/ds^2, entry by entry, in float64; at a kink of the link the slope of one side."""
        if self.form == "g(s, y)":
            return self.link.derivative("s").values({"s": s, "y": y})
        return self.link.derivative("x").values({"x": self.argument(s, y)})

    def argument(self, s: Array, y: Array) -> Array:
        """What phi is taken of; of the margin in its form."""
        return s - y if self.form == "phi(s - y)" else s

    def checked_labels(self, y: Array) -> Array:
        """The labels as the link takes them; refuses those that it does not take."""
        if self.name == "logistic":
            if np.isin(y, (-1.0, 1.0)).all() and (y == -1).any():
                return (y + 1) / 2
            _require(np.isin(y, (0.0, 1.0)).all(), self, y, "0 and 1, or -1 and 1")
        elif self.form == "y phi(y s)":
            _require(np.isin(y, (-1.0, 1.0)).all(), self, y, "-1 and 1")
        elif self.name == "poisson":
            _require((y >= 0).all(), self, y, "numbers of at least 0")
        return y

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "form": self.form,
            "link": self.link.to_json(),
            "labels": self.labels,
            "parameters": dict(self.parameters),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Loss:
        known = named_loss(data["name"], **data["parameters"]) if data["name"] in LOSSES else None
        link = Expression.from_json(data["link"])
        value = known.value if known is not None and known.link == link else None
        return cls(str(data["name"]), data["form"], link, str(data["labels"]), dict(data["parameters"]), value)

    def __str__(self) -> str:
        chosen = ", ".join(f"{name}={in_full(value)}" for name, value in self.parameters.items())
        return f"{self.name} loss" + (f" ({chosen})" if chosen else "")


def in_full(number: float) -> str:
    """All digits that tell it from other numbers of float64; a whole number without its point."""
    return repr(float(number)).removesuffix(".0")


def _require(holds: Any, loss: Loss, y: Array, allowed: str) -> None:
    if not holds:
        seen = ", ".join(f"{value:g}" for value in np.unique(y)[:4])
        raise AnchorheadError(f"labels such as {seen} for the {loss}: it takes {allowed}")


def _softplus(x: Array) -> Array:
    return np.logaddexp(0.0, x)


def _squared() -> Loss:
    return Loss("squared", "phi(s - y)", parse("x"), value=lambda s, y: (s - y) ** 2 / 2)


def _logistic() -> Loss:
    return Loss(
        "logistic", "phi(s) - y", parse("sigmoid(x)"), "0 and 1, or -1 and 1", value=lambda s, y: _softplus(s) - y * s
    )


def _poisson() -> Loss:
    return Loss("poisson", "phi(s) - y", parse("exp(x)"), "numbers of at least 0", value=lambda s, y: np.exp(s) - y * s)


def _huber(delta: float = 1.35) -> Loss:
    def value(s: Array, y: Array) -> Array:
        r = np.abs(s - y)
        return np.where(r <= delta, r**2 / 2, delta * (r - delta / 2))

    link = parse(f"clip(x, {-delta!r}, {delta!r})")
    return Loss("huber", "phi(s - y)", link, parameters={"delta": delta}, value=value)


def _absolute(smoothing: float = 0.1) -> Loss:
    def value(s: Array, y: Array) -> Array:
        r = (s - y) / smoothing
        return smoothing * (np.logaddexp(r, -r) - np.log(2.0))

    link = parse(f"tanh(x/{smoothing!r})")
    return Loss("absolute", "phi(s - y)", link, parameters={"smoothing": smoothing}, value=value)


def _quantile(q: float = 0.5, smoothing: float = 0.1) -> Loss:
    if not 0 < q < 1:
        raise AnchorheadError(f"q={q!r} of the quantile loss: a number between 0 and 1")

    def value(s: Array, y: Array) -> Array:
        return smoothing * _softplus((s - y) / smoothing) - q * (s - y)

    link = parse(f"sigmoid(x/{smoothing!r}) - {q!r}")
    return Loss("quantile", "phi(s - y)", link, parameters={"q": q, "smoothing": smoothing}, value=value)


def _hinge(smoothing: float = 0.1) -> Loss:
    link = parse(f"-sigmoid((1 - x)/{smoothing!r})")
    return Loss(
        "hinge",
        "y phi(y s)",
        link,
        "-1 and 1",
        {"smoothing": smoothing},
        lambda margin, _: smoothing * _softplus((1 - margin) / smoothing),
    )


LOSSES: dict[str, Callable[..., Loss]] = {
    "squared": _squared,
    "logistic": _logistic,
    "poisson": _poisson,
    "huber": _huber,
    "absolute": _absolute,
    "quantile": _quantile,
    "hinge": _hinge,
}


def named_loss(name: str, **parameters: float) -> Loss:
    """A loss by its name; Huber takes delta=, quantile q=, absolute, quantile and hinge smoothing=.

    >>> incontext.named_loss("huber", delta=2.0).form
    'phi(s - y)'
    """
    if not isinstance(name, str) or name not in LOSSES:
        raise AnchorheadError(
            f"loss={shown(name)}: one of {', '.join(LOSSES)}, or a link of your own, see incontext.link"
        )
    needed = f"the {name} loss takes a number above 0"
    given = {key: checked_number(key, value, needed, above=0.0) for key, value in parameters.items()}
    try:
        return LOSSES[name](**given)
    except TypeError as error:
        raise AnchorheadError(f"the {name} loss does not take {', '.join(parameters)}: {error}") from error


def link(expression: str | Expression, form: LinkForm = "phi(s - y)", name: str = "own") -> Loss:
    """A loss of one's own by its link dl/ds: phi as a text in x, or with form="g(s, y)" a text in s and y.

    >>> loss = incontext.link("tanh(x)")  # of log cosh(s - y)
    >>> net = incontext.gradient_descent(loss, steps=3, rate=0.3, features=1, scores=(-4, 4))
    """
    if form not in FORMS:
        raise AnchorheadError(f"form={form!r} of a link: one of {', '.join(FORMS)}")
    variables = ("s", "y") if form == "g(s, y)" else ("x",)
    parsed = expression if isinstance(expression, Expression) else parse(expression, variables)
    labels = "-1 and 1" if form == "y phi(y s)" else "numbers"
    return Loss(name, form, parsed, labels)
