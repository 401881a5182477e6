"""What the reproductions share: results kept as they come, so that a run can be taken up again, and
Markdown.
"""

import json
import os
import platform
import subprocess
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

from sklearn.exceptions import ConvergenceWarning

import forerank
from forerank.models.versions import package_versions


class Results:
    """Records in a file of JSON lines, one list of records per finished task; a task that is there
    is not run again.

    A file from other settings is refused. Each task notes the commit it was run on.

    Attributes
    ----------
    commits : list of str
        Of all tasks, in the order of their first appearance.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        head = {"settings": settings}
        whole = list(_whole_lines(path.read_text())) if path.exists() else []
        if whole and whole[0] != head:
            raise SystemExit(
                f"{path} has other settings: {whole[0]}. Remove it, or choose another --out."
            )
        self._done = {line["task"]: line["records"] for line in whole[1:]}
        self.commits = list(dict.fromkeys(line["commit"] for line in whole[1:]))
        # Written anew, without the line that an interruption may have cut short.
        part = path.with_suffix(".part")
        part.write_text("".join(json.dumps(line) + "\n" for line in (whole or [head])))
        part.replace(path)

    def __contains__(self, task: str) -> bool:
        return task in self._done

    def add(self, task: str, records: list[dict]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps({"task": task, "commit": _commit(), "records": records}) + "\n")
        self._done[task] = records
        self.commits = list(dict.fromkeys([*self.commits, _commit()]))

    def select(self, **wanted: Any) -> list[dict]:
        """All records with these values."""
        return [
            record
            for records in self._done.values()
            for record in records
            if all(record.get(key) == value for key, value in wanted.items())
        ]


def _whole_lines(text: str) -> Iterator[dict]:
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            return


def timed_fit(ranker: Any, X: Any, y: Any) -> tuple[bool, float]:
    """Fit; whether the tolerance was reached, and the seconds."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = perf_counter()
        ranker.fit(X, y)
        seconds = perf_counter() - begin
    return not any(issubclass(w.category, ConvergenceWarning) for w in caught), seconds


def pyplot() -> Any:
    """matplotlib for files, loaded when a figure is drawn."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    return plt


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; the first column is text, the others are figures."""
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join(
        [*lines, *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)]
    )


@cache
def _commit() -> str:
    """The commit at hand, at the beginning of a run; of an installed package the version."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], capture_output=True, text=True, cwd=Path(__file__).parent
        )
        return done.stdout.strip()

    tracked = git("ls-files", "--error-unmatch", Path(__file__).name)
    if not tracked:
        return f"forerank {forerank.__version__}"
    commit = git("rev-parse", "--short=12", "HEAD") or "unknown"
    changed = git("status", "--porcelain", "--untracked-files=no")
    return f"{commit} with changes that are not committed" if changed else commit


def provenance(commits: Sequence[str]) -> str:
    """Commits of the records, machine and versions, for the foot of a page."""
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
