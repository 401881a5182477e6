"""Download data sets of the papers from OpenML, as archives for FORERANK_DATA.

python -m benchmarks.fetch_data DIRECTORY [NAME ...]     # all, or those named; needs a network

The numbers of rows and of positive rows must be those of the papers. docs/data-sets.md describes
the format.
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
    """A data set on OpenML, and how it is converted.

    Attributes
    ----------
    where : dict
        Name and version, or number, for `fetch_openml`.
    rows : int
        Rows of the archive.
    positives : int or None
        Number of positive rows; None where the target is a number.
    positive : tuple of str
        Labels of the positive class; by default the label that has `positives` rows.
    span : pair of int or None
        The first row to use, and the one after the last.
    columns : pair of int or None
        The first column to use, and the one after the last.
    codes : bool
        Whether values of nominal columns are numbers, to be used unchanged.
    both : bool
        Whether a nominal column of two values becomes two columns instead of one.
    scale : float
        Divisor of the values.
    sparse, classes : bool
        Whether X is stored as a sparse matrix, and the original labels as `y_class`.
    """

    where: dict[str, Any]
    rows: int
    positives: int | None = None
    positive: tuple[str, ...] = field(default=())
    span: tuple[int | None, int | None] = _ALL
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


# The last four of the 784 pixels are always zero.
_PIXELS: dict[str, Any] = {"columns": (0, 780), "scale": 255.0, "sparse": True, "classes": True}
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
    "mnist_0": _first("mnist_784", 60_000, 5_923, "0", span=(0, 60_000), **_PIXELS),
    "mnist_0_test": _first("mnist_784", 10_000, 980, "0", span=(60_000, None), **_PIXELS),
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
    target = pd.Series(fetched.target).reset_index(drop=True).iloc[slice(*source.span)]
    matrix, names = numbers(fetched.data.reset_index(drop=True).iloc[slice(*source.span)], source)
    if len(target) != source.rows:
        raise ValueError(f"{source.rows:,} rows were expected, found {len(target):,}")
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
    """True for the rows of the positive class; their number must be the expected one."""
    labels = target.astype(str).str.strip("'\" ")
    counts = labels.value_counts()
    positive = source.positive or tuple(counts.index[counts == source.positives])
    is_positive = labels.isin(positive).to_numpy()
    if is_positive.sum() != source.positives:
        shown = ", ".join(f"{label} ({count:,})" for label, count in counts.items())
        raise ValueError(f"{source.positives:,} positive rows were expected, found {shown}")
    return is_positive


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
        nominal = column.astype("category").cat.remove_unused_categories()
        values = list(nominal.cat.categories)
        if len(values) == 2 and not source.both:
            columns[str(name)] = np.where(nominal.isna(), np.nan, nominal.cat.codes)
        else:
            columns |= {f"{name}={value}": (nominal == value).to_numpy() for value in values}
    matrix = np.column_stack([each.astype(np.float32) for each in columns.values()])
    return matrix / np.float32(source.scale), list(columns)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fetch data sets of the papers from OpenML.")
    parser.add_argument(
        "directory", type=Path, help="folder for the archives; set FORERANK_DATA to it"
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"by default all of {', '.join(SOURCES)}"
    )
    args = parser.parse_args(arguments)
    if unknown := sorted(set(args.names) - set(SOURCES)):
        parser.error(f"there is no {', '.join(unknown)}; choose among {', '.join(SOURCES)}")
    args.directory.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in args.names or SOURCES:
        path = args.directory / f"{name}.npz"
        if path.exists():
            print(f"{name}: exists already")
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
