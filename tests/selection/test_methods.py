"""Methods by name: the estimators they make, their titles, and the names of earlier versions."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from forerank import Ranker, TopPush
from forerank.models import load_model
from forerank.selection import method_names, method_title
from forerank.selection.methods import (
    METHODS,
    OLD_METHOD_NAMES,
    fitted_scaler,
    resolve_method,
)


def test_names_need_no_quotes_in_a_shell():
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in method_names())
    assert len({method.title for method in METHODS.values()}) == len(METHODS)
    assert method_title("pairwise-logistic") == "logistic loss over pairs"


def test_every_old_name_stands_for_a_method():
    linear = [name for name, method in METHODS.items() if not method.trees]
    assert sorted(OLD_METHOD_NAMES.values()) == sorted(linear)
    for old, current in OLD_METHOD_NAMES.items():
        with pytest.warns(FutureWarning, match=f"is now '{current}'"):
            assert resolve_method(old) == current


def test_a_ranker_takes_old_names_with_a_warning(data):
    X, y = data(100)
    options = {"alphas": [0.1], "random_state": 0}
    with pytest.warns(
        FutureWarning, match="'rows, logistic' is now 'pointwise-logistic'"
    ) as caught:
        old = Ranker(methods=["rows, logistic"], **options).fit(X, y)
    assert caught[0].filename == __file__
    new = Ranker(methods=["pointwise-logistic"], **options).fit(X, y)
    assert old.best_method_ == "pointwise-logistic"
    assert old.methods == ["rows, logistic"]
    assert_array_equal(old.coef_, new.coef_)


def test_top_methods_are_what_they_are_called(data):
    X, y = data(noise=0.1)
    ranker = Ranker(
        "pos_at_top", methods=["top-push"], alphas=[1e-3], scale=False, random_state=0
    ).fit(X, y)
    assert_allclose(ranker.coef_, TopPush(alpha=1e-3).fit(X, y).coef_)


def test_a_ranker_of_version_0_1_keeps_its_names_and_can_be_fitted_again(data):
    path = Path(__file__).parents[1] / "model_files" / "0.1" / "Ranker.forerank"
    ranker = load_model(path).estimator
    old = ranker.best_method_
    assert old in OLD_METHOD_NAMES
    X, y = data(100, ranker.n_features_in_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranker.refit(X, y)
    assert ranker.best_method_ == old
    with pytest.warns(FutureWarning, match="is now"):
        ranker.set_params(methods=[old]).fit(X, y)
    assert ranker.best_method_.endswith(OLD_METHOD_NAMES[old])


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_rows_of_length_one_are_not_scaled(kind, dtype):
    rng = np.random.default_rng(0)
    X = rng.random((60, 8)) * (rng.random((60, 8)) < 0.4)
    X[3] = 0.0
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    weighted = kind((X / np.where(lengths > 0.0, lengths, 1.0)).astype(dtype))
    assert fitted_scaler(True, weighted, None) is None
    assert_allclose(fitted_scaler(True, 2 * weighted, None).max_abs_, 2 * weighted.toarray().max(0))
    assert fitted_scaler(True, weighted.toarray(), None) is not None
    assert fitted_scaler(True, kind((5, 8)), None) is not None
    y = np.arange(60) % 2
    options = {"methods": ["pointwise-logistic"], "alphas": [0.1], "random_state": 0}
    left, plain = (Ranker(scale=each, **options).fit(weighted, y) for each in (True, False))
    assert_array_equal(left.coef_, plain.coef_)
