"""Base of the linear rankers: fitting by a solver, paths of penalties, scoring."""

from collections.abc import Callable, Iterator, Sequence
from os import PathLike, fspath
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from forerank._kernels import serial_blas
from forerank._typing import Vector
from forerank._validation import check_choice, check_number, is_dask, is_tensor
from forerank.design import Design, make_design
from forerank.estimators.base import BaseRanker, warn_equal_scores, warn_unconverged
from forerank.estimators.dask_scores import lazy_scores
from forerank.estimators.tensors import host_array, on_device, tensor_scores
from forerank.solvers import Progress, SolverResult, choose_solver, minimise
from forerank.solvers.path import AlphaPath, NewtonPath, Solve, check_alphas, extrapolate

__all__ = ["CHECKPOINT_PARAMETER", "LINEAR_ATTRIBUTES", "LINEAR_PARAMETERS", "LinearRanker"]

_LOSSES = ("exponential", "hinge", "logistic", "squared", "squared_hinge")

LINEAR_PARAMETERS = """warm_start : bool, default=False
        Whether a second call of fit starts from the weights of the first.
    verbose : bool, default=False
        Whether to print each iteration."""

CHECKPOINT_PARAMETER = """checkpoint : str, path or None, default=None
        File of a long fit on rows of `forerank.open_rows` or on a Dask collection: the weights so
        far are written to it after every evaluation over all rows. A fit that finds it continues
        from there; it is removed when the fit ends. A file of another problem is an error, and so
        is a checkpoint for rows in memory or for a path of alphas."""

LINEAR_ATTRIBUTES = """n_iter_ : int
        Iterations over all rows.
    objective_ : float
        The minimum reached.
    optimality_ : float
        The certificate reached; see `tol`. It does not depend on the units of the columns.
    gap_ : float
        Upper bound on `objective_` minus the minimum; infinity where none is known: for alpha = 0,
        and for smooth losses with an intercept, which has no penalty.
    history_ : list of forerank.solvers.Iteration
        Objective and certificate before every iteration.
    n_features_in_ : int
    feature_names_in_ : array
        Only where X has column names."""


