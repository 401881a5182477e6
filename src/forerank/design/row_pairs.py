"""Differences of two rows of X, for stochastic and dual coordinate solvers.

A pair is two row numbers, plus and minus, with the difference z = x_plus - x_minus; number -1 is
the origin, so that single rows are pairs too (shen2013, section 3.4). Kernels get the rows as a
tuple of arrays, in one of three forms, and use `dot` and `add`, which are compiled for each:

    (Z,)                                    stored differences
    (X, plus, minus)                        a dense matrix
    (data, indices, indptr, plus, minus)    a CSR matrix
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numba.extending import overload
from numpy.typing import NDArray

from forerank._kernels import compiled
from forerank._typing import Index, Vector

__all__ = ["Differences", "add", "dot"]


# Largest difference, and largest total of differences, in bytes, that are stored: below it, one
# vector is cheaper to read than two rows.
_STORED_BYTES = 4096
_STORED_ROOM = 2**27
# Entries of a dense vector that cost as much to read as one stored entry of a sparse row.
_DENSE_PER_SPARSE = 6
_CONTRACT = {"fastmath": {"contract", "reassoc"}}


def dot(rows, m, w):  # type: ignore[no-untyped-def]
    """<z_m, w>; `rows` as in the module docstring."""
    raise NotImplementedError


def add(rows, m, step, w):  # type: ignore[no-untyped-def]
    """Add step * z_m to w."""
    raise NotImplementedError


@overload(dot, jit_options=_CONTRACT)
def _compile_dot(rows, m, w):  # type: ignore[no-untyped-def]
    if len(rows) == 1:

        def stored(rows, m, w):  # type: ignore[no-untyped-def]
            z = rows[0][m]
            total = 0.0
            for k in range(w.size):
                total += z[k] * w[k]
            return total

        return stored
    if len(rows) == 3:

        def dense(rows, m, w):  # type: ignore[no-untyped-def]
            X, plus, minus = rows
            total = 0.0
            if plus[m] >= 0 and minus[m] >= 0:
                x, y = X[plus[m]], X[minus[m]]
                for k in range(w.size):
                    total += (np.float64(x[k]) - np.float64(y[k])) * w[k]
            elif plus[m] >= 0:
                x = X[plus[m]]
                for k in range(w.size):
                    total += x[k] * w[k]
            else:
                y = X[minus[m]]
                for k in range(w.size):
                    total -= y[k] * w[k]
            return total

        return dense

    def sparse(rows, m, w):  # type: ignore[no-untyped-def]
        data, indices, indptr, plus, minus = rows
        total = 0.0
        if plus[m] >= 0:
            for k in range(indptr[plus[m]], indptr[plus[m] + 1]):
                total += data[k] * w[indices[k]]
        if minus[m] >= 0:
            for k in range(indptr[minus[m]], indptr[minus[m] + 1]):
                total -= data[k] * w[indices[k]]
        return total

    return sparse


@overload(add, jit_options=_CONTRACT)
def _compile_add(rows, m, step, w):  # type: ignore[no-untyped-def]
    if len(rows) == 1:

        def stored(rows, m, step, w):  # type: ignore[no-untyped-def]
            z = rows[0][m]
            for k in range(w.size):
                w[k] += step * z[k]

        return stored
    if len(rows) == 3:

        def dense(rows, m, step, w):  # type: ignore[no-untyped-def]
            X, plus, minus = rows
            if plus[m] >= 0 and minus[m] >= 0:
                x, y = X[plus[m]], X[minus[m]]
                for k in range(w.size):
                    w[k] += step * (np.float64(x[k]) - np.float64(y[k]))
            elif plus[m] >= 0:
                x = X[plus[m]]
                for k in range(w.size):
                    w[k] += step * x[k]
            else:
                y = X[minus[m]]
                for k in range(w.size):
                    w[k] -= step * y[k]

        return dense

    def sparse(rows, m, step, w):  # type: ignore[no-untyped-def]
        data, indices, indptr, plus, minus = rows
        if plus[m] >= 0:
            for k in range(indptr[plus[m]], indptr[plus[m] + 1]):
                w[indices[k]] += step * data[k]
        if minus[m] >= 0:
            for k in range(indptr[minus[m]], indptr[minus[m] + 1]):
                w[indices[k]] -= step * data[k]

    return sparse


@compiled
def _squared_norms(rows, begin, end, n_columns):  # type: ignore[no-untyped-def]
    """||z_m||^2 of some differences, by way of a dense vector: the two rows may share columns."""
    z = np.zeros(n_columns)
    out = np.empty(end - begin)
    for m in range(begin, end):
        add(rows, m, 1.0, z)
        out[m - begin] = dot(rows, m, z)
        add(rows, m, -1.0, z)
    return out


@compiled
def _store(rows, begin, end, out):  # type: ignore[no-untyped-def]
    for m in range(begin, end):
        out[m] = 0
        add(rows, m, 1.0, out[m])


@compiled
def _dense(rows, index, n_columns):  # type: ignore[no-untyped-def]
    out = np.zeros((index.size, n_columns))
    for k in range(index.size):
        add(rows, index[k], 1.0, out[k])
    return out


@compiled
def _margins(rows, n, w):  # type: ignore[no-untyped-def]
    out = np.empty(n)
    for m in range(n):
        out[m] = dot(rows, m, w)
    return out


@compiled
def _combination(rows, a, n_columns):  # type: ignore[no-untyped-def]
    w = np.zeros(n_columns)
    for m in range(a.size):
        if a[m] != 0.0:
            add(rows, m, a[m], w)
    return w


class Differences:
    """A growing list of differences x_i - x_j between rows of X; row number -1 is the origin.

    Small dense differences are stored unless `in_place`; otherwise only the row numbers are, and X
    is read.
    """

    def __init__(self, X: Any, capacity: int, *, in_place: bool = False) -> None:
        self.n_columns = X.shape[1]
        self.n_rows = 0
        self._plus = np.empty(capacity, dtype=np.intp)
        self._minus = np.empty(capacity, dtype=np.intp)
        self._norms = np.empty(capacity)
        matrix = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
        self._rows_of_X = (*matrix, self._plus, self._minus)
        row_bytes = self.n_columns * X.dtype.itemsize
        small = row_bytes <= _STORED_BYTES
        if sp.issparse(X):
            small = self.n_columns <= 2 * _DENSE_PER_SPARSE * X.nnz / max(X.shape[0], 1)
        self._stored = None
        if small and not in_place and row_bytes * capacity <= _STORED_ROOM:
            self._stored = np.empty((capacity, self.n_columns), dtype=X.dtype)

    @property
    def plus(self) -> Index:
        """The row that should be ranked above the other in each pair, -1 for the origin."""
        return self._plus[: self.n_rows]

    @property
    def minus(self) -> Index:
        """The row that should be ranked below the other in each pair, -1 for the origin."""
        return self._minus[: self.n_rows]

    @property
    def squared_norms(self) -> Vector:
        """||x_i - x_j||^2."""
        return self._norms[: self.n_rows]

    @property
    def signs(self) -> Vector:
        """1 for a row minus the origin, -1 for the origin minus a row, 0 for pairs of two rows."""
        return (self.minus < 0).astype(float) - (self.plus < 0)

    @property
    def rows(self) -> tuple:
        """The arrays that kernels read."""
        return self._rows_of_X if self._stored is None else (self._stored,)

    def extend(self, plus: Index, minus: Index) -> None:
        """Append the pairs x[plus] - x[minus]. Cost: the entries of their rows."""
        begin, end = self.n_rows, self.n_rows + plus.size
        self._plus[begin:end], self._minus[begin:end] = plus, minus
        if self._stored is not None:
            _store(self._rows_of_X, begin, end, self._stored)
        self.n_rows = end
        self._norms[begin:end] = _squared_norms(self.rows, begin, end, self.n_columns)

    def dense(self, index: Index) -> NDArray[np.float64]:
        """Some differences as a dense array."""
        return _dense(self.rows, index, self.n_columns)

    def combination(self, a: Vector) -> Vector:
        """sum_m a_m (x_i - x_j)."""
        return _combination(self.rows, a, self.n_columns)

    def margins(self, w: Vector) -> Vector:
        """<x_i - x_j, w> of every pair."""
        return _margins(self.rows, self.n_rows, w)
