"""Trees grown by LightGBM, read into arrays."""

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from forerank._typing import Vector
from forerank.trees.ensemble import TreeEnsemble
from forerank.trees.growth import GrowthSettings, TrainingRows

__all__ = ["LightGBMGrower", "import_error", "read_booster"]

# Smallest curvature of a leaf. The curvature of a row is p (1 - p) for the logistic loss: with
# 0.2 % positives, LightGBM's own 0.001 would still do, but not after some rounds, when p is 1e-6
# for most rows. The penalty l2 keeps the values of such leaves small.
_MIN_CURVATURE = 1e-9
# Rounds in a row without a split after which boosting ends; a round may fail by the columns that
# were drawn for it.
_MOST_FAILURES = 10
# Rows below which a category is not split off by itself, and the share of the rows that replaces it
# for small data.
_ROWS_OF_CATEGORY, _SHARE_OF_CATEGORY = 100, 0.02
# Bits of LightGBM's decision_type: a category, missing values to the left, and NaN is missing.
_IS_CATEGORY, _DEFAULT_LEFT, _NAN_IS_MISSING = 1, 2, 8


def import_error() -> str | None:
    """The reason why LightGBM cannot be imported; None where it can."""
    try:
        importlib.import_module("lightgbm")
    except (ImportError, OSError) as error:  # OSError: a shared library such as libgomp is missing
        return str(error).strip().partition("\n")[0]
    return None


class LightGBMGrower:
    """Boosting by LightGBM, with the logistic loss on rows or a given gradient."""

    least_rounds = 1

    def __init__(self, rows: TrainingRows, settings: GrowthSettings) -> None:
        import lightgbm

        n_rows, self._n_features = rows.X.shape
        params = _params(rows, settings)
        # LightGBM warns of arrays that are not contiguous.
        X = rows.X
        if not (sp.issparse(X) or X.flags.c_contiguous or X.flags.f_contiguous):
            X = np.ascontiguousarray(X)
        start = np.array(np.broadcast_to(np.asarray(rows.start, dtype=np.float64), (n_rows,)))
        dataset = lightgbm.Dataset(
            X,
            label=rows.positive.astype(np.float32),
            weight=None if rows.gradient is not None else rows.weight,
            init_score=start,
            categorical_feature=list(rows.categories),
            params=params,
        )
        self._booster = lightgbm.Booster(params, dataset)
        self._objective = None if rows.gradient is None else _objective(rows.gradient)
        self._n_read = 0
        self._finished = False

    def grow(self, n_rounds: int) -> TreeEnsemble:
        """The trees of the next rounds; fewer where no split is left."""
        booster, failures = self._booster, 0
        goal = self._n_read + n_rounds
        while not self._finished and booster.current_iteration() < goal:
            failed = booster.update(fobj=self._objective)
            failures = failures + 1 if failed else 0
            self._finished = failures >= _MOST_FAILURES
        n_grown = booster.current_iteration() - self._n_read
        if n_grown == 0:
            return TreeEnsemble.empty(self._n_features)
        text = booster.model_to_string(start_iteration=self._n_read, num_iteration=n_grown)
        self._n_read += n_grown
        return read_model(text, self._n_features)


def _objective(gradient: Any) -> Any:
    return lambda scores, _: gradient(scores)


def _params(rows: TrainingRows, settings: GrowthSettings) -> dict[str, Any]:
    n_rows = rows.X.shape[0]
    of_category = min(_ROWS_OF_CATEGORY, max(1, int(_SHARE_OF_CATEGORY * n_rows)))
    return {
        "objective": "binary" if rows.gradient is None else "none",
        "boost_from_average": False,
        "learning_rate": float(settings.learning_rate),
        "num_leaves": int(settings.max_leaf_nodes),
        "min_data_in_leaf": int(settings.min_samples_leaf),
        "min_sum_hessian_in_leaf": _MIN_CURVATURE,
        "lambda_l2": float(settings.l2),
        "feature_fraction": float(settings.max_features),
        "min_data_in_bin": 1 if n_rows < 5_000 else 3,
        "min_data_per_group": of_category,
        "feature_pre_filter": False,
        "deterministic": True,
        "force_col_wise": True,
        "num_threads": int(settings.n_threads),
        "seed": int(settings.seed),
        "metric": "none",
        "verbosity": -1,
    }


