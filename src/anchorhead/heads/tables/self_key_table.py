"""The heads with their own key that ship with the package, with proven bounds.

`self_key_table.jsonl` holds a header, then one line for each function and dtype: heads from few registers to many, each
with a smaller bound than all before it. Weights are written as hexadecimal floats, so what is read is what was proven.
`tools/make_self_key_table.py` writes the file and proves it again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anchorhead.heads.atom import Dtype
from anchorhead.heads.self_keys.self_key import Own, SelfKeyHead
from anchorhead.heads.tables.hex_floats import hex_floats, read_floats
from anchorhead.heads.tables.table import lines_about, read

PATH = Path(__file__).with_name("self_key_table.jsonl")


@dataclass(frozen=True, eq=False)
class SelfKeyFrontier:
    """What is known of one function in one dtype: ever more registers, ever smaller bounds."""

    function: str
    dtype: Dtype
    heads: tuple[SelfKeyHead, ...]

    @property
    def key(self) -> tuple[str, str]:
        return self.function, self.dtype

    def within(self, error: float) -> SelfKeyHead | None:
        """The smallest head that is proven within this error."""
        return next((head for head in self.heads if head.bound <= error), None)

    def to_json(self) -> dict[str, Any]:
        heads = [
            {
                "registers": head.registers,
                "exact": head.exact,
                "rounding": head.rounding,
                "keys": [hex_floats(head.slopes), hex_floats(head.offsets), hex_floats(head.values)],
                "own": None if head.own is None else hex_floats([head.own.slope, head.own.offset, head.own.value]),
                "line": hex_floats([head.skip, head.bias]),
                "step": hex_floats([head.step]),
                "on": hex_floats([head.low, head.high]),
            }
            for head in self.heads
        ]
        return {"function": self.function, "dtype": self.dtype, "heads": heads}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SelfKeyFrontier:
        function, dtype = data["function"], data["dtype"]
        heads = []
        for entry in data["heads"]:
            slopes, offsets, values = (np.array(read_floats(text)).astype(dtype) for text in entry["keys"])
            own = None if entry["own"] is None else Own(*read_floats(entry["own"]))
            skip, bias, step, low, high = (x for name in ("line", "step", "on") for x in read_floats(entry[name]))
            line = (own, skip, bias, step, low, high, dtype, entry["exact"], entry["rounding"])
            heads.append(SelfKeyHead(function, slopes, offsets, values, *line))
        return cls(function, dtype, tuple(heads))


def self_key_frontiers(path: Path = PATH) -> list[SelfKeyFrontier]:
    """All that is in the table."""
    return [SelfKeyFrontier.from_json(json.loads(line)) for line in read(path)[1]]


def self_key_frontier(function: str, dtype: str, arithmetic: str) -> SelfKeyFrontier | None:
    """What the table holds for a function, if its proofs are about this model of arithmetic."""
    known = (SelfKeyFrontier.from_json(one) for one in lines_about(function, dtype, arithmetic, PATH))
    return next(known, None)


def known_functions() -> list[str]:
    return sorted({json.loads(line)["function"] for line in read(PATH)[1]})
