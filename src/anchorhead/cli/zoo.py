"""`anchorhead zoo`: ten networks of known functions, with labels for every head and feature."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from anchorhead.cli.report import progress_bar
from anchorhead.errors import AnchorheadError

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="Which networks; without a name, all.")]
Folder = Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to write them.")]
List = Annotated[bool, typer.Option("--list", help="Say which networks there are, and build none.")]


def zoo(names: Names = None, output: Folder = Path("zoo"), list_: List = False) -> None:
    """Build small networks of known functions: ground truth for work on interpretability.

    For each a file of weights, a picture, and a JSON file that says what every head does and every feature means; and
    a page, README.md, that lists them. What is in the folder under other names stays.

    Example: [bold]anchorhead zoo sort regression -o zoo[/bold]
    """
    from anchorhead.lab import zoo as animals
    from anchorhead.network.files import write_atomically

    if list_:
        for name in animals.names():
            typer.echo(f"{name:18}{animals.animal(name).summary}")
        return
    chosen = [animals.animal(name) for name in dict.fromkeys(names or animals.names())]
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AnchorheadError(f"{output} cannot be made: {error.strerror}") from error
    rows = []
    with progress_bar("networks") as progress:
        for number, one in enumerate(chosen):
            rows.append(_housed(one, output))
            progress(number + 1, len(chosen))
    write_atomically(output / "README.md", _page(rows).encode())
    for row in rows:
        typer.echo(f"{row['name']:18}{row['size']:50}proven {row['bound']:.1e}  found {row['found']:.1e}")
    typer.echo(f"wrote {output / 'README.md'}")


def _housed(one: Any, folder: Path) -> dict[str, Any]:
    """Writes a network, its labels and its picture, and returns what the page says of it."""
    from anchorhead.incontext import Learner, trace
    from anchorhead.lab import zoo as animals
    from anchorhead.network.describe import labels
    from anchorhead.network.files import write_atomically
    from anchorhead.plotting import plot

    network = one.build()
    certificate = network.certificate
    found = animals.largest_error(one, network)
    about = {
        "name": one.name,
        "computes": one.summary,
        "certificate": str(certificate),
        "largest error found": found,
        "layers": labels(network),
    }
    network.save(folder / f"{one.name}.safetensors")
    write_atomically(folder / f"{one.name}.json", json.dumps(about, indent=1, ensure_ascii=False).encode())
    seen = trace(network, one.inputs(1)[0]) if isinstance(network, Learner) else network
    plot(seen, folder / f"{one.name}.png")
    heads = sum(len(layer["heads"]) * layer.get("times", 1) for layer in about["layers"] if "heads" in layer)
    layers = sum(layer.get("times", 1) for layer in about["layers"] if layer["layer"] == "Attention")
    size = f"{layers} attention layers, {heads} heads, {network.parameters:,} weights"
    return {"name": one.name, "summary": one.summary, "size": size, "bound": certificate.bound, "found": found}


def _page(rows: list[dict[str, Any]]) -> str:
    """A section a network, with its picture and links to its files."""
    lines = ["# A small zoo of attention-only networks", ""]
    lines += ["Every network computes a known function, within a proven bound. The JSON file beside it says what every"]
    lines += ["head does and every feature means.", ""]
    for row in rows:
        name = row["name"]
        lines += [f"## {name}", "", f"{row['summary'][0].upper()}{row['summary'][1:]}.", ""]
        lines += [f"{row['size']}; proven within {row['bound']:.1e}, largest error found {row['found']:.1e}."]
        lines += [f"[Weights]({name}.safetensors), [labels]({name}.json).", "", f"![{row['summary']}]({name}.png)", ""]
    return "\n".join(lines)
