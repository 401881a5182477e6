"""Temporary directory with data files, and commands that run in it."""

import gzip
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import dump_svmlight_file

import forerank
from recording.data import sparse, table

OLD_MODELS = Path(__file__).resolve().parents[1] / "model_files"
DIRECTORY = TemporaryDirectory(prefix="recording-")  # removed when the program ends


@cache
def workspace() -> Path:
    """Directory with data files of all formats."""
    directory = Path(DIRECTORY.name)
    write_tables(directory)
    write_svmlight(directory)
    (directory / "empty.csv").write_text("")
    (directory / "ragged.csv").write_text("a,b,y\n1,2,0\n3,4,1,9\n")
    params = 'ranker = "PairwiseRanker"\nalpha = 0.5\nloss = "logistic"\n'
    (directory / "ranker.toml").write_text(params)
    return directory


def write_tables(directory: Path) -> None:
    train = table(260)
    old = json.loads((OLD_MODELS / "format-1.json").read_text())["rows"]
    tables = {
        "train": train,
        "new": table(80, seed=1),
        "grades": table(200, seed=2).drop(columns="y"),
        "gaps": train.assign(y=train["y"].where(train.index % 10 != 0)),
        "lacking": train.drop(columns="income"),
        "one-class": train.assign(y="yes"),
        "old": pd.DataFrame(old),
    }
    for name, frame in tables.items():
        frame.to_csv(directory / f"{name}.csv", index=False)
    train.to_parquet(directory / "train.parquet")
    train.to_csv(directory / "semicolons.csv", index=False, sep=";", encoding="cp1252")
    compressed = gzip.compress((directory / "train.csv").read_bytes(), mtime=0)
    (directory / "train.csv.gz").write_bytes(compressed)


def write_svmlight(directory: Path) -> None:
    data = sparse()
    labels = np.where(data.y == 1, 1, -1)
    dump_svmlight_file(data.X, labels, str(directory / "rows.svm"), zero_based=False)
    order = np.argsort(data.qid, kind="stable")
    X, grade, qid = data.X[order], data.grade[order], data.qid[order]
    path = str(directory / "queries.svm")
    dump_svmlight_file(X, grade, path, zero_based=False, query_id=qid)


def run(*arguments: Any, stdin: bytes = b"") -> dict:
    """Exit code and printed output of a command in the workspace."""
    done = subprocess.run(
        [sys.executable, "-m", "forerank", *map(str, arguments)],
        cwd=workspace(),
        env={**os.environ, "PYTHONPATH": str(Path(forerank.__file__).resolve().parents[1])},
        input=stdin,
        capture_output=True,
        check=False,
    )
    printed = {"stdout": done.stdout.decode(), "stderr": done.stderr.decode()}
    return {"exit code": done.returncode, **printed}


def content(name: str) -> Any:
    """Content of a file in the workspace: text, columns of a table, or bytes."""
    path = workspace() / name
    if not path.exists():
        return "no such file"
    if path.suffix == ".parquet":
        frame = pd.read_parquet(path)
        values = {column: frame[column].to_numpy() for column in frame.columns}
        return {"columns": list(frame.columns), "values": values}
    text = path.suffix in (".csv", ".tsv", ".jsonl")
    return path.read_text() if text else path.read_bytes()
