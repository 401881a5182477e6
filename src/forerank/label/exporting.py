"""Exports of labelled records: CSV, XLSX and RIS, the counts of a PRISMA flow diagram, and events.

All functions write to a binary file. CSV and XLSX have the columns of the records as they were
imported, followed by those of the export, whose names begin with "forerank_". A text that a
spreadsheet could run as a formula has an apostrophe before it (`forerank.label.cells`). An exported
CSV, XLSX or RIS file can be imported again, with its labels.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, BinaryIO

from forerank.data.entries import value_text
from forerank.data.ris import SEPARATOR, is_ris_tag, ris_lines
from forerank.label.cells import guarded, is_exported, storable
from forerank.label.keywords import label_keyword, without_label
from forerank.label.rows import STATUSES, ExportRow, export_table
from forerank.label.sheets import write_xlsx

__all__ = [
    "STATUSES",
    "ExportRow",
    "PrismaCounts",
    "export_table",
    "prisma_counts",
    "write_csv",
    "write_events",
    "write_prisma",
    "write_ris",
    "write_xlsx",
]

# The RIS tag of each role, for records that are not from a RIS file.
_TAG_OF_ROLE = {
    "title": "TI",
    "abstract": "AB",
    "authors": "AU",
    "year": "PY",
    "doi": "DO",
    "url": "UR",
    "keywords": "KW",
    "journal": "T2",
}
# The RIS tag of other usual columns, such as the fields of BibTeX.
_TAG_OF_NAME = {
    "volume": "VL",
    "number": "IS",
    "issue": "IS",
    "pages": "SP",
    "publisher": "PB",
    "issn": "SN",
    "isbn": "SN",
    "language": "LA",
    "address": "AD",
    "edition": "ET",
    "editor": "ED",
    "citation_key": "ID",
}
# The RIS type of each type of BibTeX entry; others are generic.
_TYPE_OF_ENTRY = {
    "article": "JOUR",
    "book": "BOOK",
    "inbook": "CHAP",
    "incollection": "CHAP",
    "inproceedings": "CPAPER",
    "conference": "CPAPER",
    "phdthesis": "THES",
    "mastersthesis": "THES",
    "techreport": "RPRT",
    "unpublished": "UNPB",
}


@dataclass(frozen=True)
class PrismaCounts:
    """Numbers of records in the screening part of a PRISMA flow diagram.

    `identified` is the sum of `duplicates_removed`, `screened` and `not_screened`; `screened` that
    of `excluded` and `included`. A record with several reasons counts for each of them.
    """

    identified: int
    duplicates_removed: int
    screened: int
    excluded: int
    included: int
    not_screened: int
    excluded_by_reason: dict[str, int] = field(default_factory=dict)


def prisma_counts(rows: Iterable[ExportRow], *, duplicates_removed: int = 0) -> PrismaCounts:
    """The counts of records; tags of irrelevant ones are the reasons of their exclusion.

    Records that are unread, skipped or in conflict are not screened.
    """
    statuses, reasons = Counter[str](), Counter[str]()
    for row in rows:
        statuses[row.status] += 1
        if row.status == "irrelevant":
            reasons.update(dict.fromkeys(row.tags, 1) or {"no reason given": 1})
    excluded, included = statuses["irrelevant"], statuses["relevant"]
    n_rows, screened = statuses.total(), excluded + included
    sizes = (n_rows + duplicates_removed, duplicates_removed, screened, excluded, included)
    return PrismaCounts(*sizes, n_rows - screened, dict(reasons.most_common()))


# --- Tables ---


def write_csv(rows: Sequence[ExportRow], file: BinaryIO) -> None:
    """Write rows as CSV in UTF-8, with a byte order mark by which spreadsheets recognise it."""
    names, values = export_table(rows)
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    try:
        text.write("\ufeff")
        writer = csv.writer(text, lineterminator="\r\n")
        writer.writerow([_csv_cell(name) for name in names])
        writer.writerows([_csv_cell(value) for value in row] for row in values)
        text.flush()
    finally:
        text.detach()


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    return guarded(storable(value)) if isinstance(value, str) else repr(value)


# --- RIS ---


def write_ris(rows: Iterable[ExportRow], file: BinaryIO) -> None:
    """Write rows as RIS: fields under their own tags where they came from RIS.

    The status is a keyword such as "forerank: relevant"; note, tags and columns without a tag are
    in N1. A value is always one line, so that none can be taken for a tag.
    """
    for row in rows:
        lines = ris_lines(_ris_record(row))
        file.write("\r\n".join([*lines, "", ""]).encode("utf-8", "replace"))


def _ris_record(row: ExportRow) -> dict[str, str]:
    """The values of a record by tag."""
    tags = {name: tag for role, tag in _TAG_OF_ROLE.items() if (name := row.roles.get(role))}
    kind = _TYPE_OF_ENTRY.get(row.record.get("entry_type", "").lower(), "")
    kind = kind or ("JOUR" if row.record.get(row.roles.get("journal", "")) else "GEN")
    found: dict[str, list[str]] = {"TY": [row.record.get("TY", "") or kind]}
    notes = []
    for name, value in row.record.items():
        value = storable(value)
        if not value.strip() or is_exported(name) or name == "TY":
            continue
        if is_ris_tag(name) and name != "ER":
            found.setdefault(name, []).append(value)
        elif name in tags or name.lower() in _TAG_OF_NAME:
            tag = tags.get(name) or _TAG_OF_NAME[name.lower()]
            found.setdefault(tag, []).append(value)
        elif name != "entry_type":
            notes.append(f"{name}: {value}")
    notes += [f"forerank note: {storable(row.note)}"] if row.note else []
    notes += [f"forerank tags: {', '.join(map(storable, row.tags))}"] if row.tags else []
    keywords = [without_label(each)[0] for each in found.get("KW", [])]
    found["KW"] = [*keywords, label_keyword(row.status, row.label)]
    found["N1"] = [*found.get("N1", []), *notes]
    return {tag: SEPARATOR.join(filter(None, values)) for tag, values in found.items()}


# --- Counts and events ---


def write_prisma(counts: PrismaCounts, file: BinaryIO, *, format: str = "csv") -> None:
    """Write counts as CSV (a line for each number, then for each reason) or as JSON."""
    if format == "json":
        file.write(json.dumps(asdict(counts), indent=2).encode() + b"\n")
        return
    if format != "csv":
        raise ValueError(f"format={format!r}: choose 'csv' or 'json'.")
    numbers = asdict(counts)
    reasons = numbers.pop("excluded_by_reason")
    lines = [("count", "records"), *((name.replace("_", " "), n) for name, n in numbers.items())]
    lines += [(f"excluded: {reason}", n) for reason, n in reasons.items()]
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(
        (guarded(storable(name)), value) for name, value in lines
    )
    file.write(text.getvalue().encode("utf-8-sig"))


def write_events(events: Iterable[Mapping[str, Any]], file: BinaryIO) -> None:
    """Write events as JSON lines in ASCII; values that JSON does not have are written as text."""
    for event in events:
        file.write(json.dumps(dict(event), default=value_text).encode() + b"\n")
