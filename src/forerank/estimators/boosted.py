"""Gradient boosted trees: BoostedRanker."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Self

import joblib
import numpy as np
import scipy.sparse as sp
from joblib.parallel import get_active_backend
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from forerank._kernels import n_threads
from forerank._typing import Matrix, Vector
from forerank._validation import check_choice, check_number, check_weights, is_integer
from forerank.estimators.base import (
    GraphRanker,
    available_or_remedy,
    refuse_more_than_two,
    refuse_weightless_class,
    warn_equal_scores,
)
from forerank.estimators.boosting_columns import (
    category_columns,
    category_values,
    check_codes,
    is_constant,
    remedy_of_words,
    with_codes,
)
from forerank.estimators.boosting_problem import BoostingProblem, n_threads_for
from forerank.estimators.boosting_rounds import (
    RoundsCurve,
    choose_rounds,
    measured,
    without_weightless_rows,
)
from forerank.estimators.checked_rows import checked_rows
from forerank.estimators.tensors import rows_on_host
from forerank.metrics.registry import measure_for_labels, measure_named
from forerank.metrics.validation import number_groups
from forerank.objectives.boosting import BOOSTING_LOSSES, PAIR_LOSSES
from forerank.trees import GrowthSettings, TreeEnsemble, choose_backend

__all__ = ["BoostedRanker"]

# Rows of a leaf where `min_samples_leaf` is None: this many, and for few rows this share of them.
_LEAF_ROWS, _LEAF_SHARE = 20, 0.05
# Rounds where there are too few rows to choose them.
_UNMEASURED_ROUNDS = 100
# Rows held out for early stopping: one of so many parts.
_STOPPING_PARTS = 5
# Values of a dense chunk of a sparse matrix whose contributions are computed at once.
_CHUNK_VALUES = 1 << 22


class BoostedRanker(GraphRanker):
    """Ranks by a sum of regression trees, each grown on the gradient of a loss on rows or pairs.

    The score is a constant plus the value of a leaf in every tree. A round of boosting grows a tree
    whose leaves have the values  -learning_rate g / (h + l2)  with g and h the sums of the gradient
    and of the diagonal of the curvature of the loss over the rows of the leaf. Both are exact over
    all pairs, at the cost of a sort (`forerank.pairsums`); no pair is sampled. Missing values (NaN)
    and categories need no preparation, and the scale of a column does not matter. The trees are
    grown by LightGBM, or by scikit-learn where LightGBM is not installed, and kept as arrays.

    Parameters
    ----------
    loss : str, default="logistic"
        "logistic" or "exponential" on rows; over all pairs "pairwise-logistic",
        "pairwise-squared-hinge" or "pairwise-exponential"; "top": positives against a soft maximum
        of the negatives (`forerank.objectives.SmoothTop`). On rows, groups only matter for folds
        and measures. All but "logistic" need LightGBM.
    learning_rate : float, default=0.05
        Factor on the value of every leaf.
    max_leaf_nodes : int, default=15
        Most leaves of a tree.
    min_samples_leaf : int or None, default=None
        Fewest rows of a leaf, not weighted. None: 20, or 5 % of the rows where these are fewer.
    l2 : float, default=1.0
        Penalty on the values of leaves.
    max_features : float, default=0.8
        Share of the columns that are drawn for every tree (every node, with scikit-learn).
    rounds : int, "cv" or "early_stopping", default="cv"
        Number of trees. "cv": the middle of those whose mean measure over folds is within noise of
        the best; "early_stopping": the best on one fifth of the rows. Then all rows are used. Where
        there are too few rows to split, 100.
    max_rounds : int, default=1000
        Most rounds that are tried.
    n_models : int, default=1
        Number of sums of trees, each with other draws of columns, whose mean is the score. Four
        rank better than one where rows are few, for four times the work of the last fit and of
        every score; `rounds` is chosen with one. Without draws (`max_features=1`) all are the same.
    metric : str, default="auc"
        The measure that chooses the rounds: "auc", "ap", "recall@50", ...; see
        `forerank.metrics`. With grades, "auc" is the share of pairs in order.
    cv : int, splitter or list of (train, test), default=5
        Folds of rows, stratified, or of groups.
    categorical_features : None, "from_dtype", or list or mask of columns, default=None
        Columns of categories, by number, name or mask. They hold codes 0, 1, 2, ..., or in a
        pandas or polars frame words or values of a categorical type; "from_dtype" takes all columns
        of such a type. A value that no training row has is treated as missing.
    graph : None, str or iterable of (preferred, other) labels, default=None
        Which classes are ranked above which, for losses over pairs; as in `PairwiseRanker`.
    backend : {"auto", "lightgbm", "histogram"}, default="auto"
        The library that grows the trees; "histogram" is scikit-learn's
        HistGradientBoostingClassifier. "auto": LightGBM where it is installed.
    warm_start : bool, default=False
        Whether a second call of fit keeps the trees of the first and adds trees up to `rounds`, a
        number. scikit-learn grows all of them again.
    n_jobs : int or None, default=None
        Number of threads. None: as many as physical cores, but one within joblib.Parallel. Small
        data use fewer.
    random_state : int, RandomState or None, default=None
        For folds and for the columns that are drawn.
    verbose : bool, default=False
        Whether to print the measure by rounds.

    Attributes
    ----------
    ensemble_ : forerank.trees.TreeEnsemble
        The trees as arrays; the constant and the leaves sum to the score. A round has a tree of
        each of the models.
    n_rounds_ : int
        Number of rounds; fewer than `rounds` where no split is left.
    backend_ : str
        The library that grew the trees.
    validation_curve_ : dict or None
        "rounds", "mean" over folds and "values" (numbers of rounds x folds) of the measure; None
        for a given number of rounds.
    feature_importances_ : array of shape (n_features,)
        The decrease of the loss by the splits on each column, as shares of one.
    intercept_ : array of shape (1,)
        The constant of the scores.
    classes_ : array
    thresholds_ : array of shape (n_classes - 1,)
        As in `PairwiseRanker`; zero for losses on rows.
    categorical_ : array of int
        Numbers of the columns of categories.
    n_features_in_ : int
    feature_names_in_ : array
        Only where X has column names.

    Notes
    -----
    Cost: one pass over N x d bytes for each round and level; for `rounds="cv"` about five times as
    many rounds. LightGBM cuts a column into bins, one for 32 rows, but 63 to 255 of them. Only
    ratios of sample weights count: they are divided by their mean, so that the penalty l2 has the
    same strength. An integer weight is the same as repeated rows for l2=0, up to the bins of
    columns and `min_samples_leaf`, which counts rows.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = BoostedRanker(rounds=50, n_jobs=1, random_state=0).fit(X[::2], y[::2])
    >>> bool(roc_auc_score(y[1::2], ranker.decision_function(X[1::2])) > 0.97)
    True
    """

    # Models of earlier versions have neither, and one sum of trees.
    n_models: int = 1
    _n_models = 1

    def __init__(
        self,
        loss: str = "logistic",
        *,
        learning_rate: float = 0.05,
        max_leaf_nodes: int = 15,
        min_samples_leaf: int | None = None,
        l2: float = 1.0,
        max_features: float = 0.8,
        rounds: int | str = "cv",
        max_rounds: int = 1000,
        n_models: int = 1,
        metric: str = "auc",
        cv: Any = 5,
        categorical_features: Any = None,
        graph: str | Iterable[tuple] | None = None,
        backend: str = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.l2 = l2
        self.max_features = max_features
        self.rounds = rounds
        self.max_rounds = max_rounds
        self.n_models = n_models
        self.metric = metric
        self.cv = cv
        self.categorical_features = categorical_features
        self.graph = graph
        self.backend = backend
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # --- Fitting ---

    def _fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, qid: ArrayLike | None
    ) -> Self:
        kept = getattr(self, "ensemble_", None) if self.warm_start else None
        seed = self._seed()
        problem = self._problem(X, y, sample_weight, qid, seed)
        rounds, curve = self._rounds(problem, seed)
        if kept is not None:
            self._check_kept(kept.n_trees, rounds)
        start = problem.start() if kept is None or problem.backend == "histogram" else kept
        trees = problem.grower(start).grow(rounds - start.n_trees // self.n_models)
        self.ensemble_ = TreeEnsemble.joined([start, trees])
        self.n_rounds_ = self.ensemble_.n_trees // self.n_models
        self._n_models, self.backend_ = self.n_models, problem.backend
        self.validation_curve_ = None if curve is None else _curve_as_dict(curve)
        self._grouped = qid is not None
        self._set_predictions(problem)
        if self.ensemble_.n_leaves <= self.ensemble_.n_trees:
            self._warn_equal_scores(problem.settings.min_samples_leaf)
        return self

    def _warn_equal_scores(self, in_leaf: int) -> None:
        cause = f"no split leaves {in_leaf:,} rows or more (min_samples_leaf) on both sides"
        warn_equal_scores(self, cause, "Add columns, or lower min_samples_leaf or l2.")

    def _check_kept(self, n_trees: int, rounds: int) -> None:
        """ValueError where a warm start cannot keep the trees of the last fit."""
        if self.n_models != self._n_models:
            raise ValueError(
                f"warm_start=True keeps the trees of n_models={self._n_models}; got "
                f"n_models={self.n_models}. Keep that number, or set warm_start=False."
            )
        if n_trees > rounds * self.n_models:
            raise ValueError(
                f"warm_start=True keeps the {n_trees // self.n_models} rounds of the last fit, "
                f"more than rounds={rounds}. Raise it, or set warm_start=False."
            )

    def _check_parameters(self) -> None:
        check_choice("loss", self.loss, BOOSTING_LOSSES)
        check_number("learning_rate", self.learning_rate, low=0.0, strict=True)
        check_number("max_leaf_nodes", self.max_leaf_nodes, low=2, integer=True)
        if self.min_samples_leaf is not None:
            check_number("min_samples_leaf", self.min_samples_leaf, low=1, integer=True)
        check_number("l2", self.l2, low=0.0)
        check_number("max_features", self.max_features, low=0.0, strict=True)
        if self.max_features > 1.0:
            raise ValueError(
                f"max_features is a share of the columns, at most 1; got {self.max_features!r}."
            )
        check_number("max_rounds", self.max_rounds, low=1, integer=True)
        check_number("n_models", self.n_models, low=1, integer=True)
        by_name = isinstance(self.rounds, str) and self.rounds in ("cv", "early_stopping")
        if not by_name and not (is_integer(self.rounds) and self.rounds >= 1):
            raise ValueError(
                'rounds must be a whole number of at least 1, "cv" or "early_stopping"; got '
                f"{self.rounds!r}."
            )
        if by_name and self.warm_start:
            raise ValueError(
                f"warm_start=True adds trees up to a number of rounds; got {self.rounds!r}."
            )
        measure_named(self.metric)  # an unknown one is an error, also where it chooses nothing
        if self.graph is not None and self.loss not in PAIR_LOSSES:
            raise ValueError(
                f"graph={self.graph!r} orders pairs of classes, and loss={self.loss!r} has no pairs"
                ' of them. Choose loss="pairwise-logistic".'
            )

    def _problem(self, X: Any, y: Any, sample_weight: Any, qid: Any, seed: int) -> BoostingProblem:
        """The checked rows, with loss and settings."""
        self._check_parameters()
        backend = choose_backend(self.backend, logistic=self.loss == "logistic", loss=self.loss)
        X, codes = self._read(X, y)
        weight = check_weights(sample_weight, codes.size)
        group = None if qid is None else number_groups(qid, codes.size)
        edges = self._edges_of_pairs(codes, weight, group)
        weighted = X if weight is None or weight.all() else X[np.flatnonzero(weight)]
        if is_constant(weighted):
            raise ValueError("Every column of X is constant; trees need a column that varies.")
        settings = self._settings(weighted, seed)
        columns = tuple(int(k) for k in self.categorical_)
        return BoostingProblem(
            X, codes, weight, group, edges, self.loss, columns, backend, settings
        )

    def _edges_of_pairs(
        self, codes: NDArray[np.integer], weight: Vector | None, group: Any
    ) -> list[tuple[int, int]] | None:
        """The preference graph; ValueError where the loss has no rows to order."""
        if self.loss in PAIR_LOSSES:
            self._objective(codes, PAIR_LOSSES[self.loss], weight, group, group)
            return self._edges()
        refuse_more_than_two(
            self.classes_, 'For grades set loss="pairwise-logistic" and graph="order".'
        )
        refuse_weightless_class(weight, codes == 1, self.classes_)
        return None

    def _settings(self, X: Matrix, seed: int) -> GrowthSettings:
        in_leaf = self.min_samples_leaf
        if in_leaf is None:
            in_leaf = max(1, min(_LEAF_ROWS, int(_LEAF_SHARE * X.shape[0])))
        threads = _allowed_threads(self.n_jobs)
        if self.n_jobs is None:
            threads = n_threads_for(X, threads)
        return GrowthSettings(
            self.learning_rate, self.max_leaf_nodes, in_leaf, self.l2, self.max_features, threads,
            seed, self.n_models,
        )  # fmt: skip

    def _seed(self) -> int:
        if is_integer(self.random_state):
            return int(self.random_state) % (1 << 31)
        return int(check_random_state(self.random_state).randint((1 << 31) - 1))

    # --- The number of rounds ---

    def _rounds(self, problem: BoostingProblem, seed: int) -> tuple[int, RoundsCurve | None]:
        """The number of rounds, and the curve that it was chosen from."""
        measure = measure_for_labels(self.metric, graded=self.classes_.size > 2)
        if is_integer(self.rounds):
            return int(self.rounds), None
        from forerank.data.folds import TooFewRowsError, make_folds  # loads much of scikit-learn

        one = self.rounds == "early_stopping"
        problem, cv = without_weightless_rows(problem, _STOPPING_PARTS if one else self.cv)
        try:
            folds = make_folds(cv, problem.codes, problem.group, seed)
        except TooFewRowsError:
            return min(_UNMEASURED_ROUNDS, self.max_rounds), None
        splits = folds.splits[:1] if one else folds.splits
        measure_rows = partial(measured, problem, measure)
        one_model = problem.models()[0]
        curve = choose_rounds(one_model, splits, measure_rows, self.max_rounds, self._report)
        if curve is None:
            return min(_UNMEASURED_ROUNDS, self.max_rounds), None
        return curve.best, curve

    def _report(self, rounds: int, value: float) -> None:
        if self.verbose:
            print(f"{rounds:>6} rounds: {self.metric} {value:.4f}")

    # --- Scores ---

    def _validated(self, *data: Any, reset: bool = False, sparse: str = "csr") -> Any:
        """X (and y) as scikit-learn checks them; NaN is allowed, and categories become codes."""
        self._refuse_dask(data[0], fitting=reset)
        data = (rows_on_host(self, data[0]), *data[1:])
        if reset and not (self.warm_start and hasattr(self, "ensemble_")):
            columns = category_columns(self.categorical_features, data[0])
            self.categorical_ = np.array(columns, dtype=np.intp)
            self._category_values = category_values(data[0], columns)
        elif hasattr(data[0], "columns") and any(v is not None for v in self._category_values):
            # The names and the number of columns, before codes are looked up by the column.
            validate_data(self, data[0], skip_check_array=True, reset=False)
        columns = tuple(int(k) for k in self.categorical_)
        X = with_codes(data[0], columns, self._category_values)
        if self._is_valid(X, *data[1:], reset=reset):
            checked = super()._validated(X, *data[1:], reset=reset)
        else:
            checked = checked_rows(
                self,
                X,
                *data[1:],
                remedy=remedy_of_words,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite="allow-nan",
                reset=reset,
            )
        if reset:
            check_codes(checked[0], columns)
        return checked

    def decision_function(self, X: ArrayLike) -> Vector:
        """Scores; rows with higher scores are ranked above others.

        Cost: the depth of each tree, for each row.
        """
        check_is_fitted(self)
        return self.ensemble_.scores(self._validated(X))

    def staged_decision_function(self, X: ArrayLike) -> Iterator[Vector]:
        """Scores after each round, with the last constant."""
        check_is_fitted(self)
        yield from self.ensemble_.staged_scores(self._validated(X), self._n_models)

    def _remedy(self) -> str | None:
        if self.loss == "logistic" and not getattr(self, "_grouped", False):
            return None
        return super()._remedy()

    @available_or_remedy(lambda ranker: ranker._remedy())
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predicted probabilities of the classes, for the logistic loss on rows without groups."""
        positive = expit(self.decision_function(X))
        return np.column_stack([1.0 - positive, positive])

    def contributions(self, X: ArrayLike) -> Vector:
        """What each column adds to the score of each row, and last the mean score of training rows.

        Shapley values; see `forerank.trees.TreeEnsemble.contributions`. Rows sum to the scores.
        """
        check_is_fitted(self)
        rows = self._validated(X)
        if not sp.issparse(rows):
            return self.ensemble_.contributions(rows)
        step = max(1, _CHUNK_VALUES // rows.shape[1])
        chunks = [rows[first : first + step] for first in range(0, rows.shape[0], step)]
        return np.concatenate([self.ensemble_.contributions(chunk) for chunk in chunks])

    @property
    def feature_importances_(self) -> Vector:
        """The decrease of the loss by the splits on each column, as shares of one."""
        check_is_fitted(self)
        return self.ensemble_.importances()

    @property
    def intercept_(self) -> Vector:
        """The constant of the scores, an array of one number."""
        check_is_fitted(self)
        return np.array([self.ensemble_.constant])

    @intercept_.setter
    def intercept_(self, value: Vector) -> None:
        self.ensemble_.constant = float(np.ravel(value)[0])

    def iter_scores(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_test: ArrayLike,
        rounds: Iterable[int],
        sample_weight: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> Iterator[Vector]:
        """Scores of other rows after ascending numbers of rounds, as a generator.

        Trees are grown on X when scores are asked for, and every tree is scored once; closing the
        generator ends the boosting. The ranker itself is not changed, and its `rounds` is not used.
        Losses over pairs have scores without the constant that `fit` sets for `predict`.
        """
        ranker = clone(self).set_params(rounds=1, warm_start=False)
        problem = ranker._problem(X, y, sample_weight, qid, self._seed())
        return problem.iter_scores(ranker._validated(X_test), rounds)

    def _set_predictions(self, problem: BoostingProblem) -> None:
        """The thresholds of `predict`; over pairs they set the constant of two classes."""
        self.thresholds_, self._ascending = np.zeros(1), np.arange(2)
        if self.loss in PAIR_LOSSES or self.loss == "top":
            self.ensemble_.constant = 0.0
            scores = self.ensemble_.scores(problem.X)
            self._set_thresholds(scores, problem.codes, problem.weight)


def _curve_as_dict(curve: RoundsCurve) -> dict[str, Any]:
    return {"rounds": curve.rounds, "mean": curve.mean, "values": curve.values}


def _allowed_threads(n_jobs: int | None) -> int:
    """Number of threads: of physical cores by default, and one within joblib.Parallel."""
    if n_jobs is not None:
        return int(joblib.effective_n_jobs(n_jobs))
    if get_active_backend()[0].nesting_level:
        return 1
    return max(1, min(n_threads(), joblib.cpu_count(only_physical_cores=True)))
