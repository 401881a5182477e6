"""Named data sets and generated ones.

The named ones are read from the directory that the environment variable FORERANK_DATA names.

Each is an archive NAME.npz with y and either a dense X (float32, NaN = missing) or the parts of a CSR matrix; grouped
sets have a qid per row. None of them comes with the package. `make_randnet` and `make_randpoly` need no files.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

__all__ = ["Dataset", "cut_into_grades", "data_directory", "load", "make_randnet", "make_randpoly"]


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


def cut_into_grades(target: ArrayLike, n_grades: int) -> NDArray[np.intp]:
    """Grades 0 .. n_grades - 1 from a real-valued target: bins of about equal size, equal values in the same bin.

    Examples
    --------
    >>> cut_into_grades([3.0, 1.0, 2.0, 2.0, 9.0, 5.0], 3)
    array([1, 0, 0, 0, 2, 2])
    """
    values = np.asarray(target, dtype=float)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError("target must be a one-dimensional array of finite numbers, with at least one of them.")
    if n_grades < 2:
        raise ValueError(f"n_grades must be at least 2; got {n_grades!r}.")
    cuts = np.quantile(values, np.arange(1, n_grades) / n_grades)
    return np.searchsorted(cuts, values, side="left")


def make_randnet(
    n_samples: int = 1000, n_features: int = 50, n_grades: int = 6, *, n_hidden: int = 10, random_state: Any = None
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """RandNet: grades of the output of a random network (Burges et al. 2005; raykar2007, Table 1).

    Inputs are uniform in [-1, 1]^d. The target is v . tanh(W x + b) with `n_hidden` hidden units and all weights
    uniform in [-1, 1], cut into grades of equal size.

    Returns
    -------
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        Grades 0 .. n_grades - 1.
    """
    rng = check_random_state(random_state)
    X = rng.uniform(-1.0, 1.0, (n_samples, n_features))
    W, b, v = (rng.uniform(-1.0, 1.0, shape) for shape in ((n_features, n_hidden), n_hidden, n_hidden))
    return X, cut_into_grades(np.tanh(X @ W + b) @ v, n_grades)


def make_randpoly(
    n_samples: int = 1000, n_features: int = 50, n_grades: int = 6, *, random_state: Any = None
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """RandPoly: grades of a random polynomial of degree three (Burges et al. 2005; raykar2007, Table 1).

    Inputs are uniform in [-1, 1]^d. The target is the mean of three terms, each brought to mean zero and variance one:
    the inner product with a random vector (uniform in [-1, 1]^d), the sum of x_k x_{p(k)} over a random permutation p,
    and the sum of x_k x_{q(k)} x_{r(k)} over two more. It is cut into grades of equal size.

    Returns
    -------
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        Grades 0 .. n_grades - 1.
    """
    if n_samples < 2:
        raise ValueError(f"n_samples must be at least 2, since terms are brought to variance one; got {n_samples!r}.")
    rng = check_random_state(random_state)
    X = rng.uniform(-1.0, 1.0, (n_samples, n_features))
    linear = X @ rng.uniform(-1.0, 1.0, n_features)
    p, q, r = (rng.permutation(n_features) for _ in range(3))
    terms = np.stack([linear, (X * X[:, p]).sum(axis=1), (X * X[:, q] * X[:, r]).sum(axis=1)])
    terms = (terms - terms.mean(axis=1, keepdims=True)) / terms.std(axis=1, keepdims=True)
    return X, cut_into_grades(terms.mean(axis=0), n_grades)
