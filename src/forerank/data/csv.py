"""A CSV file in blocks of whole rows: pyarrow parses the values, the text of each row stays at
hand.

A block is cut where a row ends, which takes no more than knowing which newlines are inside quotes.
Each block is then parsed on its own, so that memory does not grow with the file, an error can name
the line, and a row can be written again exactly as it came.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from forerank._kernels import compiled
from forerank.data.files import first_line
from forerank.data.prefetch import parallel_map
from forerank.exceptions import CsvProblem

__all__ = ["DELIMITERS", "Block", "CsvFile"]

DELIMITERS = (",", ";", "\t", "|")
_BLOCK_BYTES = 1 << 22
_HEADER_BYTES = 1 << 20
_QUOTE, _NEWLINE, _RETURN = 34, 10, 13
# What is missing, as R, pandas, databases and the UCI repository write it.
_MISSING = [
    "",
    "NA",
    "N/A",
    "n/a",
    "#N/A",
    "<NA>",
    "NaN",
    "nan",
    "-NaN",
    "-nan",
    "NULL",
    "null",
    "?",
]


# Doubles hold all whole numbers up to this one.
_LARGEST_EXACT = 2**53


def named(names: Sequence[str]) -> list[str]:
    """Names of columns; one without a name is called by its place."""
    return [
        name if name.strip() else f"column {k} (no name)" for k, name in enumerate(names, start=1)
    ]


@dataclass(frozen=True)
class Block:
    """Whole rows, and the number in the file of the line that they begin with."""

    text: bytes
    line: int


class CsvFile:
    """A CSV file with a header.

    Parameters
    ----------
    opened : callable
        Opens the file for reading bytes.
    delimiter : str, optional
        Guessed from the header.

    Attributes
    ----------
    header : bytes
        The line with the names, as it is.
    names : list of str
    delimiter : str
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
                    raise _binary_problem(text)
                counts = Counter((text.splitlines() or [b""])[0].decode("latin-1"))
                self.delimiter = delimiter or max(DELIMITERS, key=counts.__getitem__)
                ends, _ = _row_ends(text, self.delimiter)
                if not more:
                    break
        if not text.strip():
            raise CsvProblem("the file is empty")
        if not ends.size and b"\r" in text.strip():
            raise CsvProblem("its lines end in carriage returns alone; convert them to newlines")
        self.header = text[: ends[0]] if ends.size else text
        self._first_line = 1 + self._skipped.count(b"\n")
        self.names = self._read_names()
        self._decimal = _decimal_mark(text[len(self.header) :], self.delimiter)

    def blocks(self, block_bytes: int = _BLOCK_BYTES) -> Iterator[Block]:
        """The rows, in blocks of about so many bytes."""
        with self._opened() as file:
            file.read(len(self._skipped) + len(self.header))
            rest, line = b"", self._first_line + self.header.count(b"\n")
            while True:
                # Twice as much where no row ends: a long value is not looked at again and again.
                data = file.read(max(block_bytes, len(rest)))
                text = rest + data
                cut, open_at = self._last_row_end(text)
                if not data:
                    if open_at is not None:
                        raise CsvProblem(
                            "a quote opens here and never closes",
                            line + text[:open_at].count(b"\n"),
                        )
                    cut = len(text)
                if text[:cut].strip():
                    yield Block(text[:cut], line)
                if not data:
                    return
                line += text.count(b"\n", 0, cut)
                rest = text[cut:]

    def parse(
        self,
        block: Block,
        *,
        columns: Sequence[str] | None = None,
        types: Mapping[str, Any] | None = None,
        categories: int = 0,
        missing: Mapping[str, Sequence[str]] | None = None,
    ) -> Any:
        """The rows of a block as a pyarrow table.

        Whole numbers that neither integers of 64 bits nor doubles hold stay the text that they are.

        Parameters
        ----------
        block : Block
        columns : list of str, optional
            Only these.
        types : mapping from names to pyarrow types, optional
            Others are guessed.
        categories : int, default=0
            Columns of at most so many different strings become dictionaries.
        missing : mapping from names to words, optional
            Columns of numbers, and the words in them that stand for a missing one.
        """
        import pyarrow as pa

        words = {
            name: words
            for name, words in (missing or {}).items()
            if columns is None or name in columns
        }
        types = dict(types or {}) | dict.fromkeys(words, pa.string())
        table = self._parsed(block, columns, types, categories)
        for name in words:
            table = table.set_column(
                table.column_names.index(name),
                name,
                self._numbers(table[name], words[name], block, name),
            )
        large = [
            field.name
            for field in table.schema
            if field.name not in types and _is_beyond_integers(table, field)
        ]
        if large:
            texts = self._parsed(block, large, dict.fromkeys(large, pa.string()), 0)
            for name in large:
                if _all_whole_numbers(texts[name]):
                    table = table.set_column(table.column_names.index(name), name, texts[name])
        return table

    def _parsed(
        self,
        block: Block,
        columns: Sequence[str] | None,
        types: Mapping[str, Any] | None,
        categories: int,
    ) -> Any:
        import pyarrow as pa
        from pyarrow import csv

        def read(block_size: int) -> Any:
            # One thread: pyarrow's own take twice the work for little gain, and do not count rows.
            # Blocks are parsed side by side instead.
            return csv.read_csv(
                pa.BufferReader(block.text),
                csv.ReadOptions(column_names=self.names, use_threads=False, block_size=block_size),
                self._parsing(),
                _conversion(columns, types, categories, self._decimal),
            )

        try:
            try:
                table = read(1 << 20)
            except pa.ArrowInvalid as error:
                if "straddl" not in str(error):
                    raise
                table = read(len(block.text) + 1)  # a row longer than pyarrow's blocks
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError) as error:
            raise self._problem(error, block) from None
        if any(_is_bytes(kind) for kind in table.schema.types):
            raise _encoding_problem(block.text, block.line)
        return table

    def _numbers(self, column: Any, words: Sequence[str], block: Block, name: str) -> Any:
        """Text as doubles; these words are missing ones, and any other is an error."""
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
            problem = f"the column {name!r} has {column[row].as_py()!r}, and a number is expected"
            raise CsvProblem(problem, self._line_in(block, row)) from None

    def tables(
        self,
        *,
        columns: Sequence[str] | None = None,
        types: Any = None,
        categories: int = 0,
        missing: Mapping[str, Sequence[str]] | None = None,
    ) -> Iterator[Any]:
        """All blocks as pyarrow tables, several being parsed at a time."""

        def parsed(block: Block) -> Any:
            return self.parse(
                block, columns=columns, types=types, categories=categories, missing=missing
            )

        return parallel_map(parsed, self.blocks())

    def whole(
        self,
        *,
        columns: Sequence[str] | None = None,
        types: Any = None,
        categories: int = 0,
        missing: Mapping[str, Sequence[str]] | None = None,
    ) -> Any:
        """All rows as a pyarrow table; the type of a column is one that holds the values of all
        blocks.

        pyarrow's own reader of whole files keeps their text until it knows the types, which takes
        thrice the memory.
        """
        import pyarrow as pa

        given = dict(types or {})
        while True:
            tables, found = list[Any](), dict[str, Any]()
            texts: set[str] = set()
            for table in self.tables(
                columns=columns, types=given, categories=categories, missing=missing
            ):
                for field in table.schema:
                    common = _common(found.get(field.name, field.type), field.type)
                    if common is None:
                        texts.add(field.name)
                    else:
                        found[field.name] = common
                tables = [] if texts else [*tables, table]
            if not texts:
                break
            # Numbers in one block, words in another: words, whose text only the file still has.
            given |= dict.fromkeys(texts, pa.string())
        if not tables:
            return pa.table({name: [] for name in columns or self.names})
        schema = pa.schema(list(found.items()))
        # Whole numbers beyond 2^53 become doubles where fractions are among them.
        return pa.concat_tables(
            [tables.pop(0).cast(schema, safe=False) for _ in range(len(tables))]
        ).unify_dictionaries()

    def lines(self, block: Block, n_rows: int) -> Any:
        """The text of each row of a block, without its line end, as a pyarrow array."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ends, _ = _row_ends(block.text, self.delimiter)
        if not ends.size or ends[-1] < len(block.text):
            ends = np.append(ends, len(block.text))
        offsets = np.concatenate([[0], ends]).astype(np.int32)
        whole = pa.StringArray.from_buffers(
            ends.size, pa.py_buffer(offsets), pa.py_buffer(block.text)
        )
        lines = pc.utf8_rtrim(whole, "\r\n")
        if len(lines) != n_rows:  # empty lines are no rows
            lines = lines.filter(pc.greater(pc.binary_length(lines), 0))
        if len(lines) != n_rows:
            raise CsvProblem(
                f"{n_rows} rows were read from {len(lines)} lines; are there stray line ends?",
                block.line,
            )
        return lines

    def line_of_row(self, row: int) -> int:
        """The line in which a row begins, rows counted from 0."""
        import pyarrow as pa

        before = 0
        for block in self.blocks():
            n_rows = self.parse(
                block, columns=self.names[:1], types={self.names[0]: pa.string()}
            ).num_rows
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
            raise _encoding_problem(self.header, self._first_line) from None
        try:
            options = csv.ReadOptions(block_size=len(self.header) + 1)
            names = named(
                csv.read_csv(pa.BufferReader(self.header), options, self._parsing()).column_names
            )
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise CsvProblem(
                f"the header cannot be read ({first_line(error)})", self._first_line
            ) from None
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise CsvProblem(
                f"the header names the column {twice[0]!r} more than once", self._first_line
            )
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
        """The line of a row of a block; empty lines are no rows."""
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
        text = first_line(error)
        ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text)
        if ragged:
            row, expected, got = map(int, ragged.groups())
            problem = f"a row of {got} values, and the header has {expected} names (delimiter {self.delimiter!r})"
            return CsvProblem(problem, self._line_in(block, row - 1))
        value = re.search(r"In CSV column #(\d+): .*conversion error to ([^:]+): [^']*'(.*)'", text)
        if value:
            name, kind, shown = self.names[int(value[1])], value[2], value[3]
            if kind in ("double", "int64"):
                kind = "a number"
            elif kind.startswith(("time", "date")):
                zone = "with a zone" if "tz=" in kind else "without a zone"
                kind = f"a date {zone}" if "zone offset" in text else "a date such as 2021-03-04"
            problem = f"the column {name!r} has {shown!r}, and {kind} is expected"
            return CsvProblem(problem, self._line_of_value(block, name, shown))
        if "UTF8" in text or "utf-8" in text.lower():
            return _encoding_problem(block.text, block.line)
        return CsvProblem(f"cannot be read as CSV ({text})", block.line)

    def _line_of_value(self, block: Block, name: str, value: str) -> int:
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.parse(block, columns=[name], types={name: pa.string()})[name]
        return self._line_in(block, max(0, pc.index(column, pa.scalar(value)).as_py()))


def _decimal_mark(text: bytes, delimiter: str) -> str:
    """A comma where numbers are written with commas and none with a point, which a comma between
    values leaves open.
    """
    if delimiter == ",":
        return "."
    begin, end = (
        rb'(?:^|\n|%s)"?[-+]?' % re.escape(delimiter.encode()),
        rb'"?(?=%s|\r|\n|$)' % re.escape(delimiter.encode()),
    )
    with_comma, with_point = (
        re.search(begin + rb"\d+" + mark + rb"\d+" + end, text) for mark in (rb",", rb"\.")
    )
    return "," if with_comma and not with_point else "."


def _conversion(
    columns: Sequence[str] | None,
    types: Mapping[str, Any] | None,
    categories: int,
    decimal: str = ".",
) -> Any:
    """How values are read: nothing is a boolean (true and false are categories), and empty values
    are missing.
    """
    from pyarrow import csv

    return csv.ConvertOptions(
        include_columns=None if columns is None else list(columns),
        column_types=dict(types) if types else None,
        null_values=_MISSING,
        decimal_point=decimal,
        true_values=[],
        false_values=[],
        strings_can_be_null=True,
        auto_dict_encode=categories > 0,
        auto_dict_max_cardinality=categories or None,
    )


def _common(one: Any, other: Any) -> Any:
    """A type for the values of both; None where only their text has one, and for times of day,
    which are words.
    """
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
    """Where each row ends (past its newline), and where a quote opens that does not close."""
    data = np.frombuffer(text, dtype=np.uint8)
    if b'"' not in text:
        return np.flatnonzero(data == _NEWLINE) + 1, None
    ends = np.empty(text.count(b"\n"), dtype=np.int64)
    n_ends, open_at = _scan(data, ord(delimiter), ends)
    return ends[:n_ends], None if open_at < 0 else int(open_at)


@compiled
def _scan(data: NDArray, delimiter: int, ends: NDArray) -> tuple[int, int]:
    """A quote opens at the begin of a value only; two of them within quotes are one that is
    written.
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
    """Values that are not text in UTF-8 come as bytes."""
    from pyarrow import types

    return types.is_binary(kind) or (types.is_dictionary(kind) and types.is_binary(kind.value_type))


