"""What commands write to a terminal: every text goes through `forerank._text.printable` on its way."""

import codecs
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import rich.console
import rich.markup
import typer
from rich.text import Text
from typer.core import TyperGroup

from forerank._text import printable

__all__ = ["Commands", "Console", "PrintableSink", "echo", "escape"]


def escape(text: str) -> str:
    """A text from a file as part of a line for a `Console`: no markup, no end of line, nothing
    unseen.
    """
    return rich.markup.escape(printable(text))


def echo(text: str, *, err: bool = False) -> None:
    """Write lines to standard output, or to standard error."""
    typer.echo(printable(text, keep="\n"), err=err)


class Console(rich.console.Console):
    """A console on which nothing that is printed, as a line or in a table, can hold what a terminal
    obeys.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"emoji": False, **options})  # ":x:" in a name is no picture

    def render_str(self, text: str, **options: Any) -> Text:
        """The text of a line, a cell or a title."""
        return super().render_str(printable(text, keep="\n"), **options)


class Commands(TyperGroup):
    """Commands whose warnings, usage errors and unexpected errors are printable: they repeat names
    of files.
    """

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the program."""
        if sys.excepthook is not _show_exception:
            sys.excepthook = _show_exception
        return super().main(*args, **options)

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Read the options of the program."""
        with _printable_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Read the options of a command, and run it."""
        with _printable_errors(), warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            return super().invoke(ctx)


@contextmanager
def _printable_errors() -> Iterator[None]:
    try:
        yield
    except typer.Exit:
        raise
    except Exception as error:
        message = getattr(error, "message", None)  # of a usage error
        if hasattr(error, "format_message") and isinstance(message, str):
            error.message = printable(message)  # type: ignore[attr-defined]
        raise


def _show_warning(message: Any, *place: Any) -> None:
    echo(f"note: {printable(' '.join(str(message).split()))}", err=True)


def _show_exception(kind: Any, error: BaseException, trace: Any) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        echo("".join(traceback.format_exception(kind, error, trace)).rstrip("\n"), err=True)


class PrintableSink:
    """A terminal as a file to write bytes to: rows are shown as they are, but for what the terminal
    would obey.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def write(self, data: bytes) -> int:
        """Write a part of the rows."""
        text = printable(self._decoder.decode(bytes(data)), keep="\n\t")
        self._file.write(text.encode("utf-8"))
        return len(data)

    def flush(self) -> None:
        """Let everything be seen."""
        self._file.flush()
