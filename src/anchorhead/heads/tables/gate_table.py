"""The heads for gated neurons that ship with the package, with proven bounds.

`gate_table.jsonl` holds a header, then one line for each function, reach and dtype: heads on [-reach, reach] from few
registers to many, each with a smaller bound than all before it. Weights are written as hexadecimal floats, so what is
read is what was proven. `tools/make_gate_table.py` writes the file and proves it again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anchorhead.heads.atom import Dtype
from anchorhead.heads.self_keys.gate import GateHead, GatePart
from anchorhead.heads.tables.hex_floats import hex_floats, read_floats
from anchorhead.heads.tables.table import lines_about, read

PATH = Path(__file__).with_name("gate_table.jsonl")

NAMES: dict[str, str] = {
    **dict.fromkeys(("silu", "swish"), "silu"),
    **dict.fromkeys(("gelu", "gelu_python"), "gelu"),
    **dict.fromkeys(("gelu_tanh", "gelu_pytorch_tanh", "gelu_new"), "gelu_tanh"),
    "relu": "relu",
    "sigmoid": "sigmoid",
}
"""What an activation is called here, from its names in torch and transformers: the same function, exactly."""


@dataclass(frozen=True, eq=False)
class GateFrontier:
    """What is known of one function on [-reach, reach] in one dtype: ever more registers, ever smaller bounds."""

    function: str
    reach: float
    dtype: Dtype
    heads: tuple[GateHead, ...]

    @property
    def key(self) -> tuple[str, float, str]:
        return self.function, self.reach, self.dtype

    def within(self, error: float) -> GateHead | None:
        """The smallest head that is proven within this error."""
        return next((head for head in self.heads if head.bound <= error), None)

    def to_json(self) -> dict[str, Any]:
        return {
            "function": self.function,
            "reach": self.reach,
            "dtype": self.dtype,
            "heads": [
                {
                    "registers": head.registers,
                    "exact": head.exact,
                    "rounding": head.rounding,
                    "parts": [
                        [hex_floats(part.slopes), hex_floats(part.offsets), hex_floats([part.factor])]
                        for part in head.parts
                    ],
                }
                for head in self.heads
            ],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> GateFrontier:
        function, reach, dtype = data["function"], data["reach"], data["dtype"]
        heads = []
        for head in data["heads"]:
            columns = ([read_floats(text) for text in part] for part in head["parts"])
            parts = tuple(GatePart.of(slopes, offsets, factor, dtype) for slopes, offsets, (factor,) in columns)
            heads.append(GateHead(function, parts, -reach, reach, dtype, head["exact"], head["rounding"]))
        return cls(function, reach, dtype, tuple(heads))


def all_gates() -> list[GateFrontier]:
    """All that is in the table."""
    return [GateFrontier.from_json(json.loads(line)) for line in read(PATH)[1]]


def gate_frontiers(function: str, dtype: str, arithmetic: str) -> list[GateFrontier]:
    """What the table holds for a function, by reach, if its proofs are about this model of arithmetic."""
    known = [GateFrontier.from_json(one) for one in lines_about(function, dtype, arithmetic, PATH)]
    return sorted(known, key=lambda one: one.reach)
