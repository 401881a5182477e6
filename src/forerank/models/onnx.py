"""Export to an ONNX graph, which needs no Python; its scores are checked against the model's."""

from typing import Any

import numpy as np
from sklearn.preprocessing import MaxAbsScaler

import forerank
from forerank._text import listed
from forerank._typing import Vector
from forerank.data.additive_columns import AdditiveColumns
from forerank.data.files import opened_atomically
from forerank.data.transformers import CategoryColumns, NumberColumns, TextColumn, one_hot_columns
from forerank.data.word_counts import WordCounts
from forerank.models.file import Model
from forerank.models.onnx_curves import curve_terms
from forerank.models.onnx_graph import Graph
from forerank.models.onnx_trees import synthetic_columns, tree_score
from forerank.models.ranked_list import unused_names
from forerank.models.scoring import (
    ScorePart,
    last_step,
    matrix_scores,
    score_parts,
    table_scores,
)
from forerank.models.tables import n_matrix_columns

__all__ = ["save_onnx", "to_onnx"]

# Largest difference between scores of the graph and of the model, relative to the largest score:
# the graph looks up the weights of categories as 32-bit floats.
_MAX_DIFFERENCE = 1e-5
# Number of synthetic rows on which graph and model are compared, plus one per category.
_ROWS_COMPARED = 200
# A category that no table has: it contains a NUL.
_UNKNOWN = "\x00 no such value"


def save_onnx(model: Model, path: Any, *, force: bool = False) -> float:
    """Write the scorer of a model as an ONNX file; returns the largest difference of scores.

    The file is written atomically, and only if its scores agree with the model's.
    """
    graph = to_onnx(model)
    difference = _difference(model, graph)
    with opened_atomically(path, force=force) as file:
        file.write(graph.SerializeToString())
    return difference


def to_onnx(model: Model) -> Any:
    """A graph from columns to `score` (`forerank_score` if a column has that name).

    The graph of a calibrated model has the output `probability` as well.

    A table has an input per column, each of shape (rows, 1): doubles for numbers (NaN is missing)
    and for dates (days since 1970), strings for categories (the empty string is missing). A matrix
    is one input `X`. Texts raise ValueError.
    """
    try:
        from onnx import checker, helper
    except ImportError:
        message = "ONNX files are written with onnx: pip install 'forerank[onnx]'"
        raise ImportError(message) from None
    build = Graph()
    parts, constant = score_parts(model)
    terms = [build.constant([[constant]])]
    for part in parts:
        terms += _part_terms(build, part, table=bool(model.columns))
    score, probability = unused_names(list(model.columns), ("score", "probability"))
    build.output("Sum", terms, score)
    calibration = getattr(last_step(model), "calibration_", None)
    if calibration is not None:
        slope, offset = (build.constant([[value]]) for value in calibration)
        scaled = build.add("Mul", [score, slope])
        build.output("Sigmoid", [build.add("Add", [scaled, offset])], probability)
    values = (build.nodes, "forerank", build.inputs, build.outputs)
    graph = helper.make_graph(*values, initializer=build.constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 4)]
    proto = helper.make_model(graph, opset_imports=opsets, producer_name="forerank", ir_version=8)
    proto.producer_version = forerank.__version__
    checker.check_model(proto)
    return proto


def _part_terms(build: Graph, part: ScorePart, *, table: bool) -> list[str]:
    """Terms of a part of the score, times its weight."""
    if part.ensemble is not None:
        score = tree_score(build, part.columns, part.ensemble, table=table)
        return [build.add("Mul", [score, build.constant([[part.weight]])])]
    assert part.coef is not None
    weights = part.weight * part.coef
    terms = [build.constant([[part.weight * part.intercept]])]
    if table:
        return terms + _table_terms(build, part.columns, weights)
    return [*terms, _matrix_term(build, part.columns, weights)]


def _table_terms(build: Graph, steps: Any, coef: Vector) -> list[str]:
    """Terms of the score, one for each column."""
    terms = []
    for name, step, columns in steps.transformers_:
        weights = coef[steps.output_indices_[name]]
        if isinstance(step, NumberColumns):
            for k, column in enumerate(columns):
                build.input(column)
                centred = build.centred(column, [[step.median_[k]]], [[step.mean_[k]]])
                weight = build.constant([[weights[k] / step.scale_[k]]])
                terms.append(build.add("Mul", [centred, weight]))
        elif isinstance(step, CategoryColumns):
            first = 0
            for column, encoder, width in zip(columns, step.encoders_, step.widths_, strict=True):
                build.input(column, "STRING")
                part = weights[first : first + width]
                terms.append(_category_lookup(build, column, encoder, part))
                first += width
        elif isinstance(step, TextColumn):
            raise ValueError(
                f"The text column {columns[0]!r} cannot be exported to ONNX; "
                "fit the model without it."
            )
        elif isinstance(step, AdditiveColumns):
            parts = np.split(weights, np.cumsum(step.widths_)[:-1])
            for k, column in enumerate(columns):
                terms += curve_terms(build, step, k, build.input(column), parts[k])
        else:
            raise ValueError(
                f"The columns {listed(columns)} are prepared by a {type(step).__name__}, which "
                "cannot be exported to ONNX."
            )
    return terms


