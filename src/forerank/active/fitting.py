"""The ranker of a labelling loop, fitted on the rows labelled so far."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from forerank._typing import Index
from forerank.estimators.pool import UNLABELLED

__all__ = ["fit_labelled"]


def fit_labelled(ranker: Any, X: Any, labels: NDArray, group: Index | None) -> Any:
    """The ranker fitted on the labelled rows, or None where their labels do not suffice.

    A ranker with the attribute `learns_from_unlabelled` is fitted on all rows. Group numbers are
    passed as `qid` where the fit of the ranker, or of the last step of a pipeline, accepts it.
    """
    known = np.flatnonzero(labels != UNLABELLED)
    last, prefix = ranker, ""
    if hasattr(ranker, "steps"):
        name, last = ranker.steps[-1]
        prefix = f"{name}__"
    if not has_fit_parameter(last, "qid"):
        group = None
    if not _has_pair(labels[known], None if group is None else group[known]):
        return None
    if not getattr(last, "learns_from_unlabelled", False):
        X, labels = _safe_indexing(X, known), labels[known]
        group = None if group is None else group[known]
    qid = {} if group is None else {f"{prefix}qid": group}
    with warnings.catch_warnings():
        # Expected while labels are few: groups without a relevant row, fits short of their
        # tolerance.
        no_pair = ".*qid groups? ha(s|ve) no pair.*"
        warnings.filterwarnings("ignore", message=no_pair, category=UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return ranker.fit(X, labels, **qid)


def _has_pair(y: NDArray, group: Index | None) -> bool:
    """Whether two rows, of one group if there are groups, have different labels."""
    if group is None:
        return bool(y.size) and y.min() < y.max()
    # The variance of the labels of a group, times the square of its size.
    size, total, squares = (np.bincount(group, weights=y**k) for k in range(3))
    return bool((size * squares > total**2).any())
