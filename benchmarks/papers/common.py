"""Engine of the reproductions: options, units of work with a record, and pages.

A study has options, settings, stages of tasks and a page; `main` runs it. Results are recorded as
JSON lines, one for each task, in results.jsonl of the output folder, and packed into
record.jsonl.gz beside the page. A recorded task is not run again, on this machine or on another
that has the packed record, and a page is made from the record alone. `benchmarks.papers.pages` has
what pages are made of.

All times are processor seconds of one thread: other work on the machine does not count, so that
timed tasks need not be alone on it.
"""

import argparse
import gzip
import json
import math
import os
import platform
import random
import subprocess
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any

import joblib
import numpy as np
from rich.progress import Progress
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import forerank
from forerank._kernels import n_threads
from forerank.data.records import RecordFile
from forerank.models.versions import package_versions

from .pages import Page, write_index, write_page

# The name of a task, the function that does it, and the arguments of the function, which returns a
# list of records.
Task = tuple[Any, ...]
# Tasks that may be done at the same time.
Stage = Sequence[Task]
PUBLISHED = Path(__file__).parents[2] / "docs" / "papers" / "results"
# Significant digits that numbers keep in a record. What is compared more finely than that is
# recorded as a difference.
DIGITS = 6
# Differences up to this size are none in a check: figures of pages have three or four digits, and
# fits end at a tolerance.
CHECKED = 1e-3


