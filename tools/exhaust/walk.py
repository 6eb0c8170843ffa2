"""One job, chunk by chunk: the largest error of each head so far, and the inputs that Arb is to judge.

The share of an input is |computed - f| over what is allowed there, in float64 (tools.exhaust.reference); a number that
is not finite has an infinite share. Float64 may be off by `noise`, and a share by noise / bound. For each head are kept

  - the 16 inputs of the largest share: Arb says which is the worst, and by how much it errs;
  - of the inputs whose share is above 1 - noise / bound, the suspects, the worst 64: Arb says which exceed the bound.

A suspect that is not kept, and one that Arb cannot clear, counts as a violation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from flint import arb
from torch import Tensor

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.precision import precision
from anchorhead.proof.search.hunt_claim import PRECISION
from tools.exhaust.floats import DTYPES, Inputs
from tools.exhaust.jobs import Head, Job, Run
from tools.exhaust.reference import ball, noise, values

KEPT, SUSPECTS = 16, 64


@dataclass(frozen=True)
class Seen:
    """An input, the u that went with it (1 where there is none), what was computed, and its share in float64."""

    x: float
    u: float
    computed: float
    share: float

    def to_json(self) -> list[str]:
        """In hexadecimal: every bit, infinities too."""
        return [number.hex() for number in (self.x, self.u, self.computed, self.share)]

    @classmethod
    def from_json(cls, data: Any) -> Seen:
        return cls(*(float.fromhex(text) for text in data))


@dataclass
class Worst:
    """What is known of a head: the inputs that are kept, the largest share first, and how many suspects there were."""

    kept: list[Seen] = field(default_factory=list)
    suspects: int = 0


@dataclass(frozen=True)
class Judged:
    """The worst input of a head: its error as bounds are stated (relative for own heads and gates), its share of what
    is allowed there, both from above, by Arb; and the inputs that exceed the bound."""

    at: Seen
    error: float
    share: float
    violations: int
    exceeding: tuple[Seen, ...]


@dataclass
class Walk:
    """Where a job has come to."""

    job: Job
    inputs: Inputs
    device: torch.device
    done: int = 0
    worst: list[Worst] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.worst = self.worst or [Worst() for _ in self.job.heads]
        self._largest = torch.finfo(DTYPES[self.job.dtype][0]).max
        self.noise = noise(self.job.expression, self.inputs, self.job.relative, self.device)
        if not self.noise < min(head.bound for head in self.job.heads) / 100:
            raise AnchorheadError(
                f"{self.job.name}: float64 is off by up to {self.noise:.2g} here, too much beside the heads' bounds"
            )

    def go(self, size: int, after_chunk: Callable[[], bool]) -> None:
        """Works through what is left, `size` inputs at a time, until all are done or `after_chunk` says to stop."""
        runs = [head.runner(self.job, self.device) for head in self.job.heads]
        for chunk in self.inputs.chunks(size, self.done):
            x = self.inputs.floats(chunk, self.device)
            with torch.no_grad():
                self._chunk(runs, x)
            self.done += len(x)
            if not after_chunk():
                return

    @property
    def complete(self) -> bool:
        return self.done == self.inputs.count

    def _chunk(self, runs: list[Run], x: Tensor) -> None:
        u = self.job.carried(x)
        wide = x.double()
        f, scale = values(self.job.expression, wide), wide.abs().clamp_(min=1.0)
        if u is not None:
            f, scale = f * u, scale * u
        inverse = scale.reciprocal() if self.job.relative else None
        for head, run, worst in zip(self.job.heads, runs, self.worst, strict=True):
            y = run(x, u)
            error, allowed = torch.sub(f, y).abs_(), head.bound
            if self.job.rounds:
                error.div_(_allowed(head.bound, scale, f, self.job.dtype))
                error[f.abs() + head.bound * scale > self._largest] = 0.0
                allowed = 1.0
            elif inverse is not None:
                error.mul_(inverse)
            self._keep(worst, self.noise / head.bound, x, u, y, error, allowed)

    def _keep(
        self, worst: Worst, slack: float, x: Tensor, u: Tensor | None, y: Tensor, error: Tensor, allowed: float
    ) -> None:
        """The largest errors of a chunk; most chunks have none that matters."""
        most = float(error.max()) / allowed
        if math.isnan(most):
            error = error.nan_to_num_(nan=math.inf)
            most = math.inf
        if len(worst.kept) >= KEPT and most < 1 - slack and most <= worst.kept[KEPT - 1].share:
            return
        worst.suspects += int((error > (1 - slack) * allowed).sum()) if most >= 1 - slack else 0
        room = SUSPECTS if worst.suspects else KEPT
        top, index = error.topk(min(room, len(error)))
        columns = (x[index], torch.ones_like(top) if u is None else u[index], y[index], top / allowed)
        seen = [Seen(*numbers) for numbers in zip(*(column.double().tolist() for column in columns), strict=True)]
        worst.kept = sorted([*worst.kept, *seen], key=lambda one: (-one.share, one.x))[:room]

    def judged(self) -> list[Judged]:
        """What Arb says of each head."""
        return [_judged(self.job, head, worst) for head, worst in zip(self.job.heads, self.worst, strict=True)]

    def to_json(self) -> dict[str, Any]:
        heads = [{"suspects": one.suspects, "kept": [seen.to_json() for seen in one.kept]} for one in self.worst]
        return {"done": self.done, "heads": heads}

    def resume(self, data: Any) -> None:
        """Goes on from what `to_json` gave."""
        self.worst = [Worst([Seen.from_json(one) for one in head["kept"]], head["suspects"]) for head in data["heads"]]
        self.done = range(self.inputs.count + 1)[data["done"]]


def _allowed(bound: Any, scale: Any, f: Any, dtype: str) -> Any:
    """The bound of a float32 head, and one rounding of what may then have been computed, in tensors or balls:
    half an ulp relatively, or half of the smallest number."""
    info = torch.finfo(DTYPES[dtype][0])
    return bound * scale + (abs(f) + bound * scale) * (info.eps / 2) + info.smallest_normal * info.eps / 2


def _judged(job: Job, head: Head, worst: Worst) -> Judged:
    found: list[tuple[float, float, Seen]] = []
    exceeding: list[Seen] = []
    with precision(PRECISION):
        for seen in worst.kept:
            if not math.isfinite(seen.computed):
                found.append((math.inf, math.inf, seen))
                exceeding.append(seen)
                continue
            x, u = arb(seen.x), arb(seen.u)
            f = ball(job.expression, seen.x) * u
            scale = abs(x).max(arb(1)) * u if job.relative else arb(1)
            allowed = _allowed(arb(head.bound), scale, f, job.dtype) if job.rounds else arb(head.bound) * scale
            error = abs(f - arb(seen.computed))
            found.append((_above(error / allowed), _above(error / scale), seen))
            if not error <= allowed:
                exceeding.append(seen)
    share, error, at = max(found, key=lambda one: (one[0], one[1], -one[2].x))
    missed = max(0, worst.suspects - len(worst.kept))
    return Judged(at, error, share, len(exceeding) + missed, tuple(exceeding))


def _above(x: arb) -> float:
    """A float64 that is not less than x."""
    return math.nextafter(float(x.upper()), math.inf) if x != 0 else 0.0
