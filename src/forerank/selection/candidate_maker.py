"""Candidates of a search: which methods are tried on which form of the columns."""

from inspect import signature
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from forerank._text import counted
from forerank._typing import Vector
from forerank.data.forms import ColumnForms, in_form
from forerank.estimators.average_precision import MAPRanker
from forerank.estimators.boosted import BoostedRanker
from forerank.estimators.partial_auc import PartialAUCRanker
from forerank.estimators.top_push import TopPush, TopRanker
from forerank.metrics.registry import Measure
from forerank.selection.candidates import Candidate
from forerank.selection.methods import FEATURE_MAPS, METHODS, ROUNDS, method_names, resolve_method
from forerank.selection.training_rows import TrainingRows
from forerank.trees import has_lightgbm

__all__ = ["FEW_CLASS_ROWS", "CandidateMaker"]

# Rows of the rarest class below which additive maps are not tried beside others, and families are
# not compared, but averaged: a measure of so few rows is mostly noise. Below the second number
# trees are not tried beside others either.
FEW_CLASS_ROWS = 50
_FEWEST_TREE_ROWS = 10

# Most columns of an array for which additive maps are tried: each becomes about eight.
_MOST_ADDITIVE_COLUMNS = 300
# Columns of a sparse matrix beyond which trees have its first components instead, since a split
# looks at every column; and the fewest rows for that.
_MOST_SPARSE_COLUMNS = 2_000
_FEWEST_COMPONENT_ROWS = 100


