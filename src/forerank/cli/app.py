"""The command line: each command calls one public function, prints what it found and says what went
wrong.
"""

import json
import logging
import math
import os
import shlex
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NoReturn

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

import forerank
from forerank._text import counted, listed, printable, printable_json
from forerank.cli.terminal import Commands, Console, PrintableSink, echo, escape


class _Commands(Commands):
    """The commands. Output that cannot be written is said in one line, wherever a command writes
    it.
    """

    def invoke(self, ctx: Any) -> Any:
        with _one_line_errors(OSError):
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
            return result


app = typer.Typer(
    cls=_Commands,
    help="Learn to put the relevant ahead of the irrelevant.",
    epilog="Exit codes: 0 done, 1 something unexpected, 2 a file or an option that cannot be used, 130 interrupted, "
    "141 the reader of the output left, 143 terminated.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _examples(*lines: str) -> str:
    return "**Examples**\n\n```text\n" + "\n".join(lines) + "\n```\n\n"


# --- Options that several commands share ---

ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file, as written by 'forerank fit'.")
]
DataFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="CSV, TSV, Parquet, Feather, svmlight (.svm, .svmlight, .libsvm) or NumPy archive (.npz), by its suffix; "
        "text files also as .gz or .bz2. '-' is standard input.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option("--target", "-t", help="The column of labels; svmlight and .npz have their own."),
]
Positive = Annotated[
    str | None,
    typer.Option("--positive", help="The label that belongs ahead; by default the larger of two."),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group", "-g", help="The column of groups (queries) within which rows are ranked."
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", "--ignore", help="A column not to use; may be repeated."),
]
Category = Annotated[
    list[str] | None,
    typer.Option(
        "--category",
        metavar="COLUMN",
        help="A column of categories, whatever its values; may be repeated.",
    ),
]
Number = Annotated[
    list[str] | None,
    typer.Option(
        "--number",
        metavar="COLUMN",
        help="A column of numbers; another value is an error. May be repeated.",
    ),
]
Text = Annotated[
    list[str] | None,
    typer.Option("--text", metavar="COLUMN", help="A column of texts; may be repeated."),
]
Date = Annotated[
    list[str] | None,
    typer.Option(
        "--date", metavar="COLUMN", help="A column of dates, such as 2021-03-04; may be repeated."
    ),
]
SkipUnlabelled = Annotated[
    bool,
    typer.Option("--skip-unlabelled", help="Leave rows without a label out, and say how many."),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        help="Of a CSV file, such as cp1252. Default: UTF-8, or UTF-16 where it says so.",
    ),
]
Folds = Annotated[int, typer.Option("--folds", min=2, help="Of the cross-validation.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]


class _Notes(logging.Handler):
    """What the library logs, on standard error, as other remarks are."""

    def emit(self, record: logging.LogRecord) -> None:
        echo(f"note: {record.getMessage()}", err=True)


def _show_notes(quiet: bool) -> bool:
    """Show what the library logs (that functions are compiled, or that they cannot be kept), unless
    quiet.
    """
    logger = logging.getLogger("forerank")
    logger.setLevel(logging.ERROR if quiet else logging.INFO)
    if not any(isinstance(handler, _Notes) for handler in logger.handlers):
        logger.addHandler(_Notes())
    return quiet


Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Print results only: no progress, no remarks.", callback=_show_notes
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of everything that is drawn at random.")]
_METRICS = "auc, ap, pos_at_top, wmw, ndcg@k, pauc@fpr or recall@k, such as recall@100"
Metric = Annotated[
    str | None,
    typer.Option("--metric", help=f"What the ranking is to be good at: {_METRICS}. Default: auc."),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that is there already.")]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="Of a CSV file; guessed from its header.")
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="What the file is: csv, tsv, parquet, feather, svm or npz. Default: by its suffix; standard input is CSV.",
    ),
]
AllowMissing = Annotated[
    bool,
    typer.Option(
        "--allow-missing", help="Take columns of the model that the file lacks for empty ones."
    ),
]


def _complete_ranker(incomplete: str) -> list[str]:
    names = [name for name in forerank.__all__ if name[0].isupper() and name != "QuadraticFeatures"]
    return [name for name in names if name.lower().startswith(incomplete.lower())]


def _print_version(wanted: bool) -> None:
    if wanted:
        echo(f"forerank {forerank.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


# Significant digits of scores in a terminal; files and pipes have all of them.
_DIGITS_ON_SCREEN = 6

# --- Commands ---


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    epilog=_examples(
        "forerank fit bank.csv --target y -o bank.forerank",
        "forerank fit leads.csv -t bought --metric recall@100 -o leads.forerank",
        "forerank fit leads.csv -t bought --calibrate -o leads.forerank  # for 'forerank rank --probability'",
        "forerank fit leads.parquet -t bought --ranker TopPush --alpha 0.01 -o leads.forerank",
        "forerank fit queries.svm --ranker RankNCG -o queries.forerank  # grades and qid as they are",
        "zcat leads.csv.gz | forerank fit - -t bought --params ranker.toml -o leads.forerank",
    )
    + "By default method and penalty are chosen for the measure, by cross-validation (Ranker). Options that are "
    "not listed are parameters of the ranker: --alpha 0.01, --loss logistic, --max-iter 500, --time-budget 60. A TOML "
    'file holds the same: alpha = 0.01, loss = "logistic", and ranker = "PairwiseRanker".',
)
def fit(
    context: typer.Context,
    file: DataFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The model file to write.")],
    target: Target = None,
    ranker: Annotated[
        str | None,
        typer.Option(
            "--ranker",
            "-r",
            help="An estimator of forerank by name.",
            autocompletion=_complete_ranker,
        ),
    ] = None,
    metric: Metric = None,
    params: Annotated[
        Path | None, typer.Option("--params", help="A TOML file of parameters.")
    ] = None,
    positive: Positive = None,
    group: Group = None,
    drop: Drop = None,
    category: Category = None,
    number: Number = None,
    text: Text = None,
    date: Date = None,
    skip_unlabelled: SkipUnlabelled = False,
    check: Annotated[
        float,
        typer.Option(
            "--check", help="The share of rows kept aside to measure the ranking on; 0 for none."
        ),
    ] = 0.2,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Also learn probabilities, by cross-validation; see 'forerank rank'.",
        ),
    ] = False,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    format: Format = None,
    force: Force = False,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit a ranker on a file and save it.

    The file is read as it is: numbers are filled and scaled, categories become one column each,
    texts words by tf-idf, dates days; ids, constant and empty columns are left out, by name. A part
    of the rows is kept aside to say how good the ranking is; the saved model is fitted on all of
    them.
    """
    with _one_line_errors():
        if file.startswith("--"):
            raise ValueError(
                f"FILE comes first, then parameters of the ranker: forerank fit FILE ... {file} VALUE"
            )
        if str(out) == "-":
            raise ValueError("a model goes into a file: -o MODEL")
        _refuse_same(out, file, params)
        chosen = _parameters(params, context.args)
        name = ranker or chosen.pop("ranker", "Ranker")
        chosen.pop("ranker", None)
        if calibrate:
            chosen["calibrate"] = True
        from forerank import models
        from forerank.data.files import refuse_existing
        from forerank.workflows.fit import fit as fit_model

        refuse_existing(out, force=force)
        import_module("skops")  # before the work, not after it

        with _spooled(file, format) as path, _status(quiet) as say:
            model, remarks = _warnings_of(
                lambda: fit_model(
                    path,
                    target,
                    ranker=name,
                    params=chosen,
                    metric=metric,
                    group=group,
                    positive=positive,
                    drop=drop or [],
                    check=check,
                    seed=seed,
                    delimiter=delimiter,
                    types=_types(category, number, text, date),
                    encoding=encoding,
                    format=format,
                    skip_unlabelled=skip_unlabelled,
                    say=say,
                )
            )
            model.summary["source"] = "standard input" if file == "-" else model.summary["source"]
            say(f"saving {out}")
            digest = models.save_model(model, out, force=force)
    if as_json:
        warned = model.summary["warnings"] + remarks
        _print_json(
            {
                "model": str(out),
                "sha256": digest,
                **model.summary,
                "notes": model.notes,
                "warnings": warned,
            }
        )
        return
    summary = model.summary
    _remark(summary["warnings"] + remarks, quiet)
    console = _console()
    if not quiet:
        console.print(
            f"{counted(summary['rows'], 'row')} of {escape(summary['source'])}: {escape(_classes(summary))}"
        )
        for note in model.notes:
            console.print(f"  {escape(_with_option(note))}", highlight=False)
    if "choice" in summary:
        console.print(escape(summary["choice"]["reason"]), highlight=False)
        if not quiet:
            console.print(escape(summary["choice"]["more_data"]), highlight=False)
    console.print(
        f"{escape(summary['ranker'])}({escape(_shown_params(model))}), {summary['seconds']:.1f} s"
    )
    if summary["measures"]:
        console.print(
            _measure_table(
                f"On {counted(summary['kept_aside'], 'row')} kept aside, before the fit on all rows",
                summary["measures"],
                0.95,
            )
        )
        if not quiet and any("(first" in each.get("depth", "") for each in summary["measures"]):
            console.print(
                "The first k of all rows are the same share of the rows kept aside.",
                highlight=False,
            )
    if not quiet:
        console.print(f"saved {escape(str(out))}", highlight=False)


@app.command(
    epilog=_examples(
        "forerank rank bank.forerank new.csv -o ranked.csv",
        "forerank rank bank.forerank new.csv --top 50  # the fifty best, on standard output",
        "forerank rank bank.forerank new.csv --probability  # of a model from 'forerank fit --calibrate'",
        "zcat huge.csv.gz | forerank rank bank.forerank - -o ranked.parquet",
    )
    + "A file larger than memory is no obstacle: sorted parts of it wait in the temporary directory (TMPDIR).",
)
def rank(
    model: ModelFile,
    file: DataFile,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            help="CSV, TSV, Parquet or Feather by its suffix; '-' is standard output (CSV).",
        ),
    ] = "-",
    top: Annotated[
        int | None,
        typer.Option(
            "--top", min=1, help="Only so many rows (of each group, where there are groups)."
        ),
    ] = None,
    probability: Annotated[
        bool,
        typer.Option(
            "--probability", help="Add a column of the probability of the positive label."
        ),
    ] = False,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    format: Format = None,
    allow_missing: AllowMissing = False,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the ranked list of a file: its rows as they are, with score and rank, best first.

    Rows with the same score share a rank. A model with groups ranks within each of them. Columns
    that the model does not know are kept and not used; columns that it needs must be there, or be
    allowed to be missing. Rows are read as those that the model was fitted on were; the list is in
    UTF-8. A file without rows gives a list without rows.
    """
    with _one_line_errors():
        out = "-" if out == "/dev/stdout" else out  # which may be a file, to be gone on with
        if as_json and out == "-":
            raise ValueError(
                "--json says what was written; the list itself must then go to a file: -o FILE"
            )
        _refuse_same(out, model, file)
        from forerank.models import load_model
        from forerank.models.ranked_list import rank_file
        from forerank.models.scoring import probability_function

        loaded = load_model(model)
        if probability and probability_function(loaded) is None:
            raise ValueError(
                f"{model}: the model has no probabilities; fit it with 'forerank fit ... --calibrate'"
            )
        with _spooled(file, format) as path, _bar("Ranking", quiet) as progress:
            found = rank_file(
                loaded,
                path,
                _list_sink() if out == "-" else Path(out),
                top=top,
                probability=probability,
                delimiter=delimiter,
                encoding=encoding,
                format=format,
                allow_missing=allow_missing,
                force=force,
                digits=_DIGITS_ON_SCREEN if out == "-" and sys.stdout.isatty() else None,
                progress=progress,
            )
    if as_json:
        _print_json({"out": out, **vars(found)})
    elif not quiet:
        console = _console(stderr=True)
        if found.missing:
            console.print(f"taken as empty: {escape(listed(found.missing))}")
        if found.strangers:
            console.print(
                f"the model knows no value of: {escape(listed(found.strangers))}", highlight=False
            )
        if found.unused:
            console.print(
                f"kept, not used by the model: {escape(listed(found.unused))}", highlight=False
            )
        where = "" if out == "-" else f" to {out}"
        console.print(
            f"{found.written:,} of {counted(found.rows, 'row')} written{escape(where)}",
            highlight=False,
        )


