"""What an output takes beside multiples of a head is in no count of terms, and rounds like them where it is added."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from anchorhead.domain import Box
from anchorhead.language.expressions.parser import parse
from anchorhead.language.program import Program, Writer
from anchorhead.network import Attention, Embed, Linear, Network, Softmax
from anchorhead.network.claim_table import ClaimTable
from anchorhead.network.derivation import Derivation
from anchorhead.proof.statement import Statement
from anchorhead.verify import verify

from ..naming import together

SMALL, LARGE = np.float32(0.0626), 2.0**20
"""Half of a unit of the larger is hardly less than the smaller, which may become a whole one."""
BOX = Box.of((-1.0, 1.0)).broadcast_to((1, 1))


def constants(*values: float) -> Program:
    """Of one input, which does nothing; beside them tanh of it."""
    writer = Writer()
    x = writer.input(["x0"], BOX.low, BOX.high, tokens=1)
    writer.apply(parse("tanh(x)"), (writer.affine({x: np.eye(1)}, np.zeros(1)),), ("x",), 1)
    return writer.program(writer.affine({x: np.zeros((2, 1))}, np.array([values]), "map"))


def groups() -> tuple[Network, Program, ClaimTable]:
    """Of a group with the values (1, 1) another output takes (e, -e): nothing of it, up to e."""
    values = np.array([[1.0, 1.0], [SMALL, -SMALL]], np.float32)
    before, after = (
        Linear(np.array([[100.0], [-100.0]], np.float32)),
        Linear(values, np.array([0.0, LARGE], np.float32)),
    )
    layers = [Embed(np.eye(1, dtype=np.float32), np.zeros(1, np.float32), tokens=1), before, Softmax((2,)), after]
    return Network(layers), constants(1.0, LARGE), ClaimTable.empty()


def heads() -> tuple[Network, Program, ClaimTable]:
    """Of two heads that are named together, and that cancel in one output, another takes the second alone."""
    registers, output = np.zeros((2, 4), np.float32), np.zeros((2, 2, 1), np.float32)
    registers[:, 2:] = [[-100.0, -1.0], [100.0, 1.0]]
    query, key, value = (np.repeat(np.eye(4, dtype=np.float32)[None, [row]], 2, 0) for row in (0, 2, 3))
    value[1] *= -1
    output[:, 0, 0], output[1, 1, 0] = 1.0, SMALL
    bias = np.array([0.0, LARGE], np.float32)
    embed = Embed(np.eye(4, 1, dtype=np.float32), np.zeros(4, np.float32), tokens=1, registers=registers)
    layers = [embed, Attention(query, key, value, output, bias=bias, grid=(2,))]
    return Network(layers), constants(0.0, LARGE), together(0, 2, 0.0)


@pytest.mark.all_cases
@pytest.mark.parametrize("forged", ["groups", "heads"])
def test_what_no_count_knows_rounds_as_well(forged: str) -> None:
    network, program, claims = groups() if forged == "groups" else heads()
    x = np.array([-1.0, -0.5, 0.0, 0.5, 1.0], np.float32).reshape(-1, 1, 1)
    found = float(np.abs(network(x).astype(float) - program(x).astype(float)).max())
    assert found == 0.125
    for bound, good in ((1.004 * float(SMALL), False), (0.13, True)):
        stated = Statement(bound, (), "by hand", "constants").certificate(BOX, "float32")
        made = network.with_(program=program, derivation=Derivation("by hand", claims=claims), certificate=stated)
        with tempfile.TemporaryDirectory() as folder:
            made.save(Path(folder) / "network.safetensors")
            assert verify(Path(folder) / "network.safetensors").verified is good
