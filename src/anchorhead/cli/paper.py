"""`anchorhead paper`: the paper's claims, on the weights that its proofs construct."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anchorhead.cli.clock import print_time
from anchorhead.cli.first_checks import check_files, check_losses, check_range
from anchorhead.cli.options import Csv, Dtype, Picture
from anchorhead.cli.report import keep_plot, keep_rows, print_learners, print_sweep, print_task
from anchorhead.cli.sizes import Sizes

if TYPE_CHECKING:
    from anchorhead.plotting import Sweep

paper = typer.Typer(no_args_is_help=True, help="See the paper's claims on the weights that its proofs construct.")


def _sizes(what: str) -> Any:
    return typer.Option(
        parser=Sizes.parse, metavar="SIZES", help=f"{what}: 64, a list 8,20,50 or a doubling range 8:512."
    )


Features = Annotated[int, typer.Option(min=1, help="How many features an input token has.")]
Low = Annotated[float, typer.Option(help="The lower end a of the range.")]
High = Annotated[float, typer.Option(help="The upper end b of the range.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random linear functions and of the search.")]
Kind = Annotated[Dtype, typer.Option(help="The floating-point type in which the networks run.")]


@paper.command()
def single_head(
    anchors: Annotated[Sizes | None, _sizes("Anchors p")] = None,
    tokens: Annotated[Sizes | None, _sizes("Tokens n; a range without --anchors has p = n")] = None,
    features: Features = 4,
    low: Low = -1.0,
    high: High = 1.0,
    seed: Seed = 0,
    dtype: Kind = Dtype.float64,
    plot: Picture = None,
    csv: Csv = None,
) -> None:
    """One head, p anchors: the error falls as 1/p.

    Without sizes: 8 tokens and 8:512 anchors.

    Example: [bold]anchorhead paper single-head --anchors 8:512 --plot rates.png[/bold]
    """
    check_files(plot, csv)
    check_range(low, high)
    if anchors is None and tokens is None:
        anchors = Sizes.parse("8:512")
    if anchors is not None and tokens is not None and len(tokens) > 1:
        raise typer.BadParameter("with --anchors, --tokens is one number; leave out --anchors to have p = n")
    n = tokens or (8,)
    from anchorhead.lab import single_head_sweep

    sweep = single_head_sweep(anchors, min(n) if anchors else n, features, low, high, seed, dtype.value)
    _finish(sweep, plot, csv)


@paper.command()
def multi_head(
    heads: Annotated[Sizes | None, _sizes("Heads H")] = None,
    tokens: Annotated[Sizes | None, _sizes("Tokens n, whose positions are the anchors")] = None,
    features: Features = 4,
    low: Low = -1.0,
    high: High = 1.0,
    seed: Seed = 0,
    dtype: Kind = Dtype.float64,
    plot: Picture = None,
    csv: Csv = None,
) -> None:
    """H heads on n tokens that are their own anchors: the error falls as 1/(nH).

    Without sizes: 8 tokens and 1:32 heads; a range of tokens alone has 4 heads.

    Example: [bold]anchorhead paper multi-head --heads 1:32 --plot rates.png[/bold]
    """
    check_files(plot, csv)
    check_range(low, high)
    from anchorhead.lab import multi_head_sweep

    n = tokens or (8,)
    h = heads or Sizes.parse("1:32" if len(n) == 1 else "4")
    sweep = multi_head_sweep(h, n, features, low, high, seed, dtype.value)
    _finish(sweep, plot, csv)


@paper.command()
def heatmap(
    plot: Annotated[Path, typer.Option("--plot", metavar="FILE", help="Where to draw: .png, .svg or .pdf.")],
    seed: Seed = 0,
) -> None:
    """Draw the attention weights of both constructions for several ranges.

    Example: [bold]anchorhead paper heatmap --plot heat.png[/bold]
    """
    check_files(plot, None)
    from anchorhead.lab import heat_maps
    from anchorhead.plotting import plot as draw

    draw(heat_maps(seed=seed), plot)
    typer.echo(f"Heat maps: {plot}")
    print_time()


@paper.command()
def relu_network(
    tokens: Annotated[int, typer.Option(min=1, help="Tokens n of the sequence.")] = 20,
    features: Annotated[int, typer.Option(min=1, help="Features of a token.")] = 5,
    neurons: Annotated[int, typer.Option(min=1, help="Neurons of the hidden layer.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the weights and of the search.")] = 0,
    csv: Csv = None,
) -> None:
    """A random ReLU network on sequences as attention: two layers, or one and a softmax, in both layouts.

    The paper's experiment: inputs in [0, 1], standard normal weights; here converted and proven, not trained.

    Example: [bold]anchorhead paper relu-network[/bold]
    """
    check_files(None, csv)
    from anchorhead.lab import paper_task

    rows = paper_task(tokens, features, neurons, seed=seed)
    print_task(rows, tokens * features, neurons)
    keep_rows(rows, csv)
    print_time()


@paper.command()
def in_context(
    losses: Annotated[list[str] | None, typer.Option("--loss", help="A loss, once for each; all without.")] = None,
    examples: Annotated[int, typer.Option(min=2, help="Examples of the prompt.")] = 40,
    features: Annotated[int, typer.Option(min=1, help="Features of an example.")] = 2,
    steps: Annotated[int, typer.Option(min=1, help="Steps of gradient descent.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the made data.")] = 0,
    dtype: Kind = Dtype.float64,
    plot: Picture = None,
    csv: Csv = None,
) -> None:
    """Gradient descent as attention layers: every loss in every layout, beside exact descent.

    The picture shows the first: its path, what the state attends to, and how far it is from exact descent.

    Example: [bold]anchorhead paper in-context --plot descent.png[/bold]
    """
    check_files(plot, csv)
    check_losses(losses)
    from anchorhead.lab.in_context import learner_study

    study = learner_study(losses, examples=examples, features=features, steps=steps, seed=seed, dtype=dtype.value)
    print_learners(study.rows, examples, features, steps, dtype.value)
    keep_plot(study.traces[0], plot)
    keep_rows(study.rows, csv)
    print_time()


def _finish(sweep: Sweep, plot: Path | None, csv: Path | None) -> None:
    print_sweep(sweep)
    keep_plot(sweep, plot)
    keep_rows(sweep.rows, csv)
    print_time()
