"""What there is to exhaust: a job is all heads of one function on one interval, evaluated in one way.

    own     heads with their own key (heads.self_key_table):  |computed - f(s)| <= bound max(1, |s|)
    gate    heads for phi(g) u (heads.gate_table):       |computed - phi(g) u| <= bound max(1, |g|) |u|
    table   heads on an interval (heads.table):          |computed - f(x)| <= bound

Bounds are those of the heads in float32. The ways (`path`) are those of convert.attention_only.attend, and `network`,
in which a head of the table is a Network that is called. Gates take two numbers: every g goes with one u, which is 1,
or the largest number below 2, or drawn in [1, 2] for each g by scrambling its bits. A power of two times u gives the
same bits but for the exponent, and -u the same but for the sign, as long as nothing overflows or underflows.

In float16 and bfloat16, own heads and gates take and give that dtype and compute in float32: what is allowed is the
float32 bound, and one rounding of the result, wherever the dtype holds it. A Network takes such inputs as float32, so
that they are among those of float32.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from anchorhead.constructions.single.head_network import head_network
from anchorhead.convert.attention_only.attend import GateAttention, SelfKeyAttention
from anchorhead.convert.attention_only.heads import numbers_of
from anchorhead.heads.atom import Atom, Part
from anchorhead.heads.self_keys.gate import GateHead
from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.heads.tables.gate_table import GateFrontier, all_gates
from anchorhead.heads.tables.self_key_table import SelfKeyFrontier, self_key_frontiers
from anchorhead.heads.tables.table import Entry, Frontier, frontiers
from anchorhead.language.expressions.activation_names import activation_of
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.targets import ScalarTarget
from tools.exhaust.floats import DTYPES, Inputs, drawn

PATHS: dict[str, dict[str, tuple[str, ...]]] = {
    "cuda": {
        "own": ("triton", "direct", "powers", "plain"),
        "gate": ("triton", "direct", "plain"),
        "table": ("triton", "network"),
    },
    "cpu": {"own": ("direct", "powers", "plain"), "gate": ("direct", "plain"), "table": ("direct", "network")},
}
"""The ways that there are on a device for each kind of head, the fastest first."""
ALONE = "drawn"
CARRIED = (ALONE, "1", "largest")
"""What u is; the slower paths take the first alone."""
ORDER = ("triton", "direct", "powers", "plain", "network")
SLOW = ("plain", "network")
"""Paths with an axis of keys."""
BEST = "best"

Run = Callable[[Tensor, Tensor | None], Tensor]


@dataclass(frozen=True, eq=False)
class Head:
    """One head as it ships: how many anchors (of a gate: registers), its bound, and how it is computed."""

    anchors: int
    bound: float
    of: SelfKeyHead | GateHead | Entry

    def runner(self, job: Job, device: torch.device) -> Run:
        """Its value for a tensor of inputs and, of a gate, a tensor of u."""
        if job.path == "network" and isinstance(self.of, Entry):
            network = head_network(self.of.atom, job.target)
            return lambda x, _: network(x.view(-1, 1, 1), outside="ignore").view(-1)
        modules = [_run(attention(numbers, job.path).to(device)) for numbers in self.numbers()]
        if isinstance(self.of, Entry):
            return _added(modules, self.of.atom, device)
        (module,) = modules
        return lambda x, u: module(x) if u is None else module(x, u)

    def numbers(self) -> list[dict[str, Any]]:
        """Its softmaxes, as `attend.py` takes them: of a head of the table one a part, without origin and bias."""
        if isinstance(self.of, Entry):
            return [_registers(part) for part in self.of.atom.parts]
        return [numbers_of(self.of)]

    @property
    def weights(self) -> list[Any]:
        """All that its values depend on."""
        moved = [self.of.atom.origin, self.of.atom.bias.tolist()] if isinstance(self.of, Entry) else []
        return [self.numbers(), moved]


def attention(numbers: dict[str, Any], path: str) -> SelfKeyAttention | GateAttention:
    return GateAttention(numbers, path) if "parts" in numbers else SelfKeyAttention(numbers, path)


def _run(module: SelfKeyAttention | GateAttention) -> Callable[..., Tensor]:
    """The module; sizes that 16 does not divide, for which Triton would compile its kernels anew, are filled up."""
    if module.path != "triton":
        return module
    return lambda *inputs: module(*(F.pad(x, (0, -len(x) % 16)) for x in inputs))[: len(inputs[0])]


def _added(parts: Sequence[Callable[..., Tensor]], atom: Atom, device: torch.device) -> Run:
    """bias + the sum of all parts' softmaxes at x - origin."""
    origin, bias = (torch.tensor(number, dtype=torch.float32, device=device) for number in (atom.origin, atom.bias[0]))

    def run(x: Tensor, _: Tensor | None) -> Tensor:
        s = x - origin
        total = parts[0](s)
        for part in parts[1:]:
            total += part(s)
        return total.add_(bias)

    return run


