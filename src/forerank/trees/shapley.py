"""Compiled Shapley values of trees: algorithm 2 of Lundberg, Erion and Lee (2018), "Consistent
individualized feature attribution for tree ensembles".

A *path* holds, for each column between the root and a node, the share of the training rows that
passes its splits where the column is not in the coalition (zero), whether the row itself passes
them (one), and the weight of the coalitions of each size. The nodes of a tree are visited with a
stack in place of recursion; the path of a node lies in the row of its depth.
"""

import numpy as np

from forerank._kernels import compiled
from forerank.trees.traversal import goes_left

__all__ = ["add_contributions", "longest_path"]


@compiled(error_model="numpy")
def longest_path(feature, left, right, first_node):  # type: ignore[no-untyped-def]
    """The largest number of nodes between a root and a leaf, both included."""
    longest = 1
    depth = np.zeros(feature.size, dtype=np.int64)
    for tree in range(first_node.size - 1):
        root = first_node[tree]
        for node in range(root, first_node[tree + 1]):
            if feature[node] >= 0:
                depth[root + left[node]] = depth[node] + 1
                depth[root + right[node]] = depth[node] + 1
            longest = max(longest, depth[node] + 1)
    return longest


@compiled(error_model="numpy")
def _extend(columns, zeros, ones, weights, length, zero, one, column):  # type: ignore[no-untyped-def]
    """Add a split to a path of some length."""
    columns[length], zeros[length], ones[length] = column, zero, one
    weights[length] = 1.0 if length == 0 else 0.0
    for i in range(length - 1, -1, -1):
        weights[i + 1] += one * weights[i] * (i + 1) / (length + 1)
        weights[i] = zero * weights[i] * (length - i) / (length + 1)


@compiled(error_model="numpy")
def _unwind(columns, zeros, ones, weights, last, index):  # type: ignore[no-untyped-def]
    """Remove an entry of a path whose last entry is `last`."""
    one, zero = ones[index], zeros[index]
    following = weights[last]
    for i in range(last - 1, -1, -1):
        if one != 0.0:
            kept = weights[i]
            weights[i] = following * (last + 1) / ((i + 1) * one)
            following = kept - weights[i] * zero * (last - i) / (last + 1)
        else:
            weights[i] = weights[i] * (last + 1) / (zero * (last - i))
    for i in range(index, last):
        columns[i], zeros[i], ones[i] = columns[i + 1], zeros[i + 1], ones[i + 1]


@compiled(error_model="numpy")
def _unwound_sum(zeros, ones, weights, last, index):  # type: ignore[no-untyped-def]
    """The sum of the weights of a path without one of its entries."""
    one, zero = ones[index], zeros[index]
    following, total = weights[last], 0.0
    for i in range(last - 1, -1, -1):
        if one != 0.0:
            weight = following * (last + 1) / ((i + 1) * one)
            total += weight
            following = weights[i] - weight * zero * (last - i) / (last + 1)
        else:
            total += weights[i] * (last + 1) / (zero * (last - i))
    return total


@compiled(error_model="numpy")
def _push(stack, shares, size, node, level, length, column, zero, one):  # type: ignore[no-untyped-def]
    stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3] = node, level, length, column
    shares[size, 0], shares[size, 1] = zero, one
    return size + 1


@compiled(error_model="numpy")
def _tree_contributions(  # type: ignore[no-untyped-def]
    x, feature, threshold, left, right, missing_left, bits, value, first_word, words, cover,
    columns, paths, stack, shares, out,
):  # fmt: skip
    """Add the Shapley values of a row in one tree, whose nodes are given, to `out`.

    `stack` has node, depth, length of the parent's path and column of the split above of each node
    to visit, `shares` what this split passes: of the training rows, and of the row.
    """
    size = _push(stack, shares, 0, 0, 0, 0, -1, 1.0, 1.0)
    while size > 0:
        size -= 1
        node, level, length = stack[size, 0], stack[size, 1], stack[size, 2]
        c, z, o, w = columns[level], paths[0, level], paths[1, level], paths[2, level]
        for i in range(length):
            c[i], z[i] = columns[level - 1, i], paths[0, level - 1, i]
            o[i], w[i] = paths[1, level - 1, i], paths[2, level - 1, i]
        _extend(c, z, o, w, length, shares[size, 0], shares[size, 1], stack[size, 3])
        if feature[node] < 0:
            for i in range(1, length + 1):
                out[c[i]] += _unwound_sum(z, o, w, length, i) * (o[i] - z[i]) * value[node]
            continue
        k, zero, one = feature[node], 1.0, 1.0
        for i in range(1, length + 1):
            if c[i] == k:
                zero, one = z[i], o[i]
                _unwind(c, z, o, w, length, i)
                length -= 1
                break
        to_left = goes_left(
            np.float64(x[k]), threshold[node], missing_left[node], bits[node], first_word, words
        )
        zero /= cover[node]
        a, b = left[node], right[node]
        of_left, of_right = (one, 0.0) if to_left else (0.0, one)
        size = _push(stack, shares, size, a, level + 1, length + 1, k, zero * cover[a], of_left)
        size = _push(stack, shares, size, b, level + 1, length + 1, k, zero * cover[b], of_right)


@compiled(error_model="numpy")
def _mean_value(feature, value, cover):  # type: ignore[no-untyped-def]
    total = 0.0
    for node in range(feature.size):
        if feature[node] < 0:
            total += value[node] * cover[node]
    return total / cover[0]


@compiled(error_model="numpy")
def add_contributions(  # type: ignore[no-untyped-def]
    X, feature, threshold, left, right, missing_left, bits, value, first_node, first_word, words,
    cover, depth, begin, end, out,
):  # fmt: skip
    """Add the Shapley values of some rows in all trees to `out`; its last column is the mean."""
    last = out.shape[1] - 1
    columns = np.empty((depth + 1, depth + 1), dtype=np.int64)
    paths = np.empty((3, depth + 1, depth + 1))
    stack = np.empty((depth + 2, 4), dtype=np.int64)
    shares = np.empty((depth + 2, 2))
    for tree in range(first_node.size - 1):
        a, b = first_node[tree], first_node[tree + 1]
        mean = _mean_value(feature[a:b], value[a:b], cover[a:b])
        for i in range(begin, end):
            out[i, last] += mean
            if b - a > 1:
                _tree_contributions(
                    X[i], feature[a:b], threshold[a:b], left[a:b], right[a:b], missing_left[a:b],
                    bits[a:b], value[a:b], first_word, words, cover[a:b],
                    columns, paths, stack, shares, out[i],
                )  # fmt: skip
