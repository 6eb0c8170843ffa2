"""What `anchorhead learn` prints of a fit: coefficients in context and scikit-learn's, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from anchorhead.decimals import counted, shortened

if TYPE_CHECKING:
    from anchorhead.cli.learning.table import Table

MAX_PRINTED, WIDEST_NAME = 40, 32
CLOSE = 1e-4
"""Coefficients that differ by less, relative to the largest, are scikit-learn's."""


def print_fit(table: Table, estimator: Any, other: Any | None, seconds: float, others_seconds: float) -> None:
    """other: scikit-learn's own estimator, unless it failed."""
    names = [shortened(name, WIDEST_NAME) for name in table.names]
    ours, theirs = _coefficients(estimator), _coefficients(other)
    width = max(len("intercept"), *map(len, names))
    typer.echo(f"{'':<{width}}{'in context':>17}{'scikit-learn':>17}{'difference':>13}")
    order = [*range(min(len(names), MAX_PRINTED)), len(names)]
    for j, name in zip(order, [*names[:MAX_PRINTED], "intercept"], strict=True):
        if j == len(names) > MAX_PRINTED:
            typer.echo(f"and {counted(len(names) - MAX_PRINTED, 'more column')}")
        beside = f"{theirs[j]:>17.8g}{ours[j] - theirs[j]:>13.1e}" if other is not None else ""
        typer.echo(f"{name:<{width}}{ours[j]:>17.8g}{beside}")
    if table.classes:
        below, above = (shortened(name, WIDEST_NAME) for name in table.classes)
        typer.echo(f"above 0 speaks for {above}, below 0 for {below}")
    if other is not None:
        _print_difference(table, estimator, other)
    beside = f", scikit-learn {others_seconds:.2f} s" if other is not None else ""
    typer.echo(
        f"{counted(estimator.n_layers_, 'attention layer')} ({counted(estimator.n_iter_, 'step')}) on a prompt of "
        f"{counted(len(table.y), 'example')}; fitted in {seconds:.2f} s{beside}"
    )


def _print_difference(table: Table, estimator: Any, other: Any) -> None:
    from anchorhead.incontext.estimators.reference import SAME_OBJECTIVE, deviation

    apart = deviation(estimator, other)
    if type(estimator).__name__ in SAME_OBJECTIVE:
        of = "of the largest coefficient" if np.any(other.coef_) else "where all should be 0"
        typer.secho(f"largest difference: {apart:.1e} {of}", fg="green" if apart < CLOSE else "red")
        return
    there = estimator.objective(table.X, table.y, np.ravel(other.coef_), float(other.intercept_))
    typer.echo(f"largest difference: {apart:.1e} of the largest coefficient; scikit-learn's objective is another:")
    typer.echo(
        f"the one stated by anchorhead learn --list is {estimator.objective(table.X, table.y):.8g} in context, "
        f"{there:.8g} at scikit-learn's"
    )


def _coefficients(model: Any | None) -> np.ndarray:
    """All coefficients, then the intercept."""
    return np.zeros(0) if model is None else np.append(np.ravel(model.coef_), np.ravel(model.intercept_)[0])