def _registers(part: Part) -> dict[str, Any]:
    """A softmax over registers alone, as `attend.py` takes it."""
    lists = {"slopes": part.slopes.tolist(), "offsets": part.offsets.tolist(), "values": part.values[:, 0].tolist()}
    return {"function": "", "dtype": "float32", **lists, "own": None, "skip": 0.0, "bias": 0.0, "powers": None}


@dataclass(frozen=True, eq=False)
class Job:
    """Heads of a function on an interval, by one path, for all inputs of a dtype.

    u       of a gate: see CARRIED
    which   empty for all heads; by a slow path one head: "best", that with the smallest bound, or "anchors=5"
    """

    kind: str
    function: str
    low: float
    high: float
    dtype: str
    path: str
    u: str
    which: str
    heads: tuple[Head, ...]

    @cached_property
    def expression(self) -> Expression:
        return activation_of(self.function)[1]

    @cached_property
    def target(self) -> ScalarTarget:
        return ScalarTarget((self.expression,), self.low, self.high)

    @property
    def name(self) -> str:
        where = f"[{self.low:g},{self.high:g}]" if self.kind != "own" else ""
        words = (self.kind, self.function, where, self.dtype, self.path, self.u and f"u={self.u}", self.which)
        return " ".join(word for word in words if word)

    @property
    def way(self) -> str:
        """The path, and of a gate what u is: as the table has it."""
        return f"{self.path} u={self.u}" if self.u else self.path

    @property
    def relative(self) -> bool:
        """Whether bounds are relative to max(1, |x|)."""
        return self.kind != "table"

    @property
    def rounds(self) -> bool:
        """Whether the result is rounded once more, to the dtype of the input."""
        return self.dtype != "float32"

    def inputs(self, most: int | None = None) -> Inputs:
        return Inputs.between(self.low, self.high, self.dtype, most)

    def carried(self, x: Tensor) -> Tensor | None:
        """The u for each g."""
        if not self.u:
            return None
        if self.u == "drawn":
            return drawn(x)
        number = 1.0 if self.u == "1" else 2.0 - torch.finfo(DTYPES[self.dtype][0]).eps
        return torch.full_like(x, number)

    def digest(self, inputs: Inputs, device: str) -> str:
        """Of all that the outcome depends on."""
        found = hashlib.sha256(json.dumps([self.name, inputs.stretches, device, str(self.expression)]).encode())
        for head in self.heads:
            found.update(json.dumps([head.bound, head.weights]).encode())
        return found.hexdigest()


def jobs(device: str, dtypes: Sequence[str] = ("float32",)) -> list[Job]:
    """Every job on a kind of device, "cuda" or "cpu": fast paths first, then slow ones: there the best heads first, and
    of the others those that take longest last."""
    found = [job for dtype in dtypes for frontier in _frontiers() for job in _of(frontier, device, dtype)]

    def late(job: Job) -> tuple[int, int, int]:
        if job.which not in ("", BEST):
            return len(ORDER), job.inputs().count * (2 + job.heads[0].anchors), 0
        return ORDER.index(job.path), CARRIED.index(job.u or ALONE), 0

    return sorted(found, key=late)


@cache
def _frontiers() -> tuple[SelfKeyFrontier | GateFrontier | Frontier, ...]:
    known = (*self_key_frontiers(), *frontiers(), *all_gates())
    return tuple(frontier for frontier in known if frontier.dtype == "float32")


def _of(frontier: SelfKeyFrontier | GateFrontier | Frontier, device: str, dtype: str) -> Iterator[Job]:
    kind = {SelfKeyFrontier: "own", GateFrontier: "gate", Frontier: "table"}[type(frontier)]
    if kind == "table" and dtype != "float32":
        return
    low, high = _ends(frontier)
    for path in PATHS[device][kind]:
        heads = tuple(_head(head) for head in frontier.heads if path != "powers" or head.step)
        whole = {"": heads}
        if path in SLOW:
            whole = {BEST: heads[-1:], **{f"anchors={head.anchors}": (head,) for head in heads[:-1]}}
        ways = ("",) if kind != "gate" else CARRIED if path == PATHS[device][kind][0] else (ALONE,)
        for u in ways:
            for which, some in whole.items():
                if some:
                    yield Job(kind, frontier.function, low, high, dtype, path, u, which, some)


def _ends(frontier: SelfKeyFrontier | GateFrontier | Frontier) -> tuple[float, float]:
    """Where all heads of a frontier hold."""
    on = frontier.heads[0] if not isinstance(frontier, Frontier) else frontier
    return on.low, on.high


def _head(of: SelfKeyHead | GateHead | Entry) -> Head:
    anchors = of.atom.anchors if isinstance(of, Entry) else of.registers if isinstance(of, GateHead) else of.anchors
    return Head(anchors, of.bound, of)
