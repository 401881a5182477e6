"""Bounds of kotlowski2011 on the rank risk, from losses on single rows.

Notation. p is the share of the positive class, c(x) a real-valued classifier. Its rank risk is the
probability that a positive row is ranked below a negative one, ties counting one half: 1 - AUC.
Every bound holds for any distribution, so also for the empirical one of a sample: computed from
the sample it holds with certainty for it, and for the population up to the sampling error.

A bound of one or more is vacuous. Balanced risks weigh the classes so that each counts one half:
w(y) = 1 / (2 P(y)). A regret is a risk minus the smallest possible risk, that of ranking or
classifying by P(y = 1 | x).
"""

from dataclasses import dataclass
from math import exp, isfinite, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from forerank._kernels import serial_blas
from forerank._typing import Mask, Matrix, Vector
from forerank._validation import check_weights, refuse_invalid_weights
from forerank.design import make_design
from forerank.losses import get_loss
from forerank.metrics import rank_loss
from forerank.objectives import Pointwise, Profiled
from forerank.solvers import newton

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


# Share of the weight below which a class counts as absent: its balanced weights would overflow.
_LEAST_SHARE = 1e-12
# Margin losses of the bounds, with their values at zero; bound (11) is for losses that are one
# there.
_AT_ZERO = {"exponential": 1.0, "logistic": log(2.0), "hinge": 1.0, "squared_hinge": 1.0}
# Width of the column of names, in characters.
_NAME_WIDTH = 57
# Penalty of the fit of a scale and a shift: keeps the scale finite for separable classes.
_RESCALING_ALPHA = 1e-9


def error_rates_bound(false_negative: float, false_positive: float, prior: float) -> float:
    """Bound (8) on the rank risk, from P(c <= 0, y = 1), P(c >= 0, y = -1) and p = P(y = 1).

    A pair can be misranked only if its positive row is a false negative or its negative row a
    false positive, which are independent: fn/p + fp/(1 - p) - fn fp / (p (1 - p)). A score of
    exactly zero counts as an error. Holds for every classifier.

    >>> round(error_rates_bound(0.05, 0.1, 0.5), 3)
    0.28
    >>> error_rates_bound(0.0, 0.7, 0.3)  # the classifier that calls every row positive
    1.0
    """
    _check_prior(prior)
    _check_range("false_negative", false_negative, 0.0, prior)
    _check_range("false_positive", false_positive, 0.0, 1.0 - prior)
    fnr, fpr = false_negative / prior, false_positive / (1.0 - prior)
    return fnr + fpr - fnr * fpr


def error_bound(risk: float, prior: float) -> float:
    """Bound (9) on the rank risk, from the 0/1 risk P(y c <= 0) and p: risk / min(p, 1 - p).

    Looser than (8), most of all where one class is rare. Holds for every classifier; there is no
    such bound from the regret, since the best classifier may give all rows equal scores.

    >>> round(error_bound(0.02, 0.1), 3)
    0.2
    """
    _check_prior(prior)
    _check_range("risk", risk, 0.0, 1.0)
    return risk / min(prior, 1.0 - prior)


def balanced_error_bound(balanced_risk: float) -> float:
    """Bound (10) on the rank risk, from the balanced 0/1 risk: twice that, for all class sizes.

    >>> balanced_error_bound(0.125)
    0.25
    """
    _check_range("balanced_risk", balanced_risk, 0.0, 1.0)
    return 2.0 * balanced_risk


def margin_bound(balanced_risk: float) -> float:
    """Bound (11) on the rank risk, from the balanced risk of a margin loss: twice that.

    Holds for every loss that is at least one for margins up to zero and not negative elsewhere: the
    exponential loss, both hinges, and the logistic loss divided by log 2.

    >>> margin_bound(0.2)
    0.4
    """
    _check_range("balanced_risk", balanced_risk, 0.0, np.inf)
    return 2.0 * balanced_risk


