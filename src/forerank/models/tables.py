"""Rows as a model reads them: its source of data, its columns and their types, missing columns."""

from typing import Any

import numpy as np

from forerank._text import listed
from forerank.data.column_kinds import arrow_types
from forerank.data.frames import with_types
from forerank.data.notations import PLAIN, Reading
from forerank.data.source import DataSource, ReadOptions
from forerank.exceptions import DataFileError
from forerank.models.file import Model

__all__ = [
    "column_types",
    "missing_columns",
    "model_frame",
    "model_readings",
    "model_source",
    "model_table",
    "n_matrix_columns",
]


def model_source(model: Model, data: Any, options: ReadOptions) -> DataSource:
    """The source of rows for a model, in the encoding of its training file unless it is UTF-8."""
    return DataSource(data, options, usual=model.summary.get("encoding"))


def model_table(model: Model, source: DataSource) -> Any:
    """The table of a source, with the columns of the model read as the kinds it was fitted on."""
    if not model.columns:
        raise source.error("the model was fitted on a matrix; give an svmlight or .npz file")
    return source.frame(_column_kinds(model), model_readings(model))


def _column_kinds(model: Model) -> dict[str, str]:
    return model.columns | ({} if model.group is None else {model.group: "text"})


def column_types(model: Model) -> dict[str, Any]:
    """The pyarrow types of the columns of a model and of its groups, which are strings."""
    return arrow_types(_column_kinds(model))


def model_readings(model: Model) -> dict[str, Reading]:
    """How numbers and dates were read in columns of strings that the model was fitted on."""
    notations, missing = (model.summary.get(name, {}) for name in ("notations", "missing_words"))
    readings = {}
    for name in {**notations, **missing}:
        reading = Reading(notations.get(name, PLAIN), tuple(missing.get(name, ())))
        kind = "date" if reading.is_date else "number"
        if model.columns.get(name) == kind:
            readings[name] = reading
    return readings


def model_frame(
    model: Model, frame: Any, path: Any, *, allow_missing: bool = False, rows_before: int = 0
) -> Any:
    """The columns of the model, with the types that it was fitted on.

    A missing column is an error or, with `allow_missing`, has missing values. Errors count rows
    from the `rows_before` rows before this frame.
    """
    import pandas as pd

    empty: dict[str, Any] = {}
    for name in missing_columns(model, list(frame.columns), path, allow_missing):
        kind = model.columns[name].partition(" ")[0]
        dtype = {"number": "float64", "date": "datetime64[us]"}.get(kind, "object")
        empty[name] = pd.Series(np.nan, index=frame.index, dtype=dtype)
    kinds = {name: kind for name, kind in model.columns.items() if name not in empty}

    def refuse(problem: str, row: int) -> DataFileError:
        return DataFileError(path, f"row {rows_before + row + 1:,}: {problem}")

    frame = with_types(frame, kinds, refuse, readings=model_readings(model))
    return frame.assign(**empty) if empty else frame


def missing_columns(model: Model, names: list[Any], path: Any, allowed: bool) -> list[str]:
    """Columns of the model that are not among these names; DataFileError unless allowed."""
    missing = [name for name in model.columns if name not in names]
    if missing and not allowed:
        names_shown, n_columns = listed(map(repr, missing)), len(model.columns)
        raise DataFileError(
            path,
            f"columns of the model are missing: {names_shown} ({len(missing)} of {n_columns}); "
            "add them, or allow missing columns",
            arguments={"allow_missing": True},
        )
    return missing


def n_matrix_columns(model: Model) -> int:
    """Number of columns of a model that reads a matrix."""
    return int(model.summary.get("n_columns", model.estimator.n_features_in_))
