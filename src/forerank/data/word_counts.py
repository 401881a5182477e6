"""Word counts: sparse matrices of small integers, as bags of words are stored, and their tf-idf."""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = ["WordCounts", "holds_counts"]

# Entries that are examined to see whether they are counts.
_EXAMINED = 1_000_000
# Fewest columns of a matrix of word counts, and largest share of its entries that are not zero.
_FEWEST_WORDS = 100
_LARGEST_SHARE = 0.2


def holds_counts(X: Any) -> bool:
    """Whether a sparse matrix looks like word counts: many columns, mostly zero, the other entries
    positive integers of which some differ.

    Examples
    --------
    >>> counts = sp.random(50, 200, 0.05, format="csr", random_state=0)
    >>> holds_counts(counts), holds_counts((3 * counts).ceil())
    (False, True)
    """
    if not sp.issparse(X) or X.shape[1] < _FEWEST_WORDS or not X.nnz:
        return False
    if X.nnz > _LARGEST_SHARE * X.shape[0] * X.shape[1]:
        return False
    some = X.data[:: max(1, X.nnz // _EXAMINED)]
    are_counts = bool((some > 0).all()) and bool((some == np.floor(some)).all())
    return are_counts and bool(some.max() > some.min())


class WordCounts(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """tf-idf of counts: (1 + log count) * log inverse document frequency, rows of length one.

    As text columns of tables are weighted. Entries that are not positive count as zero.

    Attributes
    ----------
    tfidf_ : TfidfTransformer
    n_features_in_ : int
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Count the rows in which each column occurs."""
        self.tfidf_ = TfidfTransformer(sublinear_tf=True).fit(self._counts(X, reset=True))
        return self

    def transform(self, X: Any) -> Any:
        """The weighted matrix, sparse."""
        check_is_fitted(self, "tfidf_")
        return self.tfidf_.transform(self._counts(X, reset=False))

    def _counts(self, X: Any, *, reset: bool) -> Any:
        types = [np.float64, np.float32]
        rows = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=types)
        counts = sp.csr_matrix(rows)
        if counts.nnz and counts.data.min() <= 0:
            counts = counts.multiply(counts > 0).tocsr()
            counts.eliminate_zeros()
        return counts

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
