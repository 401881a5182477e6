"""Labels of groups in blocks of a table, whose types may differ from block to block."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["group_hashes", "group_values"]

# Up to here doubles have all whole numbers.
_WHOLE = 2.0**53


def group_values(column: Any) -> NDArray:
    """The labels of a pandas column as numbers or strings; whole numbers as integers, although a
    block of a CSV file, or a file among others, may have them as doubles.
    """
    values = column.to_numpy()
    if values.dtype.kind == "f" and _are_whole(values).all():
        return values.astype(np.int64)
    return values if values.dtype.kind in "biuf" else values.astype(str)


def group_hashes(values: NDArray) -> NDArray[np.uint64]:
    """Hashes of labels: the same for the same number in any type."""
    from pandas.util import hash_array

    if values.dtype.kind not in "biuf":
        return hash_array(values.astype(object))
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
        hashes, whole = hash_array(values), _are_whole(values)
        hashes[whole] = hash_array(values[whole].astype(np.int64))
        return hashes
    # The bits of a negative number depend on the size of its type.
    return hash_array(values if values.dtype.kind == "u" else values.astype(np.int64))


def _are_whole(values: NDArray) -> NDArray[np.bool_]:
    return (np.abs(values) < _WHOLE) & (values == np.floor(values))