def _category_lookup(build: Graph, column: str, encoder: Any, weights: Vector) -> str:
    """The weight of each value; unknown values have that of infrequent ones, if there is one."""
    from onnx import TensorProto

    values = encoder.categories_[0]
    lookup = np.append(weights, 0.0)
    unknown = lookup[one_hot_columns(encoder, np.array([_UNKNOWN], dtype=object))[0]]
    weight = build.add(
        "LabelEncoder",
        [column],
        domain="ai.onnx.ml",
        keys_strings=[str(value) for value in values],
        values_floats=lookup[one_hot_columns(encoder, values)].tolist(),
        default_float=float(unknown),
    )
    return build.add("Cast", [weight], to=TensorProto.DOUBLE)


def _matrix_term(build: Graph, steps: Any, coef: Vector) -> str:
    X = build.input("X", width=coef.size)
    if isinstance(steps, MaxAbsScaler):
        return build.add("MatMul", [X, build.constant((coef / steps.scale_)[:, None])])
    if isinstance(steps, WordCounts):
        raise ValueError(
            "The tf-idf of a matrix cannot be exported to ONNX; fit the model on plain columns."
        )
    imputer, scaler = steps[0], steps[1]
    centred = build.centred(X, imputer.statistics_[None, :], scaler.mean_[None, :])
    return build.add("MatMul", [centred, build.constant((coef / scaler.scale_)[:, None])])


def _difference(model: Model, graph: Any) -> float:
    """The largest difference between scores of the graph and of the model, on synthetic rows."""
    rng = np.random.default_rng(0)
    if model.columns:
        frame = _synthetic_rows(model, rng)
        expected = table_scores(model)(frame)
        inputs = {name: frame[[name]].to_numpy() for name in frame.columns}
    else:
        X = rng.normal(size=(_ROWS_COMPARED, n_matrix_columns(model)))
        expected, inputs = matrix_scores(model, X, "synthetic rows"), {"X": X}
    difference = float(np.abs(_graph_scores(graph, inputs)[:, 0] - expected).max())
    limit = _MAX_DIFFERENCE * max(1.0, float(np.abs(expected).max()))
    if not difference <= limit:
        raise RuntimeError(
            f"The scores of the ONNX graph differ from those of the model by {difference:.3g} "
            f"(allowed: {limit:.3g}); no file was written."
        )
    return difference


def _synthetic_rows(model: Model, rng: np.random.Generator) -> Any:
    """Rows with all categories of a model, unknown ones, and missing values."""
    import pandas as pd

    last = score_parts(model)[0][-1]
    if last.ensemble is not None:
        return pd.DataFrame(synthetic_columns(last.columns, last.ensemble, _ROWS_COMPARED, rng))
    transformers = [(step, names) for _, step, names in last.columns.transformers_]
    encoders = [e for step, _ in transformers for e in getattr(step, "encoders_", [])]
    n_rows = _ROWS_COMPARED + max((len(e.categories_[0]) for e in encoders), default=0)
    columns: dict[str, Any] = {}
    for step, names in transformers:
        for k, name in enumerate(names):
            if isinstance(step, NumberColumns):
                values = step.mean_[k] + 3.0 * step.scale_[k] * rng.normal(size=n_rows)
                columns[name] = np.where(rng.uniform(size=n_rows) < 0.1, np.nan, values)
            elif isinstance(step, AdditiveColumns):
                spline = step.splines_[k]
                values = rng.uniform(1.5 * spline.low - 0.5 * spline.high, spline.high, n_rows)
                values[::3] = rng.uniform(spline.low, 1.5 * spline.high - 0.5 * spline.low)
                columns[name] = np.where(rng.uniform(size=n_rows) < 0.1, np.nan, values)
            else:
                known = [*step.encoders_[k].categories_[0], "", "no such value"]
                columns[name] = np.array(known, dtype=object)[np.arange(n_rows) % len(known)]
    return pd.DataFrame(columns)


def _graph_scores(graph: Any, inputs: dict[str, Any]) -> Vector:
    """Scores by onnxruntime if it is installed, otherwise by the reference evaluator of onnx."""
    try:
        from onnxruntime import InferenceSession
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        return np.asarray(next(iter(ReferenceEvaluator(graph).run(None, inputs))))
    return np.asarray(InferenceSession(graph.SerializeToString()).run(None, inputs)[0])
