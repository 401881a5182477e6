"""What the reproductions share: results kept as they come, so that a run can be taken up again, and Markdown."""

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy
import sklearn


class Results:
    """Records in a file of JSON lines, one list of records per finished task; a task that is there is not run again.

    A file from other settings is refused, so that figures of two protocols are never mixed.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self._path = path
        self._done: dict[str, list[dict]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
            if lines and lines[0] != {"settings": settings}:
                raise SystemExit(
                    f"{path} was made with other settings: {lines[0]}. Remove it, or choose another --out."
                )
            self._done = {line["task"]: line["records"] for line in lines[1:]}
        else:
            path.write_text(json.dumps({"settings": settings}) + "\n")

    def __contains__(self, task: str) -> bool:
        return task in self._done

    def add(self, task: str, records: list[dict]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps({"task": task, "records": records}) + "\n")
        self._done[task] = records

    def select(self, **wanted: Any) -> list[dict]:
        """All records with these values."""
        return [
            record
            for records in self._done.values()
            for record in records
            if all(record.get(key) == value for key, value in wanted.items())
        ]


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; the first column is text, the others are figures."""
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)])


def provenance() -> str:
    """Commit, machine and versions, for the foot of a page."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, cwd=Path(__file__).parent)
        return done.stdout.strip()

    commit = git("rev-parse", "--short=12", "HEAD") or "unknown"
    if git("status", "--porcelain", "--untracked-files=no"):
        commit += " with changes that are not committed"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"Commit {commit}. {_processor()}, {cores} cores, {platform.system()}, Python {platform.python_version()}, "
        f"numpy {np.__version__}, scipy {scipy.__version__}, scikit-learn {sklearn.__version__}, "
        f"numba {numba.__version__}."
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
