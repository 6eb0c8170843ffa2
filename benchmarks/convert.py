"""Networks as attention: seconds to convert, and to run beside the network itself and beside plain attention.

"MLP": the network that was converted, in torch; "dense": the converted network's layers written out in plain torch,
with dense matrices and softmax(Q K^T) V over all tokens, nothing left out. Ratios are to the converted network, in one
run, on a batch of 100; two threads. MB: the most memory that the process had held, torch included, once it was
converted, or once it had run where nothing is converted. On the long sequence every token sees itself and 16 anchors.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from torch.nn import functional as F

import anchorhead as ah
from anchorhead.lab.converted import random_relu_network
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.mlp import Affine, Hidden, Mlp
from anchorhead.network import Attention, Embed, Linear, Network, Softmax
from benchmarks.measure import best_time, command, in_own_process, peak_megabytes

BATCH = 100
TASK = [(form, layout) for form in ("two-layer", "attention-softmax") for layout in ("transformer", "sequence")]
CASES = [
    *(f"paper's task, {form}, {layout}" for form, layout in TASK),
    "100 -> 1000 -> 1000 -> 100",
    "10 -> 10000 -> 1",
]
HEADS, TOKENS, REGISTERS = 1000, 10_000, 16
LONG = f"{HEADS:,} heads on {TOKENS:,} tokens"


def main() -> list[dict]:
    return [in_own_process("benchmarks.convert", case) for case in (*CASES, LONG)]


def run(case: str) -> dict:
    torch.set_num_threads(2)
    return long_sequence() if case == LONG else converted(case)


def converted(case: str) -> dict:
    target, options = task(case)
    ah.convert(random_network((2, 2, 1)), on=(0, 1), within=1e-6)  # what is loaded and tested once
    start = time.perf_counter()
    network = ah.convert(target, on=(0, 1), **options)
    build, memory = time.perf_counter() - start, peak_megabytes()
    x = torch.from_numpy(np.random.default_rng(0).uniform(0, 1, (BATCH, *target.input_shape)))
    repeats = 3 if network.parameters > 10**6 else 10
    ours = best_time(lambda: network(x), repeats)
    layers = [(torch.from_numpy(np.array(a.weight)), torch.from_numpy(np.array(a.bias))) for a in maps(target)]
    original = best_time(lambda: forward(layers, x), repeats)
    dense = Dense(network)
    beside = best_time(lambda: dense(x), repeats)
    return {
        "case": case,
        "convert s": build,
        "MB": memory,
        "bound": network.certificate.bound if network.certificate else np.nan,
        "run ms": 1e3 * ours,
        "MLP ratio": original / ours,
        "dense ratio": beside / ours,
        "difference": float((dense(x).reshape(-1) - network(x).reshape(-1)).abs().max()),
    }


def task(case: str) -> tuple[Mlp, dict]:
    if case in CASES[: len(TASK)]:
        form, layout = TASK[CASES.index(case)]
        return random_relu_network(20, 5, 10, 0), {"within": 1e-6, "form": form, "layout": layout}
    return random_network([int(size) for size in case.split(" -> ")]), {"within": 1e-6}


def random_network(sizes: list[int] | tuple[int, ...], activation: str = "relu") -> Mlp:
    """Standard normal weights over the square root of the number of inputs."""
    rng = np.random.default_rng(0)
    affine = [
        Affine(rng.normal(size=(after, before)) / np.sqrt(before), rng.normal(size=after) / np.sqrt(before))
        for before, after in pairwise(sizes)
    ]
    hidden = [Hidden.of(one.weight, one.bias, parse(f"{activation}(x)")) for one in affine[:-1]]
    return Mlp(tuple(hidden), affine[-1])


def maps(target: Mlp) -> list[Affine]:
    return [*(layer.affine for layer in target.hidden), target.readout]


def forward(
    layers: list[tuple[torch.Tensor, torch.Tensor]],
    x: torch.Tensor,
    activation: Callable[[torch.Tensor], torch.Tensor] = torch.relu,
) -> torch.Tensor:
    x = x.flatten(1)
    for weight, bias in layers[:-1]:
        x = activation(F.linear(x, weight, bias))
    return F.linear(x, *layers[-1])


class Dense:
    """A network's layers in plain torch: every token asks every head, and sees every token."""

    def __init__(self, network: Network) -> None:
        self.layers = network.layers
        self.weights = {id(a): torch.from_numpy(np.array(a)) for layer in network.layers for a in arrays(layer)}
        self.tokens = network.embed.tokens or 1

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        x = x.reshape(len(x), self.tokens, -1)
        for layer in self.layers:
            x = self.after(layer, x)
        return x[:, : self.tokens]

    def of(self, array: np.ndarray | None) -> torch.Tensor | float:
        return 0.0 if array is None else self.weights[id(array)]

    def after(self, layer: object, x: torch.Tensor) -> torch.Tensor:
        match layer:
            case Embed():
                y = x @ self.of(layer.weight).mT + self.of(layer.bias)  # type: ignore[union-attr]
                if layer.registers is None:
                    return y
                return torch.cat([y, self.of(layer.registers).expand(len(x), -1, -1)], 1)  # type: ignore[union-attr]
            case Linear() if layer.weight.ndim == 4:
                return torch.einsum("jonf,bnf->bjo", self.of(layer.weight), x) + self.of(layer.bias)
            case Linear() if layer.weight.ndim == 3:
                parts = x.unflatten(-1, (layer.weight.shape[0], -1))
                return torch.einsum("goi,btgi->btgo", self.of(layer.weight), parts).flatten(-2) + self.of(layer.bias)
            case Linear():
                return x @ self.of(layer.weight).mT + self.of(layer.bias)  # type: ignore[union-attr]
            case Softmax():
                return torch.softmax(x.unflatten(-1, (len(layer.groups), -1)), -1).flatten(-2)
            case Attention():
                return self.attended(layer, x)
            case _:
                raise TypeError(type(layer))

    def attended(self, layer: Attention, x: torch.Tensor) -> torch.Tensor:
        """In chunks of the batch, because all logits at once would not fit."""
        query, key, value, output = (self.of(getattr(layer, n)) for n in ("query", "key", "value", "output"))
        rows = max(1, 2 * 10**7 // (layer.heads * x.shape[1] ** 2))
        parts = []
        for some in x.split(rows):
            q, k, v = (torch.einsum("btf,hsf->bhts", some, weight) for weight in (query, key, value))
            k, v = (one.expand(-1, layer.heads, -1, -1) for one in (k, v))
            parts.append(torch.einsum("bhtv,hov->bto", F.scaled_dot_product_attention(q, k, v, scale=1.0), output))
        y = torch.cat(parts) + self.of(layer.bias)
        return y if layer.skip is None else y + self.after(layer.skip, x)


def arrays(layer: object) -> list[np.ndarray]:
    own = [value for value in vars(layer).values() if isinstance(value, np.ndarray)]
    skip = getattr(layer, "skip", None)
    return own if skip is None else own + arrays(skip)


def long_sequence() -> dict:
    """Every token asks every head, and sees itself and the anchors, as tokens of one network do that share neurons."""
    rng = np.random.default_rng(0)
    width = 4

    def random(*shape: int) -> np.ndarray:
        return rng.normal(size=shape)

    embed = Embed(random(width, 2), random(width), registers=random(REGISTERS, width))
    shapes = ((HEADS, 2, width), (1, 2, width), (1, 1, width), (HEADS, 1, 1))
    network = Network([embed, Attention(*(random(*shape) for shape in shapes), mask="self+registers")])
    x = torch.from_numpy(random(TOKENS, 2))
    start = time.perf_counter()
    network(x)
    seconds = time.perf_counter() - start
    return {
        "case": LONG,
        "convert s": "-",
        "MB": peak_megabytes(),
        "bound": "-",
        "run ms": 1e3 * seconds,
        "MLP ratio": "-",
        "dense ratio": "-",
        "difference": "-",
    }


if __name__ == "__main__":
    command(__doc__ or "", run, main)
