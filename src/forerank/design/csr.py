"""Designs of sparse matrices in CSR form."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from forerank._kernels import compiled
from forerank._typing import Index, Matrix, Vector
from forerank.design.base import Design, StoredDesign, sum_over_chunks

__all__ = ["CSRDesign"]


@compiled(inline="always")
def _entries(data, indices, indptr, row):  # type: ignore[no-untyped-def]
    """The stored entries of a row and their columns, as views: loops over these take a third less
    time than with positions in the arrays of all rows.
    """
    begin, end = indptr[row], indptr[row + 1]
    return data[begin:end], indices[begin:end]


@compiled
def _csr_scores(data, indices, indptr, index, w, begin, end, out):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        x, column = _entries(data, indices, indptr, index[i] if index.size else i)
        total = 0.0
        for k in range(x.size):
            total += x[k] * w[column[k]]
        out[i] = total


@compiled
def _csr_adjoint(data, indices, indptr, index, G, begin, end, out):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        x, column = _entries(data, indices, indptr, index[i] if index.size else i)
        for r in range(G.shape[0]):
            v, sums = G[r, i], out[r]
            if v != 0.0:
                for k in range(x.size):
                    sums[column[k]] += v * x[k]


@compiled
def _csr_moments(data, indices, indptr, index, g, about, begin, end, out):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        x, column = _entries(data, indices, indptr, index[i] if index.size else i)
        v = g[i]
        for k in range(x.size):
            sums = out[column[k]]
            difference = x[k] - about[column[k]] if about.size else x[k]
            sums[0] += v
            sums[1] += v * difference
            sums[2] += v * difference * difference


@compiled
def _csr_columns(data, indices, indptr, index, begin, out):  # type: ignore[no-untyped-def]
    for i in range(out.shape[0]):
        row = index[i] if index.size else i
        for k in range(indptr[row], indptr[row + 1]):
            column = np.int64(indices[k]) - begin
            if 0 <= column < out.shape[1]:
                out[i, column] += data[k]


@compiled
def _csr_gram(data, indices, indptr, a, b, n_columns):  # type: ignore[no-untyped-def]
    """Products of the rows a with the rows b, whose entries are first sorted by column."""
    start = np.zeros(n_columns + 1, dtype=np.int64)
    for j in range(b.size):
        for k in range(indptr[b[j]], indptr[b[j] + 1]):
            start[np.int64(indices[k]) + 1] += 1
    for column in range(n_columns):
        start[column + 1] += start[column]
    position = start[:-1].copy()
    row, value = np.empty(start[-1], dtype=np.int64), np.empty(start[-1])
    for j in range(b.size):
        for k in range(indptr[b[j]], indptr[b[j] + 1]):
            e = position[indices[k]]
            row[e], value[e] = j, data[k]
            position[indices[k]] += 1
    out = np.zeros((a.size, b.size))
    for i in range(a.size):
        for k in range(indptr[a[i]], indptr[a[i] + 1]):
            of_column, x = np.int64(indices[k]), np.float64(data[k])
            for e in range(start[of_column], start[of_column + 1]):
                out[i, row[e]] += x * value[e]
    return out


@compiled
def _csr_weighted_gram(data, indices, indptr, index, weight, out):  # type: ignore[no-untyped-def]
    """Add a matrix whose sum with its transpose is X^T diag(weight) X."""
    for i in range(weight.size):
        x, column = _entries(data, indices, indptr, index[i] if index.size else i)
        for k in range(x.size):
            v, sums = weight[i] * x[k], out[column[k]]
            sums[column[k]] += 0.5 * v * x[k]
            for m in range(k + 1, x.size):
                sums[column[m]] += v * x[m]


@compiled
def _csr_bin_sums(data, indices, indptr, index, weight, bins, out):  # type: ignore[no-untyped-def]
    for i in range(weight.size):
        x, column = _entries(data, indices, indptr, index[i] if index.size else i)
        sums, v = out[bins[i]], weight[i]
        for k in range(x.size):
            sums[column[k]] += v * x[k]


class CSRDesign(StoredDesign):
    """Rows of a CSR matrix: all of them, or those in `index`."""

    _kernels = (_csr_scores, _csr_adjoint, _csr_moments)

    def __init__(
        self,
        data: NDArray,
        indices: NDArray,
        indptr: NDArray,
        n_columns: int,
        index: Index | None = None,
    ) -> None:
        # Unsigned indices: the kernels need no test for negative ones.
        unsigned = indices.view(np.dtype(f"u{indices.dtype.itemsize}"))
        self._arrays = data, unsigned, indptr, np.empty(0, np.intp) if index is None else index
        self.n_rows = indptr.size - 1 if index is None else index.size
        self.has_single_rows = index is None
        self.n_columns = n_columns
        self._n_entries = int(data.size * (self.n_rows / max(indptr.size - 1, 1)))

    @property
    def n_entries(self) -> int:
        return self._n_entries

    def moments(self, g: Vector, about: Vector | None = None) -> tuple[Vector, Vector, Vector]:
        centre = np.empty(0) if about is None else about
        presence, first, second = sum_over_chunks(
            lambda a, b, out: _csr_moments(*self._arrays, g, centre, a, b, out),
            self.n_rows,
            (self.n_columns, 3),
            self.n_entries,
        ).T.copy()
        if about is not None:  # the terms of entries that are not stored, which are zero
            absent = g.sum() - presence
            first -= absent * about
            second += absent * about**2
        return first, second, presence

    def rows(self, index: Index) -> Design:
        data, indices, indptr, own = self._arrays
        index = own[index] if own.size else index
        return CSRDesign(data, indices, indptr, self.n_columns, index)

    def columns(self, begin: int, end: int) -> NDArray[np.float64]:
        out = np.zeros((self.n_rows, end - begin))
        _csr_columns(*self._arrays, begin, out)
        return out

    def row_block(self, begin: int, end: int) -> NDArray[np.float64]:
        *arrays, index = self._arrays
        out = np.zeros((end - begin, self.n_columns))
        rows = index[begin:end] if index.size else np.arange(begin, end)
        _csr_columns(*arrays, rows, 0, out)
        return out

    @property
    def gram_cost(self) -> float:
        return min((self._n_entries / max(self.n_rows, 1)) ** 2, super().gram_cost)

    def weighted_gram(self, weight: Vector) -> NDArray[np.float64]:
        if self.gram_cost == super().gram_cost:
            return super().weighted_gram(weight)
        out = np.zeros((self.n_columns, self.n_columns))
        _csr_weighted_gram(*self._arrays, weight, out)
        return out + out.T

    def bin_sums(self, weight: Vector, bins: Index, n_bins: int) -> NDArray[np.float64]:
        sums = np.zeros((n_bins, self.n_columns))
        _csr_bin_sums(*self._arrays, weight, bins, sums)
        return sums

    def row_matrix(self) -> Matrix:
        data, indices, indptr, _ = self._arrays
        signed = indices.view(np.dtype(f"i{indices.dtype.itemsize}"))
        return sp.csr_array((data, signed, indptr), shape=(indptr.size - 1, self.n_columns))

    def gram(self, a: Index, b: Index) -> NDArray[np.float64]:
        data, indices, indptr, index = self._arrays
        a, b = (index[a], index[b]) if index.size else (a, b)
        return _csr_gram(data, indices, indptr, a, b, self.n_columns)
