"""Rankers that sample pairs and points: scikit-learn's checks, fits, refused parameters."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from forerank import (
    ActiveSamplingRanker,
    CombinedSGDRanker,
    PairwiseRanker,
    metrics,
)
from forerank.sampling import STRATEGIES
from tables import noisy_rows

RANKERS = [
    *(ActiveSamplingRanker(strategy, budget=600, random_state=0) for strategy in STRATEGIES),
    ActiveSamplingRanker(gamma=0.3, budget=600, random_state=0),
    ActiveSamplingRanker(
        "soft-close", gamma="uniform", budget=600, bias_correction=False, random_state=0
    ),
    *(
        CombinedSGDRanker(loss, n_steps=20_000, random_state=0)
        for loss in ("hinge", "logistic", "squared")
    ),
]


def unequal_draws(estimator):
    if isinstance(estimator, CombinedSGDRanker):
        reason = "a weight of two draws a row twice as often, another sequence than with two rows"
        return {
            f"check_sample_weight_equivalence_on_{kind}_data": reason
            for kind in ("dense", "sparse")
        }
    return {}


@parametrize_with_checks(
    [
        *(ActiveSamplingRanker(strategy) for strategy in STRATEGIES),
        ActiveSamplingRanker(gamma=0.0),
        ActiveSamplingRanker(gamma=0.5, bias_correction=False),
        ActiveSamplingRanker(gamma="uniform"),
        *(CombinedSGDRanker(loss, n_steps=10_000) for loss in ("hinge", "logistic", "squared")),
    ],
    expected_failed_checks=unequal_draws,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class TestFit:
    @pytest.mark.parametrize("ranker", RANKERS, ids=repr)
    def test_ranks_better_than_chance(self, ranker):
        X, y = noisy_rows(n=600)
        fitted = clone(ranker).fit(X[:300], y[:300])
        # Hard-correct chases noise: the paper has it in its table of times only.
        least = 0.5 if getattr(ranker, "strategy", "") == "hard-correct" else 0.88
        assert roc_auc_score(y[300:], fitted.decision_function(X[300:])) > least

    @pytest.mark.parametrize("ranker", RANKERS, ids=repr)
    def test_a_seed_gives_the_same_weights(self, ranker):
        X, y = noisy_rows()
        assert_array_equal(clone(ranker).fit(X, y).coef_, clone(ranker).fit(X, y).coef_)
        if ranker.get_params().get("strategy") != "hard-correct":
            assert np.any(
                clone(ranker).set_params(random_state=1).fit(X, y).coef_
                != clone(ranker).fit(X, y).coef_
            )

    @pytest.mark.parametrize("ranker", RANKERS, ids=repr)
    def test_storage_does_not_matter(self, ranker):
        X, y = noisy_rows(n=50)
        X[np.abs(X) < 0.5] = 0.0
        X = X.astype(np.float32).astype(float)
        if isinstance(ranker, ActiveSamplingRanker):
            # The last bit of a score may change a draw; the solution over all candidates does not
            # depend on the order.
            ranker = clone(ranker).set_params(budget="auto", tol=1e-10, alpha=1e-2)
        reference = clone(ranker).fit(X, y).coef_
        for other in (
            np.asfortranarray(X),
            sp.csr_array(X),
            sp.csc_array(X),
            pd.DataFrame(X),
            pl.DataFrame(X),
        ):
            assert_allclose(clone(ranker).fit(other, y).coef_, reference, rtol=1e-4, atol=1e-4)
        # Differences of float32 rows are kept in single precision.
        assert_allclose(
            clone(ranker).fit(X.astype(np.float32), y).coef_, reference, rtol=1e-3, atol=1e-3
        )

    def test_history(self):
        X, y = noisy_rows(n=600)
        ranker = ActiveSamplingRanker(step=70, budget=500, random_state=0)
        ranker.fit(X[:300], y[:300], eval_set=(X[300:], y[300:]))
        assert [round.pool for round in ranker.history_] == [70, 140, 210, 280, 350, 420, 490, 500]
        assert ranker.n_iter_ == 8
        last = ranker.history_[-1]
        assert last.objective == ranker.objective_
        assert last.optimality == ranker.optimality_ <= ranker.tol
        assert last.auc == pytest.approx(
            metrics.roc_auc(y[300:], ranker.decision_function(X[300:]))
        )
        seconds = [round.seconds for round in ranker.history_]
        assert seconds == sorted(seconds)
        assert ranker.history_[0].acceptance == pytest.approx(1.0)
        assert all(0.0 < round.acceptance < 1.0 for round in ranker.history_[1:])
        assert ranker.pool_.shape == (500, 2)
        assert np.all(y[ranker.pool_[:, 0]] == 1)
        assert np.all(y[ranker.pool_[:, 1]] == 0)

    def test_history_of_the_descent(self):
        X, y = noisy_rows(n=600)
        ranker = CombinedSGDRanker(n_steps=10_007, random_state=0).fit(
            X[:300], y[:300], eval_set=(X[300:], y[300:])
        )
        assert len(ranker.history_) == ranker.n_iter_ == 20
        assert ranker.history_[-1].pool == 10_007
        assert ranker.history_[-1].auc > 0.9

    @pytest.mark.parametrize(
        "ranker", [ActiveSamplingRanker(budget=600), CombinedSGDRanker(n_steps=5000)], ids=repr
    )
    def test_callback_can_stop(self, ranker):
        X, y = noisy_rows()
        seen = []

        def stop_at_three(fitted, round):
            assert fitted.decision_function(X).shape == (300,)
            seen.append(round)
            return np.int64(len(seen)) == 3  # a numpy bool

        fitted = ranker.set_params(callback=stop_at_three, random_state=0).fit(X, y)
        assert fitted.history_ == seen
        assert len(seen) == 3
        assert roc_auc_score(y, fitted.decision_function(X)) > 0.8

    @pytest.mark.parametrize(
        "ranker", [ActiveSamplingRanker(budget=600), CombinedSGDRanker(n_steps=5000)], ids=repr
    )
    def test_an_interruption_leaves_the_latest_weights(self, ranker):
        X, y = noisy_rows()

        def interrupt(fitted, round):
            if len(fitted.history_) == 4:
                raise KeyboardInterrupt

        ranker.set_params(callback=interrupt, random_state=0)
        with pytest.raises(KeyboardInterrupt):
            ranker.fit(X, y)
        assert len(ranker.history_) == 4
        assert np.isfinite(ranker.objective_)
        assert roc_auc_score(y, ranker.decision_function(X)) > 0.8
        assert np.mean(ranker.predict(X) == y) > 0.7

    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_wild_columns_end_soon_and_no_worse_than_nothing(self, strategy):
        rng = np.random.default_rng(0)
        X = rng.standard_t(1, size=(2000, 5)) * 1e3
        y = X[:, 0] + 1e3 * rng.standard_normal(2000) > 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
            ranker = ActiveSamplingRanker(strategy, budget=500, max_iter=200, random_state=0).fit(
                X, y
            )
        assert ranker.objective_ <= ranker.pool_weight_.sum() * (1 + 1e-9)  # the objective of w = 0

    @pytest.mark.parametrize("scale", [1e-200, 1e200, 1e-320])
    def test_extreme_weights(self, scale):
        X, y = noisy_rows(n=80)
        weight = np.full(80, scale)
        weight[::3] *= 2
        for ranker in (
            ActiveSamplingRanker(budget=300),
            CombinedSGDRanker(n_steps=2000),
            PairwiseRanker("hinge"),
        ):
            plain = clone(ranker).set_params(
                **({"random_state": 0} if hasattr(ranker, "random_state") else {})
            )
            extreme = clone(plain).fit(X, y, sample_weight=weight)
            usual = plain.fit(X, y, sample_weight=np.where(np.arange(80) % 3, 1.0, 2.0))
            assert_allclose(extreme.coef_, usual.coef_, rtol=1e-6, atol=1e-9)

    def test_large_single_precision_numbers(self):
        X, y = noisy_rows(n=80)
        fitted = CombinedSGDRanker(n_steps=2000, random_state=0).fit(
            (X * 1e20).astype(np.float32), y
        )
        assert np.isfinite(fitted.objective_)
        with pytest.raises(ValueError, match="Scale its columns"), np.errstate(all="ignore"):
            CombinedSGDRanker(n_steps=2000, random_state=0).fit(X * 1e160, y)

    def test_verbose_shows_a_bar(self, capsys):
        X, y = noisy_rows()
        ActiveSamplingRanker(budget=300, random_state=0, verbose=True).fit(X, y, eval_set=(X, y))
        out = capsys.readouterr().out
        assert "300 of 300" in out
        assert "AUC" in out

    def test_auto_budget(self):
        X, y = noisy_rows(n=40)
        assert len(ActiveSamplingRanker().fit(X, y).pool_) == int(y.sum() * (40 - y.sum()))
        X, y = noisy_rows(n=1000)
        assert len(ActiveSamplingRanker(step=1000).fit(X, y).pool_) == 8000

    def test_rows_without_weight_are_not_chosen(self):
        X, y = noisy_rows()
        weight = np.ones(300)
        weight[:100] = 0.0
        ranker = ActiveSamplingRanker(gamma=0.5, budget=500, random_state=0).fit(
            X, y, sample_weight=weight
        )
        assert ranker.pool_[ranker.pool_ >= 0].min() >= 100

    def test_with_the_tools_of_scikit_learn(self):
        X, y = noisy_rows()
        pipe = make_pipeline(StandardScaler(), ActiveSamplingRanker(budget=400, random_state=0))
        search = GridSearchCV(
            pipe, {"activesamplingranker__gamma": [0.5, 1.0]}, scoring="roc_auc", cv=3
        ).fit(X, y)
        assert search.best_score_ > 0.85
        with sklearn.config_context(enable_metadata_routing=True):
            ranker = ActiveSamplingRanker(budget=400, random_state=0).set_fit_request(
                sample_weight=True
            )
            scorer = get_scorer("roc_auc").set_score_request(sample_weight=True)
            scores = cross_validate(
                ranker, X, y, params={"sample_weight": np.ones(300)}, scoring=scorer, cv=3
            )
        assert scores["test_score"].mean() > 0.85


class TestRefusals:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            (
                {"budget": 10**9},
                r"budget is 1000000000, but the data have only 21600 pairs.*PairwiseRanker",
            ),
            ({"budget": 301, "gamma": 0.0}, "only 300 points"),
            ({"budget": 30_000, "gamma": 0.5}, "only 21900 pairs and points"),
            (
                {"step": 200, "budget": 100},
                "step must not exceed budget; got step=200 and budget=100",
            ),
            ({"step": 0}, "step must be an integer >= 1; got 0"),
            ({"budget": 0}, "budget must be an integer >= 1; got 0"),
            ({"budget": "all"}, "budget must be an integer >= 1 or \"auto\"; got 'all'"),
            (
                {"gamma": 1.5},
                "gamma must be a number from 0 .points only. to 1 .pairs only.*; got 1.5",
            ),
            ({"gamma": -0.1}, "got -0.1"),
            ({"gamma": float("nan")}, "got nan"),
            ({"gamma": "half"}, "got 'half'"),
            ({"gamma": True}, "got True"),
            ({"strategy": "softly"}, "strategy must be one of 'hard-close', .*; got 'softly'"),
            ({"alpha": 0.0}, "alpha must be a number > 0"),
            ({"tol": 0.0}, "tol must be a number > 0"),
            ({"class_weight": "even"}, "class_weight must be a dict"),
            (
                {"class_weight": {0: 0.0, 1: 1.0}},
                "class_weight must be positive and finite; class 0 has 0.0",
            ),
            ({"class_weight": {0: 1.0, 1: -2.0}}, "class 1 has -2.0"),
            ({"class_weight": {0: float("nan"), 1: 1.0}}, "class 0 has nan"),
            ({"bias_correction": 1}, "bias_correction must be True, False"),
            (
                {"bias_correction": "paper"},
                "bias_correction must be True, False, .*\"acceptance\"; got 'paper'",
            ),
        ],
    )
    def test_active_sampling(self, parameters, message):
        X, y = noisy_rows()
        with pytest.raises(ValueError, match=message):
            ActiveSamplingRanker(**parameters).fit(X, y)

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            (
                {"point_loss": "squared_hinge"},
                "point_loss must be one of 'hinge', 'logistic', 'squared'",
            ),
            ({"pair_loss": "exponential"}, "pair_loss must be one of"),
            ({"gamma": 2}, "gamma must be a number from 0 .points only. to 1 .pairs only.; got 2"),
            ({"gamma": "uniform"}, "got 'uniform'"),
            ({"n_steps": 0}, "n_steps must be an integer >= 1"),
            ({"alpha": 0}, "alpha must be a number > 0"),
        ],
    )
    def test_descent(self, parameters, message):
        X, y = noisy_rows()
        with pytest.raises(ValueError, match=message):
            CombinedSGDRanker(**parameters).fit(X, y)

    @pytest.mark.parametrize("ranker", [ActiveSamplingRanker(), CombinedSGDRanker()], ids=repr)
    def test_data(self, ranker):
        X, y = noisy_rows()
        with pytest.raises(ValueError, match="one class only"):
            ranker.fit(X, np.ones(300))
        with pytest.raises(ValueError, match="Only binary classification"):
            ranker.fit(X, np.arange(300) % 3)
        with pytest.raises(ValueError, match="All rows of class 1 have sample_weight zero"):
            ranker.fit(X, y, sample_weight=1.0 - y)
        with pytest.raises(ValueError, match="eval_set must be a tuple"):
            ranker.fit(X, y, eval_set=X)
        with pytest.raises(ValueError, match="eval_set has the label 7"):
            ranker.fit(X, y, eval_set=(X, np.where(y == 1, 7, 0)))
        with pytest.raises(ValueError, match="eval_set has one class only"):
            ranker.fit(X, y, eval_set=(X, np.zeros(300)))
        with pytest.raises(ValueError, match="features"):
            ranker.fit(X, y, eval_set=(X[:, :3], y))

    def test_too_few_sweeps_are_reported(self):
        X, y = noisy_rows()
        with pytest.warns(sklearn.exceptions.ConvergenceWarning, match="max_iter=1 passes"):
            ActiveSamplingRanker(max_iter=1, alpha=1e-6, tol=1e-9, budget=300, random_state=0).fit(
                X, y
            )
