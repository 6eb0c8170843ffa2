"""Options that several commands share: one word for one thing, with one explanation."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from anchorhead.cli.interval import Interval


class Dtype(StrEnum):
    float64 = "float64"
    float32 = "float32"


class Placement(StrEnum):
    solved = "solved"
    uniform = "uniform"


class Form(StrEnum):
    two_layer = "two-layer"
    attention_softmax = "attention-softmax"
    deep = "deep"


class Layout(StrEnum):
    transformer = "transformer"
    sequence = "sequence"


class Errors(tuple[float, ...]):
    """Errors as a user writes them: 1e-2, or 1e-1,1e-2,1e-3."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Errors:
        """That they are above 0 is for the library to check."""
        try:
            return cls(float(number) for number in text.split(","))
        except ValueError as error:
            raise typer.BadParameter(f"{text!r}: give an error such as 1e-3, or a list such as 1e-1,1e-2") from error


Box = Annotated[
    Interval, typer.Option("--on", parser=Interval.parse, metavar="LOW:HIGH", help="The box of inputs: 0:1, -3:3.")
]
Intervals = Annotated[
    list[str] | None,
    typer.Option(
        "--on",
        metavar="[NAME=]LOW:HIGH",
        help="The interval of a variable, once for each: x=-1:1; of the only one, with --tokens, or for a file: 0:1.",
    ),
]
Within = Annotated[float, typer.Option(help="The error asked for: sup norm over the box, rounding included.")]
Withins = Annotated[
    Errors | None,
    typer.Option("--within", parser=Errors.parse, metavar="ERRORS", help="The errors asked for: 1e-1,1e-2."),
]
ActivationOption = typer.Option(help="What stands between the layers: relu, gelu, …, or an expression in x.")
Order = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,NAME,…",
        help="Of a .safetensors file: its layers, first to last; by default sorted by name, fc2 before fc10.",
    ),
]
Until = Annotated[
    str | None, typer.Option(metavar="NAME", help="Of an ONNX file: end at this value; by default its only output.")
]
Tokens = Annotated[int | None, typer.Option(min=1, help="Inputs and outputs are so many tokens.")]
Features = Annotated[
    int | None,
    typer.Option(min=1, help="With --tokens: a token has so many features; x\\[i,j] is feature j of token i."),
]
Causal = Annotated[bool, typer.Option("--causal", help="Token i's output depends on tokens up to i only.")]
FormOption = typer.Option(help="How the layers are arranged; by default as the function asks for.")
LayoutOption = typer.Option(help="Linear maps act on a token alone, or across the sequence as in the paper.")
PlacementOption = typer.Option(help="Anchors where they serve best, or the paper's even spacing.")
DtypeOption = typer.Option(help="The type in which it computes.")
FilesDtype = Annotated[Dtype | None, typer.Option(help="The type in which it computes; by default the file's.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of what is random.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Save the network: a .safetensors file.")
]
Picture = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw it: .png, .svg or .pdf.")]
Csv = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the table with all digits.")]
Latex = Annotated[Path | None, typer.Option("--latex", metavar="FILE", help="Write a LaTeX tabular (booktabs).")]


def domains(given: list[str]) -> dict[str, tuple[float, float]] | tuple[float, float]:
    """{"x": (-1, 1)} from ["x=-1:1"], and (-1, 1) from ["-1:1"], for the only variable."""
    if len(given) == 1 and "=" not in given[0]:
        return box(given)
    found: dict[str, tuple[float, float]] = {}
    for text in given:
        name, sign, ends = text.partition("=")
        if not sign or not name.strip():
            raise typer.BadParameter(
                f"{text!r}: give a variable and its interval, as in --on x=-1:1; one that has no name is for the only "
                "variable"
            )
        if name.strip() in found:
            raise typer.BadParameter(f"{name.strip()} has two intervals: give one")
        found[name.strip()] = Interval.parse(ends)
    return found


def box(given: list[str]) -> tuple[float, float]:
    """(0, 1) from ["0:1"]."""
    if len(given) != 1 or "=" in given[0]:
        raise typer.BadParameter(f"--on {' --on '.join(given)}: one interval for all inputs, as in --on 0:1")
    return Interval.parse(given[0])


def functions_of(texts: list[str], tokens: int | None) -> str | list[str] | list[list[str]]:
    """Expressions as the library takes them: one, one for each output, or a list for each token."""
    if tokens is not None:
        return [[output.strip() for output in text.split(";")] for text in texts]
    several = [text for text in texts if ";" in text]
    if several:
        raise typer.BadParameter(
            f"{several[0]!r}: without --tokens, give every output as an EXPRESSION of its own; ; separates the outputs "
            "of a token"
        )
    return texts if len(texts) > 1 else texts[0]


def layers(order: str | None) -> list[str] | None:
    """The names in --order."""
    return None if order is None else [name.strip() for name in order.split(",")]
