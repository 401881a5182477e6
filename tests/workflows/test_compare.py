"""Comparisons: the same folds for all methods, and rows in the form that each method takes."""

import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    PredefinedSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_info

import forerank
from comparisons import DUMMY, PAIRS, rows
from forerank import PairwiseRanker, PointwiseRanker, compare, metrics
from forerank.data.column_plan import plan_columns
from forerank.data.frames import as_frame
from forerank.data.problem import read_problem
from forerank.data.readers import read_table
from forerank.metrics.top_k import Depth
from forerank.workflows.compare.methods import seeded, select_methods
from tables import table


def test_values_are_those_of_cross_validation():
    X, y = rows()
    found = compare(
        X, y, {"pairs": PairwiseRanker(alpha=0.01), "lr": LogisticRegression()}, seeds=2
    )
    for name, estimator in (("pairs", PairwiseRanker(alpha=0.01)), ("lr", LogisticRegression())):
        expected = [
            cross_val_score(
                make_pipeline(StandardScaler(), estimator),
                X,
                y,
                scoring="roc_auc",
                cv=StratifiedKFold(5, shuffle=True, random_state=seed),
            )
            for seed in (0, 1)
        ]
        assert_allclose(list(found.values()[name].values()), np.ravel(expected), atol=1e-9)
    assert len(found.records) == 20
    one = found.records[0]
    assert set(one["measures"]) == {"auc", "ap", "pos_at_top", "pauc@0.1", "recall@100", "ndcg@10"}
    assert (one["n_train"], one["n_test"]) == (160, 40)
    assert one["fit_seconds"] > 0


@pytest.mark.parametrize("metric", ["recall@50", "ndcg@7"])
def test_the_first_k_are_as_large_a_share_of_each_fold(metric):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(171, 3)), np.arange(171) % 8 == 0
    X[:, 0] += y
    chosen = "Ranker(methods=['pointwise-logistic'], alphas=3)"
    found = compare(
        X, y, [chosen, "PairwiseRanker(alpha=0.1)", "logistic-regression-cv(Cs=2)"], metric=metric
    )
    k = int(metric.partition("@")[2])
    scaled = make_pipeline(StandardScaler(), PairwiseRanker(alpha=0.1))
    expected = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        scores = scaled.fit(X[train], y[train]).decision_function(X[test])
        depth = Depth(k * test.size / 171)
        function = metrics.recall_at_k if metric.startswith("recall") else metrics.ndcg
        expected.append(function(y[test], scores, k=depth))
    assert_allclose(list(found.values()["PairwiseRanker(alpha=0.1)"].values()), expected)
    assert f"at {k} of 171 rows (first {100 * k / 171:.3g} %)" in found.sentence()
    # Those that tune themselves look as deep into their folds.
    methods = select_methods([chosen, "logistic-regression-cv"], metric, read_problem(X, y))
    assert methods[chosen].estimator.list_rows == 171
    scorer = methods["logistic-regression-cv"].estimator.scoring
    some = y[:40], scaled.decision_function(X[:40])
    assert scorer(scaled, X[:40], y[:40]) == function(*some, k=Depth(k * 40 / 171))


def test_tables_are_prepared_inside_the_folds(tmp_path):
    table(200).to_csv(tmp_path / "t.csv", index=False)
    frame = read_table(tmp_path / "t.csv")
    by_name = compare(tmp_path / "t.csv", "y", [PAIRS], cv=3)
    from_frame = compare(frame.drop(columns="y"), frame["y"], [PAIRS], cv=3)
    assert_allclose(by_name.table()[0]["mean"], from_frame.table()[0]["mean"])
    assert by_name.classes == {"yes": (frame["y"] == "yes").sum(), "no": (frame["y"] == "no").sum()}
    assert any(note.startswith("left out id") for note in by_name.notes)
    # The same by hand, through the library's own columns.
    frame = as_frame(frame)
    plan = plan_columns(frame, exclude={"y"})
    pipeline = make_pipeline(plan.transformer(), PairwiseRanker(alpha=0.01))
    y = (frame["y"] == "yes").to_numpy()
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    expected = cross_val_score(
        pipeline, frame[plan.used], y, cv=cv, scoring="roc_auc", error_score="raise"
    )
    assert_allclose([each["value"] for each in by_name.records], expected)


class Seen(ClassifierMixin, BaseEstimator):
    """Remembers what it was given."""

    last = None

    def __init__(self, allow_nan=False, random_state=None):
        self.allow_nan, self.random_state = allow_nan, random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.allow_nan
        return tags

    def fit(self, X, y):
        Seen.last = X, self.random_state
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.column_stack([np.linspace(1, 0, len(X)), np.linspace(0, 1, len(X))])


