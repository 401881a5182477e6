"""`forerank compare`: methods cross-validated on the same folds, with tests of the differences."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from forerank._text import counted
from forerank.cli import options, output
from forerank.cli.terminal import escape

EPILOG = (
    options.examples(
        "forerank compare bank.csv --target y",
        "forerank compare bank.csv -t y -m Ranker -m TopPush -m lightgbm --metric ap --seeds 3",
        "forerank compare bank.csv -t y -m 'PairwiseRanker(alpha=0.01)' -m pointwise-logistic "
        "--record bank.jsonl",
        "forerank compare queries.svm -m RankNCG -m sklearn.linear_model.Ridge --metric ndcg@10 "
        "--json",
    )
    + "A method is Ranker, one of its methods (pairwise-logistic), an estimator of forerank by "
    "name, the import path of an estimator of the scikit-learn kind, or one of "
    "logistic-regression-cv, ridge-regression-cv, lightgbm, xgboost; parameters go in "
    "parentheses. With --record, an interrupted comparison resumes where it stopped."
)
_METHOD = (
    "A method to compare; may be repeated. Default: Ranker and logistic-regression-cv (grades: "
    "ridge-regression-cv)."
)


@options.reads(labelled=True)
def compare(
    file: options.DataFile,
    *,
    target: options.Target = None,
    method: Annotated[
        list[str] | None,
        Option("--method", "-m", help=_METHOD, autocompletion=options.complete_method),
    ] = None,
    metric: options.Metric = None,
    folds: options.Folds = 5,
    seeds: Annotated[int, Option(min=1, help="How often rows are split into folds.")] = 1,
    read: Any,
    record: Annotated[
        Path | None, Option(help="Record each fit in this file (JSON lines), and resume from it.")
    ] = None,
    jobs: Annotated[
        int, Option("--jobs", "-j", help="Fits in parallel; -1 for one on each core.")
    ] = 1,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare methods by cross-validation on the same folds, and test the differences.

    Columns are prepared inside each fold. Differences to the best method come with p-values of the
    corrected resampled t-test (Nadeau and Bengio 2003), adjusted by Holm's method.
    """
    if record is not None:
        options.refuse_overwriting(record, file)
    if jobs == 0:
        raise ValueError("--jobs 0: give the number of fits in parallel, or -1 for one per core")
    from forerank.workflows import compare as comparison

    arguments = read | {"metric": metric or "auc", "cv": folds, "seeds": seeds, "seed": seed}
    arguments |= {"record": record, "n_jobs": jobs}
    with (
        options.input_file(file, read) as path,
        output.progress_bar("Comparing", quiet) as progress,
        output.recorded_warnings() as caught,
    ):
        methods = method or None
        result = comparison.compare(path, target, methods, progress=progress, **arguments)
    if as_json:
        output.print_json(result.to_dict() | {"remarks": caught})
    else:
        _print_comparison(result, caught, quiet)
    if result.best is None:
        raise typer.Exit(1)


def _print_comparison(result: Any, caught: list[str], quiet: bool) -> None:
    from forerank.workflows.compare import shown_row

    output.print_data_notes(result.notes, quiet)
    times = "" if len(result.seeds) == 1 else f", {len(result.seeds)} times"
    title = f"{counted(result.rows, 'row')}, {counted(result.folds, 'fold')}{times}"
    table = output.titled_table(
        title, "method", result.title, "std", "to the best", "p", "s per fit"
    )
    for row in result.table():
        table.add_row(*map(escape, shown_row(row)))
    output.console().print(table)
    output.print_lines(*([] if quiet else result.choices()), result.sentence())
    output.print_notes(caught + [str(each) for each in result.warnings] + result.errors(), quiet)
