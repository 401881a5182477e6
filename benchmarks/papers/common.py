"""Shared by the benchmarks: command-line options, tasks with recorded results, Markdown pages."""

import argparse
import os
import platform
import subprocess
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib
from rich.progress import Progress
from sklearn.exceptions import ConvergenceWarning

import forerank
from forerank.data.records import RecordFile
from forerank.models.versions import package_versions

# The name of a task, the function that does it, and the arguments of the function, which returns a
# list of records.
Task = tuple[Any, ...]
QUICK = "**A quick run: its values only show that everything works.**"


def parser(name: str, doc: str, quick: str, script: str = "scripts/paper ") -> Any:
    """A parser with the options that all benchmarks have."""
    made = argparse.ArgumentParser(prog=f"{script}{name}", description=doc.splitlines()[0])
    made.add_argument("--jobs", type=int, default=2, help="processes for tasks that are not timed")
    made.add_argument("--quick", action="store_true", help=quick)
    made.add_argument("--out", type=Path, help=f"default: bench-output/{name}, or {name}-quick")
    return made


def parse(made: Any) -> argparse.Namespace:
    """The arguments, with `out` filled in."""
    args, name = made.parse_args(), made.prog.split()[-1].split("/")[-1]
    args.out = args.out or Path("bench-output") / (f"{name}-quick" if args.quick else name)
    return args


class Results:
    """Records by task, in the file results.jsonl of a folder: a recorded task is not run again.

    A file with other settings is refused. Each line has the commit that the task was run on.

    Attributes
    ----------
    commits : list of str
        Commits of all tasks, in the order of their first appearance.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        path, head = folder / "results.jsonl", {"settings": settings}
        try:
            self._file = RecordFile(path, head, kind="benchmark")
        except ValueError as error:
            raise SystemExit(f"{error} The option --out sets the folder.") from None
        self._done = {line["task"]: line["records"] for line in self._file.lines}
        self.commits = list(dict.fromkeys(line["commit"] for line in self._file.lines))

    def add(self, task: str, records: list[dict]) -> None:
        self._file.append({"task": task, "commit": _commit(), "records": records})
        self._done[task] = records
        self.commits = list(dict.fromkeys([*self.commits, _commit()]))

    def run(self, tasks: Sequence[Task], jobs: int = 1) -> None:
        """Run the tasks that are not recorded; with one job, each alone on the machine."""
        left = [task for task in tasks if task[0] not in self._done]
        with Progress() as progress:
            bar = progress.add_task("", total=len(tasks), completed=len(tasks) - len(left))
            parallel = joblib.Parallel(jobs, return_as="generator_unordered", batch_size=1)
            for name, records in parallel(joblib.delayed(_records)(task) for task in left):
                self.add(name, records)
                progress.update(bar, description=name[:60], advance=1)

    def select(self, **wanted: Any) -> list[dict]:
        """All records with these values."""
        return [
            record
            for records in self._done.values()
            for record in records
            if all(record.get(key) == value for key, value in wanted.items())
        ]


def _records(task: Task) -> tuple[str, list[dict]]:
    name, function, *arguments = task
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # recorded where it matters
        return name, function(*arguments)


def timed_fit(ranker: Any, X: Any, y: Any) -> tuple[bool, float]:
    """Whether a fit converged to its tolerance, and its seconds."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = perf_counter()
        ranker.fit(X, y)
        seconds = perf_counter() - begin
    return not any(issubclass(w.category, ConvergenceWarning) for w in caught), seconds


def pyplot() -> Any:
    """matplotlib for files, imported when a figure is drawn."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    return plt


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def write_page(path: Path, title: str, sections: Mapping[str, str], commits: Sequence[str]) -> Path:
    """Write a Markdown page of titled sections, the last on how it was made."""
    sections = {**sections, "Where this was made": _provenance(commits)}
    text = [f"# {title}", *(f"## {name}\n\n{body}" for name, body in sections.items())]
    path.write_text("\n\n".join(text) + "\n")
    return path


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
    changed = git("status", "--porcelain", "--untracked-files=no")
    return f"{commit} with changes that are not committed" if changed else commit


def _provenance(commits: Sequence[str]) -> str:
    """Commits of the records, machine and versions."""
    versions = package_versions("numpy", "scipy", "scikit-learn", "numba")
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"Commit {', '.join(commits)}. {_processor()}, {cores} cores, {platform.system()}, "
        f"Python {platform.python_version()}, {packages}."
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
