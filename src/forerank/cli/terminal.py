"""Writing to a terminal: every text passes through `forerank._text.printable` first."""

import codecs
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import rich.console
import rich.markup
import typer
from rich.text import Text

from forerank._text import printable


def escape(text: str) -> str:
    """A text from a file as part of a `Console` line: markup, line ends and control characters
    are escaped.
    """
    return rich.markup.escape(printable(text))


def echo(text: str, *, err: bool = False) -> None:
    """Print lines to standard output, or to standard error."""
    typer.echo(printable(text, keep="\n"), err=err)


class Console(rich.console.Console):
    """A console whose lines and tables contain no control characters from files."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"emoji": False, **options})  # ":x:" in a column name is not an emoji

    def render_str(self, text: str, **options: Any) -> Text:
        """The text of a line, a cell or a title."""
        return super().render_str(printable(text, keep="\n"), **options)

    def on_broken_pipe(self) -> None:
        """Raise instead of exiting with code 1: the program has a code of its own for this."""
        raise BrokenPipeError


@contextmanager
def printable_usage_errors() -> Iterator[None]:
    """Usage errors repeat arguments such as file names: their messages are made printable."""
    try:
        yield
    except typer.Exit:
        raise
    except Exception as error:
        message = getattr(error, "message", None)
        if hasattr(error, "format_message") and isinstance(message, str):
            error.message = printable(message)  # type: ignore[attr-defined]
        raise


def show_warning(message: Any, *place: Any) -> None:
    """Replacement of `warnings.showwarning`: one printable line."""
    echo(f"note: {printable(' '.join(str(message).split()))}", err=True)


def show_exception(kind: Any, error: BaseException, trace: Any) -> None:
    """Replacement of `sys.excepthook`: a printable traceback."""
    if not issubclass(kind, KeyboardInterrupt):
        echo("".join(traceback.format_exception(kind, error, trace)).rstrip("\n"), err=True)


class PrintableSink:
    """A terminal as a binary file: UTF-8 text is written unchanged except for control characters,
    which are escaped.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def write(self, data: bytes) -> int:
        """Write a part of the text; it may end within a character."""
        text = printable(self._decoder.decode(bytes(data)), keep="\n\t")
        self._file.write(text.encode("utf-8"))
        return len(data)

    def flush(self) -> None:
        """Flush the terminal."""
        self._file.flush()
