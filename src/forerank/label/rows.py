"""Rows of an export: records with what people decided, and the columns of a table of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from forerank.data.ris import SEPARATOR
from forerank.label.cells import EXPORTED_NAMES, NOTE_NAME, READER_PREFIX, TAGS_NAME, is_exported

__all__ = ["STATUSES", "ExportRow", "export_table"]

STATUSES = ("relevant", "irrelevant", "unread", "skipped", "conflict")


@dataclass
class ExportRow:
    """A record with what people decided.

    Attributes
    ----------
    record : dict
        The fields, as imported.
    label : int or None
        1, 0 or a grade; None without a decision.
    status : str
        One of `STATUSES`.
    readers : dict
        The label of each person who read it.
    note : str
    tags : list of str
        Such as reasons of an exclusion.
    rank : int or None
    score : float or None
        Rank and score by the model at the time of the export.
    decided_at : str or None
        Time of the last decision.
    roles : dict
        The column of each role, as in `forerank.label.importing.ImportedRecords`.
    """

    record: dict[str, str]
    label: int | None = None
    status: str = "unread"
    readers: dict[str, int] = field(default_factory=dict)
    note: str = ""
    tags: list[str] = field(default_factory=list)
    rank: int | None = None
    score: float | None = None
    decided_at: str | None = None
    roles: dict[str, str] = field(default_factory=dict)


def export_table(rows: Sequence[ExportRow]) -> tuple[list[str], Iterator[list[Any]]]:
    """Names of the columns of an export, and for each row its values: strings, numbers or None.

    Names and strings are not yet guarded against formulas.
    """
    fields = list(dict.fromkeys(name for row in rows for name in row.record))
    own = {NOTE_NAME, TAGS_NAME}
    fields = [name for name in fields if name not in own and not is_exported(name)]
    people = sorted({person for row in rows for person in row.readers})
    names = [*fields, *EXPORTED_NAMES[:-1], NOTE_NAME, TAGS_NAME]
    names += [f"{READER_PREFIX}{person}" for person in people]

    def values() -> Iterator[list[Any]]:
        for row in rows:
            decided = [row.label, row.status, row.rank, row.score, row.decided_at]
            note = _with_earlier(row.record.get(NOTE_NAME, ""), [row.note])
            tags = _with_earlier(row.record.get(TAGS_NAME, ""), row.tags)
            readers = [row.readers.get(person) for person in people]
            yield [*(row.record.get(name, "") for name in fields), *decided, note, tags, *readers]

    return names, values()


def _with_earlier(earlier: str, texts: Iterable[str]) -> str:
    """Texts after those of an earlier export, each once, joined by "; "."""
    known = earlier.split(SEPARATOR) if earlier else []
    return SEPARATOR.join([*known, *(each for each in texts if each and each not in known)])
