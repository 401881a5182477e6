"""Files that the page offers for download, made from a snapshot of the decisions.

With double reading a file has, of records on which not both decisions are in, only what the person
who downloads it decided.
"""

import json
import sqlite3
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from forerank._typing import Index
from forerank.label import exporting, views
from forerank.label.decisions import DECIDED
from forerank.label.project import Event, Model
from forerank.label.rows import ExportRow

if TYPE_CHECKING:
    from forerank.label.service import Service

__all__ = ["FILES", "Snapshot", "snapshot", "write"]

# Ending of the file name and media type of each download.
FILES = {
    "csv": ("labels.csv", "text/csv; charset=utf-8"),
    "xlsx": (
        "labels.xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    "ris": ("labels.ris", "application/x-research-info-systems"),
    "rest": ("rest.csv", "text/csv; charset=utf-8"),
    "prisma": ("prisma.csv", "text/csv; charset=utf-8"),
    "events": ("events.jsonl", "application/jsonl"),
}


@dataclass(frozen=True)
class _Remarks:
    """What people did on a record, as far as the person who downloads may see it."""

    readers: dict[str, int] = field(default_factory=dict)
    note: str = ""
    tags: list[str] = field(default_factory=list)
    decided_at: str | None = None


@dataclass(frozen=True)
class Snapshot:
    """Decisions at one time: states of the records, remarks, the model, and visible events."""

    states: Index
    label: Any
    remarks: dict[int, _Remarks]
    model: Model | None
    ranking: Index
    events: list[dict[str, Any]]
    sources: dict[str, Any]
    n_duplicates: int


def snapshot(service: "Service", person: int, name: str) -> Snapshot:
    """The state now, as far as a person may see it; runs in the writer's thread."""
    decisions = service.decisions
    states = views.states(service, person)
    states[states == views.STATES.index("leased")] = 0
    unread = decisions.status != DECIDED
    ranking = service.assignments.ranking
    ranking = ranking[unread[ranking - 1]]
    _, first = np.unique(ranking, return_index=True)
    remarks, events = {}, []
    if name == "events":
        events = [
            _event_line(service, event)
            for event in reversed(list(decisions.events_backwards()))
            if not decisions.is_hidden(decisions.about(event), event.person, person)
        ]
    else:
        remarks = {each: _remarks(service, each, person) for each in decisions.touched()}
    return Snapshot(
        states,
        decisions.label.copy(),
        remarks,
        service.model,
        ranking[np.sort(first)],
        events,
        service.settings["sources"],
        service.project.n_duplicates,
    )


def _remarks(service: "Service", record: int, person: int) -> _Remarks:
    decisions = service.decisions
    visible = [
        each for each in service.people.values() if not decisions.is_hidden(record, each.id, person)
    ]
    labels = decisions.readers(record)
    notes = [(each.name, decisions.remark("note", record, each.id)) for each in visible]
    notes = [(name, note) for name, note in notes if note]
    shown = [f"{name}: {note}" if len(notes) > 1 else note for name, note in notes]
    tags = [tag for each in visible for tag in decisions.remark("tags", record, each.id)]
    found = [decisions.decision(record, each.id) for each in visible]
    at = max((event.at for event in found if event is not None), default=None)
    return _Remarks(
        {each.name: labels[each.id] for each in visible if each.id in labels},
        "; ".join(shown),
        list(dict.fromkeys(tags)),
        None if at is None else _time(at),
    )


def _event_line(service: "Service", event: Event) -> dict[str, Any]:
    return {
        "uuid": event.uuid,
        "person": service.name_of(event.person),
        "kind": event.kind,
        "record": service.decisions.about(event),
        "value": event.value,
        "at": _time(event.at),
        "screen": event.screen,
        "retracted": service.decisions.is_retracted(event.uuid),
    }


def _time(at: float) -> str:
    """A time in seconds since 1970 in the form of ISO 8601, to the second."""
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):  # beyond the year 9999
        return ""


def write(taken: Snapshot, name: str, db: sqlite3.Connection, file: BinaryIO) -> None:
    """Write a download; runs in any thread."""
    if name == "events":
        exporting.write_events(taken.events, file)
        return
    rows = _rows(taken, db)
    if name == "prisma":
        counts = exporting.prisma_counts(rows, duplicates_removed=taken.n_duplicates)
        exporting.write_prisma(counts, file)
    elif name == "rest":
        by_rank = [row for row in rows if row.rank is not None]
        exporting.write_csv(sorted(by_rank, key=lambda row: row.rank or 0), file)
    else:
        writers = {
            "csv": exporting.write_csv,
            "xlsx": exporting.write_xlsx,
            "ris": exporting.write_ris,
        }
        writers[name](rows, file)


def _rows(taken: Snapshot, db: sqlite3.Connection) -> list[ExportRow]:
    ranks = np.zeros(taken.states.size, dtype=np.intp)
    ranks[taken.ranking - 1] = np.arange(1, taken.ranking.size + 1)
    scores = np.empty(0) if taken.model is None else taken.model.scores
    nothing = _Remarks()
    made = []
    for record, source, fields in db.execute("SELECT id, source, fields FROM record ORDER BY id"):
        if record > taken.states.size:
            break  # added since
        remarks, label = taken.remarks.get(record, nothing), int(taken.label[record - 1])
        made.append(
            ExportRow(
                json.loads(fields),
                label=label if label >= 0 else None,
                status=views.STATES[taken.states[record - 1]],
                readers=remarks.readers,
                note=remarks.note,
                tags=remarks.tags,
                rank=int(ranks[record - 1]) or None,
                score=float(scores[record - 1]) if record <= scores.size else None,
                decided_at=remarks.decided_at,
                roles=taken.sources.get(source, {}).get("roles", {}),
            )
        )
    return made
