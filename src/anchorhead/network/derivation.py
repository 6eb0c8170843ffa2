"""How a network comes to compute its program: which heads compute which step, by which lemma, and how far off.

What is here guides a proof, and lets a reader follow it. Nothing in it is trusted: a check proves all of it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from anchorhead.decimals import counted
from anchorhead.language.program import Program
from anchorhead.network.claim_table import ClaimTable
from anchorhead.read_only import ReadOnly

Lemma = Literal["copy", "scalar head", "grid head", "kernel", "self key", "gated pair", "affine", "fit",
                "score", "signed average", "plain average", "threshold", "loop"]  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """Heads of one layer that compute one step of the program.

    layer     the number of the network's layer; None where they are spread over several
    lemma     in which way: see the theorem pages
    what      what they compute, in words
    heads     how many softmaxes that takes, none of a linear map, and `anchors` of each, 0 where the input says it
    on        the interval of the argument for which it is proven, where there is one argument
    error     how far the heads are from the step in exact arithmetic, at most; rounding: what the dtype adds
    step      the place of that step in the program of which the network was built; of one in the body of a Repeat, the
              place of the Repeat, then its own in the body. () in files that were saved before
    body      the number of the layer in the body of a Repeat, where `layer` is one
    measured  whether the error is the largest that was found, and not proven
    """

    layer: int | None
    lemma: Lemma
    what: str
    heads: int
    anchors: int
    on: tuple[float, float] | None = None
    error: float | None = None
    rounding: float | None = None
    step: tuple[int, ...] = ()
    body: int | None = None
    measured: bool = False

    def __str__(self) -> str:
        where = "" if self.on is None else f" on [{self.on[0]:.4g}, {self.on[1]:.4g}]"
        most = "found to be off by" if self.measured else "off by at most"
        off = "" if self.error is None else f", {most} {self.error:.2g}"
        rounded = "" if self.rounding is None else f", rounding {self.rounding:.2g}"
        layer = "layers" if self.layer is None else f"layer {self.layer}{'' if self.body is None else f'.{self.body}'}"
        step = ".".join(f"q{place}" for place in self.step)
        heads = f"{self.heads:,} x {self.anchors} anchors" if self.anchors else counted(self.heads, "head")
        size = heads if self.heads else ""
        return f"{layer:9}  {step:7}  {self.lemma:14}  {size:18}  {self.what}{where}{off}{rounded}"


@dataclass(frozen=True, eq=False)
class Derivation(ReadOnly):
    """By which construction a network computes its program, with the hints of its proof; print it to read it.

    lowered   the program in the form in which it is built, where that is another: products as squares, quotients as
              exponentials of logarithms, functions of one variable in layers, functions of a few for grids; the same
              function on the box
    claims    what its softmaxes are said to compute, entry by entry of that program; None: the file that it comes from
              was saved before derivations named it, and cannot be verified
    """

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()
    lowered: Program | None = None
    claims: ClaimTable | None = field(default_factory=ClaimTable.empty)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", dict(self.data))
        object.__setattr__(self, "entries", tuple(self.entries))

    def entries_json(self) -> list[dict[str, Any]]:
        return [asdict(entry) for entry in self.entries]

    @staticmethod
    def entries_of(data: Any) -> tuple[Entry, ...]:
        """Entries as they were saved."""
        return tuple(
            Entry(
                **{
                    **one,
                    "on": None if one["on"] is None else tuple(map(float, one["on"])),
                    "step": tuple(map(int, one.get("step", ()))),
                }
            )
            for one in data
        )

    def __str__(self) -> str:
        heads = "\n".join(map(str, self.entries)) or f"by the construction for targets of the kind {self.kind!r}"
        if self.lowered is None:
            return heads
        steps = "\n".join(f"  {line}" for line in str(self.lowered).splitlines())
        return f"the program, taken apart into what the network was built of:\n{steps}\n{heads}"
