"""The soft threshold of lasso: one more attention layer at the end of a step, a head for each entry of w.

    S(w) = sign(w) max(|w| - tau, 0) = w - clip(w, -tau, tau) = w - tau hardtanh(w / tau),    tau = rate threshold

The skip carries w, and each head subtracts a clip: its anchors are registers that all heads share, slopes those of the
head for hardtanh over tau, values times tau, so an error of that head counts tau times. Beyond the kinks the outermost
anchor alone has weight, so the clip holds on the whole line. Every state asks the registers alone: its own key, like
those of registers that serve other layers, is out of reach by its offset. The cost does not depend on the examples.

With momentum, v is the step that w made, so what is subtracted from w is subtracted from v too. Where columns have
scales t_j, their thresholds are tau t_j: those heads ask with w_j / t_j, and subtract t_j times what they read.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.single.head import head
from anchorhead.errors import AnchorheadError
from anchorhead.network import Attention, Embed, Linear, Network, Repeat
from anchorhead.targets.descent import Descent

OUT_OF_REACH = 2.0**20
ANCHORS = {"float64": 5, "float32": 7}
"""With these hardtanh is proven within 7.3e-13 and 2.4e-6: its share is then no more than the rounding of w."""
NAMES = ("slope of the clip", "offset of the clip", "value of the clip")
ROOM = 2.0**40
"""How far logits stay from overflow when |w| is 1."""


def with_threshold(network: Network, target: Descent, w: int, one: int, hidden: Float[np.ndarray, " width"]) -> Network:
    """A learner's network (Embed, Repeat, Linear) whose steps end with the soft threshold; as it is without one.

    w        the slot of the first entry of w; the target's `features` entries from there are shrunk
    one      the slot of a feature that is 1 in every state
    hidden   features of a register that no layer of the network sees
    """
    if not target.threshold:
        return network
    embed, repeat, read = network.layers
    if not isinstance(embed, Embed) or not isinstance(repeat, Repeat) or not isinstance(read, Linear):
        raise AnchorheadError("a threshold is added to a network of Embed, Repeat and Linear")
    names = (*(embed.features or ()), *NAMES)
    steps = tuple(_widened(layer, names) for layer in repeat.layers)
    shrink = _shrink(names, target, w, one, network.dtype)
    last = replace(read, weight=np.pad(read.weight, ((0, 0), (0, len(NAMES)))))
    first = _with_registers(embed, names, clip_anchors(target, network.dtype), hidden)
    layers = [first, Repeat((*steps, shrink), repeat.times), last]
    return Network(layers, output=network.output).approximating(target.record())


def clip_anchors(target: Descent, dtype: str) -> Float[np.ndarray, "p 3"]:
    """Slopes, offsets and values of a head for clip(w, -tau, tau), in the dtype."""
    tau = target.rate * target.threshold
    (part,) = head("hardtanh", on=(-2.0, 2.0), anchors=ANCHORS[dtype], dtype=dtype).parts
    slopes, offsets, values = part.astype(np.float64)
    with np.errstate(over="ignore"):
        found = np.stack([slopes / tau, offsets, values[:, 0] * tau], axis=1)
    if not float(np.abs(found).max()) <= float(np.finfo(dtype).max) / ROOM:
        raise AnchorheadError(
            f"threshold={target.threshold:g} with rate={target.rate:g}: steps of {tau:.3g} are beyond what heads in "
            f"{dtype} can tell; {'leave it out' if tau < 1 else 'give a smaller one'}"
        )
    return found.astype(dtype)


def _shrink(names: tuple[str, ...], target: Descent, w: int, one: int, dtype: str) -> Attention:
    """Each head asks with its entry of w, and subtracts what it reads from that entry, and from that of v."""
    pick = np.eye(len(names))
    slope, offset, value = (pick[names.index(name)] for name in NAMES)
    slots = range(w, w + target.features)
    scales = np.array(target.scales or [1.0] * target.features)
    changed = pick[list(slots)]
    if target.momentum:
        changed = changed + pick[[j + target.weights for j in slots]]
    return Attention(
        np.stack([pick[[j, one]] / [[t], [1.0]] for j, t in zip(slots, scales, strict=True)]).astype(dtype),
        np.stack([slope, offset])[None].astype(dtype),
        value[None, None].astype(dtype),
        -(scales[:, None] * changed)[:, :, None].astype(dtype),
        mask="self+registers",
        skip=Linear.identity(names, dtype),
        features=names,
        labels=tuple(f"shrinks {names[j]}" for j in slots),
    )


def _with_registers(
    embed: Embed, names: tuple[str, ...], anchors: Float[np.ndarray, "p 3"], hidden: Float[np.ndarray, " width"]
) -> Embed:
    if embed.states is None or embed.tokens is not None:
        raise AnchorheadError("a threshold is added to a network with states and any number of tokens")
    more = len(NAMES)
    # beyond all offsets, so that registers that ask with -1 in place of 1 see those of other layers alone
    far = max(OUT_OF_REACH, 2.0 ** np.ceil(np.log2(4 * float(np.abs(anchors[:, 1]).max()) + 1)))
    out_of_reach = np.array([0.0, -far, 0.0])
    registers = np.concatenate([np.broadcast_to(hidden, (len(anchors), len(hidden))), anchors], axis=1)
    if embed.registers is not None:
        registers = np.concatenate([_beside(embed.registers, out_of_reach), registers])
    dtype = embed.weight.dtype
    return Embed(
        np.pad(embed.weight, ((0, more), (0, 0))),
        np.pad(embed.bias, (0, more)),
        registers=registers.astype(dtype),
        states=_beside(embed.states, out_of_reach).astype(dtype),
        features=names,
    )


def _beside(rows: np.ndarray, extra: np.ndarray) -> np.ndarray:
    return np.concatenate([rows, np.broadcast_to(extra, (len(rows), len(extra)))], axis=1)


def _widened(layer: object, names: tuple[str, ...]) -> Attention:
    """The layer with further features that it neither reads nor changes."""
    if not isinstance(layer, Attention) or layer.skip is None:
        raise AnchorheadError("a threshold is added to steps of attention layers with a skip")
    more = len(NAMES)
    wider = (0, 0), (0, 0), (0, more)
    width = len(names)
    kept = np.eye(width, dtype=layer.skip.weight.dtype)
    kept[: layer.outputs, : layer.width] = layer.skip.weight
    biases = [None if one is None else np.pad(one, (0, more)) for one in (layer.bias, layer.skip.bias)]
    return replace(
        layer,
        query=np.pad(layer.query, wider),
        key=np.pad(layer.key, wider),
        value=np.pad(layer.value, wider),
        output=np.pad(layer.output, ((0, 0), (0, more), (0, 0))),
        bias=biases[0],
        skip=Linear(kept, biases[1], features=names),
        features=names,
    )