def exponential_regret_bound(regret: float) -> float:
    """Bound (12) on the rank regret: 3 sqrt(r / 2), r the regret of the balanced exponential risk.

    >>> round(exponential_regret_bound(0.02), 3)
    0.3
    """
    _check_range("regret", regret, 0.0, np.inf)
    return 3.0 / sqrt(2.0) * sqrt(regret)


def logistic_regret_bound(regret: float) -> float:
    """Bound (13) on the rank regret: 2 sqrt(r) for the regret r of the balanced logistic risk.

    The risk has natural logarithms and is not divided by log 2.

    >>> round(logistic_regret_bound(0.01), 3)
    0.2
    """
    _check_range("regret", regret, 0.0, np.inf)
    return 2.0 * sqrt(regret)


def weight_deviation_bound(prior: float, n_samples: int, eps: float) -> float:
    """Bound on P(|w - w'| / w >= eps) for the weight w' = 1 / (2 P') of a class whose share P' is
    estimated from n rows.

    The ratio is |P' - P| / P', so the event is P' <= P / (1 + eps) or P' >= P / (1 - eps); each
    tail is at most exp(-n KL), KL the relative entropy of its end to P (Chernoff). The formula
    printed in section 3.2 of the paper, 2 exp(-2 P n eps / (1 - eps)), lacks a square and does not
    hold: at P = 1/2, n = 100 and eps = 0.1 it gives 3e-5 for a probability of about one third.

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
    """Rank risk where each row is positive with a known probability; exact, no labels are drawn.

    Row i counts as a positive of weight P(y = 1 | x_i) and as a negative of the remaining weight.
    With the probabilities themselves as scores it is the smallest possible, the Bayes rank risk.
    Cost: one sort.

    >>> round(expected_rank_loss([0.9, 0.1], [0.9, 0.1]), 3)
    0.1
    """
    probability = _check_probability(probability)
    scores = np.asarray(y_score)
    if scores.shape != probability.shape:
        raise ValueError(
            f"y_score has shape {scores.shape} and probability {probability.shape}; give one of "
            "each per row."
        )
    weight = _check_weight(sample_weight, probability.size)
    return _weighted_rank_loss(scores, weight * probability, weight * (1.0 - probability))


def _weighted_rank_loss(scores: Vector, of_positive: Vector, of_negative: Vector) -> float:
    """Rank loss where each row is a positive and a negative, of the given weights."""
    weight = np.concatenate([of_positive, of_negative])
    return rank_loss(np.repeat([1, 0], scores.size), np.tile(scores, 2), sample_weight=weight)


@dataclass(frozen=True)
class Bound:
    """A bound: the name and equation of what it is from, the bounded quantity, and the bound."""

    name: str
    equation: int
    quantity: float
    bound: float

    @property
    def tightness(self) -> float:
        """Ratio of the quantity to its bound: 1 if the bound is attained, near 0 if it is loose."""
        return self.quantity / self.bound if self.bound > 0.0 else 1.0

    @property
    def holds(self) -> bool:
        return self.quantity <= self.bound + 1e-12


@dataclass(frozen=True)
class BoundsReport:
    """Rank loss of a ranker, and the bounds on it from its classification risks; prints as a table.

    Attributes
    ----------
    rank_loss : float
        The share of misranked pairs, 1 - AUC.
    error : float
        The 0/1 risk with the threshold at zero.
    false_negative, false_positive : float
        Shares of all rows; a score of zero counts as an error.
    prior : float
        The share of the positive class.
    risks : dict
        Balanced risks: of the 0/1 loss ("error"), and of margin losses divided by their value at
        zero.
    bounds : list of Bound
        On the rank loss; with known probabilities also on the regret.
    rank_regret : float or None
        The rank loss minus that of the best ranking, where the probabilities are known.
    """

    rank_loss: float
    error: float
    false_negative: float
    false_positive: float
    prior: float
    risks: dict[str, float]
    bounds: list[Bound]
    rank_regret: float | None = None

    def __str__(self) -> str:
        lines = [
            f"rank loss {self.rank_loss:.4f} (AUC {1.0 - self.rank_loss:.4f}), "
            f"0/1 risk {self.error:.4f}, positives {self.prior:.1%}"
        ]
        if self.rank_regret is not None:
            lines.append(f"rank regret {self.rank_regret:.4f}")
        rows = [("bound on the rank loss or regret, from", "eq.", "bound", "tight to")]
        for b in self.bounds:
            shown = f"{b.bound:.4f}" if b.bound < 1.0 else "(none)"
            rows.append((b.name, f"({b.equation})", shown, f"{b.tightness:.1%}"))
        for name, equation, bound, tightness in rows:
            lines.append(f"{name:<{_NAME_WIDTH}} {equation:>4} {bound:>8} {tightness:>9}")
        return "\n".join(lines)


def report(
    ranker: Any,
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    probability: ArrayLike | None = None,
) -> BoundsReport:
    """Rank loss of a fitted binary ranker beside the bounds from its classification risks.

    Parameters
    ----------
    ranker : fitted estimator with a `decision_function`
        Scores above zero mean the class that sorts last.
    X, y : rows and labels
        Held-out rows of two classes.
    sample_weight : array-like of shape (n_samples,), optional
    probability : array-like of shape (n_samples,), optional
        P(y = 1 | x) of each row where it is known, as for `forerank.data.datasets.make_bipartite`.
        Risks are then expectations over labels, and the regret bounds (12) and (13) are added.

    Returns
    -------
    BoundsReport

    Notes
    -----
    Margin bounds depend on the scale and the shift of the scores, which the ranking does not. They
    are given for the scores unchanged, and for the best scale and shift (a fit of one column, with
    balanced weights): that is the bound of another classifier with the same ranking, so it holds as
    well.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from forerank import PointwiseRanker
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
            f"decision_function has shape {scores.shape}; one score per row is expected."
        )
    if n_nan := int(np.isnan(scores).sum()):
        raise ValueError(
            f"decision_function has NaN in {n_nan} of {scores.size} rows; give finite scores."
        )
    truth, n = np.asarray(y), scores.size
    if truth.shape != scores.shape:
        raise ValueError(f"y has shape {truth.shape} for {n} rows; give one label per row.")
    if probability is None:
        labels = np.unique(truth)
        if labels.size != 2:
            raise ValueError(f"y has {labels.size} classes; the bounds are for two.")
        chance = (truth == labels[1]).astype(float)
    else:
        chance = _check_probability(probability)
        if chance.size != n:
            raise ValueError(f"probability has {chance.size} entries for {n} rows; give one each.")
    weight = _check_weight(sample_weight, n)
    of_positive, of_negative = weight * chance, weight * (1.0 - chance)
    share = of_positive.sum() / weight.sum()
    if not _LEAST_SHARE < share < 1.0 - _LEAST_SHARE:
        raise ValueError(
            f"The positive class has the share {share:g} of the weight; both classes need some "
            "weight, or there is no ranking to judge."
        )
    judged = _Judged(scores, of_positive / weight.sum(), of_negative / weight.sum())
    return judged.report(known=probability is not None)


