"""Options that several commands share, each declared once, and the files that they name.

`reads` gives a command the options on how a data file is read, and collects their values in one
parameter.
"""

import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from typer import Argument, Option

import forerank
from forerank.cli.output import show_log

# Seconds between two looks at signals while standard input has nothing.
_LONGEST_WAIT = 0.2

# --- Files ---

ModelFile = Annotated[
    Path, Argument(metavar="MODEL", help="A model file, as written by 'forerank fit'.")
]
DataFile = Annotated[
    str,
    Argument(
        metavar="FILE",
        help="CSV, TSV, Parquet, Feather, XLSX, JSON lines (.jsonl, .ndjson), RIS, BibTeX (.bib), "
        "svmlight (.svm, .svmlight, .libsvm) or NumPy archive (.npz), by its suffix; text "
        "files also as .gz or .bz2. '-' is standard input.",
    ),
]
Force = Annotated[bool, Option("--force", help="Overwrite an existing file.")]

# --- Rows, work and output ---

Target = Annotated[
    str | None, Option("--target", "-t", help="The column of labels, unless the file has its own.")
]
SkipUnlabelled = Annotated[
    bool, Option("--skip-unlabelled", help="Exclude rows without a label, and print their number.")
]
AllowMissing = Annotated[
    bool, Option("--allow-missing", help="Treat columns that the file lacks as empty.")
]
Metric = Annotated[
    str | None,
    Option(
        help="The measure to optimise: auc, ap, pos_at_top, wmw, ndcg@k, pauc@fpr or recall@k, "
        "such as recall@100. Default: auc.",
    ),
]
Folds = Annotated[int, Option(min=2, help="Folds of the cross-validation.")]
Seed = Annotated[int, Option(min=0, help="Seed of all random numbers.")]
AsJson = Annotated[bool, Option("--json", help="Print the result as one JSON object.")]
_QUIET = "Print results only: no progress, no notes."
Quiet = Annotated[bool, Option("--quiet", "-q", help=_QUIET, callback=show_log)]


def _complete_ranker(incomplete: str) -> list[str]:
    names = [
        name for name in forerank.__all__ if name[0].isupper() and not name.endswith("Features")
    ]
    return [name for name in names if name.lower().startswith(incomplete.lower())]


def check_picture(path: Path, *, force: bool) -> None:
    """An error for a file that is not called PNG, or that exists already."""
    from forerank.data.files import refuse_existing

    if path.suffix.lower() != ".png":
        raise ValueError(f"{path}: curves are drawn as PNG; give a name that ends in .png")
    refuse_existing(path, force=force)


def complete_method(incomplete: str) -> list[str]:
    """Methods of `compare` whose names begin with the typed text."""
    baselines = ["logistic-regression-cv", "ridge-regression-cv", "lightgbm", "xgboost"]
    known = [name for name in baselines if name.startswith(incomplete.lower())]
    return _complete_ranker(incomplete) + known


_RANKER = "An estimator of forerank by name. Default: Ranker."
RankerName = Annotated[
    str | None, Option("--ranker", "-r", help=_RANKER, autocompletion=_complete_ranker)
]

# --- Help ---


def examples(*lines: str) -> str:
    """Example calls, for the end of a page of help."""
    return "**Examples**\n\n```text\n" + "\n".join(lines) + "\n```\n\n"


# --- Collecting the options on how a file is read ---


def _text(help: str, *flags: str) -> Any:
    return Annotated[str | None, Option(*flags, help=help)]


def _columns(help: str, *flags: str) -> Any:
    option = Option(*flags, metavar="COLUMN", help=f"{help}; may be repeated.")
    return Annotated[list[str] | None, option]


