"""Data frames as the package reads them: names as strings, and few types of values.

`as_frame` takes pandas, polars and Arrow tables; `with_types` converts columns to declared types.
"""

import datetime
import decimal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank.data.notations import PLAIN, Reading, read_texts

__all__ = [
    "LARGEST_EXACT",
    "TIME_ZONE",
    "as_frame",
    "column_name",
    "distinct",
    "filled_names",
    "holds_containers",
    "holds_dates",
    "parses_as_number",
    "to_frame",
    "with_types",
]

# Largest integer up to which doubles represent every integer.
LARGEST_EXACT = 2**53
# A date whose time of day ends in a zone.
TIME_ZONE = r":.*(?:Z|[-+]\d\d(?::?\d\d)?)$"
# Values of a column of Python objects that are examined to find its type.
_EXAMINED = 100


def column_name(name: Any) -> str:
    """The name of a column as a string; that of several levels is joined by points.

    Examples
    --------
    >>> column_name(7), column_name(("price", "mean")), column_name(("label", ""))
    ('7', 'price.mean', 'label')
    """
    if isinstance(name, tuple):
        return ".".join(str(part) for part in name if str(part))
    return str(name)


def filled_names(names: Sequence[str]) -> list[str]:
    """Names of columns, with a name such as "column 3 (no name)" for each empty one."""
    return [name if name.strip() else f"column {k} (no name)" for k, name in enumerate(names, 1)]


def as_frame(data: Any) -> Any:
    """A pandas frame with the types of values that `plan_columns` and the transformers expect.

    Accepts pandas, polars and Arrow tables. Names are strings (see `column_name`), booleans the
    strings "true" and "false", decimals doubles, durations days; infinite numbers are missing.
    Integers beyond 2^53, which doubles do not represent, are strings.
    """
    import pandas as pd

    if hasattr(data, "schema") and hasattr(data, "column_names"):
        data = to_frame(data)
    elif hasattr(data, "to_pandas"):
        data = data.to_pandas()
    if not isinstance(data, pd.DataFrame):
        raise TypeError(f"A pandas or polars frame is expected, not {type(data).__name__}.")
    names = filled_names([column_name(name) for name in data.columns])
    if names != list(data.columns):
        data = data.set_axis(names, axis=1)
    if not data.columns.is_unique:
        twice = data.columns[data.columns.duplicated()][0]
        raise ValueError(f"The table has more than one column {twice!r}; names must differ.")
    columns = {name: _as_column(data[name]) for name in data.columns}
    changed = {name: column for name, column in columns.items() if column is not None}
    return data.assign(**changed) if changed else data


def _as_column(column: Any) -> Any:
    """A column converted as in `as_frame`; None where it needs no change."""
    import pandas as pd
    from pandas.api import types

    kind, is_object = column.dtype, types.is_object_dtype(column.dtype)
    if types.is_bool_dtype(kind) or (is_object and _all_are(column, bool)):
        return column.map({True: "true", False: "false"})
    if types.is_timedelta64_dtype(kind):
        return column / pd.Timedelta(days=1)
    if is_object and _all_are(column, decimal.Decimal):
        return column.astype(np.float64)
    if types.is_integer_dtype(kind):
        known = column.dropna() if column.hasnans else column
        if len(known) and max(int(known.max()), -int(known.min())) > LARGEST_EXACT:
            return column.map(str, na_action="ignore").astype(object)
    elif types.is_float_dtype(kind):
        values = column.to_numpy(np.float64, na_value=np.nan)
        finite = np.isfinite(values)
        if not finite.all() and np.isinf(values).any():
            return column.where(finite)
    return None


