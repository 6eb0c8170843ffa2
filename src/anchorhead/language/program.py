"""A program: exact mathematics in straight-line steps, the one kind of target that there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from anchorhead.conditions import Condition
from anchorhead.errors import AnchorheadError
from anchorhead.language.steps import Affine, Apply, Attend, Dot, Input, Normalise, Repeat, Shape, Step, Term
from anchorhead.read_only import ReadOnly

MAX_STEPS = 100_000
"""How many steps a program may have, those of the bodies of Repeats counted once each."""


@dataclass(frozen=True, eq=False)
class Program(ReadOnly):
    """Steps, each made of earlier ones by their places, and the places of those that are put out.

    names        what the quantities are called, "" where a step has no name
    conditions   what must hold of the inputs besides lying in their boxes
    title        what it is called, where its steps do not say it
    token_axis   whether what goes in and out has an axis of tokens: programs of one token may leave it out

        >>> program = ah.program("sin(x*y)", on={"x": (-1, 1), "y": (0, 2)})
        >>> program.output_shape
        Shape(tokens=1, width=1)
    """

    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    names: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    token_axis: bool = True
    title: str = ""

    def __post_init__(self) -> None:
        for name in ("steps", "outputs", "names", "conditions"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.steps or not self.outputs:
            raise AnchorheadError("a program without steps or outputs: give at least one of each")
        object.__setattr__(self, "names", self.names or ("",) * len(self.steps))
        if len(self.names) != len(self.steps):
            raise AnchorheadError(f"{len(self.names)} names for {len(self.steps)} steps: one for each")
        if self.size > MAX_STEPS:
            raise AnchorheadError(f"a program of {self.size:,} steps: at most {MAX_STEPS:,} are allowed")
        if not all(0 <= place < len(self.steps) for place in self.outputs):
            raise AnchorheadError(f"outputs={self.outputs} of a program of {len(self.steps)} steps")
        if not self.shapes:  # worked out here, so that what does not fit is refused at once
            raise AnchorheadError("a program without shapes")
        if not self.token_axis and any(self.shapes[place].tokens != 1 for place in (*self.inputs, *self.outputs)):
            raise AnchorheadError("token_axis=False of a program of more than one token: only one token needs no axis")

    @property
    def size(self) -> int:
        return len(self.steps) + sum(step.body.size for step in self.steps if isinstance(step, Repeat))

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The shape of every quantity."""
        found: list[Shape] = []
        for place, step in enumerate(self.steps):
            if not all(0 <= use < place for use in step.uses):
                raise AnchorheadError(f"step {place} of a program reads {step.uses}: steps before it alone")
            try:
                found.append(step.shape(*(found[use] for use in step.uses)))
            except AnchorheadError as error:
                raise AnchorheadError(f"step {place} of a program ({type(step).__name__}): {error}") from error
        return tuple(found)

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """The places of the inputs."""
        return tuple(place for place, step in enumerate(self.steps) if isinstance(step, Input))

    @property
    def applied(self) -> tuple[int, ...]:
        """The places of the steps that apply functions."""
        return tuple(place for place, step in enumerate(self.steps) if isinstance(step, Apply))

    @property
    def output(self) -> int:
        """The place of the one output."""
        if len(self.outputs) != 1:
            raise AnchorheadError(f"a program of {len(self.outputs)} outputs has not one")
        return self.outputs[0]

    @property
    def output_shape(self) -> Shape:
        return self.shapes[self.output]

    @property
    def input(self) -> Input:
        """The one input."""
        found = self.steps[self.inputs[0]] if len(self.inputs) == 1 else None
        if not isinstance(found, Input):
            raise AnchorheadError(f"a program of {len(self.inputs)} inputs has not one")
        return found

    @property
    def features(self) -> tuple[str, ...]:
        """What the features of the input are called."""
        return self.input.features

    def name(self, place: int) -> str:
        """What a quantity is called: its name, or its place."""
        return self.names[place] or f"q{place}"

    def __call__(self, *x: Any, **named: Any) -> Any:
        """What the program puts out, in extended precision where the machine has it: for x (..., tokens, features), or
        (..., features) without tokens; or for numbers by the names of its inputs, program(x=0.5, y=0.2)."""
        from anchorhead.language.interpret import values

        return values(self, *x, **named)

    def __matmul__(self, before: Any) -> Program:
        """self after before, as one program: g @ f takes x to g(f(x))."""
        from anchorhead.language.compose import composed

        if not isinstance(before, Program):
            raise AnchorheadError(
                f"a program after a {type(before).__name__}: g @ f composes programs, and ah.program makes one of "
                "expressions, models and networks"
            )
        return composed(self, before)

    def __str__(self) -> str:
        from anchorhead.language.show import shown

        return shown(self)

    def __repr__(self) -> str:
        return f"Program({len(self.steps)} steps, {self.shapes[self.outputs[0]]} out)"

    def with_(self, **changes: Any) -> Program:
        return replace(self, **changes)


class Writer:
    """A program in the making: every method adds a step and returns its place."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.names: list[str] = []

    def add(self, step: Step, name: str = "") -> int:
        self.steps.append(step)
        self.names.append(name)
        return len(self.steps) - 1

    def input(self, features: Iterable[str], low: Any = None, high: Any = None, **more: Any) -> int:
        return self.add(Input(tuple(features), low, high, **more), "input")

    def affine(self, terms: Mapping[int, Any], bias: Any, name: str = "") -> int:
        """W_i q_i added up, exactly as written, and a bias."""
        return self.add(Affine(tuple(Term(place, np.asarray(w, float)) for place, w in terms.items()), bias), name)

    def constant(self, values: Any, name: str = "") -> int:
        return self.add(Affine((), np.asarray(values, float)), name)

    def apply(self, functions: Any, of: tuple[int, ...], arguments: tuple[str, ...], width: int, name: str = "") -> int:
        """One function for all features, or one for each."""
        several = tuple(functions) if isinstance(functions, tuple | list) else (functions,)
        distinct = tuple(dict.fromkeys(several))
        which = [distinct.index(one) for one in several] if len(several) > 1 else [0] * width
        return self.add(Apply(distinct, np.array(which), of, arguments), name)

    def program(self, *outputs: int, **more: Any) -> Program:
        return Program(tuple(self.steps), outputs, tuple(self.names), **more)


__all__ = ["Affine", "Apply", "Attend", "Dot", "Input", "Normalise", "Program", "Repeat", "Term", "Writer"]
