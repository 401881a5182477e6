"""Kinds of columns: what users may declare, what model files hold, and the pyarrow type of each."""

from collections.abc import Mapping
from typing import Any

__all__ = ["COLUMN_KINDS", "COLUMN_TYPES", "arrow_types"]

# Types that a user may declare for a column, and the field of `ColumnPlan` that lists such columns.
COLUMN_TYPES = {"number": "numbers", "category": "categories", "text": "texts", "date": "dates"}
# Kinds of columns in a model file.
COLUMN_KINDS = ("number", "category", "text", "date", "date with zone")


def arrow_types(columns: Mapping[str, str]) -> dict[str, Any]:
    """The pyarrow types to read columns of these kinds with."""
    import pyarrow as pa

    types = {
        "number": pa.float64(),
        "category": pa.dictionary(pa.int32(), pa.string()),
        "text": pa.string(),
        "date": pa.timestamp("us"),
        "date with zone": pa.timestamp("us", "UTC"),
    }
    return {name: types[kind] for name, kind in columns.items()}
