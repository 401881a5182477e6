"""Kernel sums of the logistic loss over many sources on a uniform grid, without a sort.

    sum_j q_j K(t_i - s_j)   at targets t_i, for sources s_j with weights q_j, called charges

The kernels K are the logistic loss and its derivatives, analytic functions of the score difference.
Each source is spread on the 8 nearest nodes of a grid with step 1/16 by its Lagrange weights, the
charges of the nodes are convolved with the kernel, and the result is interpolated at the targets
with the same weights (maths/pairsums.md, eq. 4). The nearest singularity of the kernels has
distance pi from the real line, so the relative interpolation error is about 1e-12. The Lagrange
weights are polynomials of degree 7 in the position between two nodes: a source adds the first 8
powers of its position to its interval, a target evaluates one polynomial, and the conversion to
and from nodes is done once per interval, not once per row. Wide scores are split into cells
(`forerank.pairsums.logistic_sources`).

Cost: about 10 N multiplications for the spread and as many for each interpolation; the convolution
does not depend on N.
"""

import numpy as np
from numpy.typing import NDArray

from forerank._kernels import compiled

__all__ = ["dot", "narrow_sums"]


# Nodes per unit of score, length of a cell in units of score, and nodes per Lagrange polynomial.
STEPS_PER_UNIT = 16
CELL_LENGTH = 64
STENCIL = 8
INTERVALS = CELL_LENGTH * STEPS_PER_UNIT
# Nodes of a cell: 3 to the left and 4 to the right of it, so that every stencil is inside its cell.
NODES = INTERVALS + STENCIL - 1
# Span of the scores up to which one grid of that length is used; wider ones have cells.
NARROW = 128
# Numbers of the kernels.
LOSS, SLOPE, CURVATURE = 0, 1, 2


def _kernel_tables() -> NDArray[np.float64]:
    """Loss, slope and curvature at every difference of nodes; column _LARGEST_SHIFT is zero."""
    t = np.arange(-_LARGEST_SHIFT, _LARGEST_SHIFT + 1) / STEPS_PER_UNIT
    e = np.exp(-np.abs(t))
    loss, slope = np.maximum(-t, 0.0) + np.log1p(e), -np.where(t >= 0, e, 1.0) / (1.0 + e)
    return np.stack([loss, slope, e / (1.0 + e) ** 2])


def _stencil_polynomials() -> NDArray[np.float64]:
    """Row m: coefficients, lowest power first, of the Lagrange weight of node m of 8 at x, the
    position in [-1/2, 1/2) relative to the middle of the fourth and the fifth node.
    """
    positions = np.arange(STENCIL) - (STENCIL - 1) / 2
    rows = []
    for m, own in enumerate(positions):
        others = np.delete(positions, m)
        rows.append(np.poly(others)[::-1] / np.prod(own - others))
    return np.array(rows)


# The largest difference of node numbers, between neighbouring cells and on one narrow grid.
_LARGEST_SHIFT = max(2 * NODES, NARROW * STEPS_PER_UNIT + 2 * STENCIL)
TABLES = _kernel_tables()
REVERSED_TABLES = np.ascontiguousarray(TABLES[:, ::-1])
POLYNOMIALS = _stencil_polynomials()


@compiled(inline="always")
def add_powers(p, q, x):  # type: ignore[no-untyped-def]
    """p[r] += q x^r for r = 0 .. 7."""
    x2 = x * x
    x4 = x2 * x2
    a, b = q, q * x
    p[0] += a
    p[1] += b
    p[2] += a * x2
    p[3] += b * x2
    a *= x4
    b *= x4
    p[4] += a
    p[5] += b
    p[6] += a * x2
    p[7] += b * x2


@compiled(inline="always")
def evaluate(p, x):  # type: ignore[no-untyped-def]
    """The polynomial with coefficients p, lowest power first."""
    x2 = x * x
    low = (p[0] + p[1] * x) + x2 * (p[2] + p[3] * x)
    high = (p[4] + p[5] * x) + x2 * (p[6] + p[7] * x)
    return low + x2 * x2 * high


@compiled
def powers_to_nodes(powers, first, last, polynomials, nodes):  # type: ignore[no-untyped-def]
    """Add the powers of intervals first .. last - 1, as charges, to the nodes of their stencils."""
    for k in range(first, last):
        p = powers[k]
        v = nodes[k : k + STENCIL]
        for m in range(STENCIL):
            total = 0.0
            for r in range(STENCIL):
                total += polynomials[m, r] * p[r]
            v[m] += total


@compiled
def nodes_to_polynomials(nodes, first, last, polynomials, out):  # type: ignore[no-untyped-def]
    """The interpolating polynomials of intervals first .. last - 1, from the nodes."""
    for k in range(first, last):
        v = nodes[k : k + STENCIL]
        p = out[k]
        for r in range(STENCIL):
            total = 0.0
            for m in range(STENCIL):
                total += polynomials[m, r] * v[m]
            p[r] = total


@compiled(fastmath={"contract"})
def convolve(charge, shift, table, out):  # type: ignore[no-untyped-def]
    """Add the kernel sums of charges at nodes to the nodes `out`, whose first node is `shift` nodes
    right of the first charge.
    """
    middle = (table.size - 1) // 2
    for b in range(charge.size):
        q = charge[b]
        if q == 0.0:  # of scores with gaps between them, or of a few extreme ones, most are
            continue
        row = table[middle + shift - b : middle + shift - b + out.size]
        for a in range(out.size):
            out[a] += q * row[a]


@compiled
def spread_on_nodes(s, q, left, n_intervals, polynomials):  # type: ignore[no-untyped-def]
    """Sources spread on the nodes of n_intervals intervals from `left`."""
    powers = np.zeros((n_intervals, STENCIL))
    for i in range(s.size):
        x = (s[i] - left) * STEPS_PER_UNIT
        k = np.int64(x)
        add_powers(powers[k], q[i], x - k - 0.5)
    charge = np.zeros(n_intervals + STENCIL - 1)
    powers_to_nodes(powers, 0, n_intervals, polynomials, charge)
    return charge


@compiled
def narrow_sums(t, s, q, left, n_intervals, tables, polynomials):  # type: ignore[no-untyped-def]
    """Kernel sums at targets t from charges q at s, all in n_intervals intervals from `left`."""
    charge = spread_on_nodes(s, q, left, n_intervals, polynomials)
    nodes = np.zeros((tables.shape[0], charge.size))
    coefficients = np.empty((n_intervals, tables.shape[0], STENCIL))
    for o in range(tables.shape[0]):
        convolve(charge, 0, tables[o], nodes[o])
        nodes_to_polynomials(nodes[o], 0, n_intervals, polynomials, coefficients[:, o])
    out = np.empty((tables.shape[0], t.size))
    for i in range(t.size):
        x = (t[i] - left) * STEPS_PER_UNIT
        k = np.int64(x)
        for o in range(tables.shape[0]):
            out[o, i] = evaluate(coefficients[k, o], x - k - 0.5)
    return out


@compiled(fastmath={"contract", "reassoc"})
def dot(a, b):  # type: ignore[no-untyped-def]
    """The sum of a[k] b[k]."""
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total
