"""Layout: neurons as the layers of a network, in tokens, features, registers and heads.

Layers are drafted first: how large they are is known before their weights exist (layouts.draft).
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import replace

from anchorhead.constructions.build_request import FORMS, LAYOUTS, BuildRequest
from anchorhead.constructions.layouts.draft import Draft, counted
from anchorhead.constructions.layouts.neurons import Laid
from anchorhead.constructions.layouts.sequence_layout import Sequence
from anchorhead.constructions.layouts.transformer_softmax import SoftmaxTransformer
from anchorhead.errors import AnchorheadError
from anchorhead.language.targets.mlp import Mlp
from anchorhead.network import Network

MAX_PARAMETERS = 100_000_000
"""How many numbers a network may hold: building and proving it takes several times their room."""


def drafted(laid: Laid, target: Mlp, request: BuildRequest) -> list[Draft]:
    """The layers of the network that these neurons become: how large they are, and what fills them."""
    tokens = target.tokens or 1
    if request.layout == "transformer":
        layout: SoftmaxTransformer | Sequence = SoftmaxTransformer(laid, tokens, target.variables, request.causal)
    else:
        layout = Sequence(laid, tokens, target.variables)
    form = {"two-layer": layout.two_layer, "attention-softmax": layout.attention_softmax, "deep": layout.deep}
    return form[request.form or "deep"]()


def built(drafts: Several[Draft], target: Mlp, request: BuildRequest) -> Network:
    """The network, without target and certificate."""
    network = Network([draft.made(request.dtype) for draft in drafts])
    return network if target.tokens is not None else network.with_(token_axis=False)


def require_room(laid: Laid, drafts: Several[Draft], target: Mlp, request: BuildRequest) -> None:
    """Refuses a network that would not fit into memory, before any of it is made."""
    tokens = target.tokens or 1
    count = counted(drafts, tokens).parameters
    if count <= MAX_PARAMETERS:
        return
    forms = FORMS if len(laid.layers) == 1 else ("deep",)
    layouts = ("transformer",) if request.causal else LAYOUTS
    others = (replace(request, form=form, layout=layout) for form in forms for layout in layouts)
    least, other = min((counted(drafted(laid, target, one), tokens).parameters, str(one)) for one in others)
    helps = f"{other}, with {least:,}" if least <= MAX_PARAMETERS else "a smaller model"
    raise AnchorheadError(
        f"{target} would become a network of {count:,} numbers ({request}), and at most {MAX_PARAMETERS:,} are built. "
        f"What would help: {helps}"
    )
