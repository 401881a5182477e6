"""Trees grown by scikit-learn's HistGradientBoostingClassifier, read into arrays.

Used where LightGBM is not installed. It has the logistic loss on rows only.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from forerank._typing import Index, Matrix
from forerank.trees.ensemble import TreeEnsemble, bit_set
from forerank.trees.growth import GrowthSettings, TrainingRows

__all__ = ["HistogramGrower"]

# Most categories of a column; scikit-learn refuses more. Codes of such a column are numbers.
_MOST_CATEGORIES = 255
# Rounds that are grown at once: each call bins the columns, which takes as long as a few rounds.
_LEAST_ROUNDS = 50


class HistogramGrower:
    """Boosting by scikit-learn, with the logistic loss on rows.

    Every call of `grow` bins the columns again: few calls with many rounds are faster than many.
    """

    def __init__(self, rows: TrainingRows, settings: GrowthSettings) -> None:
        from sklearn.ensemble import HistGradientBoostingClassifier

        if rows.gradient is not None:
            raise ValueError("scikit-learn's histogram trees have the logistic loss on rows only.")
        self._X = _with_values(rows.X.toarray() if sp.issparse(rows.X) else rows.X)
        self._rows, self._n_threads = rows, settings.n_threads
        self._categories = [k for k in rows.categories if self._has_few_categories(k)]
        self._n_read = 0
        self._finished = False
        self._model = HistGradientBoostingClassifier(
            learning_rate=settings.learning_rate,
            max_leaf_nodes=settings.max_leaf_nodes,
            min_samples_leaf=settings.min_samples_leaf,
            l2_regularization=settings.l2,
            max_features=settings.max_features,
            categorical_features=self._categories or None,
            early_stopping=False,
            warm_start=True,
            random_state=settings.seed,
        )

    def grow(self, n_rounds: int) -> TreeEnsemble:
        """The trees of the next rounds; fewer where no split is left."""
        parts = [TreeEnsemble.empty(self._X.shape[1])]
        if n_rounds < 1 or self._finished:
            return parts[0]
        self._model.set_params(max_iter=self._n_read + n_rounds)
        with threadpool_limits(self._n_threads, user_api="openmp"):
            self._model.fit(self._X, self._rows.positive, sample_weight=self._rows.weight)
        columns = self._columns()
        for (predictor,) in self._model._predictors[self._n_read :]:
            parts.append(_read_tree(predictor, self._X.shape[1], columns, self._codes()))
        self._n_read += n_rounds
        # A tree without a split: no later round changes the gradients.
        self._finished = self._model.max_features == 1.0 and parts[-1].feature.size == 1
        return TreeEnsemble.joined(parts)

    @property
    def least_rounds(self) -> int:
        """Number of rounds that are worth a call of `grow`."""
        return max(_LEAST_ROUNDS, self._n_read // 2)

    @property
    def start(self) -> float:
        """The score before the first tree: the log odds of the weighted rows."""
        return float(np.ravel(self._model._baseline_prediction)[0])

    def _has_few_categories(self, k: int) -> bool:
        values = self._X[:, k]
        return np.unique(values[~np.isnan(values)]).size <= _MOST_CATEGORIES

    def _columns(self) -> Index:
        """The column of X of each column that the trees look at: categories come first there."""
        is_category = np.isin(np.arange(self._X.shape[1]), self._categories)
        if not self._categories:
            return np.arange(self._X.shape[1])
        return np.concatenate([np.flatnonzero(is_category), np.flatnonzero(~is_category)])

    def _codes(self) -> list[NDArray[Any]]:
        """The codes of X that scikit-learn has numbered, for each column of categories."""
        if not self._categories:
            return []
        encoder = self._model._preprocessor.named_transformers_["encoder"]
        return [values[~np.isnan(values)].astype(np.int64) for values in encoder.categories_]


def _with_values(X: Matrix) -> Matrix:
    """Rows in which columns without any value are zero: scikit-learn has no bins for them."""
    missing = np.array([bool(np.isnan(X[:, k]).all()) for k in range(X.shape[1])])
    return np.where(missing, X.dtype.type(0), X) if missing.any() else X


def _read_tree(
    predictor: Any, n_features: int, columns: Index, codes: list[NDArray[Any]]
) -> TreeEnsemble:
    nodes = predictor.nodes
    inner = nodes["is_leaf"] == 0
    tree = TreeEnsemble.empty(n_features)
    tree.feature = np.where(inner, columns[nodes["feature_idx"]], -1).astype(np.int32)
    tree.threshold = np.where(inner, nodes["num_threshold"], 0.0)
    tree.left = np.where(inner, nodes["left"], 0).astype(np.int32)
    tree.right = np.where(inner, nodes["right"], 0).astype(np.int32)
    tree.missing_left = inner & (nodes["missing_go_to_left"] != 0)
    tree.value = np.where(inner, 0.0, nodes["value"])
    tree.cover = nodes["count"].astype(float)
    tree.gain = np.where(inner, nodes["gain"], 0.0)
    tree.first_node = np.array([0, nodes.size], dtype=np.int64)
    tree.bits = np.full(nodes.size, -1, dtype=np.int32)
    sets: list[NDArray[np.uint32]] = []
    for node in np.flatnonzero(inner & (nodes["is_categorical"] != 0)):
        known = codes[nodes["feature_idx"][node]]
        words = predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]]
        number = np.arange(known.size)
        to_left = (words[number // 32] >> (number % 32).astype(np.uint32)) & 1 == 1
        tree.bits[node] = len(sets)
        # The codes that do not go where missing and unknown ones go.
        sets.append(bit_set(known[to_left != tree.missing_left[node]]))
    tree.words = np.concatenate([np.empty(0, np.uint32), *sets])
    tree.first_word = np.cumsum([0, *(each.size for each in sets)], dtype=np.int64)
    return tree
