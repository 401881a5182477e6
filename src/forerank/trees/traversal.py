"""Compiled traversal of trees, for rows of arrays and of CSR matrices.

A processor that has to guess the child of a node is often wrong, and waits. Children are therefore
looked up, not branched to, and four rows go down a tree together, whose steps do not wait for each
other. A row that has reached its leaf stays there.
"""

import numpy as np

from forerank._kernels import compiled

__all__ = ["add_csr_scores", "add_dense_scores", "goes_left"]

# The signatures of compiled functions are found by numba when they are called.

# Rows that are scored by all trees before the next ones, so that they stay in the cache.
_BLOCK_ROWS = 512
# Values of a block of rows of a CSR matrix, written as an array (1 MB); four rows at least.
_BLOCK_VALUES = 1 << 17


@compiled(inline="always", error_model="numpy")
def _number_left(x, threshold, missing_left):  # type: ignore[no-untyped-def]
    """Whether a number goes to the left."""
    return (x <= threshold) | ((x != x) & missing_left)


@compiled(inline="always", error_model="numpy")
def _category_left(x, missing_left, bits, first_word, words):  # type: ignore[no-untyped-def]
    """Whether a category does; every set has a word, so that the lookup is within the array."""
    first = first_word[bits]
    is_known = (x >= 0.0) & (x < 32.0 * (first_word[bits + 1] - first))
    code = np.int64(x if is_known else 0.0)
    bit = (words[first + code // 32] >> np.uint32(code % 32)) & np.uint32(1)
    return (is_known & (bit == 1)) != missing_left


@compiled(inline="always", error_model="numpy")
def goes_left(x, threshold, missing_left, bits, first_word, words):  # type: ignore[no-untyped-def]
    """Whether a value goes to the left child of a node; see `forerank.trees.ensemble`."""
    if bits < 0:
        return _number_left(x, threshold, missing_left)
    return _category_left(x, missing_left, bits, first_word, words)


@compiled(inline="always", error_model="numpy")
def _next_of_number(x, node, threshold, missing_left, child):  # type: ignore[no-untyped-def]
    """The child of a node with a threshold for a value, or the leaf itself."""
    return child[node, np.int64(_number_left(x, threshold[node], missing_left[node]))]


@compiled(inline="always", error_model="numpy")
def _next(  # type: ignore[no-untyped-def]
    x, node, threshold, missing_left, bits, child, first_word, words
):  # fmt: skip
    """The same for any node of a tree with categories. Both answers are computed, and one of them
    is kept: a branch would depend on the node.
    """
    number = np.int64(_number_left(x, threshold[node], missing_left[node]))
    of_set = np.int64(_category_left(x, missing_left[node], max(bits[node], 0), first_word, words))
    is_set = np.int64(bits[node] >= 0)
    return child[node, number ^ (is_set & (number ^ of_set))]


@compiled(error_model="numpy")
def _add_tree_of_numbers(  # type: ignore[no-untyped-def]
    X, begin, end, column, is_leaf, threshold, missing_left, child, value, scores
):  # fmt: skip
    """Add the values of the leaves of a tree without categories to the scores of some rows."""
    t, m = threshold, missing_left
    for i in range(begin, end - 3, 4):
        a = b = c = d = 0
        while not (is_leaf[a] & is_leaf[b] & is_leaf[c] & is_leaf[d]):
            a = _next_of_number(np.float64(X[i, column[a]]), a, t, m, child)
            b = _next_of_number(np.float64(X[i + 1, column[b]]), b, t, m, child)
            c = _next_of_number(np.float64(X[i + 2, column[c]]), c, t, m, child)
            d = _next_of_number(np.float64(X[i + 3, column[d]]), d, t, m, child)
        scores[i] += value[a]
        scores[i + 1] += value[b]
        scores[i + 2] += value[c]
        scores[i + 3] += value[d]
    for i in range(end - (end - begin) % 4, end):
        a = 0
        while not is_leaf[a]:
            a = _next_of_number(np.float64(X[i, column[a]]), a, t, m, child)
        scores[i] += value[a]


@compiled(error_model="numpy")
def _add_tree(  # type: ignore[no-untyped-def]
    X, begin, end, column, is_leaf, threshold, missing_left, bits, child, value,
    first_word, words, scores,
):  # fmt: skip
    """The same for a tree with categories."""
    t, m = threshold, missing_left
    for i in range(begin, end - 3, 4):
        a = b = c = d = 0
        while not (is_leaf[a] & is_leaf[b] & is_leaf[c] & is_leaf[d]):
            a = _next(np.float64(X[i, column[a]]), a, t, m, bits, child, first_word, words)
            b = _next(np.float64(X[i + 1, column[b]]), b, t, m, bits, child, first_word, words)
            c = _next(np.float64(X[i + 2, column[c]]), c, t, m, bits, child, first_word, words)
            d = _next(np.float64(X[i + 3, column[d]]), d, t, m, bits, child, first_word, words)
        scores[i] += value[a]
        scores[i + 1] += value[b]
        scores[i + 2] += value[c]
        scores[i + 3] += value[d]
    for i in range(end - (end - begin) % 4, end):
        a = 0
        while not is_leaf[a]:
            a = _next(np.float64(X[i, column[a]]), a, t, m, bits, child, first_word, words)
        scores[i] += value[a]


@compiled(error_model="numpy")
def add_dense_scores(  # type: ignore[no-untyped-def]
    X, feature, threshold, left, right, missing_left, bits, value, first_node, first_word, words,
    begin_tree, end_tree, begin_row, end_row, scores,
):  # fmt: skip
    """Add the values of the leaves of some rows to their scores."""
    first, n_nodes = first_node[begin_tree], first_node[end_tree] - first_node[begin_tree]
    column, is_leaf = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.bool_)
    child = np.empty((n_nodes, 2), np.int64)
    numbers_alone = np.ones(end_tree - begin_tree, np.bool_)
    for tree in range(begin_tree, end_tree):
        root = first_node[tree]
        for node in range(root, first_node[tree + 1]):
            k = node - first
            is_leaf[k] = feature[node] < 0
            column[k] = max(feature[node], 0)
            child[k, 0] = node - root if is_leaf[k] else right[node]
            child[k, 1] = node - root if is_leaf[k] else left[node]
            numbers_alone[tree - begin_tree] &= bits[node] < 0
    for begin in range(begin_row, end_row, _BLOCK_ROWS):
        end = min(begin + _BLOCK_ROWS, end_row)
        for tree in range(begin_tree, end_tree):
            root, stop = first_node[tree], first_node[tree + 1]
            a, b = root - first, stop - first
            if numbers_alone[tree - begin_tree]:
                _add_tree_of_numbers(
                    X, begin, end, column[a:b], is_leaf[a:b], threshold[root:stop],
                    missing_left[root:stop], child[a:b], value[root:stop], scores,
                )  # fmt: skip
            else:
                _add_tree(
                    X, begin, end, column[a:b], is_leaf[a:b], threshold[root:stop],
                    missing_left[root:stop], bits[root:stop], child[a:b], value[root:stop],
                    first_word, words, scores,
                )  # fmt: skip


@compiled(error_model="numpy")
def add_csr_scores(  # type: ignore[no-untyped-def]
    indptr, indices, data, n_features,
    feature, threshold, left, right, missing_left, bits, value, first_node, first_word, words,
    begin_tree, end_tree, begin_row, end_row, scores,
):  # fmt: skip
    """The same for the rows of a CSR matrix, some of which are written as an array at a time."""
    size = max(min(max(_BLOCK_VALUES // max(n_features, 1), 4), end_row - begin_row), 1)
    rows = np.zeros((size, n_features))
    for begin in range(begin_row, end_row, size):
        n = min(size, end_row - begin)
        for i in range(n):
            for e in range(indptr[begin + i], indptr[begin + i + 1]):
                rows[i, indices[e]] += data[e]
        add_dense_scores(
            rows[:n], feature, threshold, left, right, missing_left, bits, value, first_node,
            first_word, words, begin_tree, end_tree, 0, n, scores[begin : begin + n],
        )  # fmt: skip
        for i in range(n):
            for e in range(indptr[begin + i], indptr[begin + i + 1]):
                rows[i, indices[e]] = 0.0
