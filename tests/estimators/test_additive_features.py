import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from forerank import AdditiveFeatures, PointwiseRanker, metrics


@parametrize_with_checks([AdditiveFeatures()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_names_flags_and_indicators():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=100), "b": np.arange(100.0) % 2})
    frame.loc[:9, "a"] = np.nan
    features = AdditiveFeatures(n_curves=2).set_output(transform="pandas")
    out = features.fit_transform(frame)
    assert out.columns.tolist() == ["a", "a spline 1", "a spline 2", "a missing", "b"]
    assert_allclose(out["b"], frame["b"])  # zeros and ones stay as they are
    assert out["a missing"].sum() == 10


def test_sparse_matrices_pass_unchanged():
    X = sp.random(30, 6, 0.3, format="csr", random_state=0)
    features = AdditiveFeatures().fit(X)
    assert (features.transform(X) != X).nnz == 0
    assert features.get_feature_names_out().tolist() == [f"x{k}" for k in range(6)]
    dense = AdditiveFeatures().fit(X.toarray())
    assert_allclose(dense.transform(X), dense.transform(X.toarray()))


def test_precision_is_kept_and_curves_rank_what_a_line_cannot():
    X = np.random.default_rng(0).normal(size=(600, 2)).astype(np.float32)
    y = np.abs(X[:, 0]) + np.sin(X[:, 1]) > 1
    model = make_pipeline(AdditiveFeatures(), PointwiseRanker(alpha=1e-3)).fit(X[:300], y[:300])
    assert model[0].transform(X).dtype == np.float32
    assert metrics.roc_auc(y[300:], model.decision_function(X[300:])) > 0.98


def test_a_negative_number_of_curves_is_refused():
    with pytest.raises(ValueError, match="n_curves must be an integer >= 0"):
        AdditiveFeatures(-1).fit(np.ones((3, 2)))
