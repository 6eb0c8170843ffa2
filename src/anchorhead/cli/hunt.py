"""`anchorhead hunt`: tries to break a certificate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anchorhead.cli.clock import print_time
from anchorhead.cli.first_checks import check_files, check_head, check_saved
from anchorhead.cli.interval import Interval
from anchorhead.cli.options import Dtype
from anchorhead.cli.terminal import stopped

if TYPE_CHECKING:
    from anchorhead.proof.search.hunt import Hunted

SUFFIX = ".safetensors"
LISTED = 5


def hunt(
    function: Annotated[
        str, typer.Argument(metavar="FUNCTION|FILE", help="A name, an expression in x, or a head that was saved.")
    ],
    on: Annotated[
        Interval | None, typer.Option(parser=Interval.parse, metavar="LOW:HIGH", help="The domain: -10:10, -pi:pi.")
    ] = None,
    within: Annotated[float | None, typer.Option(help="The error that the head is built for.")] = None,
    dtype: Annotated[Dtype | None, typer.Option(help="The type it computes in. By default float64.")] = None,
    inputs: Annotated[int, typer.Option(min=1, help="How many inputs to try.")] = 10_000_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the inputs.")] = 0,
    state: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the state here; go on from it if it exists.")
    ] = None,
) -> None:
    """Search for inputs at which a head errs by more than its certificate allows; exit code 1 if there are any.

    Inputs are crowded at kinks, crossings and ends, and an optimiser climbs from the worst. A violation is reported
    only if ball arithmetic proves it. A hunt that was stopped goes on when the same command is given again.

    Example: [bold]anchorhead hunt gelu --on -10:10 --within 2e-5 --dtype float32 --inputs 10000000[/bold]
    """
    check_files(None, state)
    if function.endswith(SUFFIX):
        if on is not None or within is not None or dtype is not None:
            raise typer.BadParameter(
                "a saved head has its own domain, error and dtype: leave out --on, --within, --dtype"
            )
        check_saved(function)
    elif on is None or within is None:
        raise typer.BadParameter(
            f"{function!r} needs --on LOW:HIGH and --within ERROR; a saved head, {SUFFIX}, does not"
        )
    else:
        check_head(function, on, within)
    from anchorhead.progress import progress_line
    from anchorhead.proof.search.hunt import Claim
    from anchorhead.proof.search.hunt import hunt as search

    if on is None or within is None:
        from anchorhead.network.files import load

        claim = Claim.of(load(function))
    else:
        from anchorhead.constructions.head import head

        claim = Claim.of(head(function, on, within, dtype=(dtype or Dtype.float64).value).network)
    typer.echo(f"{claim}, in {claim.network.dtype}")
    kept = state or Path(f"hunt-{claim.digest[:12]}.json")
    try:
        with progress_line(True, "trying inputs") as tell:
            result = search(claim, inputs, seed, kept, tell)
    except KeyboardInterrupt:
        saved = (
            f"The state is in {kept}: give the same command again to go on."
            if kept.exists()
            else "Nothing was done yet."
        )
        raise stopped(f"Stopped. {saved}") from None
    if state is None:
        kept.unlink(missing_ok=True)
    _print(result)
    print_time()
    if result.violations:
        raise typer.Exit(1)


def _print(result: Hunted) -> None:
    typer.echo(
        f"{result.inputs:,} inputs: worst error {result.worst_error:.6g} at x = {result.at!r}, "
        f"bound {result.bound:.6g}, ratio {result.ratio:.4f}"
    )
    if not result.violations:
        typer.secho("No violation.", fg="green")
        return
    typer.secho("The bound is violated, proven. The worst inputs:", fg="red")
    for found in result.violations[:LISTED]:
        torch, numpy = ((", ".join(map(repr, row))) for row in found.computed)
        typer.echo(f"  x = {found.at!r}  error {found.error:.6g}  torch {torch}  numpy {numpy}")
