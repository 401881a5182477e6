"""The ranker for a measure: methods and penalties are tried by cross-validation, and the best is fitted on all rows.

Each method is fitted along a path of penalties (`alpha_path`), which costs little more than one fit. Methods that are
clearly behind after the first folds are left out of the others.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from time import perf_counter
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.model_selection import GroupKFold, StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from forerank import metrics
from forerank._ranking import query_numbers
from forerank.design import make_design
from forerank.estimators._base import BaseRanker, Matrix, Vector, refuse_more_than_two
from forerank.estimators._validation import check_number, check_weights
from forerank.estimators.linear import PairwiseRanker, PointwiseRanker
from forerank.estimators.paths import check_alphas
from forerank.estimators.quadratic import QuadraticFeatures
from forerank.estimators.top import MAPRanker, PartialAUCRanker, TopPush, TopRanker

__all__ = ["Ranker", "method_names", "metric_function"]

Rows = NDArray[np.intp]

# A path ends after so many penalties in a row that rank worse than the best one.
_PATIENCE = 3
# Test rows are dealt into so many blocks; a method that is behind by so many standard errors of its mean difference
# over the blocks is left out.
_BLOCKS = 8
_STANDARD_ERRORS = 3.0
# Beyond so many training rows, methods are first tried on so many of them.
_MANY_ROWS = 20_000
_TRIAL_ROWS = 8_000
# Fits within the folds stop earlier than the last one: measures do not see the difference.
_TOL = {"gradient": 3e-3, "gap": 1e-3}
# A gain of the measure from twice the rows that is not worth having.
_NO_GAIN = 0.005
# Where nothing can be tried.
_DEFAULT_ALPHA = 1e-3


# --- Measures ---


@dataclass(frozen=True)
class _Measure:
    name: str
    function: Callable[..., float]
    title: str
    parameter: float | None = None

    @property
    def kind(self) -> str:
        return self.name.partition("@")[0]


_MEASURES: dict[str, tuple[str, str | None, str]] = {
    "auc": ("roc_auc", None, "AUC"),
    "ap": ("average_precision", None, "average precision"),
    "pos_at_top": ("pos_at_top", None, "positives at the top"),
    "wmw": ("wmw", None, "share of pairs in order"),
    "ndcg": ("ndcg", "k", "NDCG"),
    "pauc": ("partial_auc", "fpr", "partial AUC"),
    "recall": ("recall_at_k", "k", "recall"),
}


_FOR_GRADES = ("wmw", "ndcg")


def _measure(metric: Any) -> _Measure:
    """A measure by its name, such as "ap" or "recall@50"."""
    shown = 'one of "auc", "ap", "pos_at_top", "wmw", "ndcg@k", "pauc@fpr", "recall@k", such as "recall@50"'
    if not isinstance(metric, str) or metric.partition("@")[0] not in _MEASURES:
        raise ValueError(f"metric must be {shown}; got {metric!r}.")
    kind, _, given = metric.partition("@")
    name, parameter, title = _MEASURES[kind]
    function: Callable[..., float] = getattr(metrics, name)
    if parameter is None:
        if given:
            raise ValueError(f"metric={metric!r}: {kind} takes no parameter.")
        return _Measure(metric, function, title)
    try:
        value = float(given) if parameter == "fpr" else int(given)
    except ValueError:
        raise ValueError(f"metric={metric!r}: give {kind}@{parameter}, {shown}.") from None
    if parameter == "fpr":
        if not 0.0 < value <= 1.0:
            raise ValueError(f"metric={metric!r}: the false positive rate lies between 0 and 1.")
        return _Measure(
            metric, partial(function, standardize="range", fpr_range=(0.0, value)), f"{title} to {value:g}", value
        )
    if value < 1:
        raise ValueError(f"metric={metric!r}: k is a number of rows, at least 1.")
    return _Measure(metric, partial(_at_most, function, int(value)), f"{title} at {value}", value)


def _at_most(function: Callable[..., float], k: int, y_true: Any, y_score: Any, **rows: Any) -> float:
    """A list may be shorter than k."""
    return function(y_true, y_score, k=min(k, len(y_true)), **rows)


def metric_function(metric: str) -> Callable[..., float]:
    """The function f(y_true, y_score, *, sample_weight=None, qid=None) behind a name; higher is better.

    Examples
    --------
    >>> metric_function("recall@2")([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0])
    0.5
    """
    return _measure(metric).function


# --- Methods ---


@dataclass(frozen=True)
class _Method:
    """A family of rankers with one open parameter, alpha; `make` is given the parameter of the measure."""

    make: Callable[[float | None], Any]
    menus: tuple[str, ...]  # the measures for which it is tried


def _pairs(loss: str) -> Callable[[float | None], Any]:
    return lambda parameter: PairwiseRanker(loss)


def _rows(loss: str) -> Callable[[float | None], Any]:
    return lambda parameter: PointwiseRanker(loss)


def _top(share: float) -> Callable[[float | None], Any]:
    return lambda parameter: TopRanker(at=share)


# In the order in which they are tried: the first one is what the others have to beat.
_METHODS = {
    "rows, logistic": _Method(_rows("logistic"), ("auc", "ap", "pos_at_top", "wmw", "ndcg", "pauc", "recall")),
    "pairs, logistic": _Method(_pairs("logistic"), ("auc", "ap", "pos_at_top", "wmw", "ndcg", "pauc", "recall")),
    "pairs, squared hinge": _Method(_pairs("squared_hinge"), ("auc", "wmw", "ndcg")),
    "rows, squared hinge": _Method(_rows("squared_hinge"), ("auc", "ap", "pos_at_top", "pauc", "recall")),
    "rows, exponential": _Method(_rows("exponential"), ("pos_at_top",)),
    "top 1 %, squared hinge": _Method(_top(0.01), ("pos_at_top",)),
    "top, squared hinge": _Method(lambda parameter: TopPush(), ("pos_at_top",)),
    "top share, squared hinge": _Method(lambda parameter: TopRanker(at=parameter or 0.05), ("pauc",)),
    "top 20 %, squared hinge": _Method(_top(0.2), ()),
    "top 5 %, squared hinge": _Method(_top(0.05), ()),
    "pairs, exponential": _Method(_pairs("exponential"), ()),
    "pairs, hinge": _Method(_pairs("hinge"), ()),
    "partial AUC, hinge": _Method(lambda parameter: PartialAUCRanker(fpr_range=(0.0, parameter or 0.1)), ()),
    "average precision, hinge": _Method(lambda parameter: MAPRanker(), ()),
}
_MAPS: dict[str, Callable[[int], Any]] = {
    "nystroem": lambda seed: Nystroem(n_components=300, random_state=seed),
    "fourier": lambda seed: RBFSampler(n_components=500, gamma="scale", random_state=seed),
    "quadratic": lambda seed: QuadraticFeatures(),
}


def method_names(metric: str | None = None) -> list[str]:
    """The methods that `Ranker` tries for a measure, or all that it knows.

    Examples
    --------
    >>> method_names("auc")
    ['rows, logistic', 'pairs, logistic', 'pairs, squared hinge', 'rows, squared hinge']
    """
    if metric is None:
        return list(_METHODS)
    kind = _measure(metric).kind
    return [name for name, method in _METHODS.items() if kind in method.menus]


@dataclass
class _Candidate:
    """A method on the columns or on a map of them, and how it did: a row per fold, a column per alpha."""

    method: str
    map: str | None
    ranker: Any
    results: Vector
    seconds: float = 0.0
    fits: int = 0
    left_out: str | None = None
    # Of the penalty that did best, by fold.
    test_scores: dict[int, Vector] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.method if self.map is None else f"{self.map}: {self.method}"


@dataclass(frozen=True)
class _Data:
    """The rows of a problem."""

    X: Matrix
    y: NDArray
    weight: Vector | None
    group: NDArray[np.integer] | None

    def take(self, rows: Rows) -> "_Data":
        return _Data(
            self.X[rows],
            self.y[rows],
            None if self.weight is None else self.weight[rows],
            None if self.group is None else self.group[rows],
        )

    def passed_to(self, ranker: Any) -> dict[str, Any]:
        """What the fit of a ranker takes beside X and y."""
        taken = signature(ranker.fit).parameters
        found = {"sample_weight": self.weight, "qid": self.group}
        return {name: value for name, value in found.items() if value is not None and name in taken}


@dataclass(frozen=True)
class _Fold:
    """Training and test rows of a fold, scaled and mapped."""

    number: int
    train: _Data
    test: _Data

    def measured(self, measure: _Measure, scores: Vector, rows: Rows | None = None) -> float:
        data = self.test if rows is None else self.test.take(rows)
        scores = scores if rows is None else scores[rows]
        try:
            return float(measure.function(data.y, scores, sample_weight=data.weight, qid=data.group))
        except ValueError:  # one class only
            return np.nan


class Ranker(BaseRanker):
    """The best linear ranker for a measure: method and penalty are chosen by cross-validation.

    Parameters
    ----------
    metric : {"auc", "ap", "pos_at_top", "wmw", "ndcg@k", "pauc@fpr", "recall@k"}, default="auc"
        What is to be good, such as "recall@50" or "pauc@0.05". "wmw", the share of pairs in order (AUC where there are
        two classes), and "ndcg@k" take grades. k counts the rows of a list: those of a fold, or those
        of a group where there are groups.
    methods : "auto" or list of str, default="auto"
        Names from `method_names()`; "auto" tries those that may be the best for the measure.
    alphas : int or array-like, default=10
        The penalties, or how many, from 10 to 1e-7 in equal ratios.
    cv : int, splitter or iterable, default=5
        Folds; an integer means stratified ones, or folds of whole groups where there are groups. There are no more
        than the smaller class has rows.
    scale : bool, default=True
        Whether columns are brought to one scale inside the folds: to unit variance, sparse ones to a largest size of 1.
    maps : list, optional
        Nonlinear maps to try as well, each with the first two methods: "nystroem", "fourier", "quadratic", or
        transformers.
    time_budget : float, optional
        Seconds after which nothing new is tried; the first method is always tried on one fold.
    search_rows : int or None, default=100_000
        Beyond so many rows the choice is made on that many of them, drawn at random; the fit is on all. None: on all.
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
        The mean of the measure over the test folds, of the best of all that was tried: a little too good.
    best_estimator_ : Pipeline
        Scaling, perhaps a map, and the ranker, fitted on all rows.
    reason_ : str
        Why this method, in a sentence.
    cv_results_ : dict
        "method", "alpha", "split0_test_score", ..., "mean_test_score", "std_test_score", "rank_test_score",
        "mean_fit_time", "left_out": an entry for each method and alpha. NaN where nothing was measured; "left_out" says
        why. The choice goes by means over an alpha and its two neighbours, which are less noisy.
    learning_curve_ : dict
        "rows", "scores": the measure with a quarter, a half and all of the training rows of a fold; "more_data_helps";
        "sentence".
    coef_ : array of shape (1, n_features)
        For the columns of X as they are; not there with a map.
    intercept_ : array of shape (1,)
    classes_ : array
    n_features_in_ : int
    feature_names_in_ : array
        Only where X has column names.

    Notes
    -----
    Cost: folds x methods paths of penalties, each two to four times one fit. Methods that are behind by three standard
    errors on the first folds are left out of the others; beyond 20,000 training rows they first have to show on 8,000
    of them that they may win.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = Ranker("ap", random_state=0).fit(X, y)
    >>> round(ranker.best_score_, 3)
    0.997
    """

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
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = str(self.metric).partition("@")[0] in _FOR_GRADES
        tags.non_deterministic = self.random_state is None
        return tags

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, qid: ArrayLike | None = None
    ) -> Self:
        """Choose a method and a penalty, and fit them on all rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes, the one that sorts last ahead; or grades, higher ahead of lower, for "wmw" and "ndcg@k".
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights of the rows, in the fits and in the measure.
        qid : array-like of shape (n_samples,), optional
            The group of each row. Pairs are formed, and measures taken, inside groups; a group lies in one fold.

        Returns
        -------
        self
        """
        measure, alphas = _measure(self.metric), check_alphas(self.alphas)
        if self.time_budget is not None:
            check_number("time_budget", self.time_budget, low=0.0, strict=True)
        if self.search_rows is not None:
            check_number("search_rows", self.search_rows, low=10, integer=True)
        data = self._data(X, y, sample_weight, qid)
        graded = self.classes_.size > 2
        if measure.kind not in _FOR_GRADES:
            refuse_more_than_two(
                self.classes_, 'For grades choose the metric "ndcg@k" or "wmw"; or make y binary (y == label).'
            )
        search = _Search(self, measure, alphas, data, graded)
        with warnings.catch_warnings():
            # Of single fits within folds: not converged, nothing learnt, groups without pairs. Here, since filters are
            # not safe to set in threads.
            warnings.simplefilter("ignore", UserWarning)
            search.run()
            chosen, place = search.best()
            self.learning_curve_ = search.learning_curve(chosen, float(alphas[place]))
        self.best_method_ = chosen.name
        self.best_alpha_ = float(alphas[place])
        self.best_score_ = float(search.means(chosen)[place])
        self.cv_results_ = search.table()
        self.reason_ = search.reason(chosen, place)
        self._refit(clone(chosen.ranker), chosen.map, data)
        return self

    def refit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, qid: ArrayLike | None = None
    ) -> Self:
        """Fit the chosen method and penalty on other rows, such as all of them; what was tried and found stays.

        Parameters
        ----------
        X, y, sample_weight, qid
            As in `fit`.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        ranker = clone(self.best_estimator_[-1])
        name = self.best_method_.partition(": ")[0] if "map" in self.best_estimator_.named_steps else None
        self._refit(ranker, name, self._data(X, y, sample_weight, qid))
        return self

    def _data(self, X: Any, y: Any, sample_weight: Any, qid: Any) -> "_Data":
        X, codes = self._read(X, y)
        return _Data(
            X,
            self._grades()[codes] if self.classes_.size > 2 else codes,
            check_weights(sample_weight, codes.size),
            None if qid is None else query_numbers(qid, codes.size),
        )

    def _grades(self) -> NDArray:
        """The labels as gains: themselves where they can be, else their numbers from the lowest on."""
        labels = self.classes_
        if labels.dtype.kind in "biuf" and labels.min() >= 0:
            return labels
        return np.arange(labels.size)

    def _refit(self, ranker: Any, map_name: str | None, data: _Data) -> None:
        steps: list[tuple[str, Any]] = []
        scaler = _scaler(self.scale, data.X)
        if scaler is not None:
            steps.append(("scale", scaler))
        if map_name is not None:
            steps.append(("map", _map(self, map_name)))
        Z = data.X
        for _, step in steps:
            Z = step.fit_transform(Z)
        ranker.set_params(alpha=self.best_alpha_)
        ranker.fit(Z, data.y, **data.passed_to(ranker))
        self.best_estimator_ = Pipeline([*steps, ("rank", ranker)])
        self.__dict__.pop("coef_", None)
        self.__dict__.pop("intercept_", None)
        if map_name is None:
            w = ranker.coef_[0].copy()
            shift = 0.0
            if scaler is not None:
                w /= scaler.scale_
                shift = float(w @ scaler.mean_) if isinstance(scaler, StandardScaler) else 0.0
            self.coef_ = w[None, :]
            self.intercept_ = ranker.intercept_ - shift

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


