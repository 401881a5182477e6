"""Base of the rankers that train on a sample of the pairs and points, in rounds."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from forerank._typing import Index, Mask, Matrix, Vector
from forerank._validation import check_weights
from forerank.design import Design, make_design
from forerank.estimators.base import BaseRanker, GraphRanker
from forerank.estimators.two_class import TwoClassRanker, read_pair_groups
from forerank.metrics.validation import number_groups
from forerank.pairsums import PairBlocks

__all__ = [
    "SAMPLED_ATTRIBUTES",
    "Round",
    "Rounds",
    "SampledRanker",
    "SampledRows",
]

SAMPLED_ATTRIBUTES = """graph : None, str or iterable of (preferred, other) labels, default=None
        Which classes are ranked above which, as in `PairwiseRanker`: "order" for grades, higher
        above lower. Needs gamma = 1, since points have two classes.
    warm_start : bool, default=False
        Whether a second call of fit goes on from the weights of the first; {start}
    random_state : int, RandomState or None, default=None
    verbose : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    classes_ : array
        Of two classes, the second is the positive one.
    thresholds_ : array of shape (n_classes - 1,)
        Only with `graph`: scores that split the training rows into classes of their true sizes,
        used by `predict`.
    n_iter_ : int
        Number of rounds.
    history_ : list of Round
        State after each round.
    n_features_in_ : int
    feature_names_in_ : array
        Only where X has column names."""


# Opens the rounds of a fit of a given size: a function that records one, and returns whether the
# callback ends the fit.
Rounds = Callable[[int], AbstractContextManager[Callable[..., bool]]]


@dataclass(frozen=True)
class Round:
    """State of a sampled fit after a round.

    Attributes
    ----------
    pool : int
        Pairs and points trained on so far.
    objective : float
        Active sampling: the objective over the pool, with the penalty of that pool, alpha budget /
        pool. Stochastic descent: the mean loss before each step of the round.
    optimality : float
        The relative duality gap over the pool; NaN for stochastic descent.
    acceptance : float
        The mean probability of accepting a proposal, zero for candidates drawn before. NaN for hard
        strategies and stochastic descent.
    rejected : int
        Proposals of this round that were not accepted.
    seconds : float
        Time since the beginning of the fit.
    auc : float
        AUC on `eval_set`, with groups the mean over them; with `graph` the share of its pairs in
        order (`forerank.metrics.wmw`). NaN without one.
    """

    pool: int
    objective: float
    optimality: float
    acceptance: float
    rejected: int
    seconds: float
    auc: float


@dataclass(frozen=True)
class SampledRows:
    """Rows to sample from: X, class numbers, weights (None where all are equal), numbers of groups
    (None without groups), and the blocks of pairs of a preference graph (None for two classes).
    """

    X: Matrix
    codes: NDArray[np.integer]
    weight: Vector | None
    group: Index | None
    blocks: PairBlocks | None = None

    def entries(self) -> tuple[Mask, Vector | None, Index | None, Index | None]:
        """For each place of a row in pairs: whether it is the preferred row, its weight, the number
        of its group or block, and its row; None for the last without a preference graph.
        """
        blocks = self.blocks
        if blocks is None:
            return self.codes == 1, self.weight, self.group, None
        number = np.repeat(np.arange(blocks.n_blocks), np.diff(blocks.start))
        weight = None if self.weight is None else blocks.weight
        return blocks.sign > 0.0, weight, number, blocks.rows


@dataclass(frozen=True)
class _Holdout:
    """Rows on which the AUC is computed, or the share of a graph's pairs in order."""

    design: Design
    labels: Any
    graph: Any
    qid: Any

    def auc(self, w: Vector) -> float:
        from forerank.metrics import roc_auc, wmw  # import much that a fit does not need

        scores = self.design.scores(w)
        if self.graph is None:
            return float(roc_auc(self.labels, scores, qid=self.qid))
        return float(wmw(self.labels, scores, graph=self.graph, qid=self.qid))


