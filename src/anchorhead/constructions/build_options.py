"""How a network of neurons is to be built: the words that say so, and which of them go together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from anchorhead.constructions.causal import require_causal
from anchorhead.constructions.single.head import Placement
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_word
from anchorhead.heads.atom import Dtype
from anchorhead.language.targets.merge import merged
from anchorhead.language.targets.mlp import Mlp

Form = Literal["two-layer", "attention-softmax", "deep"]
Layout = Literal["transformer", "sequence"]
FORMS: tuple[Form, ...] = ("two-layer", "attention-softmax", "deep")
LAYOUTS: tuple[Layout, ...] = ("transformer", "sequence")
PLACEMENTS: tuple[Placement, ...] = ("solved", "uniform")


@dataclass(frozen=True)
class BuildOptions:
    """How a network is to be built."""

    form: Form
    layout: Layout
    placement: Placement
    dtype: Dtype
    causal: bool = False

    def __str__(self) -> str:
        return f"{self.form}, {self.layout} layout, {self.placement} anchors"


def options_of(target: Mlp, form: Any, layout: Any, placement: Any, dtype: Dtype, causal: bool) -> BuildOptions:
    """The way that the words say, or an error that says which words do not go together, and why."""
    checked_word("layout", layout, LAYOUTS)
    checked_word("placement", placement, PLACEMENTS)
    layers = len(merged(target)[0])
    form = checked_word("form", ("two-layer" if layers == 1 else "deep") if form is None else form, FORMS)
    if form != "deep" and layers != 1:
        raise AnchorheadError(
            f"form={form!r} is for one hidden layer, and the network has {layers}: use form='deep', an attention layer "
            "for every hidden layer"
        )
    if causal and layout == "sequence":
        raise AnchorheadError(
            "causal=True with layout='sequence': its linear maps mix all tokens, so no mask can keep a token from the "
            "later ones; use layout='transformer'"
        )
    if causal:
        require_causal(target)
    return BuildOptions(form, layout, placement, dtype, causal)
