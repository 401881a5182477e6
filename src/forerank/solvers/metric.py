"""An approximation of a Hessian that steps improve."""

from collections.abc import Mapping

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from forerank._typing import Vector

__all__ = ["Metric"]

# Smallest factor by which the Hessian is reduced: a step may lead where there is no curvature.
_SMALLEST_SCALE = 0.01


class Metric:
    """A Hessian at some weights, plus a penalty, with the updates of BFGS from the steps since.

    The updates make it exact along the steps, also where the curvature has changed. Where the first
    step finds a smaller curvature than that of the Hessian, all of it is reduced by this factor:
    from equal scores on, the curvature of most losses decreases everywhere. On a path of penalties
    it does not, since the fit before was near. Called with a vector,
    it returns the product of its inverse with it. Cost: d^3 / 3 for the Cholesky factor, d^2 for a
    product.

    Parameters
    ----------
    hessian : array of shape (d, d), or (d,) for a diagonal one
        That of the objective without the penalty.
    least : array of shape (d,)
        Lower bounds on its diagonal.
    penalty : array of shape (d,)
    """

    def __init__(self, hessian: Vector, least: Vector, penalty: Vector) -> None:
        on_diagonal = np.diag_indices(penalty.size)[: hessian.ndim]
        hessian[on_diagonal] = np.maximum(hessian[on_diagonal], least)
        self._hessian = hessian
        # Steps, and the changes of the gradient over them.
        self._steps: list[tuple[Vector, Vector]] = []
        self._scale = 1.0
        self._set_factor(penalty)

    def _set_factor(self, penalty: Vector) -> None:
        self._penalty = penalty
        matrix = self._hessian.copy(order="F")
        on_diagonal = np.diag_indices(penalty.size)[: matrix.ndim]
        self._diagonal = (matrix[on_diagonal] + penalty) * (1.0 + 1e-8)
        # Without curvature and penalty, as for an intercept, the gradient is the direction.
        self._diagonal[~(self._diagonal > 0.0)] = 1.0
        if matrix.ndim == 1:
            self._factor = None
            return
        matrix[on_diagonal] = self._diagonal
        factor, failed = dpotrf(matrix, lower=1, overwrite_a=1)
        self._factor = None if failed else factor

    @property
    def n_steps(self) -> int:
        """Number of updates."""
        return len(self._steps)

    def state(self) -> dict[str, Vector]:
        """Arrays that `restore` takes, and the Hessian."""
        steps, changes = (
            np.array([pair[k] for pair in self._steps]).reshape(-1, self._penalty.size)
            for k in (0, 1)
        )
        scale = np.array(self._scale)
        return {"hessian": self._hessian, "steps": steps, "changes": changes, "scale": scale}

    def restore(self, state: Mapping[str, Vector]) -> None:
        """Take the updates of another metric with the same Hessian and penalty."""
        self._steps = list(zip(state["steps"], state["changes"], strict=True))
        self._scale = float(state["scale"])

    def change_penalty(self, penalty: Vector) -> None:
        """Replace the penalty."""
        if penalty is not self._penalty:
            change = penalty - self._penalty
            steps, self._steps = self._steps, []
            self._set_factor(penalty)
            for step, of_gradient in steps:
                self.update(step, of_gradient + change * step, reduce=False)

    def update(self, step: Vector, change: Vector, *, reduce: bool = True) -> None:
        """Use that the gradient, penalty included, changed by `change` over a step; with `reduce`,
        the first step may reduce all of the Hessian.
        """
        found = float(step @ change)
        if found > 0.0:
            if reduce and not self._steps:
                product = self._hessian @ step if self._hessian.ndim == 2 else self._hessian * step
                expected = float(step @ product + self._penalty @ step**2)
                if expected > 0.0:
                    self._scale = min(1.0, max(found / expected, _SMALLEST_SCALE))
            self._steps.append((step, change))

    def __call__(self, r: Vector) -> Vector:
        r, shares = r.copy(), []
        for step, change in reversed(self._steps):
            shares.append(float(step @ r) / float(step @ change))
            r -= shares[-1] * change
        out = self._inverse(r) / self._scale
        for (step, change), share in zip(self._steps, reversed(shares), strict=True):
            out += (share - float(change @ out) / float(step @ change)) * step
        return out

    def _inverse(self, r: Vector) -> Vector:
        """The product of the inverse with r, without the updates."""
        if self._factor is None:
            with np.errstate(over="ignore"):
                return r / self._diagonal
        return dpotrs(self._factor, r, lower=1)[0]
