"""Trees grown by LightGBM, read into arrays."""

import importlib
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from forerank.trees.ensemble import TreeEnsemble
from forerank.trees.growth import GrowthSettings, TrainingRows

__all__ = ["LightGBMGrower", "import_error", "read_booster"]

# Smallest curvature of a leaf. The curvature of a row is p (1 - p) for the logistic loss: after
# some rounds p is 1e-6 for most rows where positives are rare, and LightGBM's own 0.001 would need
# a thousand of them. The penalty l2 keeps the values of such leaves small.
_MIN_CURVATURE = 1e-9
# Rounds in a row without a split after which boosting ends; a round may fail by the columns that
# were drawn for it.
_MOST_FAILURES = 10
# Rows below which a category is not split off by itself, and the share of the rows that replaces it
# for small data.
_ROWS_OF_CATEGORY, _SHARE_OF_CATEGORY = 100, 0.02
# Values of X below which LightGBM counts by rows, which takes half the time with many columns of
# few values. From here on there are several threads by default, which it gives columns.
_VALUES_BY_ROWS = 1_000_000
# Bins of a column: one for so many rows, at least and at most so many (LightGBM's own number). With
# few rows the sums over bins, not over rows, are what a tree takes its time for.
_ROWS_PER_BIN, _FEWEST_BINS, _MOST_BINS = 32, 63, 255
# Bits of LightGBM's decision_type: a category, missing values to the left, and what is missing.
_IS_CATEGORY, _DEFAULT_LEFT, _ZERO_IS_MISSING, _NAN_IS_MISSING = 1, 2, 4, 8


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
    by_rows = rows.X.size < _VALUES_BY_ROWS
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
        "max_bin": min(max(n_rows // _ROWS_PER_BIN, _FEWEST_BINS), _MOST_BINS),
        "min_data_in_bin": 1 if n_rows < 5_000 else 3,
        "min_data_per_group": of_category,
        "feature_pre_filter": False,
        "deterministic": True,
        "force_row_wise" if by_rows else "force_col_wise": True,
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
    """The trees of a model as LightGBM writes it: inner nodes first, as it numbers them, then the
    leaves of each tree.
    """
    body = text.partition("end of trees")[0].split("\nTree=")[1:]
    if not body:
        return TreeEnsemble.empty(n_features)
    trees = _Fields(body)
    if trees.numbers("is_linear", np.int64).any():
        raise ValueError("The booster has trees with linear leaves, which are not supported.")
    n_leaves = trees.numbers("num_leaves", np.int64)
    n_inner, first = n_leaves - 1, np.cumsum([0, *(2 * n_leaves - 1)])
    ensemble = TreeEnsemble.constant_trees(n_features, first)
    inner, leaf = _places(first[:-1], n_inner), _places(first[:-1] + n_inner, n_leaves)
    ensemble.value[leaf] = trees.numbers("leaf_value", np.float64)
    # Some versions do not write the number of rows of a tree without a split.
    has_count = np.repeat(trees.sizes("leaf_count") > 0, n_leaves)
    ensemble.cover[leaf[has_count]] = trees.numbers("leaf_count", np.float64)
    if inner.size:
        _read_splits(trees, ensemble, inner, np.repeat(n_inner, n_inner))
    return ensemble


class _Fields:
    """The lines "name=values" of several trees."""

    def __init__(self, trees: list[str]) -> None:
        self._lines = [
            dict(line.split("=", 1) for line in tree.split("\n")[1:] if line) for tree in trees
        ]

    def numbers(self, name: str, kind: Any) -> NDArray[Any]:
        """The values of all trees, one tree after another."""
        return np.fromstring(" ".join(lines.get(name, "") for lines in self._lines), kind, sep=" ")

    def sizes(self, name: str) -> NDArray[np.int64]:
        """The number of values of each tree."""
        return np.array([len(lines.get(name, "").split()) for lines in self._lines])


def _places(first: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers first[t], first[t] + 1, ... of each tree, sizes[t] of them."""
    return np.arange(sizes.sum()) + np.repeat(first - np.cumsum(sizes) + sizes, sizes)


def _read_splits(
    trees: _Fields, ensemble: TreeEnsemble, inner: NDArray[np.int64], n_inner: NDArray[np.int64]
) -> None:
    """Fill the inner nodes; `n_inner` has the number of them in the tree of each."""
    kind = trees.numbers("decision_type", np.int64)
    if np.any(kind & _ZERO_IS_MISSING):
        raise ValueError("The booster takes zeros for missing values, which is not supported.")
    ensemble.feature[inner] = trees.numbers("split_feature", np.int64)
    ensemble.gain[inner] = trees.numbers("split_gain", np.float64)
    ensemble.cover[inner] = trees.numbers("internal_count", np.float64)
    for name, children in (("left_child", ensemble.left), ("right_child", ensemble.right)):
        child = trees.numbers(name, np.int64)
        children[inner] = np.where(child >= 0, child, n_inner - 1 - child)
    threshold = trees.numbers("threshold", np.float64)
    number = kind & _IS_CATEGORY == 0
    ensemble.threshold[inner] = np.where(number, threshold, 0.0)
    # Where a column had no missing values, LightGBM scores NaN as zero.
    to_left = np.where(kind & _NAN_IS_MISSING > 0, kind & _DEFAULT_LEFT > 0, threshold >= 0.0)
    ensemble.missing_left[inner] = number & to_left
    n_sets = trees.numbers("num_cat", np.int64)
    if n_sets.any():
        tree = np.searchsorted(ensemble.first_node, inner, side="right") - 1
        first_set = np.cumsum(n_sets) - n_sets
        ensemble.bits[inner] = np.where(number, -1.0, threshold + first_set[tree])
        _read_categories(trees, ensemble)


def _read_categories(trees: _Fields, ensemble: TreeEnsemble) -> None:
    """Fill the bit sets. Each tree has its own boundaries, from zero to its number of words."""
    bounds = trees.numbers("cat_boundaries", np.int64)
    sizes = np.diff(bounds)
    within = np.ones(bounds.size, dtype=bool)
    counts = trees.sizes("cat_boundaries")
    within[(np.cumsum(counts) - 1)[counts > 0]] = False  # from one tree to the next
    ensemble.first_word = np.concatenate([[0], np.cumsum(sizes[within[:-1]])]).astype(np.int64)
    ensemble.words = trees.numbers("cat_threshold", np.int64).astype(np.uint32)
