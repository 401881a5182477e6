"""The ranking that every metric starts from: validated rows, sorted once by query and falling
score.

A query is a contiguous run of the sorted rows, and rows with tied scores are a contiguous block
within a query. Curves and pair counts are sums over these runs.
"""

import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forerank._kernels import compiled
from forerank._sorting import argsort, sort_by_group
from forerank._typing import Index, Mask, Queries, Vector, Weights
from forerank._validation import refuse_invalid_weights


@dataclass(frozen=True)
class Ranking:
    """The rows of positive weight, query by query, best score first."""

    rows: Index  # where they stand in the input
    weight: Vector
    opens: Mask  # does the row open a block of tied scores?
    starts: Index  # query q owns the places starts[q]:starts[q + 1], never none
    grouped: bool

    @cached_property
    def tie(self) -> Index:
        """Number of the row's tied block; grows down the ranking."""
        return np.cumsum(self.opens)

    @cached_property
    def blocks(self) -> Index:
        """Where each tied block starts."""
        return np.flatnonzero(self.opens)

    @cached_property
    def block_sizes(self) -> Index:
        return np.diff(self.blocks, append=self.rows.size)

    @cached_property
    def first(self) -> Index:
        """Query q owns the blocks first[q]:first[q + 1]."""
        return np.searchsorted(self.blocks, self.starts)

    def per_query(self, block_values: Vector) -> Vector:
        return np.add.reduceat(block_values, self.first[:-1])

    def only(self, kept: Mask) -> "Ranking":
        """The ranking of the kept queries."""
        sizes = np.diff(self.starts)
        row_kept = np.repeat(kept, sizes)
        starts = np.concatenate([[0], np.cumsum(sizes[kept])])
        return Ranking(
            self.rows[row_kept], self.weight[row_kept], self.opens[row_kept], starts, self.grouped
        )


def rank_rows(n: int, y_score: ArrayLike, sample_weight: Weights, qid: Queries) -> Ranking:
    """Validate scores, weights and queries against n labels, and sort."""
    s, w = _numbers(y_score, "y_score", n), _weights(sample_weight, n)
    query = None if qid is None else query_numbers(qid, n)
    kept = np.flatnonzero(w)
    if kept.size < n:
        s, w = s[kept], w[kept]
        query = None if query is None else query[kept]
    order, starts = best_first(s, query)
    s = s[order]
    opens = np.ones(s.size, dtype=bool)
    opens[1:] = s[1:] != s[:-1]
    opens[starts[:-1]] = True
    if sample_weight is not None:
        # Dividing a query's weights by a power of two is exact and keeps their products clear of
        # over- and underflow.
        w = w[order]
        exponent = np.frexp(np.maximum.reduceat(w, starts[:-1]))[1]
        w = np.ldexp(w, -np.repeat(exponent, np.diff(starts)))
    rows = order if kept.size == n else kept[order]
    return Ranking(rows, w, opens, starts, query is not None)


def best_first(values: NDArray, query: Index | None) -> tuple[Index, Index]:
    """Row numbers by query and falling value, and the bounds of the queries that have rows."""
    ascending = argsort(values) if values.dtype == np.float64 else np.argsort(values)
    order = np.ascontiguousarray(ascending[::-1])
    if query is None:
        return order, np.array([0, values.size])
    sizes = np.bincount(query)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    starts = np.append(bounds[:-1][sizes > 0], values.size)
    return sort_by_group(order, query, bounds[:-1]), starts


@compiled
def _running(values, first):  # type: ignore[no-untyped-def]
    """Cumulative sums that start afresh in each query: a global cumsum would carry its rounding
    into small queries.
    """
    sums = np.empty_like(values)
    for q in range(first.size - 1):
        total = 0.0
        for b in range(first[q], first[q + 1]):
            total += values[b]
            sums[b] = total
    return sums


