"""Data sets of the papers that OpenML has, as archives for FORERANK_DATA.

python -m benchmarks.fetch_data DIRECTORY [NAME ...]     # all of them, or these; needs a network

What is fetched is checked: as many rows, and as many positive ones, as the papers count. The format
is in docs/data-sets.md.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.datasets import fetch_openml

_ALL = (None, None)


@dataclass(frozen=True)
class Source:
    """Where a data set is on OpenML, and what becomes of it.

    Attributes
    ----------
    where : dict
        Name and version, or number, for `fetch_openml`.
    rows : int
        Of the archive, after the cut.
    positives : int or None
        Rows of them that are positive; None where the target is a number.
    positive : tuple of str
        Labels of the positive class; where there is none, the class of that many rows.
    cut : pair of int or None
        Rows that are taken: the first, and the one after the last.
    columns : pair of int or None
        Columns that are taken, alike.
    codes : bool
        Whether values of nominal columns are numbers to be taken as they are.
    both : bool
        Whether a nominal column of two values becomes two columns, as longer ones do, and not one.
    scale : float
        By which values are divided.
    sparse, classes : bool
        Whether X is stored as a sparse matrix, and the labels as they were in `y_class`.
    """

    where: dict[str, Any]
    rows: int
    positives: int | None = None
    positive: tuple[str, ...] = field(default=())
    cut: tuple[int | None, int | None] = _ALL
    columns: tuple[int | None, int | None] = _ALL
    codes: bool = False
    both: bool = False
    scale: float = 1.0
    sparse: bool = False
    classes: bool = False


def _first(
    name: str, rows: int, positives: int | None = None, *positive: str, **more: Any
) -> Source:
    return Source({"name": name, "version": 1}, rows, positives, positive, **more)


_PIXELS = {
    "columns": (0, 780),
    "scale": 255.0,
    "sparse": True,
    "classes": True,
}  # the others are always empty
SOURCES = {
    "bank": _first("bank-marketing", 45_211, 5_289, "2", both=True),
    "breast_cancer": _first("breast-cancer", 286, 85, "recurrence-events"),
    "breast_w": _first("breast-w", 699, 241, "malignant"),
    "colic": _first("colic", 368, 232),
    "connect4": Source({"data_id": 40668}, 67_557, 44_473, sparse=True, both=True),
    "covtype_binary": Source(
        {"data_id": 1596}, 581_012, 297_711, tuple("134567"), codes=True, classes=True
    ),
    "diabetes": _first("diabetes", 768, 500, "tested_negative"),
    "haberman": _first("haberman", 306, 81, "2"),
    "heart_h": _first("heart-h", 294, 106, ">50_1"),
    "hepatitis": _first("hepatitis", 155, 32, "DIE"),
    "ionosphere": _first("ionosphere", 351, 126, "b"),
    "letter": _first("letter", 20_000, 789, "A"),
    "mnist_0": _first("mnist_784", 60_000, 5_923, "0", cut=(0, 60_000), **_PIXELS),
    "mnist_0_test": _first("mnist_784", 10_000, 980, "0", cut=(60_000, None), **_PIXELS),
    "reg_abalone": _first("abalone", 4_177),
    "reg_auto_mpg": _first("autoMpg", 398),
    "reg_boston_housing": _first("boston", 506, codes=True),
    "reg_cal_housing": _first("houses", 20_640),
    "reg_machine_cpu": _first("machine_cpu", 209),
    "reg_pyrim": _first("pyrim", 74),
    "reg_stock": _first("stock", 950),
    "reg_triazines": _first("triazines", 186),
    "reg_wisconsin": _first("wisconsin", 194),
    "spambase": _first("spambase", 4_601, 1_813, "1"),
    "vote": _first("vote", 435, 168, "republican"),
}


def archive(source: Source) -> dict[str, np.ndarray]:
    """The arrays of a data set, fetched, converted and checked."""
    fetched = fetch_openml(**source.where, as_frame=True, parser="auto")
    target = pd.Series(fetched.target).reset_index(drop=True).iloc[slice(*source.cut)]
    matrix, names = numbers(fetched.data.reset_index(drop=True).iloc[slice(*source.cut)], source)
    if len(target) != source.rows:
        raise ValueError(f"{source.rows:,} rows are expected, and there are {len(target):,}")
    found: dict[str, np.ndarray] = {}
    if source.positives is None:
        found["y"] = target.astype(str).astype(np.float64).to_numpy()
    else:
        found["y"] = np.where(positive_rows(target, source), 1, -1).astype(np.int8)
    if source.classes:
        found["y_class"] = target.astype(str).astype(np.int8).to_numpy()
    if not source.sparse:
        return {"X": matrix, **found, "feature_names": np.array(names)}
    X = sp.csr_matrix(matrix)
    return {
        "X_data": X.data,
        "X_indices": X.indices.astype(np.int32),
        "X_indptr": X.indptr.astype(np.int64),
        "X_shape": np.array(X.shape, dtype=np.int64),
        **found,
    }


def positive_rows(target: pd.Series, source: Source) -> np.ndarray:
    """True for the rows of the positive class, of which there must be as many as expected."""
    words = target.astype(str).str.strip("'\" ")
    counts = words.value_counts()
    labels = source.positive or tuple(counts.index[counts == source.positives])
    hits = words.isin(labels).to_numpy()
    if hits.sum() != source.positives:
        shown = ", ".join(f"{label} ({count:,})" for label, count in counts.items())
        raise ValueError(
            f"{source.positives:,} positive rows are expected, and the classes are {shown}"
        )
    return hits


def numbers(frame: pd.DataFrame, source: Source) -> tuple[np.ndarray, list[str]]:
    """Columns of float32, NaN where a value is missing, and their names.

    Nominal columns become one column per value, none of which is set where the value is missing.
    """
    columns: dict[str, np.ndarray] = {}
    for name in frame.columns[slice(*source.columns)]:
        column = frame[name]
        if source.codes or pd.api.types.is_numeric_dtype(column.dtype):
            columns[str(name)] = pd.to_numeric(column.astype(str), errors="coerce").to_numpy()
            continue
        words = column.astype("category").cat.remove_unused_categories()
        values = list(words.cat.categories)
        if len(values) == 2 and not source.both:
            columns[str(name)] = np.where(words.isna(), np.nan, words.cat.codes)
        else:
            columns |= {f"{name}={value}": (words == value).to_numpy() for value in values}
    matrix = np.column_stack([each.astype(np.float32) for each in columns.values()])
    return matrix / np.float32(source.scale), list(columns)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fetch data sets of the papers from OpenML.")
    parser.add_argument(
        "directory", type=Path, help="where the archives go: what FORERANK_DATA is to name"
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"by default all of {', '.join(SOURCES)}"
    )
    chosen = parser.parse_args(arguments)
    if unknown := sorted(set(chosen.names) - set(SOURCES)):
        parser.error(f"there is no {', '.join(unknown)}; choose among {', '.join(SOURCES)}")
    chosen.directory.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in chosen.names or SOURCES:
        path = chosen.directory / f"{name}.npz"
        if path.exists():
            print(f"{name}: is there already")
            continue
        try:
            arrays = archive(SOURCES[name])
        except (OSError, ValueError, KeyError) as error:
            failed += 1
            print(f"{name}: not fetched: {error}", file=sys.stderr)
            continue
        part = path.with_suffix(".part.npz")
        np.savez_compressed(part, **arrays)
        os.replace(part, path)
        print(f"{name}: {arrays['y'].size:,} rows")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
