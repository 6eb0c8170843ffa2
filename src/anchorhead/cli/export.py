"""`anchorhead export`: a saved network in the formats that others read."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from anchorhead.cli.clock import print_time
from anchorhead.cli.first_checks import check_files, check_saved
from anchorhead.errors import AnchorheadError


class To(StrEnum):
    onnx = "onnx"
    torch = "torch"
    lens = "lens"
    transformer_lens = "transformer-lens"
    coq = "coq"


def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A network that was saved with net.save.")],
    to: Annotated[To | None, typer.Option(help="The format; by default what the ending of --output says.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write it; by default beside FILE."),
    ] = None,
) -> None:
    """Write a saved network in another format: ONNX, a program of torch.export, weights of transformer-lens; of a head
    also a theorem that Coq checks.

    Example: [bold]anchorhead export net.safetensors --to onnx[/bold]

    Example: [bold]anchorhead export net.safetensors -o net.pt2[/bold]

    Example: [bold]anchorhead export head.safetensors --to coq[/bold]
    """
    from anchorhead.export import FORMATS, check_format, coq_name
    from anchorhead.export import export as write

    if to is None and output is None:
        raise AnchorheadError(
            "neither --to nor --output says what to export to: give --to onnx, --to torch, --to lens or --to coq"
        )
    name = check_format(output, to)
    stem = coq_name(file.stem) if name == "coq" else file.stem
    path = output or file.parent / f"{stem}{FORMATS[name].suffix}"
    check_saved(file)
    check_files(None, path)
    write(file, path, to=name)
    typer.echo(f"{FORMATS[name].words[0].upper()}{FORMATS[name].words[1:]}: {path}")
    if FORMATS[name].then:
        typer.echo(FORMATS[name].then)
    print_time()