class Curve(NamedTuple):
    """Weights of positives and negatives, one entry per tied block."""

    positive: Vector  # in the block
    negative: Vector
    tp: Vector  # in the block and ahead of it, within the query
    fp: Vector
    all_positive: Vector  # in the whole query
    all_negative: Vector


def binary_curve(
    y_true: ArrayLike, y_score: ArrayLike, sample_weight: Weights, qid: Queries, pos_label: Any
) -> tuple[Ranking, Curve]:
    ranking, positive = rank_binary(y_true, y_score, sample_weight, qid, pos_label, stacklevel=4)
    return ranking, curve_of(ranking, positive)


def curve_of(ranking: Ranking, positive: Mask) -> Curve:
    positives = np.add.reduceat(np.where(positive, ranking.weight, 0.0), ranking.blocks)
    negatives = np.add.reduceat(np.where(positive, 0.0, ranking.weight), ranking.blocks)
    running = _running if ranking.first.size > 2 else lambda values, first: np.cumsum(values)
    tp, fp = running(positives, ranking.first), running(negatives, ranking.first)
    last, n_blocks = ranking.first[1:] - 1, np.diff(ranking.first)
    return Curve(
        positives, negatives, tp, fp, np.repeat(tp[last], n_blocks), np.repeat(fp[last], n_blocks)
    )


def rank_binary(
    y_true: ArrayLike,
    y_score: ArrayLike,
    sample_weight: Weights,
    qid: Queries,
    pos_label: Any,
    stacklevel: int = 3,
) -> tuple[Ranking, Mask]:
    """The ranking of the queries with both classes, and which of its rows are positive."""
    y = check_column(y_true, "y_true")
    is_positive = _positives(y, pos_label)
    ranking = rank_rows(y.size, y_score, sample_weight, qid)
    positive = is_positive[ranking.rows]
    n_positive = np.add.reduceat(positive, ranking.starts[:-1], dtype=np.intp)
    both = (n_positive > 0) & (n_positive < np.diff(ranking.starts))
    if not both.all():
        leave_out(ranking, both, "rows of both classes with positive weight", stacklevel)
        positive = positive[np.repeat(both, np.diff(ranking.starts))]
        ranking = ranking.only(both)
    return ranking, positive


def mean_over_queries(ranking: Ranking, value: Vector, defined: Mask, need: str) -> float:
    if not defined.all():
        leave_out(ranking, defined, need, stacklevel=3)
    return float(value[defined].mean())


def leave_out(ranking: Ranking, kept: Mask, need: str, stacklevel: int) -> None:
    """Raise if nothing is left, otherwise warn; `stacklevel` counts from the caller of this
    function.
    """
    n_left_out = kept.size - np.count_nonzero(kept)
    if not ranking.grouped:
        raise ValueError(
            f"The metric is undefined here: it needs {need}. Check y_true and sample_weight."
        )
    if n_left_out == kept.size:
        raise ValueError(
            f"None of the {kept.size} queries has {need}; check that qid and y_true belong together."
        )
    warnings.warn(
        f"{n_left_out} of {kept.size} queries left out of the mean: they lack {need}.",
        UserWarning,
        stacklevel=stacklevel + 1,
    )


# --- Counting pairs ---


def share_in_order(counts: Vector, ties: float) -> Vector:
    right, tied, wrong = counts.T
    total = right + tied + wrong
    return np.divide(right + ties * tied, total, out=np.full_like(total, np.nan), where=total > 0)


def count_edges(
    ranking: "Ranking", grade: NDArray[np.int64], upper: int, lowers: list[int]
) -> Vector:
    """Pairs of one preferred class against all classes it is preferred to, per query."""
    chosen = np.flatnonzero(np.isin(grade, [upper, *lowers]))
    side = (grade[chosen] == upper).astype(np.int64)
    starts = np.searchsorted(chosen, ranking.starts)
    return count_pairs(starts, ranking.tie[chosen], side, ranking.weight[chosen], 1)


