"""`anchorhead zoo`: ten networks of known functions, with labels for every head and feature."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from anchorhead.cli.clock import print_time
from anchorhead.errors import AnchorheadError

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="Which networks; without a name, all.")]
Folder = Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to write them.")]
List = Annotated[bool, typer.Option("--list", help="Say which networks there are, and build none.")]

NAMES = (
    "sine",
    "clip",
    "clip-by-position",
    "product",
    "surface",
    "sort",
    "running-maximum",
    "relu-network",
    "regression",
    "classification",
)
"""What lab.zoo builds, known without importing it."""


def zoo(names: Names = None, output: Folder = Path("zoo"), list_: List = False) -> None:
    """Build small networks of known functions: ground truth for work on interpretability.

    For each a file of weights, pictures of what it computes and of its circuit, and a JSON file that says what it
    takes, what every head does and every feature means; and a page, README.md, that lists them. What is in
    the folder under other names stays.

    Example: [bold]anchorhead zoo sort regression -o zoo[/bold]
    """
    from anchorhead.disk import path_of, write_atomically

    unknown = [name for name in names or () if name not in NAMES]
    if unknown:
        raise AnchorheadError(f"no network of the zoo is called {unknown[0]!r}: there are {', '.join(NAMES)}")
    from anchorhead.lab import zoo as animals
    from anchorhead.progress import Status, progress_line

    if list_:
        for one in animals.ZOO.values():
            typer.echo(f"{one.name:18}{one.summary}")
        return
    chosen = [animals.ZOO[name] for name in dict.fromkeys(names or NAMES)]
    try:
        path_of(output).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AnchorheadError(f"{output} cannot be made: {error.strerror}") from error
    made = []
    with progress_line(True, "building networks") as tell:
        for number, one in enumerate(chosen):
            tell(Status(f"building {one.name}", share=number / len(chosen)))
            made.append(_housed(one, output))
    write_atomically(output / "README.md", _page(made).encode())
    for about, size in made:
        errors = f"proven {about['proven bound']:.1e}  found {about['largest error found']:.1e}"
        typer.echo(f"{about['name']:18}{size:50}{errors}")
    typer.echo(f"wrote {output / 'README.md'}")
    print_time()


def _housed(one: Any, folder: Path) -> tuple[dict[str, Any], str]:
    """Writes a network, its labels and its picture, and returns what is known of it, and its size in words."""
    from anchorhead.decimals import counted
    from anchorhead.disk import write_atomically
    from anchorhead.incontext import Learner, trace
    from anchorhead.lab import zoo as animals
    from anchorhead.plotting import plot

    network = one.build()
    about = animals.about(one, network)
    network.save(folder / f"{one.name}.safetensors")
    write_atomically(folder / f"{one.name}.json", json.dumps(about, indent=1, ensure_ascii=False).encode())
    x = one.inputs(1)[0]
    plot(trace(network, x) if isinstance(network, Learner) else network, folder / f"{one.name}.png")
    plot(network, folder / f"{one.name}-circuit.png", kind="circuit", x=x)
    attentions = [layer for layer in about["layers"] if layer["layer"] == "Attention"]
    layers = counted(sum(layer.get("times", 1) for layer in attentions), "attention layer")
    heads = counted(sum(len(layer["heads"]) * layer.get("times", 1) for layer in attentions), "head")
    return about, f"{layers}, {heads}, {network.parameters:,} weights"


def _page(made: list[tuple[dict[str, Any], str]]) -> str:
    """How to load them; then a section a network, with its picture and links to its files."""
    first = made[0][0]["name"]
    lines = ["# A small zoo of attention-only networks", ""]
    lines += [
        "Every network computes a known function, within a proven bound. The JSON file beside it says what it takes,"
    ]
    lines += ["what every head does and every feature means. To run one, and to look into it with TransformerLens:", ""]
    lines += ["```python", "import anchorhead as ah", ""]
    lines += [f'net = ah.load("{first}.safetensors")  # net(x), net.attention(x), print(net.describe())']
    lines += ['bridge = ah.export(net, to="transformer-lens")  # bridge.run_with_cache(x), bridge.head_labels']
    lines += ["```", ""]
    for about, size in made:
        name, computes = about["name"], about["computes"]
        lines += [f"## {name}", "", f"{computes[0].upper()}{computes[1:]}.", ""]
        lines += [f"Takes {_shape(about['takes'])}, gives {_shape(about['gives'])}; {size}; proven within"]
        lines += [f"{about['proven bound']:.1e}, largest error found {about['largest error found']:.1e}."]
        if about["takes"][0] is None:
            lines += ["Inputs are prompts, which `net.prompt(X, y)` makes of examples and labels."]
        lines += [f"[Weights]({name}.safetensors), [labels]({name}.json).", ""]
        lines += [f"![{computes}]({name}.png)", "", f"![tokens, layers and heads of {name}]({name}-circuit.png)", ""]
    return "\n".join(lines)


def _shape(sides: list[int | None]) -> str:
    return f"(batch, {', '.join('tokens' if side is None else str(side) for side in sides)})"
