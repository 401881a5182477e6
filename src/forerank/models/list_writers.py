"""Writers of ranked lists: lines of a CSV file unchanged, or tables in several formats."""

import csv
import io
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from forerank.data.csv import CsvFile
from forerank.data.files import first_line
from forerank.data.formats import suffix_of
from forerank.exceptions import DataFileError
from forerank.models.external_sort import SortedRows

__all__ = ["AddedColumns", "LineWriter", "TableWriter", "list_format"]

# Values of the columns that a list adds to those of its file, in the order of their names.
AddedColumns = Callable[[SortedRows], list[NDArray]]

# Format of each suffix of a list: the suffix itself, except for Arrow files.
_FORMATS = {f".{name}": name for name in ("csv", "tsv", "parquet", "feather")}
_FORMATS[".arrow"] = "feather"


def list_format(out: Any) -> str:
    """Format of a ranked list by the suffix of its path; .gz or .bz2 may follow it."""
    format = _FORMATS.get(suffix_of(out))
    if format is None:
        known = ", ".join(_FORMATS)
        raise DataFileError(out, f"unknown format of a ranked list; choose one of {known}")
    return format


class LineWriter:
    """Writes lines of a CSV file unchanged, with the added columns at their ends."""

    def __init__(
        self, file: BinaryIO, source: CsvFile, names: tuple[str, ...], added: AddedColumns
    ) -> None:
        self._file, self._delimiter, self._added = file, source.delimiter, added
        header = source.header.rstrip(b"\r\n")
        self._end = "\r\n" if source.header.endswith(b"\r\n") else "\n"
        self._file.write(header + (self._delimiter.join(["", *names]) + self._end).encode())

    def prepare(self, part: SortedRows) -> Any:
        """The text of some rows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        *columns, last = (pc.cast(pa.array(values), pa.string()) for values in self._added(part))
        lines = part.table["line"].combine_chunks()
        ends = pc.binary_join_element_wise(last, "", self._end)
        text = pc.binary_join_element_wise(lines, *columns, ends, self._delimiter)
        _, offsets, data = text.buffers()
        begin, end = np.frombuffer(offsets, np.int32)[[text.offset, text.offset + len(text)]]
        return memoryview(data)[begin:end]

    def write(self, text: Any) -> None:
        self._file.write(text)

    def close(self) -> None:
        pass


class TableWriter:
    """Writes a table with the columns of the file and the added ones."""

    def __init__(
        self, file: BinaryIO, format: str, delimiter: str, names: tuple[str, ...], added: Any
    ) -> None:
        self._file, self._format, self._delimiter = file, format, delimiter
        self._names, self._added = names, added
        self._writer: Any = None

    def prepare(self, part: SortedRows) -> Any:
        """Some rows with the added columns, as a pyarrow table."""
        import pyarrow as pa

        table = part.table
        for name, values in zip(self._names, self._added(part), strict=True):
            table = table.append_column(name, pa.array(values))
        return table

    def write(self, table: Any) -> None:
        import pyarrow as pa

        try:
            if self._writer is None:
                self._writer = self._open(table.schema)
            self._writer.write_table(table)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            problem = f"cannot be written ({first_line(error)}); try Parquet or Feather"
            raise DataFileError("the ranked list", problem) from None

    def _open(self, schema: Any) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv
        from pyarrow import parquet

        if self._format == "parquet":
            return parquet.ParquetWriter(self._file, schema)
        if self._format == "feather":
            return pa.ipc.new_file(self._file, schema)
        # The header is written here: quotes only where needed; pyarrow would quote every name.
        mark, header = self._delimiter, io.StringIO()
        csv.writer(header, delimiter=mark, lineterminator="\n").writerow(schema.names)
        self._file.write(header.getvalue().encode())
        options = {"delimiter": mark, "quoting_style": "needed", "include_header": False}
        options = arrow_csv.WriteOptions(**options)
        return arrow_csv.CSVWriter(self._file, schema, write_options=options)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
