"""Fits on tensors equal those on arrays, with the same certificate, and stay on their device."""

import numpy as np
import pytest

import forerank
from forerank import CombinedRanker, PairwiseRanker, PointwiseRanker, Ranker
from forerank.torch import to_arrays
from tensor_cases import DEVICE, torch

PAIR_LOSSES = ("exponential", "logistic", "squared", "squared_hinge")
TIGHT = {"tol": 1e-9, "alpha": 1e-3}


def problem(n=600, d=6, *, classes=2, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(0.1, 10.0, d) + np.arange(d)
    score = (X - np.arange(d)) @ (rng.normal(size=d) / np.geomspace(0.1, 10.0, d))
    levels = np.quantile(score, np.arange(1, classes) / classes)
    y = np.searchsorted(levels, score + 0.7 * score.std() * rng.normal(size=n))
    return X.astype(dtype), y, rng.uniform(0.2, 2.0, n), rng.integers(0, 9, n)


def on_device(*arrays):
    return [None if a is None else torch.as_tensor(a, device=DEVICE) for a in arrays]


def assert_same_fit(here, there, X):
    """Weights, scores, certificate and classes of a fit on tensors and one on arrays."""
    assert here.coef_.device == X.device
    assert here.coef_.dtype == torch.float64
    largest = np.abs(there.coef_).max()
    np.testing.assert_allclose(here.coef_.cpu(), there.coef_, atol=1e-6 * largest)
    scores, expected = here.decision_function(X), there.decision_function(X.cpu().numpy())
    assert scores.device == X.device
    spread = np.abs(expected).max()
    np.testing.assert_allclose(scores.cpu(), expected, atol=2e-6 * spread)
    assert here.objective_ == pytest.approx(there.objective_, rel=1e-6)
    assert here.optimality_ <= here.tol
    assert here.n_features_in_ == there.n_features_in_
    assert here.classes_.tolist() == there.classes_.tolist()
    clear = np.abs(expected) > 1e-5 * spread
    assert (here.predict(X).cpu().numpy() == there.predict(X.cpu().numpy()))[clear].all()
    assert here.rank(X).device == X.device


@pytest.mark.parametrize("loss", PAIR_LOSSES)
@pytest.mark.parametrize("rows", ["plain", "weights", "groups", "both"])
def test_pairwise_ranker(loss, rows):
    X, y, w, qid = problem()
    w = w if rows in ("weights", "both") else None
    qid = qid if rows in ("groups", "both") else None
    there = PairwiseRanker(loss, **TIGHT).fit(X, y, w, qid)
    X, y, w, qid = on_device(X, y, w, qid)
    here = PairwiseRanker(loss, **TIGHT).fit(X, y, w, qid)
    assert_same_fit(here, there, X)
    assert here.wmw_bound_ == pytest.approx(there.wmw_bound_, abs=1e-6)
    np.testing.assert_allclose(here.intercept_.cpu(), there.intercept_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", PAIR_LOSSES)
@pytest.mark.parametrize("grouped", [False, True])
def test_grades(loss, grouped):
    X, y, w, qid = problem(classes=4)
    qid = qid if grouped else None
    there = PairwiseRanker(loss, graph="order", **TIGHT).fit(X, y, w, qid)
    X, y, w, qid = on_device(X, y, w, qid)
    here = PairwiseRanker(loss, graph="order", **TIGHT).fit(X, y, w, qid)
    largest = np.abs(there.coef_).max()
    np.testing.assert_allclose(here.coef_.cpu(), there.coef_, atol=1e-6 * largest)
    np.testing.assert_allclose(here.thresholds_.cpu(), there.thresholds_, rtol=1e-5, atol=1e-5)
    agreed = here.predict(X).cpu().numpy() == there.predict(X.cpu().numpy())
    assert agreed.mean() > 0.99  # but for rows on a threshold


@pytest.mark.parametrize("loss", PAIR_LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_pointwise_ranker(loss, intercept, class_weight):
    X, y, w, _ = problem()
    options = {"fit_intercept": intercept, "class_weight": class_weight, **TIGHT}
    tensors = on_device(X, y, w)
    if loss == "exponential" and intercept:
        with pytest.raises(ValueError, match="set fit_intercept=False"):
            PointwiseRanker(loss, **options).fit(*tensors)
        return
    there = PointwiseRanker(loss, **options).fit(X, y, w)
    here = PointwiseRanker(loss, **options).fit(*tensors)
    assert_same_fit(here, there, tensors[0])
    np.testing.assert_allclose(here.intercept_.cpu(), there.intercept_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_many_rows_start_from_a_sample(dtype):
    X, y, _, _ = problem(30_000, 5)
    X = torch.as_tensor(X, device=DEVICE).to(dtype)
    there = PairwiseRanker("logistic", **TIGHT).fit(X.float().cpu().numpy(), y)
    here = PairwiseRanker("logistic", **TIGHT).fit(X, y)
    largest = np.abs(there.coef_).max()
    np.testing.assert_allclose(here.coef_.cpu(), there.coef_, atol=1e-6 * largest)


@pytest.mark.parametrize("make", [PairwiseRanker, PointwiseRanker])
def test_alpha_path(make):
    X, y, w, _ = problem()
    alphas = [1.0, 0.1, 0.01, 1e-3]
    there = make(tol=1e-9).alpha_path(X, y, alphas, sample_weight=w)
    X, y, w = on_device(X, y, w)
    here = make(tol=1e-9).alpha_path(X, y, alphas, sample_weight=w)
    assert here.coef.device == X.device
    np.testing.assert_allclose(here.coef.cpu(), there.coef, atol=1e-6 * np.abs(there.coef).max())
    scores = here.decision_function(X)
    assert scores.shape == (600, 4)
    assert scores.device == X.device


def test_warm_start():
    X, y = on_device(*problem()[:2])
    ranker = PairwiseRanker(warm_start=True, tol=1e-6).fit(X, y)
    again = ranker.fit(X, y)
    assert again.n_iter_ == 0
    with pytest.raises(ValueError, match="continues from 6 columns, but X has 3"):
        ranker.fit(X[:, :3], y)


def test_to_arrays():
    X, y, _, _ = problem()
    T, t = on_device(X, y)
    ranker = PairwiseRanker().fit(T, t)
    arrays = to_arrays(ranker)
    assert isinstance(arrays.coef_, np.ndarray)
    expected = ranker.decision_function(T).cpu().numpy()
    np.testing.assert_allclose(arrays.decision_function(X), expected, rtol=1e-5, atol=1e-5)
    assert set(arrays.predict(X)) <= {0, 1}
    assert isinstance(ranker.coef_, torch.Tensor)


def test_labels_of_any_values():
    X, y, _, _ = problem()
    T = torch.as_tensor(X, device=DEVICE)
    for labels in (y == 1, y * 3.5 - 2.0, 5 - 2 * (1 - y)):
        there = PairwiseRanker().fit(X, labels)
        here = PairwiseRanker().fit(T, labels)  # labels on the host are copied to the device
        assert here.classes_.tolist() == there.classes_.tolist()
        assert here.predict(T).dtype == here.classes_.dtype


def test_groups_without_pairs_are_counted():
    X, y, _, qid = problem()
    y = np.where(qid == 3, 1, y)
    with pytest.warns(UserWarning, match="1 of 9 qid groups have no pair"):
        PairwiseRanker().fit(*on_device(X, y), qid=qid)


# --- Bad input ---


def changed(X, y, **changes):
    return {"X": X, "y": y, **changes}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: changed(X, y[:-1]), r"y must have one number for each of the 600 rows"),
        (lambda X, y: changed(X, 0 * y), "y has one class only, 0"),
        (lambda X, y: changed(X, y + (X[:, 0] > 0)), "y has 3 classes, but two were expected"),
        (lambda X, y: changed(X, torch.where(y > 0, torch.nan, 0.0)), "y contains NaN"),
        (lambda X, y: changed(X[0], y), "X must have rows and columns"),
        (lambda X, y: changed(X / 0.0, y), "X contains NaN, infinity"),
        (lambda X, y: changed(X.to_sparse(), y), "SciPy CSR"),
        (lambda X, y: changed(X, ["a", "b"] * 300), "y must be numbers where X is a tensor"),
        (lambda X, y: changed(X, y, sample_weight=y - 1.0), "sample_weight must be finite"),
        (lambda X, y: changed(X, y, sample_weight=y.to("meta")), "sample_weight is a tensor on me"),
        (lambda X, y: changed(X, y.to("meta")), "y is a tensor on meta, but X is on"),
    ],
)
def test_bad_rows(change, message):
    X, y = on_device(*problem()[:2])
    rows = change(X, y)
    with pytest.raises(ValueError, match=message):
        PairwiseRanker().fit(rows.pop("X"), rows.pop("y"), **rows)


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (PairwiseRanker("hinge"), "loss='hinge' cannot be fitted on tensors"),
        (PointwiseRanker("hinge"), "loss='hinge' cannot be fitted on tensors"),
        (PairwiseRanker(graph=[(1, 0)]), "cannot be fitted on tensors; use None"),
    ],
)
def test_what_tensors_cannot_do(ranker, message):
    X, y = on_device(*problem()[:2])
    with pytest.raises(ValueError, match=message):
        ranker.fit(X, y)


