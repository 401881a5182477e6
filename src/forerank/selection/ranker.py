"""`Ranker`: the method that is best for a measure in cross-validation, fitted on all rows."""

import warnings
from collections.abc import Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from forerank._typing import Vector
from forerank._validation import check_number, check_weights, encode_classes, stacklevel_outside
from forerank.data.forms import ColumnForms, in_form
from forerank.design import make_design
from forerank.estimators.base import (
    BaseRanker,
    available_or_remedy,
    refuse_more_than_two,
    refuse_one_class,
)
from forerank.metrics.registry import measure_named, metric_function, takes_grades
from forerank.metrics.validation import number_groups
from forerank.selection.average import ScoreAverage, estimator_scores
from forerank.selection.calibration import (
    calibration_rows,
    calibration_splits,
    fitted_sigmoid,
    out_of_fold_scores,
    refuse_uncalibrated,
    sigmoid,
)
from forerank.selection.final_fit import Piece, fit_pieces, shift_scores
from forerank.selection.methods import method_names, needed_forms
from forerank.selection.search import Search
from forerank.selection.summary import learning_curve, reason, results_table
from forerank.selection.training_rows import TrainingRows, lists_rows, numbered_groups
from forerank.solvers.path import check_alphas

__all__ = ["Ranker", "method_names", "metric_function"]


