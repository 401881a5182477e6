"""The rankers for the top of the list within groups (qid)."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GroupKFold, cross_validate

from forerank import MAPRanker, OWPCRanker, PartialAUCRanker, TopPush, TopRanker
from forerank.metrics import get_scorer
from forerank.objectives.groups import GroupedPartialAUC, WithinGroups
from forerank.objectives.structured import AveragePrecision, RankWeightedHinge, partial_auc
from oracles import top_objective

RANKERS = [
    TopPush(),
    TopPush("hinge"),
    TopPush("logistic"),
    TopRanker(at=2),
    TopRanker(at=0.2),
    PartialAUCRanker((0.0, 0.3), alpha=1e-2),
    OWPCRanker(alpha=1e-2),
    MAPRanker(alpha=1e-2),
]
WEIGHTED = [ranker for ranker in RANKERS if not isinstance(ranker, MAPRanker)]


def rows(n=160, n_groups=8, seed=0):
    """Rows with a column that moves all scores of a group."""
    rng = np.random.default_rng(seed)
    qid = rng.integers(n_groups, size=n)
    X = rng.standard_normal((n, 4))
    y = (X @ np.array([1.0, 0.7, 0.0, 0.0]) + 0.5 * rng.standard_normal(n) > 0.5).astype(int)
    X[:, 2] += 3.0 * rng.standard_normal(n_groups)[qid]
    return X, y, qid


def definition(ranker, s, y, qid, weight=None):
    """The objective without its penalty: a loop over groups."""
    weight = np.ones(y.size) if weight is None else weight
    total, mass = 0.0, 0.0
    for q in np.unique(qid):
        here = (qid == q) & (weight > 0)
        positive, own = y[here] == 1, weight[here]
        if not positive.any() or positive.all():
            continue
        share = own[positive].sum()
        if isinstance(ranker, MAPRanker):
            share, value = 1.0, AveragePrecision(positive).at(s[here]).value
        elif isinstance(ranker, PartialAUCRanker):
            ranks = partial_auc(*ranker.fpr_range)
            value = RankWeightedHinge(positive, ranks, weight=own).at(s[here]).value
        else:
            at = getattr(ranker, "at", "max")
            at = min(at, int(own[~positive].sum())) if at == 2 else at
            value = top_objective(s[here], positive, ranker.loss, at, own)
        total, mass = total + share * value, mass + share
    return total / mass


@pytest.mark.parametrize("ranker", [r for r in RANKERS if not isinstance(r, OWPCRanker)], ids=repr)
def test_objective_is_its_definition_and_certified(ranker):
    X, y, qid = rows()
    ranker.fit(X, y, qid=qid)
    assert ranker.optimality_ <= ranker.tol
    penalty = 0.5 * ranker.alpha * float(ranker.coef_[0] @ ranker.coef_[0])
    s = ranker.decision_function(X)
    assert_allclose(ranker.objective_, definition(ranker, s, y, qid) + penalty, rtol=1e-7)
    # No other weights are better by more than the gap.
    rng = np.random.default_rng(0)
    for _ in range(20):
        w = ranker.coef_[0] * (1.0 + 0.1 * rng.standard_normal()) + 0.1 * rng.standard_normal(4)
        value = definition(ranker, X @ w, y, qid) + 0.5 * ranker.alpha * w @ w
        assert value >= ranker.objective_ * (1.0 - ranker.optimality_) - 1e-12


@pytest.mark.parametrize("fpr_range", [(0.0, 0.3), (0.2, 0.7), (0.0, 1.0)])
def test_partial_auc_within_groups_is_the_mean_over_groups(fpr_range):
    rng, ranks = np.random.default_rng(0), partial_auc(*fpr_range)
    for case in range(10):
        _, y, qid = rows(n=60, n_groups=6, seed=case)
        s = rng.integers(5, size=60) / 2.0  # ties
        for weight in (None, rng.integers(3, size=60).astype(float)):
            fast = GroupedPartialAUC(y == 1, qid, *fpr_range, weight=weight).at(s)

            def of_group(positive, own):
                return RankWeightedHinge(positive, ranks, weight=own)

            slow = WithinGroups(y == 1, qid, of_group, weight=weight).at(s)
            assert_allclose(fast.value, slow.value, rtol=1e-10)
            # Ties leave a choice of subgradients.
            apart = s + 1e-3 * rng.standard_normal(60)
            fast = GroupedPartialAUC(y == 1, qid, *fpr_range, weight=weight).at(apart)
            slow = WithinGroups(y == 1, qid, of_group, weight=weight).at(apart)
            assert_allclose(fast.gradient, slow.gradient, atol=1e-12)


@pytest.mark.parametrize("ranker", WEIGHTED, ids=repr)
def test_a_weight_of_two_is_two_rows(ranker):
    X, y, qid = rows()
    weight = np.random.default_rng(1).integers(0, 3, y.size)
    repeated = np.repeat(np.arange(y.size), weight)
    expected = ranker.fit(X[repeated], y[repeated], qid=qid[repeated]).objective_
    found = ranker.fit(X, y, sample_weight=weight, qid=qid).objective_
    assert found == pytest.approx(expected, rel=3 * ranker.tol)


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_one_group_is_no_group(ranker):
    X, y, _ = rows()
    expected = ranker.fit(X, y).objective_
    assert ranker.fit(X, y, qid=["a"] * y.size).objective_ == pytest.approx(
        expected, rel=3 * ranker.tol
    )


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_constants_of_groups_do_not_matter(ranker):
    """A column that is constant within groups, but for the penalty, has no weight."""
    X, y, qid = rows()
    X[:, 3] = qid
    assert abs(ranker.fit(X, y, qid=qid).coef_[0, 3]) <= 1e-6
    assert "threshold_" not in vars(ranker)


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_groups_of_one_class(ranker):
    X, y, qid = rows()
    y[qid == 3] = 0
    kept = qid != 3
    with pytest.warns(UserWarning, match="1 of 8 qid groups has no pair of different classes"):
        fitted = ranker.fit(X, y, qid=qid).objective_
    expected = ranker.fit(X[kept], y[kept], qid=qid[kept]).objective_
    assert fitted == pytest.approx(expected, rel=3 * ranker.tol)
    with pytest.raises(ValueError, match="There are no pairs: no group of qid"):
        ranker.fit(X, y, qid=np.arange(y.size))


def test_the_published_method_takes_no_groups():
    X, y, qid = rows()
    with pytest.raises(ValueError, match=r"accelerated_dual .* one threshold .* top_multipliers"):
        TopPush(solver="nesterov").fit(X, y, qid=qid)


def test_path_and_warm_start():
    X, y, qid = rows()
    alphas = [1.0, 1e-1, 1e-2, 1e-3]
    path = TopPush().alpha_path(X, y, alphas, qid=qid)
    assert np.all(path.optimality <= 1e-4)
    for alpha, objective in zip(alphas, path.objective, strict=True):
        fresh = TopPush(alpha=alpha).fit(X, y, qid=qid).objective_
        assert objective == pytest.approx(fresh, rel=2e-4)


def test_metadata_routing():
    X, y, qid = rows(n=400, n_groups=20)
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(
            MAPRanker().set_fit_request(qid=True), X, y, cv=GroupKFold(3),
            scoring=get_scorer("average_precision").set_score_request(qid=True),
            params={"qid": qid, "groups": qid}, return_estimator=True,
        )  # fmt: skip
    train, _ = next(iter(GroupKFold(3).split(X, y, qid)))
    expected = MAPRanker().fit(X[train], y[train], qid=qid[train])
    assert_array_equal(found["estimator"][0].coef_, expected.coef_)