# --- Reading a booster ---


def read_booster(booster: Any) -> TreeEnsemble:
    """The trees of a LightGBM booster with one score for each row, whose raw scores they give.

    Trees with linear leaves and boosters that take zeros for missing values raise ValueError.
    """
    if booster.num_model_per_iteration() != 1:
        raise ValueError("The booster has several scores for each row; a ranker has one.")
    return read_model(booster.model_to_string(num_iteration=-1), booster.num_feature())


def read_model(text: str, n_features: int) -> TreeEnsemble:
    """The trees of a model as LightGBM writes it."""
    trees = [_read_tree(fields, n_features) for fields in _fields_of_trees(text)]
    return TreeEnsemble.joined(trees or [TreeEnsemble.empty(n_features)])


def _fields_of_trees(text: str) -> Iterator[dict[str, str]]:
    body = text.partition("end of trees")[0]
    for tree in body.split("\nTree=")[1:]:
        lines = tree.split("\n")[1:]
        yield dict(line.split("=", 1) for line in lines if line)


def _numbers(fields: dict[str, str], name: str, kind: Any) -> NDArray[Any]:
    return np.array(fields[name].split(" "), dtype=kind)


def _read_tree(fields: dict[str, str], n_features: int) -> TreeEnsemble:
    """A tree with its inner nodes first, as LightGBM numbers them, and then its leaves."""
    n_leaves = int(fields["num_leaves"])
    n_inner = n_leaves - 1
    tree = _leaves(n_features, n_inner, _numbers(fields, "leaf_value", float))
    if fields.get("is_linear", "0") != "0":
        raise ValueError("The booster has trees with linear leaves, which are not supported.")
    if n_inner == 0:
        return tree
    tree.feature[:n_inner] = _numbers(fields, "split_feature", int)
    tree.gain[:n_inner] = _numbers(fields, "split_gain", float)
    tree.cover[:n_inner] = _numbers(fields, "internal_count", float)
    tree.cover[n_inner:] = _numbers(fields, "leaf_count", float)
    for name, children in (("left_child", tree.left), ("right_child", tree.right)):
        child = _numbers(fields, name, int)
        children[:n_inner] = np.where(child >= 0, child, n_inner - 1 - child)
    threshold = _numbers(fields, "threshold", float)
    kind = _numbers(fields, "decision_type", int)
    if np.any(kind & 4):
        raise ValueError("The booster takes zeros for missing values, which is not supported.")
    number = kind & _IS_CATEGORY == 0
    tree.threshold[:n_inner] = np.where(number, threshold, 0.0)
    # Where a column had no missing values, LightGBM scores NaN as zero.
    missing = kind & _NAN_IS_MISSING > 0
    to_left = np.where(missing, kind & _DEFAULT_LEFT > 0, threshold >= 0.0)
    tree.missing_left[:n_inner] = number & to_left
    if int(fields["num_cat"]):
        tree.bits[:n_inner] = np.where(number, -1.0, threshold).astype(np.int32)
        tree.first_word = _numbers(fields, "cat_boundaries", np.int64)
        tree.words = _numbers(fields, "cat_threshold", np.uint32)
    return tree


def _leaves(n_features: int, n_inner: int, values: Vector) -> TreeEnsemble:
    """A tree of leaves, behind inner nodes that are not filled yet."""
    n_nodes = n_inner + values.size
    tree = TreeEnsemble.empty(n_features)
    tree.feature = np.full(n_nodes, -1, dtype=np.int32)
    tree.bits = np.full(n_nodes, -1, dtype=np.int32)
    tree.left, tree.right = np.zeros(n_nodes, dtype=np.int32), np.zeros(n_nodes, dtype=np.int32)
    tree.missing_left = np.zeros(n_nodes, dtype=bool)
    tree.threshold, tree.gain, tree.value = (np.zeros(n_nodes) for _ in range(3))
    tree.cover = np.ones(n_nodes)
    tree.value[n_inner:] = values
    tree.first_node = np.array([0, n_nodes], dtype=np.int64)
    return tree