@compiled
def _count_segment(tie, code, weight, bit, lo, hi):  # type: ignore[no-untyped-def]
    """Weight of right, tied and wrong pairs among the rows lo:hi, best first; `bit` of the code
    says upper or lower.
    """
    right = tied = wrong = 0.0
    upper_ahead = lower_ahead = 0.0
    i = lo
    while i < hi:
        upper = lower = 0.0
        block = tie[i]
        while i < hi and tie[i] == block:
            if (code[i] >> bit) & 1:
                upper += weight[i]
            else:
                lower += weight[i]
            i += 1
        right += upper_ahead * lower
        tied += upper * lower
        wrong += lower_ahead * upper
        upper_ahead += upper
        lower_ahead += lower
    return right, tied, wrong


@compiled
def count_pairs(starts, tie, code, weight, n_bits):  # type: ignore[no-untyped-def]
    """Weight of right, tied and wrong pairs of different code, one line per query.

    Two different codes have exactly one highest differing bit. So for each bit, from the highest
    down, the rows that agree above it form a segment, the bit itself says upper or lower, and every
    pair is counted once. Splitting each segment stably by the bit prepares the next one and keeps
    the order by score: O(n) for each bit.
    """
    n_queries = starts.size - 1
    counts = np.zeros((n_queries, 3))
    # The two sets of buffers take turns; a single bit needs no split, so nothing of the caller's is
    # overwritten.
    from_tie, from_code, from_weight = tie, code, weight
    if n_bits > 1:
        from_tie, from_code, from_weight = tie.copy(), code.copy(), weight.copy()
    to_tie, to_code, to_weight = np.empty_like(tie), np.empty_like(code), np.empty_like(weight)
    for bit in range(n_bits - 1, -1, -1):
        for q in range(n_queries):
            lo = starts[q]
            while lo < starts[q + 1]:
                hi = lo
                key = from_code[lo] >> (bit + 1)
                n_lower = 0
                while hi < starts[q + 1] and from_code[hi] >> (bit + 1) == key:
                    n_lower += 1 - ((from_code[hi] >> bit) & 1)
                    hi += 1
                right, tied, wrong = _count_segment(from_tie, from_code, from_weight, bit, lo, hi)
                counts[q, 0] += right
                counts[q, 1] += tied
                counts[q, 2] += wrong
                upper, lower = lo + n_lower, lo
                for i in range(lo, hi if bit > 0 else lo):
                    if (from_code[i] >> bit) & 1:
                        at = upper
                        upper += 1
                    else:
                        at = lower
                        lower += 1
                    to_tie[at], to_code[at], to_weight[at] = (
                        from_tie[i],
                        from_code[i],
                        from_weight[i],
                    )
                lo = hi
        from_tie, to_tie = to_tie, from_tie
        from_code, to_code = to_code, from_code
        from_weight, to_weight = to_weight, from_weight
    return counts


# --- Validation ---


def check_column(values: Any, name: str, n: int | None = None) -> NDArray:
    column = np.asarray(values)
    if column.ndim != 1:
        hint = (
            " Pass one column, such as predict_proba(X)[:, 1]."
            if name == "y_score" and column.ndim == 2
            else ""
        )
        raise ValueError(
            f"{name} has shape {column.shape}; a one-dimensional array is expected, one value per row.{hint}"
        )
    if column.size == 0:
        raise ValueError(f"{name} is empty; at least one row of each class is needed.")
    if n is not None and column.size != n:
        raise ValueError(
            f"{name} has {column.size} values but y_true has {n}; both need one value per row."
        )
    return np.ascontiguousarray(column)


def _numbers(values: Any, name: str, n: int) -> NDArray:
    column = check_column(values, name, n)
    if column.dtype.kind not in "biuf":
        try:
            column = (
                column.astype(np.float64)
                if column.dtype.kind == "O"
                else column.astype("f8", casting="safe")
            )
        except (TypeError, ValueError):
            raise ValueError(
                f"{name} has dtype {column.dtype}; real numbers are expected."
            ) from None
    if column.dtype.kind == "f" and np.isnan(column).any():
        raise ValueError(
            f"{name} is NaN in {np.count_nonzero(np.isnan(column))} of {n} rows (first in row "
            f"{np.flatnonzero(np.isnan(column))[0]}); remove these rows or give them a value."
        )
    return column


