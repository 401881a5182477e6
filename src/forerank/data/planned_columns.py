"""The columns of a table as `forerank fit` prepares them, as one transformer of scikit-learn.

Strings that hold numbers or dates are read as such, the column plan decides on the kind of each
column, and the steps of the plan turn the columns into a matrix. `planned` makes the first two
steps, `PlannedColumns` all of them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from forerank.data.column_kinds import arrow_types
from forerank.data.column_plan import ColumnPlan, MixedColumn, mixed_columns, plan_columns
from forerank.data.frames import as_frame, with_types
from forerank.data.notations import Reading
from forerank.data.readings import WrittenColumn, declared_reading, written_columns

__all__ = ["PlannedColumns", "PlannedFrame", "planned"]

# Makes an exception from a message and, where there is one, a row, counted from 0.
Error = Callable[..., Exception]


@dataclass(frozen=True)
class PlannedFrame:
    """A frame with numbers and dates in place of strings that hold them, and the column plan.

    Attributes
    ----------
    frame : pandas.DataFrame
        All columns.
    plan : ColumnPlan
    readings : dict
        How columns of strings were read.
    written, mixed : lists
        Columns that were read in a notation, and numbers with strings among them.
    """

    frame: Any
    plan: ColumnPlan
    readings: dict[str, Reading]
    written: list[WrittenColumn]
    mixed: list[MixedColumn]


def planned(
    frame: Any,
    error: Error,
    *,
    types: Mapping[str, str] | None = None,
    exclude: Iterable[str | None] = (),
) -> PlannedFrame:
    """The column plan of a frame from `as_frame`; an error where no column can be used.

    Parameters
    ----------
    frame : pandas.DataFrame
    error : callable
        Makes the exception from a message and, where there is one, a row, counted from 0.
    types : mapping, optional
        Declared types of columns; see `plan_columns`.
    exclude : iterable of str
        Columns that are something else, such as the target and the groups.
    """
    types, exclude = types or {}, set(exclude)
    declared = {name: declared_reading(frame[name], kind) for name, kind in types.items()}
    readings = {name: each for name, each in declared.items() if each is not None}
    frame = with_types(frame, types, error, readings=readings)
    written = written_columns(frame, exclude={*exclude, *types})
    found = {column.name: column.reading for column in written}
    mixed = mixed_columns(frame, exclude={*exclude, *types, *found})
    found |= {each.name: Reading(missing=tuple(each.words)) for each in mixed if each.is_number}
    kinds = {name: "date" if each.is_date else "number" for name, each in found.items()}
    frame = with_types(frame, kinds, error, readings=found)
    plan = plan_columns(frame, exclude=exclude, types=types)
    if not plan.used:
        reasons = "; ".join(plan.lines()) or "only the target"
        raise error(f"no column can be used ({reasons}); add columns that differ by row")
    return PlannedFrame(frame, plan, readings | found, written, mixed)


class PlannedColumns(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """A table as the columns of a matrix for linear models, as `forerank fit` prepares them.

    Numbers and dates are imputed and scaled, categories become one-hot columns, texts tf-idf;
    columns that cannot help are not used (`forerank.data.column_plan`). Frames are of pandas,
    polars or pyarrow; their columns are found by name, and others are ignored. A category that
    was not among the fitted rows is like the rare ones, or has only zeros where there are none.

    Attributes
    ----------
    plan_ : ColumnPlan
        Kinds of the columns, and those that are left out; `plan_.lines()` describes both.
    columns_ : TableColumns
        The fitted steps of the plan.
    feature_names_in_ : array
        Names of the columns that are used.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [31, None, 28], "job": ["clerk", "cook", "clerk"]})
    >>> columns = PlannedColumns().fit(frame)
    >>> columns.get_feature_names_out().tolist()
    ['age', 'job=clerk', 'job=cook']
    >>> columns.transform(frame).shape
    (3, 3)
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose and fit the steps on the rows of a frame."""
        return self.fit_frame(X, _value_error)

    def fit_frame(self, X: Any, error: Error) -> Self:
        """The same with exceptions from `error`; see `planned`."""
        found = planned(as_frame(X), error)
        rows = found.frame[found.plan.used]
        self.plan_, self.readings_ = found.plan, found.readings
        self.kinds_ = found.plan.kinds(rows)
        self.columns_ = found.plan.transformer().fit(rows)
        self.feature_names_in_ = np.array(found.plan.used, dtype=object)
        self.n_features_in_ = self.feature_names_in_.size
        return self

    def transform(self, X: Any) -> Any:
        """The matrix: sparse where most of it is zero, else dense."""
        return self.transform_frame(X, _value_error)

    def transform_frame(self, X: Any, error: Error) -> Any:
        """The same with exceptions from `error`, for a value that is not of its column's kind."""
        check_is_fitted(self, "columns_")
        frame = as_frame(X)
        missing = [name for name in self.feature_names_in_ if name not in frame.columns]
        if missing:
            raise error(f"the columns {missing} are missing; the transformer was fitted on them")
        used = frame[self.feature_names_in_]
        return self.columns_.transform(
            with_types(used, self.kinds_, error, readings=self.readings_)
        )

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """The names of the columns of the matrix."""
        check_is_fitted(self, "columns_")
        return self.columns_.get_feature_names_out()

    def csv_options(self) -> dict[str, Any]:
        """Types and readings with which these columns of a CSV file are read."""
        check_is_fitted(self, "columns_")
        kept = {name: each for name, each in self.readings_.items() if name in self.kinds_}
        return {"types": arrow_types(self.kinds_), "readings": kept}


def _value_error(problem: str, row: int | None = None) -> ValueError:
    where = "" if row is None else f"Row {row + 1:,}: "
    return ValueError(f"{where}{problem}.")
