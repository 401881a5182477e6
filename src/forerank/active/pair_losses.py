"""The largest expected loss of a pair with each row, without visiting pairs (donmez2009, eq. 5).

For the rows i and j of a pair with posteriors p, q = 1 - p and losses a if relevant, b if
irrelevant, the expected loss is p_i q_j (a_i + b_j) + q_i p_j (b_i + a_j). Rows up to the threshold
have b = 0, rows above it a = 0. With A = p a and B = q b it is therefore

    both below      (A_i, q_i) . (q_j, A_j)
    both above      (B_i, p_i) . (p_j, B_j)
    i below j       (A_i, p_i) . (q_j, B_j):

the largest inner product of a vector without negative entries with a set of points in the plane,
which is attained on the upper convex hull of the points. Rows with a > 0 and b > 0 have equal
scores, with the threshold in their midst; one of them stands for all.
"""

import numpy as np

from forerank._kernels import compiled
from forerank._typing import Index, Vector

__all__ = ["largest_pair_losses"]


def largest_pair_losses(
    relevant: Vector, if_relevant: Vector, if_irrelevant: Vector, starts: Index
) -> Vector:
    """For each row, the largest expected loss of a pair with another row of its group; 0 for a row
    alone.

    Parameters
    ----------
    relevant : array of shape (n_rows,)
        P(y = +1 | x). Group q has the rows starts[q]:starts[q + 1], in ascending order of scores.
    if_relevant, if_irrelevant : arrays of shape (n_rows,)
        Losses of the rows by their labels, functions of the score. In each group there are first
        rows with if_irrelevant = 0, last rows with if_relevant = 0; rows between them are equal.
    """
    largest = np.zeros(relevant.size)
    _largest_in_groups(largest, relevant, if_relevant, if_irrelevant, starts)
    return largest


@compiled
def _largest_in_groups(largest, p, a, b, starts):  # type: ignore[no-untyped-def]
    q = 1.0 - p
    up, down = p * a, q * b
    for g in range(starts.size - 1):
        first, last = starts[g], starts[g + 1]
        low = first  # rows first:low are below the threshold, high:last above it
        while low < last and b[low] == 0.0:
            low += 1
        high = low
        while high < last and a[high] > 0.0:
            high += 1
        x, y = slice(first, low), slice(high, last)
        _raise_to_best(largest[x], up[x], q[x], q[x], up[x], True)
        _raise_to_best(largest[y], down[y], p[y], p[y], down[y], True)
        _raise_to_best(largest[x], up[x], p[x], q[y], down[y], False)
        _raise_to_best(largest[y], q[y], down[y], up[x], p[x], False)
        if low < high:
            m = low
            for i in range(first, last):
                if i == m and high == low + 1:
                    continue
                loss = p[i] * q[m] * (a[i] + b[m]) + q[i] * p[m] * (b[i] + a[m])
                largest[i] = max(largest[i], loss)
                largest[m] = max(largest[m], loss)
            largest[low:high] = largest[m]


@compiled
def _raise_to_best(largest, vx, vy, px, py, exclude_self):  # type: ignore[no-untyped-def]
    """Raise each entry to the largest inner product of its vector with a point, of another row."""
    if px.size == 0 or vx.size == 0:
        return
    # By the first coordinate, and of equal ones by the second.
    order = np.argsort(py, kind="mergesort")
    order = order[np.argsort(px[order], kind="mergesort")]
    hull = _upper_hull(px, py, order)
    for i in range(vx.size):
        x, y = vx[i], vy[i]
        low, high = 0, hull.size - 1
        while low < high:  # inner products rise along the hull, then fall
            k = (low + high) // 2
            here, after = order[hull[k]], order[hull[k + 1]]
            if x * (px[after] - px[here]) + y * (py[after] - py[here]) > 0.0:
                low = k + 1
            else:
                high = k
        begin, end = hull[low], hull[low] + 1
        if exclude_self and order[begin] == i:
            # Without it, the hull changes between its neighbours only: these are all visited, and
            # each point is between the neighbours of at most two vertices.
            begin = hull[low - 1] if low > 0 else 0
            end = hull[low + 1] + 1 if low + 1 < hull.size else order.size
        for k in range(begin, end):
            j = order[k]
            if not (exclude_self and i == j):
                largest[i] = max(largest[i], x * px[j] + y * py[j])


@compiled
def _upper_hull(px, py, order):  # type: ignore[no-untyped-def]
    """Positions in `order` of the vertices of the upper hull, from left to right."""
    hull = np.empty(order.size, dtype=np.intp)
    size = 0
    for k in range(order.size):
        x, y = px[order[k]], py[order[k]]
        while size > 0:
            last = order[hull[size - 1]]
            if size == 1:
                # A point that is not higher than one to its right is no vertex.
                if py[last] > y:
                    break
            else:
                before = order[hull[size - 2]]
                dx, dy = px[last] - px[before], py[last] - py[before]
                if dx * (y - py[before]) - dy * (x - px[before]) < 0.0:
                    break
            size -= 1
        hull[size] = k
        size += 1
    return hull[:size]
