"""Records to label, from a file or a frame: their fields as text, which fields are title, abstract
and so on, and labels that are there already.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from forerank._text import counted, listed
from forerank.data.bibliography import is_entries, read_entries
from forerank.data.entries import check_size, value_text
from forerank.data.formats import check_readable
from forerank.data.frames import as_frame
from forerank.data.json_lines import clean_text, flat_value
from forerank.data.readers import check_columns, file_kind, read_strings, read_table
from forerank.exceptions import DataFileError
from forerank.label.cells import LABEL_NAME, STATUS_NAME, is_exported, unguarded
from forerank.label.duplicates import duplicates
from forerank.label.keywords import keyword_status, noted_label, without_label

__all__ = [
    "ROLES",
    "UNLABELLED",
    "ImportedRecords",
    "duplicates",
    "read_records",
    "records_of_frame",
]

# The label of a record that has none.
UNLABELLED = -1
# Names of the columns of each role, in small letters with a space between words; RIS tags among
# them. Earlier names go first.
ROLES: dict[str, tuple[str, ...]] = {
    "title": (
        *("title", "ti", "t1", "primary title", "article title", "document title", "paper title"),
        *("titles", "translated title", "original title", "titel", "titre", "titulo"),
    ),
    "abstract": (
        *("abstract", "ab", "n2", "notes abstract", "abstract note", "abstract text", "abstracts"),
        *("summary", "description", "zusammenfassung", "resume", "resumen"),
    ),
    "authors": (
        *("authors", "author", "au", "a1", "first authors", "author names", "author s"),
        *("author full names", "creator", "creators"),
    ),
    "year": (
        *("year", "py", "y1", "publication year", "pub year", "published year", "year published"),
        *("publication date", "date", "da", "published", "jahr"),
    ),
    "doi": ("doi", "do", "doi link", "digital object identifier"),
    "url": ("url", "ur", "urls", "link", "links", "web address", "l2", "lk"),
    "keywords": ("keywords", "kw", "author keywords", "keyword", "index keywords", "mesh terms"),
    "journal": (
        *("journal", "jo", "jf", "t2", "ja", "secondary title", "journal title", "source title"),
        *("journal name", "publication title", "journaltitle", "booktitle", "source", "venue"),
    ),
}
# Names of columns of labels, in the same form; that of an export first.
_LABEL_NAMES = (
    *(LABEL_NAME.replace("_", " "), "label included", "included", "include", "label", "labels"),
    *("relevant", "is relevant", "label relevant", "relevance", "decision", "screening"),
    *("final decision", "screening decision", "final included", "included label", "inclusion"),
    *("asreview label", "asreview relevant", "label abstract included"),
)
# Names of columns of notes, in which other programs leave labels.
_NOTES = ("note", "notes")
# Names of columns of ids, for a note on equal ones.
_ID_NAMES = ("id", "record id", "recordid", "pmid", "citation key", "accession number", "an")
# Words for the labels, in small letters.
_POSITIVE = {"1", "yes", "y", "true", "t", "included", "include", "relevant", "in"}
_NEGATIVE = {
    "0",
    "no",
    "n",
    "false",
    "f",
    "excluded",
    "exclude",
    "irrelevant",
    "not relevant",
    "out",
}
_NO_LABEL = {
    *("", "-1", "not seen", "unseen", "unlabelled", "unlabeled", "unread", "not screened"),
    *(
        "maybe",
        "unsure",
        "unclear",
        "unscreened",
        "undecided",
        "unknown",
        "na",
        "n/a",
        "nan",
        "none",
        "null",
        "?",
    ),
}
# What an error of labels suggests: another column of them, or none.
LABEL_ARGUMENT = {"label": "COLUMN, or '' for none"}
# Largest grade; a larger number is a quantity or an id.
_LARGEST_GRADE = 31
# Different values of a column that an error lists.
_MOST_VALUES_SHOWN = 6
# Share of the values of a column that have two words and more, from which it can stand for a title.
_TEXT_SHARE = 0.5


@dataclass
class ImportedRecords:
    """Records of a file.

    Attributes
    ----------
    fields : list of dict
        The columns of each record in the order of the file, as text; "" where missing. The column
        of labels is among them; what `forerank.label.exporting` has added to a file is not, except
        for notes and tags.
    roles : dict
        The column of each role: title, abstract, authors, year, doi, url, keywords, journal; only
        those that were found.
    labels : list of int
        Of each record: -1 without a label, 0 irrelevant, 1 relevant; or grades.
    label_column : str or None
    unused_label : str or None
        A column that looks like one of labels, where none was to be taken.
    threshold : int or None
        The smallest relevant grade, where an earlier export tells it.
    notes : list of str
        Sentences for people: columns found, labels taken over, entries skipped.
    """

    fields: list[dict[str, str]]
    roles: dict[str, str]
    labels: list[int]
    label_column: str | None
    notes: list[str] = field(default_factory=list)
    unused_label: str | None = None
    threshold: int | None = None

    def by_role(self, *, only_named: bool = False) -> list[dict[str, str]]:
        """The records by role, as `duplicates` takes them; on request without a title that is none
        by the name of its column, such as the first text of a table.
        """
        items = dict(self.roles)
        if only_named and _plain_name(items.get("title", "")) not in ROLES["title"]:
            items.pop("title", None)
        return [
            {role: record.get(name, "") for role, name in items.items()} for record in self.fields
        ]


def read_records(
    path: Any,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    format: str | None = None,
    label: str | None = None,
) -> ImportedRecords:
    """The records of a file.

    Parameters
    ----------
    path : path
        RIS, BibTeX, CSV, TSV, XLSX, JSON lines, Parquet or Feather, by the suffix.
    delimiter, encoding, format
        As in `forerank.data.readers.read_table`.
    label : str, optional
        The column of labels; by default one with a usual name, such as "included". "" for none.
    """
    check_readable(path)
    kind = file_kind(path, format)
    notes: list[str] = []
    if kind in ("csv", "tsv"):
        table = read_strings(path, delimiter=delimiter, encoding=encoding, format=format)
        columns = {name: table[name].to_pylist() for name in table.column_names}
    elif is_entries(kind):
        entries = read_entries(path, kind, encoding)
        names = entries.names
        check_size(path, names, len(entries.rows))
        columns = {name: [row.get(name) for row in entries.rows] for name in names}
        notes = entries.notes
    else:
        columns = _frame_columns(read_table(path, encoding=encoding, format=format))
    return _imported(columns, label, path, notes)


def records_of_frame(frame: Any, *, label: str | None = None) -> ImportedRecords:
    """The records of a pandas, polars or Arrow table; `label` as in `read_records`."""
    return _imported(_frame_columns(as_frame(frame)), label, "the table", [])


def _frame_columns(frame: Any) -> dict[str, list[Any]]:
    """The values of each column, None where they are missing."""
    columns = {}
    for name in frame.columns:
        values = frame[name].astype(object)
        columns[str(name)] = values.where(frame[name].notna(), None).tolist()
    return columns


def _imported(
    columns: Mapping[str, Sequence[Any]], label: str | None, path: Any, notes: list[str]
) -> ImportedRecords:
    n_records = len(next(iter(columns.values()), []))
    if not n_records:
        raise DataFileError(path, "there are no records in it; give a file with at least one")
    texts = {clean_text(name): [_text(each) for each in columns[name]] for name in columns}
    if STATUS_NAME in texts:
        texts = {unguarded(name): list(map(unguarded, texts[name])) for name in texts}
    kept = [name for name in texts if not is_exported(name)]
    earlier = [name for name in texts if is_exported(name) and name != LABEL_NAME]
    rows = zip(*(texts[name] for name in kept), strict=True)
    fields = [dict(zip(kept, row, strict=True)) for row in rows]
    label_column, labels = _label_column(texts, label, path), [UNLABELLED] * n_records
    threshold = None
    if label_column is not None:
        labels = _labels(texts[label_column], label_column, path)
        if label_column == LABEL_NAME:
            threshold = _threshold(labels, texts.get(STATUS_NAME, []))
    elif label is None:
        statuses = [keyword_status(record.get("KW", "")) for record in fields]
        labels = _labels_in_texts(fields)
        threshold = _threshold(labels, statuses)
    unused = _label_column(texts, None, path) if label == "" else None
    apart = (label_column, unused)
    roles = find_roles({name: texts[name] for name in fields[0] if name not in apart})
    notes = [counted(n_records, "record"), *notes, *_role_notes(roles, kept)]
    if label_column is not None or any(label != UNLABELLED for label in labels):
        notes.append(_label_note(labels, label_column))
    if earlier:
        notes.append(f"columns of an earlier export left out: {listed(earlier)}")
    if unused is not None:
        notes.append(f"{unused!r} looks like a column of labels; it is not shown and not ranked by")
    notes += _id_notes(texts)
    return ImportedRecords(fields, roles, labels, label_column, notes, unused, threshold)


def _text(value: Any) -> str:
    """A value as text without lone surrogates and zero characters, which storage does not take."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if hasattr(value, "tolist"):
        value = value.tolist()  # NumPy's numbers and lists
    if isinstance(value, str):
        return clean_text(value).replace("\x00", "\N{REPLACEMENT CHARACTER}")
    return value_text(flat_value(value))


