"""CSV files in blocks of complete rows: pyarrow parses the values, and the text of each row remains
available.

A block ends where a row ends, which depends only on which newlines are inside quotes. Each block is
parsed on its own, so that memory does not grow with the file, an error can name the line, and a row
can be written again with the text it was read from.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from forerank._kernels import compiled
from forerank.data.encodings import binary_problem, encoding_problem
from forerank.data.files import first_line
from forerank.data.frames import LARGEST_EXACT, filled_names
from forerank.data.notations import PLAIN, Reading, read_texts
from forerank.data.prefetch import parallel_map
from forerank.exceptions import CsvProblem

__all__ = ["DELIMITERS", "Block", "CsvFile", "CsvOptions"]

DELIMITERS = (",", ";", "\t", "|")
# Bytes of text in a block, and bytes that are read at a time in search of the end of the header.
_BLOCK_BYTES = 1 << 22
_HEADER_BYTES = 1 << 20
# Bytes that pyarrow parses at a time; a longer row makes it fail.
_ARROW_BYTES = 1 << 20
_QUOTE, _NEWLINE, _RETURN = 34, 10, 13
# Missing values as R, pandas, databases and the UCI repository write them.
_NULLS = ["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "?"]


@dataclass(frozen=True)
class Block:
    """Complete rows, and the number in the file of the line that they begin with."""

    text: bytes
    line: int


@dataclass(frozen=True)
class CsvOptions:
    """Columns to read and their types."""

    columns: Sequence[str] | None = None  # None for all
    types: Mapping[str, Any] = field(default_factory=dict)  # of pyarrow; others follow from values
    readings: Mapping[str, Reading] = field(default_factory=dict)  # of columns of strings
    categories: int = 0  # most different strings of a column that becomes a dictionary column
    missing_strings: bool = True  # whether "NA", "?" and empty strings are missing values


class CsvFile:
    """A CSV file with a header: the line `header`, the `names` in it and the `delimiter`.

    `opened` opens the file for reading bytes. By default the delimiter is the most frequent one of
    the header.
    """

    def __init__(self, opened: Callable[[], BinaryIO], delimiter: str | None = None) -> None:
        self._opened = opened
        head, ends = b"", np.empty(0, dtype=np.int64)
        with opened() as file:
            while not ends.size:
                more = file.read(_HEADER_BYTES)
                head += more
                self._skipped = head[: len(head) - len(head.lstrip(b"\r\n"))]
                text = head[len(self._skipped) :]
                if b"\x00" in text:
                    raise binary_problem(text)
                counts = Counter((text.splitlines() or [b""])[0].decode("latin-1"))
                self.delimiter = delimiter or max(DELIMITERS, key=counts.__getitem__)
                ends, _ = _row_ends(text, self.delimiter)
                if not more:
                    break
        if not text.strip():
            raise CsvProblem("the file is empty")
        if not ends.size and b"\r" in text.strip():
            raise CsvProblem("the lines end in carriage returns only; convert them to newlines")
        self.header = text[: ends[0]] if ends.size else text
        self._first_line = 1 + self._skipped.count(b"\n")
        self.names = self._read_names()
        self._decimal = _decimal_mark(text[len(self.header) :], self.delimiter)

    def blocks(self, block_bytes: int = _BLOCK_BYTES) -> Iterator[Block]:
        """The rows, in blocks of about `block_bytes` bytes."""
        with self._opened() as file:
            file.read(len(self._skipped) + len(self.header))
            rest, line = b"", self._first_line + self.header.count(b"\n")
            while True:
                # Twice as much where no row ends, so that a long value is not scanned repeatedly.
                data = file.read(max(block_bytes, len(rest)))
                text = rest + data
                end, open_at = self._last_row_end(text)
                if not data:
                    if open_at is not None:
                        line += text[:open_at].count(b"\n")
                        raise CsvProblem(
                            "a quote opens here and never closes; add the closing one", line
                        )
                    end = len(text)
                if text[:end].strip():
                    yield Block(text[:end], line)
                if not data:
                    return
                line += text.count(b"\n", 0, end)
                rest = text[end:]

    def parse(self, block: Block, options: CsvOptions | None = None) -> Any:
        """The rows of a block as a pyarrow table.

        Integers that neither 64 bits nor doubles represent remain text.
        """
        import pyarrow as pa

        options = options or CsvOptions()
        wanted = self.names if options.columns is None else options.columns
        readings = {name: each for name, each in options.readings.items() if name in wanted}
        types = {**options.types, **dict.fromkeys(readings, pa.string())}
        table = self._parsed(block, replace(options, types=types))
        new = {name: self._read(table[name], readings[name], block, name) for name in readings}
        large = [
            name
            for name in table.column_names
            if name not in types and _is_beyond_integers(table[name])
        ]
        if large:
            texts = self._parsed(block, CsvOptions(large, dict.fromkeys(large, pa.string())))
            new |= {name: texts[name] for name in large if _all_integers(texts[name])}
        for name, column in new.items():
            table = table.set_column(table.column_names.index(name), name, column)
        return table

    def _parsed(self, block: Block, options: CsvOptions) -> Any:
        import pyarrow as pa
        from pyarrow import csv

        def read(block_size: int) -> Any:
            # One thread: pyarrow's own threads double the work for little gain, and do not count
            # rows. Blocks are parsed in parallel instead.
            return csv.read_csv(
                pa.BufferReader(block.text),
                csv.ReadOptions(column_names=self.names, use_threads=False, block_size=block_size),
                self._parsing(),
                _conversion(options, self._decimal),
            )

        try:
            try:
                table = read(_ARROW_BYTES)
            except pa.ArrowInvalid as error:
                if "straddl" not in str(error):
                    raise
                table = read(len(block.text) + 1)  # a row longer than pyarrow's blocks
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError) as error:
            name = self._column_with_fractions(error)
            if name is None or options.types.get(name) != pa.int64():
                raise self._problem(error, block) from None
            # Whole numbers in the first block, by which types are chosen.
            types = {**options.types, name: pa.float64()}
            return self._parsed(block, replace(options, types=types))
        if any(_is_bytes(kind) for kind in table.schema.types):
            raise encoding_problem(block.text, block.line)
        return table

    def _column_with_fractions(self, error: Exception) -> str | None:
        """The column of an error where an integer was expected and there is something else."""
        pattern = r"In CSV column #(\d+): .*conversion error to int64: [^']*'(.*)'"
        found = re.search(pattern, first_line(error))
        if found is None or re.fullmatch(r"\s*[-+]?\d+\s*", found[2]):
            return None  # an integer that 64 bits do not represent
        return self.names[int(found[1])]

    def _read(self, column: Any, reading: Reading, block: Block, name: str) -> Any:
        """Text as doubles or dates; a string that cannot be read is an error."""
        import pyarrow as pa

        if reading.notation == PLAIN:
            return self._numbers(column, reading.missing, block, name)
        codes = column.combine_chunks().dictionary_encode()
        values, unread = read_texts(codes.dictionary.to_pylist(), reading)
        indices = codes.indices
        if unread.any():
            row = int(np.argmax(np.append(unread, False)[indices.fill_null(-1).to_numpy()]))
            raise self._unexpected(name, column[row].as_py(), reading.expected, block, row)
        kind = pa.timestamp("us") if reading.is_date else pa.float64()
        return pa.array(values, kind).take(indices)

    def _unexpected(
        self, name: str, value: Any, expected: str, block: Block, row: int
    ) -> CsvProblem:
        problem = f"the column {name!r} has {value!r}, and {expected} is expected"
        return CsvProblem(problem, self._line_in(block, row))

    def _numbers(self, column: Any, words: Sequence[str], block: Block, name: str) -> Any:
        """Text as doubles, where `words` are missing values; any other string is an error."""
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = pc.utf8_trim_whitespace(column)
        is_word = pc.is_in(texts, value_set=pa.array([word.strip() for word in words], pa.string()))
        texts = pc.if_else(is_word, pa.scalar(None, pa.string()), texts)
        if self._decimal == ",":
            texts = pc.replace_substring(texts, ",", ".")
        try:
            return pc.cast(texts, pa.float64())
        except pa.ArrowInvalid as error:
            found = re.search(r"string: '(.*)' as", first_line(error))
            row = max(0, pc.index(texts, pa.scalar(found[1] if found else "")).as_py())
            value = column[row].as_py()
            raise self._unexpected(name, value, "a number", block, row) from None

    def tables(self, options: CsvOptions | None = None) -> Iterator[Any]:
        """All blocks as pyarrow tables, several being parsed at a time."""
        return parallel_map(lambda block: self.parse(block, options), self.blocks())

    def table(self, options: CsvOptions | None = None) -> Any:
        """All rows as a pyarrow table; the type of a column is one that represents the values of
        all blocks.

        pyarrow's own reader of complete files keeps their text until it knows the types, which
        takes three times the memory.
        """
        import pyarrow as pa

        options = options or CsvOptions()
        while True:
            tables, found = list[Any](), dict[str, Any]()
            texts: set[str] = set()
            for table in self.tables(options):
                for name, kind in zip(table.schema.names, table.schema.types, strict=True):
                    common = _common_type(found.get(name, kind), kind)
                    if common is None:
                        texts.add(name)
                    else:
                        found[name] = common
                tables = [] if texts else [*tables, table]
            if not texts:
                break
            # Numbers in one block and strings in another: strings, whose text only the file has.
            options = replace(options, types={**options.types, **dict.fromkeys(texts, pa.string())})
        if not tables:
            return pa.table({name: [] for name in options.columns or self.names})
        schema = pa.schema(list(found.items()))
        # Integers beyond 2^53 become doubles where fractions are among them.
        converted = [tables.pop(0).cast(schema, safe=False) for _ in range(len(tables))]
        return pa.concat_tables(converted).unify_dictionaries()

    def lines(self, block: Block, n_rows: int) -> Any:
        """The text of each row of a block, without its line end, as a pyarrow array."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ends, _ = _row_ends(block.text, self.delimiter)
        if not ends.size or ends[-1] < len(block.text):
            ends = np.append(ends, len(block.text))
        offsets = np.concatenate([[0], ends]).astype(np.int32)
        buffers = pa.py_buffer(offsets), pa.py_buffer(block.text)
        lines = pc.utf8_rtrim(pa.StringArray.from_buffers(ends.size, *buffers), "\r\n")
        if len(lines) != n_rows:  # empty lines are not rows
            lines = lines.filter(pc.greater(pc.binary_length(lines), 0))
        if len(lines) != n_rows:
            problem = f"{n_rows} rows were read from {len(lines)} lines; are there stray line ends?"
            raise CsvProblem(problem, block.line)
        return lines

    def line_of_row(self, row: int) -> int:
        """The line in which a row begins, rows counted from 0."""
        before = 0
        for block in self.blocks():
            n_rows = len(self._texts(block, self.names[0]))
            if row < before + n_rows:
                return self._line_in(block, row - before)
            before += n_rows
        raise IndexError(row)

    def _read_names(self) -> list[str]:
        import pyarrow as pa
        from pyarrow import csv

        try:
            self.header.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise encoding_problem(self.header, self._first_line) from None
        try:
            options = csv.ReadOptions(block_size=len(self.header) + 1)
            header = csv.read_csv(pa.BufferReader(self.header), options, self._parsing())
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            problem = f"the header cannot be read ({first_line(error)})"
            raise CsvProblem(problem, self._first_line) from None
        names = filled_names(header.column_names)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            problem = f"the header names the column {twice[0]!r} more than once"
            raise CsvProblem(problem, self._first_line)
        return names

    def _parsing(self) -> Any:
        from pyarrow import csv

        return csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)

    def _last_row_end(self, text: bytes) -> tuple[int, int | None]:
        if b'"' not in text:
            return text.rfind(b"\n") + 1, None
        ends, open_at = _row_ends(text, self.delimiter)
        return (int(ends[-1]) if ends.size else 0), open_at

    def _line_in(self, block: Block, row: int) -> int:
        """The line of a row of a block; empty lines are not rows."""
        ends, _ = _row_ends(block.text, self.delimiter)
        begin, found = 0, 0
        for end in [*ends.tolist(), len(block.text)]:
            if block.text[begin:end].strip(b"\r\n"):
                if found == row:
                    break
                found += 1
            begin = end
        return block.line + block.text.count(b"\n", 0, begin)

    def _problem(self, error: Exception, block: Block) -> CsvProblem:
        """An error of pyarrow, with the line and the column."""
        import pyarrow as pa
        import pyarrow.compute as pc

        text = first_line(error)
        ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text)
        if ragged:
            row, expected, got = map(int, ragged.groups())
            problem = f"a row of {got} values, and the header has {expected} names"
            problem += f" (delimiter {self.delimiter!r})"
            return CsvProblem(problem, self._line_in(block, row - 1))
        value = re.search(r"In CSV column #(\d+): .*conversion error to ([^:]+): [^']*'(.*)'", text)
        if value:
            name, kind, shown = self.names[int(value[1])], value[2], value[3]
            if kind in ("double", "int64"):
                kind = "a number"
            elif kind.startswith(("time", "date")):
                zone = "with a zone" if "tz=" in kind else "without a zone"
                kind = f"a date {zone}" if "zone offset" in text else "a date such as 2021-03-04"
            row = pc.index(self._texts(block, name), pa.scalar(shown)).as_py()
            return self._unexpected(name, shown, kind, block, max(0, row))
        if "UTF8" in text or "utf-8" in text.lower():
            return encoding_problem(block.text, block.line)
        return CsvProblem(f"cannot be read as CSV ({text})", block.line)

    def _texts(self, block: Block, name: str) -> Any:
        """A column of a block as text."""
        import pyarrow as pa

        return self.parse(block, CsvOptions([name], {name: pa.string()}))[name]


