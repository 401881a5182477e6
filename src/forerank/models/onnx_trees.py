"""Boosted trees as nodes of an ONNX graph.

The trees are one node, TreeEnsembleRegressor, which compares numbers with thresholds. For every
split on a category there is a column that holds, for each row, whether its code goes right: looked
up in a table with a row for each code, and a last one for missing and unknown codes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import MaxAbsScaler

from forerank._typing import Index, Vector
from forerank.data.transformers import TableColumns
from forerank.data.tree_columns import CategoryCodes, RawColumns
from forerank.models.onnx_graph import Graph
from forerank.trees import TreeEnsemble

__all__ = ["synthetic_columns", "tree_score"]


def tree_score(build: Graph, steps: Any, ensemble: TreeEnsemble, *, table: bool) -> str:
    """The name of the sum of the trees, of shape (rows, 1)."""
    if not (ensemble.feature >= 0).any():
        raise ValueError("The trees have no split, so that all scores are equal; nothing to export")
    parts = _table_rows(build, steps) if table else [_matrix_rows(build, steps, ensemble)]
    rows = build.add("Concat", parts, axis=1) if len(parts) > 1 else parts[0]
    columns = ensemble.feature.astype(np.int64)
    threshold = ensemble.threshold.copy()
    splits = np.flatnonzero(ensemble.bits >= 0)
    if splits.size:
        rows, columns[splits] = _with_decisions(build, rows, ensemble, splits)
        threshold[splits] = 0.5
    trees = _regressor(build, rows, ensemble, columns, threshold)
    return build.add("Add", [trees, build.constant([[ensemble.constant]])])


# --- Rows of the trees ---


def _table_rows(build: Graph, steps: TableColumns) -> list[str]:
    """The columns of the matrix, one input for each column of the table."""
    parts = []
    for _, step, columns in steps.transformers_:
        for k, column in enumerate(columns):
            if isinstance(step, RawColumns) and not step.parts_[k]:
                value = build.input(column)
                difference = build.add("Sub", [value, value])  # NaN for NaN and infinite values
                missing = build.add("IsNaN", [difference])
                parts.append(build.add("Where", [missing, build.constant([[np.nan]]), value]))
            elif isinstance(step, CategoryCodes):
                parts.append(_codes(build, build.input(column, "STRING"), step, k))
            else:
                if isinstance(step, RawColumns):
                    raise ValueError(
                        f"The date column {column!r} cannot be exported to ONNX with trees; "
                        "fit the model without it, or choose the families linear or additive."
                    )
                raise ValueError(
                    f"The text column {column!r} cannot be exported to ONNX; "
                    "fit the model without it."
                )
    return parts


def _codes(build: Graph, column: str, step: CategoryCodes, k: int) -> str:
    from onnx import TensorProto

    codes = np.minimum(np.arange(len(step.values_[k])), step.max_codes - 1)
    found = build.add(
        "LabelEncoder",
        [column],
        domain="ai.onnx.ml",
        keys_strings=[str(value) for value in step.values_[k]],
        values_floats=codes.astype(float).tolist(),
        default_float=float("nan"),
    )
    return build.add("Cast", [found], to=TensorProto.DOUBLE)


def _matrix_rows(build: Graph, steps: Any, ensemble: TreeEnsemble) -> str:
    X = build.input("X", width=ensemble.n_features)
    if isinstance(steps, MaxAbsScaler):
        return build.add("Div", [X, build.constant(steps.scale_[None, :])])
    if not hasattr(steps, "__len__") or len(steps) != 2:
        return X
    imputer, scaler = steps[0], steps[1]
    centred = build.centred(X, imputer.statistics_[None, :], scaler.mean_[None, :])
    return build.add("Div", [centred, build.constant(scaler.scale_[None, :])])


# --- Splits ---


def _with_decisions(
    build: Graph, rows: str, ensemble: TreeEnsemble, splits: Index
) -> tuple[str, NDArray[np.int64]]:
    """Rows with a further column for each split on a category: 1 where the code goes right; and
    the number of this column.
    """
    from onnx import TensorProto

    parts, number = [rows], np.empty(splits.size, dtype=np.int64)
    n_columns = ensemble.n_features
    for k in np.unique(ensemble.feature[splits]):
        own = np.flatnonzero(ensemble.feature[splits] == k)
        to_right = _table_of_codes(ensemble, splits[own])
        last = to_right.shape[0] - 1
        code = build.add("Gather", [rows, build.constant(int(k), np.int64)], axis=1)
        floor = build.add("Floor", [code])
        known = build.add("And", [
            build.add("GreaterOrEqual", [floor, build.constant(0.0)]),
            build.add("Less", [floor, build.constant(float(last))]),
        ])  # fmt: skip
        row = build.add("Where", [known, floor, build.constant(float(last))])
        row = build.add("Cast", [row], to=TensorProto.INT64)
        found = build.add("Gather", [build.constant(to_right, np.uint8), row], axis=0)
        parts.append(build.add("Cast", [found], to=TensorProto.DOUBLE))
        number[own] = n_columns + np.arange(own.size)
        n_columns += own.size
    return build.add("Concat", parts, axis=1), number


def _table_of_codes(ensemble: TreeEnsemble, splits: Index) -> NDArray[np.uint8]:
    """For each code (row) and split (column), whether it goes right; missing codes are last."""
    sizes = 32 * np.diff(ensemble.first_word)[ensemble.bits[splits]]
    table = np.zeros((int(sizes.max()) + 1, splits.size), dtype=np.uint8)
    for j, node in enumerate(splits):
        first, end = ensemble.first_word[ensemble.bits[node] :][:2]
        words = ensemble.words[first:end].astype("<u4").view(np.uint8)
        inside = np.unpackbits(words, bitorder="little")
        table[: inside.size, j] = inside
        table[:, j] = table[:, j] == ensemble.missing_left[node]
    return table


def _regressor(
    build: Graph, rows: str, ensemble: TreeEnsemble, columns: NDArray[np.int64], threshold: Vector
) -> str:
    """The node with all trees; its sums are doubles, its result single precision."""
    from onnx import TensorProto, helper

    n_nodes = np.diff(ensemble.first_node)
    tree = np.repeat(np.arange(n_nodes.size), n_nodes)
    node = np.arange(tree.size) - ensemble.first_node[tree]
    leaf = ensemble.feature < 0

    def doubles(name: str, values: Vector) -> Any:
        return helper.make_tensor(name, TensorProto.DOUBLE, [values.size], values.tolist())

    found = build.add(
        "TreeEnsembleRegressor",
        [rows],
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=tree.tolist(),
        nodes_nodeids=node.tolist(),
        nodes_featureids=np.where(leaf, 0, columns).tolist(),
        nodes_modes=np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        nodes_values_as_tensor=doubles("thresholds", threshold),
        nodes_truenodeids=ensemble.left.tolist(),
        nodes_falsenodeids=ensemble.right.tolist(),
        nodes_missing_value_tracks_true=ensemble.missing_left.astype(int).tolist(),
        target_treeids=tree[leaf].tolist(),
        target_nodeids=node[leaf].tolist(),
        target_ids=np.zeros(int(leaf.sum()), dtype=int).tolist(),
        target_weights_as_tensor=doubles("values", ensemble.value[leaf]),
    )
    return build.add("Cast", [found], to=TensorProto.DOUBLE)


# --- Rows to compare ---


def synthetic_columns(
    steps: TableColumns, ensemble: TreeEnsemble, n_rows: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Columns of a table: numbers around the thresholds, all categories and unknown ones, and
    missing values.
    """
    out: dict[str, Any] = {}
    values = [v for _, step, _ in steps.transformers_ for v in getattr(step, "values_", [])]
    n_rows += max(map(len, values), default=0)
    for name, step, columns in steps.transformers_:
        for k, column in enumerate(columns):
            if isinstance(step, CategoryCodes):
                known = [*step.values_[k], "", "no such value"]
                out[column] = np.array(known, dtype=object)[np.arange(n_rows) % len(known)]
                continue
            first = steps.output_indices_[name].start + sum(step.widths_[:k])
            thresholds = ensemble.threshold[ensemble.feature == first]
            base = rng.choice(thresholds, n_rows) if thresholds.size else np.zeros(n_rows)
            numbers = base + (0.1 + np.abs(base)) * 0.1 * rng.normal(size=n_rows)
            out[column] = np.where(rng.uniform(size=n_rows) < 0.1, np.nan, numbers)
    return out
