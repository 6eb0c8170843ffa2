"""The models that `anchorhead learn` fits: their names, options and objectives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import typer


@dataclass(frozen=True)
class Model:
    """A model's class, and the options that it takes with their values if not given; None: found from the target."""

    estimator: str
    options: Mapping[str, float | None]
    objective: str

    def check(self, name: str, given: Iterable[str]) -> None:
        """Refuses options of other models."""
        wrong = next((option for option in given if option not in self.options), None)
        if wrong is not None:
            takes = ", ".join(map(as_option, self.options)) or "no such option"
            raise typer.BadParameter(f"{as_option(wrong)} does not belong to --model {name}, which takes {takes}")


MODELS = {
    "linear": Model("LinearRegression", {}, "|y - Xw - b|^2"),
    "ridge": Model("Ridge", {"alpha": 1.0}, "|y - Xw - b|^2 + alpha |w|^2"),
    "lasso": Model("Lasso", {"alpha": 1.0}, "|y - Xw - b|^2 / 2n + alpha |w|_1"),
    "elastic-net": Model(
        "ElasticNet",
        {"alpha": 1.0, "l1_ratio": 0.5},
        "|y - Xw - b|^2 / 2n + alpha (l1-ratio |w|_1 + (1 - l1-ratio) |w|^2 / 2)",
    ),
    "logistic": Model("LogisticRegression", {"C": 1.0}, "C sum log(1 + exp(-y(Xw + b))) + |w|^2 / 2; y = -1 or 1"),
    "poisson": Model("PoissonRegressor", {"alpha": 1.0}, "mean of exp(s) - ys + alpha |w|^2 / 2; s = Xw + b"),
    "huber": Model(
        "HuberRegressor",
        {"epsilon": 1.35, "alpha": 1e-4, "scale": None},
        "sum of Huber's loss of (y - Xw - b) / scale, times scale, + alpha |w|^2",
    ),
    "quantile": Model(
        "QuantileRegressor",
        {"quantile": 0.5, "alpha": 1.0, "smoothing": 0.05},
        "mean of a smoothed quantile loss of y - Xw - b, + alpha |w|_1",
    ),
}


def as_option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def print_models() -> None:
    from rich.console import Console
    from rich.table import Table

    lines = Table(title="What is made least; b is the intercept, n the number of rows", title_justify="left")
    for column in ("model", "options, as they are if not given", "objective"):
        lines.add_column(column)
    for name, model in MODELS.items():
        options = (as_option(one) + ("" if value is None else f" {value:g}") for one, value in model.options.items())
        lines.add_row(name, "\n".join(options), model.objective)
    Console(width=100).print(lines)
    typer.echo(
        "huber: scikit-learn looks for the scale of residuals as well. Here it is fixed: --scale, or\n1.4826 times the "
        "median distance of the target from its median.\nquantile: scikit-learn's loss has a kink. Here it is smoothed "
        "over 0.05 standard deviations of\nthe target, or as many as --smoothing says.\n--max-iter, --tol and --drop "
        "belong to all."
    )
