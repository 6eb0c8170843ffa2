"""Networks made by hand, each wrong by more than it claims in a way that was once overlooked: none is verified."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import anchorhead as ah
from anchorhead.domain import Box
from anchorhead.language.expressions.parser import parse
from anchorhead.language.program import Program, Writer
from anchorhead.language.steps import Affine, Term
from anchorhead.network import Attention, Embed, Linear, Network, Softmax
from anchorhead.network.claim_table import ClaimTable
from anchorhead.network.derivation import Derivation
from anchorhead.proof.statement import Statement
from anchorhead.verify import Report, verify

from ..naming import together
from .orders import ORDERS, evaluate

DENSE = np.array([1 / 3, 0.7, -0.9], np.float32)
"""A row whose products with three numbers round, and add up to other numbers in other orders."""
STEEP = 2.0**22


@dataclass(frozen=True, eq=False)
class Case:
    """A network that is said to give a constant within a bound; high: the end of its box; moves: what its error is in
    orders of sums that `evaluate` does not know, one for each of two rows; claims: what is said of its softmaxes."""

    network: Network
    bound: float
    constant: float = 0.0
    low: float = -1.0
    high: float = 1.0
    moves: float = 0.0
    claims: ClaimTable = field(default_factory=ClaimTable.empty)

    def report(self) -> Report:
        box = Box.of((self.low, self.high))
        certificate = Statement(self.bound, (), "by hand", "a constant").certificate(box, self.network.dtype)
        derivation = Derivation("by hand", claims=self.claims)
        made = self.network.with_(program=self._program(box), derivation=derivation, certificate=certificate)
        with tempfile.TemporaryDirectory() as folder:
            made.save(Path(folder) / "network.safetensors")
            return verify(Path(folder) / "network.safetensors")

    def _program(self, box: Box) -> Program:
        writer, (tokens, inputs) = Writer(), self._shape
        ends = box.broadcast_to((tokens, inputs))
        x = writer.input([f"x{n}" for n in range(inputs)], ends.low, ends.high, tokens=tokens)
        first = np.eye(inputs)[:1] if tokens == 1 else np.eye(tokens * inputs)[:1].reshape(1, 1, tokens, inputs)
        writer.apply(parse("tanh(x)"), (writer.affine({x: first}, np.zeros(1)),), ("x",), 1)
        outputs = self.network.layers[-1].outputs
        weight = np.zeros((outputs, inputs) if tokens == 1 else (1, outputs, tokens, inputs))
        made = Affine((Term(x, weight),), np.full((1, outputs), self.constant))
        return writer.program(writer.add(made, "constant"))

    @property
    def _shape(self) -> tuple[int, int]:
        return self.network.embed.tokens or 1, self.network.embed.weight.shape[-1]

    def error(self) -> float:
        """The largest that is found."""
        rng, shape = np.random.default_rng(1), self._shape
        ends = np.stack([np.full(shape, self.low), np.full(shape, self.high)])
        x = np.concatenate([ends, rng.uniform(self.low, self.high, (500, *shape))])
        found = [evaluate(self.network, x, order, self.network.dtype) for order in ORDERS.values()]
        return max(self.moves, float(np.abs(np.array(found, float) - self.constant).max()))


def attention(
    width: int,
    query: dict[Any, float],
    key: dict[Any, float],
    value: dict[int, float],
    output: dict[int, float],
    size: int = 1,
    outputs: int | None = None,
    **more: Any,
) -> Attention:
    """One head from its entries that are not 0, by their places."""
    q, k = np.zeros((1, size, width)), np.zeros((1, size, width))
    v, o = np.zeros((1, 1, width)), np.zeros((1, outputs or width, 1))
    for array, entries in ((q[0], query), (k[0], key), (v[0, 0], value), (o[0, :, 0], output)):
        for place, number in entries.items():
            array[place] = number
    return Attention(q, k, v, o, **more)


def slopes_that_are_heard() -> Case:
    """Registers read 10 and 5, which nobody explains, and those are the slopes of the next layer's keys: they are 0
    only up to what registers may have read."""
    registers = np.array([[0, 0, 0, 1.0], [0, 1.0, 0, 0]])
    embed = Embed(np.eye(4)[:, :1], np.array([0, 1.0, 0, 0]), tokens=1, registers=registers)
    first = attention(
        4, {(0, 3): 1.0}, {(0, 1): 1000.0}, {1: 10.0}, {2: 1.0}, skip=Linear(np.eye(4)), mask="self+registers"
    )
    second = attention(4, {(0, 0): 1.0}, {(0, 2): 1.0}, {3: 1.0}, {0: 1.0}, outputs=1, mask="registers+states")
    return Case(Network([embed, first, second]), 1e-9, 0.5)


def sums_of_registers() -> Case:
    """A register holds 1 and reads a little more than half an ulp: the sum is a whole ulp from 1."""
    registers = np.array([[1.0, 2.0**-53 * (1 + 2.0**-20)]])
    embed = Embed(np.eye(2)[:, :1], np.zeros(2), tokens=1, registers=registers)
    first = attention(2, {}, {}, {1: 1.0}, {0: 1.0}, skip=Linear(np.eye(2)), mask="self+registers")
    last = attention(2, {}, {}, {0: 1.0}, {0: 1.0}, outputs=1, bias=np.array([-1.0]), mask="registers+states")
    return Case(Network([embed, first, last]), 1.2e-16)


def coefficients_that_underflow() -> Case:
    """2^-1022 times 2^-100 is nothing in float64, but the product with an input of 2^1000 is something."""
    embed = Embed(np.full((1, 1), 2.0**-1022), np.zeros(1), tokens=1)
    maps = [Linear(np.full((1, 1), factor)) for factor in (2.0**-100, 2.0**200)]
    return Case(Network([embed, *maps]), 1e-9, low=0.0, high=2.0**1000)


def values_that_are_left_out() -> Case:
    """A register that weighs e^-100 holds 1e40, as it read: between -1e40 and 1e40 is all that is known."""
    registers = np.array([[0, 0, 0, -100.0, 1e40, 0, 1], [0, 0, 0, -1000.0, -1e40, 0, 0]])
    embed = Embed(np.eye(7)[:, :1], np.array([0, 1.0, 0, 0, 0, 1, 0]), tokens=1, registers=registers)
    own = {(0, 5): 1000.0, (1, 6): 1000.0}, {(0, 5): 1.0, (1, 6): 1.0}
    first = attention(7, *own, {4: 1.0}, {2: 1.0}, size=2, skip=Linear(np.eye(7)), mask="self+registers")
    keys = {(0, 3): 1.0, (1, 3): 2.0**-10}
    last = attention(7, {(0, 1): 1.0, (1, 0): 1.0}, keys, {2: 1.0}, {0: 1.0}, size=2, outputs=1, mask="self+registers")
    return Case(Network([embed, first, last]), 1e-6, claims=together(1, 1, 0.0))


def values_of_which_little_is_taken() -> Case:
    """Two heads that outputs take alike but for 4e-13, which is something of values that may be 1e13."""
    registers = np.array([[0, 1.0, 0, 1e13, 1], [0, -1.0, 0, -1e13, 0]])
    embed = Embed(np.eye(5)[:, :1], np.zeros(5), tokens=1, registers=registers)
    first = attention(
        5, {(0, 4): 1000.0}, {(0, 4): 1.0}, {3: 1.0}, {2: 1.0}, skip=Linear(np.eye(5)), mask="self+registers"
    )
    query, key, value, output = np.zeros((2, 1, 5)), np.zeros((2, 1, 5)), np.zeros((2, 1, 5)), np.zeros((2, 2, 1))
    query[:, 0, 0], key[:, 0, 1], value[0, 0, 1], value[1, 0, 2] = 1.0, 1.0, 1.0, 1.0
    output[:, 0, 0], output[1, 1, 0] = 1.0, 4e-13
    last = Attention(query, key, value, output, mask="registers+states")
    return Case(Network([embed, first, last, Linear(np.array([[0.0, 1.0]]))]), 1e-3, claims=together(1, 2, 0.0))


def _apart() -> float:
    """How much logistic functions differ whose arguments are STEEP times a sum of products, in two orders, where that
    is close to 0."""
    x = np.random.default_rng(2).uniform(-0.7, 0.7, (4000, 3)).astype(np.float32)
    x[:, 2] = -(x[:, :2] @ DENSE[:2]) / DENSE[2]
    both = [np.add.accumulate((x * DENSE)[:, order], axis=1)[:, -1].astype(float) for order in ([0, 1, 2], [2, 1, 0])]
    return float(np.abs(np.diff(1 / (1 + np.exp(-STEEP * np.stack(both))), axis=0)).max())


def queries_that_round_apart() -> Case:
    """Two heads ask with equal rows, and what they read cancels: each row is a sum of its own."""
    zeros = np.zeros((2, 5), np.float32)
    registers = zeros.copy()
    registers[:, 3], registers[:, 4] = (STEEP, 0.0), (1.0, 0.0)
    embed = Embed(np.eye(5, 3, dtype=np.float32), zeros[0], tokens=1, registers=registers)
    query, key, value = (np.zeros((2, 1, 5), np.float32) for _ in range(3))
    query[:, 0, :3], key[:, 0, 3], value[:, 0, 4] = DENSE, 1.0, (1.0, -1.0)
    last = Attention(query, key, value, np.ones((2, 1, 1), np.float32), mask="registers+states")
    return Case(Network([embed, last]), 1e-3, moves=_apart(), claims=together(0, 2, 0.0))


def features_that_round_apart() -> Case:
    """The same of two groups, in features that are computed with equal rows."""
    embed = Embed(np.stack([DENSE, DENSE]), np.zeros(2, np.float32), tokens=1)
    logits = np.zeros((4, 2), np.float32)
    logits[0, 0], logits[2, 1] = STEEP, STEEP
    values = np.array([[1.0, 0.0, 0.0, 1.0]], np.float32)
    network = Network([embed, Linear(logits), Softmax((2, 2)), Linear(values)])
    return Case(network, 1e-3, 1.0, moves=_apart(), claims=together(0, 2, 1.0))


def features_of_other_tokens() -> Case:
    """The same of a feature of two tokens, each of which holds an input of its own."""
    embed = Embed(np.ones((1, 1)), np.zeros(1), tokens=2)
    values = np.zeros((1, 1, 2, 2))
    values[0, 0, 0, 0], values[0, 0, 1, 1] = 1.0, 1.0
    logits = Linear(np.array([[8.0], [0.0]]))
    return Case(Network([embed, logits, Softmax((2,)), Linear(values)]), 1e-3, 1.0, claims=together(0, 2, 1.0))


CASES = (
    slopes_that_are_heard, sums_of_registers, coefficients_that_underflow, values_that_are_left_out,
    values_of_which_little_is_taken, queries_that_round_apart, features_that_round_apart,
    features_of_other_tokens,
)  # fmt: skip


@pytest.mark.parametrize("name", [case.__name__ for case in CASES])
def test_what_is_wrong_is_not_verified(name: str) -> None:
    case = next(one for one in CASES if one.__name__ == name)()
    assert case.error() > 1.02 * case.bound
    found = case.report()
    assert not found.verified
    assert not case.error() > found.found  # what could be shown holds, if anything


@pytest.mark.parametrize("numbers", [0, 1])
def test_a_slope_that_is_no_number_scales_nothing(numbers: int) -> None:
    """leaky_relu(x, x) is x^2 below 0: what computes 2 f(x) does not compute f(2 x)."""
    net = ah.head("relu(2*x) + 2*relu(-x)**2", on=(-1, 1), within=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.safetensors"
        net.save(path)
        assert verify(path).verified
        with safe_open(path, framework="numpy") as file:
            header = json.loads(file.metadata()["anchorhead"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header["program"]["steps"][2]["functions"] = [
            {"nodes": [["variable", "x"], *[["number", 0.1]] * numbers, ["leaky_relu", 0, 0]]}
        ]
        arrays["program.1.weight.0"] = 2 * arrays["program.1.weight.0"]
        save_file(arrays, path, {"anchorhead": json.dumps(header)})
        assert not verify(path).verified
