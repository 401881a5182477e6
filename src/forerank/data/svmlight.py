"""svmlight files: LABEL [qid:GROUP] COLUMN:VALUE ... in each line, read by scikit-learn."""

import re
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import numpy as np
import scipy.sparse as sp

from forerank.data.archives import Matrix
from forerank.data.encodings import file_errors, open_bytes
from forerank.data.files import first_line
from forerank.exceptions import DataFileError

__all__ = ["iter_svmlight", "read_svmlight"]

# Bytes of text that are parsed at a time.
_BLOCK_BYTES = 1 << 22
# Lines that are parsed at a time in the search for the first bad one.
_BLOCK_LINES = 4096
# Characters of a bad line that an error shows.
_SHOWN = 40
# A group in a line, before any comment.
_QID = re.compile(rb"(?m)^[^#\n]*\sqid:")
_PARSE_ERRORS = (ValueError, OverflowError, IndexError)


def iter_svmlight(
    path: Any, *, zero_based: bool = False, block_bytes: int = _BLOCK_BYTES
) -> Iterator[Matrix]:
    """An svmlight file in blocks of about `block_bytes` of text; memory does not grow with the
    file.

    The format counts columns from 1; some writers count from 0 (`zero_based`).
    """
    rest, line, empty = b"", 1, True
    with file_errors(path), open_bytes(path) as file:
        while True:
            data = file.read(block_bytes)
            text = rest + data
            end = text.rfind(b"\n") + 1 if data else len(text)
            text, rest = text[:end], text[end:]
            if text.strip():
                empty = False
                yield _parsed(path, text, line, zero_based)
            line += text.count(b"\n")
            if not data:
                break
    if empty:
        raise DataFileError(path, "the file is empty")


def read_svmlight(path: Any, zero_based: bool | None = None) -> Matrix:
    """A complete svmlight file; by default columns are counted from 0 if there is a column 0."""
    blocks = list(iter_svmlight(path, zero_based=zero_based is not False))
    partial = any(block.qid is not None and block.qid.size != block.y.size for block in blocks)
    if partial or len({block.qid is None for block in blocks}) > 1:
        raise DataFileError(path, "qid is missing in some lines; give every line a qid, or none")
    y = np.concatenate([block.y for block in blocks])
    if not y.size:
        raise DataFileError(path, "there are comments but no rows")
    qid = None if blocks[0].qid is None else np.concatenate([block.qid for block in blocks])
    lengths = np.concatenate([np.diff(block.X.indptr) for block in blocks])
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    end, n_columns = int(indptr[-1]), max(block.X.shape[1] for block in blocks)
    indices, data = np.empty(end, dtype=np.int32), np.empty(end)
    while blocks:  # each is released as soon as it is copied
        X = blocks.pop().X
        indices[end - X.nnz : end], data[end - X.nnz : end] = X.indices, X.data
        end -= X.nnz
    if zero_based is None:
        zero_based = bool(indices.size and indices.min() == 0)
        if not zero_based:  # they were read as if counted from 0
            indices -= 1
            n_columns = max(n_columns - 1, 0)
    X = sp.csr_matrix((data, indices, indptr), shape=(y.size, n_columns))
    return Matrix(X, y, qid, zero_based)


def _parsed(path: Any, text: bytes, line: int, zero_based: bool) -> Matrix:
    try:
        X, y, qid = _load(text, zero_based)
    except _PARSE_ERRORS as error:
        number, shown = _first_bad_line(text, zero_based)
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
        problem = f"not a line of svmlight ({first_line(error)}): {shown!r}"
        expected = "LABEL [qid:GROUP] COLUMN:VALUE ..."
        raise DataFileError(path, f"{problem}. Expected: {expected}", line + number) from None
    return Matrix(X, y, qid if _QID.search(text) else None, zero_based)


def _first_bad_line(text: bytes, zero_based: bool) -> tuple[int, str]:
    """Number, counted from 0, and text of the first line that cannot be parsed on its own."""
    lines = text.splitlines(keepends=True)
    for begin in range(0, len(lines), _BLOCK_LINES):
        block = lines[begin : begin + _BLOCK_LINES]
        if not _can_be_parsed(b"".join(block), zero_based):
            for number, line in enumerate(block, start=begin):
                if not _can_be_parsed(line, zero_based):
                    return number, line.decode("utf-8", "replace").strip()
    return 0, lines[0].decode("utf-8", "replace").strip()


def _can_be_parsed(text: bytes, zero_based: bool) -> bool:
    try:
        _load(text, zero_based)
    except _PARSE_ERRORS:
        return False
    return True


def _load(text: bytes, zero_based: bool) -> tuple[Any, Any, Any]:
    """Matrix, labels and groups of a text."""
    from sklearn.datasets import load_svmlight_file  # takes a second, which other formats save

    return load_svmlight_file(BytesIO(text), query_id=True, zero_based=zero_based)
