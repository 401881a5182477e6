"""Kill `forerank fit` at random moments: afterwards the model file is complete or does not exist.

python -m benchmarks.kills [--times 100]

Half of the moments lie anywhere in the run of the command, half in its last third, when it writes.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter

import numpy as np
from rich.progress import track

from forerank.exceptions import ModelFileError
from forerank.models import load_model
from forerank.workflows.demo import write_tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=100)
    times = parser.parse_args().times
    rng = np.random.default_rng(0)
    counts: Counter = Counter()
    with tempfile.TemporaryDirectory() as directory:
        table, _ = write_tables(Path(directory))
        out = Path(directory) / "out" / "m.forerank"
        options = ["-t", "diagnosis", "-o", str(out), "--force", "-q"]
        command = [sys.executable, "-m", "forerank", "fit", str(table), *options]
        begin = perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = perf_counter() - begin
        for k in track(range(times), description="Killing"):
            if k % 2:  # every other time no model exists before
                out.unlink(missing_ok=True)
            moment = seconds * (rng.uniform(0.0, 1.0) if k % 4 < 2 else rng.uniform(0.65, 1.05))
            existed = out.exists()
            counts[_run(command, moment)] += 1
            counts[_state(out, existed)] += 1
        parts = len(list(out.parent.glob(".*.part")))
        others = sorted({path.suffix for path in out.parent.iterdir()} - {out.suffix})
        print(dict(counts), f"unfinished files: {parts}, other files: {others}")


def _run(command: list[str], moment: float) -> str:
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        child.wait(moment)
    except subprocess.TimeoutExpired:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        return "killed"
    return "ended before"


def _state(out: Path, existed: bool) -> str:
    if not out.exists() and not existed:
        return "no model"
    try:
        load_model(out)
    except ModelFileError as error:
        return f"DAMAGED: {error}"
    return "a complete model"


if __name__ == "__main__":
    main()