class _Judged:
    """Scores, with the weights of each row as a positive and as a negative; they sum to one."""

    def __init__(self, scores: Vector, of_positive: Vector, of_negative: Vector) -> None:
        self.scores, self.of_positive, self.of_negative = scores, of_positive, of_negative
        self.prior = float(of_positive.sum())

    def balanced(self) -> tuple[Vector, Vector]:
        return self.of_positive / (2.0 * self.prior), self.of_negative / (2.0 * (1.0 - self.prior))

    def balanced_risk(self, loss: str, scores: Vector) -> float:
        up, down = self.balanced()
        with np.errstate(over="ignore", invalid="ignore"):
            # A row without weight in a class has no loss there, also where it would be infinite.
            risk = np.where(up > 0, up * get_loss(loss).value(scores), 0.0).sum()
            risk += np.where(down > 0, down * get_loss(loss).value(-scores), 0.0).sum()
        return float(risk) / _AT_ZERO[loss]

    def rescaled(self, loss: str) -> Vector:
        """Scores times a plus b with a > 0, for which the balanced risk is about the smallest.

        The scores unchanged where no a > 0 is best: others would be another ranking.
        """
        up, down = self.balanced()
        spread = float(self.scores.max() / 2.0 - self.scores.min() / 2.0)
        if spread == 0.0 or not isfinite(spread):
            return self.scores
        column = np.tile((self.scores - self.scores.mean()) / spread, 2)[:, None]
        weight = np.concatenate([up, down])
        kept = weight > 0.0
        positive = np.repeat([True, False], self.scores.size)[kept]
        scale, shift = _best_scale(loss, column[kept], positive, weight[kept])
        if not scale > 0.0:
            return self.scores
        return make_design(column[: self.scores.size]).scores(np.array([scale])) + shift

    def bayes_risk(self, loss: str) -> float:
        """The smallest balanced risk over all scores: the minimum for each row alone."""
        a, b = self.balanced()
        if loss == "exponential":
            return float(2.0 * np.sqrt(a * b).sum())
        return float((xlogy(a + b, a + b) - xlogy(a, a) - xlogy(b, b)).sum())

    def report(self, *, known: bool) -> BoundsReport:
        ranked = _weighted_rank_loss(self.scores, self.of_positive, self.of_negative)
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
            name = f"balanced {loss.replace('_', ' ')} risk"
            bounds.append(Bound(name, 11, ranked, margin_bound(risks[loss])))
        rescaled = {loss: self.rescaled(loss) for loss in ("exponential", "logistic")}
        for loss, scores in rescaled.items():
            bound = margin_bound(min(self.balanced_risk(loss, scores), risks[loss]))
            bounds.append(Bound(f"balanced {loss} risk, scores rescaled", 11, ranked, bound))
        regret = None
        if known:
            chance = self.of_positive / np.maximum(self.of_positive + self.of_negative, 1e-300)
            best = _weighted_rank_loss(chance, self.of_positive, self.of_negative)
            regret = max(ranked - best, 0.0)
            for loss, equation, bound_of in (
                ("exponential", 12, exponential_regret_bound),
                ("logistic", 13, logistic_regret_bound),
            ):
                for how, scores in (("", self.scores), (", scores rescaled", rescaled[loss])):
                    risk = self.balanced_risk(loss, scores) * _AT_ZERO[loss]
                    bound = bound_of(max(risk - self.bayes_risk(loss), 0.0))
                    name = f"regret of the balanced {loss} risk{how}"
                    bounds.append(Bound(name, equation, regret, bound))
        error = false_negative + false_positive
        return BoundsReport(ranked, error, false_negative, false_positive, p, risks, bounds, regret)


