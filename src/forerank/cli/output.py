"""Output of the commands: tables, JSON, progress, notes, one-line errors and exit codes."""

import json
import logging
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from forerank._text import printable, printable_json
from forerank.cli.terminal import Console, echo, escape

# Exit codes besides 0: an unusable file or option, and an output pipe that its reader has closed
# (128 + SIGPIPE, as of programs that the signal ends).
USAGE_ERROR, BROKEN_PIPE = 2, 141
# Optional packages that a command imports, and the extra that installs each.
EXTRAS = {"jinja2": "report", "matplotlib": "plots", "onnx": "onnx"}
EXTRAS |= dict.fromkeys(("openpyxl", "starlette", "uvicorn"), "label")
EXTRAS |= dict.fromkeys(("pandas", "pyarrow", "skops"), "files")
# Advice at the end of the library's notes, and the option with which a command follows it.
_OPTION_OF_ADVICE = {
    "set the type of the column": "--number, --date, --category, --text or --ignore COLUMN",
    "set the parameter positive": "--positive LABEL",
}

# --- Errors and exit codes ---


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Errors that a user can correct become one line on standard error and exit code 2."""
    try:
        yield
    except BrokenPipeError:
        discard(sys.stdout)
        raise typer.Exit(BROKEN_PIPE) from None
    except (ValueError, OSError, ImportError) as error:
        _fail(error)


def discard(stream: Any) -> None:
    """Redirect a stream to the null device, so that flushing it cannot fail any more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _fail(error: Exception) -> NoReturn:
    text = " ".join(str(error).split("\n"))
    if isinstance(error, ImportError) and error.name in EXTRAS:
        text = f"{error.name} is needed for this: pip install 'forerank[{EXTRAS[error.name]}]'"
    if isinstance(error, OSError) and error.filename is None and error.strerror:
        text = f"cannot write the output: {error.strerror.lower()}"
    elif isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {(error.strerror or str(error)).lower()}"
    with suppress(OSError):  # standard error may be full, too
        echo(f"forerank: {printable(text)}{_options_that_help(error)}", err=True)
    raise typer.Exit(USAGE_ERROR) from None


def _options_that_help(error: Exception) -> str:
    """The arguments that an error suggests, as options: functions and commands name them alike."""
    force = {"force": True} if isinstance(error, FileExistsError) else {}
    arguments = getattr(error, "arguments", force)
    shown = [
        f"--{name.replace('_', '-')}{'' if value is True else f' {value}'}"
        for name, value in arguments.items()
    ]
    return f" ({', '.join(shown)})" if shown else ""


# --- Notes ---


class _Notes(logging.Handler):
    """Messages that the library logs, printed as notes on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        echo(f"note: {record.getMessage()}", err=True)


def show_log(quiet: bool) -> bool:
    """Print messages that the library logs, such as on compilation, unless quiet."""
    logger = logging.getLogger("forerank")
    logger.setLevel(logging.ERROR if quiet else logging.INFO)
    if not any(isinstance(handler, _Notes) for handler in logger.handlers):
        logger.addHandler(_Notes())
    return quiet


@contextmanager
def recorded_warnings() -> Iterator[list[str]]:
    """Messages of the warnings raised inside the block, each once; filled when the block ends."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        yield messages
    messages += dict.fromkeys(" ".join(str(each.message).split()) for each in caught)


def print_notes(notes: list[str], quiet: bool) -> None:
    """Print notes on standard error, unless quiet."""
    for note in [] if quiet else notes:
        console(stderr=True).print(f"note: {escape(note)}", highlight=False)


def print_data_notes(notes: list[str], quiet: bool) -> None:
    """Print notes on columns and labels as part of the result, with the options they advise."""
    for note in [] if quiet else notes:
        option = next((o for advice, o in _OPTION_OF_ADVICE.items() if note.endswith(advice)), None)
        print_lines(f"  {note}" if option is None else f"  {note} ({option})")


# --- Lines, progress and JSON ---


def console(*, stderr: bool = False) -> Console:
    """A console that does not wrap lines."""
    return Console(stderr=stderr, soft_wrap=True)


def print_lines(*lines: str) -> None:
    """Print lines of plain text, without markup, to standard output."""
    for line in lines:
        console().print(escape(line), highlight=False)


@contextmanager
def status(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A function that shows the current step on standard error, where that is a terminal."""
    terminal = Console(stderr=True)
    if quiet or not terminal.is_terminal:
        yield lambda line: None
        return
    with terminal.status("starting") as shown:
        yield lambda line: shown.update(escape(line))


@contextmanager
def progress_bar(title: str, quiet: bool) -> Iterator[Callable[[float], None]]:
    """A function that shows a fraction done on standard error, where that is a terminal."""
    terminal = Console(stderr=True)
    if quiet or not terminal.is_terminal:
        yield lambda share: None
        return
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()
    with Progress(*columns, TimeRemainingColumn(), console=terminal, transient=True) as progress:
        task = progress.add_task(title, total=1.0)
        yield lambda share: progress.update(task, completed=share)


def print_json(value: Any) -> None:
    """Print a value as JSON, escaped to ASCII where standard output is not in UTF-8."""
    is_unicode = (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf")
    typer.echo(printable_json(json.dumps(_finite(value), indent=1, ensure_ascii=not is_unicode)))


def _finite(value: Any) -> Any:
    """The value with null for NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {str(name): _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --- Tables ---


def titled_table(title: str, *columns: str) -> Table:
    """An empty table; all columns but the first are right-aligned, for numbers."""
    table = Table(title=escape(title), title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(escape(column), justify="right" if number else "left", overflow="fold")
    return table


def class_counts(summary: dict[str, Any]) -> str:
    """The labels of a model's training rows with their counts, the positive one first.

    Several negative labels may be counted together; models of earlier versions do not name them.
    """
    counts = list(summary.get("classes", {}).items())
    if summary.get("positive") is None:
        return "grades " + ", ".join(f"{name} ({count:,})" for name, count in counts)
    (positive, n_positive), *others = counts or [(summary["positive"], 0)]
    shown = [f"{name!r} ({count:,})" for name, count in others]
    if summary.get("negative") is None and len(others) == 1:
        name, count = others[0]
        shown = [f"{name if name.startswith('all ') else 'all others'} ({count:,})"]
    return f"positive {positive!r} ({n_positive:,}), negative {', '.join(shown)}"


def value_and_interval(measure: dict[str, Any]) -> tuple[str, str]:
    """The value of a measure and its interval; empty where it is unknown or has no width, which
    happens when all resamples agree and does not mean certainty.
    """
    low, high = measure["low"], measure["high"]
    known = low is not None and low == low and low != high
    return f"{measure['value']:.4f}", f"[{low:.4f}, {high:.4f}]" if known else ""


def measure_title(measure: dict[str, Any]) -> str:
    """The name of a measure and its depth, which models of earlier versions do not record."""
    return f"{measure['name']} {measure.get('depth', '')}".rstrip()


def measure_table(title: str, measures: list[dict[str, Any]], confidence: float) -> Table:
    """Table of measures with their confidence intervals."""
    table = titled_table(title, "measure", "value", f"{100 * confidence:g} % interval")
    for measure in measures:
        value, interval = value_and_interval(measure)
        table.add_row(escape(measure_title(measure)), value, escape(interval) or "-")
    return table
