"""Functions by name, with their definitions in core operations; parameters and defaults are torch's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions import build
from anchorhead.language.expressions.build import ONE, TWO, ZERO, add, div, integer_power, make, mul, neg, number, sub
from anchorhead.language.expressions.expression import CORE, Expression
from anchorhead.language.expressions.precision import FLOAT64_BITS, precision

HALF, THREE, SIX = number(0.5), number(3), number(6)
SELU_ALPHA = number(1.6732632423543772848170429916717)
SELU_SCALE = number(1.0507009873554804934193349852946)


@dataclass(frozen=True)
class Named:
    """A function of x, and of constant parameters with defaults.

    define     the definition in core operations, of x and every parameter; None for a core operation itself.
               A core operation with parameters (softplus) is written out when it is called.
    demand     what the parameters must satisfy: (what must be positive, in words); checked on balls
    """

    name: str
    description: str
    define: Callable[..., Expression] | None = None
    parameters: tuple[tuple[str, float | None], ...] = ()
    demand: tuple[Callable[..., Expression], str] | None = None

    @property
    def signature(self) -> str:
        shown = [name if default is None else f"{name}={default:g}" for name, default in self.parameters]
        return f"{self.name}({', '.join(['x', *shown])})"


def _max(*args: Expression) -> Expression:
    return make("max", args)


def _min(*args: Expression) -> Expression:
    return make("min", args)


def _do(op: str, x: Expression) -> Expression:
    return make(op, (x,))


def _clip(x: Expression, low: Expression, high: Expression) -> Expression:
    return _min(_max(x, low), high)


def _elu(x: Expression, alpha: Expression) -> Expression:
    return build.where("<", ZERO, x, x, mul(alpha, _do("expm1", x)))


def _gelu_tanh(x: Expression) -> Expression:
    # x (1 + tanh u)/2 = x sigmoid(2u): no cancellation in the left tail
    inner = add(x, mul(number(0.044715), integer_power(x, 3)))
    return mul(x, _do("sigmoid", mul(TWO, _do("sqrt", div(TWO, build.PI)), inner)))


def _soft_threshold(x: Expression, lam: Expression) -> Expression:
    return add(_max(sub(x, lam), ZERO), _min(add(x, lam), ZERO))


_ORDERED = (lambda low, high: sub(high, low), "low must lie below high")
_POSITIVE = (lambda a: a, "it must be positive")

_ALL = (
    Named("relu", "max(x, 0)", lambda x: _max(x, ZERO)),
    Named("leaky_relu", "x for x > 0, slope*x below", lambda x, s: build.where("<", x, ZERO, mul(s, x), x),
          (("slope", 0.01),)),
    Named("relu6", "x clipped to [0, 6]", lambda x: _clip(x, ZERO, SIX)),
    Named("hardtanh", "x clipped to [low, high]", _clip, (("low", -1.0), ("high", 1.0)), _ORDERED),
    Named("clip", "x clipped to [low, high]", _clip, (("low", None), ("high", None)), _ORDERED),
    Named("abs", "|x|"),
    Named("hardswish", "x*relu6(x + 3)/6", lambda x: div(mul(x, _clip(add(x, THREE), ZERO, SIX)), SIX)),
    Named("hardsigmoid", "relu6(x + 3)/6", lambda x: div(_clip(add(x, THREE), ZERO, SIX), SIX)),
    Named("gelu", "x*(1 + erf(x/sqrt(2)))/2, the exact form",
          lambda x: mul(HALF, x, _do("erfc", neg(div(x, _do("sqrt", TWO)))))),
    Named("gelu_tanh", "x*(1 + tanh(sqrt(2/pi)*(x + 0.044715*x**3)))/2, torch's tanh form", _gelu_tanh),
    Named("silu", "x*sigmoid(x)", lambda x: mul(x, _do("sigmoid", x))),
    Named("mish", "x*tanh(softplus(x))", lambda x: mul(x, _do("tanh", _do("softplus", x)))),
    Named("elu", "x for x > 0, alpha*(exp(x) - 1) below", _elu, (("alpha", 1.0),)),
    Named("selu", "1.0507*elu(x, 1.6733), torch's constants", lambda x: mul(SELU_SCALE, _elu(x, SELU_ALPHA))),
    Named("celu", "x for x > 0, alpha*(exp(x/alpha) - 1) below",
          lambda x, a: build.where("<", ZERO, x, x, mul(a, _do("expm1", div(x, a)))),
          (("alpha", 1.0),), _POSITIVE),
    Named("softplus", "log(1 + exp(beta*x))/beta, without torch's threshold",
          lambda x, b: _do("softplus", x) if b is ONE else div(_do("softplus", mul(b, x)), b),
          (("beta", 1.0),), _POSITIVE),
    Named("tanh", "the hyperbolic tangent"),
    Named("sigmoid", "1/(1 + exp(-x))"),
    Named("softsign", "x/(1 + |x|)", lambda x: div(x, add(ONE, _do("abs", x)))),
    Named("erf", "the error function"),
    Named("erfc", "1 - erf(x)"),
    Named("exp", "the exponential function"),
    Named("expm1", "exp(x) - 1, accurate near 0"),
    Named("log", "the natural logarithm, x > 0"),
    Named("log1p", "log(1 + x), accurate near 0, x > -1"),
    Named("sqrt", "the square root, x >= 0"),
    Named("square", "x**2", lambda x: integer_power(x, 2)),
    Named("reciprocal", "1/x, x != 0", lambda x: div(ONE, x)),
    Named("sin", "the sine"),
    Named("cos", "the cosine"),
    Named("tan", "the tangent, between its poles", lambda x: div(_do("sin", x), _do("cos", x))),
    Named("soft_threshold", "x moved towards 0 by lam, 0 for |x| <= lam", _soft_threshold, (("lam", 0.5),),
          _POSITIVE),
)  # fmt: skip

NAMED: dict[str, Named] = {named.name: named for named in _ALL}


def call(name: str, args: tuple[Expression, ...]) -> Expression:
    """The function `name` of args: x, then any of its parameters; those left out take their defaults."""
    named = NAMED.get(name)
    if named is None:
        raise AnchorheadError(f"{name!r} is not a function: {', '.join(NAMED)}, min, max and where are known")
    needed = 1 + sum(default is None for _, default in named.parameters)
    if not needed <= len(args) <= 1 + len(named.parameters):
        raise AnchorheadError(f"{name} with {len(args)} arguments: write {named.signature}")
    if named.define is None:
        return make(name, args)
    defaults = [default for _, default in named.parameters[len(args) - 1 :]]
    args = (*args, *(number(default) for default in defaults if default is not None))
    for (parameter, _), value in zip(named.parameters, args[1:], strict=True):
        if value.variables:
            raise AnchorheadError(f"{parameter}={value} of {name} is not constant: give a number ({named.signature})")
    if named.demand and not _surely_positive(named.demand[0](*args[1:])):
        given = ", ".join(f"{p}={value}" for (p, _), value in zip(named.parameters, args[1:], strict=True))
        raise AnchorheadError(f"{given} of {name}: {named.demand[1]}")
    return named.define(*args) if name in CORE else Expression(name, args)


@precision(FLOAT64_BITS)
def _surely_positive(constant: Expression) -> bool:
    return constant.ball({}) > 0


def expand(root: Expression) -> Expression:
    """`root` with every named function replaced by its definition."""

    def define(node: Expression) -> Expression | None:
        named = None if node.op in CORE else NAMED[node.op]
        return named.define(*node.args) if named and named.define else None

    return build.rebuild(root, define)


def shown_args(node: Expression) -> tuple[Expression, ...]:
    """The arguments of a function as a user writes them: trailing parameters at their defaults left out."""
    args = list(node.args)
    named = NAMED.get(node.op)
    parameters = named.parameters if named and len(args) == 1 + len(named.parameters) else ()
    for _, default in reversed(parameters):
        if default is None or args[-1] is not number(default):
            break
        args.pop()
    return tuple(args)