def test_what_an_estimator_is_given():
    X, y = rows()
    X[3:20, 1] = np.nan
    compare(X, y, {"plain": Seen()}, cv=2, seed=7)
    assert np.isfinite(Seen.last[0]).all()
    assert_allclose(Seen.last[0].std(axis=0), 1)
    assert Seen.last[1] == 7
    compare(X, y, {"trees": Seen(allow_nan=True)}, cv=2)
    assert np.isnan(Seen.last[0]).any()
    frame = pd.DataFrame(X, columns=list("abcde"))
    compare(frame, y, {"trees": Seen(allow_nan=True, random_state=3)}, cv=2)
    assert np.isnan(Seen.last[0]).any(axis=0).tolist() == [False, True, False, False, False]
    assert Seen.last[1] == 3
    compare(frame, y, {"own": make_pipeline(FunctionTransformer(), Seen())}, cv=2)
    assert list(Seen.last[0].columns) == list("abcde")
    search = GridSearchCV(
        make_pipeline(FunctionTransformer(), Seen()), {"seen__allow_nan": [True]}, scoring="roc_auc"
    )
    compare(frame, y, {"own": search}, cv=2)
    assert list(Seen.last[0].columns) == list("abcde")
    compare(sp.csr_matrix(np.nan_to_num(X)), y, {"dense": Seen()}, cv=2)
    assert isinstance(Seen.last[0], np.ndarray)


class Threads(Seen):
    """Remembers how many threads the libraries have while it is fitted."""

    def __init__(self, allow_nan=False, random_state=None, n_jobs=None):
        super().__init__(allow_nan, random_state)
        self.n_jobs = n_jobs

    def fit(self, X, y):
        super().fit(X, y)
        Threads.last = self.n_jobs, [pool["num_threads"] for pool in threadpool_info()]
        return self


def test_a_fit_has_one_thread_unless_it_is_given_more():
    X, y = rows()
    before = [pool["num_threads"] for pool in threadpool_info()]
    compare(X, y, {"plain": Threads()}, cv=2)
    assert Threads.last[0] == 1
    assert set(Threads.last[1]) == {1}
    compare(X, y, {"more": Threads(n_jobs=3)}, cv=2)
    assert Threads.last[0] == 3
    compare(X, y, {"inside": make_pipeline(FunctionTransformer(), Threads())}, cv=2)
    assert Threads.last[0] == 1
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_trees_of_others_have_one_thread():
    lightgbm = pytest.importorskip("lightgbm")
    methods = select_methods(["lightgbm", "lightgbm(n_jobs=2)"], "auc", read_problem(*rows(50)))
    found = [seeded(method.estimator, 0) for method in methods.values()]
    assert all(isinstance(each, lightgbm.LGBMClassifier) for each in found)
    assert [each.n_jobs for each in found] == [1, 2]


def test_weights_and_groups_go_where_they_are_taken():
    X, y = rows(240)
    y[::10], y[1::10] = 0, 1  # a pair in each group
    qid = np.repeat([f"g{k}" for k in range(24)], 10)
    weights = np.random.default_rng(0).random(240)
    methods = {
        "pairs": PairwiseRanker(alpha=0.1),
        "svc": SVC(),
        "own": make_pipeline(PointwiseRanker()),
    }
    found = compare(X, y, methods, qid=qid, sample_weight=weights, cv=4)
    unused = {each["method"]: each.get("unused") for each in found.records}
    assert unused == {"pairs": None, "svc": ["qid"], "own": ["qid"]}
    cv = StratifiedGroupKFold(4, shuffle=True, random_state=0)
    for k, (train, test) in enumerate(cv.split(X, y, qid)):
        scaler = StandardScaler().fit(X[train])
        model = PairwiseRanker(alpha=0.1)
        model.fit(
            scaler.transform(X[train]), y[train], sample_weight=weights[train], qid=qid[train]
        )
        scores = model.decision_function(scaler.transform(X[test]))
        expected = metrics.roc_auc(y[test], scores, sample_weight=weights[test], qid=qid[test])
        assert found.values()["pairs"][0, k] == pytest.approx(expected)
    with pytest.raises(ValueError, match="qid has"):
        compare(X, y, methods, qid=list(qid[:10]))


def test_grades_are_ordered():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 3))
    grade = np.digitize(X[:, 0] + 0.3 * rng.standard_normal(150), [-0.5, 0.5])
    found = compare(X, grade, ["PairwiseRanker", LogisticRegression(), Ridge()], cv=3)
    assert found.errors() == []
    assert set(found.records[0]["measures"]) == {"wmw", "ndcg@10"}
    assert min(row["mean"] for row in found.table()) > 0.85
    assert compare(X, grade, ["PairwiseRanker"], cv=3, metric="ndcg@5").table()[0]["mean"] > 0.9
    with pytest.raises(ValueError, match="the labels are grades"):
        compare(X, grade, ["PairwiseRanker"], metric="ap")


