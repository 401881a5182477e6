"""X as two products: scores X w, and the adjoint X^T g.

Solvers see X through a design and nothing else, so storage is decided here: dense (C or Fortran
order) and CSR with 32- or 64-bit indices, float32 or float64, never copied. Products are
accumulated in double precision, also for float32 data. A subset of rows is a design too (`rows`),
which reads the rows where they are.

Large products run on two or more threads, each on its share of the rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from forerank._kernels import compiled, in_row_chunks
from forerank._typing import Index, Vector

__all__ = ["Design", "make_design", "summed_over_chunks"]

Multiply = Callable[[NDArray[np.float64]], NDArray[np.float64]]

# Columns that are multiplied together where a dense copy of all of them would be large.
_COLUMN_BLOCK = 16
_GRAM_BLOCK = 4096


class Design(ABC):
    """A matrix of n_rows x n_columns known through its products. Cost of each: the number of stored
    entries.
    """

    n_rows: int
    n_columns: int
    # Whether the last column is one of ones.
    has_intercept = False

    @property
    def n_entries(self) -> int:
        """How many entries are stored."""
        return self.n_rows * self.n_columns

    @abstractmethod
    def scores(self, w: Vector) -> Vector:
        """X w."""

    @abstractmethod
    def adjoints(self, G: Vector) -> Vector:
        """X^T g for each row g of G, in one pass over X."""

    @abstractmethod
    def moments(self, g: Vector, about: Vector | None = None) -> tuple[Vector, Vector, Vector]:
        """X^T g, (X * X)^T g and (X != 0)^T g, in one pass over X; stored entries count as not
        zero.

        The first two are those of X - 1 about^T where `about` is given: squares of a column far
        from zero would lose its variation to rounding.
        """

    def adjoint(self, g: Vector) -> Vector:
        """X^T g."""
        return self.adjoints(g[None, :])[0]

    @abstractmethod
    def rows(self, index: Index) -> "Design":
        """The design of some rows, in the order given."""

    @abstractmethod
    def columns(self, begin: int, end: int) -> NDArray[np.float64]:
        """Some columns as a dense array in C order; meant for small samples of rows."""

    def gram(self, a: Index, b: Index) -> NDArray[np.float64]:
        """Inner products of the rows a with the rows b; columns are copied in blocks."""
        out = np.zeros((a.size, b.size))
        if out.size:
            first, second = self.rows(a), self.rows(b)
            for k in range(0, self.n_columns, _GRAM_BLOCK):
                end = min(k + _GRAM_BLOCK, self.n_columns)
                out += first.columns(k, end) @ second.columns(k, end).T
        return out

    def rows_in_copy(self, room: int) -> int:
        """How many rows `congruence` can work on within room for that many numbers."""
        return room // self.n_columns

    def standardised(self, mean: Vector, unit: Vector) -> "Design":
        """(X - 1 mean^T) / unit, without a copy of X. An intercept stays as it is."""
        return StandardisedDesign(self, mean, unit)

    def congruence(self, multiply: Multiply, about: Vector | None = None) -> NDArray[np.float64]:
        """X^T C X, where multiply(U) = C U for a symmetric C; meant for small samples of rows.

        With `about`, of X - 1 about^T.
        """
        X = self.columns(0, self.n_columns)
        if about is not None:
            X = X - about  # what `columns` gives may be the array itself
        out = np.empty((self.n_columns, self.n_columns))
        for k in range(0, self.n_columns, _COLUMN_BLOCK):
            block = np.ascontiguousarray(X[:, k : k + _COLUMN_BLOCK])
            out[:, k : k + _COLUMN_BLOCK] = X.T @ multiply(block)
        return out


def make_design(X: Any, *, intercept: bool = False) -> Design:
    """The design of an array or CSR matrix; with `intercept`, a last column of ones that is not
    stored.
    """
    design: Design
    if sp.issparse(X):
        design = CSRDesign(X.data, X.indices, X.indptr, X.shape[1])
    elif X.flags.c_contiguous or not X.flags.f_contiguous:
        design = DenseDesign(X)
    else:
        design = FortranDesign(X)
    return InterceptDesign(design) if intercept else design


def summed_over_chunks(
    work: Callable[[int, int, Vector], None],
    n_rows: int,
    shape: tuple[int, ...],
    multiplications: int,
) -> Vector:
    """Add up work(begin, end, out), each chunk of rows into an array of its own."""
    parts: list[tuple[int, Vector]] = []

    def one(begin: int, end: int) -> None:
        out = np.zeros(shape)
        work(begin, end, out)
        parts.append((begin, out))

    in_row_chunks(one, n_rows, multiplications)
    # Threads finish in any order; a fixed order of addition keeps results the same to the last bit.
    parts.sort(key=lambda part: part[0])
    total = parts[0][1]
    for _, out in parts[1:]:
        total += out
    return total


def _refuse_other_length(w: Vector, n_columns: int) -> None:
    """Compiled code would read on behind the weights."""
    if len(w) != n_columns:
        raise ValueError(f"there are {len(w)} weights for {n_columns} columns")


@compiled(fastmath={"contract", "reassoc"})
def _dense_scores(X, index, w, begin, end, out):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        x = X[index[i]] if index.size else X[i]
        total = 0.0
        for k in range(w.size):
            total += x[k] * w[k]
        out[i] = total


@compiled(fastmath={"contract", "reassoc"})
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


@compiled(fastmath={"contract", "reassoc"})
def _dense_moments(X, index, g, about, begin, end, out):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        x = X[index[i]] if index.size else X[i]
        v = g[i]
        if v != 0.0:
            for k in range(out.shape[1]):
                difference = x[k] - about[k]
                out[0, k] += v * difference
                out[1, k] += v * difference * difference


class DenseDesign(Design):
    """Rows of an array in C order (or any strides), all of them or those in `index`."""

    def __init__(self, X: NDArray, index: Index | None = None) -> None:
        self._X = X
        self._index = np.empty(0, dtype=np.intp) if index is None else index
        self.n_rows = X.shape[0] if index is None else index.size
        self.n_columns = X.shape[1]

    def scores(self, w: Vector) -> Vector:
        _refuse_other_length(w, self.n_columns)
        out = np.empty(self.n_rows)
        in_row_chunks(
            lambda a, b: _dense_scores(self._X, self._index, w, a, b, out),
            self.n_rows,
            self.n_rows * self.n_columns,
        )
        return out

    def adjoints(self, G: Vector) -> Vector:
        return self._sums(_dense_adjoint, G, n_sums=G.shape[0])

    def moments(self, g: Vector, about: Vector | None = None) -> tuple[Vector, Vector, Vector]:
        about = np.zeros(self.n_columns) if about is None else about
        first, second = self._sums(_dense_moments, g, about, n_sums=2)
        return first, second, np.full(self.n_columns, g.sum())

    def _sums(self, kernel: Callable, *arrays: Vector, n_sums: int) -> Vector:
        return summed_over_chunks(
            lambda a, b, out: kernel(self._X, self._index, *arrays, a, b, out),
            self.n_rows,
            (n_sums, self.n_columns),
            self.n_rows * self.n_columns,
        )

    def rows(self, index: Index) -> Design:
        return DenseDesign(self._X, self._index[index] if self._index.size else index)

    def columns(self, begin: int, end: int) -> NDArray[np.float64]:
        part = self._X[:, begin:end]
        all_rows = not self._index.size and self.n_rows == self._X.shape[0]
        return np.ascontiguousarray(part if all_rows else part[self._index], dtype=float)


@compiled(fastmath={"contract", "reassoc"})
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


@compiled(fastmath={"contract", "reassoc"})
def _column_adjoint(columns, G, begin, end, out):  # type: ignore[no-untyped-def]
    for lo in range(begin, end, 2048):
        hi = min(lo + 2048, end)
        for k in range(out.shape[1]):
            for r in range(G.shape[0]):
                total = 0.0
                for i in range(lo, hi):
                    total += G[r, i] * columns[k, i]
                out[r, k] += total


@compiled(fastmath={"contract", "reassoc"})
def _column_moments(columns, g, about, begin, end, out):  # type: ignore[no-untyped-def]
    for k in range(out.shape[1]):
        first = second = 0.0
        for i in range(begin, end):
            difference = columns[k, i] - about[k]
            first += g[i] * difference
            second += g[i] * difference * difference
        out[0, k] += first
        out[1, k] += second


class FortranDesign(Design):
    """An array in Fortran order, as data frames give it."""

    def __init__(self, X: NDArray) -> None:
        self._columns = X.T
        self.n_rows, self.n_columns = X.shape

    def scores(self, w: Vector) -> Vector:
        _refuse_other_length(w, self.n_columns)
        out = np.empty(self.n_rows)
        in_row_chunks(
            lambda a, b: _column_scores(self._columns, w, a, b, out),
            self.n_rows,
            self.n_rows * self.n_columns,
        )
        return out

    def adjoints(self, G: Vector) -> Vector:
        return self._sums(_column_adjoint, G, n_sums=G.shape[0])

    def moments(self, g: Vector, about: Vector | None = None) -> tuple[Vector, Vector, Vector]:
        about = np.zeros(self.n_columns) if about is None else about
        first, second = self._sums(_column_moments, g, about, n_sums=2)
        return first, second, np.full(self.n_columns, g.sum())

    def _sums(self, kernel: Callable, *arrays: Vector, n_sums: int) -> Vector:
        return summed_over_chunks(
            lambda a, b, out: kernel(self._columns, *arrays, a, b, out),
            self.n_rows,
            (n_sums, self.n_columns),
            self.n_rows * self.n_columns,
        )

    def rows(self, index: Index) -> Design:
        # Single rows of a Fortran array are scattered over memory: a small copy in C order is read
        # many times after.
        return DenseDesign(np.ascontiguousarray(self._columns[:, index].T))

    def columns(self, begin: int, end: int) -> NDArray[np.float64]:
        return np.ascontiguousarray(self._columns[begin:end].T, dtype=float)


@compiled
def _csr_scores(data, indices, indptr, index, w, begin, end, out):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        r = index[i] if index.size else i
        total = 0.0
        for k in range(indptr[r], indptr[r + 1]):
            total += data[k] * w[indices[k]]
        out[i] = total


@compiled
def _csr_adjoint(data, indices, indptr, index, G, begin, end, out):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        row = index[i] if index.size else i
        for r in range(G.shape[0]):
            v = G[r, i]
            if v != 0.0:
                for k in range(indptr[row], indptr[row + 1]):
                    out[r, indices[k]] += v * data[k]


@compiled
def _csr_moment(data, indices, indptr, index, g, about, power, begin, end, out):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        row = index[i] if index.size else i
        for k in range(indptr[row], indptr[row + 1]):
            value = g[i]
            if power > 0:
                difference = data[k] - about[indices[k]] if about.size else data[k]
                value *= difference
                if power > 1:
                    value *= difference
            out[0, indices[k]] += value


@compiled
def _csr_columns(data, indices, indptr, index, begin, out):  # type: ignore[no-untyped-def]
    for i in range(out.shape[0]):
        row = index[i] if index.size else i
        for k in range(indptr[row], indptr[row + 1]):
            column = np.int64(indices[k]) - begin
            if 0 <= column < out.shape[1]:
                out[i, column] += data[k]


class CSRDesign(Design):
    """Rows of a CSR matrix, all of them or those in `index`."""

    def __init__(
        self,
        data: NDArray,
        indices: NDArray,
        indptr: NDArray,
        n_columns: int,
        index: Index | None = None,
    ) -> None:
        # Unsigned indices spare the kernels the test for negative ones.
        self._csr = data, indices.view(np.dtype(f"u{indices.dtype.itemsize}")), indptr
        self._index = np.empty(0, dtype=np.intp) if index is None else index
        self.n_rows = indptr.size - 1 if index is None else index.size
        self.n_columns = n_columns
        self._stored = int(data.size * (self.n_rows / max(indptr.size - 1, 1)))

    @property
    def n_entries(self) -> int:
        return self._stored

    def scores(self, w: Vector) -> Vector:
        _refuse_other_length(w, self.n_columns)
        out = np.empty(self.n_rows)
        in_row_chunks(
            lambda a, b: _csr_scores(*self._csr, self._index, w, a, b, out),
            self.n_rows,
            self._stored,
        )
        return out

    def adjoints(self, G: Vector) -> Vector:
        return self._sums(_csr_adjoint, G, n_sums=G.shape[0])

    def moments(self, g: Vector, about: Vector | None = None) -> tuple[Vector, Vector, Vector]:
        center = np.empty(0) if about is None else about
        # One at a time: sums of one kind over many columns stay in the cache, those of three do
        # not.
        presence, first, second = (
            self._sums(_csr_moment, g, center, power, n_sums=1)[0] for power in (0, 1, 2)
        )
        if about is not None:  # entries that are not stored are as far from it as zero is
            absent = g.sum() - presence
            first -= absent * about
            second += absent * about**2
        return first, second, presence

    def _sums(self, kernel: Callable, *arguments: Any, n_sums: int) -> Vector:
        return summed_over_chunks(
            lambda a, b, out: kernel(*self._csr, self._index, *arguments, a, b, out),
            self.n_rows,
            (n_sums, self.n_columns),
            self._stored,
        )

    def rows(self, index: Index) -> Design:
        return CSRDesign(
            *self._csr, self.n_columns, self._index[index] if self._index.size else index
        )

    def columns(self, begin: int, end: int) -> NDArray[np.float64]:
        out = np.zeros((self.n_rows, end - begin))
        _csr_columns(*self._csr, self._index, begin, out)
        return out

    def gram(self, a: Index, b: Index) -> NDArray[np.float64]:
        data, indices, indptr = self._csr
        signed = indices.view(np.dtype(f"i{indices.dtype.itemsize}"))
        # Sums in double precision, whatever the storage.
        X = sp.csr_array((data, signed, indptr), shape=(indptr.size - 1, self.n_columns))
        index = self._index if self._index.size else np.arange(self.n_rows)
        return (X[index[a]].astype(np.float64) @ X[index[b]].astype(np.float64).T).toarray()

    def rows_in_copy(self, room: int) -> int:
        # Only a few columns are ever dense at a time.
        return room // _COLUMN_BLOCK

    def congruence(self, multiply: Multiply, about: Vector | None = None) -> NDArray[np.float64]:
        out = np.empty((self.n_columns, self.n_columns))
        for k in range(0, self.n_columns, _COLUMN_BLOCK):
            some = slice(k, min(k + _COLUMN_BLOCK, self.n_columns))
            columns = self.columns(some.start, some.stop)
            block = multiply(columns if about is None else columns - about[some])
            out[some] = self.adjoints(np.ascontiguousarray(block.T))
            if about is not None:
                out[some] -= np.outer(block.sum(axis=0), about)
        return out


class StandardisedDesign(Design):
    """Another design with its columns shifted and divided: (X - 1 mean^T) / unit. Cost beyond its
    own: none.
    """

    def __init__(self, design: Design, mean: Vector, unit: Vector) -> None:
        self._design, self._mean, self._unit = design, mean, unit
        self.n_rows, self.n_columns = design.n_rows, design.n_columns

    @property
    def n_entries(self) -> int:
        return self._design.n_entries

    def scores(self, w: Vector) -> Vector:
        w = w / self._unit
        out = self._design.scores(w)
        out -= self._mean @ w
        return out

    def adjoints(self, G: Vector) -> Vector:
        return (self._design.adjoints(G) - np.outer(G.sum(axis=1), self._mean)) / self._unit

    def moments(self, g: Vector, about: Vector | None = None) -> tuple[Vector, Vector, Vector]:
        about = self._mean if about is None else self._mean + self._unit * about
        first, second, presence = self._design.moments(g, about)
        return first / self._unit, second / self._unit**2, presence

    def rows(self, index: Index) -> Design:
        return StandardisedDesign(self._design.rows(index), self._mean, self._unit)

    def columns(self, begin: int, end: int) -> NDArray[np.float64]:
        return (self._design.columns(begin, end) - self._mean[begin:end]) / self._unit[begin:end]

    def rows_in_copy(self, room: int) -> int:
        return self._design.rows_in_copy(room)

    def congruence(self, multiply: Multiply, about: Vector | None = None) -> NDArray[np.float64]:
        about = self._mean if about is None else self._mean + self._unit * about
        out = self._design.congruence(multiply, about)
        out /= self._unit
        out /= self._unit[:, None]
        return out


class InterceptDesign(Design):
    """Another design with a last column of ones."""

    has_intercept = True

    def __init__(self, design: Design) -> None:
        self._design = design
        self.n_rows, self.n_columns = design.n_rows, design.n_columns + 1

    @property
    def n_entries(self) -> int:
        return self._design.n_entries + self.n_rows

    def scores(self, w: Vector) -> Vector:
        out = self._design.scores(w[:-1])
        out += w[-1]
        return out

    def adjoints(self, G: Vector) -> Vector:
        return np.column_stack([self._design.adjoints(G), G.sum(axis=1)])

    def standardised(self, mean: Vector, unit: Vector) -> Design:
        return InterceptDesign(self._design.standardised(mean[:-1], unit[:-1]))

    def moments(self, g: Vector, about: Vector | None = None) -> tuple[Vector, Vector, Vector]:
        first, second, presence = self._design.moments(g, None if about is None else about[:-1])
        total, one = g.sum(), 1.0 if about is None else 1.0 - about[-1]
        return (
            np.append(first, one * total),
            np.append(second, one**2 * total),
            np.append(presence, total),
        )

    def rows(self, index: Index) -> Design:
        return InterceptDesign(self._design.rows(index))

    def columns(self, begin: int, end: int) -> NDArray[np.float64]:
        inner = self._design.columns(begin, min(end, self.n_columns - 1))
        return np.column_stack([inner, np.ones(self.n_rows)]) if end == self.n_columns else inner


class ExtraRowDesign(Design):
    """Another design with one more row, a dense one, inserted at a place; by default the last."""

    def __init__(self, design: Design, row: Vector, place: int | None = None) -> None:
        self._design, self._row = design, row
        self._place = design.n_rows if place is None else place
        self.n_rows, self.n_columns = design.n_rows + 1, design.n_columns

    @property
    def n_entries(self) -> int:
        return self._design.n_entries + self.n_columns

    def scores(self, w: Vector) -> Vector:
        return np.insert(self._design.scores(w), self._place, self._row @ w)

    def adjoints(self, G: Vector) -> Vector:
        inner = np.ascontiguousarray(np.delete(G, self._place, axis=1))
        return self._design.adjoints(inner) + np.outer(G[:, self._place], self._row)

    def moments(self, g: Vector, about: Vector | None = None) -> tuple[Vector, Vector, Vector]:
        first, second, presence = self._design.moments(np.delete(g, self._place), about)
        row = self._row if about is None else self._row - about
        of_row = g[self._place] * row
        return first + of_row, second + of_row * row, presence + g[self._place] * (self._row != 0.0)

    def rows(self, index: Index) -> Design:
        here = np.flatnonzero(index == self._place)
        design = self._design.rows(np.delete(index - (index > self._place), here))
        for place in here.tolist():
            design = ExtraRowDesign(design, self._row, place)
        return design

    def columns(self, begin: int, end: int) -> NDArray[np.float64]:
        return np.insert(
            self._design.columns(begin, end), self._place, self._row[begin:end], axis=0
        )
