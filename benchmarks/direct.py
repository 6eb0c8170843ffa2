"""Converted ReLU networks beside the networks they came from: time over the MLP's own, in torch.

"direct": as a call computes it, without an axis of keys, within the same certificate; "plain": the attention itself, on
at most 1,000 rows. Both are over the time that torch takes for the MLP on the same rows in the same dtype: processor
time of one thread, so that other work on the machine does not count.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import torch

import anchorhead as ah
from benchmarks.convert import forward, maps, relu_network
from benchmarks.measure import best_time, command, in_own_process

PLAIN_ROWS = 1_000
WITHIN = {"float64": 1e-5, "float32": 1.0}
WAYS = [(form, layout) for form in ("two-layer", "attention-softmax") for layout in ("transformer", "sequence")]
CASES = [
    *(f"10-256-1, {dtype}, {form}, {layout}" for form, layout in WAYS for dtype in WITHIN),
    *(f"10-10000-1, {dtype}, two-layer, transformer" for dtype in WITHIN),
    *(f"100-1000-1000-100, {dtype}, deep, transformer" for dtype in WITHIN),
]
ROWS = {"10-256-1": (1_000, 10_000, 100_000), "10-10000-1": (1_000, 10_000), "100-1000-1000-100": (1_000, 10_000)}


def main() -> list[dict]:
    return [row for case in CASES for row in in_own_process("benchmarks.direct", case)]


def run(case: str) -> list[dict]:
    torch.set_num_threads(1)
    sizes, dtype, form, layout = case.split(", ")
    target = relu_network([int(size) for size in sizes.split("-")])
    network = ah.convert(target, on=(0, 1), within=WITHIN[dtype], dtype=dtype, form=form, layout=layout)
    kind = getattr(torch, dtype)
    layers = [tuple(torch.from_numpy(np.array(one)).to(kind) for one in (a.weight, a.bias)) for a in maps(target)]
    rng = np.random.default_rng(0)
    found = []
    for rows in ROWS[sizes]:
        x = torch.from_numpy(rng.uniform(0, 1, (rows, *target.input_shape))).to(kind)
        few = x[:PLAIN_ROWS]
        mlp, same = (best_time(partial(forward, layers, some), 5, time.process_time) for some in (x, few))
        ours = best_time(partial(network, x), 5, time.process_time)
        plain = (
            best_time(partial(network, few, evaluation="plain"), 1, time.process_time)
            if rows == ROWS[sizes][0]
            else None
        )
        found.append(
            {
                "case": case,
                "rows": rows,
                "MLP ms": 1e3 * mlp,
                "run ms": 1e3 * ours,
                "time ratio": ours / mlp,
                "plain ratio": "-" if plain is None else plain / same,
            }
        )
    return found


if __name__ == "__main__":
    command(__doc__ or "", run, main)
