"""What the loss on single rows says about the ranking: the bounds of kotlowski2011.

Notation. p is the share of the positive class, c(x) a real-valued classifier, and its rank risk is
the probability that a positive row stands below a negative one, ties counting one half: 1 - AUC.
Every bound holds for any distribution, so also for the empirical one of the data at hand: computed
from a sample it is a statement about that sample, with certainty, and about the population up to
the noise of the sample.

A bound above one says nothing. Balanced risks weigh the classes so that each counts one half: w(y)
= 1 / (2 P(y)).
"""

import warnings
from dataclasses import dataclass, field
from math import exp, isfinite, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy
from sklearn.exceptions import ConvergenceWarning

from forerank._typing import Vector
from forerank._validation import refuse_invalid_weights
from forerank.estimators import PointwiseRanker
from forerank.losses import get_loss
from forerank.metrics import rank_loss

__all__ = [
    "Bound",
    "BoundsReport",
    "balanced_error_bound",
    "error_bound",
    "error_rates_bound",
    "expected_rank_loss",
    "exponential_regret_bound",
    "logistic_regret_bound",
    "margin_bound",
    "report",
    "weight_deviation_bound",
]


# A class with less of the weight than this is as good as absent.
_LEAST_SHARE = 1e-12
# Margin losses in the bounds, with their value at zero: (11) is for losses that are one there.
_AT_ZERO = {"exponential": 1.0, "logistic": log(2.0), "hinge": 1.0, "squared_hinge": 1.0}


def error_rates_bound(false_negative: float, false_positive: float, prior: float) -> float:
    """Bound (8) on the rank risk, from P(c <= 0, y = 1), P(c >= 0, y = -1) and p = P(y = 1).

    A pair can be out of order only if its positive row is a false negative or its negative row a
    false positive, which are independent: fn/p + fp/(1 - p) - fn fp / (p (1 - p)). A score of
    exactly zero counts as an error of either kind. Holds for every classifier.

    Examples
    --------
    >>> round(error_rates_bound(0.05, 0.1, 0.5), 3)
    0.28
    >>> error_rates_bound(0.0, 0.7, 0.3)  # the majority classifier that calls every row positive
    1.0
    """
    _check_prior(prior)
    _check_range("false_negative", false_negative, 0.0, prior)
    _check_range("false_positive", false_positive, 0.0, 1.0 - prior)
    missed, alarmed = false_negative / prior, false_positive / (1.0 - prior)
    return missed + alarmed - missed * alarmed


def error_bound(risk: float, prior: float) -> float:
    """Bound (9) on the rank risk, from the 0/1 risk P(y c <= 0) and p: risk / min(p, 1 - p).

    Looser than (8), and the looser the rarer the smaller class is. Holds for every classifier;
    there is no such bound in terms of the regret, since the best classifier may leave all rows of a
    class tied.

    Examples
    --------
    >>> round(error_bound(0.02, 0.1), 3)
    0.2
    """
    _check_prior(prior)
    _check_range("risk", risk, 0.0, 1.0)
    return risk / min(prior, 1.0 - prior)


def balanced_error_bound(balanced_risk: float) -> float:
    """Bound (10) on the rank risk, from the balanced 0/1 risk: twice that, whatever the class
    sizes.

    Examples
    --------
    >>> balanced_error_bound(0.125)
    0.25
    """
    _check_range("balanced_risk", balanced_risk, 0.0, 1.0)
    return 2.0 * balanced_risk


def margin_bound(balanced_risk: float) -> float:
    """Bound (11) on the rank risk, from the balanced risk of a margin loss: twice that.

    Holds for every loss that is at least one for margins up to zero and not negative elsewhere: the
    exponential loss, both hinges, and the logistic loss divided by log 2.

    Examples
    --------
    >>> margin_bound(0.2)
    0.4
    """
    _check_range("balanced_risk", balanced_risk, 0.0, np.inf)
    return 2.0 * balanced_risk


def exponential_regret_bound(regret: float) -> float:
    """Bound (12) on the rank regret, from the regret of the balanced exponential risk: 3
    sqrt(regret / 2).

    Regrets are what a risk exceeds that of the best scores (the Bayes classifier and the Bayes
    ranker, which rank by P(y = 1 | x)) by. Holds for every classifier.

    Examples
    --------
    >>> round(exponential_regret_bound(0.02), 3)
    0.3
    """
    _check_range("regret", regret, 0.0, np.inf)
    return 3.0 / sqrt(2.0) * sqrt(regret)