class CandidateMaker:
    """The methods of some families that take the labels, groups and weights of some rows.

    Parameters
    ----------
    ranker : Ranker
        With its parameters `methods` and `metric`.
    measure : Measure
    data : TrainingRows
    graded : bool
        Whether there are more than two classes.
    families : tuple of str
    seed : int
        For trees and feature maps.

    Attributes
    ----------
    notes : list of str
        On what is not tried, for the user.
    """

    def __init__(
        self,
        ranker: Any,
        measure: Measure,
        data: TrainingRows,
        graded: bool,
        families: tuple[str, ...],
        seed: int,
    ) -> None:
        self._ranker, self._measure, self._data, self._graded = ranker, measure, data, graded
        self._families, self._seed = families, seed
        # Forms of the columns; none if X is a matrix.
        self._forms = tuple(data.X.matrices) if isinstance(data.X, ColumnForms) else ()
        self.notes: list[str] = []

    def candidates(self, alphas: Vector, n_folds: int, maps: dict[str, Any]) -> list[Candidate]:
        """Candidates without results. The map that additive models of an array need is added to
        `maps`.
        """
        rankers = self._rankers()
        linear = {name: each for name, each in rankers.items() if not METHODS[name].trees}
        on_maps = list(linear.items())[:2]
        made: list[tuple[str, str, str, str | None, Any]] = []
        explicit = self._ranker.methods != "auto"
        if "linear" in self._families or explicit:
            made += [("linear", name, "plain", None, each) for name, each in linear.items()]
        if "linear" in self._families and "tf-idf" in self._forms:
            made += [("linear", name, "tf-idf", None, clone(each)) for name, each in on_maps]
        for map_name in maps:
            family = "additive" if map_name == "additive" else "linear"
            made += [(family, name, "plain", map_name, clone(each)) for name, each in on_maps]
        if self._adds_maps(maps):
            form, map_of_array = "additive", None
            if not self._forms:
                form, map_of_array = "plain", "additive"
                maps[map_of_array] = FEATURE_MAPS[map_of_array](self._seed)
            made += [("additive", name, form, map_of_array, clone(r)) for name, r in on_maps]
        trees = [name for name in rankers if name not in linear]
        own = "components" if trees and self._is_wide() else None
        if own is not None:
            maps[own] = FEATURE_MAPS[own](self._seed)
        made += [("trees", name, self._tree_form, own, rankers[name]) for name in trees]
        if not made:
            raise ValueError(self._nothing_to_try())
        rounds = np.array(ROUNDS, dtype=np.float64)
        grids = [rounds if each[0] == "trees" else alphas for each in made]
        return [
            Candidate(*each, grid, np.full((n_folds, grid.size), np.nan))
            for each, grid in zip(made, grids, strict=True)
        ]

    def _adds_maps(self, maps: dict[str, Any]) -> bool:
        """Whether additive maps are tried unasked."""
        X = self._data.X
        if "additive" not in self._families or self._ranker.methods != "auto":
            return False
        if self._n_rarest < FEW_CLASS_ROWS and len(self._families) > 1:
            self._note_on_few_rows("additive models", FEW_CLASS_ROWS)
            return False
        if self._forms:
            return "additive" in self._forms
        narrow = X.shape[1] <= _MOST_ADDITIVE_COLUMNS
        return narrow and not sp.issparse(X) and "additive" not in maps

    def _rankers(self) -> dict[str, Any]:
        """Rankers by name of their method."""
        given = self._ranker.methods
        if isinstance(given, str) and given != "auto":
            given = [given]
        if isinstance(given, str):
            names = method_names(self._ranker.metric) + self._tree_names()
        else:
            names = [*map(resolve_method, given)]
        if not names:
            raise ValueError('methods is empty; give names of methods, or "auto".')
        made = {name: METHODS[name].make(self._measure.parameter) for name in names}
        rankers = {name: ranker for name, ranker in made.items() if self._supports(ranker)}
        self._note_on_lightgbm(made, rankers)
        if not rankers:
            given_beside = {"grades": self._graded, "groups": self._data.group is not None}
            given_beside["sample weights"] = self._data.weight is not None
            needed = " and ".join(what for what, present in given_beside.items() if present)
            raise ValueError(
                f"None of the methods {', '.join(map(repr, names))} takes {needed}; pairwise "
                "methods do."
            )
        return rankers

    def _tree_names(self) -> list[str]:
        """Names of the methods of trees to try; one of them where LightGBM is not installed."""
        if "trees" not in self._families:
            return []
        if self._n_rarest < _FEWEST_TREE_ROWS and len(self._families) > 1:
            self._note_on_few_rows("trees", _FEWEST_TREE_ROWS)
            return []
        if self._is_wide() and self._data.y.size < _FEWEST_COMPONENT_ROWS:
            return []
        names = method_names(self._ranker.metric, trees=True)
        return names if has_lightgbm() else names[:1]

    def _note_on_few_rows(self, models: str, fewest: int) -> None:
        """Why models that were asked for by name were not tried."""
        if self._ranker.families != "auto":
            rows = counted(self._n_rarest, "row")
            self.notes.append(
                f"{models} were not tried with {rows} of the rarest class (at least {fewest})"
            )

    def _note_on_lightgbm(self, made: dict[str, Any], supported: dict[str, Any]) -> None:
        """What trees lack without LightGBM."""
        trees = [name for name in made if METHODS[name].trees]
        if not trees or has_lightgbm():
            return
        if trees[0] not in supported:
            self.notes.append(
                "LightGBM is not installed (pip install 'forerank[trees]'), and trees of "
                "scikit-learn take neither groups nor grades: trees were not tried"
            )
        elif isinstance(self._ranker.methods, str) and self._ranker.methods == "auto":
            others = method_names(self._ranker.metric, trees=True)[1:]
            self.notes.append(
                "LightGBM is not installed (pip install 'forerank[trees]'): trees were fitted by "
                f"scikit-learn, which is slower, without {' and '.join(others)}"
            )

    def _nothing_to_try(self) -> str:
        """Why no model of the families can be fitted."""
        why = "; ".join(self.notes) or (
            "additive models need a table with numbers or dates, or a dense array of at most "
            f"{_MOST_ADDITIVE_COLUMNS} columns; trees need at least {_FEWEST_COMPONENT_ROWS} rows "
            f"of a sparse matrix with more than {_MOST_SPARSE_COLUMNS:,} columns"
        )
        kind = "family" if len(self._families) == 1 else "families"
        names = ", ".join(self._families)
        return f'No model of the {kind} {names} can be fitted ({why}). Add "linear".'

    @property
    def _n_rarest(self) -> int:
        return int(np.unique(self._data.y, return_counts=True)[1].min())

    @property
    def _tree_form(self) -> str:
        return "trees" if "trees" in self._forms else "plain"

    def _is_wide(self) -> bool:
        """Whether trees would have a sparse matrix of many columns."""
        X = in_form(self._data.X, self._tree_form)
        return sp.issparse(X) and X.shape[1] > _MOST_SPARSE_COLUMNS

    def _supports(self, ranker: Any) -> bool:
        """Whether a ranker takes grades, groups and weights as far as there are any."""
        data = self._data
        if isinstance(ranker, BoostedRanker):
            return self._set_up_trees(ranker)
        if self._graded:
            if not hasattr(ranker, "graph"):
                return False
            ranker.set_params(graph="order")
        top = isinstance(ranker, TopRanker | TopPush | PartialAUCRanker | MAPRanker)
        if data.group is not None and top:
            return False
        return data.weight is None or "sample_weight" in signature(ranker.fit).parameters

    def _set_up_trees(self, ranker: BoostedRanker) -> bool:
        """Set parameters of trees by the labels and columns; False if that is not possible."""
        X = self._data.X
        ranker.set_params(random_state=self._seed, n_jobs=1)
        if isinstance(X, ColumnForms):
            ranker.set_params(categorical_features=list(X.categorical))
        if self._graded or self._data.group is not None:
            graph = "order" if self._graded else None
            ranker.set_params(loss="pairwise-logistic", graph=graph)
        return has_lightgbm() or ranker.loss == "logistic"
