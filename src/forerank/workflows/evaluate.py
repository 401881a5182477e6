"""Measures of a model on labelled rows."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Index, Vector
from forerank.data.frames import column_name
from forerank.data.labels import Labels, read_labels
from forerank.data.problem import matrix_rows
from forerank.data.readers import check_columns
from forerank.data.source import DataSource, ReadOptions
from forerank.metrics.estimates import Estimate
from forerank.metrics.probability_bounds import ProbabilityBounds, probability_bounds
from forerank.models import Model
from forerank.models.scoring import last_step, matrix_scores, probability_function, table_scores
from forerank.models.tables import model_frame, model_source, model_table
from forerank.workflows.rankers import estimates_of

__all__ = ["Evaluation", "evaluate"]


@dataclass(frozen=True)
class Evaluation:
    """Measures of a ranking.

    Attributes
    ----------
    rows : int
    classes : dict
        Number of rows of each label, the positive one first; see `forerank.data.labels.Labels`.
    measures : list of Estimate
    parts : dict
        The measures for each value of the column `by`; empty where its rows are of one class.
    y, scores : arrays
        Labels (True, or grades) and scores, in the order of the rows.
    notes : list of str
        Information on rows and labels.
    bounds : ProbabilityBounds or None
        What the log loss of the probabilities says about the AUC; for calibrated models of two
        classes without groups.
    """

    rows: int
    classes: dict[str, int]
    measures: list[Estimate]
    parts: dict[str, list[Estimate]]
    y: NDArray
    scores: Vector
    notes: list[str] = field(default_factory=list)
    bounds: ProbabilityBounds | None = None


def evaluate(
    model: Model,
    data: Any,
    target: str | None = None,
    *,
    by: str | None = None,
    k: Iterable[int] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    delimiter: str | None = None,
    allow_missing: bool = False,
    encoding: str | None = None,
    format: str | None = None,
    skip_unlabelled: bool | None = None,
) -> Evaluation:
    """Measures of a model on labelled rows.

    Parameters
    ----------
    model : Model
    data, target, delimiter, encoding, format, skip_unlabelled
        As in `forerank.workflows.fit.fit`; target, encoding and skip_unlabelled are by default
        those of the model.
    by : str, optional
        A column; the measures are also given for the rows of each of its values.
    k : iterable of int, optional
        Numbers of first rows for precision and recall, counted in this file, regardless of the
        length of the list that the model was fitted for. By default 10, 100 and the k of the
        measure that the model was fitted for.
    confidence : float
        Of the intervals.
    seed : int
        Of the resamples.
    allow_missing : bool
        Treat missing columns of the model as empty ones.
    """
    if skip_unlabelled is None:
        skip_unlabelled = bool(model.summary.get("skip_unlabelled"))
    options = ReadOptions(delimiter, encoding, format, skip_unlabelled=skip_unlabelled)
    source = model_source(model, data, options)
    if source.is_table:
        rows = _scored_table(model, source, target, by, allow_missing)
    elif by is not None:
        raise source.error(f"the columns of a matrix have no names; do not pass by={by!r}")
    else:
        rows = _scored_matrix(model, source, target)
    labels, scores, groups = rows.labels, rows.scores, rows.groups
    y = labels.y * labels.unit if labels.graded else labels.y
    depths = None if k is None else list(k)
    settings: dict[str, Any] = {"k": depths, "confidence": confidence, "random_state": seed}

    def measured(part: Index) -> list[Estimate]:
        qid = None if groups is None else groups[part]
        return estimates_of(last_step(model), y[part], scores[part], qid=qid, **settings)

    measures = measured(np.arange(y.size))
    parts: dict[str, list[Estimate]] = {}
    if rows.parts is not None:
        order = np.argsort(rows.parts, kind="stable")
        values, begins = np.unique(rows.parts[order], return_index=True)
        for value, part in zip(values, np.split(order, begins[1:]), strict=True):
            try:
                parts[str(value)] = measured(part)
            except ValueError:  # rows of one class only
                parts[str(value)] = []
    notes = rows.notes + labels.notes
    function, bounds = probability_function(model), None
    if function is not None and groups is None and not labels.graded:
        bounds = probability_bounds(y, function(scores))
    return Evaluation(int(y.size), labels.classes, measures, parts, y, scores, notes, bounds)


@dataclass(frozen=True)
class _ScoredRows:
    """Labels and scores of rows, their groups, and their values in the column `by`."""

    labels: Labels
    scores: Vector
    groups: NDArray | None
    notes: list[str]
    parts: NDArray | None = None


def _scored_table(
    model: Model, source: DataSource, target: Any, by: str | None, allow_missing: bool
) -> _ScoredRows:
    target = target or model.target
    frame = model_table(model, source)
    if target is None:
        raise source.error("no target was given, and the model has none; pass target")
    target = column_name(target)
    check_columns(source.path, list(frame.columns), target, by, model.group)
    notes = []
    if source.options.skip_unlabelled:
        notes = source.select_labelled(frame[target], target)
        frame = frame if source.selected is None else frame.iloc[source.selected]
    labels = _labels(model, source, frame[target], target)
    columns = model_frame(model, frame, source.path, allow_missing=allow_missing)
    scores = table_scores(model)(columns)
    groups = None if model.group is None else source.group_names(frame, model.group)
    parts = None
    if by is not None:
        values = frame[by].astype(object)
        parts = values.where(frame[by].notna(), "(missing)").astype(str).to_numpy()
    return _ScoredRows(labels, scores, groups, notes, parts)


def _scored_matrix(model: Model, source: DataSource, target: Any) -> _ScoredRows:
    matrix, notes = matrix_rows(source, target, zero_based=model.summary.get("zero_based"))
    if model.summary.get("groups") is not None and matrix.qid is None:
        raise source.error("the model ranks within groups, and the file has no groups (qid)")
    labels = _labels(model, source, matrix.y, "label")
    return _ScoredRows(labels, matrix_scores(model, matrix.X, source.path), matrix.qid, notes)


def _labels(model: Model, source: DataSource, column: Any, target: str) -> Labels:
    """Labels of the two classes of the model, or grades."""
    positive, negative = model.summary.get("positive"), model.summary.get("negative")
    return read_labels(column, target, positive, source.error, negative)
