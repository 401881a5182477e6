"""JSON views of a project, as the page reads them.

With double reading nobody learns what another person decided, noted or skipped before both
decisions on a record are in (`Decisions.is_hidden`).

Functions that take a service run in the writer's thread; those that take a connection may run in
any thread.
"""

import json
import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from forerank._typing import Index
from forerank.label.decisions import CONFLICT, SKIPPED
from forerank.label.project import ROLES, Event
from forerank.label.writer import Refusal

if TYPE_CHECKING:
    from forerank.label.service import Service

__all__ = [
    "STATES",
    "checked_mine",
    "checked_shared",
    "conflicts",
    "fold",
    "history",
    "matching_records",
    "matching_titles",
    "records",
    "search",
    "states",
    "team",
    "weights",
]

# States of a record on the screen "Search"; a record has the last one that applies.
STATES = ("unread", "irrelevant", "relevant", "skipped", "conflict", "leased")
# Characters of the records in one reply, after which the others are left for the next one: a page
# of abstracts has far fewer, and a reply of many megabytes would hold the page up.
_MOST_CHARACTERS = 2_000_000
# Conflicts in one reply; the others follow when these are resolved.
_MOST_CONFLICTS = 200
# Words in a list of settings, and characters of a word, of a tag and of the criteria.
_MOST_WORDS, _LONGEST_WORD, _LONGEST_CRITERIA = 1000, 200, 50_000
# Values of the settings of a person; an empty one is the usual one.
_CHOICES = {
    "theme": ("", "light", "dark"),
    "size": ("", "15", "20", "24"),
    "preset": ("", "default", "rayyan"),
}
# Most keys that a person can choose, and the most characters of the name of a key or an action.
_MOST_KEYS, _LONGEST_KEY = 100, 30
_WORD = re.compile(r"\b\w\w+\b")


def fold(text: str) -> str:
    """A text in small letters without accents, for searching.

    Examples
    --------
    >>> fold("Étude DE CAS")
    'etude de cas'
    """
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in decomposed if not unicodedata.combining(c))
    return text.casefold()


# --- Records ---


def records(service: "Service", ids: Sequence[int], person: int) -> list[dict[str, Any]]:
    """Records with what a person decided on each; at least one, and no more than fit into a
    reply.
    """
    columns = ", ".join(ROLES)
    made: list[dict[str, Any]] = []
    n_characters = 0
    for record in ids:
        row = service.reader.execute(
            f"SELECT source, fields, {columns} FROM record WHERE id = ?", (record,)
        ).fetchone()
        n_characters += sum(map(len, row))
        if made and n_characters > _MOST_CHARACTERS:
            break
        made.append(_record(service, record, row, person))
    return made


def _record(service: "Service", record: int, row: Sequence[str], person: int) -> dict[str, Any]:
    source, fields, *roles = row
    known = service.settings["sources"].get(source, {})
    shown = known.get("roles", {})
    hidden = {shown[role] for role in ROLES if role in shown} | {known.get("label")}
    others = [
        [name, value] for name, value in json.loads(fields).items() if value and name not in hidden
    ]
    label = int(service.decisions.label[record - 1])
    return {
        "id": record,
        **dict(zip(ROLES, roles, strict=True)),
        "fields": others,
        "source": source,
        "mine": _mine(service, record, person),
        "final": label if label >= 0 else None,
    }


def _mine(service: "Service", record: int, person: int) -> dict[str, Any]:
    decision = service.decisions.decision(record, person)
    is_label = decision is not None and decision.kind == "label"
    return {
        "label": decision.value if decision is not None and is_label else None,
        "skipped": decision is not None and not is_label,
        "note": service.decisions.remark("note", record, person),
        "tags": service.decisions.remark("tags", record, person),
        "event": None if decision is None else decision.uuid,
    }


