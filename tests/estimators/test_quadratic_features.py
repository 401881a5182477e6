from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import polynomial_kernel
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from forerank import PairwiseRanker, QuadraticFeatures, metrics
from forerank.data.datasets import cut_into_grades
from tables import graded_rows

data = partial(graded_rows, classes=3, noise=4)


@parametrize_with_checks([QuadraticFeatures()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class TestQuadratic:
    @pytest.mark.parametrize("offset", [0.0, 0.5, 1.0])
    def test_inner_products_are_the_kernel(self, offset):
        X = np.random.default_rng(0).standard_normal((12, 4))
        Z = QuadraticFeatures(offset).fit_transform(X)
        kernel = polynomial_kernel(X, degree=2, gamma=1.0, coef0=offset)
        assert_allclose(Z @ Z.T + offset**2, kernel, rtol=1e-10)

    def test_ranks_what_no_linear_score_can(self):
        X = np.random.default_rng(0).uniform(-1, 1, (500, 3))
        y = cut_into_grades(X[:, 0] * X[:, 1] - X[:, 2] ** 2, 3)
        ranker = make_pipeline(
            QuadraticFeatures(), PairwiseRanker("hinge", graph="order", alpha=1e-5)
        ).fit(X, y)
        assert metrics.wmw(y, ranker.decision_function(X)) > 0.99

    def test_precision_is_kept_and_names_are_given(self):
        X = np.ones((3, 2), dtype=np.float32)
        transformer = QuadraticFeatures().fit(X)
        assert transformer.transform(X).dtype == np.float32
        names = ["x0", "x1", "x0^2", "x0 x1", "x1^2"]
        assert transformer.get_feature_names_out().tolist() == names
        frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0]})
        shown = QuadraticFeatures().set_output(transform="pandas").fit_transform(frame)
        assert shown.columns.tolist() == ["a", "b", "a^2", "a b", "b^2"]
        assert_allclose(shown["a b"], np.sqrt(2.0) * frame["a"] * frame["b"])

    def test_a_negative_offset_is_refused(self):
        with pytest.raises(ValueError, match="offset must be a number >= 0"):
            QuadraticFeatures(-1.0).fit(np.ones((2, 2)))