@app.command(
    epilog=_examples(
        "forerank evaluate bank.forerank labelled.csv",
        "forerank evaluate bank.forerank labelled.csv --target y --by job --k 50",
        "forerank evaluate bank.forerank labelled.csv --curves curves.png --json",
    )
)
def evaluate(
    model: ModelFile,
    file: DataFile,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", help="The column of labels; by default the one of the model."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", help="A column; measures are also given for each of its values."),
    ] = None,
    k: Annotated[
        list[int] | None,
        typer.Option(
            "--k",
            min=1,
            help="Rows from the top of this file; may be repeated. Default: 10, 100 and the k of the model's metric.",
        ),
    ] = None,
    confidence: Annotated[float, typer.Option("--confidence", help="Of the intervals.")] = 0.95,
    curves: Annotated[
        Path | None,
        typer.Option(
            "--curves", help="Draw ROC, precision-recall and hits-in-the-first-k into this PNG."
        ),
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    format: Format = None,
    skip_unlabelled: SkipUnlabelled = False,
    allow_missing: AllowMissing = False,
    force: Force = False,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say how good a model ranks labelled rows: every measure with its confidence interval."""
    with _one_line_errors():
        from forerank.data.files import opened_atomically, refuse_existing
        from forerank.models import load_model
        from forerank.workflows.evaluate import evaluate as evaluate_model

        if curves is not None:
            if curves.suffix.lower() != ".png":
                raise ValueError(f"{curves}: the picture is a PNG; choose a name that ends in .png")
            refuse_existing(curves, force=force)
        loaded = load_model(model)
        with _spooled(file, format) as path, _status(quiet) as say:
            say("measuring")
            found, remarks = _warnings_of(
                lambda: evaluate_model(
                    loaded,
                    path,
                    target,
                    by=by,
                    k=k or None,
                    confidence=confidence,
                    seed=seed,
                    delimiter=delimiter,
                    allow_missing=allow_missing,
                    encoding=encoding,
                    format=format,
                    skip_unlabelled=skip_unlabelled or None,
                )
            )
            if curves is not None:
                from forerank.plots.curves import draw_curves

                with opened_atomically(curves, force=force) as picture:
                    draw_curves(found.y, found.scores, picture)
    if as_json:
        _print_json(
            {
                "rows": found.rows,
                "classes": found.classes,
                "confidence": confidence,
                "measures": [each.to_dict() for each in found.measures],
                "by": {
                    part: [each.to_dict() for each in measures]
                    for part, measures in found.parts.items()
                },
                "notes": found.notes,
                "warnings": remarks,
            }
        )
        return
    short = [
        f"there are fewer than {counted(place, 'row')}" for place in k or () if place > found.rows
    ]
    _remark(found.notes + remarks + short, quiet)
    console = _console()
    title = f"{counted(found.rows, 'row')}: " + ", ".join(
        f"{name}: {count:,}" for name, count in found.classes.items()
    )
    console.print(_measure_table(title, [each.to_dict() for each in found.measures], confidence))
    if found.parts:
        console.print(_parts_table(by or "", found.parts))
    if curves is not None and not quiet:
        console.print(f"saved {escape(str(curves))}", highlight=False)


def _complete_method(incomplete: str) -> list[str]:
    rivals = ["logistic-regression-cv", "ridge-regression-cv", "lightgbm", "xgboost"]
    return _complete_ranker(incomplete) + [
        name for name in rivals if name.startswith(incomplete.lower())
    ]


@app.command(
    epilog=_examples(
        "forerank compare bank.csv --target y",
        "forerank compare bank.csv -t y -m Ranker -m TopPush -m lightgbm --metric ap --seeds 3",
        "forerank compare bank.csv -t y -m 'PairwiseRanker(alpha=0.01)' -m 'rows, logistic' --record bank.jsonl",
        "forerank compare queries.svm -m RankNCG -m sklearn.linear_model.Ridge --metric ndcg@10 --json",
    )
    + "A method is Ranker, one of its methods ('pairs, logistic'), an estimator of forerank by name, the import path "
    "of an estimator of the scikit-learn kind, or one of logistic-regression-cv, ridge-regression-cv, "
    "lightgbm, xgboost; parameters go in parentheses. With --record, a comparison that was stopped goes on where it "
    "was.",
)
def compare(
    file: DataFile,
    target: Target = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            help="What is compared; may be repeated. Default: Ranker and logistic-regression-cv (grades: "
            "ridge-regression-cv).",
            autocompletion=_complete_method,
        ),
    ] = None,
    metric: Metric = None,
    folds: Folds = 5,
    seeds: Annotated[
        int,
        typer.Option("--seeds", min=1, help="How many times rows are shuffled into folds anew."),
    ] = 1,
    positive: Positive = None,
    group: Group = None,
    drop: Drop = None,
    category: Category = None,
    number: Number = None,
    text: Text = None,
    date: Date = None,
    skip_unlabelled: SkipUnlabelled = False,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record", help="Keep each fit in this file (JSON lines), and go on from it."
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Fits at a time; -1 is one for each core.")
    ] = 1,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    format: Format = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare methods by cross-validation on the same folds, and say which differences are more
    than chance.

    Each method is fitted and measured on the same folds, the columns being prepared inside each of
    them. Differences to the best method come with p-values of the corrected resampled t-test
    (Nadeau and Bengio 2003), after Holm.
    """
    with _one_line_errors():
        if record is not None:
            _refuse_same(record, file)
        if jobs == 0:
            raise ValueError(
                "--jobs 0: give the number of fits at a time, or -1 for one on each core"
            )
        from forerank.workflows import compare as comparison

        with _spooled(file, format) as path, _bar("Comparing", quiet) as progress:
            found, remarks = _warnings_of(
                lambda: comparison.compare(
                    path,
                    target,
                    method or None,
                    metric=metric or "auc",
                    cv=folds,
                    seeds=seeds,
                    seed=seed,
                    group=group,
                    positive=positive,
                    drop=drop or [],
                    record=record,
                    progress=progress,
                    n_jobs=jobs,
                    delimiter=delimiter,
                    types=_types(category, number, text, date),
                    encoding=encoding,
                    format=format,
                    skip_unlabelled=skip_unlabelled,
                )
            )
    if as_json:
        _print_json(found.to_dict() | {"remarks": remarks})
    else:
        _print_comparison(found, remarks, quiet)
    if found.best is None:
        raise typer.Exit(1)


def _print_comparison(found: Any, remarks: list[str], quiet: bool) -> None:
    from forerank.workflows.compare import shown_row

    console, remarks = _console(), remarks + [str(each) for each in found.warnings] + found.errors()
    if not quiet:
        for note in found.notes:
            console.print(f"  {escape(_with_option(note))}", highlight=False)
    times = "" if len(found.seeds) == 1 else f", {len(found.seeds)} times"
    table = Table(
        title=f"{counted(found.rows, 'row')}, {counted(found.folds, 'fold')}{times}",
        title_justify="left",
    )
    for column in ("method", escape(found.title), "std", "to the best", "p", "s per fit"):
        table.add_column(column, justify="left" if column == "method" else "right", overflow="fold")
    for row in found.table():
        table.add_row(*map(escape, shown_row(row)))
    console.print(table)
    for line in [*([] if quiet else found.choices()), found.sentence()]:
        console.print(escape(line), highlight=False)
    _remark(remarks, quiet)


@app.command(
    epilog=_examples(
        "forerank report bank.csv --target y -o bank.html",
        "forerank report bank.csv -t y --metric recall@100 --against TopPush --against lightgbm -o bank.html",
        "forerank report bank.csv -t y --ranker PairwiseRanker --against none -o bank.html",
    )
    + "The page is one file: it can be mailed, opened anywhere and printed.",
)
def report(
    file: DataFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")],
    target: Target = None,
    ranker: Annotated[
        str,
        typer.Option(
            "--ranker",
            "-r",
            help="An estimator of forerank by name.",
            autocompletion=_complete_ranker,
        ),
    ] = "Ranker",
    metric: Metric = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against",
            help="What it is compared with, as in 'forerank compare'; may be repeated. Default: "
            "logistic-regression-cv (grades: ridge-regression-cv); 'none' for nothing.",
            autocompletion=_complete_method,
        ),
    ] = None,
    budget: Annotated[
        float,
        typer.Option(
            "--time-budget",
            min=1,
            help="Seconds for the comparison; what they cut is said on the page.",
        ),
    ] = 600,
    folds: Folds = 5,
    positive: Positive = None,
    group: Group = None,
    drop: Drop = None,
    category: Category = None,
    number: Number = None,
    text: Text = None,
    date: Date = None,
    skip_unlabelled: SkipUnlabelled = False,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    format: Format = None,
    force: Force = False,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a page on a ranking: how good it is on rows it has not seen, in words and pictures, and
    what to mind.
    """
    with _one_line_errors():
        from forerank.data.files import refuse_existing

        refuse_existing(out, force=force)
        _refuse_same(out, file)
        for module in ("jinja2", "matplotlib"):
            import_module(module)  # before the work, not after it
        from forerank.workflows.compare import compare as compare_methods
        from forerank.workflows.report import make_report

        rivals = [] if against == ["none"] else against or ["baseline"]
        options: dict[str, Any] = {
            "group": group,
            "positive": positive,
            "drop": drop or [],
            "delimiter": delimiter,
        }
        options |= {
            "types": _types(category, number, text, date),
            "encoding": encoding,
            "format": format,
        }
        options["skip_unlabelled"] = skip_unlabelled
        with _spooled(file, format) as path, _status(quiet) as say:

            def work() -> Any:
                found = None
                if rivals:
                    say("comparing")
                    found = compare_methods(
                        path,
                        target,
                        [ranker, *rivals],
                        metric=metric or "auc",
                        cv=folds,
                        seed=seed,
                        time_budget=budget,
                        progress=lambda share: say(f"comparing, {share:.0%}"),
                        **options,
                    )
                return make_report(
                    path,
                    target,
                    ranker=ranker,
                    metric=metric or "auc",
                    comparison=found,
                    folds=folds,
                    seed=seed,
                    command=shlex.join(["forerank", *sys.argv[1:]]),
                    say=say,
                    **options,
                )

            made, remarks = _warnings_of(work)
            say(f"saving {out}")
            made.save(out, force=force)
    if as_json:
        _print_json(
            {
                "report": str(out),
                "sentences": made.sentences,
                "measures": [each.to_dict() for each in made.measures],
                "warnings": made.warnings + remarks,
            }
        )
        return
    console = _console()
    for sentence in made.sentences:
        console.print(escape(sentence), highlight=False)
    _remark(made.warnings + remarks, quiet)
    if not quiet:
        console.print(f"saved {escape(str(out))}", highlight=False)


@app.command(
    epilog=_examples(
        "forerank explain bank.forerank", "forerank explain bank.forerank new.csv --row 1 --row 17"
    )
)
def explain(
    model: ModelFile,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]", help="Rows to explain, in a table. '-' is standard input."
        ),
    ] = None,
    row: Annotated[
        list[int] | None,
        typer.Option(
            "--row", min=1, help="A row, counted from 1; may be repeated. Default: the best 5."
        ),
    ] = None,
    weights: Annotated[
        int, typer.Option("--weights", min=0, help="How many weights, the largest first.")
    ] = 20,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    format: Format = None,
    allow_missing: AllowMissing = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say what scores are made of: the largest weights by column, and what each column adds to the
    score of a row.

    What is shown of a row adds up to its score: the columns that add most, the others together, and
    the constant.
    """
    with _one_line_errors():
        from forerank.models import load_model
        from forerank.models.explain import explain as explain_model

        loaded = load_model(model)
        with _spooled(file or "", format) as path:
            found = explain_model(
                loaded,
                path if file else None,
                rows=row,
                delimiter=delimiter,
                allow_missing=allow_missing,
                encoding=encoding,
                format=format,
            )
    if as_json:
        shown = [vars(each) for each in found.weights[:weights]]
        _print_json({"weights": shown, "rows": found.contributions, "intercept": found.intercept})
        return
    console = _console()
    if weights and not (quiet and found.contributions):
        table = Table(title=f"The largest of {len(found.weights):,} weights", title_justify="left")
        table.add_column("column")
        table.add_column("weight", justify="right")
        for each in found.weights[:weights]:
            table.add_row(escape(each.name), f"{each.weight:+.4f}")
        console.print(table)
    for reasons in found.contributions:
        console.print(_row_table(reasons, weights))


