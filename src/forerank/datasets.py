"""Named data sets, read from the directory that the environment variable FORERANK_DATA names.

Each is an archive NAME.npz with y and either a dense X (float32, NaN = missing) or the parts of a CSR matrix; grouped
sets have a qid per row. None of them comes with the package.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["Dataset", "data_directory", "load"]


@dataclass(frozen=True)
class Dataset:
    """Rows, labels and, where there are groups, the group of each row."""

    name: str
    X: NDArray | sp.csr_array
    y: NDArray
    qid: NDArray | None = None


def data_directory() -> Path:
    """The directory of the data sets; an error that says what to do where there is none."""
    value = os.environ.get("FORERANK_DATA")
    if not value:
        raise FileNotFoundError(
            "The environment variable FORERANK_DATA is not set. Set it to the directory that holds the NAME.npz files."
        )
    path = Path(value)
    if not path.is_dir():
        raise FileNotFoundError(f"FORERANK_DATA is {value!r}, which is not a directory.")
    return path


def load(name: str) -> Dataset:
    """Read one data set by name."""
    path = data_directory() / f"{name}.npz"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in path.parent.glob("*.npz"))) or "none"
        raise FileNotFoundError(f"There is no data set {name!r} in FORERANK_DATA; found: {known}.")
    with np.load(path, allow_pickle=False) as archive:
        if "X_data" in archive:
            # Not every peer takes 64-bit indices, and few matrices need them.
            kind = np.int32 if archive["X_data"].size < 2**31 else np.int64
            indices, indptr = archive["X_indices"].astype(kind), archive["X_indptr"].astype(kind)
            X = sp.csr_array((archive["X_data"], indices, indptr), shape=tuple(archive["X_shape"]))
        else:
            X = archive["X"]
        return Dataset(name, X, archive["y"], archive.get("qid"))