def logistic_regret_bound(regret: float) -> float:
    """Bound (13) on the rank regret, from the regret of the balanced logistic risk: 2 sqrt(regret).

    The risk is taken with natural logarithms and not divided by log 2. Holds for every classifier.

    Examples
    --------
    >>> round(logistic_regret_bound(0.01), 3)
    0.2
    """
    _check_range("regret", regret, 0.0, np.inf)
    return 2.0 * sqrt(regret)


def weight_deviation_bound(prior: float, n_samples: int, eps: float) -> float:
    """Bound on P(|w - w'| / w >= eps) for the weight w' = 1 / (2 P') of a class whose share P' comes from n rows.

    The ratio is |P' - P| / P', so the event is P' <= P / (1 + eps) or P' >= P / (1 - eps); each tail is at most
    exp(-n KL) with the relative entropy of its end to P (Chernoff). The formula printed in section 3.2 of the paper,
    2 exp(-2 P n eps / (1 - eps)), has lost a square and does not hold: at P = 1/2, n = 100 and eps = 0.1 it gives 3e-5
    for a probability of about one third.

    Examples
    --------
    >>> round(weight_deviation_bound(0.5, 10_000, 0.1), 10) < 1e-8
    True
    """
    _check_prior(prior)
    _check_range("eps", eps, 0.0, 1.0)
    if not n_samples >= 1:
        raise ValueError(f"n_samples must be at least 1; got {n_samples!r}.")
    if eps == 0.0:
        return 1.0
    lower = exp(-n_samples * _relative_entropy(prior / (1.0 + eps), prior))
    upper = 0.0
    if eps < 1.0 and prior / (1.0 - eps) <= 1.0:
        upper = exp(-n_samples * _relative_entropy(prior / (1.0 - eps), prior))
    return min(lower + upper, 1.0)


