"""Commands run within the process of a test."""

import shlex
from pathlib import Path

from typer.testing import CliRunner

from forerank.cli.app import app


def run(*parts, code=0, given=None):
    """Run a command; a text is split as a shell does, a path is one argument."""
    arguments = []
    for part in parts:
        arguments += [str(part)] if isinstance(part, Path) else shlex.split(str(part))
    result = CliRunner().invoke(app, arguments, input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert code is None or result.exit_code == code, result.output
    return result


def fails(*parts, given=None):
    """The error of a command that cannot be run: one line, and exit code 2."""
    result = run(*parts, code=2, given=given)
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("forerank: ")
    return lines[0]