_OF_A_FILE = {
    "delimiter": _text("Of a CSV file. Default: guessed from its header."),
    "encoding": _text(
        "Of a text file, such as cp1252. Default: UTF-8, or UTF-16 if it has a mark."
    ),
    "format": _text(
        "csv, tsv, parquet, feather, xlsx, jsonl, ris, bib, svm or npz. Default: by suffix; "
        "'-' is CSV."
    ),
}
_OF_LABELLED_ROWS = {
    "positive": _text("The label to rank first. Default: the larger of two."),
    "group": _text("The column of groups (queries) within which rows are ranked.", "--group", "-g"),
    "drop": _columns("A column not to use", "--drop", "--ignore"),
    "category": _columns("A column of categories"),
    "number": _columns("A column of numbers, where any other value is an error"),
    "text": _columns("A column of texts"),
    "date": _columns("A column of dates, such as 2021-03-04"),
    "skip_unlabelled": SkipUnlabelled,
}


def reads(*, labelled: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator of a command: replaces its parameter `read` by the options on how a file is read.

    The command is called with `read`, a dict of the arguments that the functions of the library
    take: delimiter, encoding and format, and for `labelled` rows also positive, group, drop, types
    and skip_unlabelled.
    """
    options = (_OF_LABELLED_ROWS if labelled else {}) | _OF_A_FILE

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def called(**values: Any) -> None:
            read = {name: values.pop(name) for name in options}
            if labelled:
                kinds = {name: read.pop(name) for name in ("category", "number", "text", "date")}
                read |= {"types": _column_types(kinds), "drop": read["drop"] or []}
            command(read=read, **values)

        parameters: list[Parameter] = []
        for each in signature(command).parameters.values():
            parameters += map(_parameter, options.items()) if each.name == "read" else [each]
        changed: Any = called
        changed.__signature__ = signature(command).replace(parameters=parameters)
        changed.__annotations__ = {each.name: each.annotation for each in parameters}
        return called

    return decorate


def _parameter(option: tuple[str, Any]) -> Parameter:
    name, annotation = option
    default = False if name == "skip_unlabelled" else None
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _column_types(columns_of_kind: dict[str, list[str] | None]) -> dict[str, str]:
    """Declared type by column; ValueError for a column with two."""
    types: dict[str, str] = {}
    for kind, names in columns_of_kind.items():
        for name in names or ():
            if types.setdefault(name, kind) != kind:
                raise ValueError(
                    f"the column {name!r} is given two types, {types[name]} and {kind}; give it one"
                )
    return types


# --- Opening and protecting files ---


def refuse_overwriting(out: Any, *inputs: Any) -> None:
    """ValueError where the output file is one of the inputs, also with --force."""
    for path in inputs:
        if path in (None, "-") or not Path(out).exists() or not Path(path).exists():
            continue
        if Path(out).samefile(path):
            raise ValueError(f"{out} is read by this command; choose another output file")


def _standard_input() -> Iterator[bytes]:
    """Parts of standard input.

    A signal that arrives just before a read that waits is handled when the read has ended, which
    may be never; between waits of limited length it is handled.
    """
    stream: Any = sys.stdin.buffer
    waited_for: list[int] = []
    if sys.platform != "win32":  # where select takes sockets alone
        with suppress(OSError):  # input that is no file
            waited_for.append(stream.fileno())
    while True:
        while waited_for and not select.select(waited_for, [], [], _LONGEST_WAIT)[0]:
            pass
        if not (part := stream.read1(1 << 20)):
            return
        yield part


@contextmanager
def input_file(file: str, read: dict[str, Any]) -> Iterator[Path]:
    """The path of a data file; standard input is copied to a temporary file, since commands read
    rows more than once.
    """
    if file != "-":
        yield Path(file)
        return
    from forerank.exceptions import DataFileError

    with TemporaryDirectory(prefix="forerank-") as directory:
        path = Path(directory) / f"input.{read['format'] or 'csv'}"
        with path.open("wb") as copy:
            copy.writelines(_standard_input())
        try:
            yield path
        except DataFileError as error:
            name, arguments = "standard input", error.arguments
            raise DataFileError(name, error.problem, error.line, arguments) from None
