"""Rows of a table in several forms: each family of models has the columns in the form that suits
it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _is_fitted

__all__ = ["ColumnForms", "FormColumns", "in_form"]


@dataclass(frozen=True)
class ColumnForms:
    """The same rows as several matrices.

    Attributes
    ----------
    matrices : dict
        A matrix for each form, of those in `RankingProblem.forms`: "plain", "additive" and "trees"
        of a table, see `ColumnPlan.transformer`; "plain" and "tf-idf" of word counts.
    categorical : list of int
        The columns of the form "trees" that hold categories.
    """

    matrices: dict[str, Any]
    categorical: list[int] = field(default_factory=list)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and of columns in the first form."""
        return next(iter(self.matrices.values())).shape

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> "ColumnForms":
        taken = {form: matrix[rows] for form, matrix in self.matrices.items()}
        return ColumnForms(taken, self.categorical)


def in_form(X: Any, form: str) -> Any:
    """The matrix of a form; a single matrix has every form."""
    return X.matrices[form] if isinstance(X, ColumnForms) else X


class FormColumns(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Transformers of columns into several forms.

    Parameters
    ----------
    steps : dict
        A transformer for each form.
    """

    def __init__(self, steps: Mapping[str, Any]) -> None:
        self.steps = steps

    def __sklearn_is_fitted__(self) -> bool:
        return all(_is_fitted(step) for step in self.steps.values())

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the transformer of each form."""
        for step in self.steps.values():
            step.fit(X)
        return self

    def transform(self, X: Any) -> ColumnForms:
        """The rows of a frame or a matrix in all forms."""
        matrices = {form: step.transform(X) for form, step in self.steps.items()}
        return ColumnForms(matrices, self.categorical)

    def transform_rows(self, X: Any, rows: NDArray[np.integer]) -> ColumnForms:
        """These rows of a frame in all forms, in this order."""
        matrices = {form: step.transform_rows(X, rows) for form, step in self.steps.items()}
        return ColumnForms(matrices, self.categorical)

    @property
    def categorical(self) -> list[int]:
        """The columns of the form "trees" that hold categories."""
        return list(self.steps["trees"].categorical_) if "trees" in self.steps else []

    def only(self, forms: tuple[str, ...]) -> Any:
        """The fitted transformer of these forms alone."""
        steps = {form: self.steps[form] for form in forms}
        return steps[forms[0]] if len(forms) == 1 else FormColumns(steps)
