"""The tree of an expression: immutable nodes, one object for each structure.

A node is an operation `op`, its arguments, and `data` that is no expression (a number's value, a variable's
name, an integer exponent, a comparison). Nodes are interned, so equal structure is the same object: equality
and hashing are those of the object, and a part that occurs twice is evaluated once.

The core operations, on which every mode of evaluation is written:

    number, pi, e, variable
    add(a, b, ...)  mul(a, b, ...)  neg(a)  div(a, b)
    integer_power(a; n)                    a**n,  |n| <= 64
    power(a, b)                            exp(b log a) for a > 0, with a or b constant
    exp expm1 log log1p sqrt sin cos tanh sigmoid softplus erf erfc
    abs(a)  min(a, b, ...)  max(a, b, ...)  where(a, b, c, d; "<" or "<=")     c if a < b, else d

All other functions (gelu, clip, ...) are named nodes with a definition in core operations: `Expression.core`.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Container, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError

if TYPE_CHECKING:
    from flint import acb, arb

Data = float | int | str | None
Array = Float[np.ndarray, "..."]
Instruction = tuple[str, Data, tuple[int, ...]]

LEAVES = ("number", "pi", "e", "variable")
SMOOTH = (
    "exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tanh", "sigmoid", "softplus", "erf", "erfc",
)  # fmt: skip
SWITCHES = ("abs", "min", "max", "where")
CORE = frozenset((*LEAVES, "add", "mul", "neg", "div", "integer_power", "power", *SMOOTH, *SWITCHES))

Rules = Mapping[str, Callable[..., Any]]
"""What operations do to one kind of number: a function of the data of a node, and of its arguments."""
ARITHMETIC: Rules = {
    "add": lambda _, *terms: reduce(operator.add, terms),
    "mul": lambda _, *factors: reduce(operator.mul, factors),
    "neg": lambda _, a: -a,
    "div": lambda _, a, b: a / b,
}
"""The same for every kind of number."""

_interned: WeakValueDictionary[tuple[Any, ...], Expression] = WeakValueDictionary()
_lock = threading.RLock()  # re-entrant: a collection inside may run code that builds expressions


class Expression:
    """A function of named real variables, made by `parse`, `from_json` or the constructors in `build`."""

    __slots__ = ("__weakref__", "_core", "_program", "_variables", "args", "data", "op")

    op: str
    args: tuple[Expression, ...]
    data: Data
    _core: Expression | None
    _program: tuple[Instruction, ...] | None
    _variables: tuple[str, ...] | None

    def __new__(cls, op: str, args: tuple[Expression, ...] = (), data: Data = None) -> Expression:
        key = (op, args, data)
        with _lock:
            node = _interned.get(key)
            if node is None:
                node = object.__new__(cls)
                for name, value in (("op", op), ("args", args), ("data", data)):
                    object.__setattr__(node, name, value)
                for name in ("_core", "_program", "_variables"):
                    object.__setattr__(node, name, None)
                _interned[key] = node
        return node

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an Expression does not change: {name} cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        from anchorhead.language.expressions.canonical import from_json, to_json

        return from_json, (to_json(self),)

    def __copy__(self) -> Expression:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Expression:
        return self

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables that occur, sorted."""
        if self._variables is None:
            names = tuple(sorted({str(node.data) for node in postorder(self) if node.op == "variable"}))
            object.__setattr__(self, "_variables", names)
        return self._variables or ()

    @property
    def core(self) -> Expression:
        """The same function in core operations alone: named functions replaced by their definitions, and simplified."""
        if self._core is None:
            from anchorhead.language.expressions.named import expand
            from anchorhead.language.expressions.simplify import simplified

            expanded = simplified(expand(self))
            if expanded is self:  # not stored: a node that refers to itself would not be freed at once
                return self
            object.__setattr__(self, "_core", expanded)
        return self._core or self

    @property
    def program(self) -> tuple[Instruction, ...]:
        """The core as straight-line code: instructions (op, data, places of arguments), the result last."""
        if self._program is None:
            nodes = postorder(self.core)
            place = {node: index for index, node in enumerate(nodes)}
            code = tuple((node.op, node.data, tuple(place[arg] for arg in node.args)) for node in nodes)
            object.__setattr__(self, "_program", code)
        return self._program or ()

    @property
    def has_switches(self) -> bool:
        """Whether abs, min, max or where occurs in the core, so that the function may have kinks."""
        return any(op in SWITCHES for op, _, _ in self.program)

    def evaluated(self, at: Mapping[str, Any], rules: Rules, refusal: str = "") -> Any:
        """The value over any kind of number, by the rules of that kind; refusal: of operations that have none."""
        results: list[Any] = []
        for op, data, places in self.program:
            if op == "variable":
                if data not in at:
                    raise AnchorheadError(
                        f"no value for {data} in {self}: it depends on {', '.join(self.variables)}, given were "
                        f"{', '.join(at) or 'none'}"
                    )
                results.append(at[str(data)])
            elif op in rules:
                results.append(rules[op](data, *[results[place] for place in places]))
            else:
                raise AnchorheadError(f"{op} in {self} {refusal}")
        return results[-1]

    def values(self, at: Mapping[str, Any]) -> Array:
        """Values in float64 at arrays of points that broadcast; see `numeric`."""
        from anchorhead.language.expressions.numeric import values

        return values(self, at)

    def ball(self, at: Mapping[str, arb]) -> arb:
        """An enclosure of the values over real balls, wherever the expression is defined; see `balls`."""
        from anchorhead.language.expressions.balls import ball

        return ball(self, at)

    def complex_ball(self, at: Mapping[str, acb], branch: Mapping[str, arb] | None = None) -> acb:
        """An enclosure of the analytic function on complex balls, not finite where it may be singular; see
        `complex_balls`. `branch`: a real box on which every switch is decided, to say which analytic piece is
        meant."""
        from anchorhead.language.expressions.complex_balls import complex_ball

        return complex_ball(self, at, branch)

    def derivative(self, name: str) -> Expression:
        """The derivative by one variable, in core operations, piecewise as the function; see `calculus`."""
        from anchorhead.language.expressions.calculus import derivative

        return derivative(self, name)

    def affine(self) -> tuple[dict[str, arb], arb] | None:
        """Coefficients and constant as balls if this is affine in its variables, else None: `calculus`."""
        from anchorhead.language.expressions.calculus import affine

        return affine(self)

    def substitute(self, replacements: Mapping[str, Expression]) -> Expression:
        """The same expression with variables replaced by expressions."""
        from anchorhead.language.expressions.build import rebuild

        return rebuild(self, lambda node: replacements.get(str(node.data)) if node.op == "variable" else None)

    def to_json(self) -> dict[str, Any]:
        from anchorhead.language.expressions.canonical import to_json

        return to_json(self)

    @staticmethod
    def from_json(data: Any) -> Expression:
        from anchorhead.language.expressions.canonical import from_json

        return from_json(data)

    def __str__(self) -> str:
        from anchorhead.language.expressions.text import text

        return text(self)

    def __repr__(self) -> str:
        return f"Expression({str(self)!r})"


def postorder(root: Expression, known: Container[Expression] = ()) -> tuple[Expression, ...]:
    """Every node below `root` once, arguments before the nodes that use them, without recursion.

    known   nodes that are left out, with what is below them
    """
    seen: dict[Expression, None] = {}
    stack = [root]
    while stack:
        node = stack[-1]
        if node in seen:
            stack.pop()
            continue
        waiting = [arg for arg in reversed(node.args) if arg not in seen and arg not in known]
        if waiting:
            stack.extend(waiting)
        else:
            seen[node] = None
            stack.pop()
    return tuple(seen)
