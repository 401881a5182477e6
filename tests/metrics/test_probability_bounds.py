"""Bounds from the log loss of probabilities, where the true probabilities are known."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logit

from forerank.data.datasets import BipartiteModel
from forerank.metrics import roc_auc
from forerank.metrics.bounds import expected_rank_loss
from forerank.metrics.probability_bounds import probability_bounds


def test_values_equal_their_definitions():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.7, 400)
    y = rng.uniform(size=400) < p
    found = probability_bounds(y, p)
    odds = y.mean() / (1 - y.mean())
    against = odds * (1 - p) / p
    loss = np.log1p(np.where(y, against, 1 / against))
    risk = 0.5 * loss[y].mean() + 0.5 * loss[~y].mean()
    assert found.risk == pytest.approx(risk)
    assert found.auc == roc_auc(y, p)
    assert found.expected_auc == pytest.approx(1 - expected_rank_loss(p, p))
    assert found.least_auc == pytest.approx(max(1 - 2 * risk / np.log(2), 0))
    assert found.loss_for_gain(0.1) == pytest.approx(0.0025)
    assert found.regret_bound(risk - 0.0025) == pytest.approx(0.1)
    assert found.regret_bound(0.0) == 1 - found.auc
    assert "If no probabilities have a smaller loss than" in found.sentence
    assert f"within {(1 - found.auc) / 2:.4f} of the best" in found.sentence
    assert f"another {50 * (1 - found.auc):.1f} % of all pairs" in found.sentence_on_pairs
    assert set(found.to_dict()) >= {"risk", "least_auc", "expected_auc"}


def test_the_smallest_risk_is_the_minimum_over_scores():
    p = np.array([0.1, 0.35, 0.8])

    def risk(scores):
        up, down = p / (2 * p.sum()), (1 - p) / (2 * (1 - p).sum())
        return float(up @ np.logaddexp(0, -scores) + down @ np.logaddexp(0, scores))

    least = minimize(risk, np.zeros(3)).fun
    found = probability_bounds([0, 0, 1], p)
    assert found.expected_risk == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("distortion", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("kind", ["linear", "rules"])
def test_the_bound_holds_where_the_truth_is_known(kind, distortion):
    model = BipartiteModel.draw(kind, prior=0.3, bayes_risk=0.1, random_state=0)
    _, y, chance = model.sample(20_000, random_state=1)
    noise = np.random.default_rng(0).normal(size=chance.size)
    z = distortion * logit(chance) + noise
    found = probability_bounds(y > 0, 1 / (1 + np.exp(-z)))
    truth = probability_bounds(y > 0, chance)
    best = expected_rank_loss(chance, chance)
    regret = expected_rank_loss(z, chance) - best
    assert regret <= found.regret_bound(truth.expected_risk)
    assert found.auc >= found.least_auc
    # The true probabilities know the best AUC, and their risk is the smallest up to its error.
    assert truth.expected_auc == pytest.approx(1 - best)
    assert abs(truth.risk - truth.expected_risk) < 4 * truth.risk_error
    # Rankings with a higher AUC: their gain is paid for in the loss.
    assert found.risk - truth.expected_risk >= found.loss_for_gain(max(regret, 0.0))


@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        ([0, 1], [0.5, 1.5], "outside 0 to 1"),
        ([0, 1], [0.5, np.nan], "probability is NaN"),
        ([0, 0], [0.5, 0.5], "one class only"),
    ],
)
def test_wrong_arguments_are_named(y, p, message):
    with pytest.raises(ValueError, match=message):
        probability_bounds(y, p)


def test_wrong_losses_and_gains_are_named():
    found = probability_bounds([0, 1], [0.2, 0.7])
    with pytest.raises(ValueError, match="a difference of AUC between 0 and 1"):
        found.loss_for_gain(2.0)
    with pytest.raises(ValueError, match="a loss between 0 and"):
        found.regret_bound(1.0)


def test_certain_probabilities_stay_finite():
    found = probability_bounds([0, 1, 1, 0], [0.0, 1.0, 1.0, 1.0])
    assert np.isfinite(list(found.to_dict().values())).all()
    assert found.regret_bound(0.0) <= 1.0 - found.auc
