"""Compiled traversal of trees, for rows of arrays and of CSR matrices."""

import numpy as np

from forerank._kernels import compiled

__all__ = ["add_csr_scores", "add_dense_scores", "goes_left"]

# The signatures of compiled functions are found by numba when they are called.


@compiled(inline="always", error_model="numpy")
def goes_left(x, threshold, missing_left, bits, first_word, words):  # type: ignore[no-untyped-def]
    """Whether a value goes to the left child of a node; see `forerank.trees.ensemble`."""
    if bits < 0:
        return missing_left if x != x else x <= threshold
    first = first_word[bits]
    inside = False
    if x >= 0.0 and x < 32.0 * (first_word[bits + 1] - first):
        code = np.int64(x)
        inside = (words[first + code // 32] >> np.uint32(code % 32)) & np.uint32(1) == 1
    return inside != missing_left


@compiled(error_model="numpy")
def add_dense_scores(  # type: ignore[no-untyped-def]
    X, feature, threshold, left, right, missing_left, bits, value, first_node, first_word, words,
    begin_tree, end_tree, begin_row, end_row, scores,
):  # fmt: skip
    """Add the values of the leaves of some rows to their scores."""
    for i in range(begin_row, end_row):
        total = scores[i]
        for tree in range(begin_tree, end_tree):
            root = first_node[tree]
            node = root
            while feature[node] >= 0:
                x = np.float64(X[i, feature[node]])
                if goes_left(x, threshold[node], missing_left[node], bits[node], first_word, words):
                    node = root + left[node]
                else:
                    node = root + right[node]
            total += value[node]
        scores[i] = total


@compiled(error_model="numpy")
def add_csr_scores(  # type: ignore[no-untyped-def]
    indptr, indices, data, n_features,
    feature, threshold, left, right, missing_left, bits, value, first_node, first_word, words,
    begin_tree, end_tree, begin_row, end_row, scores,
):  # fmt: skip
    """The same for the rows of a CSR matrix, each of them written into a dense row first."""
    row = np.zeros((1, n_features))
    one = np.zeros(1)
    for i in range(begin_row, end_row):
        for e in range(indptr[i], indptr[i + 1]):
            row[0, indices[e]] += data[e]
        one[0] = scores[i]
        add_dense_scores(
            row, feature, threshold, left, right, missing_left, bits, value, first_node,
            first_word, words, begin_tree, end_tree, 0, 1, one,
        )  # fmt: skip
        scores[i] = one[0]
        for e in range(indptr[i], indptr[i + 1]):
            row[0, indices[e]] = 0.0