class LinearRanker(BaseRanker):
    """Base of the linear rankers."""

    loss: str
    alpha: float
    tol: float
    max_iter: int
    warm_start: bool
    verbose: bool
    # Only a parameter of rankers that fit rows in parts; their models of earlier versions lack it.
    checkpoint: str | PathLike[str] | None = None
    # Dual variables of the last fit, for a warm start.
    _dual: Vector | None = None
    # Set on the copy that is fitted along a path of penalties.
    _on_path = False
    _path: NewtonPath | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The state, with a checkpoint as text: model files hold no paths."""
        state = super().__getstate__()
        if isinstance(state.get("checkpoint"), PathLike):
            state = state | {"checkpoint": fspath(state["checkpoint"])}
        return state

    def _check_parameters(self) -> None:
        check_choice("loss", self.loss, _LOSSES)
        check_number("alpha", self.alpha, low=0.0, strict=self.loss == "hinge")
        check_number("tol", self.tol, low=0.0, strict=True)
        check_number("max_iter", self.max_iter, low=1, integer=True)

    def alpha_path(
        self, X: ArrayLike, y: ArrayLike, alphas: int | ArrayLike = 10, **rows: Any
    ) -> AlphaPath:
        """Fits for many penalties, from the largest to the smallest, each started from the last.

        The cost is little more than that of one fit.

        Parameters
        ----------
        X, y
            As in `fit`.
        alphas : int or array-like, default=10
            The penalties, or their number: from 10 to 1e-7 in equal ratios.
        **rows
            Further arguments of `fit`: sample_weight, qid.

        Returns
        -------
        AlphaPath
            The ranker itself is not changed.
        """
        penalties = check_alphas(alphas)
        points = [_path_point(ranker) for ranker in self.iter_path(X, y, penalties, **rows)]
        coef, intercept, objective, optimality, n_iter = map(np.array, zip(*points, strict=True))
        if is_tensor(X):
            coef, intercept = on_device(coef, X), on_device(intercept, X)
        return AlphaPath(penalties, coef, intercept, objective, optimality, n_iter)

    def iter_path(self, X: ArrayLike, y: ArrayLike, alphas: Vector, **rows: Any) -> Iterator[Self]:
        """A copy of the ranker fitted at each alpha in turn; the same object every time."""
        ranker = clone(self)
        ranker.alpha, ranker.warm_start = float(alphas[0]), True
        ranker._on_path = True
        solve = ranker._prepare(X, y, **rows)
        previous: list[Vector] = []
        for alpha in alphas:
            ranker.alpha = float(alpha)
            result = solve(previous)
            previous = previous[-2:] if result is None else [*previous[-2:], result.w]
            yield ranker

    def _prepare(self, *data: Any, **rows: Any) -> Solve:
        """Read the data; a function that fits at the present alpha."""

        def solve(previous: Sequence[Vector] = ()) -> SolverResult | None:
            self.fit(*data, **rows)
            return None

        return solve

    def _solve(
        self,
        objective: Any,
        design: Design,
        previous: Sequence[Vector] = (),
        solver: str | None = None,
    ) -> SolverResult:
        """Minimise the objective plus the penalty, by default with the solver chosen for it."""
        if solver is None:
            # A path has chosen at its first penalty.
            solver = "newton" if self._path is not None else choose_solver(objective, design)

        def run(progress: Progress) -> SolverResult:
            if self._on_path and solver == "newton":
                if self._path is None:
                    self._path = NewtonPath(objective, design, self.max_iter)
                return self._path.step(self.alpha, tol=self.tol, progress=progress)
            # Models of version 0.1 may hold a pair of dual variables and intercept.
            known = self.warm_start and isinstance(self._dual, np.ndarray)
            return minimise(
                objective,
                design,
                self.alpha,
                solver=solver,
                start=self._start(previous, intercept=design.has_intercept),
                start_dual=self._dual if known else None,
                tol=self.tol,
                max_iter=self.max_iter,
                progress=progress,
            )

        result = self._run_solver(run, intercept=design.has_intercept)
        if self.warm_start and result.dual is not None:
            self._dual = result.dual
        return result

    def _run_solver(
        self,
        run: Callable[[Progress], SolverResult],
        *,
        intercept: bool = False,
        max_iter: int | None = None,
    ) -> SolverResult:
        """Run a solver and keep its result; an interruption leaves the latest weights."""
        progress = Progress(verbose=bool(self.verbose))
        try:
            with serial_blas():
                result = run(progress)
        except KeyboardInterrupt:
            if progress.w is not None:
                self._set_weights(progress.w, intercept)
            raise
        self._set_weights(result.w, intercept)
        self.n_iter_ = result.n_iter
        self.objective_ = result.objective
        self.optimality_ = result.optimality
        self.gap_ = result.gap
        self.history_ = result.history
        if not result.converged:
            warn_unconverged(self, result.certificate, max_iter)
        elif not result.w[: result.w.size - intercept].any() and not self._on_path:
            self._warn_equal_scores()
        return result

    def _warn_equal_scores(self) -> None:
        warn_equal_scores(self)

    def _set_weights(self, w: Vector, intercept: bool) -> None:
        self.coef_ = w[None, :-1].copy() if intercept else w[None, :].copy()
        self.intercept_ = w[-1:].copy() if intercept else np.zeros(1)

    def _start(self, previous: Sequence[Vector] = (), intercept: bool = False) -> Vector | None:
        """The predicted next solution of a path, or the weights of the last fit, or None."""
        if previous:
            return extrapolate(previous)
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        coef = host_array(self.coef_)[0]
        return np.append(coef, host_array(self.intercept_)) if intercept else coef.copy()

    def decision_function(self, X: ArrayLike) -> Vector:
        """Scores; rows with higher scores are ranked above others. Cost: one product with X.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
            For a Dask collection a Dask array, which is not computed.
        """
        check_is_fitted(self)
        if is_dask(X):
            return lazy_scores(self, X)
        if is_tensor(self.coef_):
            return tensor_scores(self, X)
        scores = make_design(self._validated(X)).scores(self.coef_[0])
        scores += self.intercept_[0]
        return scores


def _path_point(ranker: Any) -> tuple[Vector, float, float, float, int]:
    """Weights, intercept, objective, optimality and iterations of a fitted ranker."""
    return (
        host_array(ranker.coef_)[0].copy(),
        float(ranker.intercept_[0]),
        float(getattr(ranker, "objective_", np.nan)),  # stochastic fits have no certificate
        float(getattr(ranker, "optimality_", np.nan)),
        int(getattr(ranker, "n_iter_", 0)),
    )
