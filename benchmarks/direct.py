"""Converted networks beside the networks they came from: time over the MLP's own, in torch.

"direct": as a call computes it, without an axis of keys, within the same certificate; "plain": the attention itself, on
at most 1,000 rows. Both are over the time that torch takes for the MLP (linear, activation, linear) on the same rows in
the same dtype: processor time of one thread, medians of rounds in which both run in turn. Memory that was freed stays
with the process, or the MLP's fresh arrays would cost it several times its time. "passes": what the arithmetic of ReLUs
alone takes, the MLP's two products, clipping, a shift, a square and a cube of every query, without any call around it.
Activations are quotients of polynomials, or sums of clipped ones, and those of tanh and sigmoid, heads of two keys,
sigmoids; what none of these follows within the certificate runs as softmaxes.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import torch

import anchorhead as ah
from benchmarks.convert import forward, maps, random_network
from benchmarks.measure import best_time, command, in_own_process, interleaved

PLAIN_ROWS = 1_000
WITHIN = {"float64": 1e-5, "float32": 1.0}
OTHERS = {
    **{
        name: getattr(torch.nn.functional, name) for name in ("gelu", "silu", "elu", "selu", "celu", "softplus", "mish")
    },
    **{
        name: getattr(torch.nn.functional, name)
        for name in ("leaky_relu", "hardswish", "hardtanh", "hardsigmoid", "relu6", "softsign")
    },
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}
WAYS = [(form, layout) for form in ("two-layer", "attention-softmax") for layout in ("transformer", "sequence")]
CASES = [
    *(f"10-256-1, {dtype}, {form}, {layout}" for form, layout in WAYS for dtype in WITHIN),
    *(f"10-256-1, {dtype}, two-layer, transformer, {name}" for name in OTHERS for dtype in WITHIN),
    *(f"10-1024-1, {dtype}, two-layer, transformer, {name}" for name in ("gelu", "silu", "tanh") for dtype in WITHIN),
    *(f"10-256-1, {dtype}, attention-softmax, transformer, {name}" for name in OTHERS for dtype in WITHIN),
    *(f"64-256-256-8, {dtype}, deep, transformer, {name}" for name in OTHERS for dtype in WITHIN),
    *(f"64-256-256-10, {dtype}, deep, transformer" for dtype in WITHIN),
    *(f"{sizes}, {dtype}, two-layer, transformer" for sizes in ("10-1024-1", "10-10000-1") for dtype in WITHIN),
    *(f"100-1000-1000-100, {dtype}, deep, transformer" for dtype in WITHIN),
]
ROWS = {
    "10-256-1": (1, 100, 1_000, 10_000, 100_000),
    "64-256-256-8": (1_000, 10_000),
    "64-256-256-10": (1, 100, 1_000, 10_000),
    "10-1024-1": (1, 100, 1_000, 10_000),
    "10-10000-1": (1_000, 10_000),
    "100-1000-1000-100": (1_000, 10_000),
}
KEPT = {"MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "4000000000"}
ROUNDS = 5e7
"""Queries of all rounds together."""


def main() -> list[dict]:
    return [row for case in CASES for row in in_own_process("benchmarks.direct", case, **KEPT)]


def run(case: str) -> list[dict]:
    torch.set_num_threads(1)
    sizes, dtype, form, layout, *activation = case.split(", ")
    name = activation[0] if activation else "relu"
    target = random_network([int(size) for size in sizes.split("-")], name)
    network = ah.convert(target, on=(0, 1), within=WITHIN[dtype], dtype=dtype, form=form, layout=layout)
    kind = getattr(torch, dtype)
    layers = [tuple(torch.from_numpy(np.array(one)).to(kind) for one in (a.weight, a.bias)) for a in maps(target)]
    rng = np.random.default_rng(0)
    found = []
    widest = max(int(size) for size in sizes.split("-"))
    for rows in ROWS[sizes]:
        x = torch.from_numpy(rng.uniform(0, 1, (rows, *target.input_shape))).to(kind)
        rounds = int(min(301, max(3, ROUNDS // (rows * widest))))
        mlp = partial(forward, layers, x, OTHERS.get(name, torch.relu))
        jobs = [mlp, partial(passes, layers, x), partial(network, x)]
        original, alone, ours = interleaved(jobs, rounds, time.process_time)
        plain: float | str = "-"
        if rows == PLAIN_ROWS:
            plain = best_time(partial(network, x, evaluation="plain"), 1, time.process_time) / original
        found.append(
            {
                "case": case,
                "rows": rows,
                "MLP ms": 1e3 * original,
                "run ms": 1e3 * ours,
                "time ratio": ours / original,
                "passes ratio": alone / original,
                "plain ratio": plain,
            }
        )
    return found


def passes(layers: list[tuple[torch.Tensor, torch.Tensor]], x: torch.Tensor) -> torch.Tensor:
    """The same arithmetic as that of heads of ReLUs, in the same arrays throughout."""
    x = x.flatten(1)
    for weight, bias in layers[:-1]:
        x = torch.addmm(bias, x, weight.t()).clamp_(1e-8, None).sub_(0.5)
        x = torch.addcmul(x, x * x, x, value=1e-4, out=x)
    return torch.addmm(layers[-1][1], x, layers[-1][0].t())


if __name__ == "__main__":
    command(__doc__ or "", run, main)
