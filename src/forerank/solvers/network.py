"""A network with one hidden layer, or none, fitted to an objective of its scores by L-BFGS.

The gradient with respect to the scores is that of the objective; back-propagation continues it to
the parameters. Columns are in their own units (`forerank.solvers.units`) during the fit.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

from forerank._kernels import in_row_chunks
from forerank._typing import Matrix, Vector
from forerank.design import make_design, sum_over_chunks
from forerank.objectives import AllPairs
from forerank.solvers.result import Progress, reference_norm
from forerank.solvers.units import Units, column_units

__all__ = ["Network", "fit_network"]

# Corrections that L-BFGS keeps.
_MEMORY = 20


@dataclass(frozen=True)
class Network:
    """Scores v . tanh(W x + b), or w . x, of X and one vector of parameters: W, v, b, or w."""

    n_columns: int
    n_hidden: int

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.n_columns if self.n_hidden == 0 else self.n_hidden * (self.n_columns + 2)

    def layers(self, w: Vector) -> tuple[list[Vector], list[Vector]]:
        """Weights and biases by layer; views of w."""
        if self.n_hidden == 0:
            return [w.reshape(-1, 1)], []
        end = self.n_columns * self.n_hidden
        first = w[:end].reshape(self.n_columns, self.n_hidden)
        second = w[end : end + self.n_hidden].reshape(-1, 1)
        return [first, second], [w[end + self.n_hidden :]]

    def to_standardised(self, w: Vector, units: Units) -> Vector:
        """The parameters with the same scores for columns in their own units."""
        out = w.copy()
        weights, biases = self.layers(out)
        for bias in biases:
            bias += units.mean @ weights[0]
        weights[0] *= units.unit[:, None]
        return out

    def to_columns(self, w: Vector, units: Units) -> Vector:
        """The parameters with the same scores for the original columns."""
        out = w.copy()
        weights, biases = self.layers(out)
        weights[0] /= units.unit[:, None]
        for bias in biases:
            bias -= units.mean @ weights[0]
        return out

    def standardised_gradient(self, gradient: Vector, units: Units) -> Vector:
        """The gradient with respect to the parameters for columns in their own units."""
        out = gradient.copy()
        weights, biases = self.layers(out)
        for bias in biases:
            weights[0] -= np.outer(units.mean, bias)
        weights[0] /= units.unit[:, None]
        return out

    def penalised(self) -> Vector:
        """1 for parameters with a penalty, 0 for the biases."""
        out = np.ones(self.size)
        if self.n_hidden:
            out[-self.n_hidden :] = 0.0
        return out

    def draw(self, rng: np.random.RandomState) -> Vector:
        """Initial weights, with a variance of one over the number of inputs of their layer."""
        w = np.zeros(self.size)
        if self.n_hidden:
            (first, second), (bias,) = self.layers(w)
            first[:] = rng.standard_normal(first.shape) / np.sqrt(self.n_columns)
            second[:] = rng.standard_normal(second.shape) / np.sqrt(self.n_hidden)
            bias[:] = rng.uniform(-0.5, 0.5, bias.shape)
        return w

    def hidden(self, X: Matrix, w: Vector) -> NDArray | None:
        """Activations of the hidden layer, if there is one."""
        if self.n_hidden == 0:
            return None
        (first, _), (bias,) = self.layers(w)
        first, bias = first.astype(X.dtype), bias.astype(X.dtype)
        out = np.empty((X.shape[0], self.n_hidden), dtype=X.dtype)

        def some_rows(begin: int, end: int) -> None:
            out[begin:end] = X[begin:end] @ first
            out[begin:end] += bias
            np.tanh(out[begin:end], out=out[begin:end])

        in_row_chunks(some_rows, X.shape[0], self._work(X))
        return out

    def output(self, X: Matrix, hidden: NDArray | None, w: Vector) -> Vector:
        """Scores from the activations."""
        last = self.layers(w)[0][-1][:, 0].astype(X.dtype)
        return np.asarray((X if hidden is None else hidden) @ last, dtype=float)

    def scores(self, X: Matrix, w: Vector) -> Vector:
        """Scores of the rows of X."""
        return self.output(X, self.hidden(X, w), w)

    def back_propagate(self, X: Matrix, hidden: NDArray | None, w: Vector, g: Vector) -> Vector:
        """The gradient with respect to the parameters, from that with respect to the scores."""
        g = g.astype(X.dtype)
        if hidden is None:
            return np.asarray(X.T @ g, dtype=float)
        (_, second), _ = self.layers(w)
        v = second[:, 0].astype(X.dtype)

        def some_rows(begin: int, end: int, out: Vector) -> None:
            (first_out, second_out), (bias_out,) = self.layers(out)
            h, g_rows = hidden[begin:end], g[begin:end]
            g_hidden = (1.0 - h * h) * np.outer(g_rows, v)
            first_out += X[begin:end].T @ g_hidden
            second_out[:, 0] += h.T @ g_rows
            bias_out += g_hidden.sum(axis=0)

        return sum_over_chunks(some_rows, X.shape[0], (self.size,), self._work(X))

    def _work(self, X: Matrix) -> int:
        """Multiplications of a pass, for the number of threads; 0 for sparse X, used whole."""
        return 0 if sp.issparse(X) else X.shape[0] * self.n_hidden * (self.n_columns + 50)


def fit_network(
    objective: AllPairs,
    network: Network,
    X: Matrix,
    alpha: float,
    *,
    rng: np.random.RandomState,
    start: Vector | None,
    tol: float,
    max_iter: int,
    progress: Progress,
) -> None:
    """Minimise F(scores) + alpha/2 ||weights||^2 by L-BFGS; the result is in `progress`.

    Without `start`, initial weights are drawn. Stops at a gradient norm of tol relative to that of
    F at drawn weights, also with `start`.
    """
    units = column_units(objective, make_design(X))
    drawn = network.to_columns(network.draw(rng), units)
    start = drawn if start is None else start
    penalty = alpha * network.penalised()
    latest: tuple[Vector, float, float] = (start, np.inf, np.inf)

    def value_and_gradient(standardised: Vector) -> tuple[float, Vector]:
        nonlocal latest
        w = network.to_columns(standardised, units)
        hidden = network.hidden(X, w)
        there = objective.at(network.output(X, hidden, w))
        gradient = network.back_propagate(X, hidden, w, there.gradient) + penalty * w
        gradient = network.standardised_gradient(gradient, units)
        value = there.value + 0.5 * float(penalty @ w**2)
        latest = w, value, float(np.linalg.norm(gradient))
        return value, gradient

    def record() -> bool:
        """Record the latest evaluation, and whether it meets the tolerance."""
        w, value, norm = latest
        progress.record(w, X.shape[0], value, norm / reference if reference > 0.0 else 0.0)
        return progress.history[-1].optimality <= tol

    def callback(intermediate_result: OptimizeResult) -> None:
        if record():  # the accepted point is the one evaluated last
            raise StopIteration

    hidden = network.hidden(X, drawn)
    g = objective.at(network.output(X, hidden, drawn)).gradient
    at_drawn = (network.back_propagate(X, hidden, drawn, each) for each in (g, np.abs(g)))
    reference = reference_norm(*(network.standardised_gradient(each, units) for each in at_drawn))
    begin = network.to_standardised(start, units)
    value_and_gradient(begin)
    latest = start, *latest[1:]  # without the rounding of the change of units
    if record():
        return
    options = {"maxiter": max_iter, "maxfun": 2 * max_iter + 20, "maxcor": _MEMORY}
    options |= {"ftol": 0, "gtol": 0}  # the callback stops
    minimize(
        value_and_gradient, begin, jac=True, method="L-BFGS-B", callback=callback, options=options
    )