# --- Roles ---


def find_roles(columns: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The column of each role, by its name; a column without any value has none.

    Without a title and an abstract, the first column whose values mostly have several words is the
    title.
    """
    usable = {_plain_name(name): name for name in reversed(list(columns)) if any(columns[name])}
    roles = {}
    for role, names in ROLES.items():
        found = next((usable[name] for name in names if name in usable), None)
        if found is not None:
            roles[role] = found
    if "title" not in roles and "abstract" not in roles:
        taken = set(roles.values())
        texts = (name for name in columns if name not in taken and _is_text(columns[name]))
        first = next(texts, None)
        if first is not None:
            roles["title"] = first
    return roles


def _plain_name(name: str) -> str:
    """A name in small letters with one space between words.

    Examples
    --------
    >>> _plain_name("Publication_Year"), _plain_name(" Author(s)")
    ('publication year', 'author s')
    """
    return re.sub(r"[\W_]+", " ", name.casefold()).strip()


def _is_text(values: Iterable[str]) -> bool:
    given = [value for value in values if value.strip()]
    words = [
        value
        for value in given
        if len(value.split(maxsplit=1)) > 1 and re.search(r"[^\W\d_]", value)
    ]
    return len(words) > _TEXT_SHARE * len(given)


def _role_notes(roles: Mapping[str, str], names: Sequence[str]) -> list[str]:
    if "title" not in roles and "abstract" not in roles:
        return [f"no column of titles or abstracts found; the columns are {listed(names)}"]
    shown = [f"{role} in {name!r}" for role, name in roles.items()]
    lacking = [role for role in ("title", "abstract") if role not in roles]
    notes = [f"found {', '.join(shown)}"]
    return notes + [f"no column of {role}s found" for role in lacking]


def _id_notes(columns: Mapping[str, Sequence[str]]) -> list[str]:
    for name in columns:
        if _plain_name(name) in _ID_NAMES:
            ids = [value for value in columns[name] if value]
            repeated = len(ids) - len(set(ids))
            if repeated:
                has = "record has" if repeated == 1 else "records have"
                return [f"{repeated:,} {has} the same {name!r} as an earlier one; all are kept"]
    return []


# --- Labels ---


def _label_column(columns: Mapping[str, Sequence[str]], label: str | None, path: Any) -> str | None:
    """The column of labels: the one that was named, or one with a usual name."""
    if label == "":
        return None
    if label is not None:
        check_columns(path, list(columns), label)
        return label
    if LABEL_NAME in columns:
        return LABEL_NAME
    usual = {_plain_name(name): name for name in reversed(list(columns))}
    named = (usual[name] for name in _LABEL_NAMES if name in usual)
    # A column without any label among its values has its name for another reason.
    return next((name for name in named if any(map(_has_label, set(columns[name])))), None)


def _has_label(value: str) -> bool:
    label = _label(value)
    return label is not None and label != UNLABELLED


def _labels(values: Sequence[str], column: str, path: Any) -> list[int]:
    """Labels of the values of a column: words for two classes, or grades."""
    known = {value: _label(value) for value in set(values)}
    unknown = sorted(value for value, label in known.items() if label is None)
    if unknown:
        shown = listed(map(repr, unknown), _MOST_VALUES_SHOWN)
        problem = f"the column of labels {column!r} has {shown}; 1 and 0, yes and no, included and "
        problem += (
            "excluded, or grades are expected: correct them, or name another column of labels"
        )
        raise DataFileError(path, problem, arguments=LABEL_ARGUMENT)
    return [known[value] for value in values]  # type: ignore[misc]


def _label(value: str) -> int | None:
    word = " ".join(value.casefold().replace("_", " ").split())
    word = re.sub(r"^([-+]?\d+)\.0*$", r"\1", word)
    if word in _NO_LABEL:
        return UNLABELLED
    if word in _POSITIVE or word in _NEGATIVE:
        return int(word in _POSITIVE)
    if re.fullmatch(r"[0-9]{1,3}", word) and int(word) <= _LARGEST_GRADE:
        return int(word)
    return None


def _labels_in_texts(fields: list[dict[str, str]]) -> list[int]:
    """Labels that an export to RIS has written as keywords, which are removed from the fields, or
    those that other programs have written into notes.
    """
    names, labels = fields[0].keys(), []
    noted = next((name for name in names if name == "N1" or _plain_name(name) in _NOTES), None)
    in_keywords = {"TY", "KW"} <= names
    for record in fields:
        label = None if noted is None else noted_label(record[noted])
        if in_keywords:
            record["KW"], ours = without_label(record["KW"])
            label = label if ours is None else ours
        labels.append(UNLABELLED if label is None else label)
    if in_keywords and not any(record["KW"] for record in fields):
        for record in fields:
            del record["KW"]
    return labels


def _threshold(labels: Sequence[int], statuses: Sequence[str]) -> int | None:
    """The smallest relevant grade, by the status of each record in an export; None without any."""
    pairs = [(label, status) for label, status in zip(labels, statuses, strict=False) if label >= 0]
    relevant = [label for label, status in pairs if status == "relevant"]
    irrelevant = max((label for label, status in pairs if status == "irrelevant"), default=-1)
    if not relevant and irrelevant < 0:
        return None
    smallest = min(relevant, default=irrelevant + 1)
    return smallest if smallest > max(irrelevant, 0) else None


def _label_note(labels: Sequence[int], column: str | None) -> str:
    counts = {value: labels.count(value) for value in sorted(set(labels))}
    names = {UNLABELLED: "without a label", 0: "irrelevant", 1: "relevant"}
    if max(counts) > 1:
        names = {UNLABELLED: "without a label"}
    shown = [f"{n:,} {names.get(value, f'of grade {value}')}" for value, n in counts.items()]
    source = "keywords and notes" if column is None else repr(column)
    return f"labels taken over from {source}: {', '.join(shown)}"
