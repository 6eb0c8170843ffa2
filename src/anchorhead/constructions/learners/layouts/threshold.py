"""The soft threshold at the end of a step (lemmas.learners.threshold): one more attention layer, a head for each entry.

Anchors of its clip are registers, whose features for it come last. All other registers and the state are out of reach
there, by their offsets.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.learners.layouts.stored import Stored
from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Part
from anchorhead.language.targets.descent import Descent
from anchorhead.lemmas.learners.steps import OUT_OF_REACH
from anchorhead.network import Attention, Linear

OF_A_CLIP = ("slope of the clip", "offset of the clip", "value of the clip")
"""The last features of a token."""


def clip_names(target: Descent) -> tuple[str, ...]:
    """The features that a threshold adds to tokens."""
    return OF_A_CLIP if target.threshold else ()


def clip_in(stored: Stored, target: Descent) -> Part | None:
    """The anchors that registers of a network hold: the others are lowered there as the state is."""
    if not target.threshold:
        return None
    found = stored.part(stored.registers, (-3, -2, -1), -float(stored.states[0, -2]))
    if not len(found):
        raise CertificateError("its threshold has no anchors")
    return found


def beside_clip(
    clip: Part | None,
    registers: Float[np.ndarray, "registers width"],
    state: Float[np.ndarray, "1 width"],
    hidden: Float[np.ndarray, " width"],
) -> tuple[Float[np.ndarray, "more width"] | None, Float[np.ndarray, "1 width"]]:
    """Registers and the state of a network beside the anchors of its clip, which come last; none if there are none.

    hidden   features of a register that no other layer sees
    """
    if clip is not None:
        anchors = np.tile(hidden, (len(clip), 1))
        anchors[:, -3:] = np.column_stack(clip.astype(np.float64))
        others = np.concatenate([registers, state])
        others[:, -2] = -_far(clip)
        registers, state = np.concatenate([others[:-1], anchors]), others[-1:]
    return registers if len(registers) else None, state


def threshold_layers(target: Descent, names: tuple[str, ...], w: int, one: int) -> tuple[Attention, ...]:
    """The layer that ends a step, if there is a threshold: each head asks with its entry of w, and subtracts what it
    reads from that entry, and from that of v.

    w     the slot of the first entry of w; the target's `features` entries from there are shrunk
    one   the slot of a feature that is 1 in every state
    """
    if not target.threshold:
        return ()
    pick = np.eye(len(names))
    slope, offset, value = pick[-3:]
    slots = range(w, w + target.features)
    scales = np.array(target.scales or [1.0] * target.features)
    changed = pick[list(slots)]
    if target.momentum:
        changed = changed + pick[[j + target.weights for j in slots]]
    shrink = Attention(
        np.stack([pick[[j, one]] / [[t], [1.0]] for j, t in zip(slots, scales, strict=True)]),
        np.stack([slope, offset])[None],
        value[None, None],
        -(scales[:, None] * changed)[:, :, None],
        mask="self+registers",
        skip=Linear(pick, features=names),
        features=names,
        labels=tuple(f"shrinks {names[j]}" for j in slots),
    )
    return (shrink,)


def _far(clip: Part) -> float:
    """By which others are out of reach: beyond all offsets, so that registers that ask with -1 in place of 1 see those
    of other layers alone."""
    return max(OUT_OF_REACH, 2.0 ** np.ceil(np.log2(4 * float(np.abs(clip.offsets).max()) + 1)))
