"""`anchorhead learn`: fits a model to a table in context, beside scikit-learn's own."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anchorhead.cli.network_report import say
from anchorhead.cli.options import Dtype, DtypeOption, Output, Picture, check_files
from anchorhead.cli.waiting import waiting

if TYPE_CHECKING:
    from anchorhead.cli.learn_table import Table

MOST_PRINTED = 40


@dataclass(frozen=True)
class Model:
    """A model's class, and the options that it takes."""

    estimator: str
    options: tuple[str, ...]
    objective: str


MODELS = {
    "linear": Model("LinearRegression", (), "|y - Xw - b|^2"),
    "ridge": Model("Ridge", ("alpha",), "|y - Xw - b|^2 + alpha |w|^2"),
    "lasso": Model("Lasso", ("alpha",), "|y - Xw - b|^2 / 2n + alpha |w|_1"),
    "elastic-net": Model(
        "ElasticNet", ("alpha", "l1_ratio"), "as lasso, with l1-ratio of alpha, and the rest for |w|^2 / 2"
    ),
    "logistic": Model("LogisticRegression", ("C",), "C sum log(1 + exp(-y(Xw + b))) + |w|^2 / 2, two classes"),
    "poisson": Model("PoissonRegressor", ("alpha",), "mean of exp(s) - ys, s = Xw + b, + alpha |w|^2 / 2"),
    "huber": Model("HuberRegressor", ("epsilon", "alpha"), "Huber's loss of the residuals + alpha |w|^2"),
    "quantile": Model("QuantileRegressor", ("quantile", "alpha"), "a smoothed quantile loss + alpha |w|_1"),
}

File = Annotated[Path | None, typer.Argument(metavar="FILE.csv", help="A table with a line of column names.")]


def learn(
    file: File = None,
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column to predict.")] = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="One of those that --list lists.")] = "ridge",
    alpha: Annotated[float | None, typer.Option(help="The strength of the penalty.")] = None,
    c: Annotated[float | None, typer.Option("--C", help="Of logistic: 1 over the strength of the penalty.")] = None,
    l1_ratio: Annotated[float | None, typer.Option(help="Of elastic-net: the share of |w|_1.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Of huber: where it turns linear.")] = None,
    quantile: Annotated[float | None, typer.Option(help="Of quantile: between 0 and 1.")] = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Leave a column out; may be repeated.")
    ] = None,
    tol: Annotated[float, typer.Option(help="How far from where they settle coefficients may be.")] = 1e-7,
    dtype: Annotated[Dtype, DtypeOption] = Dtype.float64,
    plot: Picture = None,
    output: Output = None,
    named: Annotated[bool, typer.Option("--list", help="List the models.")] = False,
) -> None:
    """Fit a model to a table in context: the rows are a prompt, attention layers find the coefficients.

    They are printed beside scikit-learn's own.

    Example: [bold]anchorhead learn houses.csv --target price --model ridge --alpha 1.0 --plot path.png[/bold]

    Example: [bold]anchorhead learn patients.csv --target outcome --model logistic --drop name[/bold]
    """
    if named:
        _print_models()
        return
    if file is None or target is None:
        raise typer.BadParameter("give a FILE.csv and --target COLUMN; --list lists the models")
    if model not in MODELS:
        raise typer.BadParameter(f"--model {model}: one of {', '.join(MODELS)}")
    given = {"alpha": alpha, "C": c, "l1_ratio": l1_ratio, "epsilon": epsilon, "quantile": quantile}
    options = {name: value for name, value in given.items() if value is not None}
    wrong = [name for name in options if name not in MODELS[model].options]
    if wrong:
        takes = ", ".join(f"--{name.replace('_', '-')}" for name in MODELS[model].options) or "no such option"
        raise typer.BadParameter(
            f"--{wrong[0].replace('_', '-')} does not belong to --model {model}, which takes {takes}"
        )
    check_files(plot, output)
    _learn(file, target, model, options | {"tol": tol, "dtype": dtype.value}, drop or [], plot, output)


