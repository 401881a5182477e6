"""The design matrix X as two products: the scores X w and the adjoint X^T g.

Solvers use X only through a design, so storage is decided in this folder: dense (C or Fortran
order) and CSR with 32- or 64-bit indices, float32 or float64, never copied. Products are
accumulated in double precision, also for float32 data. A subset of rows is a design too (`rows`),
and reads the rows in place. Large products run on several threads, each on a part of the rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from forerank._kernels import compiled, in_row_chunks, number_of_chunks
from forerank._typing import Index, Matrix, Vector

__all__ = ["Design", "StoredDesign", "sum_over_chunks", "symmetric"]

# Columns of the dense copies of rows in `gram`.
_GRAM_BLOCK = 4096
# Entries of the arrays of `row_blocks` (256 KB).
_ENTRIES_OF_BLOCK = 2**15


class Design(ABC):
    """A matrix of n_rows x n_columns, known through its products.

    Each product costs the number of stored entries.
    """

    n_rows: int
    n_columns: int
    # Whether the last column is constant one and has no penalty.
    has_intercept = False
    # Whether `row_matrix` gives the rows.
    has_single_rows = False
    # Whether numbers by row are tensors on a device, and numbers by column arrays on the host.
    is_on_device = False
    # Cost of an iteration or a Hessian over all rows, in the unit of `gram_cost` (about a
    # nanosecond), up to which a sample of the rows would save less than its fixed costs.
    small_cost = 1.5e6
    # Rows of a sample from which a fit starts, as a fraction of all rows.
    sample_fraction = 1 / 8

    @property
    def n_entries(self) -> int:
        """Number of stored entries."""
        return self.n_rows * self.n_columns

    def zero_scores(self) -> Vector:
        """A zero for each row."""
        return np.zeros(self.n_rows)

    @abstractmethod
    def scores(self, w: Vector) -> Vector:
        """X w."""

    @abstractmethod
    def adjoints(self, G: Vector) -> Vector:
        """X^T g for each row g of G, in one pass over X."""

    def adjoint(self, g: Vector) -> Vector:
        """X^T g."""
        return self.adjoints(g[None, :])[0]

    @abstractmethod
    def moments(self, g: Vector, about: Vector | None = None) -> tuple[Vector, Vector, Vector]:
        """X^T g, (X * X)^T g and (X != 0)^T g; stored entries count as non-zero.

        With `about`, the first two are those of X - 1 about^T: the squares of a column with a large
        mean would lose its variation to cancellation.
        """

    @property
    def is_dense(self) -> bool:
        """Whether all entries are stored."""
        return self.n_entries >= self.n_rows * self.n_columns

    def stored(self, g: Vector) -> Vector:
        """(X != 0)^T g; stored entries count as non-zero."""
        return np.full(self.n_columns, g.sum()) if self.is_dense else self.moments(g)[2]

    @abstractmethod
    def rows(self, index: Index) -> "Design":
        """The design of the rows `index`, in the order given."""

    @abstractmethod
    def columns(self, begin: int, end: int) -> NDArray[np.float64]:
        """The columns begin .. end - 1 as a dense array in C order; for small samples of rows."""

    def row_block(self, begin: int, end: int) -> NDArray[np.float64]:
        """The rows begin .. end - 1 as a dense array, which may share memory with X."""
        return self.rows(np.arange(begin, end)).columns(0, self.n_columns)

    def row_blocks(self) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
        """All rows as dense arrays, each with its range; an array fits into the cache."""
        size = max(_ENTRIES_OF_BLOCK // max(self.n_columns, 1), 64)
        for begin in range(0, self.n_rows, size):
            end = min(begin + size, self.n_rows)
            yield begin, end, self.row_block(begin, end)

    @property
    def gram_cost(self) -> float:
        """Time of `weighted_gram` per row, relative to that of one entry in `scores`. Measured."""
        return 0.07 * self.n_columns**2 + 3.0 * self.n_columns

    def weighted_gram(self, weight: Vector) -> NDArray[np.float64]:
        """X^T diag(weight) X for weights that are not negative. Cost: N d^2 / 2."""
        return self.gram_of_blocks(weight)

    def gram_of_blocks(self, weight: Vector) -> NDArray[np.float64]:
        """`weighted_gram` from the entries of `row_blocks`, without sums that cancel."""
        root, upper = np.sqrt(weight), np.zeros((self.n_columns, self.n_columns), order="F")
        for begin, end, X in self.row_blocks():
            scaled = X * root[begin:end, None]
            upper = dsyrk(1.0, scaled.T, beta=1.0, c=upper, overwrite_c=1)
        return symmetric(upper)

    def bin_sums(self, weight: Vector, bins: Index, n_bins: int) -> NDArray[np.float64]:
        """The weighted sum of the rows of each bin. Cost: that of a product."""
        sums = np.zeros((n_bins, self.n_columns))
        for begin, end, X in self.row_blocks():
            _add_to_bins(X, weight[begin:end], bins[begin:end], sums)
        return sums

    def row_matrix(self) -> Matrix:
        """The array (C order) or CSR matrix, for solvers that read single rows."""
        raise NotImplementedError

    def gram(self, a: Index, b: Index) -> NDArray[np.float64]:
        """Inner products of the rows a with the rows b; columns are copied in blocks."""
        out = np.zeros((a.size, b.size))
        if out.size:
            first, second = self.rows(a), self.rows(b)
            for k in range(0, self.n_columns, _GRAM_BLOCK):
                end = min(k + _GRAM_BLOCK, self.n_columns)
                out += first.columns(k, end) @ second.columns(k, end).T
        return out


@compiled
def _add_to_bins(X, weight, bins, sums):  # type: ignore[no-untyped-def]
    for i in range(weight.size):
        x, c, v = X[i], sums[bins[i]], weight[i]
        for k in range(c.size):
            c[k] += v * x[k]


def symmetric(upper: Vector) -> NDArray[np.float64]:
    """The symmetric matrix with this upper triangle; zeros are below it."""
    out = upper + upper.T
    out.flat[:: out.shape[0] + 1] *= 0.5
    return out


class StoredDesign(Design):
    """A matrix in memory whose products are compiled kernels over ranges of rows.

    Kernels take the arrays of the matrix, their own arguments, the range and the output.
    """

    _arrays: tuple[NDArray, ...]
    # Kernels of X w, of X^T G, and of the first two moments.
    _kernels: ClassVar[tuple[Callable, Callable, Callable]]

    def scores(self, w: Vector) -> Vector:
        if len(w) != self.n_columns:  # compiled code would read beyond the end of w
            raise ValueError(f"w has {len(w)} weights for {self.n_columns} columns.")
        kernel, out = self._kernels[0], np.empty(self.n_rows)
        in_row_chunks(lambda a, b: kernel(*self._arrays, w, a, b, out), self.n_rows, self.n_entries)
        return out

    def adjoints(self, G: Vector) -> Vector:
        return self._sums(self._kernels[1], G, n_sums=G.shape[0])

    def moments(self, g: Vector, about: Vector | None = None) -> tuple[Vector, Vector, Vector]:
        about = np.zeros(self.n_columns) if about is None else about
        first, second = self._sums(self._kernels[2], g, about, n_sums=2)
        return first, second, np.full(self.n_columns, g.sum())

    def _sums(self, kernel: Callable, *arguments: Any, n_sums: int) -> Vector:
        return sum_over_chunks(
            lambda a, b, out: kernel(*self._arrays, *arguments, a, b, out),
            self.n_rows,
            (n_sums, self.n_columns),
            self.n_entries,
        )


def sum_over_chunks(
    work: Callable[[int, int, Vector], None],
    n_rows: int,
    shape: tuple[int, ...],
    multiplications: int,
) -> Vector:
    """Sum of the arrays `out` that work(begin, end, out) fills, one for each chunk of rows."""
    if number_of_chunks(multiplications) == 1:
        total = np.zeros(shape)
        work(0, n_rows, total)
        return total
    parts: list[tuple[int, Vector]] = []

    def one(begin: int, end: int) -> None:
        out = np.zeros(shape)
        work(begin, end, out)
        parts.append((begin, out))

    in_row_chunks(one, n_rows, multiplications)
    # Threads finish in varying order; a fixed order of addition makes results reproducible.
    parts.sort(key=lambda part: part[0])
    total = parts[0][1]
    for _, out in parts[1:]:
        total += out
    return total
