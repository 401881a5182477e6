"""Models for other surroundings: a plain scikit-learn pipeline, or an ONNX graph that needs no
Python.

Both are made from what a linear model has learned, and both are checked against it.
"""

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import LinearSVC

import forerank
from forerank._text import listed
from forerank._typing import Vector
from forerank.data.files import opened_atomically
from forerank.data.transformers import (
    CategoryColumns,
    NumberColumns,
    TableColumns,
    TextColumn,
    one_hot_columns,
)
from forerank.models import Model
from forerank.models.ranked_list import free_names
from forerank.models.scoring import matrix_scores, n_matrix_columns, table_scores, two_steps

__all__ = ["save_onnx", "to_onnx", "to_sklearn"]

# Scores of the graph and of the model may differ by this share of the largest score.
_PARITY = 1e-5


# --- scikit-learn ---


def to_sklearn(model: Model) -> Pipeline:
    """The same scores from scikit-learn's classes alone, for a place where forerank is not
    installed.

    Numbers, categories and texts become SimpleImputer, StandardScaler, OneHotEncoder and
    TfidfVectorizer in a ColumnTransformer, a linear ranker a LinearSVC with its weights. Rows are
    frames with strings as they are; a missing category must be NaN, a missing text an empty string.
    Dates have no counterpart there and are refused.
    """
    steps, ranker = two_steps(model)
    weights, intercept = _linear(ranker)
    classifier = LinearSVC()
    classifier.coef_, classifier.intercept_ = weights[None, :], np.array([intercept])
    classifier.classes_ = ranker.classes_ if ranker.classes_.size == 2 else np.array([False, True])
    classifier.n_features_in_ = weights.size
    classifier.n_iter_ = 0
    return Pipeline([("columns", _plain_columns(steps, model.columns)), ("ranker", classifier)])


def _linear(ranker: Any) -> tuple[Vector, float]:
    if getattr(ranker, "coef_", None) is None:
        raise ValueError(
            f"{type(ranker).__name__} is not linear; only linear rankers can be exported."
        )
    return np.asarray(ranker.coef_, dtype=np.float64).ravel(), float(np.ravel(ranker.intercept_)[0])


def _plain_columns(steps: Any, model_columns: dict[str, str]) -> Any:
    if not isinstance(steps, TableColumns):
        return steps  # scikit-learn's own, of a matrix
    import pandas as pd

    parts: list[tuple[str, Any, Any]] = []
    example: dict[str, Any] = {}
    for name, step, columns in steps.transformers_:
        if any(model_columns[column].startswith("date") for column in columns):
            raise ValueError(
                f"scikit-learn has no step for dates ({listed(columns)}); leave them out of the model."
            )
        if isinstance(step, NumberColumns):
            parts.append((name, FrozenEstimator(_numbers(step)), list(columns)))
            example |= {
                column: [value] for column, value in zip(columns, step.median_, strict=True)
            }
        elif isinstance(step, CategoryColumns):
            for column, encoder in zip(columns, step.encoders_, strict=True):
                fill = SimpleImputer(strategy="constant", fill_value="")
                fill.fit(pd.DataFrame({column: [""]}, dtype=object))
                both = Pipeline([("missing", fill), ("values", encoder)])
                parts.append((f"category {column}", FrozenEstimator(both), [column]))
                example[column] = [encoder.categories_[0][0]]
        elif isinstance(step, TextColumn):
            parts.append((name, FrozenEstimator(step.tfidf_), columns[0]))
            example[columns[0]] = [""]
    whole = ColumnTransformer(parts, sparse_threshold=1.0 if steps.sparse_output_ else 0.0)
    frame = pd.DataFrame({column: example[column] for column in steps.feature_names_in_})
    whole.fit(frame)
    # What was frozen for the fit need not stay so.
    whole.transformers_ = [
        (name, step.estimator if isinstance(step, FrozenEstimator) else step, columns)
        for name, step, columns in whole.transformers_
    ]
    return whole


