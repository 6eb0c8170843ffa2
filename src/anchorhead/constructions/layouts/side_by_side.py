"""Networks side by side in one: their features are blocks, their layers come one after the other, their outputs add up.

While the layers of one part work, the blocks of the others pass by, through a skip or a map that is the identity there.
Registers are shared: register i is token i of every part, and an attention over a grid sees the first so many. What
this computes, part by part, is what each part computes alone: a product with 0 is 0, and 0 added to a sum rounds
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.layouts.draft import Draft
from anchorhead.constructions.layouts.feature_names import outputs_called
from anchorhead.network import Attention, Linear


@dataclass(frozen=True, eq=False)
class Part:
    """Layers that take some of the inputs of a token, and the outputs to which their last features are added.

    entries  which inputs of a token it takes
    sums     (outputs, features): 1 where a feature is added to an output
    """

    name: str
    drafts: Sequence[Draft]
    entries: tuple[int, ...]
    sums: Float[np.ndarray, "outputs features"]


def side_by_side(parts: Sequence[Part], inputs: int, tokens: int) -> list[Draft]:
    """The layers of all parts."""
    names: list[list[str]] = [[] for _ in parts]  # of the features of each part, as layers are filled
    widths = [part.drafts[0].shapes["weight"][0] for part in parts]
    drafts = [_embed(parts, widths, inputs, tokens, names)]
    for number, part in enumerate(parts):
        for draft in part.drafts[1:]:
            own = draft.shapes["output"][1] if draft.kind is Attention else draft.shapes["weight"][0]
            drafts.append(_among(draft, number, part.name, widths, own, names))
            widths = [*widths[:number], own, *widths[number + 1 :]]
    total = np.concatenate([part.sums for part in parts], axis=1)

    def fill(weight: np.ndarray) -> dict[str, Any]:
        weight[:] = total
        return {"features": outputs_called(len(total))}

    return [*drafts, Draft(Linear, {"weight": total.shape}, fill)]


def _embed(parts: Sequence[Part], widths: list[int], inputs: int, tokens: int, names: list[list[str]]) -> Draft:
    """All features of all parts; a part has zeros at registers beyond its own."""
    whole, embeds = sum(widths), [part.drafts[0] for part in parts]
    count = max(embed.shapes.get("registers", (0,))[0] for embed in embeds)
    shapes = {"weight": (whole, inputs), "bias": (tokens, whole) if tokens > 1 else (whole,)}

    def fill(weight: np.ndarray, bias: np.ndarray, registers: np.ndarray | None = None) -> dict[str, Any]:
        for number, (embed, part) in enumerate(zip(embeds, parts, strict=True)):
            own, words = embed.filled()
            block = slice(sum(widths[:number]), sum(widths[: number + 1]))
            weight[block, list(part.entries)], bias[..., block] = own["weight"], own["bias"]
            if registers is not None and "registers" in own:
                registers[: len(own["registers"]), block] = own["registers"]
            names[number] = [f"{part.name}: {name}" for name in words["features"]]
        return {"tokens": tokens, "features": tuple(name for own in names for name in own)}

    return Draft(embeds[0].kind, {**shapes, **({"registers": (count, whole)} if count else {})}, fill)


def _among(draft: Draft, number: int, part: str, before: list[int], own: int, names: list[list[str]]) -> Draft:
    """The layer with the features of the parts before its own, and of those after, that pass by."""
    start, rest = sum(before[:number]), sum(before[number + 1 :])
    inside, after = start + before[number] + rest, start + own + rest
    reads, makes = slice(start, start + before[number]), slice(start, start + own)
    through = "skip" if draft.kind is Attention else "weight"
    shapes = {**draft.shapes, through: (after, inside)}
    if "bias" in shapes:
        shapes["bias"] = (after,)
    if draft.kind is Attention:
        shapes |= {name: (*shapes[name][:2], inside) for name in ("query", "key", "value")}
        shapes["output"] = (shapes["output"][0], after, shapes["output"][2])

    def fill(**arrays: np.ndarray) -> dict[str, Any]:
        small, words = draft.filled()
        blocks = {through: (makes, reads), "bias": (makes,), "output": (slice(None), makes)}
        for name, array in small.items():
            arrays[name][blocks.get(name, (..., reads))] = array
        arrays[through][:start, :start] = np.eye(start)
        arrays[through][start + own :, start + before[number] :] = np.eye(rest)
        names[number] = [f"{part}: {name}" for name in words["features"]]
        words["features"] = tuple(name for some in names for name in some)
        if draft.kind is Attention:
            words["labels"] = tuple(f"{part}: {label}" for label in words.get("labels") or ())
        return words

    return Draft(draft.kind, shapes, fill)
