"""`anchorhead play`: the playground, a page for the browser."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from anchorhead.errors import AnchorheadError

PageFile = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Where to write the page; by default a file in your cache folder."
    ),
]
NoOpen = Annotated[bool, typer.Option("--no-open", help="Only write the page and say where it is.")]


def play(output: PageFile = None, no_open: NoOpen = False) -> None:
    """Open the playground in the browser: drag the anchors of a head and see what softmax makes of them.

    The page is one file that needs no server and no network: it can be mailed, or put on any static host.

    Example: [bold]anchorhead play -o playground.html[/bold]
    """
    from anchorhead.disk import write_atomically
    from anchorhead.play import page

    path = output if output is not None else _kept()
    write_atomically(path, page().encode())
    typer.echo(f"Playground: {path}")
    if not no_open and not webbrowser.open(path.resolve().as_uri()):
        typer.echo("No browser was found here: open this file in one.")


def _kept() -> Path:
    """The same file each time, in the user's folder for what can be made again."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache")
    try:
        (folder / "anchorhead").mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise AnchorheadError(f"{folder} cannot hold the page ({error}): give a file with -o FILE") from error
    return folder / "anchorhead" / "playground.html"