def _numbers(step: NumberColumns) -> Pipeline:
    """Fitted on the least rows that have this median, mean and scale."""
    import pandas as pd

    median = SimpleImputer(strategy="median").fit(
        pd.DataFrame([step.median_], columns=step.feature_names_in_)
    )
    scale = StandardScaler().fit(np.vstack([step.mean_ - step.scale_, step.mean_ + step.scale_]))
    scale.mean_, scale.scale_, scale.var_ = (
        step.mean_.copy(),
        step.scale_.copy(),
        step.scale_**2,
    )  # to the last digit
    return Pipeline([("missing", median), ("scale", scale)])


# --- ONNX ---


def save_onnx(model: Model, path: Any, *, force: bool = False) -> float:
    """Write a model's scorer as an ONNX file; returns the largest difference of scores that was
    found.

    The file appears whole or not at all, and only if its scores agree with the model's.
    """
    graph = to_onnx(model)
    difference = _difference(model, graph)
    with opened_atomically(path, force=force) as file:
        file.write(graph.SerializeToString())
    return difference


def to_onnx(model: Model) -> Any:
    """A graph from columns to `score` (`forerank_score` where a column has that name).

    Of a model that was calibrated the graph gives `probability` as well.

    A table has an input per column, each of shape (rows, 1): doubles for numbers (NaN is missing)
    and for dates (days since 1970), strings for categories (the empty string is missing). A matrix
    is one input `X`. Texts are refused.
    """
    try:
        from onnx import TensorProto, checker, helper
    except ImportError:
        raise ImportError(
            "ONNX files are written with onnx: pip install 'forerank[onnx]'"
        ) from None
    _, ranker = two_steps(model)
    weights, intercept = _linear(ranker)
    build = _Graph()
    if model.columns:
        inputs = _table_terms(build, model, weights)
    else:
        inputs = [helper.make_tensor_value_info("X", TensorProto.DOUBLE, [None, weights.size])]
        build.terms.append(_matrix_term(build, model.estimator[0], weights))
    build.terms.append(build.constant([[intercept]]))
    score, probability = free_names(list(model.columns), ("score", "probability"))
    build.add("Sum", build.terms, score)
    names = [score]
    calibration = getattr(ranker, "calibration_", None)
    if calibration is not None:
        slope, offset = (build.constant([[value]]) for value in calibration)
        build.add(
            "Sigmoid", [build.add("Add", [build.add("Mul", [score, slope]), offset])], probability
        )
        names.append(probability)
    outputs = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, [None, 1]) for name in names]
    graph = helper.make_graph(build.nodes, "forerank", inputs, outputs, initializer=build.constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 4)]
    made = helper.make_model(graph, opset_imports=opsets, producer_name="forerank", ir_version=8)
    made.producer_version = forerank.__version__
    checker.check_model(made)
    return made


