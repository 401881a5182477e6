"""The design matrix X as two products: the scores X w and the adjoint X^T g.

Solvers use X only through a design, so storage is decided in this folder: dense (C or Fortran
order) and CSR with 32- or 64-bit indices, float32 or float64, never copied. Products are
accumulated in double precision, also for float32 data. A subset of rows is a design too (`rows`),
and reads the rows in place. Large products run on several threads, each on a part of the rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from forerank._kernels import in_row_chunks
from forerank._typing import Index, Matrix, Vector

__all__ = ["Design", "StoredDesign", "sum_over_chunks"]

# Columns of the dense copies of rows in `gram`.
_GRAM_BLOCK = 4096


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

    @property
    def n_entries(self) -> int:
        """Number of stored entries."""
        return self.n_rows * self.n_columns

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

    @abstractmethod
    def rows(self, index: Index) -> "Design":
        """The design of the rows `index`, in the order given."""

    @abstractmethod
    def columns(self, begin: int, end: int) -> NDArray[np.float64]:
        """The columns begin .. end - 1 as a dense array in C order; for small samples of rows."""

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
