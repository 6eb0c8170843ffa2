"""No number that a learner computes overflows, not even one that is then multiplied by 0."""

from __future__ import annotations

import numpy as np

from anchorhead.verify.errors import NotVerified
from anchorhead.verify.grammar import Attention, Network
from anchorhead.verify.rounding import Arithmetic


def require_finite(network: Network, box: np.ndarray, rows: int, model: Arithmetic) -> None:
    """Queries, keys, values, logits and features of all tokens stay finite: bounds on features are followed through all
    steps; and so does K^T q, by which q . K x may be computed as (K^T q) . x.

    box: bounds on the entries of a prompt of at most so many rows. What a head reads is at most the largest value that
    it may see, up to rounding: sums over all tokens, and over features.
    """
    embed = network.embed
    shown = (np.abs(embed.weight) @ box + np.abs(embed.bias)).max(axis=0)
    sizes = np.maximum(shown, np.abs(np.concatenate([embed.registers, embed.states])).max(axis=0, initial=0.0))
    tokens = (embed.positions or rows) + len(embed.registers) + len(embed.states)
    limit = model.largest / 2.0**12
    more = 1 + float(model.gamma(4 * (tokens + len(box) + embed.weight.shape[1] + 16)))
    for group in network.layers:
        layers = [one for one in getattr(group, "layers", (group,)) if isinstance(one, Attention)]
        parts = [[np.abs(one) for one in (layer.query, layer.key, layer.value, layer.output)] for layer in layers]
        skips = [np.abs(layer.skip.on_features()) if layer.skip is not None else None for layer in layers]
        for _ in range(getattr(group, "times", 1)):
            before = sizes
            for (query, key, value, output), skip in zip(parts, skips, strict=True):
                asked, held, read = (np.einsum("hsf,f->hs", one, sizes) for one in (query, key, value))
                wrote = np.einsum("hgo,ho->g", output, np.broadcast_to(read, (len(output), read.shape[1])))
                back = np.einsum("hs,hsf->hf", asked, np.broadcast_to(key, query.shape))
                every = sizes, asked, held, read, back, (asked * held).sum(axis=1)
                sizes = more * (wrote + (0.0 if skip is None else skip @ sizes))
                top = max(float(one.max()) for one in (*every, sizes))
                if not top < limit:
                    raise NotVerified(f"numbers may overflow in {model.dtype}: up to {top:.3g}")
            if sizes.shape == before.shape and (sizes <= before).all():
                break
