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
        x = X[index[i] if index.size else i]
        total = 0.0
        for k in range(w.size):
            total += x[k] * w[k]
        out[i] = total


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _dense_adjoint(X, index, G, begin, end, out):  # type: ignore[no-untyped-def]
    # Eight rows at a time, so that the sums are read and written an eighth as often.
    eights = begin + (end - begin) // 8 * 8
    for i in range(begin, eights, 8):
        # A choice of numbers, not of rows, which would keep the loop from vector instructions.
        first = i, i + 1, i + 2, i + 3
        last = i + 4, i + 5, i + 6, i + 7
        if index.size:
            first = index[i], index[i + 1], index[i + 2], index[i + 3]
            last = index[i + 4], index[i + 5], index[i + 6], index[i + 7]
        a, b, c, d = X[first[0]], X[first[1]], X[first[2]], X[first[3]]
        p, q, s, t = X[last[0]], X[last[1]], X[last[2]], X[last[3]]
        for r in range(G.shape[0]):
            g, sums = G[r, i : i + 8], out[r]
            ga, gb, gc, gd, gp, gq, gs, gt = g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7]
            for k in range(sums.size):
                of_first = (ga * a[k] + gb * b[k]) + (gc * c[k] + gd * d[k])
                sums[k] += of_first + ((gp * p[k] + gq * q[k]) + (gs * s[k] + gt * t[k]))
    for i in range(eights, end):
        x = X[index[i] if index.size else i]
        for r in range(G.shape[0]):
            v, sums = G[r, i], out[r]
            for k in range(sums.size):
                sums[k] += v * x[k]


# Without reassociated products: a weight of zero leaves out a row whose squares overflow.
@compiled(fastmath={"contract", "nsz"})
def _dense_moments(X, index, g, about, begin, end, out):  # type: ignore[no-untyped-def]
    first, second = out[0], out[1]
    fours = begin + (end - begin) // 4 * 4
    for i in range(begin, fours, 4):
        rows = i, i + 1, i + 2, i + 3
        if index.size:
            rows = index[i], index[i + 1], index[i + 2], index[i + 3]
        a, b, c, d = X[rows[0]], X[rows[1]], X[rows[2]], X[rows[3]]
        ga, gb, gc, gd = g[i], g[i + 1], g[i + 2], g[i + 3]
        for k in range(first.size):
            m = about[k]
            da, db, dc, dd = a[k] - m, b[k] - m, c[k] - m, d[k] - m
            va, vb, vc, vd = ga * da, gb * db, gc * dc, gd * dd
            first[k] += (va + vb) + (vc + vd)
            second[k] += (va * da + vb * db) + (vc * dc + vd * dd)
    for i in range(fours, end):
        x = X[index[i] if index.size else i]
        v = g[i]
        for k in range(first.size):
            difference = x[k] - about[k]
            first[k] += v * difference
            second[k] += (v * difference) * difference


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