def _is_beyond_integers(table: Any, field: Any) -> bool:
    """Whether a column of doubles has numbers of a size at which doubles leave whole numbers out."""
    import pyarrow.compute as pc
    from pyarrow import types

    if not types.is_floating(field.type):
        return False
    bounds = pc.min_max(table[field.name]).as_py()
    return bounds["max"] is not None and max(bounds["max"], -bounds["min"]) > _LARGEST_EXACT


def _all_whole_numbers(texts: Any) -> bool:
    """Whether all values are digits alone: ids and hashes, since a quantity so large is written
    with an exponent.
    """
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(texts, r"^\s*[-+]?[0-9]+\s*$")).as_py())


def _encoding_problem(text: bytes, line: int) -> CsvProblem:
    """Which byte is not text in UTF-8, in which line, and what it is in the encoding that most such
    files have.
    """
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        byte, line = text[error.start : error.start + 1], line + text.count(b"\n", 0, error.start)
    else:
        return CsvProblem(
            "not text in UTF-8; name the encoding of the file", line, {"encoding": "cp1252"}
        )
    character = byte.decode("cp1252", "replace")
    problem = f"not text in UTF-8: the byte 0x{byte.hex().upper()} is {character!r} in cp1252 (Windows, Latin-1)"
    return CsvProblem(
        f"{problem}; name the encoding of the file, or save it in UTF-8",
        line,
        {"encoding": "cp1252"},
    )


def _binary_problem(text: bytes) -> CsvProblem:
    """Text in UTF-16 has a zero in nearly every second byte; other zeros are no text."""
    for begin, name in ((b"PAR1", "Parquet"), (b"ARROW1", "Feather")):
        if text.startswith(begin):
            return CsvProblem(
                f"this is {name}, not text; name its format", arguments={"format": name.lower()}
            )
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        if (
            text[first:400:2].count(b"\x00") > 0.8 * len(text[first:400:2])
            and b"\x00" not in text[1 - first : 40 : 2]
        ):
            return CsvProblem(
                f"this looks like text in UTF-16 without a byte order mark; name the encoding {encoding}, or save it "
                "in UTF-8",
                arguments={"encoding": encoding},
            )
    return CsvProblem("this is not a text file")
