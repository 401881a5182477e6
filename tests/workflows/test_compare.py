"""Comparisons: the same folds for all, tests against their definitions, records that outlive a
kill.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy import stats
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
from typer.testing import CliRunner

import forerank
from forerank import PairwiseRanker, PointwiseRanker, Ranker, compare, metrics
from forerank.cli.app import app
from forerank.data.column_plan import plan_columns
from forerank.data.frames import as_frame
from forerank.data.problem import read_problem
from forerank.data.readers import read_table
from forerank.metrics.top_k import Depth
from forerank.selection.ranker import method_names
from forerank.workflows.compare import Comparison, corrected_t_test, holm
from forerank.workflows.compare.methods import seeded, select_methods
from tables import table

DUMMY = "sklearn.dummy.DummyClassifier"
PAIRS = "PairwiseRanker(alpha=0.01)"


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    return X, (X[:, 0] + X[:, 1] + rng.standard_normal(n) > 1).astype(int)


def made(values, n_train=80, n_test=20):
    """A comparison with these values of each method, five folds to a seed."""
    records = [
        {
            "method": name,
            "seed": k // 5,
            "fold": k % 5,
            "value": v,
            "measures": {"auc": v, "ap": v / 2},
        }
        | {"n_train": n_train, "n_test": n_test, "fit_seconds": 1.0 + k, "score_seconds": 0.1}
        if v is not None
        else {
            "method": name,
            "seed": k // 5,
            "fold": k % 5,
            "n_train": n_train,
            "n_test": n_test,
            "error": "no",
        }
        for name, own in values.items()
        for k, v in enumerate(own)
    ]
    n = len(next(iter(values.values())))
    return Comparison(records, "auc", list(values), 5, list(range(-(-n // 5))))


# --- Tests of differences ---


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (10, 3.164)])
def test_the_critical_difference_has_the_table_of_demsar(k, q):
    rng = np.random.default_rng(0)
    found = made({f"m{j}": rng.random(15) for j in range(k)})
    assert found.cd == pytest.approx(q * np.sqrt(k * (k + 1) / (6 * 15)), abs=1e-3)


def test_ranks_friedman_and_groups():
    rng = np.random.default_rng(1)
    base = rng.random(20)
    values = {"worst": base - 2, "a": base + 0.01 * rng.standard_normal(20), "b": base, "tie": base}
    found = made(values)
    matrix = np.array(list(values.values()))
    expected = np.mean(
        [[1 + np.sum(m > x) + (np.sum(m == x) - 1) / 2 for x in m] for m in matrix.T], axis=0
    )
    assert found.ranks() == pytest.approx(dict(zip(values, expected, strict=True)))
    assert list(found.ranks())[-1] == "worst"
    assert found.friedman()["p"] == pytest.approx(stats.friedmanchisquare(*matrix).pvalue)
    assert [sorted(group) for group in found.groups()] == [["a", "b", "tie"]]
    assert made({"a": base, "b": base}).friedman() is None
    assert made(dict.fromkeys("abc", base)).friedman() == {"chi2": 0.0, "p": 1.0}
    assert np.isnan(made({"a": base}).cd)


def test_differences_are_paired_and_corrected():
    rng = np.random.default_rng(0)
    base = rng.random(10)
    values = {
        "a": base,
        "best": base + 0.1 + 0.01 * rng.random(10),
        "b": base + 0.1 + 0.02 * rng.standard_normal(10),
    }
    found = made(values)
    assert found.best == "best"
    by_name = {each["method"]: each for each in found.differences()}
    for name in "ab":
        alone = corrected_t_test(values[name] - values["best"], 0.25)
        assert_allclose(by_name[name]["p_single"], alone["p_single"])
    assert_allclose([by_name[n]["p"] for n in "ab"], holm(by_name[n]["p_single"] for n in "ab"))
    assert by_name["a"]["high"] < 0
    assert [row["method"] for row in found.table()] == ["best", "b", "a"]
    assert (
        found.table()[0] | {"p": None, "difference": None, "n": 10, "failed": 0} == found.table()[0]
    )
    assert found.table("ap")[0]["mean"] == pytest.approx(values["best"].mean() / 2)
    assert found.table()[0]["seconds"] == 5.5
    with pytest.raises(ValueError, match="no measure 'f1'"):
        found.table("f1")
    with pytest.raises(ValueError, match="confidence=2"):
        found.differences(confidence=2)


def test_the_result_in_words():
    rng = np.random.default_rng(0)
    base = 0.9 + 0.01 * rng.standard_normal(10)
    near = base - 0.001 + 0.01 * rng.standard_normal(10)
    found = made({"far": base - 0.03 - 0.001 * rng.random(10), "near": near, "best": base})
    p = found.table()[1]["p"]
    assert found.sentence() == (
        f"best has the highest AUC, {base.mean():.3f}; near is not significantly different (p = {p:.2g}); "
        "far is lower by 0.031 (p < 0.001)."
    )
    assert str(found).splitlines()[-1] == found.sentence()
    three = made({"best": base, "near": near, "nearer": near + 1e-5})
    assert "nearer and near are not significantly different (p = " in three.sentence()
    assert "; 10 folds show large" not in found.sentence()
    few = made({"a": base[:3], '"b, c"': near[:3]})
    assert few.sentence().endswith(
        "; 3 folds show large differences only, more seeds smaller ones."
    )
    assert (
        "one fold cannot show which differences are significant"
        in made({"a": [0.5], "b": [0.6]}).sentence()
    )
    assert made({"a": [0.5, 0.75]}).sentence() == "a has a mean AUC of 0.625."
    assert (
        made({"a": [None, None]}).sentence()
        == "Every fit failed; the first because a (seed 0, fold 1): no."
    )


def test_a_method_that_failed_somewhere_is_not_the_best():
    found = made(
        {
            "lucky": [0.99, None, 0.99, 0.99, 0.99],
            "steady": [0.9, 0.5, 0.9, 0.91, 0.9],
            "none": [None] * 5,
        }
    )
    assert found.best == "steady"
    assert [row["method"] for row in found.table()] == ["steady", "lucky", "none"]
    assert [row["failed"] for row in found.table()] == [0, 1, 5]
    assert found.differences()[0]["n"] == 4
    assert found.ranks() == {"lucky": 1.0, "steady": 2.0}
    assert "none failed in every fold" in found.sentence()
    assert "6 fits failed" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


# --- Running ---


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
    assert "3 folds instead of 5: there are 3 rows of the smaller class" in found.notes
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
    with pytest.raises(ValueError, match="its folds are the same for all seeds"):
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


# --- Names ---


def test_names_of_methods():
    X, y = rows(100)
    found = compare(
        X,
        y,
        [
            "sklearn.linear_model.LogisticRegression(C=0.1, class_weight={0: 1.0, 1: 2.0})",
            "sklearn.linear_model.LogisticRegression",
            "pairwise_ranker",
            "logistic-regression-cv(Cs=3)",
            "sklearn.ensemble.HistGradientBoostingClassifier(max_iter=5)",
            Ridge(),
        ],
        cv=2,
    )
    assert found.errors() == []
    assert found.methods[:2] == [
        "LogisticRegression(C=0.1, class_weight={0: 1.0, 1: 2.0})",
        "LogisticRegression",
    ]
    assert found.methods[-1] == "Ridge"
    assert "warnings" not in found.records[3]


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (
            "PairwiseRankr",
            "no ranker 'PairwiseRankr'. Did you mean PairwiseRanker.* Other methods are logistic",
        ),
        ("PairwiseRanker(alfa=1)", "no parameter 'alfa'. Did you mean 'alpha'"),
        ("PairwiseRanker(1)", "parameters have names"),
        ("PairwiseRanker(alpha=__import__('os'))", "cannot be read"),
        ("PairwiseRanker(alpha=1", "cannot be read"),
        ("PairwiseRanker(alpha=1).fit(a=1)", "cannot be read"),
        ("PairwiseRanker(**{'alpha': 1})", "cannot be read"),
        ("nowhere.at.All", "nowhere.at.All cannot be imported"),
        ("sklearn.linear_model.NoRegression", "sklearn.linear_model has no NoRegression"),
        ("sklearn.metrics.roc_auc_score", "not an estimator of scikit-learn"),
        ("sklearn.linear_model.Ridge(beta=1)", "Ridge: .*beta"),
        (Ridge, "is not an estimator"),
    ],
)
def test_methods_that_cannot_be(method, words):
    with pytest.raises(ValueError, match=words):
        compare(*rows(50), [method])


def test_ranker_and_its_methods():
    X, y = rows()
    found = compare(
        X,
        y,
        {"all": "Ranker", "ap": "Ranker(metric='ap', alphas=3)", "one": "pairwise-logistic"},
        cv=2,
    )
    assert found.errors() == []
    by_method = {each["method"]: each for each in found.records}
    assert by_method["one"]["chosen"] == "pairwise-logistic"
    assert by_method["all"]["alpha"] > 0
    assert by_method["all"]["chosen"] in method_names("auc")
    # As Ranker by itself on the scaled rows of the fold.
    train, test = list(StratifiedKFold(2, shuffle=True, random_state=0).split(X, y))[1]
    scaler = StandardScaler().fit(X[train])
    ranker = Ranker("auc", methods=["pairwise-logistic"], random_state=0).fit(
        scaler.transform(X[train]), y[train]
    )
    expected = metrics.roc_auc(y[test], ranker.decision_function(scaler.transform(X[test])))
    assert by_method["one"]["value"] == pytest.approx(expected)
    assert by_method["one"]["alpha"] == ranker.best_alpha_
    line = found.choices()[0]
    assert line.startswith("all chose ")
    assert line in str(found)
    assert compare(X, y, ["pointwise-logistic"], cv=2).choices() == []
    assert compare(X, y, cv=2).methods == ["Ranker", "logistic-regression-cv"]
    assert (
        compare(X, np.digitize(X[:, 0], [-1, 0, 1]), ["Ranker"], cv=2, metric="ndcg@10").errors()
        == []
    )


def test_an_old_name_of_a_method_is_accepted_with_a_warning():
    X, y = rows()
    options = {"metric": "auc", "cv": 2}
    with pytest.warns(FutureWarning, match="'rows, logistic' is now 'pointwise-logistic'"):
        old = compare(X, y, ["rows, logistic"], **options)
    assert old.methods == ["pointwise-logistic"]
    assert old.values() == compare(X, y, ["pointwise-logistic"], **options).values()


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_a_rival_that_is_not_installed_is_named(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match=f"{name} is not installed: pip install {name}"):
        compare(*rows(50), [name])


def test_bad_input():
    X, y = rows(50)
    for arguments, words in (
        ((X,), "pass its labels"),
        ((X, y[:9], [PAIRS]), "50 rows"),
        ((pd.DataFrame(X), y[:9], [PAIRS]), "50 rows"),
        ((X, y, "Ranker"), "give a list of names"),
        ((X, y, []), "methods is empty"),
        ((X, y, [Ridge(), Ridge()]), "two methods 'Ridge'"),
    ):
        with pytest.raises(ValueError, match=words):
            compare(*arguments)
    for options, words in (
        ({"cv": 1}, "1 is not a number of folds"),
        ({"seeds": 0}, "seeds must be an integer >= 1; got 0"),
        ({"metric": "f1"}, "f1"),
        ({"sample_weight": -np.ones(50)}, "sample_weight"),
        ({"drop": ["a"]}, "have no names"),
    ):
        with pytest.raises(ValueError, match=words):
            compare(X, y, [PAIRS], **options)
    with pytest.raises(ValueError, match="all labels"):
        compare(X, np.ones(50), [PAIRS])


# --- The record ---


def test_a_record_is_gone_on_with(tmp_path):
    X, y = rows()
    path, shares = tmp_path / "new" / "r.jsonl", []
    first = compare(X, y, [PAIRS], record=path, cv=3)
    lines = path.read_text().splitlines()
    assert [json.loads(line) for line in lines[1:]] == first.records
    again = compare(X, y, [PAIRS], record=path, cv=3, progress=shares.append)
    assert path.read_text().splitlines() == lines
    assert again.records == first.records
    assert shares == [1.0]
    # More methods and seeds add to it; asked for fewer, the others are left where they are.
    more = compare(X, y, [PAIRS, DUMMY], record=path, cv=3, seeds=2)
    assert len(path.read_text().splitlines()) == 1 + 12
    assert path.read_text().splitlines()[: len(lines)] == lines
    assert len(more.records) == 12
    assert compare(X, y, [DUMMY], record=path, cv=3).methods == ["DummyClassifier"]
    assert len(path.read_text().splitlines()) == 1 + 12


def test_a_torn_line_is_done_again(tmp_path):
    X, y = rows()
    path = tmp_path / "r.jsonl"
    compare(X, y, [DUMMY], record=path, cv=3)
    whole = path.read_bytes()
    for torn in (whole[:-1], whole[:-30], whole[:20]):
        path.write_bytes(torn)
        found = compare(X, y, [DUMMY], record=path, cv=3)
        assert len(found.records) == 3
        lines = path.read_bytes().splitlines()
        assert len(lines) == 4
        assert all(json.loads(line) for line in lines)


def test_other_data_and_other_files_are_refused(tmp_path):
    X, y = rows()
    path = tmp_path / "r.jsonl"
    compare(X, y, [DUMMY], record=path, cv=3)
    before = path.read_bytes()
    changed = X.copy()
    changed[0, 0] += 1
    flipped = y.copy()
    flipped[[np.argmin(y), np.argmax(y)]] = [1, 0]
    for data, options, words in (
        ((X[:150], y[:150]), {}, "rows = 200 in the file, 150 now"),
        ((changed, y), {}, "other values or labels"),
        ((sp.csr_matrix(X), y), {}, "other values or labels"),
        ((X, flipped), {}, "other values or labels"),
        ((X, y), {"metric": "ap"}, "metric = 'auc' in the file, 'ap' now"),
        ((X, y), {"cv": 4}, "folds = 3 in the file, 4 now"),
        ((X, y), {"cv": PredefinedSplit(np.arange(200) % 3)}, "other folds"),
        ((X, y), {"sample_weight": np.ones(200)}, "other values or labels"),
    ):
        with pytest.raises(ValueError, match=words):
            compare(*data, [DUMMY], record=path, **{"cv": 3} | options)
    with pytest.raises(ValueError, match="'DummyClassifier' with other parameters"):
        compare(
            X, y, {"DummyClassifier": DummyClassifier(strategy="stratified")}, record=path, cv=3
        )
    assert path.read_bytes() == before
    path.write_bytes(before + b"{broken\n")
    with pytest.raises(ValueError, match=r"r.jsonl, line 5: expected a JSON object"):
        compare(X, y, [DUMMY], record=path, cv=3)
    path.write_text("a,b\n1,2")
    with pytest.raises(ValueError, match="is not the record of a comparison"):
        compare(X, y, [DUMMY], record=path, cv=3)
    assert path.read_text() == "a,b\n1,2"


KILLED = """
import sys, time
import numpy as np
from sklearn.dummy import DummyClassifier
from forerank import compare
class Slow(DummyClassifier):
    def fit(self, X, y):
        time.sleep(0.05)
        print("fit", flush=True)
        return super().fit(X, y)