def _row_table(reasons: dict[str, Any], most: int) -> Table:
    """What a score is the sum of; of a text, its words stand in its place."""
    table = Table(title=f"Row {reasons['row']}: score {reasons['score']:.4f}", title_justify="left")
    table.add_column("column")
    table.add_column("value")
    table.add_column("adds", justify="right")
    terms = list(reasons["columns"].items())
    named = terms[: most or None]
    for name, term in named:
        value = "(missing)" if term["value"] is None else str(term["value"])[:40]
        parts = [(f"{name}: {word}", adds) for word, adds in term.get("words", {}).items()]
        if others := term.get("other_words", {}).get("count"):
            parts.append((f"{name}: {_counted(others, 'other word')}", term["other_words"]["adds"]))
        for k, (part, adds) in enumerate(parts or [(name, term["adds"])]):
            table.add_row(escape(part), escape(value) if k == 0 else "", f"{adds:+.4f}")
    if others := terms[len(named) :]:
        table.add_row(
            _counted(len(others), "other column"),
            "",
            f"{sum(term['adds'] for _, term in others):+.4f}",
        )
    table.add_row("constant", "", f"{reasons['constant']:+.4f}")
    table.add_section()
    table.add_row("score", "", f"{reasons['score']:+.4f}")
    return table


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