class Ranker(BaseRanker):
    """The best ranker for a measure, selected by cross-validation: linear in the columns, linear in
    additive maps of them, boosted trees, or the average of the two.

    Parameters
    ----------
    metric : {"auc", "ap", "pos_at_top", "wmw", "ndcg@k", "pauc@fpr", "recall@k"}, default="auc"
        The measure, such as "recall@50" or "pauc@0.05". "wmw", the share of pairs in order (AUC for
        two classes), and "ndcg@k" take grades. "recall@k" and "ndcg@k" are of the first k rows of a
        list of `list_rows` rows, and in a fold of the same share of its rows; with groups, k counts
        rows of a group.
    families : "auto", str or list of str, default="auto"
        Families of models to choose from: "linear", "additive" (linear in splines of the columns),
        "trees" (`BoostedRanker`) and "average" (a weighted sum of the scores of the best linear or
        additive model and of the best trees); "auto" is all of them. Of families that do not differ
        by more than noise the simplest is selected. "linear" is for those who need a weight for
        each column and a certificate. Names may be joined by commas.
    methods : "auto" or list of str, default="auto"
        Names from `method_names()`, in which case `families` is not used; "auto" tries those of the
        families that are often the best for the measure.
    alphas : int or array-like, default=10
        The penalties, or their number, from 10 to 1e-7 in equal ratios. If a number is given and
        the largest or the smallest is the best, larger or smaller ones are tried as well.
    cv : int, splitter or iterable, default=5
        Folds; an integer means stratified folds, of complete groups if there are groups. There are
        never more than rows of the smaller class. Up to 1,000 rows they are repeated with other
        folds, up to four times, as long as there are fits left to compare.
    scale : bool, default=True
        Whether columns are scaled inside the folds: to unit variance, sparse ones to a largest
        absolute value of 1, unless their rows have length one, as those of TfidfVectorizer.
    maps : list, optional
        Nonlinear feature maps to try as well, each with the first two methods: "nystroem",
        "fourier", "quadratic", "additive", "components" (for sparse data), or transformers.
    time_budget : float, optional
        Seconds after which no fit is started; the first method is always tried on one fold.
    search_rows : int or None, default=100_000
        Largest number of rows in the search; of more rows a random sample is taken, and the final
        fit is on all. None: no limit. Without effect if `cv` lists row numbers. Probabilities are
        calibrated on at most as many.
    list_rows : int, optional
        Number of rows of the lists whose first k rows "recall@k" and "ndcg@k" count; by default
        that of X.
    calibrate : bool, default=False
        Whether to offer probabilities (`predict_proba`), for two classes and without groups. A
        sigmoid is fitted to out-of-fold scores (folds of `cv`, or five if `cv` lists row numbers).
        It increases with the score: the ranking does not change.
    n_jobs : int, optional
        Threads over methods and folds.
    random_state : int, RandomState or None, default=None
        For the folds and the feature maps.
    verbose : bool, default=False
        Whether to print a line for each path of fits.

    Attributes
    ----------
    best_family_, best_method_ : str
    best_alpha_ : float or None
        The penalty, where the selected model has a linear part.
    best_rounds_ : int or None
        The number of trees, where it has trees.
    best_score_ : float
        The mean of the measure over the test folds; the highest of all candidates, and so slightly
        biased upwards.
    best_estimator_ : Pipeline or ScoreAverage
        Scaler, feature map if any, and ranker, fitted on all rows; the average of two such.
    reason_ : str
        Why this method was selected, and what it gains over the best linear one, in a sentence.
    cv_results_ : dict
        "family", "method", "alpha", "rounds", "split0_test_score", ..., "mean_test_score",
        "std_test_score", "rank_test_score", "mean_fit_time", "left_out": an entry for each method
        and alpha, or number of rounds. NaN where nothing was measured; "left_out" is the reason, if
        a method was dropped. The selection compares means that are averaged with those of the two
        neighbouring alphas, as far as the folds do not show that these differ; of equal ones the
        largest alpha is selected.
    calibration_ : array of shape (2,)
        Slope and offset: the probability is 1 / (1 + exp(-(slope * score + offset))). Only with
        `calibrate`, which also shifts `intercept_` so that a score is positive if the probability
        is above one half; the offset is then zero.
    learning_curve_ : dict
        "rows", "scores", "std": the measure with a quarter, a half and all of the training rows of
        a fold, its mean and standard deviation over the folds; "more_data_helps"; "sentence". It
        is computed when it is first read, which takes two fits per fold, or when the ranker is
        copied or saved; until then the rows of the search are kept.
    coef_ : array of shape (1, n_features)
        For the unscaled columns of X; absent with a feature map or trees.
    intercept_ : array of shape (1,)
        Absent like `coef_`.
    forms_ : tuple of str
        The forms of the columns of a table that the fitted model takes; ("plain",) for arrays.
    classes_ : array
    n_features_in_ : int
    feature_names_in_ : array
        Only if X has column names.

    Notes
    -----
    Cost: folds x methods paths of penalties, each two to four times one fit, and folds x settings
    fits of trees, which take most of the time. Methods and penalties at the ends of a path from
    which no gain is expected are dropped after each round of folds, and weak penalties are not
    tried where the first fold declines, both given 50 rows of the rarest class; above 20,000
    training rows, methods are first compared on 8,000 of them.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = Ranker("ap", families="linear", random_state=0).fit(X, y)
    >>> round(ranker.best_score_, 3)
    0.997
    """

    # Defaults for model files written before these parameters and attributes existed.
    families: str | Sequence[str] = "linear"
    list_rows: int | None = None
    calibrate = False
    best_family_ = "linear"
    best_rounds_: int | None = None
    forms_: tuple[str, ...] = ("plain",)
    _is_dense = False

    def __init__(
        self,
        metric: str = "auc",
        *,
        families: str | Sequence[str] = "auto",
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
        self.families = families
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
        """Select a method and a penalty, and fit them on all rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes, the larger label ranked above the other; or grades, for "wmw" and
            "ndcg@k".
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights of the rows, in fits and measures.
        qid : array-like of shape (n_samples,), optional
            The group of each row. Pairs and measures are within groups; a group is in one fold.

        Returns
        -------
        self
        """
        self._refuse_dask(X, fitting=True)
        measure, alphas = measure_named(self.metric), check_alphas(self.alphas)
        if self.time_budget is not None:
            check_number("time_budget", self.time_budget, low=0.0, strict=True)
        if self.search_rows is not None:
            check_number("search_rows", self.search_rows, low=10, integer=True)
        if self.list_rows is not None:
            check_number("list_rows", self.list_rows, low=1, integer=True)
        self.forms_ = ("plain",)
        data = self._training_rows(X, y, sample_weight, qid)
        graded = self.classes_.size > 2
        if not measure.graded:
            refuse_more_than_two(
                self.classes_,
                'For grades choose the metric "ndcg@k" or "wmw"; or make y binary (y == label).',
            )
        if self.calibrate:
            refuse_uncalibrated(self.classes_, data)
        n = self.list_rows or data.y.size
        if measure.kind == "recall" and data.group is None and (measure.k or 0) >= n:
            raise ValueError(
                f"metric={self.metric!r}: the list has {n} rows, all of which are among the first "
                f"{measure.k}; give a smaller k."
            )
        params = SimpleNamespace(**self.get_params(deep=False))  # not self, which keeps the search
        search = Search(params, measure, alphas, data, graded)
        with warnings.catch_warnings():
            # Warnings of single fits, such as groups without pairs. Filters are not safe to set in
            # threads.
            warnings.simplefilter("ignore", UserWarning)
            search.run()
            selected, position = search.best()
        self.__dict__.pop("learning_curve_", None)
        self._found = search, selected, position
        if self.time_budget is not None:
            self.learning_curve_  # noqa: B018
        self.best_family_, self.best_method_ = selected.family, selected.name
        self.best_score_ = float(selected.means[position])
        self.cv_results_ = results_table(search)
        self.reason_ = reason(search, selected, position)
        pieces = self._selected_pieces(search, selected, position)
        self.forms_ = tuple(piece.form for piece in pieces)
        self._fit_selected(pieces, search.weights, data)
        return self

    @cached_property
    def learning_curve_(self) -> dict[str, Any]:
        """The measure by the number of training rows; see the attributes of the class."""
        if "_found" not in vars(self):
            raise AttributeError("learning_curve_: this Ranker is not fitted; call fit first.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # as in the search
            curve = learning_curve(*self._found)
        self.__dict__.pop("_found", None)
        return curve

    def __getstate__(self) -> dict[str, Any]:
        """The state of a copy or a file, which has the learning curve instead of the rows."""
        if "_found" in vars(self):
            self.learning_curve_  # noqa: B018
        return super().__getstate__()

    def _selected_pieces(self, search: Search, selected: Any, position: int) -> list[Piece]:
        """What is to be fitted on all rows, with the values that were selected."""
        self.best_alpha_ = self.best_rounds_ = None
        pieces = []
        for candidate, place in search.parts_of(selected, position):
            feature_map = None if candidate.map is None else search.maps[candidate.map]
            piece = Piece(candidate.form, feature_map, candidate.ranker).copy()
            if candidate.parameter == "rounds":
                self.best_rounds_ = int(candidate.grid[place])
                piece.ranker.set_params(rounds=self.best_rounds_, n_jobs=self.n_jobs)
            else:
                self.best_alpha_ = float(candidate.grid[place])
                piece.ranker.set_params(alpha=self.best_alpha_)
            pieces.append(piece)
        return pieces

    def refit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> Self:
        """Fit the selected method, with its penalty or number of rounds, on other rows; the results
        of the search stay. Parameters as in `fit`.
        """
        check_is_fitted(self)
        before = dict(vars(self))
        try:
            data = self._training_rows(X, y, sample_weight, qid)
            self._fit_selected(*self._pieces(), data)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _pieces(self) -> tuple[list[Piece], Vector]:
        """The estimators to be fitted again, and the weights of their scores in an average."""
        best = self.best_estimator_
        fitted, weights = [best], np.ones(1)
        if isinstance(best, ScoreAverage):
            fitted, weights = best.estimators, best.weights
        pieces = []
        for form, pipeline in zip(self.forms_, fitted, strict=True):
            steps = pipeline.named_steps
            pieces.append(Piece(form, steps.get("map"), steps["rank"]).copy())
        return pieces, weights

    def _is_prepared(self, X: Any) -> bool:
        """Whether X comes from the transformers of a table, so that it needs no check; columns for
        trees have missing values.
        """
        return isinstance(X, ColumnForms) or self.forms_ == ("trees",)

    def _training_rows(self, X: Any, y: Any, sample_weight: Any, qid: Any) -> TrainingRows:
        if self._is_prepared(X):
            self.n_features_in_ = X.shape[1]
            self.classes_, codes = encode_classes(np.asarray(y))
            refuse_one_class(self.classes_)
        else:
            X, codes = self._read(X, y)
        labels = self._grades()[codes] if self.classes_.size > 2 else codes
        group = None if qid is None else numbered_groups(number_groups(qid, codes.size))
        data = TrainingRows(X, labels, check_weights(sample_weight, codes.size), group)
        return data if lists_rows(self.cv) else data.weighted()

    def _grades(self) -> NDArray:
        """Gains of the classes: numeric labels, shifted if negative; else class numbers."""
        labels = self.classes_
        if labels.dtype.kind in "biuf":
            return labels if labels.min() >= 0 else labels - labels.min()
        return np.arange(labels.size)

    def _fit_selected(self, pieces: list[Piece], weights: Vector, data: TrainingRows) -> None:
        for name in ("coef_", "intercept_", "calibration_"):
            self.__dict__.pop(name, None)
        self.best_estimator_ = fit_pieces(pieces, weights, data, self.scale)
        self._is_dense = isinstance(data.X, np.ndarray)  # sparse rows are then made dense
        if len(pieces) == 1 and isinstance(data.X, ColumnForms):
            self.n_features_in_ = in_form(data.X, pieces[0].form).shape[1]
        if self.calibrate:
            self._calibrate(pieces, weights, data)
        ranker = pieces[0].ranker
        if len(pieces) == 1 and pieces[0].feature_map is None and hasattr(ranker, "coef_"):
            w = ranker.coef_[0].copy()
            shift = 0.0
            scaler = self.best_estimator_.named_steps.get("scale")
            if scaler is not None:
                w /= scaler.scale_
                shift = float(w @ scaler.mean_) if isinstance(scaler, StandardScaler) else 0.0
            self.coef_ = w[None, :]
            self.intercept_ = ranker.intercept_ - shift

    def needed_forms(self) -> tuple[str, ...]:
        """The forms of columns that the search compares, of those that there are."""
        return needed_forms(self.families, self.methods, bool(self.maps))

    # --- Probabilities ---

    def _calibrate(self, pieces: list[Piece], weights: Vector, data: TrainingRows) -> None:
        """Fit the sigmoid, and shift the intercept so that a score of zero has the probability one
        half.
        """
        refuse_uncalibrated(self.classes_, data)
        random = check_random_state(self.random_state)
        sample_seed, fold_seed = random.randint(np.iinfo(np.int32).max, size=2).tolist()
        most = None if self.search_rows is None else int(self.search_rows)
        data = calibration_rows(data, most, sample_seed)
        splits = calibration_splits(self.cv, data, fold_seed)
        if not splits:
            raise ValueError(
                "calibrate=True needs at least two rows of each class, and folds with both classes "
                "among their training rows if cv is a splitter."
            )

        def fitted(rows: TrainingRows) -> Any:
            return fit_pieces([piece.copy() for piece in pieces], weights, rows, self.scale)

        with warnings.catch_warnings():
            # The fit on all rows gives the same warnings as the fits in the folds.
            warnings.simplefilter("ignore", UserWarning)
            scores, rows = out_of_fold_scores(fitted, data, splits, self.n_jobs, pieces[0].form)
        weight = None if data.weight is None else data.weight[rows]
        slope, offset = fitted_sigmoid(scores, data.y[rows] == 1, weight)
        if slope > 0.0:
            shift_scores(self.best_estimator_, offset / slope)
            offset = 0.0
        else:
            text = (
                "The scores do not separate the classes on held-out rows, so predict_proba gives "
                "every row the share of the positive class. Check the columns, or set "
                "calibrate=False."
            )
            warnings.warn(text, UserWarning, stacklevel=stacklevel_outside())
        self.calibration_ = np.array([slope, offset])

    def _remedy(self) -> str | None:
        if self.calibrate:
            return None
        return "Ranker predicts probabilities only with calibrate=True; set it and fit again."

    @available_or_remedy(_remedy)
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the two classes, if `calibrate` is set; they increase with the score.

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
        """Scores; rows with higher scores rank above others.

        Cost: one product with X; if a feature map was selected, the map and a product with its
        columns; for trees, one path from root to leaf for each row and tree.
        """
        check_is_fitted(self)
        X = X if self._is_prepared(X) else self._validated(X)
        form = self.forms_[0]
        if hasattr(self, "coef_"):
            return make_design(in_form(X, form)).scores(self.coef_[0]) + self.intercept_[0]
        rows: Any = X
        rows = rows.toarray() if sp.issparse(rows) and self._is_dense else rows
        return estimator_scores(self.best_estimator_, form, rows)

    def predict(self, X: ArrayLike) -> NDArray:
        """The class of each row, by the thresholds of the selected ranker."""
        check_is_fitted(self)
        if self.classes_.size == 2:
            return super().predict(X)
        X = X if self._is_prepared(X) else self._validated(X)
        best, form = self.best_estimator_, self.forms_[0]
        if isinstance(best, ScoreAverage):
            best = best.estimators[0]
        predicted = best.predict(in_form(X, form))
        return self.classes_[np.searchsorted(best[-1].classes_, predicted)]

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, qid: Any = None
    ) -> float:
        """The measure that the ranker was selected by, on these rows.

        The k of "recall@k" and "ndcg@k" counts these rows; if `list_rows` is given, the first
        k / list_rows of them count.

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
