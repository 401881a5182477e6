"""The arrays of a fitted ensemble of trees, which no library that grows trees is needed to read.

The score of a row is a constant plus the value of the leaf that it reaches in every tree. At an
inner node with the column k and the value x of the row in it:

- a number goes left where x <= threshold; NaN goes left where `missing_left` is set;
- a category is a code 0, 1, 2, ...; codes in the bit set of the node go to one side, and all others
  (NaN, codes that no training row has) to the side of missing values.

Zeros that a CSR matrix does not hold are zeros, not missing values.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from forerank._kernels import in_row_chunks
from forerank._typing import Matrix, Vector
from forerank.trees.shapley import add_contributions, longest_path
from forerank.trees.traversal import add_csr_scores, add_dense_scores

__all__ = ["TreeEnsemble", "bit_set"]

# Numbers of bits of a word of a bit set.
_WORD = 32
# Type of each array of a node, a tree or a bit set; compiled code reads them without a check.
_TYPES: dict[str, Any] = {
    "feature": np.int32,
    "threshold": np.float64,
    "left": np.int32,
    "right": np.int32,
    "missing_left": np.bool_,
    "bits": np.int32,
    "value": np.float64,
    "cover": np.float64,
    "gain": np.float64,
    "first_node": np.int64,
    "first_word": np.int64,
    "words": np.uint32,
}


@dataclass
class TreeEnsemble:
    """A sum of trees.

    Attributes
    ----------
    n_features : int
        Number of columns of the rows.
    constant : float
        The score before the first tree.
    feature : int32 array
        The column that each node looks at; -1 for a leaf. The nodes of a tree lie one after
        another, the root first, and children behind their parents.
    threshold : float64 array
        Numbers up to it go left.
    left, right : int32 array
        The children of each node, counted from the root of its tree.
    missing_left : bool array
        Whether missing values go left.
    bits : int32 array
        The number of the bit set of a node that looks at a category; -1 for other nodes.
    value : float64 array
        The values of leaves.
    cover : float64 array
        The number of training rows that reached each node.
    gain : float64 array
        The decrease of the objective by each split, in the units of the library that made it.
    first_node : int64 array
        The root of each tree, and the number of all nodes.
    first_word : int64 array
        The first word of each bit set, and the number of all words.
    words : uint32 array
        The words of the bit sets, lowest codes first.
    """

    n_features: int
    constant: float
    feature: NDArray[np.int32]
    threshold: Vector
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    bits: NDArray[np.int32]
    value: Vector
    cover: Vector
    gain: Vector
    first_node: NDArray[np.int64]
    first_word: NDArray[np.int64]
    words: NDArray[np.uint32]

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return self.first_node.size - 1

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return int(np.count_nonzero(self.feature < 0))

    @property
    def has_categories(self) -> bool:
        """Whether a node looks at a category."""
        return self.first_word.size > 1

    @classmethod
    def empty(cls, n_features: int, constant: float = 0.0) -> "TreeEnsemble":
        """An ensemble without trees, whose scores are constant."""
        arrays: dict[str, Any] = {name: np.empty(0, dtype=kind) for name, kind in _TYPES.items()}
        arrays |= {name: np.zeros(1, dtype=np.int64) for name in ("first_node", "first_word")}
        return cls(n_features, constant, **arrays)

    @classmethod
    def constant_trees(cls, n_features: int, first_node: NDArray[np.int64]) -> "TreeEnsemble":
        """Trees of nodes that are all leaves of the value zero, at these numbers."""
        n = int(first_node[-1])
        ensemble = cls.empty(n_features)
        ensemble.feature, ensemble.bits = (np.full(n, -1, dtype=np.int32) for _ in range(2))
        ensemble.left, ensemble.right = (np.zeros(n, dtype=np.int32) for _ in range(2))
        ensemble.missing_left, ensemble.cover = np.zeros(n, dtype=bool), np.ones(n)
        ensemble.threshold, ensemble.gain, ensemble.value = (np.zeros(n) for _ in range(3))
        ensemble.first_node = first_node.astype(np.int64)
        return ensemble

    @classmethod
    def joined(cls, parts: "Iterable[TreeEnsemble]") -> "TreeEnsemble":
        """The trees of several ensembles one after another; the constants are added."""
        given = list(parts)
        arrays = {name: np.concatenate([getattr(part, name) for part in given]) for name in _TYPES}
        for name in ("first_node", "first_word"):
            arrays[name] = _joined_starts([getattr(part, name) for part in given])
        n_sets = np.cumsum([0, *(part.first_word.size - 1 for part in given)])
        shift = np.repeat(n_sets[:-1], [part.bits.size for part in given]).astype(np.int32)
        arrays["bits"] = np.where(arrays["bits"] >= 0, arrays["bits"] + shift, -1).astype(np.int32)
        return cls(given[0].n_features, float(sum(part.constant for part in given)), **arrays)

    def trees(self, begin: int, end: int) -> "TreeEnsemble":
        """The trees begin .. end - 1, without the constant."""
        first, last = self.first_node[begin], self.first_node[end]
        arrays = {
            name: getattr(self, name)[first:last]
            for name in _TYPES
            if name not in ("first_node", "first_word", "words")
        }
        starts = self.first_node[begin : end + 1] - first
        kept: dict[str, Any] = {"first_word": self.first_word, "words": self.words}
        return TreeEnsemble(self.n_features, 0.0, **arrays, first_node=starts, **kept)

    def chosen(self, numbers: NDArray[np.integer], factor: float = 1.0) -> "TreeEnsemble":
        """The trees of these numbers, in this order, with their values times a factor; without the
        constant.
        """
        sizes = np.diff(self.first_node)[numbers]
        first_node = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        nodes = np.repeat(self.first_node[numbers] - first_node[:-1], sizes)
        nodes += np.arange(nodes.size)
        arrays = {name: getattr(self, name)[nodes] for name in _NODE_ARRAYS}
        arrays["value"] = arrays["value"] * factor
        kept: dict[str, Any] = {"first_word": self.first_word, "words": self.words}
        return TreeEnsemble(self.n_features, 0.0, **arrays, first_node=first_node, **kept)

    # --- Scores ---

    def scores(self, X: Matrix) -> Vector:
        """The score of each row of an array (NaN is missing) or a CSR matrix.

        Cost: the depth of each tree, for each row.
        """
        scores = np.full(X.shape[0], self.constant)
        self.add_scores(X, scores)
        return scores

    def add_scores(self, X: Matrix, scores: Vector, begin: int = 0, end: int | None = None) -> None:
        """Add the values of the trees begin .. end - 1 (all others by default) to the scores."""
        self._check_columns(X)
        end = self.n_trees if end is None else end
        work: Any
        if sp.issparse(X):
            rows = (X.indptr, X.indices, X.data)
            work = partial(add_csr_scores, *rows, self.n_features, *self._nodes(), begin, end)
        else:
            work = partial(add_dense_scores, X, *self._nodes(), begin, end)
        in_row_chunks(lambda a, b: work(a, b, scores), X.shape[0], 4 * X.shape[0] * (end - begin))

    def staged_scores(self, X: Matrix, step: int = 1) -> Iterator[Vector]:
        """Scores after each tree, or after every `step` trees."""
        scores = np.full(X.shape[0], self.constant)
        for tree in range(0, self.n_trees, step):
            self.add_scores(X, scores, tree, tree + step)
            yield scores.copy()

    # --- Explanations ---

    def contributions(self, X: Matrix) -> Vector:
        """What each column adds to the score of each row, and in the last column the mean score.

        Shapley values by the path-dependent algorithm of Lundberg, Erion and Lee (2018): the
        columns that are not in a coalition follow the shares of the training rows. The sum over all
        columns is the score. Cost: leaves times the squared depth, for each row.
        """
        self._check_columns(X)
        out = np.zeros((X.shape[0], self.n_features + 1))
        depth = longest_path(self.feature, self.left, self.right, self.first_node)
        dense = X.toarray() if sp.issparse(X) else X  # in chunks of rows from the callers

        def work(begin: int, end: int) -> None:
            add_contributions(dense, *self._nodes(), self.cover, depth, begin, end, out)

        in_row_chunks(work, X.shape[0], 20 * X.shape[0] * self.feature.size)
        out[:, -1] += self.constant
        return out

    def importances(self) -> Vector:
        """The gain of the splits on each column, as shares of one; zeros without splits."""
        inner = self.feature >= 0
        gain = np.maximum(self.gain[inner], 0.0)
        total = np.bincount(self.feature[inner], weights=gain, minlength=self.n_features)
        return total / total.sum() if total.any() else total.astype(float)

    # --- Checks ---

    def problem(self) -> str | None:
        """Description of what is wrong with the arrays; None where every row has a score.

        Compiled code reads where the arrays point to: those of a file are checked first.
        """
        for name, kind in _TYPES.items():
            array = getattr(self, name, None)
            if not isinstance(array, np.ndarray) or array.dtype != kind or array.ndim != 1:
                return f"trees whose {name} is not an array of {np.dtype(kind).name}"
        n_features, constant = (getattr(self, name, None) for name in ("n_features", "constant"))
        if type(n_features) is not int or not isinstance(constant, float):
            return "trees without a number of columns or a constant"
        sizes = {getattr(self, name).size for name in _NODE_ARRAYS}
        if len(sizes) != 1 or not _are_starts(self.first_node, sizes.pop(), least=1):
            return "trees with a wrong number of nodes"
        if not _are_starts(self.first_word, self.words.size, least=1):
            return "trees with a wrong number of categories"
        return self._problem_of_nodes()

    def _problem_of_nodes(self) -> str | None:
        size = np.repeat(np.diff(self.first_node), np.diff(self.first_node))
        number = np.arange(self.feature.size) - np.repeat(
            self.first_node[:-1], np.diff(self.first_node)
        )
        inner = self.feature >= 0
        if np.any(self.feature < -1) or np.any(self.feature >= self.n_features):
            return "trees that look at columns which do not exist"
        for child in (self.left[inner], self.right[inner]):
            if np.any(child <= number[inner]) or np.any(child >= size[inner]):
                return "trees whose nodes are not in order"
        if np.any(self.bits < -1) or np.any(self.bits >= self.first_word.size - 1):
            return "trees that look at categories which do not exist"
        return None

    def _check_columns(self, X: Matrix) -> None:
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(
                f"The trees read rows of {self.n_features} columns; got {X.shape[-1]}."
            )

    def _nodes(self) -> tuple[Any, ...]:
        """The arrays that a row needs to find its leaves."""
        return tuple(getattr(self, name) for name in _TRAVERSED)


_NODE_ARRAYS = [name for name in _TYPES if name not in ("first_node", "first_word", "words")]
_TRAVERSED = (
    "feature", "threshold", "left", "right", "missing_left", "bits", "value",
    "first_node", "first_word", "words",
)  # fmt: skip
assert {field.name for field in fields(TreeEnsemble)} == {"n_features", "constant", *_TYPES}


def bit_set(codes: Iterable[int]) -> NDArray[np.uint32]:
    """The words of a set of codes, lowest codes first; one word for an empty set."""
    numbers = np.fromiter(codes, dtype=np.int64)
    words = np.zeros(int(numbers.max(initial=0)) // _WORD + 1, dtype=np.uint32)
    np.bitwise_or.at(words, numbers // _WORD, np.uint32(1) << (numbers % _WORD).astype(np.uint32))
    return words


def _joined_starts(starts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    sizes = np.concatenate([np.diff(each) for each in starts])
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _are_starts(starts: NDArray[np.int64], size: int, least: int) -> bool:
    """Whether numbers divide `size` items into parts of at least `least` items."""
    if starts.size < 1 or starts[0] != 0 or starts[-1] != size:
        return False
    return bool(np.all(np.diff(starts) >= least))