def _decimal_mark(text: bytes, delimiter: str) -> str:
    """A comma where numbers are written with commas and none with a point; a point where commas
    delimit values.
    """
    if delimiter == ",":
        return "."
    mark = re.escape(delimiter.encode())
    begin, end = rb'(?:^|\n|%s)"?[-+]?' % mark, rb'"?(?=%s|\r|\n|$)' % mark
    with_comma, with_point = (
        re.search(begin + rb"\d+" + point + rb"\d+" + end, text) for point in (rb",", rb"\.")
    )
    return "," if with_comma and not with_point else "."


def _conversion(options: CsvOptions, decimal: str) -> Any:
    """Options of pyarrow: no value is a boolean (true and false are categories), and empty values
    are missing.
    """
    from pyarrow import csv

    return csv.ConvertOptions(
        include_columns=None if options.columns is None else list(options.columns),
        column_types=dict(options.types) or None,
        null_values=_NULLS,
        decimal_point=decimal,
        true_values=[],
        false_values=[],
        strings_can_be_null=options.missing_strings,
        auto_dict_encode=options.categories > 0,
        auto_dict_max_cardinality=options.categories or None,
    )


def _common_type(one: Any, other: Any) -> Any:
    """A type for the values of both; None where only text represents them, as for times of day."""
    from pyarrow import types

    if types.is_time(one) or types.is_time(other):
        return None
    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    for first, second in ((one, other), (other, one)):
        if types.is_floating(first) and types.is_integer(second):
            return first
        if types.is_string(first) and types.is_dictionary(second):
            return first
        if types.is_timestamp(first) and first.tz is None and types.is_date(second):
            return first
    if types.is_timestamp(one) and types.is_timestamp(other) and one.tz == other.tz:
        return one if one.unit == "ns" else other  # seconds, or their fractions
    return None


