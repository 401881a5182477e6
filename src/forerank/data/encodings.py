"""Encodings of text files: byte order marks, decompression and conversion to UTF-8."""

import codecs
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, BytesIO, RawIOBase, TextIOWrapper
from typing import Any, BinaryIO

from forerank.data.files import first_line
from forerank.data.formats import check_readable, opener
from forerank.exceptions import CsvProblem, DataFileError

__all__ = ["binary_problem", "encoding_problem", "file_errors", "open_bytes", "usual_encoding"]

# Byte order marks; the longer ones first, since they begin like the shorter ones.
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Bytes of text that are converted at a time.
_BUFFER_BYTES = 1 << 20


def open_bytes(path: Any, encoding: str | None = None) -> BinaryIO:
    """A file opened for reading bytes: decompressed by its suffix, and converted to UTF-8 from
    another encoding.
    """
    file = opener(path)(path, "rb")
    return file if encoding is None else BufferedReader(_Utf8Reader(file, encoding), _BUFFER_BYTES)


class _Utf8Reader(RawIOBase):
    """The text of a file in some encoding, as bytes in UTF-8."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        super().__init__()
        self._text, self._rest = TextIOWrapper(file, encoding=encoding, newline=""), b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = self._text.read(max(1, len(buffer) // 4)).encode()
        part, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        if not self.closed:
            self._text.close()
        super().close()


@contextmanager
def file_errors(path: Any) -> Iterator[None]:
    """Errors of reading a text file, raised as `DataFileError` of this path."""
    try:
        yield
    except CsvProblem as problem:
        raise DataFileError(path, problem.problem, problem.line, problem.arguments) from None
    except UnicodeError as error:
        text = f"not text in the given encoding ({first_line(error)})"
        raise DataFileError(path, text) from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataFileError(path, f"cannot be read ({first_line(error)})") from None


def checked_encoding(path: Any, encoding: str | None) -> str | None:
    """The name of an encoding, by default that of the byte order mark; None for UTF-8."""
    if encoding is None:
        with open_bytes(path) as file:
            begin = file.read(4)
        marks = _BYTE_ORDER_MARKS.items()
        return next((name for mark, name in marks if begin.startswith(mark)), None)
    try:
        name = codecs.lookup(encoding).name
        TextIOWrapper(BytesIO(), encoding=name)  # an error for codecs that encode no text
    except (LookupError, ValueError):
        known = "known are utf-8, cp1252, latin-1, utf-16 and others of Python"
        raise DataFileError(path, f"there is no encoding {encoding!r}; {known}") from None
    return None if name in ("utf-8", "utf-8-sig", "ascii") else name


def usual_encoding(path: Any, encoding: str | None) -> str | None:
    """The encoding of a file of a kind whose files had this one: None for UTF-8 if it is that.

    Text in UTF-8 is also valid in most encodings of single bytes, with other characters; the
    reverse hardly happens.
    """
    if encoding is None:
        return None
    check_readable(path)
    if checked_encoding(path, None) is not None:
        return None
    decoder = codecs.getincrementaldecoder("utf-8")()
    with file_errors(path), open_bytes(path) as file:
        try:
            while part := file.read(_BUFFER_BYTES):
                if "\x00" in decoder.decode(part):
                    return encoding
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return encoding
    return None


def encoding_problem(text: bytes, line: int) -> CsvProblem:
    """The error for text that is not UTF-8: the first such byte, its line, and its character in the
    most common other encoding.
    """
    advice = {"encoding": "cp1252"}
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        byte, line = text[error.start : error.start + 1], line + text.count(b"\n", 0, error.start)
    else:
        return CsvProblem("not UTF-8 text; pass the encoding of the file", line, advice)
    found = f"the byte 0x{byte.hex().upper()} is {byte.decode('cp1252', 'replace')!r} in cp1252"
    problem = f"not UTF-8 text: {found} (Windows, Latin-1)"
    remedy = "pass the encoding of the file, or save it as UTF-8"
    return CsvProblem(f"{problem}; {remedy}", line, advice)


def binary_problem(text: bytes) -> CsvProblem:
    """The error for bytes with a zero among them: Parquet, Feather, UTF-16 (nearly every second
    byte is zero), or something else.
    """
    for begin, name in ((b"PAR1", "Parquet"), (b"ARROW1", "Feather")):
        if text.startswith(begin):
            problem = f"this is {name}, not text; pass its format"
            return CsvProblem(problem, arguments={"format": name.lower()})
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, others = text[first:400:2], text[1 - first : 40 : 2]
        if zeros.count(b"\x00") > 0.8 * len(zeros) and b"\x00" not in others:
            problem = "this looks like UTF-16 text without a byte order mark; pass the encoding "
            problem += f"{encoding}, or save the file as UTF-8"
            return CsvProblem(problem, arguments={"encoding": encoding})
    return CsvProblem("this is not a text file: it has zero bytes; check its format")