class _Graph:
    """Nodes and constants of a graph, and the terms that are to be added up."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.terms: list[str] = []

    def constant(self, values: Any) -> str:
        from onnx import numpy_helper

        name = f"forerank/constant/{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype=np.float64), name))
        return name

    def add(self, kind: str, inputs: list[str], out: str | None = None, **attributes: Any) -> str:
        from onnx import helper

        name = out or f"forerank/value/{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def filled(self, name: str, fill: Any) -> str:
        """With what is not a finite number replaced."""
        zero = self.add("Sub", [name, name])  # NaN for NaN and for infinite numbers
        return self.add("Where", [self.add("IsNaN", [zero]), self.constant(fill), name])


def _table_terms(build: _Graph, model: Model, weights: Vector) -> list[Any]:
    from onnx import TensorProto, helper

    steps, inputs = model.estimator[0], []
    for name, step, columns in steps.transformers_:
        part = weights[steps.output_indices_[name]]
        if isinstance(step, NumberColumns):
            for k, column in enumerate(columns):
                inputs.append(helper.make_tensor_value_info(column, TensorProto.DOUBLE, [None, 1]))
                centred = build.add(
                    "Sub",
                    [build.filled(column, [[step.median_[k]]]), build.constant([[step.mean_[k]]])],
                )
                build.terms.append(
                    build.add("Mul", [centred, build.constant([[part[k] / step.scale_[k]]])])
                )
        elif isinstance(step, CategoryColumns):
            first = 0
            for column, encoder, width in zip(columns, step.encoders_, step.widths_, strict=True):
                inputs.append(helper.make_tensor_value_info(column, TensorProto.STRING, [None, 1]))
                build.terms.append(
                    _category_term(build, column, encoder, part[first : first + width])
                )
                first += width
        else:
            raise ValueError(
                f"The text column {columns[0]!r} cannot be exported to ONNX; leave it out of the model."
            )
    return inputs


def _category_term(build: _Graph, column: str, encoder: Any, weights: Vector) -> str:
    """Each value straight to its weight; unknown values to that of the rare ones, where there is
    one.
    """
    from onnx import TensorProto

    values = encoder.categories_[0]
    lookup = np.append(weights, 0.0)
    unknown = lookup[one_hot_columns(encoder, np.array(["\x00 no such value"], dtype=object))[0]]
    found = build.add(
        "LabelEncoder",
        [column],
        domain="ai.onnx.ml",
        keys_strings=[str(value) for value in values],
        values_floats=lookup[one_hot_columns(encoder, values)].tolist(),
        default_float=float(unknown),
    )
    return build.add("Cast", [found], to=TensorProto.DOUBLE)


def _matrix_term(build: _Graph, steps: Any, weights: Vector) -> str:
    if isinstance(steps, MaxAbsScaler):
        return build.add("MatMul", ["X", build.constant((weights / steps.scale_)[:, None])])
    imputer, scaler = steps[0], steps[1]
    centred = build.add(
        "Sub",
        [build.filled("X", imputer.statistics_[None, :]), build.constant(scaler.mean_[None, :])],
    )
    return build.add("MatMul", [centred, build.constant((weights / scaler.scale_)[:, None])])


def _difference(model: Model, graph: Any, n_rows: int = 200) -> float:
    """The largest difference between scores of the graph and of the model, on made-up rows with all
    their values.
    """
    import pandas as pd

    rng = np.random.default_rng(0)
    if not model.columns:
        X = rng.normal(size=(n_rows, n_matrix_columns(model)))
        expected, given = matrix_scores(model, X, "made-up rows"), {"X": X}
    else:
        columns: dict[str, Any] = {}
        n_rows += max((len(e.categories_[0]) for e in _encoders(model)), default=0)
        for _, step, names in model.estimator[0].transformers_:
            for k, name in enumerate(names):
                if isinstance(step, NumberColumns):
                    values = step.mean_[k] + 3.0 * step.scale_[k] * rng.normal(size=n_rows)
                    columns[name] = np.where(rng.uniform(size=n_rows) < 0.1, np.nan, values)
                else:
                    known = [*step.encoders_[k].categories_[0], "", "no such value"]
                    columns[name] = np.array(known, dtype=object)[np.arange(n_rows) % len(known)]
        frame = pd.DataFrame(columns)
        expected = table_scores(model)(frame)
        given = {name: frame[[name]].to_numpy() for name in columns}
    found = _run(graph, given)[:, 0]
    difference = float(np.abs(found - expected).max())
    if not difference <= _PARITY * max(1.0, float(np.abs(expected).max())):
        raise RuntimeError(
            f"The ONNX graph gives scores that differ by {difference:.2e}; nothing was written."
        )
    return difference


def _encoders(model: Model) -> list[Any]:
    steps = (
        step for _, step, _ in model.estimator[0].transformers_ if isinstance(step, CategoryColumns)
    )
    return [encoder for step in steps for encoder in step.encoders_]


def _run(graph: Any, given: dict[str, Any]) -> Vector:
    """With onnxruntime where it is installed, else with the reference of onnx."""
    try:
        from onnxruntime import InferenceSession
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        return np.asarray(next(iter(ReferenceEvaluator(graph).run(None, given))))
    return np.asarray(InferenceSession(graph.SerializeToString()).run(None, given)[0])