class SampledRanker(GraphRanker, TwoClassRanker):
    """Base of the sampled rankers: reads the rows, records and shows the rounds."""

    callback: Callable[[Any, Round], object] | None
    gamma: Any
    history_: list[Any]
    random_state: int | np.random.RandomState | None
    # Models of version 0.1 do not have them.
    warm_start = False
    graph: Any = None
    _more_classes_remedy = 'For graded labels, higher above lower, set graph="order" and gamma=1.'

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        *,
        eval_set: tuple[Any, ...] | None = None,
    ) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes with any labels, the one that sorts last is the positive class; or grades
            with `graph`.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights of the rows; a pair weighs the product of its two. Rows of weight
            zero are not drawn.
        qid : array-like of shape (n_samples,), optional
            The group of each row, any labels in any order. Pairs are formed within a group only;
            with gamma < 1 all rows are points, whatever their group. Refused with gamma = 0, which
            has no pairs.
        eval_set : tuple (X, y) or (X, y, qid), optional
            Rows and labels on which the AUC is computed after every round, for `history_`; with
            groups, the mean over groups; with `graph`, the share of its pairs in order.

        Returns
        -------
        self
        """
        self._check_parameters()
        begin = perf_counter()
        rows = self._read_rows(X, y, sample_weight, qid)
        holdout = self._read_eval_set(eval_set)
        self._fit_rows(rows, partial(self._rounds, holdout, begin))
        return self

    def _read_rows(self, X: Any, y: Any, sample_weight: Any, qid: Any) -> SampledRows:
        if self.graph is None:
            matrix, codes, positive, weight = self._read_two_classes(X, y, sample_weight)
            group = read_pair_groups(qid, positive, weight, self.gamma)
            return SampledRows(matrix, codes, weight, group)
        if self.gamma != 1.0:
            raise ValueError(
                f"graph={self.graph!r} is for pairs of any classes, but gamma={self.gamma!r} adds "
                "points, which have two classes. Set gamma=1, or graph=None."
            )
        matrix, codes = self._read(X, y)
        weight = check_weights(sample_weight, codes.size)
        group = None if qid is None else number_groups(qid, codes.size)
        blocks = self._objective(codes, "hinge", weight, group, group).blocks
        return SampledRows(matrix, codes, weight, group, blocks)

    def predict(self, X: ArrayLike) -> NDArray:
        """The class of each row: the higher one where the score is positive, or, with `graph`, by
        the thresholds that split the training rows by class sizes.
        """
        kind = BaseRanker if self.graph is None else GraphRanker
        return kind.predict(self, X)

    def _fit_rows(self, rows: SampledRows, rounds: Rounds) -> None:
        raise NotImplementedError

    def _read_eval_set(self, eval_set: Any) -> _Holdout | None:
        if eval_set is None:
            return None
        try:
            X, y, *others = eval_set
            (qid,) = others or (None,)
        except (TypeError, ValueError):
            raise ValueError(
                "eval_set must be a tuple (X, y) of rows and labels to compute the AUC on, or (X, "
                f"y, qid); got {type(eval_set).__name__}."
            ) from None
        types = [np.float64, np.float32]
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=types, reset=False)
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(
                f"eval_set has the label {unknown.tolist()[0]!r}; the labels of y are "
                f"{self.classes_.tolist()}."
            )
        if np.unique(y).size == 1:
            raise ValueError("eval_set has one class only; an AUC needs rows of both.")
        labels = y == self.classes_[1] if self.graph is None else y
        return _Holdout(make_design(X), labels, self.graph, qid)

    def _start(self, previous: Sequence[Vector] = (), intercept: bool = False) -> Vector | None:
        """The weights of the last fit, or None; along a path every fit is new, since no
        certificate shows that two starts lead to the same weights.
        """
        return None if self._on_path else super()._start(previous, intercept)

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))

    @contextmanager
    def _rounds(
        self, holdout: _Holdout | None, begin: float, total: int
    ) -> Iterator[Callable[..., bool]]:
        self.history_, self.n_iter_, nan = [], 0, float("nan")
        with self._progress_bar(total) as show:

            def record(
                pool: int,
                objective: float,
                optimality: float = nan,
                acceptance: float = nan,
                rejected: int = 0,
            ) -> bool:
                seconds, auc = perf_counter() - begin, nan
                if holdout is not None:
                    auc = holdout.auc(self.coef_[0])
                round = Round(pool, objective, optimality, acceptance, rejected, seconds, auc)
                self.history_.append(round)
                self.n_iter_ = len(self.history_)
                show(round)
                answer = None if self.callback is None else self.callback(self, round)
                return isinstance(answer, (bool, np.bool_)) and bool(answer)

            yield record

    @contextmanager
    def _progress_bar(self, total: int) -> Iterator[Callable[[Round], None]]:
        """A function that shows a round in a progress bar, if `verbose` is set."""
        if not self.verbose:
            yield lambda round: None
            return
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        text, note = TextColumn("{task.description}"), TextColumn("{task.fields[note]}")
        with Progress(text, BarColumn(), note, TimeRemainingColumn()) as progress:
            task = progress.add_task(type(self).__name__, total=total, note="")

            def show(round: Round) -> None:
                note = f"{round.pool:,} of {total:,}, objective {round.objective:.4g}"
                note += "" if np.isnan(round.auc) else f", AUC {round.auc:.4f}"
                progress.update(task, completed=round.pool, note=note)

            yield show
