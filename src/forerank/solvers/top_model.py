"""Quadratic models of the top objective, minimised under the constraints of a working set.

With D_i the curvature and a_i minus the slope of the loss of positive i, c = sum_i D_i, G = sum_i
a_i and m the mean of the positives weighted by D, the model of a step (p, dT) is

    1/2 p^T S p + <g, p> + c/2 t^2 + G t,    t = dT - <m, p>,
    S = alpha I + sum_i D_i (x_i - m)(x_i - m)^T,    g = alpha w - sum_i a_i (x_i - m)
    (maths/top.md, eq. 3)

in which the threshold is decoupled from the weights, and a negative j in the working set requires
<x_j - m, p> + s_j - T <= t. Its dual is a quadratic programme with one variable per such negative.
Negatives whose weight is fixed at its cap enter all constraints by their sum, times kappa = 1 / (1
- sum of these caps).
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from forerank._typing import Index, Mask, Vector
from forerank.design import Design
from forerank.objectives.top import Top
from forerank.solvers.active_set import active_set
from forerank.solvers.quadratic_program import (
    RELATIVE_ERROR,
    Bounds,
    Gram,
    Metric,
    interior_point,
    pivoting,
)
from forerank.solvers.working_set import WorkingSet

__all__ = ["THRESHOLD_ERROR", "ColumnModel", "Point", "RowModel", "Solution"]

# An iteration accepts a working set when the part of the threshold that its negatives miss costs at
# most this share of the decrease, or of the gap to reach.
THRESHOLD_ERROR = 0.1
# Numbers (8 bytes each) that a dense copy of some positives may have while their curvature is
# added.
_CHUNK_ENTRIES = 2**21
# A programme is solved by an active set, one exchange at a time, for at most this many columns,
# which bound the free variables, or this many positive ones at the start; beyond it by block
# pivoting, and where that fails, as for dependent rows, by an interior-point method.
_MOST_COLUMNS, _MOST_POSITIVE = 1000, 300
# Least curvature in the threshold, so that the model has a minimum where the losses have none.
_LEAST_CURVATURE = 1e-6


@dataclass
class Point:
    """Weights, scores, threshold and objective, and of each loss minus its slope and its
    curvature, times the share of its row.
    """

    w: Vector
    s: Vector
    T: float
    value: float
    slope: Vector
    curvature: Vector


@dataclass
class Solution:
    """Minimum of a model: direction, change of the threshold, decrease, multipliers of the working
    set, and which of these are between their bounds.
    """

    p: Vector
    dT: float
    gain: float
    x: Vector
    active: Mask


class _QuadraticModel:
    def __init__(self, top: Top, design: Design, alpha: float, l1: float = 0.0) -> None:
        self.top, self.design, self.alpha, self.l1 = top, design, alpha, l1
        #: Dual variables of all negatives in the last programme, from which the next one starts.
        self.dual_of_negatives = np.zeros(top.negatives.size)
        self._was_seen = np.zeros(top.negatives.size, dtype=bool)  # in the last programme

    def _centre(self, point: Point) -> None:
        total = float(point.curvature.sum())
        self.c = max(total, _LEAST_CURVATURE)
        self.mean_weight = point.curvature / total if total > 0.0 else self.top.share
        self.G = float(point.slope.sum())

    def _full_part(self, working: WorkingSet) -> tuple[float, Vector]:
        """Kappa, and the sum of the rows whose weight is at its cap, times their caps."""
        caps = self.top.caps[working.full]
        weight = np.zeros(self.top.n_rows)
        weight[self.top.negatives[working.full]] = caps
        return 1.0 / (1.0 - float(caps.sum())), self.design.adjoint(weight)

    def _multipliers(
        self,
        point: Point,
        working: WorkingSet,
        atol: float,
        matrix: Gram | Metric,
        along: Vector,
        constant: float,
        kappa: float,
    ) -> tuple[Vector, Mask]:
        """Solution of the dual: multipliers of the working set (and of the L1 penalty), and which
        of the former are between their bounds.

        `along` is the product of the rows with H^-1 g, `constant` the value at zero.
        """
        top, l1, n = self.top, self.l1, working.rows.size
        above = point.s[top.negatives[working.rows]] - point.T
        if working.full.size:
            full_above = point.s[top.negatives[working.full]] - point.T
            above = above + kappa * float(top.caps[working.full] @ full_above)
        caps = top.caps[working.rows] * kappa
        shares = caps if caps.min() < 1.0 else None
        h = along.copy()
        h[:n] -= above
        upper = None
        if l1:
            h[n:] -= point.w
            upper = np.full(point.w.size, 2.0 * l1)
        goal = {"total": max(self.G, _LEAST_CURVATURE) / kappa, "constant": constant, "atol": atol}
        found = None
        if isinstance(matrix, Gram):
            start = self.dual_of_negatives[working.rows] * kappa
            few_columns = self.design.n_columns <= _MOST_COLUMNS
            if few_columns or np.count_nonzero(start) <= _MOST_POSITIVE:
                found = active_set(matrix.matrix, h, shares, start, rtol=RELATIVE_ERROR, **goal)
            elif shares is None:
                found = pivoting(matrix, h, (start > 0.0) | ~self._was_seen[working.rows], **goal)
        x, active = found or self._interior(matrix, h, Bounds(n, shares, upper), goal)
        self.dual_of_negatives[:] = 0.0
        positive = active if shares is None else active | (x[:n] > 0.5 * shares * x[:n].sum())
        self.dual_of_negatives[working.rows] = np.where(positive, x[:n], 0.0) / kappa
        self.dual_of_negatives[working.full] = top.caps[working.full] * x[:n].sum()
        self._was_seen[:] = False
        self._was_seen[working.rows] = True
        return x, active

    def _interior(
        self, matrix: Gram | Metric, h: Vector, bounds: Bounds, goal: dict[str, float]
    ) -> tuple[Vector, Mask]:
        """The solution by an interior-point method, in which no variable is zero exactly."""
        n, shares = bounds.n_first, bounds.shares
        x, z = interior_point(matrix, h, bounds, **goal)
        own, rest = x[:n], z[:n]
        active = own * float(rest.mean() + 1e-300) >= rest * float(own.mean() + 1e-300)
        if shares is not None:
            active &= own < (1.0 - 1e-3) * shares * own.sum()
        return x, active


def _joining(known: Index, rows: Index) -> tuple[Index, Index, Index]:
    """Positions in `known` of the rows that are in both, their positions in `rows`, and the
    positions in `rows` of the others.
    """
    order = np.argsort(known, kind="stable")
    where = np.searchsorted(known[order], rows)
    where[where == known.size] = 0
    old = order[where] if known.size else where
    shared = known[old] == rows if known.size else np.zeros(rows.size, dtype=bool)
    return old[shared], np.flatnonzero(shared), np.flatnonzero(~shared)


def _among(matrix: Vector, index: Index) -> Vector:
    """The matrix of some of the rows and columns, without a copy where these are all, in order."""
    n = matrix.shape[0]
    return matrix if np.array_equal(index, np.arange(n)) else matrix[np.ix_(index, index)]


class ColumnModel(_QuadraticModel):
    """Model as a matrix over the columns, with or without an L1 penalty; the curvature of the
    positives is updated from step to step.
    """

    def __init__(self, top: Top, design: Design, alpha: float, l1: float) -> None:
        super().__init__(top, design, alpha, l1)
        d = design.n_columns
        share = np.zeros(top.n_rows)
        share[top.positives] = top.share
        # Rows are taken relative to this mean, against cancellation in columns far from zero.
        self._origin = design.adjoint(share)
        if l1:
            # Mean square of each column, for the damping.
            first, second, _ = design.moments(np.full(top.n_rows, 1.0 / top.n_rows))
            squares = second - self._origin * (2.0 * first - self._origin)
            self._squares = np.maximum(squares, 1e-12 * max(float(squares.max()), 1e-300))
        # Sum of D_i x_i x_i^T and of D_i x_i, and the D_i they are for.
        self._moment, self._first = np.zeros((d, d)), np.zeros(d)
        self._known = np.zeros(top.positives.size)
        # Rows of the negatives in the working set, and their numbers.
        self._rows, self._numbers = np.empty((0, d)), np.empty(0, dtype=np.intp)
        # At the present point: numbers of negatives, their constraints times the inverse of the
        # factor of H, and the inner products of these.
        self._solved_numbers = np.empty(0, dtype=np.intp)
        self._solved_rows: Vector = np.empty((0, d + 1))
        self._products: Vector = np.empty((0, 0))

    def _centred(self, rows: Index) -> Vector:
        if rows.size == 0:
            return np.empty((0, self.design.n_columns))
        return self.design.rows(rows).columns(0, self.design.n_columns) - self._origin

    def _update_curvature(self, curvature: Vector) -> None:
        changed, change = np.flatnonzero(curvature != self._known), curvature - self._known
        if changed.size > 0.5 * self._known.size:
            changed, change = np.flatnonzero(curvature), curvature
            self._moment[:] = 0.0
            self._first[:] = 0.0
        size = max(_CHUNK_ENTRIES // self.design.n_columns, 1)
        for k in range(0, changed.size, size):
            chunk = changed[k : k + size]
            X = self._centred(self.top.positives[chunk])
            weighted = X * change[chunk, None]
            self._moment += X.T @ weighted
            self._first += weighted.sum(axis=0)
        self._known = curvature

    def prepare(self, point: Point, damping: float) -> None:
        """Build and factor the matrix of the model at a point."""
        self._centre(point)
        self._update_curvature(point.curvature)
        d, total = self.design.n_columns, float(point.curvature.sum())
        self._m = self._first / total if total > 0.0 else np.zeros(d)
        H = np.zeros((d + 1, d + 1))
        H[:d, :d] = self._moment - total * np.outer(self._m, self._m)
        ridge = self.alpha + (damping * self._squares if self.l1 else 0.0)
        H[np.arange(d), np.arange(d)] += ridge
        H[d, d] = self.c
        slope = np.zeros(self.top.n_rows)
        slope[self.top.positives] = -point.slope
        g = self.design.adjoint(slope) + self.G * (self._origin + self._m) + self.alpha * point.w
        self._g = np.append(g - self.l1, self.G)
        self._H = H
        self._factor = cho_factor(H, lower=True, check_finite=False)
        self._solved_numbers = self._solved_numbers[:0]

    def _inverse(self, r: Vector) -> Vector:
        return cho_solve(self._factor, r, check_finite=False)

    def _constraints(self, working: WorkingSet) -> tuple[Vector, Vector, float]:
        """Rows of the constraints in (p, t) without negatives at their caps, what these add to
        every row, and kappa.
        """
        keep = np.isin(self._numbers, working.rows)
        new = working.rows[~np.isin(working.rows, self._numbers)]
        numbers = np.concatenate([self._numbers[keep], new])
        self._rows = np.concatenate([self._rows[keep], self._centred(self.top.negatives[new])])
        self._numbers = numbers
        where = np.argsort(numbers, kind="stable")
        rows = self._rows[where[np.searchsorted(numbers[where], working.rows)]] - self._m
        rows = np.column_stack([rows, np.full(rows.shape[0], -1.0)])
        if not working.full.size:
            return rows, np.zeros(rows.shape[1]), 1.0
        kappa, full = self._full_part(working)
        total = self.top.caps[working.full].sum()
        return rows, kappa * np.append(full - total * (self._origin + self._m), -total), kappa

    def _gram(self, working: WorkingSet, rows: Vector, added: Vector) -> Vector:
        """Products A H^-1 A^T of the constraints; those of negatives that stay are kept."""
        factor = self._factor[0]
        old, place, new = _joining(self._solved_numbers, working.rows)
        Z: Vector = np.empty(rows.shape)
        Z[place] = self._solved_rows[old]
        Z[new] = solve_triangular(factor, rows[new].T, lower=True, check_finite=False).T
        products: Vector = np.empty((rows.shape[0], rows.shape[0]))
        products[np.ix_(place, place)] = self._products[np.ix_(old, old)]
        products[new] = Z[new] @ Z.T
        products[:, new] = products[new].T
        self._solved_numbers, self._solved_rows, self._products = working.rows, Z, products
        if not working.full.size:
            return products
        z = solve_triangular(factor, added, lower=True, check_finite=False)
        along = Z @ z + 0.5 * float(z @ z)
        return products + along[:, None] + along

    def solve(self, point: Point, working: WorkingSet, *, atol: float) -> Solution:
        """The minimum of the model under the constraints of the working set."""
        d, l1, n = self.design.n_columns, self.l1, working.rows.size
        base_rows, added, kappa = self._constraints(working)
        rows = base_rows + added if working.full.size else base_rows
        solved = self._inverse(self._g)
        base = 0.5 * float(self._g @ solved)
        problem = point, working, atol
        if l1:
            base += l1 * float(np.abs(point.w).sum() + point.w.sum())
        if l1:
            metric = Metric(self._H, rows, d)
            x, active = self._multipliers(*problem, metric, metric.along(self._g), base, kappa)
            v = metric.step(self._g, x)
        else:
            gram = Gram(self._gram(working, base_rows, added))
            x, active = self._multipliers(*problem, gram, rows @ solved, base, kappa)
            v = -self._inverse(self._g + rows.T @ x)
        gain = self._gain(point.w, v)
        if l1:
            sparse = np.append(self._thresholded(point.w, v[:d], x[n:]), v[d])
            sparse_gain = self._gain(point.w, sparse)
            # Accepted if it exceeds the threshold by no more than is allowed for the solution.
            excess = float((rows @ (sparse - v)).max())
            if sparse_gain >= 0.9 * gain and self.G * excess <= 0.5 * THRESHOLD_ERROR * gain:
                v, gain = sparse, sparse_gain
        p, t = v[:d], float(v[d])
        dT = t + float((self._origin + self._m) @ p)
        return Solution(p, dT, gain, x[:n], active)

    def _gain(self, w: Vector, v: Vector) -> float:
        """Decrease of the model over a step."""
        l1, p = self.l1, v[:-1]
        gain = -float(self._g @ v + 0.5 * v @ (self._H @ v))
        return gain + l1 * float(np.abs(w).sum() - np.abs(w + p).sum() - p.sum()) if l1 else gain

    def _thresholded(self, w: Vector, p: Vector, x: Vector) -> Vector:
        """The direction p with weights set to zero exactly where the solution has them at zero.

        At the solution a weight is zero, or its multiplier x is at a bound. An interior point has
        both nearly so; the one that is smaller on its own scale is taken to be zero.
        """
        new = np.abs(w + p)
        inside = np.minimum(x, 2.0 * self.l1 - x) / self.l1
        return np.where(new < inside * new.max(initial=0.0), -w, p)


class RowModel(_QuadraticModel):
    """Model through inner products of rows, for more columns than positives.

    S = alpha I + C^T C with C = (I - q q^T) D^(1/2) X_pos, q = (D/c)^(1/2), so that

        <u, v>_S = u^T S^-1 v = (<u, v> - (C u)^T M^-1 (C v)) / alpha,   M = alpha I + C C^T
        (maths/top.md, eq. 6)

    A constraint is f_j = x_j + e, where e = kappa (z - m) has the mean m of the positives and the
    sum z of the rows at their caps.
    """

    def __init__(self, top: Top, design: Design, alpha: float) -> None:
        super().__init__(top, design, alpha)
        self._K = design.gram(top.positives, top.positives)
        # Of the working set: its numbers, and products with the positives and with itself.
        self._numbers = np.empty(0, dtype=np.intp)
        self._cross = np.empty((top.positives.size, 0))
        self._own = np.empty((0, 0))

    def prepare(self, point: Point, damping: float) -> None:
        """Build and factor the matrix of the model at a point; there is no damping."""
        self._centre(point)
        alpha, K = self.alpha, self._K
        self._curved = np.flatnonzero(point.curvature)
        self._root = np.sqrt(point.curvature[self._curved])
        self._q = self._root / max(float(np.linalg.norm(self._root)), 1e-300)
        inner = K[np.ix_(self._curved, self._curved)] * self._root[:, None] * self._root
        inner = self._projected(self._projected(inner).T)
        inner[np.diag_indices(inner.shape[0])] += alpha
        self._factor = cho_factor(inner, lower=True, check_finite=False) if inner.size else None
        # g = alpha w - X_pos^T spread
        self._spread = point.slope - self.G * self.mean_weight
        K_spread, self._K_mean = K @ self._spread, K @ self.mean_weight
        scores = point.s[self.top.positives]
        self._R_g = alpha * scores - K_spread
        with_spread = float(self._spread @ (2.0 * alpha * scores - K_spread))
        self._g_g = alpha**2 * float(point.w @ point.w) - with_spread
        self._C_g, self._C_m = self._curve(self._R_g), self._curve(self._K_mean)
        self._M_C_g = self._solved(self._C_g)
        # Of the working set, at this point: C x_j, M^-1 C x_j and alpha <x_j, x_k>_S.
        self._C_x = self._curve(self._cross)
        self._M_C_x = self._solved(self._C_x)
        self._S_x = self._own - self._C_x.T @ self._M_C_x

    def _projected(self, U: Vector) -> Vector:
        if U.ndim == 2:
            return U - self._q[:, None] * (self._q @ U)
        return U - self._q * float(self._q @ U)

    def _curve(self, along: Vector) -> Vector:
        """C u from the products of u with the positives."""
        return self._projected((along[self._curved].T * self._root).T)

    def _solved(self, U: Vector) -> Vector:
        """M^-1 U."""
        if self._factor is None or not U.size:
            return U
        return cho_solve(self._factor, U, check_finite=False)

    def _update(self, working: WorkingSet) -> None:
        """Compute the products of the negatives that have joined the working set."""
        if np.array_equal(self._numbers, working.rows):
            return
        positives, negatives = self.top.positives, self.top.negatives
        keep = np.flatnonzero(np.isin(self._numbers, working.rows))
        new = working.rows[~np.isin(working.rows, self._numbers)]
        numbers = np.concatenate([self._numbers[keep], new])
        order = np.argsort(numbers, kind="stable")
        where = order[np.searchsorted(numbers[order], working.rows)]
        cross = self.design.gram(positives, negatives[new])
        between = self.design.gram(negatives[self._numbers[keep]], negatives[new])
        within = self.design.gram(negatives[new], negatives[new])
        C = self._curve(cross)
        M_C = self._solved(C)
        C_kept = self._C_x[:, keep]
        S_between, S_within = between - C_kept.T @ M_C, within - C.T @ M_C

        def joined(old: Vector, beside: Vector, own: Vector) -> Vector:
            blocks = np.block([[_among(old, keep), beside], [beside.T, own]])
            return _among(blocks, where)

        self._cross = np.concatenate([self._cross[:, keep], cross], axis=1)[:, where]
        self._C_x = np.concatenate([C_kept, C], axis=1)[:, where]
        self._M_C_x = np.concatenate([self._M_C_x[:, keep], M_C], axis=1)[:, where]
        self._own = joined(self._own, between, within)
        self._S_x = joined(self._S_x, S_between, S_within)
        self._numbers = working.rows.copy()

    def _shared_part(
        self, point: Point, working: WorkingSet
    ) -> tuple[float, Vector, Vector, float, float]:
        """Kappa, and the products of e with the positives, the working set, itself and g."""
        top, mean = self.top, self.mean_weight
        R_e, x_e = -self._K_mean, -(mean @ self._cross)
        e_e, e_g = float(mean @ self._K_mean), -float(mean @ self._R_g)
        if not working.full.size:
            return 1.0, R_e, x_e, e_e, e_g
        kappa, z = self._full_part(working)
        along_z = self.design.scores(z)
        R_z = along_z[top.positives]
        e_e += float(z @ z) - 2.0 * float(mean @ R_z)
        full_score = float(top.caps[working.full] @ point.s[top.negatives[working.full]])
        e_g += self.alpha * full_score - float(self._spread @ R_z)
        R_e, x_e = R_e + R_z, x_e + along_z[top.negatives[working.rows]]
        return kappa, kappa * R_e, kappa * x_e, kappa**2 * e_e, kappa * e_g

    def solve(self, point: Point, working: WorkingSet, *, atol: float) -> Solution:
        """The minimum of the model under the constraints of the working set."""
        top, alpha, mean = self.top, self.alpha, self.mean_weight
        self._update(working)
        kappa, R_e, x_e, e_e, e_g = self._shared_part(point, working)
        C_e = self._curve(R_e)
        M_C_e = self._solved(C_e)
        x_S_e = x_e - self._M_C_x.T @ C_e
        e_S_e = e_e - float(C_e @ M_C_e)
        Q = self._S_x + (x_S_e[:, None] + (e_S_e + kappa**2 * alpha / self.c))
        Q += x_S_e
        Q /= alpha
        x_g = alpha * point.s[top.negatives[working.rows]] - self._spread @ self._cross
        f_S_g = x_g - self._M_C_x.T @ self._C_g + e_g - float(C_e @ self._M_C_g)
        along = f_S_g / alpha - kappa * self.G / self.c
        g_S_g = self._g_g - float(self._C_g @ self._M_C_g)
        base = 0.5 * (g_S_g / alpha + self.G**2 / self.c)
        x, active = self._multipliers(point, working, atol, Gram(Q), along, base, kappa)
        total = float(x.sum())
        # u = g + F^T x, and p = -S^-1 u = -(u - C^T M^-1 C u) / alpha
        M_C_u = self._M_C_g + self._M_C_x @ x + total * M_C_e
        coefficient = np.zeros(top.n_rows)
        onto = -self._spread - kappa * total * mean
        onto[self._curved] -= self._root * self._projected(M_C_u)
        coefficient[top.positives] = onto
        coefficient[top.negatives[working.rows]] = x
        coefficient[top.negatives[working.full]] = kappa * total * top.caps[working.full]
        p = -point.w - self.design.adjoint(coefficient) / alpha
        m_u = float(mean @ (self._R_g + self._cross @ x + total * R_e))
        dT = (kappa * total - self.G) / self.c - (m_u - float(self._C_m @ M_C_u)) / alpha
        return Solution(p, dT, base - 0.5 * float(x @ Q @ x), x, active)
