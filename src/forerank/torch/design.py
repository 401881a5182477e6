"""A tensor X as products, for the solvers of `forerank.solvers`.

Numbers by row (scores, gradients, weights of rows) are tensors in double precision on the device of
X; numbers by column (weights, adjoints) are arrays on the host, which are short. X is never copied,
but for samples of its rows, and parts of it in double precision. All sums are in double precision.
On a GPU with Triton, products with up to 128 columns read X once (`forerank.torch.kernels`); other
products convert a part of the rows after the other.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from forerank._typing import Vector
from forerank.design import Design

__all__ = ["TensorDesign"]

# Rows of a part of a Gram matrix: enough parts for all units of a GPU.
_PART = 4096
# Entries of a copy in double precision: 64 MB on a device, and what a processor's cache holds on
# the host (512 KB).
_COPY, _COPY_ON_HOST = 2**23, 2**16
# Cost, in the unit of `Design.gram_cost`, of launching the kernels of an iteration on a GPU: with
# fewer rows than this pays for, a sample saves nothing. About 200,000 rows of 28 columns.
_SMALL_COST_ON_GPU = 2e7
# Rows of the sample from which a fit on a GPU starts, and its largest share of all rows.
_SAMPLE_ON_GPU = 200_000


def _gpu_kernels(X: Tensor) -> Any:
    """The module of GPU kernels, or None where it cannot be used with X."""
    if X.device.type != "cuda" or torch.version.hip is not None:
        return None
    try:
        from forerank.torch import kernels
    except ImportError:
        return None
    return kernels if X.shape[1] <= kernels.MOST_COLUMNS and X.is_contiguous() else None


def _to_host(values: Tensor) -> NDArray[np.float64]:
    return values.cpu().numpy()


class TensorDesign(Design):
    """(X - 1 mean^T) / unit for a tensor X, with a last column of ones if `intercept`.

    Parameters
    ----------
    X : float32 or float64 tensor of shape (n_rows, n_columns)
    mean, unit : arrays, optional
        By column of X, on the host.
    """

    is_on_device = True

    def __init__(
        self,
        X: Tensor,
        *,
        intercept: bool = False,
        mean: Vector | None = None,
        unit: Vector | None = None,
    ) -> None:
        self._X, self.has_intercept = X, intercept
        d = X.shape[1]
        self._mean = np.zeros(d) if mean is None else mean
        self._unit = np.ones(d) if unit is None else unit
        self.n_rows, self.n_columns = X.shape[0], d + intercept
        self._kernels = _gpu_kernels(X)
        if X.device.type != "cpu":
            self.small_cost = _SMALL_COST_ON_GPU
            self.sample_fraction = min(1 / 8, _SAMPLE_ON_GPU / max(self.n_rows, 1))

    def standardised(self, mean: Vector, unit: Vector) -> "TensorDesign":
        """The design in the units of its columns."""
        d = self._X.shape[1]
        return TensorDesign(
            self._X, intercept=self.has_intercept, mean=mean[:d].copy(), unit=unit[:d].copy()
        )

    def _tensor(self, values: Any, dtype: torch.dtype = torch.float64) -> Tensor:
        return torch.as_tensor(values, dtype=dtype, device=self._X.device)

    def zero_scores(self) -> Any:
        return torch.zeros(self.n_rows, dtype=torch.float64, device=self._X.device)

    def scores(self, w: Vector) -> Any:
        d = self._X.shape[1]
        by_column = w[:d] / self._unit
        constant = (float(w[d]) if self.has_intercept else 0.0) - float(self._mean @ by_column)
        if self._kernels is not None:
            return self._kernels.scores(self._X, self._tensor(np.append(by_column, constant)))
        weights = self._tensor(by_column)
        out = self.zero_scores()
        for rows, X in self._copies():
            torch.mv(X, weights, out=out[rows])
        return out.add_(constant)

    def adjoint(self, g: Any) -> Vector:
        found = self._product(g) if self._kernels is None else self._kernels.adjoint(self._X, g)
        product = _to_host(found)
        total = float(product[-1])
        return self._completed((product[:-1] - total * self._mean) / self._unit, total)

    def _completed(self, by_column: Vector, of_intercept: float) -> Vector:
        return np.append(by_column, of_intercept) if self.has_intercept else by_column

    def _product(self, g: Tensor) -> Tensor:
        """X^T g, and behind it the sum of g."""
        total = torch.zeros(self._X.shape[1], dtype=torch.float64, device=self._X.device)
        for rows, X in self._copies():
            total += g[rows] @ X
        return torch.cat([total, g.sum().reshape(1)])

    def adjoints(self, G: Any) -> Vector:
        return np.stack([self.adjoint(g) for g in G])

    def _copies(self) -> Iterator[tuple[slice, Tensor]]:
        """Ranges of rows with X in double precision."""
        for rows in self._row_ranges():
            yield rows, self._X[rows].to(torch.float64)

    def moments(self, g: Any, about: Vector | None = None) -> tuple[Vector, Vector, Vector]:
        d = self._X.shape[1]
        about = np.zeros(self.n_columns) if about is None else about
        sums = self._tensor(np.zeros((2, d)))
        centre = self._tensor(self._mean + self._unit * about[:d])
        for rows, X in self._copies():
            difference = X - centre
            sums[0] += g[rows] @ difference
            sums[1] += g[rows] @ difference.square_()
        total = float(g.sum())
        first, second = _to_host(sums)
        one = 1.0 - about[-1] if self.has_intercept else 1.0
        return (
            self._completed(first / self._unit, one * total),
            self._completed(second / self._unit**2, one**2 * total),
            np.full(self.n_columns, total),
        )

    def rows(self, index: Any) -> "TensorDesign":
        chosen = torch.as_tensor(index, device=self._X.device)
        return TensorDesign(
            self._X[chosen], intercept=self.has_intercept, mean=self._mean, unit=self._unit
        )

    def columns(self, begin: int, end: int) -> Any:
        return self._standardised_rows(slice(None))[:, begin:end]

    def _standardised_rows(self, rows: slice) -> Tensor:
        X = self._X[rows].to(torch.float64) - self._tensor(self._mean)
        X = X / self._tensor(self._unit)
        return torch.cat([X, X.new_ones(X.shape[0], 1)], dim=1) if self.has_intercept else X

    def _row_ranges(self) -> Iterator[slice]:
        size = max(1, (_COPY if self._X.device.type != "cpu" else _COPY_ON_HOST) // self.n_columns)
        for begin in range(0, self.n_rows, size):
            yield slice(begin, min(begin + size, self.n_rows))

    def weighted_gram(self, weight: Any) -> Vector:
        d = self.n_columns
        out = self._tensor(np.zeros((d, d)))
        for rows in self._row_ranges():
            X = self._standardised_rows(rows)
            weighted = weight[rows, None] * X
            whole = X.shape[0] // _PART * _PART
            # One product for each part of the rows: a single one would use few units of a GPU.
            parts = (each[:whole].reshape(-1, _PART, d) for each in (X, weighted))
            first, second = parts
            out += torch.bmm(first.transpose(1, 2), second).sum(0)
            out += X[whole:].T @ weighted[whole:]
        return _to_host(out)

    def bin_sums(self, weight: Any, bins: Any, n_bins: int) -> Vector:
        out = self._tensor(np.zeros(n_bins * self.n_columns))
        columns = torch.arange(self.n_columns, device=self._X.device)
        for rows in self._row_ranges():
            weighted = weight[rows, None] * self._standardised_rows(rows)
            # One flat index: additions by rows of a matrix are slow on the host.
            place = bins[rows, None] * self.n_columns + columns
            out.index_add_(0, place.reshape(-1), weighted.reshape(-1))
        return _to_host(out).reshape(n_bins, self.n_columns)