def _scaler(scale: bool, X: Matrix) -> Any:
    if not scale:
        return None
    return MaxAbsScaler() if sp.issparse(X) else StandardScaler()


def _map(ranker: Ranker, name: str) -> Any:
    for given in ranker.maps or ():
        if not isinstance(given, str) and type(given).__name__ == name:
            return clone(given)
    seed = ranker.random_state if isinstance(ranker.random_state, int | np.integer) else 0
    return _MAPS[name](int(seed))


class _Search:
    """Folds, candidates, and who is still in it."""

    def __init__(self, ranker: Ranker, measure: _Measure, alphas: Vector, data: _Data, graded: bool) -> None:
        self.ranker, self.measure, self.alphas, self.data, self.graded = ranker, measure, alphas, data, graded
        self.begin = perf_counter()
        self.remarks: list[str] = []
        self.random = check_random_state(ranker.random_state)
        if ranker.search_rows is not None and data.y.size > ranker.search_rows:
            some = _spread(data, np.random.default_rng(self._seed()))[: ranker.search_rows]
            self.data = data.take(np.sort(some))
            self.remarks.append(f"the choice was made on {some.size:,} of {data.y.size:,} rows")
        self.folds = self._split()
        n_folds = len(self.folds)
        self.candidates = [
            _Candidate(method, name, made, np.full((n_folds, alphas.size), np.nan))
            for method, name, made in self._menu()
        ]

    # -- what is tried --

    def _menu(self) -> Iterator[tuple[str, str | None, Any]]:
        given = self.ranker.methods
        if isinstance(given, str) and given != "auto":
            given = [given]
        names = method_names(self.ranker.metric) if isinstance(given, str) else list(given)
        fitting = []
        for name in names:
            if name not in _METHODS:
                raise ValueError(f"There is no method {name!r}; choose among {', '.join(map(repr, _METHODS))}.")
            made = _METHODS[name].make(self.measure.parameter)
            if self.graded:
                if not hasattr(made, "graph"):
                    continue
                made.set_params(graph="order")
            if self.data.group is not None and isinstance(made, TopRanker | TopPush | PartialAUCRanker | MAPRanker):
                continue
            if self.data.weight is not None and "sample_weight" not in signature(made.fit).parameters:
                continue
            fitting.append((name, made))
        if not fitting:
            what = " and ".join(
                text
                for text, there in (
                    ("grades", self.graded),
                    ("groups", self.data.group is not None),
                    ("sample weights", self.data.weight is not None),
                )
                if there
            )
            raise ValueError(f"None of the methods {', '.join(map(repr, names))} takes {what}; methods over pairs do.")
        yield from ((name, None, made) for name, made in fitting)
        for each in self.ranker.maps or ():
            if isinstance(each, str) and each not in _MAPS:
                raise ValueError(f"There is no map {each!r}; choose among {', '.join(_MAPS)}, or give a transformer.")
            map_name = each if isinstance(each, str) else type(each).__name__
            yield from ((name, map_name, clone(made)) for name, made in fitting[:2])

    def _split(self) -> list[tuple[Rows, Rows]]:
        """Training and test rows of the folds; none where there is too little to split."""
        data, cv = self.data, self.ranker.cv
        splitter: Any
        if isinstance(cv, int | np.integer):
            check_number("cv", int(cv), low=2, integer=True)
            if data.group is not None:
                n_splits = min(int(cv), np.unique(data.group).size)
                splitter = GroupKFold(n_splits, shuffle=True, random_state=self._seed()) if n_splits > 1 else None
            else:
                smallest = int(np.bincount(np.searchsorted(np.unique(data.y), data.y)).min())
                n_splits = min(int(cv), smallest)
                splitter = StratifiedKFold(n_splits, shuffle=True, random_state=self._seed()) if n_splits > 1 else None
                if n_splits < cv:
                    self.remarks.append(f"the smaller class has {smallest} row{'s' * (smallest > 1)} only")
            if splitter is None:
                return []
        else:
            splitter = check_cv(cv, data.y, classifier=True)
        folds = list(splitter.split(data.X, data.y, data.group))
        return [(train, test) for train, test in folds if np.unique(data.y[train]).size > 1]

    def _seed(self) -> int:
        return int(self.random.randint(np.iinfo(np.int32).max))

    # -- trying --

    def run(self) -> None:
        folds = range(len(self.folds))
        several = len(self.candidates) > 1
        if several and folds and self.folds[0][0].size > _MANY_ROWS:
            self._trial()
        # The first two folds one by one, since some may be left out after each; then the others together.
        rounds = [[k] for k in folds[:2]] + [list(folds[2:])] if several else [list(folds)]
        for numbers in filter(None, rounds):
            self._round(numbers)
            if several:
                self._leave_out(numbers)

    def _trial(self) -> None:
        """All methods on some of the rows of a fold, to see which are hopeless."""
        train, test = self.folds[0]
        some = train[_spread(self.data.take(train), np.random.default_rng(self._seed()))[:_TRIAL_ROWS]]
        self.folds.append((some, test))
        number = len(self.folds) - 1
        for candidate in self.candidates:
            candidate.results = np.vstack([candidate.results, np.full(self.alphas.size, np.nan)])
        self._round([number])
        self._leave_out([number])
        self.folds.pop()
        for candidate in self.candidates:
            candidate.results = candidate.results[:-1]
            candidate.test_scores.pop(number, None)

    def _round(self, numbers: list[int]) -> None:
        """Every candidate that is still in, on these folds."""
        alive = [candidate for candidate in self.candidates if candidate.left_out is None]
        tasks = []
        for number in numbers:
            prepared: dict[str | None, _Fold] = {}
            for candidate in alive:
                if candidate.map not in prepared:
                    prepared[candidate.map] = self._prepared(number, candidate.map)
                tasks.append((candidate, prepared[candidate.map]))
        Parallel(n_jobs=self.ranker.n_jobs, prefer="threads")(
            delayed(self._follow)(candidate, fold) for candidate, fold in tasks
        )

    def _prepared(self, number: int, map_name: str | None) -> _Fold:
        train, test = (self.data.take(rows) for rows in self.folds[number])
        steps = [_scaler(self.ranker.scale, self.data.X), None if map_name is None else _map(self.ranker, map_name)]
        for step in steps:
            if step is not None:
                train = _Data(step.fit_transform(train.X), train.y, train.weight, train.group)
                test = _Data(step.transform(test.X), test.y, test.weight, test.group)
        return _Fold(number, train, test)

    def _follow(self, candidate: _Candidate, fold: _Fold) -> None:
        """Fit along the penalties of a fold and measure, until it gets no better."""
        if self._late() and (candidate is not self.candidates[0] or fold.number > 0):
            return
        begin = perf_counter()
        row = candidate.results[fold.number]
        design = make_design(fold.test.X)
        best, worse = -np.inf, 0
        walk = _quick(candidate.ranker)._walk(
            fold.train.X, fold.train.y, self.alphas, **fold.train.passed_to(candidate.ranker)
        )
        for place, fitted in enumerate(walk):
            candidate.fits += 1
            scores = design.scores(fitted.coef_[0])
            row[place] = fold.measured(self.measure, scores)
            worse = worse + 1 if row[place] < best else 0
            if row[place] > best:
                best = row[place]
                candidate.test_scores[fold.number] = scores
            if worse >= _PATIENCE or self._late():
                break
        candidate.seconds += perf_counter() - begin
        self._say(f"fold {fold.number + 1}, {candidate.name}: {np.nanmax(row, initial=-np.inf):.4f}")

    def _late(self) -> bool:
        budget = self.ranker.time_budget
        return budget is not None and perf_counter() - self.begin > budget

    def _say(self, line: str) -> None:
        if self.ranker.verbose:
            print(f"[forerank] {perf_counter() - self.begin:8.2f} s  {line}", flush=True)

    # -- leaving out --

    def _leave_out(self, numbers: list[int]) -> None:
        """Leave out who is clearly behind the leader on the same test rows."""
        alive = [c for c in self.candidates if c.left_out is None and all(k in c.test_scores for k in numbers)]
        for candidate in self.candidates:
            if alive and candidate.left_out is None and candidate not in alive and not self._late():
                candidate.left_out = "gives no scores"
        if not alive:  # a fold of one class
            return
        leader = max(alive, key=lambda c: float(np.mean([np.nanmax(c.results[k]) for k in numbers])))
        for candidate in alive:
            if candidate is leader:
                continue
            differences = np.concatenate([self._by_blocks(leader, candidate, k) for k in numbers])
            differences = differences[np.isfinite(differences)]
            if differences.size < 4:
                continue
            error = float(differences.std(ddof=1)) / np.sqrt(differences.size)
            behind = float(differences.mean())
            if behind > _STANDARD_ERRORS * error and behind > 0.0:
                where = "a part of the rows" if numbers[0] >= len(candidate.results) else f"fold {numbers[0] + 1}"
                candidate.left_out = f"behind {leader.name} by {behind:.2g} on {where}"

    def _by_blocks(self, leader: _Candidate, other: _Candidate, number: int) -> Vector:
        """By how much the leader is ahead on each of some blocks of the test rows."""
        test = self.data.take(self.folds[number][1])
        fold = _Fold(number, test, test)
        block = _dealt(test, np.random.default_rng(0))
        ahead = np.full(_BLOCKS, np.nan)
        for k in range(_BLOCKS):
            rows = np.flatnonzero(block == k)
            if rows.size > 1:
                first, second = (fold.measured(self.measure, c.test_scores[number], rows) for c in (leader, other))
                ahead[k] = first - second
        return ahead

    # -- choosing --

    def means(self, candidate: _Candidate) -> Vector:
        """The mean over the folds, for penalties that were tried on all folds on which the candidate was."""
        tried = candidate.results[np.isfinite(candidate.results).any(axis=1)]
        return tried.mean(axis=0) if tried.size else np.full(self.alphas.size, np.nan)

    def best(self) -> tuple[_Candidate, int]:
        """Candidate and penalty with the highest mean; a penalty's neighbours have a say, since means are noisy."""
        finished = [c for c in self.candidates if c.left_out is None and np.isfinite(self.means(c)).any()]
        if not finished:
            place = int(np.argmin(np.abs(np.log(self.alphas / _DEFAULT_ALPHA))))
            return self.candidates[0], place
        most = max(int(np.isfinite(c.results).any(axis=1).sum()) for c in finished)
        finished = [c for c in finished if int(np.isfinite(c.results).any(axis=1).sum()) == most]
        smooth = [_smoothed(self.means(c)) for c in finished]
        winner = int(np.argmax([np.nanmax(values) for values in smooth]))
        return finished[winner], int(np.nanargmax(smooth[winner]))

    def table(self) -> dict[str, Any]:
        n_folds = len(self.folds)
        results = np.concatenate([c.results.T for c in self.candidates]) if n_folds else None
        n_rows = len(self.candidates) * self.alphas.size
        means = np.concatenate([self.means(c) for c in self.candidates])
        found: dict[str, Any] = {
            "method": np.repeat(np.array([c.name for c in self.candidates], dtype=object), self.alphas.size).tolist(),
            "alpha": np.tile(self.alphas, len(self.candidates)),
        }
        for k in range(n_folds):
            found[f"split{k}_test_score"] = np.full(n_rows, np.nan) if results is None else results[:, k]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # nothing measured
            spread = np.full(n_rows, np.nan) if results is None else np.nanstd(results, axis=1)
        found["mean_test_score"], found["std_test_score"] = means, np.where(np.isfinite(means), spread, np.nan)
        order = np.argsort(-np.where(np.isfinite(means), means, -np.inf), kind="stable")
        rank = np.empty(n_rows, dtype=int)
        rank[order] = np.arange(1, n_rows + 1)
        found["rank_test_score"] = rank
        seconds = [c.seconds / max(c.fits, 1) for c in self.candidates]
        found["mean_fit_time"] = np.repeat(seconds, self.alphas.size)
        found["left_out"] = np.repeat(
            np.array([c.left_out or "" for c in self.candidates], dtype=object), self.alphas.size
        ).tolist()
        return found

    def reason(self, chosen: _Candidate, place: int) -> str:
        """Why the chosen one was chosen."""
        title, alpha = self.measure.title, f"alpha = {self.alphas[place]:.3g}"
        remarks = f" Note that {'; '.join(self.remarks)}." if self.remarks else ""
        means = self.means(chosen)
        if not np.isfinite(means[place]):
            return f"{chosen.name} with {alpha}, untried: there are too few rows to keep any aside.{remarks}"
        n_folds = int(np.isfinite(chosen.results).any(axis=1).sum())
        text = f"{chosen.name} with {alpha}: {title} {means[place]:.4f} over {n_folds} folds"
        others = [c for c in self.candidates if c is not chosen]
        rivals = [c for c in others if c.left_out is None and np.isfinite(self.means(c)).any()]
        if rivals:
            second = max(rivals, key=lambda c: float(np.nanmax(_smoothed(self.means(c)))))
            k = int(np.nanargmax(_smoothed(self.means(second))))
            ahead = chosen.results[:, place] - second.results[:, k]
            ahead = ahead[np.isfinite(ahead)]
            error = float(ahead.std(ddof=1)) / np.sqrt(ahead.size) if ahead.size > 1 else np.inf
            text += f"; next is {second.name} with {self.means(second)[k]:.4f}"
            if abs(float(ahead.mean())) <= 2.0 * error:
                text += ", no further off than chance"
        text += "."
        dropped = [c.name for c in others if c.left_out is not None]
        if dropped:
            text += f" Left out early: {'; '.join(dropped)}."
        if self._late():
            text += " The time budget ended the search."
        if self.alphas.size > 2 and place in (0, self.alphas.size - 1):
            end = "largest" if place == 0 else "smallest"
            text += f" The {end} alpha was chosen; one beyond it may be better."
        return text + remarks

    def learning_curve(self, chosen: _Candidate, alpha: float) -> dict[str, Any]:
        """Whether more rows would help: the measure with a quarter, a half and all of the rows of a fold."""
        none = {"rows": [], "scores": [], "more_data_helps": False, "sentence": "There are too few rows to say."}
        folds = [k for k in range(len(self.folds)) if np.isfinite(chosen.results[k]).any()]
        if len(folds) < 2 or self._late():
            return none
        shares = (0.25, 0.5, 1.0)
        place = int(np.argmin(np.abs(self.alphas - alpha)))
        results = np.full((len(folds), len(shares)), np.nan)
        sizes = np.zeros(len(shares))

        def one(row: int, number: int) -> None:
            fold = self._prepared(number, chosen.map)
            results[row, -1] = chosen.results[number, place]
            sizes[-1] = fold.train.y.size
            order = _spread(fold.train, np.random.default_rng(number))
            for column, share in enumerate(shares[:-1]):
                part = fold.train.take(order[: max(2, int(share * order.size))])
                sizes[column] = part.y.size
                if np.unique(part.y).size < 2:
                    continue
                fitted = _quick(chosen.ranker).set_params(alpha=alpha)
                try:
                    fitted.fit(part.X, part.y, **part.passed_to(fitted))
                except ValueError:  # groups of one class
                    continue
                results[row, column] = fold.measured(self.measure, make_design(fold.test.X).scores(fitted.coef_[0]))

        Parallel(n_jobs=self.ranker.n_jobs, prefer="threads")(delayed(one)(*each) for each in enumerate(folds))
        results = results[np.isfinite(results).all(axis=1)]
        if len(results) < 2:
            return none
        gain = results[:, 2] - results[:, 1]
        error = float(gain.std(ddof=1)) / np.sqrt(gain.size)
        mean = float(gain.mean())
        helps = mean > 2.0 * error and mean > _NO_GAIN / 10
        verdict = "more data would help" if helps else "more data would hardly help"
        if not helps and mean + 2.0 * error > _NO_GAIN:
            verdict = "whether more data would help, these folds do not say"
        means = results.mean(axis=0)
        title = self.measure.title
        sentence = (
            f"From {int(sizes[1]):,} to {int(sizes[2]):,} rows, {title} goes from {means[1]:.4f} to {means[2]:.4f} "
            f"({mean:+.4f} ± {error:.4f}): {verdict}."
        )
        return {
            "rows": [int(size) for size in sizes],
            "scores": [float(value) for value in means],
            "more_data_helps": bool(helps),
            "sentence": sentence,
        }


