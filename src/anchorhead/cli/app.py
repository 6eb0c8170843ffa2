"""The commands. What a command needs is imported when it runs, so that help comes at once."""

from __future__ import annotations

import errno
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from anchorhead.cli.approximate import approximate
from anchorhead.cli.attention_only import attention_only
from anchorhead.cli.citation import bibtex
from anchorhead.cli.clock import LOADED, print_time, running
from anchorhead.cli.convert import convert
from anchorhead.cli.export import export
from anchorhead.cli.first_checks import check_files, check_saved
from anchorhead.cli.head import head
from anchorhead.cli.hunt import hunt
from anchorhead.cli.learning.learn import learn
from anchorhead.cli.paper import paper
from anchorhead.cli.plan import plan
from anchorhead.cli.play import play
from anchorhead.cli.report import keep_plot
from anchorhead.cli.terminal import give_up_output, in_one_line, prepare, stopped, without_colours
from anchorhead.cli.zoo import zoo
from anchorhead.errors import AnchorheadError

File = Annotated[Path, typer.Argument(metavar="FILE", help="A network that was saved with net.save.")]


class ExplainedErrors(TyperGroup):
    """What the library refuses, a full disk and Ctrl-C become one line, and an exit code: never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        if without_colours():
            ctx.color = False
        try:
            with running():
                return super().invoke(ctx)
        except AnchorheadError as error:
            typer.secho(f"Error: {in_one_line(str(error))}", fg="red", err=True)
            raise typer.Exit(1) from error
        except KeyboardInterrupt as error:
            raise stopped("Stopped.") from error
        except OSError as error:
            if error.errno == errno.EPIPE:  # whoever read it has enough
                raise
            give_up_output()
            typer.secho(f"Error: the output cannot be written: {error.strerror}", fg="red", err=True)
            raise typer.Exit(1) from error


app = typer.Typer(
    cls=ExplainedErrors,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(paper, name="paper")
app.command()(approximate)
app.command("attention-only")(attention_only)
app.command()(convert)
app.command()(export)
app.command()(head)
app.command()(hunt)
app.command()(learn)
app.command()(plan)
app.command()(play)
app.command()(zoo)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"anchorhead {version('anchorhead')}")
        raise typer.Exit


@app.callback()
def anchorhead(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Continuous functions as attention-only networks, with the weights written down and the error proven."""


@app.command()
def info(
    file: File,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw its tokens, layers and heads: .png, .svg or .pdf.")
    ] = None,
) -> None:
    """Say what a saved network is: layers, sizes, features, certificate.

    Example: [bold]anchorhead info ramp.safetensors --plot circuit.png[/bold]
    """
    check_saved(file)
    from anchorhead.network.files import load

    check_files(plot)
    network = load(file)
    typer.echo(network.describe())
    keep_plot(network, plot, kind="circuit")


@app.command()
def check(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|FOLDER", help="A network that was saved with net.save, or an attention-only model's folder."
        ),
    ],
) -> None:
    """Verify a saved network's certificate, from its weights and its program; exit code 1 if it does not follow.

    Example: [bold]anchorhead check ramp.safetensors[/bold]

    Example: [bold]anchorhead check minilm-attention[/bold]
    """
    if not path.is_dir():
        check_saved(path)
    from anchorhead.checking import check as verified
    from anchorhead.cli.check_report import print_report
    from anchorhead.errors import CertificateError

    try:
        report = verified(path)
    except CertificateError as error:
        if error.report is not None:
            print_report(error.report)
        raise
    print_report(report)
    typer.secho(f"{path}: {report.line}", fg="green")
    print_time()


@app.command()
def cite() -> None:
    """Print BibTeX entries of the software and of the paper.

    Example: [bold]anchorhead cite >> references.bib[/bold]
    """
    typer.echo(bibtex(version("anchorhead")))


def main() -> None:
    """The entry point of the program."""
    prepare()
    with running(LOADED):
        app()
