"""File formats: which one a file has, by its suffix, and compression by gzip or bzip2."""

import bz2
import gzip
from pathlib import Path
from typing import Any

from forerank.exceptions import DataFileError

__all__ = ["check_readable", "file_kind", "is_compressed", "opener", "suffix_of"]

# Format of each suffix.
_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".npz": "npz",
    ".ris": "ris",
    ".bib": "bibtex",
    ".bibtex": "bibtex",
    ".xlsx": "xlsx",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
# Suffixes, without the point, that error messages name: one for each format.
_NAMED_FORMATS = "csv, tsv, parquet, feather, svm, npz, ris, bib, xlsx, jsonl"
_COMPRESSED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}


def is_compressed(path: Any) -> bool:
    """Whether the name of a file ends in .gz or .bz2."""
    return Path(path).suffix.lower() in _COMPRESSED


def opener(path: Any) -> Any:
    """The function that opens a file by its name: `gzip.open`, `bz2.open` or `open`."""
    return _COMPRESSED.get(Path(path).suffix.lower(), open)


def suffix_of(path: Any) -> str:
    """The last suffix of a name, in small letters; the one before .gz or .bz2; "" for none."""
    return Path(Path(path).stem if is_compressed(path) else path).suffix.lower()


def check_readable(path: Any) -> None:
    """An error for a file that does not exist, a directory, an empty file."""
    target = Path(path)
    if not target.exists():
        raise DataFileError(path, "there is no such file")
    if target.is_dir():
        raise DataFileError(path, "this is a directory; give a file")
    if target.is_file() and target.stat().st_size == 0:
        raise DataFileError(path, "the file is empty")


def file_kind(path: Any, format: str | None = None) -> str:
    """The format of a file: "csv", "tsv", "parquet", "feather", "svmlight", "npz", "ris", "bibtex",
    "xlsx" or "jsonl".

    By its suffix, before .gz or .bz2, or by `format`, which is a suffix with or without the point.

    Examples
    --------
    >>> file_kind("leads.csv.gz"), file_kind("a9a.svm")
    ('csv', 'svmlight')
    """
    if format is not None:
        kind = _FORMATS.get("." + format.lower().lstrip("."))
        if kind is None:
            known = f"choose one of {_NAMED_FORMATS}"
            raise DataFileError(path, f"there is no format {format!r}; {known}")
        return kind
    kind = _FORMATS.get(suffix_of(path))
    if kind is None:
        known = f"known are {', '.join(sorted(_FORMATS))}, also with .gz or .bz2"
        problem = f"the suffix does not tell the format; {known}; pass its format"
        raise DataFileError(path, problem, arguments={"format": "csv"})
    return kind
