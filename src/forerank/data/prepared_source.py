"""Rows of a table as the columns that `forerank fit` makes of them: the plan of a sample, applied
block by block.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain

from forerank.data.frame_sample import draw_rows, sample_size
from forerank.data.frames import as_frame
from forerank.data.planned_columns import PlannedColumns
from forerank.data.row_blocks import BlockStorage
from forerank.data.row_sources import ArraySource, Batch, TableSource
from forerank.exceptions import DataFileError

__all__ = ["PreparedSource", "prepared"]

Say = Callable[[str], None]

# Seed of the sample: the same files have the same columns.
_SEED = 0


class PreparedSource:
    """A table whose columns are turned into numbers by `PlannedColumns`.

    Parameters
    ----------
    table : TableSource
    memory : int
        Bytes, of which a sample takes up to a quarter.
    say : callable
        Called with a line on the sample and on each kind of column.
    """

    def __init__(self, table: TableSource, memory: int, say: Say) -> None:
        self._table, self._memory, self._say = table, memory, say
        self.files, self.name = table.files, table.name
        self.n_columns_read = table.n_columns_read
        self._in_blocks = BlockStorage()

    @cached_property
    def transformer(self) -> PlannedColumns:
        """The transformer, fitted on a random sample of all rows, for which they are read once."""
        self._say("reading a sample of the rows")
        columns = self._table.columns
        frames = (as_frame(frame) for frame in self._table.frames(columns) if len(frame))
        first = next(frames, None)
        if first is None:
            raise DataFileError(self.name, "there are no rows")
        size = sample_size(first, self._memory)
        sample = draw_rows(chain([first], frames), size, _SEED)
        transformer = PlannedColumns().fit_frame(sample, self._error(0))
        for line in transformer.plan_.lines():
            self._say(line)
        return transformer

    @property
    def columns(self) -> list[str]:
        """The names of the prepared columns."""
        return self.transformer.get_feature_names_out().tolist()

    @property
    def n_rows(self) -> int | None:
        """Number of rows, where it is known before they are read."""
        return self._table.n_rows

    def batches(self) -> Iterator[Batch]:
        """All rows, block by block."""
        transformer, table, begin = self.transformer, self._table, 0
        used = transformer.feature_names_in_.tolist()
        for frame in table.frames(table.with_special(used), transformer.csv_options()):
            if len(frame):
                X = transformer.transform_frame(frame, self._error(begin))
                yield table.batch(self._in_blocks(X), frame, begin)
            begin += len(frame)

    def _error(self, begin: int) -> Callable[..., DataFileError]:
        """A function that makes exceptions, for rows of which the first is row `begin` of all."""

        def error(problem: str, row: int | None = None) -> DataFileError:
            where = "" if row is None else f"row {begin + row + 1:,}: "
            return DataFileError(self.name, f"{where}{problem}")

        return error


def prepared(
    source: TableSource | ArraySource, prepare: bool | None, memory: int, say: Say
) -> TableSource | ArraySource | PreparedSource:
    """The source, with its columns prepared where that is asked for or needed; see `open_rows`."""
    if prepare is None:
        prepare = bool(source.words or source.gaps)
    if prepare and isinstance(source, TableSource):
        return PreparedSource(source, memory, say)
    if prepare:
        raise DataFileError(
            source.name, "the columns of a .npy file are not prepared; write it as Parquet"
        )
    if source.words:
        raise DataFileError(
            source.name,
            f"the column {source.words[0]!r} does not hold numbers; leave it out with drop, or let "
            "open_rows prepare the columns (prepare=True)",
        )
    return source