def _weights(sample_weight: Weights, n: int) -> Vector:
    if sample_weight is None:
        return np.ones(n)
    w = _numbers(sample_weight, "sample_weight", n).astype(np.float64)
    refuse_invalid_weights(w)
    return w


def query_numbers(qid: Any, n: int) -> Index:
    """Number the queries 0, 1, ... ; arrays through numpy, anything else (tuples, mixed types)
    through a dict.
    """
    labels = np.asarray(qid) if hasattr(qid, "__array__") else qid
    if isinstance(labels, np.ndarray) and labels.dtype != object:
        labels = (
            _numbers(labels, "qid", n)
            if labels.dtype.kind == "f"
            else check_column(labels, "qid", n)
        )
        return (
            _numbered_integers(labels)
            if labels.dtype.kind in "iu"
            else np.unique(labels, return_inverse=True)[1]
        )
    labels = list(labels)
    if len(labels) != n:
        raise ValueError(
            f"qid has {len(labels)} values for {n} rows; it names the group of each row (group sizes are not accepted)."
        )
    number: dict[Hashable, int] = {}
    numbers = np.fromiter(
        (number.setdefault(q, len(number)) for q in labels), dtype=np.intp, count=n
    )
    if any(q is None or q != q for q in number):
        raise ValueError(
            "qid has missing values (None or NaN); give every row a query or remove the row."
        )
    return numbers


def _numbered_integers(labels: NDArray[np.integer]) -> Index:
    """Numbers in sorted order of the labels; a table instead of a sort where the labels lie close
    together.
    """
    low, high = int(labels.min()), int(labels.max())
    if high - low > 4 * labels.size:
        return np.unique(labels, return_inverse=True)[1]
    place = (
        labels.astype(np.intp) - low
        if high <= np.iinfo(np.intp).max
        else (labels - labels.min()).astype(np.intp)
    )
    present = np.zeros(high - low + 1, dtype=bool)
    present[place] = True
    return (np.cumsum(present) - 1)[place]


def sorted_labels(y: NDArray) -> tuple[NDArray, NDArray[np.int64]]:
    """The distinct labels in sorted order and the number of each row's label."""
    try:
        labels, number = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y})
        raise ValueError(
            f"y_true mixes labels of types {', '.join(kinds)}, which have no order; use one type."
        ) from None
    if y.dtype.kind == "f" and np.isnan(labels[-1]):
        raise ValueError("y_true holds NaN; give every row a label or remove the row.")
    return labels, number.astype(np.int64, copy=False)


def _positives(y: NDArray, pos_label: Any) -> Mask:
    """Which rows are positive. Numeric labels are told apart by their extremes, which spares a sort
    of y.
    """
    if (
        y.dtype.kind in "biuf"
        and not np.isnan(low := y.min())
        and np.all((y == low) | (y == y.max()))
    ):
        labels = np.unique([low, y.max()])
    else:
        labels, _ = sorted_labels(y)
    if labels.size != 2:
        shown = ", ".join(repr(label) for label in labels[:5].tolist()) + (
            ", ..." if labels.size > 5 else ""
        )
        what = "holds one class only" if labels.size == 1 else f"holds {labels.size} labels"
        remedy = (
            ""
            if labels.size == 1
            else "; wmw and ndcg take grades, or make y_true binary (y_true == label)"
        )
        raise ValueError(
            f"y_true {what} ({shown}); two are expected, one positive and one negative{remedy}."
        )
    if pos_label is None:
        return y == labels[1]
    if pos_label not in labels.tolist():
        raise ValueError(
            f"pos_label={pos_label!r} is not a label of y_true, which holds {labels.tolist()}."
        )
    return y == pos_label
