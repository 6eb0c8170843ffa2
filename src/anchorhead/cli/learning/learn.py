"""`anchorhead learn`: fits a model to a table in context, beside scikit-learn's own."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anchorhead.cli.clock import print_time
from anchorhead.cli.first_checks import check_files
from anchorhead.cli.learning.models import MODELS, print_models
from anchorhead.cli.network_report import say, warnings_in_words
from anchorhead.cli.options import Dtype, DtypeOption
from anchorhead.cli.report import keep_plot
from anchorhead.errors import AnchorheadError

if TYPE_CHECKING:
    from anchorhead.cli.learning.table import Table, Target

TARGETS: dict[str, Target] = {"logistic": "class", "poisson": "count"}

File = Annotated[Path | None, typer.Argument(metavar="FILE.csv", help="A table with a line of column names.")]


def learn(
    file: File = None,
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column to predict.")] = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="One of those that --list lists.")] = "ridge",
    alpha: Annotated[float | None, typer.Option(help="The strength of the penalty.")] = None,
    c: Annotated[float | None, typer.Option("--C", help="Of logistic: 1 over the strength of the penalty.")] = None,
    l1_ratio: Annotated[float | None, typer.Option(help="Of elastic-net: the share of |w|_1, from 0 to 1.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Of huber: at how many scales it turns linear.")] = None,
    scale: Annotated[float | None, typer.Option(help="Of huber: the scale of residuals; else found once.")] = None,
    quantile: Annotated[float | None, typer.Option(help="Of quantile: between 0 and 1.")] = None,
    smoothing: Annotated[
        float | None, typer.Option(help="Of quantile: its smoothing, in standard deviations of the target.")
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Leave a column out; may be repeated.")
    ] = None,
    tol: Annotated[
        float, typer.Option(help="Stop about so far from where coefficients settle, relative to the largest.")
    ] = 1e-7,
    max_iter: Annotated[int, typer.Option(help="The most steps.")] = 200_000,
    dtype: Annotated[Dtype, DtypeOption] = Dtype.float64,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the path of the coefficients: .png, .svg or .pdf."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Save the network, which learns from any prompt: a .safetensors file.",
        ),
    ] = None,
    named: Annotated[bool, typer.Option("--list", help="List the models, with their options.")] = False,
) -> None:
    """Fit a model to a table in context: the rows are a prompt, attention layers find the coefficients.

    They are printed beside scikit-learn's own, with the differences.

    Example: [bold]anchorhead learn houses.csv --target price --model ridge --alpha 1.0 --plot path.png[/bold]

    Example: [bold]anchorhead learn patients.csv --target outcome --model logistic --drop name[/bold]
    """
    if named:
        print_models()
        return
    if file is None or target is None:
        raise typer.BadParameter("give a FILE.csv and --target COLUMN; --list lists the models")
    if model not in MODELS:
        raise typer.BadParameter(f"--model {model}: one of {', '.join(MODELS)}")
    given = {"alpha": alpha, "C": c, "l1_ratio": l1_ratio, "epsilon": epsilon, "scale": scale} | {
        "quantile": quantile,
        "smoothing": smoothing,
    }
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    MODELS[model].check(model, options)
    from anchorhead.given import checked_count, checked_number

    for name, value in options.items():
        checked_number(name, value, f"--model {model} takes a number of at least 0", least=0.0)
    checked_number("tol", tol, "a number above 0", above=0.0)
    checked_count("max_iter", max_iter)
    _check_outputs(file, plot, output)
    options |= {"tol": tol, "max_iter": max_iter, "dtype": dtype.value}
    _learn(file, target, model, options, drop or [], plot, output)


def _check_outputs(file: Path, plot: Path | None, output: Path | None) -> None:
    check_files(plot, output)
    for path, others in ((plot, (file,)), (output, (file, plot))):
        if path is not None and any(other is not None and path.resolve() == other.resolve() for other in others):
            raise typer.BadParameter(f"{path} is named twice: what is written needs a file of its own")


def _learn(
    file: Path,
    target: str,
    model: str,
    options: dict[str, Any],
    drop: list[str],
    plot: Path | None,
    output: Path | None,
) -> None:
    import numpy as np

    from anchorhead.cli.learning.report import print_fit
    from anchorhead.cli.learning.table import read_table

    table = read_table(file, target, drop, TARGETS.get(model, "number"))
    from anchorhead import incontext

    estimator = getattr(incontext, MODELS[model].estimator)(verbose=True, **options)
    from anchorhead.incontext.estimators.reference import reference
    from anchorhead.progress import progress_line

    if np.ptp(table.y) == 0:
        say([f"{target} is the same in every row: there is nothing to learn"])
    seconds, refused = _fit(estimator, table)
    if refused is not None:
        raise refused
    other = reference(estimator)
    with progress_line(True, "fitting with scikit-learn's own solver"):
        others_seconds, refused = _fit(other, table, "scikit-learn: ")
    print_fit(table, estimator, other if refused is None else None, seconds, others_seconds)
    if refused is not None:
        say([f"scikit-learn's own solver failed: {refused}"])
    # the picture first: if it fails, nothing was written
    if plot is not None:
        _draw(table, estimator, other if refused is None else None, plot)
    if output is not None:
        estimator.network_.save(output)
        typer.echo(f"Network: {output}")
    print_time()


def _fit(model: Any, table: Table, whose: str = "") -> tuple[float, AnchorheadError | None]:
    """The seconds that it took, and what was refused. Warnings become lines on stderr."""
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        refused = _tried(lambda: model.fit(table.X, table.y))
    seconds = time.perf_counter() - began
    say(f"{whose}{_named(one.message, table.names)}" for one in caught if issubclass(one.category, UserWarning))
    return seconds, refused


def _tried(fit: Callable[[], Any]) -> AnchorheadError | None:
    """What scikit-learn refuses comes as a ValueError, as ours does."""
    try:
        fit()
    except AnchorheadError as error:
        return error
    except ValueError as error:
        return AnchorheadError(str(error))
    return None


def _named(warning: Warning | str, names: tuple[str, ...]) -> Warning | str:
    """A warning that names columns by number, with their names."""
    from anchorhead.incontext.estimators.estimators import ColumnWarning

    return ColumnWarning(warning.columns, names) if isinstance(warning, ColumnWarning) else warning


def _draw(table: Table, estimator: Any, other: Any | None, path: Path) -> None:
    from anchorhead.incontext.estimators.path import coefficient_path
    from anchorhead.incontext.estimators.reference import SAME_OBJECTIVE

    settled, what = estimator.coef_, "the last step's"
    if other is not None and type(estimator).__name__ in SAME_OBJECTIVE:
        settled, what = other.coef_, "scikit-learn's"
    with warnings_in_words():
        keep_plot(coefficient_path(estimator, table.X, table.y, table.names, settled, what), path)