def _learn(
    file: Path,
    target: str,
    model: str,
    options: dict[str, Any],
    drop: list[str],
    plot: Path | None,
    output: Path | None,
) -> None:
    from anchorhead import incontext
    from anchorhead.cli.learn_table import read_table

    estimator = getattr(incontext, MODELS[model].estimator)(verbose=False, **options)
    from anchorhead.incontext.estimators_reference import reference

    table = read_table(file, target, drop, classes=model == "logistic")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.perf_counter()
        with waiting(f"fitting {len(table.y):,} rows of {len(table.names)} columns in context"):
            estimator.fit(table.X, table.y)
        seconds = time.perf_counter() - began
    say(_named(str(one.message), table.names) for one in caught)
    began = time.perf_counter()
    other = reference(estimator).fit(table.X, table.y)
    _report(table, estimator, other, seconds, time.perf_counter() - began)
    if output is not None:
        estimator.network_.save(output)
        typer.echo(f"Network: {output}")
    if plot is not None:
        _draw(table, estimator, other, plot)
        typer.echo(f"Plot: {plot}")


def _named(text: str, names: tuple[str, ...]) -> str:
    """A warning that names columns by number, with their names."""
    start, sign, numbers = text.partition("coefficient 0: ")
    if not sign:
        return text
    return start + sign + ", ".join(names[int(j)] if j.isdigit() else j for j in numbers.split(", "))


def _report(table: Table, estimator: Any, other: Any, seconds: float, others_seconds: float) -> None:
    import numpy as np

    from anchorhead.incontext.estimators_reference import SAME_OBJECTIVE, deviation

    ours, theirs = np.ravel(estimator.coef_), np.ravel(other.coef_)
    rows = [*zip(table.names, ours, theirs, strict=True)]
    width = min(40, max(len("intercept"), *(len(name) for name in table.names)))
    typer.echo(f"{'':<{width}}  {'in context':>16}  {'scikit-learn':>16}")
    for name, mine, its in rows[:MOST_PRINTED]:
        typer.echo(f"{name[:width]:<{width}}  {mine:>16.8g}  {its:>16.8g}")
    if len(rows) > MOST_PRINTED:
        typer.echo(f"and {len(rows) - MOST_PRINTED} more columns")
    first = [float(np.ravel(one.intercept_)[0]) for one in (estimator, other)]
    typer.echo(f"{'intercept':<{width}}  {first[0]:>16.8g}  {first[1]:>16.8g}")
    apart = deviation(estimator, other)
    if type(estimator).__name__ in SAME_OBJECTIVE:
        typer.secho(
            f"largest difference: {apart:.1e} of the largest coefficient", fg="green" if apart < 1e-4 else "red"
        )
    else:
        typer.echo(f"largest difference: {apart:.1e}; scikit-learn's objective is another, see anchorhead learn --list")
    typer.echo(
        f"{estimator.n_layers_:,} attention layers ({estimator.n_iter_:,} steps) on a prompt of {len(table.y):,} "
        f"examples; {seconds:.2f} s, scikit-learn {others_seconds:.2f} s"
    )


def _draw(table: Table, estimator: Any, other: Any, path: Path) -> None:
    from anchorhead.incontext.estimators_path import coefficient_path
    from anchorhead.incontext.estimators_reference import SAME_OBJECTIVE
    from anchorhead.plotting import plot as draw

    same = type(estimator).__name__ in SAME_OBJECTIVE
    settled, what = (other.coef_, "scikit-learn's") if same else (estimator.coef_, "the last step's")
    draw(coefficient_path(estimator, table.X, table.y, table.names, settled, what), path)


def _print_models() -> None:
    from rich.console import Console
    from rich.table import Table as Lines

    lines = Lines(title="What is made least; b is the intercept, n the number of rows", title_justify="left")
    for column in ("model", "options", "objective"):
        lines.add_column(column)
    for name, model in MODELS.items():
        lines.add_row(name, " ".join(f"--{one.replace('_', '-')}" for one in model.options), model.objective)
    Console(width=100).print(lines)
    typer.echo(
        "huber: scikit-learn looks for the scale of residuals as well; here it is 1.4826 times\nthe median distance of "
        "the target from its median.\nquantile: smoothed over 0.05 standard deviations of the target."
    )