def main(
    name: str,
    doc: str,
    quick: str,
    *,
    stages: Callable[["Results", Any], Iterator[Stage]],
    page: Callable[["Results", Path], Page],
    settings: Callable[[Any], dict[str, Any]],
    options: Callable[[Any], object] = lambda parser: None,
    script: str = "scripts/paper ",
) -> None:
    """Run what is not recorded, pack the record, and write the page.

    `quick` says what --quick does. `options(parser)` adds options; `settings(args)` are what the
    records depend on; `stages(results, args)` gives tasks, later ones from the records of earlier
    ones; `page(results, folder)` draws figures into the folder and returns the page.
    """
    parser = argparse.ArgumentParser(prog=f"{script}{name}", description=doc.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--out", type=Path, help=f"default: bench-output/{name}, or {name}-quick")
    parser.add_argument("--publish", action="store_true", help=f"into docs/papers/results/{name}")
    page_only = "make the page from the record, without a run"
    parser.add_argument("--page-only", action="store_true", help=page_only)
    again = "do this many recorded tasks again, drawn at random, and compare; nothing is written"
    parser.add_argument("--check", type=int, metavar="N", help=again)
    options(parser)
    args = parser.parse_args()
    folder = Path("bench-output") / (f"{name}-quick" if args.quick else name)
    folder = PUBLISHED / name if args.publish else args.out or folder
    if args.check is not None:
        results = Results(folder)
        tasks = [task for stage in stages(results, args) for task in stage]
        return print(results.check(tasks, args.check, args.jobs))
    if args.page_only:
        results = Results(folder)
    else:
        results = Results(folder, {"quick": args.quick, **settings(args)})
        try:
            for tasks in stages(results, args):
                results.run(tasks, args.jobs)
        finally:
            results.pack()
    made = write_page(
        folder / f"{name}.md",
        page(results, folder),
        f"{script}{name}" + (" --quick" if results.quick else ""),
        quick if results.quick else None,
        results.provenance(),
    )
    print(f"Wrote {made}")
    if args.publish:
        write_index(PUBLISHED)


class Results:
    """Records by task, in a folder; with other settings than those of its files it is refused.

    Parameters
    ----------
    folder : path
        With results.jsonl, one line per task, and record.jsonl.gz, the same packed. Tasks that only
        the latter has are taken over.
    settings : dict, optional
        Those of the files by default.

    Attributes
    ----------
    settings : dict
    quick : bool
    """

    def __init__(self, folder: Path, settings: dict[str, Any] | None = None) -> None:
        self._path, self._packed = folder / "results.jsonl", folder / "record.jsonl.gz"
        packed = gzip.decompress(self._packed.read_bytes()) if self._packed.exists() else b""
        if not self._path.exists() and packed:
            self._path.write_bytes(packed)
        if settings is None:
            if not self._path.exists():
                raise SystemExit(f"{folder} has no record. The option --out sets the folder.")
            with self._path.open() as file:
                settings = json.loads(file.readline())["settings"]
        self.settings = settings
        self.quick: bool = settings["quick"]
        try:
            self._file = RecordFile(self._path, {"settings": settings}, kind="benchmark")
        except ValueError as error:
            raise SystemExit(f"{error} The option --out sets the folder.") from None
        self._done = {line["task"]: line for line in self._file.lines}
        head, *lines = packed.decode().splitlines() or [""]
        if head and json.loads(head)["settings"] != self._file.settings["settings"]:
            raise SystemExit(f"{self._packed} is the record of another benchmark; move it away.")
        for line in map(json.loads, lines):
            if line["task"] not in self._done:
                self._append(line)

    def _append(self, line: dict[str, Any]) -> None:
        self._file.append(line)
        self._done[line["task"]] = line

    def add(self, task: str, records: list[dict]) -> None:
        made = {"task": task, "commit": _commit(), "machine": _machine()}
        self._append({**made, "records": _rounded(records)})

    def run(self, tasks: Sequence[Task], jobs: int = 1) -> None:
        """Run the tasks that are not recorded, on so many processes."""
        left = [task for task in tasks if task[0] not in self._done]
        with Progress() as progress:
            bar = progress.add_task("", total=len(tasks), completed=len(tasks) - len(left))
            parallel = joblib.Parallel(jobs, return_as="generator_unordered", batch_size=1)
            for name, records in parallel(joblib.delayed(_records)(task) for task in left):
                self.add(name, records)
                progress.update(bar, description=name[:60], advance=1)

    def check(self, tasks: Sequence[Task], n: int, jobs: int = 1) -> str:
        """Do `n` recorded tasks again, drawn at random, and say which numbers differ from the
        record: relatively, those below one by their difference. Times do not count.
        """
        known = sorted((task for task in tasks if task[0] in self._done), key=lambda task: task[0])
        drawn = random.Random(0).sample(known, min(n, len(known)))
        parallel = joblib.Parallel(jobs, return_as="generator", batch_size=1)
        lines, found = [], np.zeros(len(drawn))
        for k, (name, records) in enumerate(parallel(joblib.delayed(_records)(t) for t in drawn)):
            differences = _differences(_rounded(records), self._done[name]["records"])
            key, found[k] = max(differences, key=lambda each: each[1], default=("", 0.0))
            if found[k] > CHECKED:
                lines.append(f"{name}: {key} differs by {found[k]:.2g}")
        text = f"{np.count_nonzero(found <= CHECKED)} of {len(drawn)} tasks agree to {CHECKED:g}"
        return "\n".join([*lines, f"{text}, {np.count_nonzero(found == 0.0)} of them exactly."])

    def pack(self) -> None:
        """Write the packed record; the same lines give the same bytes."""
        self._packed.write_bytes(gzip.compress(self._path.read_bytes(), 9, mtime=0))

    def select(self, **wanted: Any) -> list[dict]:
        """All records with these values."""
        return [
            record
            for line in self._done.values()
            for record in line["records"]
            if all(record.get(key) == value for key, value in wanted.items())
        ]

    def found(self, key: str, order: Iterable[Any], **wanted: Any) -> list[Any]:
        """Those of `order` that are values of `key` in some record with the values wanted."""
        values = {record[key] for record in self.select(**wanted)}
        return [value for value in order if value in values]

    def count(self, key: str, **wanted: Any) -> int:
        """The number of different values of `key` in the records with the values wanted."""
        return len({record[key] for record in self.select(**wanted)})

    def provenance(self) -> str:
        """Commits and machines of the records, each with its number of tasks."""
        lines = self._done.values()
        text = [f"{len(lines)} units of work are recorded in `{self._packed.name}`."]
        for word in ("Commit", "Machine"):
            counts = Counter(line.get(word.lower(), "not recorded") for line in lines)
            units = [f"{name} ({count} units)" for name, count in counts.items()]
            text.append(f"{word}: {next(iter(counts)) if len(counts) == 1 else '; '.join(units)}.")
        return "\n\n".join(text)


def _differences(a: Any, b: Any, key: str = "") -> Iterator[tuple[str, float]]:
    """Differences of all numbers of two records but times, each with its key."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        for name in a:
            if not name.startswith("seconds"):
                yield from _differences(a[name], b[name], name)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for left, right in zip(a, b, strict=True):
            yield from _differences(left, right, key)
    elif isinstance(a, int | float) and isinstance(b, int | float):
        same = a == b or (math.isnan(a) and math.isnan(b))
        yield key, 0.0 if same else abs(a - b) / max(abs(a), abs(b), 1.0)
    elif a != b:
        yield key, math.inf


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value


def _records(task: Task) -> tuple[str, list[dict]]:
    name, function, *arguments = task
    _use_one_thread()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # recorded where it matters
        return name, function(*arguments)


@cache
def _use_one_thread() -> None:
    """Limit this process to one thread, in BLAS and in forerank, which counts the cores once."""
    threadpool_limits(1)
    if hasattr(os, "sched_setaffinity"):
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cores)})
        n_threads()
        os.sched_setaffinity(0, cores)


def processor_seconds() -> float:
    """The clock of all times that are recorded: processor time of this process, of one thread."""
    return process_time()


def timed_fit(ranker: Any, X: Any, y: Any) -> tuple[bool, float]:
    """Whether a fit converged to its tolerance, and its processor seconds."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = processor_seconds()
        ranker.fit(X, y)
        seconds = processor_seconds() - begin
    return not any(issubclass(w.category, ConvergenceWarning) for w in caught), seconds


@cache
def _commit() -> str:
    """The commit of the checkout when the run begins, or the version of an installed package."""

    def git(*arguments: str) -> str:
        command, folder = ["git", *arguments], Path(__file__).parent
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
        return done.stdout.strip()

    tracked = git("ls-files", "--error-unmatch", Path(__file__).name)
    if not tracked:
        return f"forerank {forerank.__version__}"
    commit = git("rev-parse", "--short=12", "HEAD") or "unknown"
    changed = git("status", "--porcelain", "--untracked-files=no", "--", "../../src", ".")
    return f"{commit} with changes that are not committed" if changed else commit


@cache
def _machine() -> str:
    """Processor, cores, system and versions."""
    versions = package_versions("numpy", "scipy", "scikit-learn", "numba")
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    python = f"{platform.system()}, Python {platform.python_version()}"
    return f"{_processor()}, {cores} cores, {python}, {packages}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