def _quick(ranker: Any) -> Any:
    """A copy that stops as soon as measures cannot tell the difference."""
    kind = "gradient" if getattr(ranker, "loss", "hinge") != "hinge" and not hasattr(ranker, "solver") else "gap"
    return clone(ranker).set_params(tol=_TOL[kind])


def _dealt(test: _Data, rng: np.random.Generator) -> NDArray[np.intp]:
    """The block of each row: whole groups, or each class dealt out evenly."""
    if test.group is not None:
        _, group = np.unique(test.group, return_inverse=True)
        return rng.permutation(int(group.max()) + 1)[group] % _BLOCKS
    block = np.empty(test.y.size, dtype=np.intp)
    for label in np.unique(test.y):
        rows = rng.permutation(np.flatnonzero(test.y == label))
        block[rows] = np.arange(rows.size) % _BLOCKS
    return block


def _spread(train: _Data, rng: np.random.Generator) -> Rows:
    """An order of the rows in which every beginning has the shares of the classes, or whole groups."""
    if train.group is not None:
        _, group = np.unique(train.group, return_inverse=True)
        return np.argsort(rng.permutation(int(group.max()) + 1)[group], kind="stable")
    place = np.empty(train.y.size)
    for label in np.unique(train.y):
        rows = np.flatnonzero(train.y == label)
        place[rows] = rng.permutation(rows.size) / rows.size
    return np.argsort(place, kind="stable")


def _smoothed(values: Vector) -> Vector:
    """Each value with half the weight, its neighbours that are known with a quarter each."""
    total, weight = np.zeros(values.size), np.zeros(values.size)
    for shift, share in ((-1, 1.0), (0, 2.0), (1, 1.0)):
        moved = np.full(values.size, np.nan)
        low, high = max(0, shift), min(values.size, values.size + shift)
        moved[low:high] = values[low - shift : high - shift]
        known = np.isfinite(moved)
        total[known] += share * moved[known]
        weight[known] += share
    return np.where(np.isfinite(values), total / np.maximum(weight, 1.0), np.nan)
