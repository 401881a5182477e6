"""Dense designs: arrays in C order (or any strides) and in Fortran order."""

import numpy as np
from numpy.typing import NDArray

from forerank._kernels import compiled
from forerank._typing import Index, Matrix
from forerank.design.base import Design, StoredDesign

__all__ = ["DenseDesign", "FortranDesign"]

# Largest array in Fortran order, in bytes, that `row_matrix` copies to C order.
_LARGEST_COPY = 2**30


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _dense_scores(X, index, w, begin, end, out):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        x = X[index[i]] if index.size else X[i]
        total = 0.0
        for k in range(w.size):
            total += x[k] * w[k]
        out[i] = total


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _dense_adjoint(X, index, G, begin, end, out):  # type: ignore[no-untyped-def]
    # Four rows at a time, so that the sums are read and written a quarter as often.
    fours = begin + (end - begin) // 4 * 4
    for i in range(begin, fours, 4):
        if index.size:
            a, b, c, d = X[index[i]], X[index[i + 1]], X[index[i + 2]], X[index[i + 3]]
        else:
            a, b, c, d = X[i], X[i + 1], X[i + 2], X[i + 3]
        for r in range(G.shape[0]):
            ga, gb, gc, gd = G[r, i], G[r, i + 1], G[r, i + 2], G[r, i + 3]
            sums = out[r]
            for k in range(sums.size):
                sums[k] += (ga * a[k] + gb * b[k]) + (gc * c[k] + gd * d[k])
    for i in range(fours, end):
        x = X[index[i]] if index.size else X[i]
        for r in range(G.shape[0]):
            for k in range(out.shape[1]):
                out[r, k] += G[r, i] * x[k]


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _dense_moments(X, index, g, about, begin, end, out):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        x = X[index[i]] if index.size else X[i]
        v = g[i]
        if v != 0.0:
            for k in range(out.shape[1]):
                difference = x[k] - about[k]
                out[0, k] += v * difference
                out[1, k] += v * difference * difference


class DenseDesign(StoredDesign):
    """Rows of an array in C order (or any strides): all of them, or those in `index`."""

    _kernels = (_dense_scores, _dense_adjoint, _dense_moments)

    def __init__(self, X: NDArray, index: Index | None = None) -> None:
        self._arrays = X, np.empty(0, np.intp) if index is None else index
        self.has_single_rows = index is None
        self.n_rows = X.shape[0] if index is None else index.size
        self.n_columns = X.shape[1]

    def rows(self, index: Index) -> Design:
        X, own = self._arrays
        return DenseDesign(X, own[index] if own.size else index)

    def columns(self, begin: int, end: int) -> NDArray[np.float64]:
        X, index = self._arrays
        part = X[:, begin:end]
        return np.ascontiguousarray(part if self.has_single_rows else part[index], dtype=float)

    def row_block(self, begin: int, end: int) -> NDArray[np.float64]:
        X, index = self._arrays
        part = X[begin:end] if self.has_single_rows else X[index[begin:end]]
        return np.ascontiguousarray(part, dtype=float)

    def row_matrix(self) -> Matrix:
        return self._arrays[0]


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _column_scores(columns, w, begin, end, out):  # type: ignore[no-untyped-def]
    # Rows in blocks that stay in the cache while the columns pass over them.
    for lo in range(begin, end, 2048):
        block = out[lo : min(lo + 2048, end)]
        block[:] = 0.0
        for k in range(w.size):
            x = columns[k, lo : lo + block.size]
            v = w[k]
            for i in range(block.size):
                block[i] += v * x[i]


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _column_adjoint(columns, G, begin, end, out):  # type: ignore[no-untyped-def]
    for lo in range(begin, end, 2048):
        hi = min(lo + 2048, end)
        for k in range(out.shape[1]):
            x = columns[k, lo:hi]
            for r in range(G.shape[0]):
                total, g = 0.0, G[r, lo:hi]
                for i in range(x.size):
                    total += g[i] * x[i]
                out[r, k] += total


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _column_moments(columns, g, about, begin, end, out):  # type: ignore[no-untyped-def]
    v = g[begin:end]
    for k in range(out.shape[1]):
        first = second = 0.0
        x, centre = columns[k, begin:end], about[k]
        for i in range(x.size):
            difference = x[i] - centre
            first += v[i] * difference
            second += v[i] * difference * difference
        out[0, k] += first
        out[1, k] += second


class FortranDesign(StoredDesign):
    """An array in Fortran order, the layout of data frames."""

    _kernels = (_column_scores, _column_adjoint, _column_moments)

    def __init__(self, X: NDArray) -> None:
        self._arrays = (X.T,)
        self.n_rows, self.n_columns = X.shape
        self.has_single_rows = X.nbytes <= _LARGEST_COPY

    def rows(self, index: Index) -> Design:
        # The entries of a row are far apart in memory, and a sample is read many times: a copy.
        return DenseDesign(np.ascontiguousarray(self._arrays[0][:, index].T))

    def columns(self, begin: int, end: int) -> NDArray[np.float64]:
        return np.ascontiguousarray(self._arrays[0][begin:end].T, dtype=float)

    def row_block(self, begin: int, end: int) -> NDArray[np.float64]:
        return np.ascontiguousarray(self._arrays[0][:, begin:end].T, dtype=float)

    def row_matrix(self) -> Matrix:
        return np.ascontiguousarray(self._arrays[0].T)