def _best_scale(loss: str, X: Matrix, positive: Mask, weight: Vector) -> tuple[float, float]:
    """Scale and shift of one column that minimise the weighted mean loss, by Newton's method.

    The exponential loss overflows at shifts far from the best one, which is therefore minimised
    out. A fit that does not converge is used too: any scale gives a valid bound.
    """
    objective = Pointwise(positive, loss, weight=check_weights(weight, positive.size))
    profiled = Profiled(objective) if loss == "exponential" else None
    design = make_design(X, intercept=profiled is None)
    with serial_blas():
        w = newton(profiled or objective, design, _RESCALING_ALPHA, tol=1e-6, max_iter=200).w
        return float(w[0]), float(w[1]) if profiled is None else profiled.best_shift(
            design.scores(w)
        )


def _relative_entropy(x: float, p: float) -> float:
    """Relative entropy of a Bernoulli variable of probability x to one of probability p."""
    return float(xlogy(x, x / p) + xlogy(1.0 - x, (1.0 - x) / (1.0 - p)))


def _check_prior(prior: float) -> None:
    if not 0.0 < prior < 1.0:
        raise ValueError(f"prior={prior!r}: a share strictly between 0 and 1 is expected.")


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
        raise ValueError(
            f"probability has shape {values.shape}; one number between 0 and 1 for each row is "
            "expected."
        )
    return values