def to_frame(table: Any) -> Any:
    """A pyarrow table as a pandas frame: dates as such, decimals as doubles, booleans as "true" and
    "false", times of day as strings.

    Integers with missing values among them become doubles, or strings where one of them is beyond
    2^53.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import types

    for k, kind in enumerate(table.schema.types):
        column, new = table.column(k), None
        if types.is_boolean(kind) or types.is_time(kind):
            new = pa.string()
        elif types.is_decimal(kind):
            new = pa.float64()
        elif types.is_date(kind):
            new = pa.timestamp("s")
        elif types.is_integer(kind) and 0 < column.null_count < len(column):
            bounds = pc.min_max(column).as_py()
            if max(bounds["max"], -bounds["min"]) > LARGEST_EXACT:
                new = pa.string()
        if new is not None:
            table = table.set_column(k, table.schema.names[k], column.cast(new))
    return table.to_pandas(date_as_object=False, split_blocks=True, self_destruct=True)


def with_types(
    frame: Any,
    types: Mapping[str, str],
    error: Callable[[str, int], Exception],
    *,
    readings: Mapping[str, Reading] | None = None,
) -> Any:
    """A frame whose columns have the given types; a value of another type is an error.

    Parameters
    ----------
    frame : pandas.DataFrame
        As from `as_frame`.
    types : mapping from names to "number", "category", "text", "date" or "date with zone"
    error : callable
        Makes the exception from a message and a row, counted from 0.
    readings : mapping from names to Reading, optional
        How numbers or dates are read in columns of strings.
    """
    import pandas as pd

    changed: dict[str, Any] = {}
    for name, kind in types.items():
        column = frame[name]
        numeric = pd.api.types.is_numeric_dtype(column.dtype)
        is_date = pd.api.types.is_datetime64_any_dtype(column.dtype)
        reading = (readings or {}).get(name, Reading())
        if reading.notation != PLAIN and not numeric and not is_date and not holds_dates(column):
            changed[name] = _in_notation(column, reading, error)
        elif kind == "number" and not numeric:
            if reading.missing:
                texts = column.astype(object)
                column = texts.where(~texts.isin(reading.missing))
            # pandas would convert dates to numbers, and numbers to dates.
            read = None if is_date else pd.to_numeric
            changed[name] = _converted(column, read, "a number", error)
        elif kind.startswith("date") and not is_date and not holds_dates(column):
            read = None if numeric else _dates
            changed[name] = _converted(column, read, "a date such as 2021-03-04", error)
        elif kind in ("category", "text") and numeric:
            # 1 and 1.0 are the same string: integers with missing values are doubles.
            changed[name] = column.map(
                lambda v: str(int(v)) if float(v).is_integer() else str(v), na_action="ignore"
            )
    return frame.assign(**changed) if changed else frame


def _in_notation(column: Any, reading: Reading, error: Callable[[str, int], Exception]) -> Any:
    """A column of strings read as numbers or dates; one that cannot be read is an error."""
    import pandas as pd

    codes, found = distinct(column)
    values, unread = read_texts([str(value) for value in found], reading)
    rows = np.append(unread, False)[codes]
    if rows.any():
        row = int(np.argmax(rows))
        raise _unexpected(column, row, reading.expected, error)
    missing = np.datetime64("NaT", "us") if reading.is_date else np.nan
    return pd.Series(np.append(values, missing)[codes], index=column.index, name=column.name)


def _unexpected(
    column: Any, row: int, expected: str, error: Callable[[str, int], Exception]
) -> Exception:
    found = str(column.iloc[row])
    return error(f"the column {column.name!r} has {found!r}, and {expected} is expected", row)


def _dates(texts: Any, errors: str) -> Any:
    """Dates in ISO 8601 only: in other notations, day and month are ambiguous."""
    import pandas as pd

    dates = pd.to_datetime(texts, errors=errors, format="ISO8601", utc=True)
    first = texts.dropna().iloc[:1].astype(str)
    return dates if first.str.contains(TIME_ZONE).any() else dates.dt.tz_localize(None)


def _converted(
    column: Any, read: Any, expected: str, error: Callable[[str, int], Exception]
) -> Any:
    """A column of objects read as numbers or dates; with `read` None, every value is an error."""
    import pandas as pd

    texts = column.astype(object)
    unread = read is None
    values = pd.Series(np.nan, index=column.index) if unread else read(texts, errors="coerce")
    bad = (column.notna() & values.isna()).to_numpy()
    if bad.any():
        raise _unexpected(column, int(np.argmax(bad)), expected, error)
    return values


def distinct(column: Any) -> tuple[NDArray[np.integer], Any]:
    """The number of each row's value (-1: missing), and the distinct values."""
    import pandas as pd

    if not isinstance(column.dtype, pd.CategoricalDtype):
        return pd.factorize(column, use_na_sentinel=True)
    codes, values = column.cat.codes.to_numpy(), column.cat.categories
    used = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(values)))
    if used.size < len(values):
        renumbered = np.full(len(values) + 1, -1)
        renumbered[used] = np.arange(used.size)
        codes = renumbered[codes]
    return codes, values[used]


def parses_as_number(value: Any) -> bool:
    """Whether a string, or a value, can be read as a number."""
    try:
        float(value)
    except ValueError:
        return False
    return True


def holds_dates(column: Any) -> bool:
    """Whether a column holds dates, also as Python objects."""
    from pandas.api import types

    if types.is_datetime64_any_dtype(column.dtype):
        return True
    return column.dtype == object and _all_are(column, datetime.date)


def holds_containers(column: Any) -> bool:
    """Whether a column of Python objects holds bytes, lists or other values with parts."""
    if column.dtype != object:
        return False
    return any(
        isinstance(value, bytes) or (hasattr(value, "__len__") and not isinstance(value, str))
        for value in column.dropna().iloc[:_EXAMINED]
    )


def _all_are(column: Any, kind: type) -> bool:
    known = column.dropna().iloc[:_EXAMINED]
    return len(known) > 0 and all(isinstance(value, kind) for value in known)
