"""What is asked for beside the program: one request, which goes from the front ends to whoever builds.

A program says what is to be computed, in exact mathematics. How well, in which dtype, of how many anchors and in which
layers is no part of it: that is the request.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from anchorhead.constructions.causal import require_causal
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_count, checked_within, checked_word
from anchorhead.heads.atom import Dtype
from anchorhead.language.merge import merged
from anchorhead.language.targets.descent import LearnerLayout
from anchorhead.language.targets.mlp import Mlp
from anchorhead.network import Outside
from anchorhead.network.dtypes import dtype_name
from anchorhead.progress import Progress

Form = Literal["two-layer", "attention-softmax", "deep"]
Layout = Literal["transformer", "sequence"]
Placement = Literal["solved", "uniform"]
FORMS: tuple[Form, ...] = ("two-layer", "attention-softmax", "deep")
LAYOUTS: tuple[Layout, ...] = ("transformer", "sequence")
PLACEMENTS: tuple[Placement, ...] = ("solved", "uniform")
EVERYONES = ("dtype", "prove", "outside", "progress", "seed")
"""What any program may be built with."""


@dataclass(frozen=True)
class BuildRequest:
    """How a network is to be built.

    within     the error asked for, in the sup norm over the box, rounding included
    form, layout, placement, causal   of neurons; a layout is of learners as well
    prove      False: leave out the proof of heads over grids
    outside    what a call does with inputs outside the box
    progress   who is told how far it is
    anchors    of a head, and of truncated linear functions: the size in place of the error
    heads, sharpness       of truncated linear functions
    max_value, max_slope   of a head: caps on its weights
    scores     of a learner: the range of the link's argument that is served
    function   what a function that is known by its values is
    seed       of what is fitted to it
    """

    within: float | None = None
    dtype: Dtype = "float64"
    form: Form | None = None
    layout: Layout | LearnerLayout | None = None
    placement: Placement = "solved"
    causal: bool = False
    prove: bool = True
    outside: Outside = "warn"
    progress: Progress | None = None
    anchors: int | None = None
    heads: int | None = None
    sharpness: float | None = None
    max_value: float | None = None
    max_slope: float | None = None
    scores: Any = None
    function: Any = None
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", dtype_name(self.dtype))
        object.__setattr__(self, "causal", bool(self.causal))
        if self.within is not None:
            object.__setattr__(self, "within", checked_within(self.within))
        if self.form is not None:
            checked_word("form", self.form, FORMS)
        if self.layout is not None and not (isinstance(self.layout, str) and self.layout == "direct"):
            checked_word("layout", self.layout, LAYOUTS)
        checked_word("placement", self.placement, PLACEMENTS)
        checked_count("seed", self.seed, least=0)

    @property
    def error(self) -> float:
        """The error asked for, where one is needed."""
        if self.within is None:
            raise AnchorheadError("within is missing: the error asked for, as in within=1e-4")
        return self.within

    def given(self, *names: str) -> list[str]:
        """Which of these words were said, as they were: "form='deep'"."""
        said = ((one.name, getattr(self, one.name), one.default) for one in fields(self) if one.name in names)
        return [
            f"{name}={word!r}"
            for name, word, default in said
            if not (word is default or (type(word) is type(default) and word == default))
        ]

    def require_only(self, names: tuple[str, ...], why: str) -> None:
        """Refuses words that this network has no use for."""
        given = self.given(*(one.name for one in fields(self) if one.name not in (*EVERYONES, *names)))
        if given:
            raise AnchorheadError(f"{', '.join(given)}: {why}; leave {'them' if len(given) > 1 else 'it'} out")

    def of_network(self, target: Mlp) -> BuildRequest:
        """The same with its form and layout, or an error that says which words do not go together, and why."""
        layout = checked_word("layout", self.layout or "transformer", LAYOUTS)
        layers = len(merged(target).hidden)
        form = self.form or ("two-layer" if layers == 1 else "deep")
        if form != "deep" and layers != 1:
            raise AnchorheadError(
                f"form={form!r} is for one hidden layer, and the network has {layers}: use form='deep', an attention "
                "layer for every hidden layer"
            )
        if self.causal and layout == "sequence":
            raise AnchorheadError(
                "causal=True with layout='sequence': its linear maps mix all tokens, so no mask can keep a token from "
                "the later ones; use layout='transformer'"
            )
        if self.causal:
            require_causal(target)
        return replace(self, form=form, layout=layout)

    def __str__(self) -> str:
        return f"{self.form}, {self.layout} layout, {self.placement} anchors"
