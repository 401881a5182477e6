"""`forerank demo`: the main commands on data that come with scikit-learn."""

import shlex
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from forerank.cli import options, output
from forerank.cli.terminal import escape

EPILOG = options.examples("forerank demo -o demo-output", "forerank demo --label")


def demo(
    *,
    out: Annotated[
        Path, Option("--out", "-o", help="The folder for tables, model and plots.")
    ] = Path("demo-output"),
    label: Annotated[
        bool,
        Option("--label", help="Open the labelling page on the documentation of scikit-learn."),
    ] = False,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Fit, evaluate, rank and explain on data that come with scikit-learn; then compare rankers."""
    from forerank.workflows.demo import compare_rankers, draw, rankers, table_rows, write_tables

    if label:
        _label(out)
        return
    train, new = write_tables(out)
    model, ranked = out / "model.forerank", out / "ranked.csv"
    _run("fit", train, "--target", "diagnosis", "-o", model, "--force")
    _run("evaluate", model, new)
    _run("rank", model, new, "--top", 10, "-o", ranked, "--force")
    _run("explain", model, new, "--row", 1, "--weights", 5)
    output.console().print("\n[bold]Rankers compared[/bold]")
    results = []
    with output.progress_bar("Cross-validating", quiet) as progress:
        for comparison in compare_rankers(seed=seed):
            results.append(comparison)
            progress(len(results) / len(rankers()))
    title = "Handwritten digits: eights ranked above all others (5 folds, held-out rows)"
    table = output.titled_table(title, "ranker", "AUC", "AP", "pos@top", "ms per fit")
    for line in table_rows(results):
        table.add_row(*line)
    output.console().print(table)
    output.print_lines(*(f"saved {file}" for file in draw(results, out)))


def _label(out: Path) -> None:
    """Open the labelling page on the documentation of scikit-learn."""
    from forerank.workflows.demo import write_records

    file = out / "documentation.csv"
    if not file.exists():
        write_records(file)
    output.print_lines("Which of these are about clustering? Label them: r relevant, i irrelevant.")
    _run("label", file)


def _run(*arguments: object) -> None:
    """Print a command and run it."""
    from forerank.cli.app import app

    command = [str(argument) for argument in arguments]
    line = f"\n[bold]$ forerank {escape(shlex.join(command))}[/bold]"
    output.console().print(line, highlight=False)
    if code := app(command, standalone_mode=False):
        raise typer.Exit(code)
