import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.utils.estimator_checks import parametrize_with_checks

from forerank.data.problem import read_problem
from forerank.data.word_counts import WordCounts, holds_counts


@parametrize_with_checks([WordCounts()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_weights_are_those_of_texts():
    texts = ["the cat sat", "the dog sat sat", "a cat and the dog"]
    counts = CountVectorizer().fit_transform(texts).astype(float)
    expected = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
    assert_allclose(WordCounts().fit_transform(counts).toarray(), expected.toarray())


def test_matrices_that_are_counts():
    counts = sp.csr_matrix(np.random.default_rng(0).poisson(0.05, (60, 300)).astype(float))
    assert holds_counts(counts)
    assert not holds_counts(counts.toarray())
    assert not holds_counts(counts * 0.5)
    assert not holds_counts(-counts)
    assert not holds_counts(counts[:, :50])
    assert not holds_counts(counts > 0)  # all entries are equal
    assert not holds_counts(sp.csr_matrix((60, 300)))
    problem = read_problem(counts, np.arange(60) % 2)
    assert problem.forms == ("plain", "tf-idf")
    steps, X = problem.prepare(np.arange(60), 40, "tf-idf")
    assert_allclose(X.toarray(), WordCounts().fit(counts[:40]).transform(counts).toarray())
    assert isinstance(steps, WordCounts)
    assert read_problem(counts / 3, np.arange(60) % 2).forms == ("plain",)
    with pytest.raises(ValueError, match="form must be one of"):
        problem.steps("trees")
