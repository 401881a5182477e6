"""Terminal sessions in pages: their commands are run, and their output compared or written anew.

python tests/tour.py      # write the session of the README anew; python tests/test_docs.py those of
docs/
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from typer.testing import CliRunner

from forerank.cli.app import app
from forerank.workflows.demo import write_tables

README = Path(__file__).parent.parent / "README.md"


def replayed(page: str, directory: Path) -> str:
    """The page with the output of its commands, run one after the other."""

    def run(block: re.Match) -> str:
        commands = [line for line in block[1].splitlines() if line.startswith("$ ")]
        return (
            "```console\n"
            + "".join(f"{line}\n{output_of(line[2:], directory)}" for line in commands)
            + "```"
        )

    return re.sub(r"```console\n(.*?)```", run, page, flags=re.DOTALL)


def output_of(command: str, directory: Path, *, own_process: bool = True) -> str:
    """What a command prints; without a process of its own only where it needs no shell."""
    if own_process or not re.fullmatch(r"forerank [\w .,:/@='\"-]+", command):
        printed = _output_of_process(command, directory)
    else:
        with contextlib.chdir(directory):
            printed = CliRunner(env={"COLUMNS": "110"}).invoke(app, shlex.split(command)[1:]).output
    # Whether functions are compiled depends on what ran before on this machine.
    lines = (line for line in printed.splitlines() if "compiling once" not in line)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _output_of_process(command: str, directory: Path) -> str:
    bin_directory = Path(sys.executable).parent
    surroundings = {
        **os.environ,
        "COLUMNS": "110",
        "PATH": f"{bin_directory}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env=surroundings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        write_tables(Path(directory))
        output_of("forerank fit tumours.csv --target diagnosis -o my.forerank", Path(directory))
        README.write_text(replayed(README.read_text(), Path(directory)))


if __name__ == "__main__":
    main()
