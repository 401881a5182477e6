"""NumPy archives of a matrix with labels and groups: X (or the parts of a CSR matrix), y, qid."""

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from forerank.data.files import first_line
from forerank.exceptions import DataFileError

__all__ = ["Matrix", "read_npz"]


@dataclass(frozen=True)
class Matrix:
    """Rows, labels and groups of an svmlight file or a NumPy archive.

    Attributes
    ----------
    X : CSR matrix or array
    y : array
    qid : array or None
        The group of each row, where the file has groups.
    zero_based : bool
        Whether the columns of an svmlight file are counted from 0.
    """

    X: Any
    y: NDArray
    qid: NDArray | None
    zero_based: bool = True


def read_npz(path: Any) -> Matrix:
    """The matrix of a NumPy archive."""
    parts = _arrays(path)
    if "y" not in parts or not ("X" in parts or "X_data" in parts):
        names = ", ".join(sorted(parts)) or "nothing"
        raise DataFileError(path, f"the archive has {names}; expected the arrays X and y")
    X: Any = parts.get("X")
    if X is None:
        try:
            csr = (parts["X_data"], parts["X_indices"], parts["X_indptr"])
            X = sp.csr_matrix(csr, shape=tuple(int(n) for n in parts["X_shape"]))
            X.check_format(full_check=True)
        except (KeyError, ValueError, TypeError) as error:
            problem = f"the parts of X do not make a CSR matrix ({first_line(error)})"
            raise DataFileError(path, problem) from None
    y = parts["y"]
    if X.ndim != 2 or y.shape != (X.shape[0],):
        shapes = f"X has the shape {X.shape} and y {y.shape}"
        raise DataFileError(path, f"{shapes}; one label per row is expected")
    return Matrix(X, y, parts.get("qid"))


def _arrays(path: Any) -> dict[str, NDArray]:
    problem, arguments = "cannot be read as a NumPy archive", None
    if not zipfile.is_zipfile(path):  # NumPy's error would advise allow_pickle=True
        with Path(path).open("rb") as file:
            is_text = b"\x00" not in file.read(1 << 16)
        problem += ", as its suffix suggests"
        if is_text:
            problem, arguments = (
                f"{problem}; if it is a text file, pass its format",
                {"format": "csv"},
            )
        raise DataFileError(path, problem, arguments=arguments)
    try:
        with Path(path).open("rb") as source, np.load(source, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        why = "it holds Python objects" if "allow_pickle" in str(error) else first_line(error)
        raise DataFileError(path, f"{problem} ({why})") from None