X = np.random.default_rng(0).standard_normal((200, 3))
print(len(compare(X, X[:, 0] > 0, {"slow": Slow()}, seeds=8, record=sys.argv[1]).records))
"""


def test_a_comparison_that_is_killed_redoes_nothing(tmp_path):
    path = tmp_path / "r.jsonl"
    words = [sys.executable, "-c", KILLED, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(12):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
    kept = path.read_bytes()
    n_kept = kept.count(b"\n") - 1
    assert 11 <= n_kept < 40
    done = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert done.count("fit") == 40 - n_kept
    assert done[-1] == "40"
    assert path.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])


class Interrupted(DummyClassifier):
    calls = 0

    def fit(self, X, y):
        Interrupted.calls += 1
        if Interrupted.calls == 3:
            raise KeyboardInterrupt
        return super().fit(X, y)


def test_an_interrupt_leaves_the_record_whole(tmp_path):
    X, y = rows()
    path = tmp_path / "r.jsonl"
    with pytest.raises(KeyboardInterrupt):
        compare(X, y, {"a": Interrupted()}, record=path)
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 3
    assert len(compare(X, y, {"a": Interrupted()}, record=path).records) == 5
    assert Interrupted.calls == 6


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
def test_two_at_a_time_are_refused(tmp_path):
    X, y = rows()
    path = tmp_path / "r.jsonl"

    def other(share):
        with pytest.raises(ValueError, match="is being written by another comparison"):
            compare(X, y, [DUMMY], record=path)

    compare(X, y, [DUMMY], record=path, progress=other)


# --- The command ---


def run(*words, code=0):
    result = CliRunner().invoke(app, ["compare", *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    path = tmp_path_factory.mktemp("compare") / "t.csv"
    table(200).to_csv(path, index=False)
    return path


def test_the_command_prints_a_table_and_the_result(csv, tmp_path):
    record = tmp_path / "r.jsonl"
    words = (
        csv,
        "-t",
        "y",
        "-m",
        PAIRS,
        "-m",
        DUMMY,
        "--folds",
        3,
        "--seeds",
        2,
        "--record",
        record,
    )
    shown = run(*words).stdout
    for part in (
        "200 rows, 3 folds, 2 times",
        "DummyClassifier",
        "has the highest AUC",
        "left out id",
    ):
        assert part in shown
    assert len(record.read_text().splitlines()) == 13
    found = json.loads(run(*words, "--json").stdout)
    assert found["best"] == PAIRS
    assert len(found["records"]) == 12
    assert set(found["ranks"]) == {PAIRS, "DummyClassifier"}
    assert found["critical_difference"] == pytest.approx(1.96 * np.sqrt(6 / 36), abs=1e-3)
    quiet = run(*words, "--quiet")
    assert quiet.stderr == ""
    assert "left out" not in quiet.stdout
    assert "Examples" in run("--help").stdout


def test_the_command_says_in_one_line_what_is_wrong(csv, tmp_path):
    for words, said in (
        ((csv, "-t", "z", "-m", PAIRS), "z"),
        ((csv, "-m", PAIRS), "no target was given"),
        ((csv, "-t", "y", "-m", "Foo"), "There is no ranker"),
        ((csv, "-t", "y", "-m", PAIRS, "--metric", "f1"), "f1"),
        ((csv, "-t", "y", "-m", PAIRS, "--record", csv), "choose another output file"),
        ((csv, "-t", "y", "-m", PAIRS, "--jobs", 0), "--jobs 0"),
        ((tmp_path / "none.csv", "-t", "y"), "no such file"),
    ):
        result = run(*words, code=2)
        assert result.stdout == ""
        assert result.stderr.startswith("forerank: ")
        assert len(result.stderr.splitlines()) == 1
        assert said in result.stderr


def test_the_command_names_leaks_and_failures(tmp_path):
    frame = table(400)
    frame["outcome"] = np.where(frame["y"] == "yes", 5.0, 1.0) + np.arange(400) / 1000
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = run(tmp_path / "t.csv", "-t", "y", "-m", DUMMY, "--folds", 2)
    assert "note: The column 'outcome' alone ranks the labels perfectly" in result.stderr
    failing = run(
        tmp_path / "t.csv",
        "-t",
        "y",
        "-m",
        "sklearn.svm.NuSVC(nu=1.0)",
        "--folds",
        2,
        "--drop",
        "outcome",
        code=1,
    )
    assert "Every fit failed" in failing.stdout


def test_the_public_name_is_light():
    code = "import sys, forerank; print(*{'sklearn', 'numba'} & set(sys.modules)); print(forerank.compare.__module__)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert done.split() == ["forerank.workflows.compare"]
    assert forerank.compare is compare
