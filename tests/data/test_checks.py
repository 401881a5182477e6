"""What is odd about data is said, and what is not odd is not."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris

from forerank import metrics
from forerank.data.checks import _row_hashes, data_warnings
from forerank.data.leaky_columns import balanced_sample, pair_auc


def noise(n=1000, d=4, positives=0.3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), (rng.random(n) < positives).astype(int)


def kinds(*args, **kwargs):
    return [(each.kind, each.column) for each in data_warnings(*args, **kwargs)]


def test_nothing_is_said_about_noise_and_honest_data():
    assert kinds(*noise()) == []
    assert kinds(sp.csr_matrix(noise()[0]), noise()[1]) == []
    assert kinds(*load_breast_cancer(return_X_y=True)) == []
    assert kinds(*load_breast_cancer(return_X_y=True, as_frame=True)) == []


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, pd.DataFrame])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_column_that_ranks_the_labels_is_named(form, sign):
    X, y = noise()
    X[:, 2] = sign * (5.0 * y + np.random.default_rng(1).random(y.size))
    (found,) = data_warnings(form(X), y)
    assert (found.kind, found.column) == (
        "leaky column",
        "2" if form is pd.DataFrame else "column 2",
    )
    assert "perfectly (AUC 1.0000)" in found.sentence
    assert str(found) == found.sentence


def test_a_nearly_perfect_column_is_named_and_a_good_one_is_not():
    X, y = noise(20_000)
    X[:, 0] += 6 * y
    X[:, 1] += 3 * y
    assert metrics.roc_auc(y, X[:, 0]) > 0.999 > metrics.roc_auc(y, X[:, 1]) > 0.98
    assert kinds(X, y, names=list("abcd")) == [("leaky column", "a")]
    assert "nearly perfectly" in data_warnings(X, y)[0].sentence


def test_categories_gaps_and_codes_give_labels_away():
    X, y = noise()
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        status=np.where(
            y == 1, rng.choice(["closed", "lost"], y.size), rng.choice(["open", "new"], y.size)
        ),
        code=np.where(
            y == 1, 3, rng.choice([1, 5], y.size)
        ),  # neither high nor low, and yet it tells
        ended=np.where(y == 1, rng.random(y.size), np.nan),
        name=[f"n{k}" for k in range(y.size)],  # a value for each row proves nothing
        fair=rng.choice(["x", "y", "z"], y.size),
    )
    assert kinds(frame, y) == [
        ("leaky column", "status"),
        ("leaky column", "code"),
        ("leaky column", "ended"),
    ]
    sentences = {each.column: each.sentence for each in data_warnings(frame, y)}
    assert "missing tells the label" in sentences["ended"]
    assert "judged by others" in sentences["status"]


def test_a_column_known_for_most_positives_only_is_a_hint():
    X, y = noise()
    X[(y == 0) | (np.arange(y.size) % 3 == 0), 1] = np.nan
    (found,) = data_warnings(X, y)
    assert found.kind == "perhaps leaky column"
    assert "known for 6" in found.sentence
    assert "for no other row" in found.sentence


def test_dates_and_lists_are_looked_at():
    X, y = noise()
    days = pd.to_datetime("2024-01-01") + pd.to_timedelta(
        1000 * y + np.arange(y.size) % 900, unit="D"
    )
    frame = pd.DataFrame({"when": days, "what": [[k] for k in range(y.size)], "a": X[:, 0]})
    assert kinds(frame, y) == [("leaky column", "when")]


def test_few_rows_make_a_hint_and_very_few_nothing():
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    X = rng.standard_normal((20, 3))
    X[:, 0] = 4 * y + rng.random(20)
    hint = data_warnings(X, y)[0]
    assert (hint.kind, hint.column) == ("perhaps leaky column", "column 0")
    assert "may be legitimate" in hint.sentence
    # Setosa is parted from the others by its petals: an honest column.
    X, kind = load_iris(return_X_y=True)
    assert {each for each, column in kinds(X, kind == 0) if column} == {"perhaps leaky column"}
    # Among many columns some have the one positive row at an end.
    X, y = rng.standard_normal((60, 200)), np.arange(60) == 7
    assert max(abs(metrics.roc_auc(y, column) - 0.5) for column in X.T) == 0.5
    assert kinds(X, y) == [("tiny class", None)]


def test_chance_rarely_shows_a_leak():
    rng = np.random.default_rng(3)
    for _ in range(100):
        y = rng.permutation(np.arange(12) < 4)
        assert all(column is None for _, column in kinds(rng.standard_normal((12, 8)), y))


def test_many_rows_are_sampled_and_it_says_so():
    X, y = noise(5000, positives=0.02)
    X[:, 1] = y
    (found,) = data_warnings(X, y, max_rows=1000)
    assert "(seen on a sample of 1,000 rows)" in found.sentence
    rows = balanced_sample(y, 1000, np.random.default_rng(0))
    assert rows.size == 1000
    assert y[rows].sum() == y.sum()  # all of the small class
    assert kinds(X, y, max_rows=1000) == kinds(X, y, max_rows=1000)


def test_grades():
    X, _ = noise()
    grade = np.random.default_rng(1).integers(0, 4, 1000)
    assert kinds(X, grade) == []
    X[:, 3] = grade + 0.5 * np.random.default_rng(1).random(1000)
    assert kinds(X, grade) == [("leaky column", "column 3")]


def test_the_same_rows_in_both_classes():
    X, y = noise(400)
    X[200:260], y[200:260] = X[:60], 1 - y[:60]
    for data in (X, sp.csr_matrix(X), pd.DataFrame(X)):
        (found,) = data_warnings(data, y)
        assert found.kind == "same row in both classes"
        assert found.sentence.startswith("120 of 400 rows")
    pairs = np.arange(400)
    pairs[200:260] = np.arange(60)
    share = np.array(
        [y[pairs == row].mean() for row in pairs]
    )  # no score ranks better than this one
    assert f"{metrics.roc_auc(y, share):.4f}" in found.sentence


def test_a_limit_of_nearly_one_is_not_mentioned():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40_000, 3)), (np.arange(40_000) < 100).astype(int)
    X[:2] = X[-2:]
    (found,) = [each for each in data_warnings(X, y) if each.kind == "same row in both classes"]
    assert "4 of 40,000 rows" in found.sentence
    assert "can tell them apart. Look for wrong labels" in found.sentence


def test_copies_and_what_must_repeat():
    X, y = noise(400)
    X[300:], y[300:] = X[:100], y[:100]
    assert kinds(X, y) == [("copies", None)]
    assert kinds(sp.csr_matrix(X), y) == [("copies", None)]
    assert "100 of 400 rows are exact copies" in data_warnings(X, y)[0].sentence
    few_values = np.random.default_rng(0).integers(
        0, 3, (400, 2)
    )  # nine different rows are all there can be
    assert [kind for kind, _ in kinds(few_values, y)] == ["same row in both classes"]


def test_equal_rows_have_equal_hashes_and_others_do_not():
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, (20_000, 6)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[0], X[1] = 0.0, -0.0
    _, expected = np.unique(np.nan_to_num(X, nan=9.0) + 0.0, axis=0, return_inverse=True)
    for form in (X, sp.csr_matrix(X)):
        _, found = np.unique(_row_hashes(form), return_inverse=True)
        pairs = np.unique(np.column_stack([expected.ravel(), found]), axis=0)
        assert len(pairs) == expected.max() + 1 == found.max() + 1
    reordered = sp.csr_matrix(([2.0, 1.0, 0.0, 1.0, 2.0], [1, 0, 2, 0, 1], [0, 3, 5]), shape=(2, 3))
    assert np.ptp(_row_hashes(reordered)) == 0


def test_small_and_rare_classes():
    y = np.zeros(10_000, dtype=int)
    y[:3] = 1
    (found,) = data_warnings(None, y)
    assert found.kind == "tiny class"
    assert found.sentence.startswith("3 of 10,000 rows are positive")
    assert "negative" in data_warnings(None, 1 - y)[0].sentence
    y = np.arange(100_000) < 50
    (found,) = data_warnings(None, y)
    assert found.kind == "extreme imbalance"
    assert "One row in 2,000 is positive" in found.sentence
    assert kinds(None, np.arange(100_000) < 5000) == []
    assert kinds(None, np.ones(5)) == [("one class", None)]
    assert kinds(np.ones((5, 1)), np.ones(5)) == [("one class", None)]


def test_the_half_width_is_that_of_the_interval():
    rng = np.random.default_rng(0)
    y = np.arange(2020) < 20
    # The model of Hanley and McNeil: scores are exponential in both classes.
    aucs = [metrics.roc_auc(y, rng.exponential(np.where(y, 4.0, 1.0))) for _ in range(1000)]
    assert np.mean(aucs) == pytest.approx(0.8, abs=0.01)
    sentence = data_warnings(None, y)[0].sentence
    assert float(sentence.split("±")[1][:4]) == pytest.approx(1.96 * np.std(aucs), abs=0.012)


def test_groups_of_one_class():
    y = np.arange(100) % 3 == 0
    groups = np.repeat(np.arange(10), 10)
    assert kinds(None, y, qid=groups) == []
    y = (np.arange(100) % 2 == 0) & (np.arange(100) >= 30)
    (found,) = data_warnings(None, y, qid=[f"q{k}" for k in groups])
    assert found.kind == "groups of one class"
    assert found.sentence.startswith("3 of 10 groups (30 rows)")
    assert "belong to the rows" in data_warnings(None, y, qid=np.arange(100))[0].sentence


def test_scores_that_are_no_ranking():
    y = np.arange(100) % 3 == 0
    assert kinds(None, y, scores=np.arange(100)) == []
    assert kinds(None, y, scores=np.full(100, 0.25)) == [("constant score", None)]
    assert kinds(None, y, scores=np.maximum(0, np.arange(100) - 60)) == [("tied scores", None)]


def test_auc_is_the_one_of_metrics():
    X, y = noise(300, 1)
    assert pair_auc(np.round(X[:, 0]), y) == pytest.approx(metrics.roc_auc(y, np.round(X[:, 0])))
    grade = np.random.default_rng(0).integers(0, 3, 300)
    assert pair_auc(X[:, 0], grade) == metrics.wmw(grade, X[:, 0])


def test_bad_input():
    X, y = noise(10)
    with pytest.raises(ValueError, match="data has 10 rows and y 9"):
        data_warnings(X, y[:9])
    with pytest.raises(ValueError, match="shape \\(\\)"):
        data_warnings(X, 1)
    with pytest.raises(ValueError, match="or a data frame if some columns"):
        data_warnings(np.array([["a"]] * 10), y)
    with pytest.raises(ValueError, match="names has 2 entries and data 4 columns"):
        data_warnings(X, y, names=["a", "b"])
    with pytest.raises(ValueError, match="one score for each of the 10 rows"):
        data_warnings(X, y, scores=[1.0])