def _row_ends(text: bytes, delimiter: str) -> tuple[NDArray[np.int64], int | None]:
    """The end of each row (past its newline), and the position of a quote that does not close."""
    data = np.frombuffer(text, dtype=np.uint8)
    if b'"' not in text:
        return np.flatnonzero(data == _NEWLINE) + 1, None
    ends = np.empty(text.count(b"\n"), dtype=np.int64)
    n_ends, open_at = _scan(data, ord(delimiter), ends)
    return ends[:n_ends], None if open_at < 0 else int(open_at)


@compiled
def _scan(data: NDArray, delimiter: int, ends: NDArray) -> tuple[int, int]:
    """Write the ends of rows; their number, and the position of a quote that does not close, or -1.

    A quote opens only at the begin of a value; two of them within quotes are one character.
    """
    n_ends, open_at, begins, k = 0, -1, True, 0
    while k < data.size:
        byte = data[k]
        if open_at >= 0:
            if byte == _QUOTE:
                if k + 1 < data.size and data[k + 1] == _QUOTE:
                    k += 1
                else:
                    open_at = -1
        elif byte == _QUOTE and begins:
            open_at, begins = k, False
        elif byte == _NEWLINE:
            ends[n_ends] = k + 1
            n_ends += 1
            begins = True
        else:
            begins = byte in (delimiter, _RETURN)
        k += 1
    return n_ends, open_at


def _is_bytes(kind: Any) -> bool:
    """Whether values are bytes, as which pyarrow returns text that is not UTF-8."""
    from pyarrow import types

    return types.is_binary(kind) or (types.is_dictionary(kind) and types.is_binary(kind.value_type))


def _is_beyond_integers(column: Any) -> bool:
    """Whether a column of doubles has numbers beyond 2^53."""
    import pyarrow.compute as pc
    from pyarrow import types

    if not types.is_floating(column.type):
        return False
    bounds = pc.min_max(column).as_py()
    return bounds["max"] is not None and max(bounds["max"], -bounds["min"]) > LARGEST_EXACT


def _all_integers(texts: Any) -> bool:
    """Whether all values are digits only: ids and hashes, since a quantity of this size is written
    with an exponent.
    """
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(texts, r"^\s*[-+]?[0-9]+\s*$")).as_py())
