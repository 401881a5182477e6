"""The ranker for a measure: methods and penalties are tried by cross-validation, and the best is
fitted on all rows.
"""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from forerank._typing import Vector
from forerank._validation import check_number, check_weights, stacklevel_outside
from forerank.design import make_design
from forerank.estimators.base import BaseRanker, available_or_remedy, refuse_more_than_two
from forerank.metrics.ranking import query_numbers
from forerank.metrics.registry import measure_named, metric_function, takes_grades
from forerank.selection.calibration import (
    calibration_folds,
    fitted_sigmoid,
    out_of_fold_scores,
    sigmoid,
)
from forerank.selection.methods import fitted_scaler, method_names
from forerank.selection.search import Data, Search, drawn
from forerank.solvers.path import check_alphas

__all__ = ["Ranker", "method_names", "metric_function"]


class Ranker(BaseRanker):
    """The best linear ranker for a measure: method and penalty are chosen by cross-validation.

    Parameters
    ----------
    metric : {"auc", "ap", "pos_at_top", "wmw", "ndcg@k", "pauc@fpr", "recall@k"}, default="auc"
        What is to be good, such as "recall@50" or "pauc@0.05". "wmw", the share of pairs in order
        (AUC where there are two classes), and "ndcg@k" take grades. "recall@k" and "ndcg@k" look at
        the first k rows of a list of `list_rows` rows, and at as large a share of the rows of a
        fold; with groups, k counts the rows of a group.
    methods : "auto" or list of str, default="auto"
        Names from `method_names()`; "auto" tries those that may be the best for the measure.
    alphas : int or array-like, default=10
        The penalties, or how many, from 10 to 1e-7 in equal ratios.
    cv : int, splitter or iterable, default=5
        Folds; an integer means stratified ones, or folds of whole groups where there are groups.
        There are no more than the smaller class has rows.
    scale : bool, default=True
        Whether columns are brought to one scale inside the folds: to unit variance, sparse ones to
        a largest size of 1.
    maps : list, optional
        Nonlinear maps to try as well, each with the first two methods: "nystroem", "fourier",
        "quadratic", or transformers.
    time_budget : float, optional
        Seconds after which nothing new is tried; the first method is always tried on one fold.
    search_rows : int or None, default=100_000
        Beyond so many rows the choice is made on that many of them, drawn at random; the fit is on
        all. None: on all, as where `cv` lists the rows of each fold. Probabilities are calibrated
        on as many.
    list_rows : int, optional
        How many rows the lists have of which "recall@k" and "ndcg@k" look at the first k; by
        default as many as X.
    calibrate : bool, default=False
        Whether to give probabilities (`predict_proba`), of two classes and without groups. A
        sigmoid is fitted to the scores of rows in test folds (those of `cv`, or five where `cv`
        lists rows), each by the chosen method and penalty fitted on the other rows. It rises with
        the score: the ranking stays as it is.
    n_jobs : int, optional
        Threads over methods and folds.
    random_state : int, RandomState or None, default=None
        For the folds and the maps.
    verbose : bool, default=False
        Whether to say what is being done.

    Attributes
    ----------
    best_method_ : str
    best_alpha_ : float
    best_score_ : float
        The mean of the measure over the test folds, of the best of all that was tried: a little too
        good.
    best_estimator_ : Pipeline
        Scaling, perhaps a map, and the ranker, fitted on all rows.
    reason_ : str
        Why this method, in a sentence.
    cv_results_ : dict
        "method", "alpha", "split0_test_score", ..., "mean_test_score", "std_test_score",
        "rank_test_score", "mean_fit_time", "left_out": an entry for each method and alpha. NaN
        where nothing was measured; "left_out" says why. The choice goes by means over an alpha and
        its two neighbours, which are less noisy.
    calibration_ : array of shape (2,)
        Slope and offset: the probability is 1 / (1 + exp(-(slope * score + offset))). Only with
        `calibrate`, which also moves `intercept_` so that a score is positive where the probability
        is above one half; the offset is zero then.
    learning_curve_ : dict
        "rows", "scores", "std": the measure with a quarter, a half and all of the training rows of
        a fold, its mean and standard deviation over the folds; "more_data_helps"; "sentence".
    coef_ : array of shape (1, n_features)
        For the columns of X as they are; not there with a map.
    intercept_ : array of shape (1,)
    classes_ : array
    n_features_in_ : int
    feature_names_in_ : array
        Only where X has column names.

    Notes
    -----
    Cost: folds x methods paths of penalties, each two to four times one fit. Methods that are
    behind by three standard errors on the first folds are left out of the others; beyond 20,000
    training rows they first have to show on 8,000 of them that they may win.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = Ranker("ap", random_state=0).fit(X, y)
    >>> round(ranker.best_score_, 3)
    0.997
    """

    # Of rankers that were saved before they had these parameters.
    list_rows: int | None = None
    calibrate = False

    def __init__(
        self,
        metric: str = "auc",
        *,
        methods: str | Sequence[str] = "auto",
        alphas: int | ArrayLike = 10,
        cv: Any = 5,
        scale: bool = True,
        maps: Sequence[Any] | None = None,
        time_budget: float | None = None,
        search_rows: int | None = 100_000,
        list_rows: int | None = None,
        calibrate: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.metric = metric
        self.methods = methods
        self.alphas = alphas
        self.cv = cv
        self.scale = scale
        self.maps = maps
        self.time_budget = time_budget
        self.search_rows = search_rows
        self.list_rows = list_rows
        self.calibrate = calibrate
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = takes_grades(self.metric)
        tags.non_deterministic = self.random_state is None
        return tags

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> Self:
        """Choose a method and a penalty, and fit them on all rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes, the one that sorts last ahead; or grades, higher ahead of lower, for "wmw"
            and "ndcg@k".
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights of the rows, in the fits and in the measure.
        qid : array-like of shape (n_samples,), optional
            The group of each row. Pairs are formed, and measures taken, inside groups; a group lies
            in one fold.

        Returns
        -------
        self
        """
        measure, alphas = measure_named(self.metric), check_alphas(self.alphas)
        if self.time_budget is not None:
            check_number("time_budget", self.time_budget, low=0.0, strict=True)
        if self.search_rows is not None:
            check_number("search_rows", self.search_rows, low=10, integer=True)
        if self.list_rows is not None:
            check_number("list_rows", self.list_rows, low=1, integer=True)
        data = self._data(X, y, sample_weight, qid)
        graded = self.classes_.size > 2
        if not measure.graded:
            refuse_more_than_two(
                self.classes_,
                'For grades choose the metric "ndcg@k" or "wmw"; or make y binary (y == label).',
            )
        self._check_calibration(data)
        n_list = self.list_rows or data.y.size
        if measure.kind == "recall" and data.group is None and (measure.k or 0) >= n_list:
            raise ValueError(
                f"metric={self.metric!r}: the first {measure.k} of {n_list} rows are all of them."
            )
        search = Search(self, measure, alphas, data, graded)
        with warnings.catch_warnings():
            # Of single fits within folds: not converged, nothing learnt, groups without pairs.
            # Here, since filters are not safe to set in threads.
            warnings.simplefilter("ignore", UserWarning)
            search.run()
            chosen, place = search.best()
            self.learning_curve_ = search.learning_curve(chosen, float(alphas[place]))
        self.best_method_ = chosen.name
        self.best_alpha_ = float(alphas[place])
        self.best_score_ = float(search.means(chosen)[place])
        self.cv_results_ = search.table()
        self.reason_ = search.reason(chosen, place)
        self._refit(
            clone(chosen.ranker),
            None if chosen.map is None else clone(search.maps[chosen.map]),
            data,
        )
        return self

    def refit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> Self:
        """Fit the chosen method and penalty on other rows, such as all of them; what was tried and
        found stays.

        Parameters
        ----------
        X, y, sample_weight, qid
            As in `fit`.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        before = dict(vars(self))
        steps = self.best_estimator_.named_steps
        try:
            mapped = clone(steps["map"]) if "map" in steps else None
            self._refit(clone(steps["rank"]), mapped, self._data(X, y, sample_weight, qid))
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _data(self, X: Any, y: Any, sample_weight: Any, qid: Any) -> "Data":
        X, codes = self._read(X, y)
        return Data(
            X,
            self._grades()[codes] if self.classes_.size > 2 else codes,
            check_weights(sample_weight, codes.size),
            None if qid is None else _in_order(query_numbers(qid, codes.size)),
        )

    def _grades(self) -> NDArray:
        """The labels as gains: numbers from the lowest on where that is negative, others by their
        place.
        """
        labels = self.classes_
        if labels.dtype.kind in "biuf":
            return labels if labels.min() >= 0 else labels - labels.min()
        return np.arange(labels.size)

    def _refit(self, ranker: Any, mapped: Any, data: Data) -> None:
        ranker.set_params(alpha=self.best_alpha_)
        self.best_estimator_ = self._pipeline(ranker, mapped, data)
        for name in ("coef_", "intercept_", "calibration_"):
            self.__dict__.pop(name, None)
        if self.calibrate:
            self._calibrate(ranker, mapped, data)
        if mapped is None:
            w = ranker.coef_[0].copy()
            shift = 0.0
            scaler = self.best_estimator_.named_steps.get("scale")
            if scaler is not None:
                w /= scaler.scale_
                shift = float(w @ scaler.mean_) if isinstance(scaler, StandardScaler) else 0.0
            self.coef_ = w[None, :]
            self.intercept_ = ranker.intercept_ - shift

    def _pipeline(self, ranker: Any, mapped: Any, data: Data) -> Pipeline:
        """Scaling, map and ranker, each fitted on these rows."""
        scaler = fitted_scaler(self.scale, data.X, data.weight)
        steps: list[tuple[str, Any]] = [] if scaler is None else [("scale", scaler)]
        Z = data.X if scaler is None else scaler.transform(data.X)
        if mapped is not None:
            steps.append(("map", mapped.fit(Z)))
            Z = mapped.transform(Z)
        ranker.fit(Z, data.y, **data.passed_to(ranker))
        return Pipeline([*steps, ("rank", ranker)])

    # -- probabilities --

    def _check_calibration(self, data: Data) -> None:
        if not self.calibrate:
            return
        if self.classes_.size > 2:
            raise ValueError(
                f"calibrate=True: probabilities are of two classes, and y has {self.classes_.size}. Make y binary "
                "(y == label), or set calibrate=False."
            )
        if data.group is not None:
            raise ValueError(
                "calibrate=True: scores that rank within groups (qid) are not comparable between groups, so they have "
                "no probabilities. Leave qid out, or set calibrate=False."
            )

    def _calibrate(self, ranker: Any, mapped: Any, data: Data) -> None:
        """Fit the sigmoid, and move the intercept of the fitted ranker so that zero has the
        probability one half.
        """
        self._check_calibration(data)
        if data.weight is not None and not data.weight.all():
            data = data.take(np.flatnonzero(data.weight))
        random = check_random_state(self.random_state)
        sample_seed, fold_seed = random.randint(np.iinfo(np.int32).max, size=2).tolist()
        if self.search_rows is not None and data.y.size > self.search_rows:
            data = data.take(drawn(data.y, None, int(self.search_rows), sample_seed))
        folds = calibration_folds(self.cv, data, fold_seed)
        if not folds:
            raise ValueError(
                "calibrate=True needs folds with rows of both classes: at least two rows of each class, and of a "
                "splitter in cv folds that have both classes among their training rows."
            )

        def fitted(rows: Data) -> Pipeline:
            return self._pipeline(clone(ranker), None if mapped is None else clone(mapped), rows)

        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # of single fits: what they say, the fit on all rows says
            scores, rows = out_of_fold_scores(fitted, data, folds, self.n_jobs)
        weight = None if data.weight is None else data.weight[rows]
        slope, offset = fitted_sigmoid(scores, data.y[rows] == 1, weight)
        if slope > 0.0:
            ranker.intercept_ = ranker.intercept_ + offset / slope
            offset = 0.0
        else:
            warnings.warn(
                "The scores do not separate the classes on rows that were not fitted: predict_proba gives every row "
                "the share of the positive class. Check the columns, or set calibrate=False.",
                UserWarning,
                stacklevel=stacklevel_outside(),
            )
        self.calibration_ = np.array([slope, offset])

    def _remedy(self) -> str | None:
        if self.calibrate:
            return None
        return "Ranker gives probabilities where they are asked for: set calibrate=True, and fit again."

    @available_or_remedy(_remedy)
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the two classes, where `calibrate` is set; they rise with the score.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, 2)
            In the order of `classes_`. Beyond a score of about 37 / slope the probability is 1 in
            double precision.
        """
        check_is_fitted(self, "calibration_")
        p = sigmoid(self.decision_function(X), self.calibration_)
        return np.column_stack([1.0 - p, p])

    def decision_function(self, X: ArrayLike) -> Vector:
        """Scores: the higher, the further ahead. Cost: one product with X, or that of the map.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        if hasattr(self, "coef_"):
            return make_design(X).scores(self.coef_[0]) + self.intercept_[0]
        return self.best_estimator_.decision_function(X)

    def predict(self, X: ArrayLike) -> NDArray:
        """The class of each row, as the chosen ranker cuts its scores."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        if self.classes_.size == 2:
            return super().predict(X)
        ranker = self.best_estimator_[-1]
        return self.classes_[np.searchsorted(ranker.classes_, self.best_estimator_.predict(X))]

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, qid: Any = None
    ) -> float:
        """The measure that the ranker was chosen for, on these rows; as a search by that measure
        would score them.

        The rows are a list, and k of "recall@k" and "ndcg@k" counts its rows. Where `list_rows` is
        given they are a part of a list of so many rows, and as large a share of them is looked at.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight, qid : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        scores = self.decision_function(X)
        labels = np.asarray(y)
        if self.classes_.size > 2:
            labels = self._grades()[np.searchsorted(self.classes_, labels)]
        measure = measure_named(self.metric)
        if self.list_rows is not None:
            measure = measure.for_rows(scores.size, self.list_rows, grouped=qid is not None)
        return measure.function(labels, scores, sample_weight=sample_weight, qid=qid)


def _in_order(group: NDArray[np.integer]) -> NDArray[np.intp]:
    """Groups numbered as they come, however they were labelled."""
    _, first, number = np.unique(group, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number]
