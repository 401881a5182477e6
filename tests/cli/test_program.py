"""The program as seen by the shell: streams, signals, exit codes, and files left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from commands import run

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="signals and devices of Linux"
)

PROGRAM = [sys.executable, "-m", "forerank"]


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A directory with a table and a model of it, with letters that are not ASCII."""
    directory = tmp_path_factory.mktemp("program")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["größe", "b"])
    frame["y"] = np.where(frame["größe"] + rng.normal(size=200) > 0, "früh", "spät")
    frame.to_csv(directory / "t.csv", index=False)
    run("fit", directory / "t.csv", "-t y -r PairwiseRanker -o", directory / "m.forerank")
    return directory


def program(work, *words, **options):
    environment = os.environ | options.pop("environment", {})
    return subprocess.run(
        [*PROGRAM, *words], cwd=work, text=True, env=environment, stderr=subprocess.PIPE, **options
    )


COMMANDS = [["--help"], ["inspect", "m.forerank"], ["inspect", "m.forerank", "--json"]]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_full_device_as_standard_output(work, words):
    with open("/dev/full", "w") as full:
        done = program(work, *words, stdout=full)
    assert (done.returncode, done.stderr) == (
        2,
        "forerank: cannot write the output: no space left on device\n",
    )


@pytest.mark.parametrize(
    "words", [["rank", "m.forerank", "t.csv"], ["fit", "t.csv", "-t", "y", "-r", "PairwiseRanker"]]
)
def test_full_device_as_output_file(work, words):
    done = program(work, *words, "-q", "-o", "/dev/full", stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "forerank: cannot write the output: no space left on device\n"


def test_full_device_as_standard_error(work):
    with open("/dev/full", "w") as full:
        command = [*PROGRAM, "inspect", "m.forerank"]
        done = subprocess.run(command, cwd=work, stdout=full, stderr=full, check=False)
    assert done.returncode == 2


@pytest.mark.parametrize("words", COMMANDS[1:], ids=" ".join)
def test_closed_pipe_has_its_own_exit_code(work, words):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        done = program(work, *words, stdout=pipe)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_streams_that_are_not_unicode(work, words):
    done = program(work, *words, stdout=subprocess.PIPE, environment={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    if "--json" in words:
        assert done.stdout.isascii()
        assert json.loads(done.stdout)["summary"]["classes"].keys() == {"früh", "spät"}


def answers_signals(process):
    """Whether the program is far enough to answer SIGTERM."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    caught = next(line for line in lines if "SigCgt" in line)
    return int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1


def started(command, **options):
    process = subprocess.Popen(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )
    while not answers_signals(process):
        time.sleep(0.005)
    return process


@pytest.mark.parametrize(
    ("number", "message", "seconds"),
    [
        *((signal.SIGINT, "interrupted", seconds) for seconds in (0.0, 0.3, 1.0, 2.0, 3.0)),
        (signal.SIGTERM, "terminated", 2.5),
    ],
)
def test_signal_ends_the_program_at_any_moment(work, tmp_path, number, message, seconds):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    command = [*PROGRAM, "fit", work / "t.csv", "-t", "y", "-o", tmp_path / "m.forerank", "-q"]
    process = started(command, env=environment)
    time.sleep(seconds)
    process.send_signal(number)
    _, err = process.communicate()
    assert (process.returncode, err) == (128 + number, f"forerank: {message}\n")
    assert {path.name for path in tmp_path.iterdir()} <= {"cache"}


def test_signal_removes_the_copy_of_standard_input(work, tmp_path):
    command = [*PROGRAM, "rank", "m.forerank", "-", "-o", tmp_path / "list.csv"]
    process = started(
        command, cwd=work, stdin=subprocess.PIPE, env=os.environ | {"TMPDIR": str(tmp_path)}
    )
    while not list(tmp_path.glob("forerank-*/input.csv")):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 143
    assert list(tmp_path.iterdir()) == []
    process.communicate()


def python(code, *words):
    """A program whose commands are replaced by some code."""
    code = (
        "import forerank.cli.app, forerank.__main__ as program\n"
        f"def run():\n{code}\nforerank.cli.app.run = run\nprogram.main()"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_signal_removes_unfinished_files(tmp_path):
    code = """
    import sys, time
    from forerank.data.files import opened_atomically
    with opened_atomically(sys.argv[1]) as file:
        file.write(b"half")
        print("ready", flush=True)
        time.sleep(60)
"""
    process = python(code, tmp_path / "out.csv")
    assert process.stdout.readline() == b"ready\n"
    assert [path.suffix for path in tmp_path.iterdir()] == [".part"]
    process.terminate()
    assert process.communicate() == (b"", b"forerank: terminated\n")
    assert process.returncode == 143
    assert list(tmp_path.iterdir()) == []


def test_signal_in_a_finaliser_is_not_lost():
    code = """
    import signal, time
    class Dying:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)
    Dying()
    time.sleep(60)
"""
    process = python(code)
    assert process.communicate() == (b"", b"forerank: interrupted\n")
    assert process.returncode == 130