def test_three_positives_in_ten_thousand_rows():
    rng = np.random.default_rng(0)
    y = np.zeros(10_000, dtype=int)
    y[[5, 500, 5000]] = 1
    X = rng.standard_normal((10_000, 3)) + y[:, None]
    found = compare(X, y, [PAIRS, DUMMY])
    assert found.folds == 3
    assert "there are 3 folds instead of 5, for 3 rows of the smaller class" in found.notes
    assert found.errors() == []
    assert found.warnings[0].kind == "tiny class"
    with pytest.raises(
        ValueError, match="needs at least 2 rows of the smaller class; the data have 1"
    ):
        compare(X, np.arange(10_000) == 3, [PAIRS])


def test_many_grades_are_compared_with_a_model_of_one_fit():
    """Logistic regression would fit weights for each of 32 grades, many times."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((640, 4))
    y = np.digitize(X[:, 0] + rng.standard_normal(640), np.linspace(-2, 2, 31))
    found = compare(X, y, ["PairwiseRanker(alpha=0.01)", "baseline"], cv=2)
    assert found.methods == ["PairwiseRanker(alpha=0.01)", "ridge-regression-cv"]
    assert found.table()[0]["mean"] > 0.7
    assert not found.errors()
    two = select_methods(None, "auc", read_problem(X, y > 15))
    assert list(two) == ["Ranker", "logistic-regression-cv"]


def test_a_time_budget_ends_after_a_whole_fold(monkeypatch):
    X, y = rows(100)
    clock = iter(range(1000))
    monkeypatch.setattr(
        "forerank.workflows.compare.runs.perf_counter", lambda: next(clock)
    )  # a second at each look
    found = compare(X, y, [PAIRS, DUMMY], cv=5, time_budget=8)
    fits = Counter(each["method"] for each in found.records)
    assert fits[PAIRS] == fits["DummyClassifier"]
    assert 1 <= fits[PAIRS] < 5
    assert (
        found.cut
        == f"The time budget of 8 seconds ended the comparison after {fits.total()} of 10 fits."
    )
    assert found.sentence().endswith(found.cut)
    whole = compare(X, y, [PAIRS, DUMMY], cv=5, time_budget=1e9)
    assert (whole.cut, len(whole.records)) == ("", 10)
    with pytest.raises(ValueError, match="time_budget=0: give a number of seconds above 0"):
        compare(X, y, time_budget=0)


def test_a_fold_of_one_class_is_said():
    X, y = rows(90)
    fold = np.repeat([0, 1, 2], 30)
    y[:30] = 1
    found = compare(X, y, [PAIRS, DUMMY], cv=PredefinedSplit(fold))
    assert (
        found.errors()[0]
        == f"{PAIRS} (seed 0, fold 1): all 30 rows to test on in this fold have the label 1"
    )
    assert [row["n"] for row in found.table()] == [2, 2]
    y[30:] = 0
    learning = compare(X, y, [PAIRS], cv=GroupKFold(2), qid=(fold > 0).astype(int))
    assert learning.best is None
    assert learning.sentence().startswith("Every fit failed; the first because")
    with pytest.raises(ValueError, match="so its folds are the same for all seeds"):
        compare(X, y, [PAIRS], cv=PredefinedSplit(fold), seeds=2)


class Fails(BaseEstimator):
    def fit(self, X, y):
        raise RuntimeError("no luck\nat all")


def test_a_fit_that_fails_is_said_and_the_others_go_on():
    X, y = rows()
    found = compare(X, y, {"fails": Fails(), "dummy": DummyClassifier()}, cv=2)
    assert found.errors()[0] == "fails (seed 0, fold 1): RuntimeError: no luck"
    assert found.best == "dummy"


def test_fits_side_by_side_give_the_same():
    X, y = rows()
    one, two = (compare(X, y, [PAIRS, DUMMY], cv=3, n_jobs=n) for n in (None, 2))
    assert [each["value"] for each in one.records] == [each["value"] for each in two.records]


def test_the_public_name_is_light():
    code = "import sys, forerank; print(*{'sklearn', 'numba'} & set(sys.modules)); "
    code += "print(forerank.compare.__module__)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert done.split() == ["forerank.workflows.compare"]
    assert forerank.compare is compare


@pytest.mark.parametrize(
    ("methods", "forms"),
    [
        (["Ranker(families=trees, cv=2)"], ["trees"]),
        (["BoostedRanker(rounds=5)"], ["trees"]),
        (["Ranker(families=linear, cv=2, alphas=2)"], ["plain"]),
        (["BoostedRanker(rounds=5)", "sklearn.dummy.DummyClassifier"], ["plain", "trees"]),
        (["Ranker(families=additive, cv=2, alphas=2)", PAIRS], ["plain", "additive"]),
    ],
)
def test_notes_describe_the_columns_as_they_were_fitted(methods, forms, tmp_path):
    frame, record = table(120), tmp_path / "a.jsonl"
    problem = read_problem(frame, "y")
    expected = problem.notes_on(forms)
    assert (expected == problem.notes) == (forms == ["plain"])
    found = compare(frame, "y", methods, cv=2, record=record)
    assert not found.errors()
    assert found.notes == expected
    assert compare(frame, "y", methods, cv=2, record=record).notes == expected
