"""RIS files: records of lines "TAG  - value" between TY and ER, as bibliographic databases and
reference managers export them.

A tag is the name of a field; values of a tag that repeats (authors, keywords) are joined by "; ".
A line without a tag continues the value before it. White space within a value is one space, so
that a value is one line and `ris_lines` writes records that are read again as they were.
"""

import re
from collections.abc import Mapping

from forerank._text import counted
from forerank.data.entries import Entries, named_lines
from forerank.exceptions import CsvProblem

__all__ = ["SEPARATOR", "is_ris_tag", "parse_ris", "ris_lines"]

# Between the values of a tag that repeats.
SEPARATOR = "; "
# The form of the specification: two spaces before the hyphen.
_TAG = re.compile(r"([A-Z][A-Z0-9])  -\s?(.*)")
# Other spacing, used only in records whose TY line has it, since the line of an abstract may begin
# like this.
_LOOSE_TAG = re.compile(r"\s*([A-Z][A-Z0-9])(?:\s{1,4}-|-(?=\s|$))\s?(.*)")
# The first line of a record, in any spacing: one word after the tag.
_FIRST_LINE = re.compile(r"\s*TY(?:\s{1,4}-|-(?=\s|$))\s*\w*\s*$")
# A line of the MEDLINE format of PubMed, whose tags have up to four letters.
_MEDLINE = re.compile(r"PMID- *\d")
_NAME = re.compile(r"[A-Z][A-Z0-9]")
# Tags of which some programs write a value per line without repeating the tag.
_VALUE_PER_LINE = {"KW"}
# Tags that are written once for each value: people, keywords, addresses of files and pages.
_REPEATED = {"A1", "A2", "A3", "A4", "AU", "ED", "KW", "L1", "L2", "L3", "L4", "TA", "UR"}
# Two tags of the same meaning; in a file with both, the first is used where it is empty.
_SAME_MEANING = {"TI": "T1", "AB": "N2", "PY": "Y1"}
# Type of a record without one: generic.
_UNTYPED = "GEN"
# Characters of a line that an error shows.
_SHOWN = 40


def is_ris_tag(name: str) -> bool:
    """Whether a name has the form of a RIS tag: a capital letter, then a capital or a digit."""
    return _NAME.fullmatch(name) is not None


def parse_ris(text: str) -> Entries:
    """The records of a RIS file, by tag, in the order of the file.

    A record without ER ends where the next TY begins, or with the file, which a note says; one
    without TY is kept as a generic one. Lines outside of records are skipped, and a note names
    them. A file without any TY line is an error.
    """
    lines = [line.lstrip("\ufeff") for line in text.split("\n")]  # marks of files that were joined
    _check_first_line(lines)
    reader = _Reader()
    for number, line in enumerate(lines, 1):
        reader.read(number, line)
    notes = []
    if reader.is_open:
        notes.append("the last record has no ER line; the file may be cut off")
    if reader.untyped:
        has = "record has" if len(reader.untyped) == 1 else "records have"
        count, lines_named = f"{len(reader.untyped):,} {has}", named_lines(reader.untyped)
        notes.append(f"{count} no TY line: {lines_named}")
    if reader.skipped:
        count = counted(len(reader.skipped), "line")
        notes.append(f"{count} outside of records skipped: {named_lines(reader.skipped)}")
    rows = [
        {"TY": _UNTYPED}
        | {tag: value for tag, values in record.items() if (value := _joined(tag, values))}
        for record in reader.records
    ]
    return Entries(rows, notes + _merge_tags(rows))


def ris_lines(record: Mapping[str, str]) -> list[str]:
    """The lines of a record given by tag, TY first and ER last; empty values are left out."""
    lines = [f"TY  - {_one_line(record.get('TY', '')) or _UNTYPED}"]
    for tag, value in record.items():
        if tag not in ("TY", "ER"):
            lines += [f"{tag}  - {part}" for part in _parts(tag, value)]
    return [*lines, "ER  - "]


def _check_first_line(lines: list[str]) -> None:
    """An error for a file without the first line of any record."""
    if any(line.startswith("TY  -") or _FIRST_LINE.match(line) for line in lines):
        return
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        shown = line.strip()[:_SHOWN]
        if _MEDLINE.match(line):
            problem = f"this is {shown!r}, the MEDLINE format of PubMed, which is not read"
            remedy = "open it in a reference manager and save it as RIS"
            raise CsvProblem(f"{problem}; {remedy}", number)
        problem = f"this is {shown!r}, and a RIS record begins with a line such as 'TY  - JOUR'"
        raise CsvProblem(f"{problem}; there is none in the file, check its format", number)
    raise CsvProblem("the file is empty")


class _Reader:
    """Records from lines; a record has a list of values for each tag, each a list of lines."""

    def __init__(self) -> None:
        self._pattern = _TAG
        self.records: list[dict[str, list[list[str]]]] = []
        self.untyped, self.skipped = list[int](), list[int]()
        self._record: dict[str, list[list[str]]] | None = None
        self._values: list[list[str]] = []  # of the last tag
        self._per_line = False

    def read(self, number: int, line: str) -> None:
        match = self._pattern.match(line)
        if (match is None or match[1] == "TY") and "TY" in line:
            # Each record has the spacing of its first line.
            strict = line.startswith("TY  -")
            if strict or _FIRST_LINE.match(line):
                self._pattern = _TAG if strict else _LOOSE_TAG
                match = self._pattern.match(line)
        if match is None:
            self._continue(number, line)
            return
        tag, value = match[1], match[2]
        if tag == "ER":
            self.end_record()
            if value.strip():
                self.skipped.append(number)
            return
        if tag == "TY":
            self.end_record()
        if self._record is None:
            self._record = {}
            self.records.append(self._record)
            if tag != "TY":
                self.untyped.append(number)
        self._values = self._record.setdefault(tag, [])
        self._values.append([value])
        self._per_line = tag in _VALUE_PER_LINE

    def _continue(self, number: int, line: str) -> None:
        if not line.strip():
            return
        if self._record is None:
            self.skipped.append(number)
        elif self._per_line:
            self._values.append([line])
        else:
            self._values[-1].append(line)

    @property
    def is_open(self) -> bool:
        """Whether the last record has not ended."""
        return self._record is not None

    def end_record(self) -> None:
        self._record = None


def _joined(tag: str, values: list[list[str]]) -> str:
    return SEPARATOR.join(part for lines in values for part in _parts(tag, " ".join(lines)))


def _parts(tag: str, value: str) -> list[str]:
    """The values of a tag that are written on a line each; none where there is only space."""
    value = _one_line(value)
    return [part for part in (value.split(SEPARATOR) if tag in _REPEATED else [value]) if part]


def _one_line(value: str) -> str:
    return " ".join(value.split())


def _merge_tags(rows: list[dict[str, str]]) -> list[str]:
    """Move values to the first of two tags of the same meaning, in a file that has both."""
    notes = []
    for main, other in _SAME_MEANING.items():
        if not any(main in row for row in rows):
            continue
        moved = [row for row in rows if main not in row and other in row]
        for row in moved:
            row[main] = row.pop(other)
        if moved:
            notes.append(f"{other} of {counted(len(moved), 'record')} read as {main}")
    return notes
