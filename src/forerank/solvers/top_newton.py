"""Newton's method for positives against the top of the negatives, with a working set of the
negatives that matter.

    min  sum_i p_i l(x_i w - T) + alpha/2 ||w||^2 + l1 ||w||_1    subject to  T >= <beta, X_neg w> for all beta allowed

The losses are smooth in (w, T) and only few of the constraints bind: as many as there are columns
at most. So each step takes the quadratic model of the losses, with the constraints as they are, and
solves it exactly: a quadratic programme with one variable per negative in the working set
(maths/top.md, eq. 4), by an interior-point method. Negatives that stick out of its solution join
the working set, until none does by much. A handful of steps is enough.

Certificate: slopes of the losses and weights of the negatives are a point of the dual (li2014, eq.
6), which bounds the minimum from below; the gap between the two is reported, relative to the
former.

The hinge has no curvature. It is replaced by a quadratic around the latest slopes, which is taken
back as they settle (eq. 7): a proximal step in the dual, exact at its end.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from forerank._sorting import largest
from forerank._typing import Index, Vector
from forerank.design import Design
from forerank.losses import Loss
from forerank.objectives.top import Top
from forerank.solvers.quadratic_program import Bounds, Gram, Metric, interior_point, pivoting
from forerank.solvers.result import Progress, SolverResult, relative_gap

__all__ = ["working_set_newton"]


# Negatives that join the working set: this many, or as many as are active already.
_FEWEST_JOINING = 20
# The working set is cleared of idle negatives when it is this many times larger than the active
# ones.
_IDLE = 2.0
_MOST_ROUNDS = 60
_ROUNDS_WITH_CLEARING = 15
# A round of the working set ends when the part of the threshold that is missing costs at most this
# share of the gain.
_OVERLOOKED = 0.1
# Positives are copied in pieces of this many numbers when their curvature is added up.
_PIECE = 2**21
# The threshold always has a little curvature of its own.
_LEAST_CURVATURE = 1e-6
# An L1 penalty leaves directions without curvature. Steps are damped by a share of the columns'
# mean square, which is lowered after whole steps and raised after short ones, within these bounds.
_DAMPING = (1e-5, 1e-2, 1e3)
# The hinge is rounded off over this width at first; each proximal step divides it by this.
_FIRST_WIDTH = 0.3
_NARROWER = 3.0
_LEAST_WIDTH = 1e-9
# A proximal step ends when its own gap is this share of the gap of the problem.
_PROXIMAL_SHARE = 0.2


class _CentredHinge(Loss):
    """max over 0 <= a <= 1 of a (1 - t) - width/2 (a - centre)^2, with a centre per row: a lower
    bound of the hinge.
    """

    name = "centred_hinge"

    def __init__(self, width: float, centre: Vector) -> None:
        self.width, self.centre = width, centre

    def _pull(self, t: Vector) -> Vector:
        return np.clip(self.centre + (1.0 - t) / self.width, 0.0, 1.0)

    def value(self, t: Vector) -> Vector:  # type: ignore[override]
        a = self._pull(t)
        return a * (1.0 - t) - 0.5 * self.width * (a - self.centre) ** 2

    def slope(self, t: Vector) -> Vector:  # type: ignore[override]
        return -self._pull(t)

    def curvature(self, t: Vector) -> Vector:  # type: ignore[override]
        raw = self.centre + (1.0 - t) / self.width
        return np.where((raw > 0.0) & (raw < 1.0), 1.0 / self.width, 0.0)

    def conjugate(self, v: Vector) -> Vector:  # type: ignore[override]
        a = -v
        inside = (a >= 0.0) & (a <= 1.0)
        return np.where(inside, -a + 0.5 * self.width * (a - self.centre) ** 2, np.inf)


@dataclass
class _Point:
    """Weights, their scores and threshold, and the losses there."""

    w: Vector
    s: Vector
    T: float
    value: float
    pull: Vector
    curvature: Vector


@dataclass
class _WorkingSet:
    """Negatives whose weight is open (`rows`), and those taken to carry as much as they may
    (`full`); by number.
    """

    rows: Index
    full: Index


def working_set_newton(
    top: Top,
    design: Design,
    alpha: float,
    *,
    l1: float = 0.0,
    start: Vector | None = None,
    start_dual: Vector | None = None,
    tol: float = 1e-4,
    max_iter: int = 200,
    progress: Progress | None = None,
) -> SolverResult:
    """Minimise the top objective plus alpha/2 ||w||^2 + l1 ||w||_1, one of the two at least positive.

    `start` and `start_dual` are the weights and the dual of a like problem, such as one with
    another alpha. `tol` is the relative duality gap. Cost of a step: the curvature of the
    positives, m d^2 or m^3, whichever is less (only of those whose curvature changed), and a few
    products of X with a vector. Memory: the square of d or of m.
    """
    return _WorkingSetNewton(top, design, alpha, l1, tol, max_iter, progress or Progress()).run(
        start, start_dual
    )


class _WorkingSetNewton:
    def __init__(
        self,
        top: Top,
        design: Design,
        alpha: float,
        l1: float,
        tol: float,
        max_iter: int,
        progress: Progress,
    ) -> None:
        self.top, self.design, self.alpha, self.l1 = top, design, alpha, l1
        self.tol, self.max_iter, self.progress = tol, max_iter, progress
        self.loss = top.loss
        if not top.loss.smooth:
            self.loss = _CentredHinge(_FIRST_WIDTH, np.ones(top.positives.size))
        many_columns = design.n_columns > top.positives.size and l1 == 0.0
        self.space: _ColumnSpace | _RowSpace = (
            _RowSpace(self) if many_columns else _ColumnSpace(self)
        )
        self.damping = _DAMPING[1]
        # No more constraints than unknowns bind, degenerate cases apart.
        self.most_joining = min(design.n_columns, 200)
        self.bound = 0.0
        self.dual = np.zeros(top.n_rows)
        self.beta = np.zeros(top.negatives.size)

    def run(self, start: Vector | None, start_dual: Vector | None = None) -> SolverResult:
        top, design = self.top, self.design
        w = np.zeros(design.n_columns) if start is None else start.copy()
        here = self.point(w, design.scores(w))
        working = self.first_working_set(here)
        if start_dual is not None:
            self.take_up(start_dual, working)
        best, best_value = here, np.inf
        for iteration in range(self.max_iter + 1):
            value = top.value_at(here.s) + self.penalty(here.w)
            if value < best_value:
                best, best_value = here, value
            gap = relative_gap(best_value, self.bound)
            self.progress.record(best.w, design.n_rows, best_value, gap)
            if gap <= self.tol or iteration == self.max_iter:
                break
            there = self.step(here, working)
            if there is None and (self.loss is top.loss or self.loss.width < _LEAST_WIDTH):  # type: ignore[attr-defined]
                gap = relative_gap(best_value, self.bound)
                self.progress.record(best.w, design.n_rows, best_value, gap)
                break
            here = there or here
            if self.loss is not top.loss:
                here = self.recentred(here, best_value - self.bound, settled=there is None)
        return SolverResult(
            best.w, best.s, best_value, gap, iteration, gap <= self.tol, self.progress.history, self.dual
        )  # fmt: skip

    def penalty(self, w: Vector) -> float:
        return 0.5 * self.alpha * float(w @ w) + (
            self.l1 * float(np.abs(w).sum()) if self.l1 else 0.0
        )

    def point(self, w: Vector, s: Vector) -> _Point:
        top = self.top
        T, _ = top.threshold(s[top.negatives])
        margin = s[top.positives] - T
        value = float(top.share @ self.loss.value(margin)) + self.penalty(w)
        return _Point(
            w, s, T, value, -top.share * self.loss.slope(margin), top.share * self.loss.curvature(margin)
        )  # fmt: skip

    def first_working_set(self, here: _Point) -> _WorkingSet:
        """By the scores at hand, or along the difference of the means where there are none yet."""
        top = self.top
        scores = here.s[top.negatives]
        if not here.w.any():
            towards = np.zeros(top.n_rows)
            towards[top.positives] = top.share
            towards[top.negatives] = -1.0 / top.negatives.size
            scores = self.design.scores(self.design.adjoint(towards))[top.negatives]
        _, beta = top.threshold(scores)
        crossing = int(np.count_nonzero(beta)) - 1
        order = largest(scores, crossing + _FEWEST_JOINING)
        full = order[: max(crossing - _FEWEST_JOINING, 0)]
        return _WorkingSet(order[full.size : crossing + _FEWEST_JOINING], full)

    def take_up(self, dual: Vector, working: _WorkingSet) -> None:
        """Begin with the weights of the negatives of another solution, and the bound that they give
        here.
        """
        on_negatives = dual[self.top.negatives]
        total = float(on_negatives.sum())
        if total <= 0.0:
            return
        self.beta = on_negatives / total
        self.raise_bound(-dual[self.top.positives])
        held = np.concatenate([working.rows, working.full])
        working.rows = np.concatenate(
            [working.rows, np.setdiff1d(np.flatnonzero(on_negatives), held)]
        )

    def step(self, here: _Point, working: _WorkingSet) -> _Point | None:
        """One step of Newton's method; None where nothing is gained."""
        top, space = self.top, self.space
        space.prepare(here)
        on_negatives = here.s[top.negatives]
        G = float(here.pull.sum())
        for round_number in range(_MOST_ROUNDS):
            solution = space.solve(here, working, atol=0.02 * self.tol * here.value)
            q = self.design.scores(solution.p)
            then = on_negatives + q[top.negatives]
            T, _ = top.threshold(then)
            missing = T - (here.T + solution.dT)
            # A round's solution belongs to the working set as it was.
            rows, full = working.rows, working.full
            if missing * G <= _OVERLOOKED * solution.gain:
                break
            if not self.widen(working, then, solution, clear=round_number < _ROUNDS_WITH_CLEARING):
                break
        if working.rows is rows and rows.size > _IDLE * np.count_nonzero(solution.active):
            self.clear(working, solution)
        p, dT, gain, x = solution.p, solution.dT, solution.gain, solution.x
        self.beta = self.weights(rows, full, x) if float(x.sum()) > 0.0 else top.threshold(then)[1]
        length = 1.0
        for _ in range(40):
            there = self.point(here.w + length * p, here.s + length * q)
            if there.value <= here.value - 1e-4 * length * gain:
                break
            length *= 0.5
        else:
            self.raise_bound(here.pull)
            return None
        self.damping = min(
            max(self.damping * (0.1 if length == 1.0 else 10.0), _DAMPING[0]), _DAMPING[2]
        )
        # The slopes of the quadratic model, which belong to its solution more exactly than those
        # after the step.
        modelled = np.clip(here.pull - here.curvature * (q[top.positives] - dT), 0.0, top.most_pull)
        self.raise_bound(there.pull, modelled)
        return there if there.value < here.value else None

    def weights(self, rows: Index, full: Index, x: Vector) -> Vector:
        """The solution of a programme as weights of the negatives that are allowed: below the caps,
        summing to one.
        """
        caps = self.top.caps
        beta = np.zeros(caps.size)
        beta[full] = caps[full]
        beta[rows] = np.minimum(x / float(x.sum()) * (1.0 - float(caps[full].sum())), caps[rows])
        # An interior point may exceed a cap by a little; what is cut off goes to the others, as far
        # as they have room.
        missing, room = 1.0 - float(beta.sum()), caps[rows] - beta[rows]
        beta[rows] += (
            room * (missing / max(float(room.sum()), missing, 1e-300)) if missing > 0.0 else 0.0
        )
        return beta / float(beta.sum()) if missing <= 0.0 else beta

    def widen(
        self, working: _WorkingSet, then: Vector, solution: "_Solution", *, clear: bool
    ) -> bool:
        """Let negatives in that are on the wrong side of the threshold; whether there were any."""
        active = solution.active
        # The negatives whose weight is between its bounds lie on the model's threshold.
        level = float(
            then[working.rows[active]].mean() if active.any() else then[working.rows].min()
        )
        kind = np.zeros(then.size, dtype=np.int8)
        kind[working.rows] = 1
        kind[working.full] = 2
        wrong = np.flatnonzero(((kind == 0) & (then > level)) | ((kind == 2) & (then < level)))
        if wrong.size == 0:
            return False
        if clear and working.rows.size > _IDLE * np.count_nonzero(active) + 30:
            self.clear(working, solution)
        n_active = int(np.count_nonzero(active))
        room = max(_FEWEST_JOINING, min(n_active, max(self.most_joining, n_active // 2)))
        if wrong.size > room:
            distance = np.abs(then[wrong] - level)
            wrong = wrong[largest(distance, room)]
        working.full = np.setdiff1d(working.full, wrong, assume_unique=True)
        working.rows = np.concatenate([working.rows, wrong])
        return True

    def clear(self, working: _WorkingSet, solution: "_Solution") -> None:
        """Put the negatives whose weight is at a bound out of the working set."""
        caps, x, active = self.top.caps, solution.x, solution.active
        share = x / max(float(x.sum()), 1e-300) * (1.0 - float(caps[working.full].sum()))
        brim = ~active & (share > 0.5 * caps[working.rows])
        # The open rows have to make up what the full ones leave, which is never nothing.
        left = 1.0 - float(caps[working.full].sum() + caps[working.rows[brim]].sum())
        if 1e-9 < left < 0.999 * float(caps[working.rows[active]].sum()):
            working.full = np.concatenate([working.full, working.rows[brim]])
            working.rows = working.rows[active]

    def raise_bound(self, *pulls: Vector) -> None:
        """The dual at the weights of the negatives and each vector of pulls; the best one counts."""
        top = self.top
        values = []
        G = np.zeros((len(pulls), top.n_rows))
        for row, pull in zip(G, pulls, strict=True):
            row[top.positives] = -pull
            row[top.negatives] = pull.sum() * self.beta
        for pull, row, r in zip(pulls, G, self.design.adjoints(G), strict=True):
            if self.alpha == 0.0:
                largest = float(np.abs(r).max())
                shrink = 1.0 if largest <= self.l1 else self.l1 / largest
                value = -top.conjugate(shrink * pull)
            else:
                beyond = np.maximum(np.abs(r) - self.l1, 0.0) if self.l1 else r
                value = -top.conjugate(pull) - float(beyond @ beyond) / (2.0 * self.alpha)
            values.append(value)
            if value > self.bound:
                self.bound, self.dual = value, row
        self.latest_dual = values[0]

    def recentred(self, here: _Point, gap: float, *, settled: bool) -> _Point:
        """A proximal step of the hinge: move the centre once its own problem is solved well enough."""
        loss, top = self.loss, self.top
        assert isinstance(loss, _CentredHinge)
        inside = here.pull / top.share
        cost = 0.5 * loss.width * float(top.share @ (inside - loss.centre) ** 2)
        own_gap = here.value - (self.latest_dual - cost)
        if settled or own_gap <= _PROXIMAL_SHARE * gap:
            self.loss = _CentredHinge(loss.width / _NARROWER, inside)
            return self.point(here.w, here.s)
        return here


@dataclass
class _Solution:
    """What a space finds for a working set: direction, change of threshold, gain of the model,
    weights, the active.
    """

    p: Vector
    dT: float
    gain: float
    x: Vector
    active: NDArray[np.bool_]


class _Space:
    """The quadratic model of a step, in coordinates in which the threshold is decoupled from the
    weights.

    With c = sum_i D_i over the curvatures of the positives and m their mean weighted by D, the
    model is

        1/2 p^T S p + <g, p> + c/2 t^2 + G t,   S = alpha I + sum_i D_i (x_i - m)(x_i - m)^T, g =
        alpha w - sum_i a_i (x_i - m),   t = dT - <m, p>
        (maths/top.md, eq. 3)

    and a negative j in the working set demands <x_j - m, p> + s_j - T <= t.
    """

    def __init__(self, solver: _WorkingSetNewton) -> None:
        self.solver = solver
        self.top, self.design = solver.top, solver.design
        # Negatives that had weight in the last programme, and all that were in it.
        self._support = self._seen = np.empty(0, dtype=np.intp)

    def centre(self, here: _Point) -> None:
        total = float(here.curvature.sum())
        self.c = max(total, _LEAST_CURVATURE)
        self.mean_weight = here.curvature / total if total > 0.0 else self.top.share
        self.G = float(here.pull.sum())
        self.mean_score = float(self.mean_weight @ here.s[self.top.positives])

    def programme(
        self,
        here: _Point,
        working: _WorkingSet,
        atol: float,
        form: "tuple[Gram | Metric, Vector, float, float]",
    ) -> tuple[Vector, NDArray[np.bool_]]:
        """Solve the dual of the model: weights of the open negatives (and of the L1 penalty), and
        which are active.

        `form` has the matrix, the product of the rows with H^-1 g, the value at zero, and how the
        full rows count.
        """
        matrix, along, constant, kappa = form
        top, l1 = self.top, self.solver.l1
        above = here.s[top.negatives[working.rows]] - here.T
        if working.full.size:
            full_above = here.s[top.negatives[working.full]] - here.T
            above = above + kappa * float(top.caps[working.full] @ full_above)
        caps = top.caps[working.rows] * kappa
        shares = caps if caps.min() < 1.0 else None
        n = working.rows.size
        h = along.copy()
        h[:n] -= above
        upper = None
        if l1:
            h[n:] -= here.w
            upper = np.full(here.w.size, 2.0 * l1)
        if shares is None and upper is None and self._support.size and isinstance(matrix, Gram):
            guess = np.isin(working.rows, self._support) | ~np.isin(working.rows, self._seen)
            found = pivoting(
                matrix,
                h,
                guess,
                total=max(self.G, _LEAST_CURVATURE) / kappa,
                constant=constant,
                atol=atol,
            )
            if found is not None:
                self._support, self._seen = working.rows[found[1]], working.rows
                return found
        x, z = interior_point(
            matrix,
            h,
            Bounds(n, shares, upper),
            total=max(self.G, _LEAST_CURVATURE) / kappa,
            constant=constant,
            atol=atol,
        )
        own, rest = x[:n], z[:n]
        active = own * float(rest.mean() + 1e-300) >= rest * float(own.mean() + 1e-300)
        if shares is not None:
            active &= own < (1.0 - 1e-3) * shares * own.sum()
        self._support, self._seen = working.rows[active], working.rows
        return x, active


class _ColumnSpace(_Space):
    """The model as a matrix over the columns; the curvature of the positives is kept up to date
    from step to step.
    """

    def __init__(self, solver: _WorkingSetNewton) -> None:
        super().__init__(solver)
        top, d = self.top, self.design.n_columns
        origin = np.zeros(top.n_rows)
        origin[top.positives] = top.share
        # Rows are taken from this point, so that columns far from zero cost no digits.
        self._origin = self.design.adjoint(origin)
        if solver.l1:
            # The size of each column, over all rows, for the damping.
            first, second, _ = self.design.moments(np.full(top.n_rows, 1.0 / top.n_rows))
            squares = second - self._origin * (2.0 * first - self._origin)
            self._squares = np.maximum(squares, 1e-12 * max(float(squares.max()), 1e-300))
        self._moment = np.zeros((d, d))
        self._first = np.zeros(d)
        self._known = np.zeros(top.positives.size)
        self._rows = np.empty((0, d))
        self._numbers = np.empty(0, dtype=np.intp)

    def _centred(self, rows: Index) -> Vector:
        if rows.size == 0:
            return np.empty((0, self.design.n_columns))
        return self.design.rows(rows).columns(0, self.design.n_columns) - self._origin

    def prepare(self, here: _Point) -> None:
        self.centre(here)
        changed = np.flatnonzero(here.curvature != self._known)
        change = here.curvature - self._known
        if changed.size > 0.5 * self._known.size:
            changed = np.flatnonzero(here.curvature)
            change = here.curvature
            self._moment[:] = 0.0
            self._first[:] = 0.0
        piece = max(_PIECE // self.design.n_columns, 1)
        for k in range(0, changed.size, piece):
            some = changed[k : k + piece]
            X = self._centred(self.top.positives[some])
            weighted = X * change[some, None]
            self._moment += X.T @ weighted
            self._first += weighted.sum(axis=0)
        self._known = here.curvature
        solver, d = self.solver, self.design.n_columns
        total = float(here.curvature.sum())
        self._m = self._first / total if total > 0.0 else np.zeros(d)
        H = np.zeros((d + 1, d + 1))
        H[:d, :d] = self._moment - total * np.outer(self._m, self._m)
        ridge = solver.alpha + (solver.damping * self._squares if solver.l1 else 0.0)
        H[np.arange(d), np.arange(d)] += ridge
        H[d, d] = self.c
        pull = np.zeros(self.top.n_rows)
        pull[self.top.positives] = -here.pull
        g = self.design.adjoint(pull) + self.G * (self._origin + self._m) + solver.alpha * here.w
        self._g = np.append(g - solver.l1, self.G)
        self._H = H
        self._factor = cho_factor(H, lower=True, check_finite=False)

    def _inverse(self, r: Vector) -> Vector:
        return cho_solve(self._factor, r, check_finite=False)

    def _constraints(self, working: _WorkingSet) -> tuple[Vector, float]:
        """Rows of the constraints in (p, t), and how the full negatives count."""
        keep = np.isin(self._numbers, working.rows)
        new = working.rows[~np.isin(working.rows, self._numbers)]
        numbers = np.concatenate([self._numbers[keep], new])
        self._rows = np.concatenate([self._rows[keep], self._centred(self.top.negatives[new])])
        self._numbers = numbers
        where = np.argsort(numbers, kind="stable")
        rows = self._rows[where[np.searchsorted(numbers[where], working.rows)]] - self._m
        kappa = 1.0
        if working.full.size:
            share = self.top.caps[working.full]
            kappa = 1.0 / (1.0 - float(share.sum()))
            weight = np.zeros(self.top.n_rows)
            weight[self.top.negatives[working.full]] = share
            rows = rows + kappa * (
                self.design.adjoint(weight) - share.sum() * (self._origin + self._m)
            )
        return np.column_stack([rows, np.full(rows.shape[0], -kappa)]), kappa

    def solve(self, here: _Point, working: _WorkingSet, *, atol: float) -> _Solution:
        d, l1 = self.design.n_columns, self.solver.l1
        rows, kappa = self._constraints(working)
        solved = self._inverse(self._g)
        base = 0.5 * float(self._g @ solved)
        if l1:
            base += l1 * float(np.abs(here.w).sum() + here.w.sum())
        if l1 or rows.shape[0] > d:
            metric = Metric(self._H, rows, d if l1 else 0)
            x, active = self.programme(
                here, working, atol, (metric, metric.along(self._g), base, kappa)
            )
            v = metric.step(self._g, x)
        else:
            gram = Gram(rows @ self._inverse(rows.T))
            x, active = self.programme(here, working, atol, (gram, rows @ solved, base, kappa))
            v = -self._inverse(self._g + rows.T @ x)
        gain = self._gain(here.w, v)
        if l1:
            sparse = np.append(self._thresholded(here.w, v[:d], x[working.rows.size :]), v[d])
            sparse_gain = self._gain(here.w, sparse)
            # The negatives hold it back no less than the solution itself.
            sticking_out = float((rows @ (sparse - v)).max())
            if sparse_gain >= 0.9 * gain and self.G * sticking_out <= 0.5 * _OVERLOOKED * gain:
                v, gain = sparse, sparse_gain
        p, t = v[:d], float(v[d])
        dT = t + float((self._origin + self._m) @ p)
        return _Solution(p, dT, gain, x[: working.rows.size], active)

    def _gain(self, w: Vector, v: Vector) -> float:
        """By how much the model falls over the step."""
        l1, p = self.solver.l1, v[:-1]
        gain = -float(self._g @ v + 0.5 * v @ (self._H @ v))
        return gain + l1 * float(np.abs(w).sum() - np.abs(w + p).sum() - p.sum()) if l1 else gain

    def _thresholded(self, w: Vector, p: Vector, x: Vector) -> Vector:
        """Weights that are zero after the step, made so exactly.

        A weight or the distance of its multiplier from a bound is zero; the interior point has both
        small, and the one that is smaller on its own scale is taken to be zero.
        """
        l1 = self.solver.l1
        new = np.abs(w + p)
        inside = np.minimum(x, 2.0 * l1 - x) / l1
        return np.where(new < inside * new.max(initial=0.0), -w, p)


class _RowSpace(_Space):
    """The model through inner products of rows, for more columns than positives.

    S = alpha I + C^T C with C = (I - q q^T) D^(1/2) X_pos, q = (D/c)^(1/2), so that

        <u, v>_S = u^T S^-1 v = (<u, v> - (C u)^T M^-1 (C v)) / alpha,   M = alpha I + C C^T
        (maths/top.md, eq. 6)

    A constraint is f_j = x_j + e, where e = kappa (z - m) has the mean m and the sum z of the full
    rows.
    """

    def __init__(self, solver: _WorkingSetNewton) -> None:
        super().__init__(solver)
        self._K = self.design.gram(self.top.positives, self.top.positives)
        # Of the working set: products with the positives and with itself.
        self._numbers = np.empty(0, dtype=np.intp)
        self._cross = np.empty((self.top.positives.size, 0))
        self._own = np.empty((0, 0))

    def prepare(self, here: _Point) -> None:
        self.centre(here)
        alpha, K = self.solver.alpha, self._K
        self._bent = np.flatnonzero(here.curvature)
        self._root = np.sqrt(here.curvature[self._bent])
        self._q = self._root / max(float(np.linalg.norm(self._root)), 1e-300)
        inner = K[np.ix_(self._bent, self._bent)] * self._root[:, None] * self._root
        inner = self._projected(self._projected(inner).T)
        inner[np.diag_indices(inner.shape[0])] += alpha
        self._factor = cho_factor(inner, lower=True, check_finite=False) if inner.size else None
        # g = alpha w - X_pos^T spread
        self._spread = here.pull - self.G * self.mean_weight
        K_spread, self._K_mean = K @ self._spread, K @ self.mean_weight
        scores = here.s[self.top.positives]
        self._R_g = alpha * scores - K_spread
        self._g_g = alpha**2 * float(here.w @ here.w) - float(
            self._spread @ (2.0 * alpha * scores - K_spread)
        )
        self._C_g, self._C_m = self._bend(self._R_g), self._bend(self._K_mean)
        self._M_C_g, self._M_C_m = self._solved(self._C_g), self._solved(self._C_m)
        # Of the working set, at this point: C x_j, M^-1 C x_j and alpha <x_j, x_k>_S.
        self._C_x = self._bend(self._cross)
        self._M_C_x = self._solved(self._C_x)
        self._S_x = self._own - self._C_x.T @ self._M_C_x

    def _projected(self, U: Vector) -> Vector:
        return (
            U - self._q[:, None] * (self._q @ U)
            if U.ndim == 2
            else U - self._q * float(self._q @ U)
        )

    def _bend(self, along: Vector) -> Vector:
        """C u from the products of u with the positives."""
        return self._projected((along[self._bent].T * self._root).T)

    def _solved(self, U: Vector) -> Vector:
        return (
            cho_solve(self._factor, U, check_finite=False)
            if self._factor is not None and U.size
            else U
        )

    def _update(self, working: _WorkingSet) -> None:
        """Products of the working set, as far as they are new."""
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
        C = self._bend(cross)
        M_C = self._solved(C)
        C_kept = self._C_x[:, keep]
        S_between, S_within = between - C_kept.T @ M_C, within - C.T @ M_C

        def joined(old: Vector, beside: Vector, own: Vector) -> Vector:
            return np.block([[old[np.ix_(keep, keep)], beside], [beside.T, own]])[
                np.ix_(where, where)
            ]

        self._cross = np.concatenate([self._cross[:, keep], cross], axis=1)[:, where]
        self._C_x = np.concatenate([C_kept, C], axis=1)[:, where]
        self._M_C_x = np.concatenate([self._M_C_x[:, keep], M_C], axis=1)[:, where]
        self._own = joined(self._own, between, within)
        self._S_x = joined(self._S_x, S_between, S_within)
        self._numbers = working.rows.copy()

    def solve(self, here: _Point, working: _WorkingSet, *, atol: float) -> _Solution:
        top, alpha, mean = self.top, self.solver.alpha, self.mean_weight
        self._update(working)
        x_score = here.s[top.negatives[working.rows]]
        # e = kappa (z - m): products with the positives, with itself, with the working set and with
        # g.
        kappa = 1.0
        R_e = -self._K_mean
        e_e = float(mean @ self._K_mean)
        x_e = -(mean @ self._cross)
        e_g = -float(mean @ self._R_g)
        if working.full.size:
            share = top.caps[working.full]
            kappa = 1.0 / (1.0 - float(share.sum()))
            weight = np.zeros(top.n_rows)
            weight[top.negatives[working.full]] = share
            z = self.design.adjoint(weight)
            along_z = self.design.scores(z)
            R_z = along_z[top.positives]
            e_e += float(z @ z) - 2.0 * float(mean @ R_z)
            e_g += alpha * float(share @ here.s[top.negatives[working.full]]) - float(
                self._spread @ R_z
            )
            R_e, x_e = R_e + R_z, x_e + along_z[top.negatives[working.rows]]
            R_e, x_e, e_e, e_g = kappa * R_e, kappa * x_e, kappa**2 * e_e, kappa * e_g
        C_e = self._bend(R_e)
        M_C_e = self._solved(C_e)
        x_S_e = x_e - self._M_C_x.T @ C_e
        e_S_e = e_e - float(C_e @ M_C_e)
        Q = (self._S_x + x_S_e[:, None] + x_S_e + e_S_e) / alpha + kappa**2 / self.c
        x_g = alpha * x_score - self._spread @ self._cross
        f_S_g = x_g - self._M_C_x.T @ self._C_g + e_g - float(C_e @ self._M_C_g)
        along = f_S_g / alpha - kappa * self.G / self.c
        g_S_g = self._g_g - float(self._C_g @ self._M_C_g)
        base = 0.5 * (g_S_g / alpha + self.G**2 / self.c)
        x, active = self.programme(here, working, atol, (Gram(Q), along, base, kappa))
        total = float(x.sum())
        # u = g + F^T x, and p = -S^-1 u = -(u - C^T M^-1 C u) / alpha
        M_C_u = self._M_C_g + self._M_C_x @ x + total * M_C_e
        coefficient = np.zeros(top.n_rows)
        onto = -self._spread - kappa * total * mean
        onto[self._bent] -= self._root * self._projected(M_C_u)
        coefficient[top.positives] = onto
        coefficient[top.negatives[working.rows]] = x
        coefficient[top.negatives[working.full]] = kappa * total * top.caps[working.full]
        p = -here.w - self.design.adjoint(coefficient) / alpha
        m_u = float(mean @ (self._R_g + self._cross @ x + total * R_e))
        dT = (kappa * total - self.G) / self.c - (m_u - float(self._C_m @ M_C_u)) / alpha
        return _Solution(p, dT, base - 0.5 * float(x @ Q @ x), x, active)