def _titles(db: sqlite3.Connection, ids: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Title and year of some records."""
    wanted = list(dict.fromkeys(ids))
    found = (
        db.execute("SELECT id, title, year FROM record WHERE id = ?", (each,)).fetchone()
        for each in wanted
    )
    return {row[0]: (row[1], row[2]) for row in found if row is not None}


def weights(service: "Service", record: int) -> list[dict[str, Any]]:
    """Words of the model that occur in a record, with their weights."""
    if service.model is None or not service.model.words:
        return []
    row = service.reader.execute(
        "SELECT title, abstract FROM record WHERE id = ?", (record,)
    ).fetchone()
    if row is None:
        raise Refusal(f"there is no record {record}", 404)
    words = _WORD.findall(f"{row[0]} {row[1]}".lower())
    found = {*words, *(f"{a} {b}" for a, b in pairwise(words))}
    return [
        {"word": word, "weight": weight} for word, weight in service.model.words if word in found
    ]


# --- Search ---


def matching_records(db: sqlite3.Connection, query: str) -> Index | None:
    """Numbers of the records in which all words of a query occur; None for a query without any."""
    words = fold(query).split()
    if not words:
        return None
    condition = " AND ".join(["instr(folded, ?) > 0"] * len(words))
    rows = db.execute(f"SELECT id FROM record WHERE {condition} ORDER BY id", words)
    return np.array([record for (record,) in rows], dtype=np.intp)


def states(service: "Service", person: int) -> Index:
    """The number in `STATES` of each record, as a person may know it."""
    decisions = service.decisions
    label, status = decisions.label, decisions.status
    made = np.zeros(label.size, dtype=np.intp)
    decided = label >= 0
    made[decided] = np.where(label[decided] >= service.settings["threshold"], 2, 1)
    if decisions.double:
        skipped = decisions.skipped_by(person)
        made[[record - 1 for record in skipped if not decided[record - 1]]] = 3
    else:
        made[status == SKIPPED] = 3
    made[status == CONFLICT] = 4
    leased = service.assignments.leased_records()
    made[[record - 1 for record in leased if made[record - 1] == 0]] = 5
    return made


def search(
    service: "Service",
    person: int,
    found: Index | None,
    *,
    status: str = "",
    offset: int = 0,
    limit: int = 50,
) -> dict[str, Any]:
    """Records in a state among those found (None: all)."""
    state = states(service, person)
    ids = np.arange(1, state.size + 1) if found is None else found[found <= state.size]
    if status:
        ids = ids[state[ids - 1] == STATES.index(status)]
    page = ids[offset : offset + limit].tolist()
    names = [STATES[state[record - 1]] for record in page]
    return {"results": _entries(service, page, names, person), "total": int(ids.size)}


def _entries(
    service: "Service", ids: Sequence[int], names: Sequence[str], person: int
) -> list[dict[str, Any]]:
    """Lines of the screen "Search"."""
    titles = _titles(service.reader, ids)
    return [
        {
            "id": record,
            "title": titles[record][0],
            "year": titles[record][1],
            "status": name,
            "mine_label": _mine(service, record, person)["label"],
        }
        for record, name in zip(ids, names, strict=True)
    ]


# --- History ---


def matching_titles(db: sqlite3.Connection, query: str) -> set[int] | None:
    """Records in whose titles all words of a query occur; None for a query without any."""
    words = fold(query).split()
    if not words:
        return None
    rows = db.execute("SELECT id, title FROM record")
    return {record for record, title in rows if _has_all(fold(title), words)}


def _has_all(text: str, words: list[str]) -> bool:
    return all(word in text for word in words)


def history(
    service: "Service",
    person: int,
    *,
    status: str = "",
    among: set[int] | None = None,
    offset: int = 0,
    limit: int = 50,
) -> dict[str, Any]:
    """Events that a person may see, the newest first."""
    if status not in ("", "relevant", "irrelevant", "skipped", "retracted"):
        raise Refusal(f"there is no filter {status!r}")
    decisions = service.decisions
    events = decisions.events_backwards()
    if not status and among is None and not decisions.double:
        total, page = decisions.n_events, list(islice(events, offset, offset + limit))
    else:
        found = [each for each in events if _is_listed(service, each, person, status, among)]
        total, page = len(found), found[offset : offset + limit]
    titles = _titles(service.reader, [decisions.about(each) for each in page])
    return {"events": [_line(service, each, person, titles) for each in page], "total": total}


def _is_listed(
    service: "Service", event: Event, person: int, status: str, among: set[int] | None
) -> bool:
    decisions = service.decisions
    record = decisions.about(event)
    if among is not None and record not in among:
        return False
    if decisions.is_hidden(record, event.person, person):
        return False
    if not status:
        return True
    retracted = decisions.is_retracted(event.uuid)
    if status == "retracted":
        return retracted and event.kind != "retract"
    if status == "skipped":
        return event.kind == "skip" and not retracted
    relevant = event.kind in ("label", "resolve") and event.value >= service.settings["threshold"]
    wanted = relevant if status == "relevant" else not relevant
    return event.kind in ("label", "resolve") and not retracted and wanted


def _line(
    service: "Service", event: Event, person: int, titles: Mapping[int, tuple[str, str]]
) -> dict[str, Any]:
    decisions = service.decisions
    record = decisions.about(event)
    return {
        "uuid": event.uuid,
        "kind": event.kind,
        "record": record,
        "value": event.value,
        "at": round(1000.0 * event.at),
        "person": service.name_of(event.person),
        "mine": event.person == person,
        "retracted": decisions.is_retracted(event.uuid),
        "current": event.kind != "retract" and decisions.is_current(event.uuid),
        "title": titles.get(record, ("", ""))[0],
    }


# --- Conflicts and people ---


def conflicts(service: "Service", person: int) -> list[dict[str, Any]]:
    """Records on which two people decided differently, with both decisions."""
    decisions = service.decisions
    found = (np.flatnonzero(decisions.status == CONFLICT) + 1).tolist()
    return [
        {
            "record": record,
            "decisions": [
                {
                    "person": service.name_of(reader),
                    "label": label,
                    "note": decisions.remark("note", record["id"], reader),
                }
                for reader, label in decisions.readers(record["id"]).items()
            ],
            "may_resolve": service.may_resolve(person, record["id"]),
        }
        for record in records(service, found[:_MOST_CONFLICTS], person)
    ]


def team(service: "Service", person: int) -> dict[str, Any]:
    """People with their counts, and their agreement.

    With double reading the counts of others are those of records on which both decisions are in.
    """
    decisions, double = service.decisions, service.decisions.double
    people = []
    for each in service.people.values():
        labels = decisions.labels_of(each.id)
        shown = [
            label
            for record, label in labels.items()
            if not decisions.is_hidden(record, each.id, person)
        ]
        people.append(
            {
                "id": each.id,
                "name": each.name,
                "role": each.role,
                "labelled": len(shown),
                "relevant": sum(label >= service.settings["threshold"] for label in shown),
                "seen_seconds_ago": service.seconds_since(each.id),
            }
        )
    value, n, agreed = decisions.kappa(service.settings["threshold"]) if double else (None, 0, 0)
    kappa = {"value": value, "n": n, "agreed": agreed} if n else None
    return {"mode": service.settings["mode"], "people": people, "kappa": kappa}


# --- Settings ---


def checked_mine(new: Any) -> dict[str, Any]:
    """The settings of a person, their names and values checked."""
    if not isinstance(new, dict):
        raise Refusal("'mine' must be an object")
    for name, value in new.items():
        if name == "shortcuts":
            fits = isinstance(value, bool)
        elif name == "keys":
            fits = isinstance(value, dict) and len(value) <= _MOST_KEYS
            fits = fits and all(_is_key(text) for pair in value.items() for text in pair)
        elif name in _CHOICES:
            fits = value in _CHOICES[name] if isinstance(value, str) else False
        else:
            raise Refusal(f"there is no setting {name!r}")
        if not fits:
            raise Refusal(f"the setting {name!r} has a value that is not one of its choices")
    return new


def _is_key(text: Any) -> bool:
    return isinstance(text, str) and len(text) <= _LONGEST_KEY


def checked_shared(old: Mapping[str, Any], new: Any) -> dict[str, Any]:
    """The shared settings with those that a request changes: lists of words and tags, criteria."""
    if not isinstance(new, dict):
        raise Refusal("'shared' must be an object")
    made = dict(old)
    for name, value in new.items():
        if name == "criteria":
            if not isinstance(value, str) or len(value) > _LONGEST_CRITERIA:
                raise Refusal(f"'criteria' must be a text of at most {_LONGEST_CRITERIA:,} letters")
            made[name] = value
        elif name in ("relevant_words", "irrelevant_words", "tags"):
            made[name] = list(_checked_words(name, value))
        else:
            raise Refusal(f"there is no setting {name!r}")
    return made


def _checked_words(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, list) or len(value) > _MOST_WORDS:
        raise Refusal(f"{name!r} must be a list of at most {_MOST_WORDS:,} texts")
    for each in value:
        if not isinstance(each, str) or not 1 <= len(each) <= _LONGEST_WORD:
            raise Refusal(f"an entry of {name!r} has 1 to {_LONGEST_WORD} characters")
        yield each
