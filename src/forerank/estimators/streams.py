"""Fits of the linear rankers on rows that are read block by block (`forerank.open_rows`)."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from forerank.estimators.part_fits import (
    prepare_part_pairs,
    prepare_part_points,
    refuse_other_columns,
    table_bits,
)
from forerank.objectives.part_rows import PairParts, part_group_counts
from forerank.pairsums.cell_tables import BITS
from forerank.solvers.path import Solve

__all__ = ["is_stream", "prepare_stream_pairs", "prepare_stream_points", "refuse_stream"]


def is_stream(X: Any) -> bool:
    """Whether X are rows of `forerank.open_rows`."""
    return getattr(type(X), "is_row_stream", False)


def refuse_stream(ranker: Any) -> None:
    """ValueError that a ranker needs its rows in memory."""
    raise ValueError(
        f"{type(ranker).__name__} needs its rows in memory; fit PairwiseRanker or PointwiseRanker "
        "on streamed rows, or fit this one on a sample: X, y, weight, qid = rows.sample()."
    )


def _read(ranker: Any, rows: Any, *given: Any) -> Any:
    """The scan of the rows; sets the classes and the columns."""
    if any(each is not None for each in given):
        raise ValueError(
            "Streamed rows have their own labels, weights and groups; name their columns in "
            "open_rows, and pass the rows alone to fit."
        )
    rows.check_unchanged()
    scan = rows.scan
    d = scan.moments.about.size
    refuse_other_columns(ranker, d)
    ranker.n_features_in_ = d
    ranker.__dict__.pop("feature_names_in_", None)
    if len(rows.columns) == d and rows.has_names:
        ranker.feature_names_in_ = np.array(rows.columns, dtype=object)
    ranker.classes_ = scan.classes
    return scan


def prepare_stream_pairs(ranker: Any, rows: Any, *given: Any) -> Solve:
    """A function that fits a ranker on all pairs of streamed rows at its present alpha."""
    scan = _read(ranker, rows, *given)
    if rows.grouped and scan.classes.size > 1:
        scan = _with_group_counts(ranker, rows, scan)
    # Rows with few stored entries would be added to sums of all columns.
    one_pass = not issparse(scan.sample.X)
    bits = max(table_bits(ranker.loss, ranker.tol), BITS)
    return prepare_part_pairs(
        ranker, scan, rows.over_parts, grouped=rows.grouped, bits=bits, one_pass=one_pass
    )


def _with_group_counts(ranker: Any, rows: Any, scan: Any) -> Any:
    """The scan with the numbers of groups without a pair; a pass over the rows where there are
    classes without an edge between them, of which the scan does not know.
    """
    edges = ranker._edges()
    parts = PairParts(ranker.loss, scan.classes.size, None if edges is None else tuple(edges))
    unordered = {frozenset(edge) for edge in parts.all_edges()}
    if 2 * len(unordered) == scan.classes.size * (scan.classes.size - 1):
        return scan
    counts = rows.over_parts(partial(part_group_counts, parts=parts)).tolist()
    names = ("n_groups", "n_unpaired_groups", "n_unpaired_rows")
    return replace(scan, **dict(zip(names, counts, strict=True)))


def prepare_stream_points(ranker: Any, rows: Any, *given: Any) -> Solve:
    """A function that fits a ranker row by row on streamed rows at its present alpha."""
    return prepare_part_points(ranker, _read(ranker, rows, *given), rows.over_parts)
