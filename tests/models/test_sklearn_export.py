"""The exported scikit-learn pipeline gives the same scores without forerank."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from forerank.data.readers import Matrix
from forerank.models.sklearn_export import to_sklearn
from forerank.workflows.fit import fit
from tables import typed_table

LINEAR = {"families": "linear"}


def test_plain_scikit_learn(tmp_path):
    frame = typed_table(300)
    with pytest.raises(ValueError, match="no transformer for dates"):
        to_sklearn(fit(frame, "y", check=0, params=LINEAR))
    with pytest.raises(ValueError, match="no class that holds given trees"):
        to_sklearn(fit(frame, "y", check=0, params={"families": "trees", "cv": 2}))
    model = fit(frame, "y", drop=["seen"], check=0, params=LINEAR)
    plain = to_sklearn(model)
    assert "forerank" not in set(_modules(plain))
    new = typed_table(100, seed=5).assign(
        job=lambda f: f["job"].where(f["job"] != "clerk", "no such job")
    )
    expected = model.estimator.decision_function(new)
    assert_allclose(plain.decision_function(new), expected, atol=1e-9)
    X = np.random.default_rng(0).normal(size=(60, 3))
    matrix = fit(Matrix(X, X[:, 0] > 0, None), check=0, params=LINEAR)
    assert_allclose(to_sklearn(matrix).decision_function(X), matrix.estimator.decision_function(X))
    with pytest.raises(ValueError, match="RankBoost has no weights by column"):
        to_sklearn(fit(frame, "y", ranker="RankBoost", check=0))


def _modules(value):
    """The top modules of an estimator and of all that it is made of."""
    yield type(value).__module__.split(".")[0]
    for part in getattr(value, "__dict__", {}).values():
        for each in part if isinstance(part, list | tuple) else [part]:
            for item in each if isinstance(each, tuple) else [each]:
                if hasattr(item, "get_params"):
                    yield from _modules(item)
