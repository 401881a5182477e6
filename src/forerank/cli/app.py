"""The Typer application: its commands, and the streams they write to.

Light to import: a page of help, and the completion of a name, load neither NumPy nor scikit-learn.
"""

import sys
import warnings
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

import forerank
from forerank.cli import (
    compare,
    demo,
    evaluate,
    explain,
    export,
    fit,
    inspect,
    label,
    rank,
    report,
)
from forerank.cli.output import discard, one_line_errors
from forerank.cli.terminal import echo, printable_usage_errors, show_exception, show_warning

__all__ = ["app", "run"]


class _Commands(TyperGroup):
    """The group of commands: errors, warnings and tracebacks are printable, and errors that a user
    can correct are one line.
    """

    def main(self, *args: Any, **options: Any) -> Any:
        sys.excepthook = show_exception
        return super().main(*args, **options)

    def make_context(self, *args: Any, **options: Any) -> Any:
        with printable_usage_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with one_line_errors(), printable_usage_errors(), warnings.catch_warnings():
            warnings.showwarning = show_warning  # type: ignore[assignment]
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
            return result


app = typer.Typer(
    cls=_Commands,
    help="Learning to rank: relevant rows above irrelevant ones.",
    epilog="Exit codes: 0 success, 1 unexpected error, 2 unusable file or option, 130 interrupted, "
    "141 output closed by its reader, 143 terminated.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        echo(f"forerank {forerank.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


app.command(epilog=fit.EPILOG, context_settings=fit.CONTEXT)(fit.fit)
app.command(epilog=rank.EPILOG)(rank.rank)
app.command(epilog=evaluate.EPILOG)(evaluate.evaluate)
app.command(epilog=compare.EPILOG)(compare.compare)
app.command(epilog=report.EPILOG)(report.report)
app.command(epilog=explain.EPILOG)(explain.explain)
app.command(epilog=inspect.EPILOG)(inspect.inspect)
app.command(epilog=export.EPILOG)(export.export)
app.command(epilog=label.EPILOG)(label.label)
app.command(epilog=demo.EPILOG)(demo.demo)


def run() -> None:
    """Run the command that the arguments name; ends with SystemExit."""
    streams = [stream for stream in (sys.stdout, sys.stderr) if stream is not None]
    for stream in streams:
        if stream.errors == "strict":  # a character that the encoding lacks is written as an escape
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        with one_line_errors():  # help and usage errors are written outside of any command
            app(prog_name="forerank")
    except typer.Exit as end:
        raise SystemExit(end.exit_code) from None
    finally:
        for stream in streams:
            try:
                stream.flush()
            except OSError:
                discard(stream)
