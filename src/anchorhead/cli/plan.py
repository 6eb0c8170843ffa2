"""`anchorhead plan`: how large every way to build a network would become."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from anchorhead.cli.convert import Activation, On, Tokens, Weights
from anchorhead.cli.head import Dtype
from anchorhead.cli.waiting import waiting


@dataclass(frozen=True)
class Errors:
    """Errors as a user writes them: 1e-2, or 1e-1,1e-2,1e-3."""

    numbers: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> Errors:
        """That they are above 0 is for the library to check."""
        try:
            return cls(tuple(float(number) for number in text.split(",")))
        except ValueError as error:
            raise typer.BadParameter(f"{text!r}: give an error such as 1e-3, or a list such as 1e-1,1e-2") from error


Within = Annotated[
    Errors, typer.Option("--within", parser=Errors.parse, metavar="ERRORS", help="The errors asked for: 1e-1,1e-2.")
]
Csv = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the table with all digits.")]
Latex = Annotated[Path | None, typer.Option("--latex", metavar="FILE", help="Write a LaTeX tabular (booktabs).")]
Picture = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw parameters and anchors: .png, .svg or .pdf.")
]


def plan(
    weights: Weights,
    activation: Activation,
    on: On,
    within: Within,
    tokens: Tokens = None,
    dtype: Annotated[Dtype | None, typer.Option(help="The type in which it computes; by default the file's.")] = None,
    causal: Annotated[bool, typer.Option("--causal", help="Token i's output depends on tokens up to i only.")] = False,
    csv: Csv = None,
    latex: Latex = None,
    plot: Picture = None,
) -> None:
    """Say how large a network becomes as attention, in every form, layout and placement, before anything is built.

    Example: [bold]anchorhead plan mlp.safetensors --activation relu --on 0:1 --within 1e-1,1e-2,1e-3[/bold]

    Example: [bold]anchorhead plan mlp.safetensors --activation gelu --on -1:1 --within 1e-4 --csv plan.csv[/bold]
    """
    from anchorhead.convert.plan import plan as make
    from anchorhead.network.files import check_folder, write_atomically
    from anchorhead.plotting import check_picture_path
    from anchorhead.plotting import plot as draw

    if plot is not None:
        check_picture_path(plot)
    for path in (csv, latex):
        if path is not None:
            check_folder(path)
    began = time.perf_counter()
    with waiting("planning") as tell:
        found = make(
            weights,
            (on.low, on.high),
            list(within.numbers),
            tokens=tokens,
            dtype=None if dtype is None else dtype.value,
            causal=causal,
            activation=activation,
            progress=lambda anchors, error: tell(f"solving for a head: {anchors} anchors, error {error:.2g}"),
        )
    typer.echo(found)
    typer.echo(f"Time: {time.perf_counter() - began:.1f} s")
    for path, text, what in ((csv, found.to_csv, "Table"), (latex, found.to_latex, "LaTeX")):
        if path is not None:
            write_atomically(path, text().encode())
            typer.echo(f"{what}: {path}")
    if plot is not None:
        draw(found, plot)
        typer.echo(f"Plot: {plot}")
