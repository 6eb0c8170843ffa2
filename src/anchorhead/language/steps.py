"""The seven steps of a program: what exact mathematics is written in before any of it becomes attention.

A quantity is an array of real numbers, tokens x features; a step makes one from earlier ones. Steps say what a number
is and nothing of how it will be computed: no heads, no layers, no rounding.

    Input        tokens of one kind over a box; how many there are may be left open
    Affine       sum_i W_i q_i + b: on features, with weights of their own at each position, or across tokens
    Apply        functions of one or more quantities, entry by entry
    Dot          <a_i, b_j> for the tokens i of one quantity and j of another
    Attend       softmax means of values; without queries and keys the plain mean
    Normalise    LayerNorm and RMSNorm, without their scales and shifts, which are affine
    Repeat       a body with carried state, so many times over
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float, Int

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.expression import Expression
from anchorhead.read_only import ReadOnly, read_only

if TYPE_CHECKING:
    from anchorhead.language.program import Program

Mask = Literal["causal"]
Norm = Literal["layer", "rms"]


@dataclass(frozen=True)
class Shape:
    """How many tokens and features a quantity has; tokens None: as many as are given."""

    tokens: int | None
    width: int

    def __str__(self) -> str:
        return f"{'n' if self.tokens is None else self.tokens} x {self.width}"


@dataclass(frozen=True, eq=False)
class Input(ReadOnly):
    """Tokens that are given, each with the named features, entry by entry between low and high.

    tokens     how many, or None: any number from 1 to `most` (None: no limit)
    low, high  (tokens, features), (1, features) where tokens are left open; None inside a Repeat, where what is
               carried has no box of its own
    """

    features: tuple[str, ...]
    low: Float[np.ndarray, "tokens features"] | None = None
    high: Float[np.ndarray, "tokens features"] | None = None
    tokens: int | None = 1
    most: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        if not self.features or (self.tokens is not None and self.tokens < 1):
            raise AnchorheadError(f"an input of {self.tokens} tokens of {len(self.features)} features: at least 1 each")
        if (self.low is None) != (self.high is None):
            raise AnchorheadError("an input with one end of its box: give both low and high, or neither")
        if self.low is None or self.high is None:
            return
        shape = (self.tokens or 1, len(self.features))
        for name in ("low", "high"):
            ends = np.broadcast_to(np.asarray(getattr(self, name), np.float64), shape)
            object.__setattr__(self, name, read_only(ends))
        if not (np.isfinite(self.low).all() and np.isfinite(self.high).all() and (self.low <= self.high).all()):
            raise AnchorheadError("the box of an input: finite ends, the lower one first")

    @property
    def entries(self) -> tuple[str, ...]:
        """What its entries are called, token by token: of one token as its features, of several x[i,j]."""
        tokens, width = self.tokens or 1, len(self.features)
        return self.features if tokens == 1 else tuple(f"x[{i},{j}]" for i in range(tokens) for j in range(width))

    @property
    def uses(self) -> tuple[int, ...]:
        return ()

    def shape(self, *_: Shape) -> Shape:
        return Shape(self.tokens, len(self.features))


@dataclass(frozen=True, eq=False)
class Term(ReadOnly):
    """W q for an earlier quantity q. By the dimension of W:

    2   the same on every token        (outputs, features)
    3   one for each token             (tokens, outputs, features)
    4   across the tokens              (tokens out, outputs, tokens in, features)

    radius   how far the number that is meant (1/3, pi) may be from the entry that is written; None: not at all
    """

    step: int
    weight: Float[np.ndarray, "..."]
    radius: Float[np.ndarray, "..."] | None = None

    def __post_init__(self) -> None:
        _keep(self, "weight", (2, 3, 4))
        _keep_radius(self, "radius", self.weight)

    def shape(self, operand: Shape) -> Shape:
        weight = self.weight
        fits = weight.shape[-1] == operand.width
        if weight.ndim == 2:
            result = Shape(operand.tokens, weight.shape[0])
        else:
            fits = fits and operand.tokens == weight.shape[0 if weight.ndim == 3 else 2]
            result = Shape(weight.shape[0], weight.shape[1])
        if not fits:
            raise AnchorheadError(f"a map with weights {weight.shape} of a quantity that is {operand}")
        return result


@dataclass(frozen=True, eq=False)
class Affine(ReadOnly):
    """sum_i W_i q_i + b; without terms a constant. The bias is (tokens, outputs), or (1, outputs) for every token."""

    terms: tuple[Term, ...]
    bias: Float[np.ndarray, "tokens outputs"]
    bias_radius: Float[np.ndarray, "tokens outputs"] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", tuple(self.terms))
        bias = np.asarray(self.bias, np.float64)
        object.__setattr__(self, "bias", bias[None] if bias.ndim == 1 else bias)
        _keep(self, "bias", (2,))
        if self.bias_radius is not None:
            object.__setattr__(self, "bias_radius", np.asarray(self.bias_radius, np.float64).reshape(self.bias.shape))
        _keep_radius(self, "bias_radius", self.bias)

    @property
    def uses(self) -> tuple[int, ...]:
        return tuple(term.step for term in self.terms)

    def shape(self, *operands: Shape) -> Shape:
        if not self.terms:
            return Shape(*self.bias.shape)
        shapes = {term.shape(operand) for term, operand in zip(self.terms, operands, strict=True)}
        tokens = {one.tokens for one in shapes}
        widths = {one.width for one in shapes}
        if len(tokens - {1}) > 1 or len(widths) != 1 or self.bias.shape[1] not in widths:
            parts = ", ".join(map(str, shapes))
            raise AnchorheadError(f"a sum of quantities that are {parts}, and a bias {self.bias.shape}: all alike")
        found = Shape(next(iter(tokens - {1}), 1), widths.pop())
        if self.bias.shape[0] not in (1, found.tokens):
            raise AnchorheadError(f"a bias for {self.bias.shape[0]} tokens of a quantity that is {found}")
        return found


@dataclass(frozen=True)
class Opaque:
    """A function of which only values are known: told by a digest of some of them.

    lipschitz   how fast it may change, for each argument, as its owner vouches; none: nothing is known
    """

    digest: str
    arguments: tuple[str, ...]
    lipschitz: tuple[float, ...] | None = None

    def __str__(self) -> str:
        return f"a function of {', '.join(self.arguments)} known by its values"


@dataclass(frozen=True, eq=False)
class Apply(ReadOnly):
    """Feature r of the result is functions[which[r]] of feature r of every argument, token by token.

    arguments   the names by which the functions' expressions call the quantities in `of`
    Quantities of one token or one feature serve every token and every feature.
    """

    functions: tuple[Expression | Opaque, ...]
    which: Int[np.ndarray, " features"]
    of: tuple[int, ...]
    arguments: tuple[str, ...] = ("x",)

    def __post_init__(self) -> None:
        for name in ("functions", "of", "arguments"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "which", read_only(np.asarray(self.which, np.int64)))
        if len(self.of) != len(self.arguments) or len(set(self.arguments)) < len(self.arguments) or not self.of:
            raise AnchorheadError(
                f"functions of {len(self.of)} quantities that are called {', '.join(self.arguments)}: a name for each"
            )
        count = len(self.functions)
        if self.which.ndim != 1 or not self.which.size or self.which.min() < 0 or self.which.max() >= count:
            raise AnchorheadError(
                f"{count} functions, chosen by {self.which.shape}: the number of one for each feature"
            )
        for function in self.functions:
            names = function.variables if isinstance(function, Expression) else function.arguments
            unknown = [name for name in names if name not in self.arguments]
            if unknown:
                raise AnchorheadError(f"{function} depends on {', '.join(unknown)}: it is given {self.arguments}")

    @property
    def uses(self) -> tuple[int, ...]:
        return self.of

    def shape(self, *operands: Shape) -> Shape:
        tokens = {one.tokens for one in operands} - {1}
        widths = {one.width for one in operands} - {1}
        if len(tokens) > 1 or not widths <= {len(self.which)}:
            parts = ", ".join(map(str, operands))
            raise AnchorheadError(f"functions for {len(self.which)} features of quantities that are {parts}")
        return Shape(tokens.pop() if tokens else 1, len(self.which))


@dataclass(frozen=True)
class Dot:
    """<a_i, b_j>: tokens i of a, and the tokens j of b as features."""

    a: int
    b: int

    @property
    def uses(self) -> tuple[int, ...]:
        return self.a, self.b

    def shape(self, a: Shape, b: Shape) -> Shape:
        if a.width != b.width or b.tokens is None:
            raise AnchorheadError(f"products of tokens that are {a} and {b}: as many features, and the second counted")
        return Shape(a.tokens, b.tokens)


@dataclass(frozen=True)
class Attend:
    """sum_j softmax_j(<q_i, k_j>) v_j; without q and k the mean of all v_j. mask "causal": j <= i alone."""

    values: int
    queries: int | None = None
    keys: int | None = None
    mask: Mask | None = None

    def __post_init__(self) -> None:
        if (self.queries is None) != (self.keys is None) or self.mask not in (None, "causal"):
            raise AnchorheadError("attention takes both queries and keys, or neither, and the mask causal, or none")
        if self.mask and self.queries is None:
            raise AnchorheadError("a mean takes no mask: give queries and keys")

    @property
    def uses(self) -> tuple[int, ...]:
        return (self.values,) if self.queries is None or self.keys is None else (self.values, self.queries, self.keys)

    def shape(self, values: Shape, queries: Shape | None = None, keys: Shape | None = None) -> Shape:
        if queries is None or keys is None:
            return Shape(1, values.width)
        if queries.width != keys.width or keys.tokens != values.tokens:
            raise AnchorheadError(f"attention of queries {queries}, keys {keys} and values {values}")
        if self.mask and queries.tokens != keys.tokens:
            raise AnchorheadError(
                f"causal attention of {queries.tokens} queries to {keys.tokens} keys: as many of each"
            )
        return Shape(queries.tokens, values.width)


@dataclass(frozen=True)
class Normalise:
    """q / sqrt(mean(q^2) + eps) over the features of a token, q less its mean first where norm is "layer"."""

    of: int
    norm: Norm
    eps: float

    def __post_init__(self) -> None:
        if self.norm not in ("layer", "rms") or not (np.isfinite(self.eps) and self.eps >= 0):
            raise AnchorheadError(f"a norm {self.norm!r} with eps={self.eps}: layer or rms, eps 0 or more")

    @property
    def uses(self) -> tuple[int, ...]:
        return (self.of,)

    def shape(self, of: Shape) -> Shape:
        return of


@dataclass(frozen=True, eq=False)
class Repeat:
    """A body run `times` over. Its inputs are what is carried, then what is given; its outputs what is carried on.

    carried   the steps that the carried quantities start as
    given     steps that the body reads and does not change
    collect   the first of the carried quantities, one token, at all times from the start on, as tokens; else at the end
    """

    body: Program
    carried: tuple[int, ...]
    times: int
    given: tuple[int, ...] = ()
    collect: bool = False

    def __post_init__(self) -> None:
        inputs = self.body.inputs
        if len(inputs) != len(self.carried) + len(self.given) or len(self.body.outputs) != len(self.carried):
            raise AnchorheadError(
                f"a body of {len(inputs)} inputs and {len(self.body.outputs)} outputs for {len(self.carried)} "
                f"quantities that are carried and {len(self.given)} that are given"
            )
        if self.times < 1 or not self.carried:
            raise AnchorheadError(f"a Repeat of times={self.times} with {len(self.carried)} carried: at least 1 each")

    @property
    def uses(self) -> tuple[int, ...]:
        return *self.carried, *self.given

    def shape(self, *operands: Shape) -> Shape:
        for place, (operand, inside) in enumerate(zip(operands, self.body.inputs, strict=True)):
            wanted = self.body.shapes[inside]
            if operand != wanted:
                raise AnchorheadError(f"input {place} of a body is {operand}: it takes {wanted}")
        for start, after in zip(operands, self.body.outputs, strict=False):
            if self.body.shapes[after] != start:
                raise AnchorheadError(f"a body carries {self.body.shapes[after]} on where it started with {start}")
        first = operands[0]
        if not self.collect:
            return first
        if first.tokens != 1:
            raise AnchorheadError(f"a path of a quantity that is {first}: only one token can be collected")
        return Shape(self.times + 1, first.width)


Step = Input | Affine | Apply | Dot | Attend | Normalise | Repeat


def _keep(holder: object, name: str, dims: tuple[int, ...]) -> None:
    array = np.asarray(getattr(holder, name), np.float64)
    if array.ndim not in dims or not array.size or not np.isfinite(array).all():
        raise AnchorheadError(f"the {name} of a map has shape {array.shape}: finite numbers of {dims} axes are needed")
    object.__setattr__(holder, name, read_only(array))


def _keep_radius(holder: object, name: str, beside: np.ndarray) -> None:
    given = getattr(holder, name)
    if given is None:
        return
    radius = np.asarray(given, np.float64)
    if radius.shape != beside.shape or not (np.isfinite(radius) & (radius >= 0)).all():
        raise AnchorheadError(f"the {name} of a map: a number of at least 0 for each of {beside.shape} entries")
    object.__setattr__(holder, name, read_only(radius) if radius.any() else None)


__all__ = [
    "Affine",
    "Apply",
    "Attend",
    "Dot",
    "Input",
    "Normalise",
    "Opaque",
    "Repeat",
    "Shape",
    "Step",
    "Term",
]