def test_no_silent_change_of_the_device():
    X, y, _, _ = problem()
    ranker = PairwiseRanker().fit(*on_device(X, y))
    with pytest.raises(ValueError, match=r"was fitted on tensors on .*, but X is ndarray"):
        ranker.decision_function(X)
    with pytest.raises(ValueError, match="but X is on meta"):
        ranker.decision_function(torch.as_tensor(X, device="meta"))
    with pytest.raises(ValueError, match="X has 3 features, but the ranker was fitted with 6"):
        ranker.decision_function(torch.as_tensor(X[:, :3], device=DEVICE))


LINEAR_ALONE = [
    name
    for name in forerank.__all__
    if name.endswith(("Ranker", "Push", "Boost", "Net", "NCG"))
    and name not in ("PairwiseRanker", "PointwiseRanker")
]


@pytest.mark.parametrize("name", LINEAR_ALONE)
def test_other_rankers_refuse_rows_on_a_device(name):
    X, y, _, _ = problem(40, 3)
    with pytest.raises(ValueError, match=f"{name} needs rows on the host, but X is a tensor on me"):
        getattr(forerank, name)().fit(torch.as_tensor(X, device="meta"), y)


@pytest.mark.parametrize("make", [CombinedRanker, lambda: Ranker(cv=2, random_state=0)])
def test_other_rankers_read_tensors_on_the_host_as_arrays(make):
    X, y, _, _ = problem(200, 3)
    there, here = make().fit(X, y), make().fit(torch.as_tensor(X), torch.as_tensor(y))
    scores = here.decision_function(torch.as_tensor(X))
    assert isinstance(scores, np.ndarray)
    np.testing.assert_array_equal(scores, there.decision_function(X))
