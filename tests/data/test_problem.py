"""Ranking problems: the same rows, labels, groups and weights from every kind of source."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.datasets import dump_svmlight_file

from forerank.data.problem import ReadOptions, first_rows, read_problem
from forerank.data.readers import Matrix
from forerank.exceptions import DataFileError

N = 12
X = np.random.default_rng(0).standard_normal((N, 2))
Y = np.arange(N) % 3 == 0
GROUPS = np.arange(N) // 4


def frame():
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y, "g": GROUPS})


def test_all_sources_give_the_same_problem(tmp_path):
    frame().to_csv(tmp_path / "t.csv", index=False)
    dump_svmlight_file(X, Y.astype(int), str(tmp_path / "t.svm"), query_id=GROUPS)
    sources = [
        read_problem(tmp_path / "t.csv", "y", group="g"),
        read_problem(frame(), "y", group="g"),
        read_problem(frame()[["a", "b"]], Y, qid=GROUPS),
        read_problem(X, Y, qid=GROUPS),
        read_problem(sp.csr_matrix(X), list(Y), qid=GROUPS),
        read_problem(tmp_path / "t.svm"),
        read_problem(Matrix(X, Y, GROUPS)),
    ]
    for problem in sources:
        assert_array_equal(problem.y, Y)
        assert_array_equal(problem.groups, GROUPS)
        assert problem.summary()["groups"] == 3
        assert not problem.graded
        rows = problem.rows.toarray() if sp.issparse(problem.rows) else np.asarray(problem.rows)
        np.testing.assert_allclose(rows, X)


def test_columns_are_prepared_on_the_training_rows_alone():
    order = np.array([5, 3, 1, 0, 2, 4])
    for problem in (read_problem(frame(), "y"), read_problem(X, Y)):
        _, matrix = problem.prepare(order, 4)
        np.testing.assert_allclose(first_rows(matrix, 4).mean(axis=0)[:2], 0.0, atol=1e-12)
        assert matrix.shape[0] == 6
        problem.forget_rows()
        assert problem.rows is None


def test_rows_without_a_label_take_their_weights_and_groups_along():
    y = Y.astype(object)
    y[[0, 5]] = None
    options = ReadOptions(skip_unlabelled=True)
    weights = np.arange(N, dtype=float)
    problem = read_problem(
        frame().assign(y=y), "y", qid=GROUPS, sample_weight=weights, options=options
    )
    kept = np.setdiff1d(np.arange(N), [0, 5])
    assert_array_equal(problem.weights, weights[kept])
    assert_array_equal(problem.groups, GROUPS[kept])
    assert problem.notes[0] == "2 of 12 rows without a label are excluded"


def test_problems_that_cannot_be_read():
    with pytest.raises(ValueError, match="data is ndarray: pass its labels"):
        read_problem(X)
    with pytest.raises(ValueError, match="A file has its labels in a column"):
        read_problem("t.csv", Y)
    with pytest.raises(
        ValueError, match=r"target has shape \(3,\); expected one label for each of 12"
    ):
        read_problem(X, Y[:3])
    with pytest.raises(ValueError, match="given twice"):
        read_problem(frame(), "y", group="g", qid=GROUPS)
    with pytest.raises(ValueError, match="12 finite weights"):
        read_problem(X, Y, sample_weight=-np.ones(N))
    for options in (ReadOptions(drop=["a"]), ReadOptions(types={"a": "text"})):
        with pytest.raises(DataFileError, match="the columns of a matrix have no names; 'a'"):
            read_problem(X, Y, options=options)
    with pytest.raises(ValueError, match="The type of 'a' is 'word'"):
        ReadOptions(types={"a": "word"})
