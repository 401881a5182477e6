"""Kernels of rankers: functions of two rows by their scikit-learn names, and their features."""

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from scipy.linalg import eigh, lstsq

from forerank._typing import Matrix, Vector
from forerank._validation import check_choice, check_number, is_number

__all__ = ["KERNELS", "Kernel", "NystroemFeatures", "same_rows"]

KERNELS = ("linear", "rbf", "laplacian", "poly", "cosine")
# Entries of a block of the kernel matrix in `Kernel.scores` (32 MB).
_BLOCK = 1 << 22
# Eigenvalues below this share of the largest one are rounding errors.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Kernel:
    """A positive semidefinite kernel with its parameters, as in `sklearn.metrics.pairwise`."""

    name: str
    gamma: float | None = None
    degree: int = 3
    coef0: float = 1.0

    def check(self) -> None:
        """ValueError for parameters with which it is no kernel."""
        check_choice("kernel", self.name, KERNELS)
        if self.gamma is not None:
            check_number("gamma", self.gamma, low=0.0, strict=True)
        check_number("degree", self.degree, low=1, integer=True)
        if not (is_number(self.coef0) and isfinite(self.coef0) and self.coef0 >= 0.0):
            raise ValueError(f"coef0 must be a number >= 0; got {self.coef0!r}.")

    def matrix(self, X: Matrix, Y: Matrix) -> Vector:
        """k(x, y) for the rows of X and Y, as doubles. Cost: a product of X and Y^T."""
        # Imported here: it loads sklearn.preprocessing, and with it rich.
        from sklearn.metrics.pairwise import pairwise_kernels

        given = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        values = pairwise_kernels(X, Y, metric=self.name, filter_params=True, **given)
        return np.asarray(values, dtype=np.float64)

    def scores(self, X: Matrix, rows: Matrix, coefficients: Vector) -> Vector:
        """sum_i coefficients_i k(x, rows_i) for the rows of X, in blocks of these."""
        step = max(1, _BLOCK // rows.shape[0])
        parts = [
            self.matrix(X[begin : begin + step], rows) @ coefficients
            for begin in range(0, X.shape[0], step)
        ]
        return np.concatenate(parts)


@dataclass(frozen=True)
class NystroemFeatures:
    """Features whose inner products approximate a kernel, by its values at some of the rows.

    With the kernel matrix K of these rows, the features of x are k(x, rows) K^(-1/2), on the range
    of K. The symmetric root gives columns of similar size, as solvers with a unit for each column
    need.

    Attributes
    ----------
    values : array of shape (n_rows, n_components)
    root : array of shape (n_components, n_components)
        K^(-1/2).
    """

    values: Vector
    root: Vector

    @classmethod
    def of(cls, kernel: Kernel, X: Matrix, rows: Matrix) -> "NystroemFeatures":
        """The features of X. Cost: N n_components^2 + n_components^3."""
        eigenvalues, vectors = eigh(kernel.matrix(rows, rows))
        kept = eigenvalues > _ROUNDING * max(float(eigenvalues[-1]), 0.0)
        root = (vectors[:, kept] / np.sqrt(eigenvalues[kept])) @ vectors[:, kept].T
        return cls(kernel.matrix(X, rows) @ root, root)

    def coefficients(self, weights: Vector) -> Vector:
        """Coefficients of the kernel functions of the rows, for weights of the features."""
        return self.root @ weights

    def weights_of(self, coefficients: Vector) -> Vector:
        """The shortest weights of the features with these coefficients, on the range of K."""
        return lstsq(self.root, coefficients)[0]


def same_rows(a: Any, b: Any) -> bool:
    """Whether two matrices, dense or sparse, have equal entries."""
    if type(a) is not type(b) or a.shape != b.shape:
        return False
    return bool(abs(a - b).max() == 0.0)
