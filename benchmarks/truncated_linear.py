"""50 tokens of 10 inputs, 1,000 anchors, a batch of 1,000: beside the same attention written out in plain torch.

"all queries": softmax(Q K^T) V over the whole stretched sequence, 1,000 queries an input, as the formula stands; in
chunks of 20 inputs, because all at once would take 8 GB. "token queries": the same with the 50 queries that are read,
all at once. Both build keys and values for every input.
"""

from __future__ import annotations

import time

import numpy as np
import torch

import anchorhead as ah
from benchmarks.measure import best_time, command, in_own_process, peak_megabytes

TOKENS, INPUTS, ANCHORS, BATCH = 50, 10, 1000, 1000
WAYS = ("anchorhead", "plain torch, token queries", "plain torch, all queries")


def main() -> list[dict]:
    rows = [in_own_process("benchmarks.truncated_linear", way) for way in WAYS]
    for row in rows:
        row["time ratio"] = row["run s"] / rows[0]["run s"]
        row["memory ratio"] = row["MB"] / rows[0]["MB"]
    return rows


def run(way: str) -> dict:
    torch.set_num_threads(2)
    rng = np.random.default_rng(0)
    w, t = rng.normal(size=(TOKENS, INPUTS)), rng.normal(size=TOKENS)
    ah.truncated_linear(w[:3], t[:3], -1, 1, anchors=4)
    start = time.perf_counter()
    network = ah.truncated_linear(w, t, -1, 1, anchors=ANCHORS)
    build = time.perf_counter() - start
    x = torch.from_numpy(rng.uniform(-1, 1, (BATCH, TOKENS, INPUTS)))
    before = peak_megabytes()
    job = {
        WAYS[0]: lambda: network(x),
        WAYS[1]: lambda: plain(network, x, TOKENS),
        WAYS[2]: lambda: chunked(network, x),
    }[way]
    seconds = best_time(job, repeats=1 if way == WAYS[2] else 5)
    return {
        "case": way,
        "build s": build,
        "run s": seconds,
        "MB": peak_megabytes() - before,
        "difference": float((job() - network(x)).abs().max()),
    }


def plain(network: ah.Network, x: torch.Tensor, queries: int) -> torch.Tensor:
    """The network's attention from its weights alone, with nothing left out."""
    embed, attention = network.layers
    weight, bias, registers = (torch.from_numpy(np.array(a)) for a in (embed.weight, embed.bias, embed.registers))
    q, k, v, o = (torch.from_numpy(np.array(getattr(attention, n)[0])) for n in ("query", "key", "value", "output"))
    tokens = torch.einsum("bni,noi->bno", x, weight) + bias
    sequence = torch.cat([tokens, registers.expand(len(x), *registers.shape)], 1)
    weights = torch.softmax((sequence[:, :queries] @ q.T) @ (sequence @ k.T).mT, -1)
    y = weights @ (sequence @ v.T) @ o.T + torch.from_numpy(np.array(attention.bias))
    return y[:, :TOKENS]


def chunked(network: ah.Network, x: torch.Tensor) -> torch.Tensor:
    return torch.cat([plain(network, part, ANCHORS) for part in x.split(20)])


if __name__ == "__main__":
    command(__doc__ or "", run, main)
