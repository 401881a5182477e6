"""Rows of a table as the columns of a fitted transformer, made when they are needed: as a matrix,
or block by block.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from forerank._typing import Index
from forerank.data.row_sources import Batch
from forerank.data.row_stream import RowStream

__all__ = ["TableRows"]

# Rows that are made at a time.
_BLOCK_ROWS = 1 << 14
# Bytes for blocks and the sample of a stream: with more, fits take no fewer passes.
_STREAM_BYTES = 5 * 10**8


class TableRows:
    """Rows of a frame, in an order, as the columns of a fitted transformer.

    Parameters
    ----------
    columns : TableColumns
        Fitted.
    frame : pandas.DataFrame
    rows : array of int
        Numbers of the rows.
    """

    def __init__(self, columns: Any, frame: Any, rows: Index) -> None:
        self._columns, self._frame, self._rows = columns, frame, rows
        first = columns.transform_rows(frame, rows[:_BLOCK_ROWS])
        self.shape = rows.size, first.shape[1]
        size = first.data.nbytes + first.indices.nbytes if sp.issparse(first) else first.nbytes
        # Of the matrix, estimated from the first rows.
        self.n_bytes = int(size * (rows.size / max(first.shape[0], 1)))

    def matrix(self, dtype: type[np.floating] = np.float64) -> Any:
        """All rows as one matrix of numbers of this type."""
        return self._columns.transform_rows(self._frame, self._rows, dtype)

    def some(self, most: int) -> Any:
        """At most so many rows, equally spaced, as one matrix."""
        rows = self._rows[:: max(1, -(-self._rows.size // most))]
        return self._columns.transform_rows(self._frame, rows)

    def blocks(self) -> Iterator[tuple[int, int, Any]]:
        """All rows as matrices of float32, each with its range."""
        for begin in range(0, self._rows.size, _BLOCK_ROWS):
            rows = self._rows[begin : begin + _BLOCK_ROWS]
            X = self._columns.transform_rows(self._frame, rows, np.float32)
            yield begin, begin + rows.size, X

    def stream(self, labels: NDArray) -> RowStream:
        """The rows with their labels for a fit block by block; numbers are float32."""
        return RowStream(_Source(self, labels), grouped=False, memory=_STREAM_BYTES)


class _Source:
    """What a stream reads."""

    transformer = None

    def __init__(self, rows: TableRows, labels: NDArray) -> None:
        self._rows, self._labels = rows, labels
        self.files, self.name = list[Path](), "the table"
        self.columns, self.n_columns_read = list[str](), rows.shape[1]
        self.n_rows = rows.shape[0]

    def batches(self) -> Iterator[Batch]:
        """All rows, block by block."""
        for begin, end, X in self._rows.blocks():
            yield Batch(X, self._labels[begin:end])
