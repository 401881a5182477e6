"""Numbers and dates of a table for additive models: each column becomes a curve.

A number has a line, a few curves (`forerank.data.splines`) and, where values are missing, a flag. A
date has these for its days, and a column for each hour, weekday and month, where they vary and rows
are many.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from forerank._typing import Vector
from forerank.data.date_parts import date_part, part_name, varying_parts
from forerank.data.frames import holds_dates
from forerank.data.splines import ColumnSpline, curves_per_column, first_values
from forerank.data.transformers import column_floats

__all__ = ["AdditiveColumns"]


# Rows for each hour, weekday or month, in the mean, from which it has a column.
_ROWS_PER_PART = 50


def _frequent_parts(days: Vector) -> dict[str, Vector]:
    """The parts of dates that vary and have enough rows for each of their values."""
    n_known = int(np.isfinite(days).sum())
    return {
        part: values
        for part, values in varying_parts(days)
        if values.size * _ROWS_PER_PART <= n_known
    }


class AdditiveColumns(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Splines of numbers and dates, flags of missing values, and parts of dates.

    Parameters
    ----------
    n_curves : int, optional
        Most curves of a column beside its line; by default up to six, by the number of rows.

    Attributes
    ----------
    splines_ : list of ColumnSpline
        One for each column; of its days, for a date.
    dates_ : list of bool
        Whether the column holds dates.
    parts_ : list of dict
        For each column, the parts of dates that have columns, and the values of each.
    widths_ : list of int
        Number of output columns of each column.
    """

    def __init__(self, n_curves: int | None = None) -> None:
        self.n_curves = n_curves

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find scales, knots and curves of each column."""
        self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.n_features_in_ = X.shape[1]
        self.dates_ = [holds_dates(X[name]) for name in self.feature_names_in_]
        self.splines_, self.parts_ = list[ColumnSpline](), list[dict[str, Vector]]()
        columns = list(zip(self.feature_names_in_, self.dates_, strict=True))
        n_curves = self.n_curves
        if n_curves is None:
            floats = (column_floats(X[name], dates=is_date) for name, is_date in columns)
            n_curves = curves_per_column(len(X), sum(first_values(x).size > 2 for x in floats))
        for name, is_date in columns:
            values = column_floats(X[name], dates=is_date)
            self.splines_.append(ColumnSpline.fitted(values, n_curves))
            self.parts_.append(_frequent_parts(values) if is_date else {})
        self.widths_ = [
            spline.width + sum(values.size for values in parts.values())
            for spline, parts in zip(self.splines_, self.parts_, strict=True)
        ]
        return self

    def transform(self, X: Any) -> NDArray:
        """The output columns of all columns, as an array."""
        check_is_fitted(self, "splines_")
        out, first = np.empty((len(X), sum(self.widths_))), 0
        for k, name in enumerate(self.feature_names_in_):
            last = first + self.widths_[k]
            self._fill(column_floats(X[name], dates=self.dates_[k]), k, out[:, first:last])
            first = last
        return out

    def _fill(self, values: Vector, k: int, out: NDArray) -> None:
        at = self.splines_[k].width
        out[:, :at] = self.splines_[k].transform(values)
        for part, known in self.parts_[k].items():
            out[:, at : at + known.size] = date_part(values, part)[:, None] == known
            at += known.size

    def term(self, column: Any, k: int, weights: Vector) -> Vector:
        """The output columns of column k times their weights, without the matrix."""
        values = column_floats(column, dates=self.dates_[k])
        at = self.splines_[k].width
        scores = self.splines_[k].term(values, weights[:at])
        for part, known in self.parts_[k].items():
            found = date_part(values, part)
            place = np.minimum(np.searchsorted(known, found), known.size - 1)
            scores += np.where(known[place] == found, weights[at : at + known.size][place], 0.0)
            at += known.size
        return scores

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Names such as "age", "age spline 1", "age missing", "date weekday=Mon"."""
        check_is_fitted(self, "splines_")
        names: list[str] = []
        for name, spline, parts in zip(
            self.feature_names_in_, self.splines_, self.parts_, strict=True
        ):
            names += spline.names(str(name))
            for part, values in parts.items():
                names += [f"{name} {part}={part_name(part, value)}" for value in values]
        return np.array(names, dtype=object)