def expected_rank_loss(
    y_score: ArrayLike, probability: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """The rank risk where each row is positive with a known probability, exactly: no labels are
    drawn.

    Row i counts as a positive of weight P(y = 1 | x_i) and as a negative of the rest. With the probabilities themselves
    as scores it is the smallest there is, the Bayes rank risk. Cost: one sort.

    Examples
    --------
    >>> round(expected_rank_loss([0.9, 0.1], [0.9, 0.1]), 3)
    0.1
    """
    probability = _check_probability(probability)
    scores = np.asarray(y_score)
    if scores.shape != probability.shape:
        raise ValueError(
            f"y_score has shape {scores.shape} and probability {probability.shape}; give one of each per row."
        )
    weight = _check_weight(sample_weight, probability.size)
    y = np.repeat([1, 0], probability.size)
    return rank_loss(
        y,
        np.tile(scores, 2),
        sample_weight=np.concatenate([weight * probability, weight * (1.0 - probability)]),
    )


@dataclass(frozen=True)
class Bound:
    """One bound: what it is of, its equation, the quantity, and the bound on it."""

    name: str
    equation: int
    quantity: float
    bound: float

    @property
    def tightness(self) -> float:
        """The quantity as a share of the bound: one where the bound is met, zero where it says
        little.
        """
        return self.quantity / self.bound if self.bound > 0.0 else 1.0

    @property
    def holds(self) -> bool:
        return self.quantity <= self.bound + 1e-12


@dataclass(frozen=True)
class BoundsReport:
    """The ranking of a fitted ranker, and what its classification says about it; `print` it.

    Attributes
    ----------
    rank_loss : float
        The share of pairs out of order, 1 - AUC.
    error : float
        The 0/1 risk with the threshold at zero.
    false_negative, false_positive : float
        Shares of all rows; a score of zero counts as an error.
    prior : float
        The share of the positive class.
    risks : dict
        Balanced risks: of the 0/1 loss ("error") and of margin losses divided by their value at
        zero.
    bounds : list of Bound
        Those on the rank loss; with known probabilities also those on the regret.
    rank_regret : float or None
        The rank loss less that of the best ranking, where the probabilities are known.
    """

    rank_loss: float
    error: float
    false_negative: float
    false_positive: float
    prior: float
    risks: dict[str, float]
    bounds: list[Bound]
    rank_regret: float | None = None
    _width: int = field(default=57, repr=False)

    def __str__(self) -> str:
        lines = [
            f"rank loss {self.rank_loss:.4f} (AUC {1.0 - self.rank_loss:.4f}), "
            f"0/1 risk {self.error:.4f}, positives {self.prior:.1%}"
        ]
        if self.rank_regret is not None:
            lines.append(f"rank regret {self.rank_regret:.4f}")
        lines.append(
            f"{'bound on the rank loss or regret, from':<{self._width}} {'eq.':>4} {'bound':>8} {'tight to':>9}"
        )
        for b in self.bounds:
            said = f"{b.bound:8.4f}" if b.bound < 1.0 else "  (none)"
            lines.append(
                f"{b.name:<{self._width}} {f'({b.equation})':>4} {said} {b.tightness:>9.1%}"
            )
        return "\n".join(lines)


def report(
    ranker: Any,
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    probability: ArrayLike | None = None,
) -> BoundsReport:
    """How the rank loss of a fitted binary ranker compares with what its classification risks
    promise.

    Parameters
    ----------
    ranker : fitted estimator with a `decision_function`
        Scores above zero stand for the class that sorts last.
    X, y : rows and labels
        Those to be judged on; two classes.
    sample_weight : array-like of shape (n_samples,), optional
    probability : array-like of shape (n_samples,), optional
        P(y = 1 | x) of each row where it is known, as for `forerank.data.datasets.make_bipartite`. Risks are then
        expectations over labels, and the regret bounds (12) and (13) are added.

    Returns
    -------
    BoundsReport

    Notes
    -----
    Margin bounds depend on the scale and the shift of the scores, which the ranking does not.
    They are given for the scores as they are, and for the best scale and shift (a fit of one
    column, with balanced weights): that is the bound of another classifier with the same ranking,
    so it holds as well.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = make_pipeline(StandardScaler(), PointwiseRanker(alpha=1e-2)).fit(X, y)
    >>> all(bound.holds for bound in report(ranker, X, y).bounds)
    True
    """
    if not hasattr(ranker, "decision_function"):
        raise TypeError(
            f"{type(ranker).__name__} has no decision_function; the bounds need real-valued scores."
        )
    scores = np.asarray(ranker.decision_function(X), dtype=float)
    if scores.ndim != 1:
        raise ValueError(
            f"decision_function gave an array of shape {scores.shape}; a binary ranker is expected."
        )
    if np.isnan(scores).any():
        raise ValueError(
            f"decision_function gave NaN in {np.isnan(scores).sum()} of {scores.size} rows."
        )
    truth = np.asarray(y)
    if truth.shape != scores.shape:
        raise ValueError(
            f"y has shape {truth.shape} for {scores.size} rows; give one label per row."
        )
    if probability is None:
        labels = np.unique(truth)
        if labels.size != 2:
            raise ValueError(f"y has {labels.size} classes; the bounds are for two.")
        chance = (truth == labels[1]).astype(float)
    else:
        chance = _check_probability(probability)
        if chance.size != scores.size:
            raise ValueError(
                f"probability has {chance.size} entries for {scores.size} rows; give one per row."
            )
    weight = _check_weight(sample_weight, scores.size)
    of_positive, of_negative = weight * chance, weight * (1.0 - chance)
    share = of_positive.sum() / weight.sum()
    if not _LEAST_SHARE < share < 1.0 - _LEAST_SHARE:
        raise ValueError(
            f"The positive class has the share {share:g} of the weight; both classes need some, or there is no ranking "
            "to judge."
        )
    judged = _Judged(scores, of_positive / weight.sum(), of_negative / weight.sum())
    return judged.report(known=probability is not None)


class _Judged:
    """Scores with the weight of each row as a positive and as a negative; both together sum to one."""

    def __init__(self, scores: Vector, of_positive: Vector, of_negative: Vector) -> None:
        self.scores, self.of_positive, self.of_negative = scores, of_positive, of_negative
        self.prior = float(of_positive.sum())

    def rank_loss(self, scores: Vector) -> float:
        rows = np.repeat([1, 0], scores.size)
        weight = np.concatenate([self.of_positive, self.of_negative])
        return rank_loss(rows, np.tile(scores, 2), sample_weight=weight)

    def balanced(self) -> tuple[Vector, Vector]:
        return self.of_positive / (2.0 * self.prior), self.of_negative / (2.0 * (1.0 - self.prior))

    def balanced_risk(self, loss: str, scores: Vector) -> float:
        up, down = self.balanced()
        with np.errstate(over="ignore", invalid="ignore"):
            # A row of no weight in a class has no loss there, even where that would be infinite.
            risk = np.where(up > 0, up * get_loss(loss).value(scores), 0.0).sum()
            risk += np.where(down > 0, down * get_loss(loss).value(-scores), 0.0).sum()
        return float(risk) / _AT_ZERO[loss]

    def rescaled(self, loss: str) -> Vector:
        """Scores times a plus b with a > 0, for which the balanced risk is about the smallest.

        The scores as they are where that is a constant: it would be another ranking.
        """
        up, down = self.balanced()
        spread = float(self.scores.max() / 2.0 - self.scores.min() / 2.0)
        if spread == 0.0 or not isfinite(spread):
            return self.scores
        column = np.tile((self.scores - self.scores.mean()) / spread, 2)[:, None]
        y, weight = np.repeat([1, 0], self.scores.size), np.concatenate([up, down])
        kept = weight > 0.0
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ConvergenceWarning
            )  # any scale will do, the best is only tighter
            # A trace of a penalty keeps the scale finite where the classes can be told apart.
            fit = PointwiseRanker(loss, alpha=1e-9, tol=1e-6).fit(
                column[kept], y[kept], sample_weight=weight[kept]
            )
        return (
            fit.decision_function(column[: self.scores.size])
            if fit.coef_[0, 0] > 0.0
            else self.scores
        )

    def bayes_risk(self, loss: str) -> float:
        """The smallest balanced risk over all scores: the minimum for each row alone."""
        a, b = self.balanced()
        if loss == "exponential":
            return float(2.0 * np.sqrt(a * b).sum())
        return float((xlogy(a + b, a + b) - xlogy(a, a) - xlogy(b, b)).sum())

    def report(self, *, known: bool) -> BoundsReport:
        ranked = self.rank_loss(self.scores)
        false_negative = float(self.of_positive[self.scores <= 0.0].sum())
        false_positive = float(self.of_negative[self.scores >= 0.0].sum())
        p = self.prior
        balanced_error = 0.5 * (false_negative / p + false_positive / (1.0 - p))
        risks = {"error": balanced_error}
        bounds = [
            Bound("false negatives and false positives", 8, ranked,
                  error_rates_bound(min(false_negative, p), min(false_positive, 1.0 - p), p)),
            Bound("0/1 risk", 9, ranked, error_bound(min(false_negative + false_positive, 1.0), p)),
            Bound("balanced 0/1 risk", 10, ranked, balanced_error_bound(min(balanced_error, 1.0))),
        ]  # fmt: skip
        for loss in _AT_ZERO:
            risks[loss] = self.balanced_risk(loss, self.scores)
            bounds.append(
                Bound(
                    f"balanced {loss.replace('_', ' ')} risk", 11, ranked, margin_bound(risks[loss])
                )
            )
        rescaled = {loss: self.rescaled(loss) for loss in ("exponential", "logistic")}
        for loss, scores in rescaled.items():
            bound = margin_bound(min(self.balanced_risk(loss, scores), risks[loss]))
            bounds.append(Bound(f"balanced {loss} risk, scores rescaled", 11, ranked, bound))
        regret = None
        if known:
            chance = self.of_positive / np.maximum(self.of_positive + self.of_negative, 1e-300)
            regret = max(ranked - self.rank_loss(chance), 0.0)
            for loss, equation, bound_of in (
                ("exponential", 12, exponential_regret_bound),
                ("logistic", 13, logistic_regret_bound),
            ):
                for how, scores in (("", self.scores), (", scores rescaled", rescaled[loss])):
                    risk = self.balanced_risk(loss, scores) * _AT_ZERO[loss]
                    bound = bound_of(max(risk - self.bayes_risk(loss), 0.0))
                    bounds.append(
                        Bound(f"regret of the balanced {loss} risk{how}", equation, regret, bound)
                    )
        error = false_negative + false_positive
        return BoundsReport(ranked, error, false_negative, false_positive, p, risks, bounds, regret)


def _relative_entropy(x: float, p: float) -> float:
    """Of a coin with chance x to one with chance p."""
    return float(xlogy(x, x / p) + xlogy(1.0 - x, (1.0 - x) / (1.0 - p)))


def _check_prior(prior: float) -> None:
    if not 0.0 < prior < 1.0:
        raise ValueError(
            f"prior={prior!r}: the share of the positive class must lie between 0 and 1."
        )


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high * (1.0 + 1e-12):
        raise ValueError(f"{name}={value!r}: a number between {low:g} and {high:g} is expected.")


def _check_weight(sample_weight: ArrayLike | None, n_rows: int) -> Vector:
    """Weights with a maximum of one."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight, dtype=float)
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weight.shape} for {n_rows} rows; give one weight per row."
        )
    refuse_invalid_weights(weight)
    return weight / weight.max()


def _check_probability(probability: ArrayLike) -> Vector:
    values = np.asarray(probability, dtype=float)
    if values.ndim != 1 or not np.all((values >= 0.0) & (values <= 1.0)):
        raise ValueError("probability must hold one number between 0 and 1 for each row.")
    return values