@app.command(epilog=_examples("forerank inspect bank.forerank"))
def inspect(model: ModelFile, as_json: AsJson = False) -> None:
    """Say what is in a model file, without making any object of it: safe for files from strangers."""
    with _one_line_errors():
        from forerank.models import read_card

        card = read_card(model)
    if as_json:
        _print_json(card)
        return
    console = _console()
    summary = card["summary"]
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    params = ", ".join(f"{name}={value!r}" for name, value in summary.get("params", {}).items())
    lines = [
        ("ranker", f"{summary.get('ranker')}({params})"),
        (
            "trained on",
            f"{counted(summary.get('rows', 0), 'row')} of {summary.get('source')}: {_classes(summary)}",
        ),
        ("target", str(card["target"])),
        ("group", str(card["group"])),
        *[("columns" if k == 0 else "", note) for k, note in enumerate(card["notes"])],
        *[(_title(m), _interval(m)) for m in summary.get("measures", [])],
        ("versions", ", ".join(f"{name} {version}" for name, version in card["versions"].items())),
        ("format", str(card["format"])),
        ("sha256", card["sha256"]),
        (
            "foreign types",
            ", ".join(card["foreign_types"])
            or "none" + ("" if card["problems"] else ": it can be loaded"),
        ),
        *[("refused for" if k == 0 else "", problem) for k, problem in enumerate(card["problems"])],
    ]
    for name, value in lines:
        table.add_row(escape(name), escape(value))
    console.print(table, highlight=False)


