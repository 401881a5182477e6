"""Kill `forerank fit` at random moments, a hundred times: the model file is whole or not there, and
nothing else is.

python -m benchmarks.kills [--times 100]

Half of the moments lie anywhere in the life of the command, half in its last third, when it writes.
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
    seen: Counter = Counter()
    with tempfile.TemporaryDirectory() as directory:
        table, _ = write_tables(Path(directory))
        out = Path(directory) / "out" / "m.forerank"
        command = [
            sys.executable,
            "-m",
            "forerank",
            "fit",
            table,
            "-t",
            "diagnosis",
            "-o",
            out,
            "--force",
            "-q",
        ]
        begin = perf_counter()
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        life = perf_counter() - begin
        for k in track(range(times), description="Killing"):
            if k % 2:  # every other time there is no model yet
                out.unlink(missing_ok=True)
            moment = life * (rng.uniform(0.0, 1.0) if k % 4 < 2 else rng.uniform(0.65, 1.05))
            before = out.exists()
            child = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)
            try:
                child.wait(moment)
                seen["ended by itself"] += 1
            except subprocess.TimeoutExpired:
                os.kill(child.pid, signal.SIGKILL)
                child.wait()
                seen["killed"] += 1
            try:
                load_model(out)
                seen["a whole model"] += 1
            except ModelFileError as error:
                seen[
                    "no model"
                    if "no such file" in str(error) and not before
                    else f"DAMAGED: {error}"
                ] += 1
        left = sorted({path.suffix for path in out.parent.iterdir()} - {out.suffix})
        print(
            dict(seen),
            "left beside it:",
            len(list(out.parent.glob(".*.part"))),
            "unfinished files",
            left,
        )


if __name__ == "__main__":
    main()
