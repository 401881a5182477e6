"""The command line: each command calls one public function."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

import forerank

app = typer.Typer(help="Learn to put the relevant ahead of the irrelevant.", no_args_is_help=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"forerank {forerank.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the pictures go.")] = Path("demo-output"),
    seed: Annotated[int, typer.Option(help="Seed of the folds.")] = 0,
) -> None:
    """Compare rankers by cross-validation on data that come with scikit-learn, and draw their curves."""
    from forerank.demo import compare_rankers, draw, rankers, table_rows

    console = Console()
    steps = track(compare_rankers(seed=seed), total=len(rankers()), description="Cross-validating", console=console)
    comparisons = list(steps)
    table = Table(title="Handwritten digits: eights ahead of all others (5 folds, held-out rows)")
    for column, justify in (("ranker", "left"), ("AUC", "right"), ("AP", "right"), ("pos@top", "right")):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    table.add_column("ms per fit", justify="right")
    for row in table_rows(comparisons):
        table.add_row(*row)
    console.print(table)
    try:
        files = draw(comparisons, out)
    except ImportError:
        console.print("For the pictures, install matplotlib: pip install 'forerank[plots]'")
        raise typer.Exit(1) from None
    for file in files:
        console.print(f"saved {file}")


def main() -> None:
    """Entry point."""
    app()