@app.command(epilog=_examples("forerank export bank.forerank -o bank.onnx"))
def export(
    model: ModelFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The ONNX file to write.")],
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the scorer of a model as ONNX and check that it gives the same scores."""
    with _one_line_errors():
        from forerank.models import load_model
        from forerank.models.onnx import save_onnx

        with _status(quiet) as say:
            say("converting")
            difference = save_onnx(load_model(model), out, force=force)
    if as_json:
        _print_json({"out": str(out), "largest_difference": difference})
    elif not quiet:
        _console().print(
            f"saved {escape(str(out))}; scores agree to {difference:.1e}", highlight=False
        )


@app.command(epilog=_examples("forerank demo -o demo-output"))
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where files and pictures go.")] = Path(
        "demo-output"
    ),
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Do the main job on data that come with scikit-learn: fit, evaluate, rank, explain; then
    compare rankers.
    """
    from forerank.workflows.demo import compare_rankers, draw, rankers, table_rows, write_tables

    console = _console()
    train, new = write_tables(out)
    model, ranked = out / "model.forerank", out / "ranked.csv"
    for words in (
        ["fit", train, "--target", "diagnosis", "-o", model, "--force"],
        ["evaluate", model, new],
        ["rank", model, new, "--top", "10", "-o", ranked, "--force"],
        ["explain", model, new, "--row", "1", "--weights", "5"],
    ):
        command = [str(word) for word in words]
        console.print(f"\n[bold]$ forerank {escape(shlex.join(command))}[/bold]", highlight=False)
        code = app(command, standalone_mode=False)
        if code:
            raise typer.Exit(code)
    console.print("\n[bold]Rankers compared[/bold]")
    results = []
    with _bar("Cross-validating", quiet) as progress:
        for comparison in compare_rankers(seed=seed):
            results.append(comparison)
            progress(len(results) / len(rankers()))
    table = Table(title="Handwritten digits: eights ahead of all others (5 folds, held-out rows)")
    for column, justify in (
        ("ranker", "left"),
        ("AUC", "right"),
        ("AP", "right"),
        ("pos@top", "right"),
    ):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    table.add_column("ms per fit", justify="right")
    for line in table_rows(results):
        table.add_row(*line)
    console.print(table)
    try:
        files = draw(results, out)
    except ImportError as error:
        _fail(error)
    for file in files:
        console.print(f"saved {escape(str(file))}", highlight=False)


# --- What goes wrong ---


@contextmanager
def _one_line_errors(*kinds: type[Exception]) -> Iterator[None]:
    """What a user can mend is said in one line, with exit code 2; files that cannot be used are
    ValueErrors.
    """
    caught = kinds or (ValueError, OSError, ImportError)
    try:
        yield
    except caught as error:
        if isinstance(error, BrokenPipeError):  # the reader has seen enough
            _discard(sys.stdout)
            raise typer.Exit(141) from None
        _fail(error)


def _discard(stream: Any) -> None:
    """Let what is still to be written, now or when the interpreter ends, go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


_EXTRAS = {
    "jinja2": "report",
    "matplotlib": "plots",
    "onnx": "onnx",
    "pandas": "files",
    "pyarrow": "files",
    "skops": "files",
}


def _fail(error: Exception) -> NoReturn:
    text = " ".join(str(error).split("\n"))
    if isinstance(error, ImportError) and error.name in _EXTRAS:
        text = f"{error.name} is needed for this: pip install 'forerank[{_EXTRAS[error.name]}]'"
    if isinstance(error, OSError) and error.filename is None and error.strerror:
        text = f"writing: {error.strerror.lower()}"
    elif isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {(error.strerror or str(error)).lower()}"
    with suppress(OSError):  # standard error may be full, too
        echo(f"forerank: {printable(text)}{_options_that_help(error)}", err=True)
    raise typer.Exit(2) from None


def _options_that_help(error: Exception) -> str:
    """The arguments that an error names, as options: functions and commands call them alike."""
    arguments = getattr(error, "arguments", {}).items()
    shown = [
        f"--{name.replace('_', '-')}{'' if value is True else f' {value}'}"
        for name, value in arguments
    ]
    return f" ({', '.join(shown)})" if shown else ""


# Notes of the library end in what to do; a command has an option for it.
_OPTIONS = {
    "name the type of the column": "--number, --category, --text or --ignore COLUMN",
    "name the positive one": "--positive LABEL",
}


def _with_option(note: str) -> str:
    option = next((option for end, option in _OPTIONS.items() if note.endswith(end)), None)
    return note if option is None else f"{note} ({option})"


def _warnings_of(action: Callable[[], Any]) -> tuple[Any, list[str]]:
    """The result of an action, and what it warned about, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        result = action()
    return result, list(dict.fromkeys(" ".join(str(each.message).split()) for each in caught))


def _remark(remarks: list[str], quiet: bool) -> None:
    for remark in [] if quiet else remarks:
        _console(stderr=True).print(f"note: {escape(remark)}", highlight=False)


# --- Files and options ---


def _refuse_same(out: Any, *inputs: Any) -> None:
    """A command does not overwrite what it reads, not even with --force."""
    for each in inputs:
        if (
            each not in (None, "-")
            and Path(out).exists()
            and Path(each).exists()
            and Path(out).samefile(each)
        ):
            raise ValueError(f"{out} would overwrite what is read; choose another name")


def _types(
    category: list[str] | None,
    number: list[str] | None,
    text: list[str] | None,
    date: list[str] | None,
) -> dict[str, str]:
    """The type of each column that has been given one."""
    found: dict[str, str] = {}
    for kind, names in (("category", category), ("number", number), ("text", text), ("date", date)):
        for name in names or ():
            if found.setdefault(name, kind) != kind:
                raise ValueError(
                    f"the column {name!r} is said to be {found[name]} and {kind}; give it one type"
                )
    return found


@contextmanager
def _spooled(file: str, format: str | None) -> Iterator[Path]:
    """The file; standard input as a temporary one, since ranking looks at rows more than once."""
    if file != "-":
        yield Path(file)
        return
    from forerank.exceptions import DataFileError

    with TemporaryDirectory(prefix="forerank-") as directory:
        path = Path(directory) / f"input.{format or 'csv'}"
        with path.open("wb") as copy:
            while part := sys.stdin.buffer.read(1 << 20):
                copy.write(part)
        try:
            yield path
        except DataFileError as error:
            raise DataFileError(
                "standard input", error.problem, error.line, error.arguments
            ) from None


def _parameters(path: Path | None, words: list[str]) -> dict[str, Any]:
    """Parameters of a TOML file, then those among the options."""
    chosen: dict[str, Any] = {}
    if path is not None:
        try:
            chosen = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: not TOML ({error})") from None
    words = list(words)
    while words:
        word = words.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not name:
            raise ValueError(
                f"{word!r} is no option; one file is expected, then options and parameters of the ranker"
            )
        if not equals:
            if not words:
                raise ValueError(f"the parameter {word} has no value")
            value = words.pop(0)
        chosen[name.replace("-", "_")] = _value(value)
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in chosen.items()
    }


def _value(text: str) -> Any:
    """A number, a truth value, a list or, where it is none of these, the text itself."""
    if text.lower() in ("none", "true", "false"):
        return {"none": None, "true": True, "false": False}[text.lower()]
    for read in (lambda: tomllib.loads(f"value = {text}")["value"], lambda: float(text)):
        with suppress(ValueError):
            return read()
    return text


# --- What is shown ---


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # which `_Commands` answers; rich would exit with code 1


def _console(*, stderr: bool = False) -> Console:
    return _Console(stderr=stderr, soft_wrap=True)


def _list_sink() -> Any:
    """Standard output for a ranked list: the bytes as they are, unless somebody looks at them."""
    return PrintableSink(sys.stdout.buffer) if sys.stdout.isatty() else sys.stdout.buffer


@contextmanager
def _status(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Says on standard error what is being done, where that is a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda line: None
        return
    with console.status("starting") as status:
        yield lambda line: status.update(escape(line))


@contextmanager
def _bar(what: str, quiet: bool) -> Iterator[Callable[[float], None]]:
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda share: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=1.0)
        yield lambda share: progress.update(task, completed=share)


def _print_json(value: Any) -> None:
    any_text = (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf")
    typer.echo(printable_json(json.dumps(_plain(value), indent=1, ensure_ascii=not any_text)))


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity: what is not known is null."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _classes(summary: dict[str, Any]) -> str:
    counts = list(summary.get("classes", {}).items())
    if summary.get("positive") is None:
        return "grades " + ", ".join(f"{name} ({count:,})" for name, count in counts)
    return " ahead of ".join(f"{name!r} ({count:,})" for name, count in counts)


def _shown_params(model: Any) -> str:
    """The parameters that are not at their defaults, and the strength of the penalty."""
    ranker = model.estimator[-1]
    defaults = type(ranker)().get_params()
    chosen = {
        n: v
        for n, v in ranker.get_params().items()
        if v != defaults[n] or n in ("alpha", "loss", "metric")
    }
    unsaid = ("random_state", "n_jobs", "scale")
    return ", ".join(f"{name}={value!r}" for name, value in chosen.items() if name not in unsaid)


def _interval(measure: dict[str, Any]) -> str:
    low, high = measure["low"], measure["high"]
    # An interval without width is not certainty: all resamples had the same hits.
    known = low is not None and low == low and low != high
    return f"{measure['value']:.4f}" + (f"  [{low:.4f}, {high:.4f}]" if known else "")


def _title(measure: dict[str, Any]) -> str:
    """The name of a measure and the depth it looks at; models of earlier versions do not say the
    depth.
    """
    return escape(f"{measure['name']} {measure.get('depth', '')}".rstrip())


def _measure_table(title: str, measures: list[dict[str, Any]], confidence: float) -> Table:
    table = Table(title=escape(title), title_justify="left")
    table.add_column("measure")
    table.add_column("value", justify="right")
    table.add_column(f"{100 * confidence:g} % interval", justify="right")
    for each in measures:
        value, _, interval = _interval(each).partition("  ")
        table.add_row(_title(each), value, escape(interval) or "-")
    return table


def _parts_table(by: str, groups: dict[str, Any]) -> Table:
    names = next(
        ([each.name for each in measures] for measures in groups.values() if measures), ["AUC"]
    )[:3]
    table = Table(title=f"By {escape(by)}", title_justify="left")
    table.add_column(escape(by))
    for name in names:
        table.add_column(escape(name), justify="right")
    for part, measures in groups.items():
        found = {each.name: _interval(each.to_dict()) for each in measures}
        table.add_row(escape(part), *(escape(found.get(name, "one class only")) for name in names))
    return table


# --- The program ---


def run() -> None:
    """Run the command that the arguments name; ends with SystemExit."""
    streams = [stream for stream in (sys.stdout, sys.stderr) if stream is not None]
    for stream in streams:
        if stream.errors == "strict":  # no character is worth a crash
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        with _one_line_errors(OSError):  # help and usage are written outside of any command
            app(prog_name="forerank")
    except typer.Exit as end:
        raise SystemExit(end.exit_code) from None
    finally:
        for stream in streams:
            try:
                stream.flush()
            except OSError:
                _discard(stream)


def main() -> NoReturn:
    """Entry point."""
    from forerank.__main__ import main as program

    program()


if __name__ == "__main__":
    main()
