"""The labelling service: what the page asks for, without HTTP.

Every method that reads or changes the state runs in the writer's thread (see `writer`).
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np

from forerank.label import panel, views
from forerank.label.assignments import Assignments
from forerank.label.decisions import CONFLICT, DECIDED, SKIPPED, Decisions
from forerank.label.project import Event, Model, Person, Project
from forerank.label.trainer import PREPARING, Trainer
from forerank.label.writer import Refusal, Writer

__all__ = ["Service"]

# Records in the local queue of a page. In a team they are leased, so fewer are taken at a time.
_QUEUE, _TEAM_QUEUE = 20, 6
# The same while titles are swept, 20 at a time: alone, the next 20 are there as well.
_SWEEP, _TEAM_SWEEP = 40, 20
# Most events of one request, and most characters of a text in an event.
_MOST_EVENTS, _LONGEST_TEXT = 1000, 100_000
_UUID = re.compile(r"[0-9A-Za-z-]{8,64}")
# Latest time of an event, in milliseconds since 1970: beyond, dates have no calendar.
_LATEST = 8_640_000_000_000_000
# Parts of the page on which assigned records are decided; elsewhere people look for records.
_IN_TURN = ("read", "sweep")
# Seconds after which the sentence on stopping is computed anew; it is exact on the screen "Stop".
_STOP_SECONDS = 2.0


class Service:
    """The state of one open project, and the ranker that learns from it.

    Parameters
    ----------
    project : Project
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        # Read by the writer's thread alone; other threads open connections of their own.
        self.reader = project.reader()
        self.trainer: Trainer | None = None
        self._trained_changes = -1
        self._seen: dict[int, float] = {}
        self._panel = ThreadPoolExecutor(1, "panel")
        self._stop: dict[str, Any] = {"reached": False, "sentence": ""}
        self._stop_revision, self._stop_time = -1, -_STOP_SECONDS
        self.load()
        self.writer = Writer(project, self.load)

    def start_training(self) -> None:
        """Start the worker process, which imports and reads for some seconds."""
        names = ("strategy", "n_labels", "threshold", "seed")
        settings = {name: self.settings[name] for name in names}
        self.trainer = Trainer(self.project.path, settings, self._receive_model)
        self.submit(self._train)

    def load(self) -> None:
        """Read the state from the file."""
        self.settings = self.project.settings()
        self.people: dict[int, Person] = {each.id: each for each in self.project.people()}
        double = self.settings["mode"] == "double"
        self.decisions = Decisions(self.project.known_labels(), double=double)
        self.decisions.apply_all(self.project.events())
        leased = self.settings["team"]
        self.assignments = Assignments(self.project, self.decisions, leased=leased)
        self.model = self.project.model()
        self.audit = self.project.audit()
        self.revision = 0  # number of changes since
        self._stop_revision = -1
        self._set_ranking()

    def close(self) -> None:
        """End the worker and the writer, and close the file."""
        if self.trainer is not None:
            self.trainer.close()
        self._panel.shutdown(cancel_futures=True)
        self.writer.close()
        self.reader.close()
        self.project.close()

    def submit(self, method: Callable[..., Any], *arguments: Any) -> Future:
        """Run a method in the writer's thread."""
        return self.writer.submit(lambda: method(*arguments))

    # --- The ranking ---

    def _set_ranking(self) -> None:
        """Records in the order of the audit, of the model or, before there is one, at random.

        Records whose labels were taken back since then come first, those added since then last.
        """
        n = self.decisions.n_records
        ranking = np.random.default_rng(self.settings["seed"]).permutation(n) + 1
        n_known, known = 0, ranking[:0]
        if self.audit is not None:
            n_known, known = n, self.audit
        elif self.model is not None:
            n_known, known = self.model.scores.size, self.model.ranking
        missing = self.decisions.status != DECIDED
        missing[known - 1] = False
        others = ranking[missing[ranking - 1]]
        again, new = others[others <= n_known], others[others > n_known]
        self.assignments.set_ranking(np.concatenate([again, known, new]))
        self.assignments.scores = None if self.model is None else self.model.scores

    def _train(self) -> None:
        changes = self.decisions.changes
        if self.trainer is not None and changes != self._trained_changes:
            self._trained_changes = changes
            self.trainer.submit(changes, self.decisions.label)

    def _receive_model(self, *parts: Any) -> None:
        with suppress(RuntimeError):  # a model that comes after the end
            if not parts:
                self.submit(self._remove_model)
                return
            trained_on, scores, ranking, words = parts
            arrays = scores.astype(float), ranking.astype(np.intp)
            self.submit(self._install_model, trained_on, *arrays, words)

    def _install_model(self, trained_on: int, scores: Any, ranking: Any, words: Any) -> None:
        version = 1 if self.model is None else self.model.version + 1
        model = Model(version, trained_on, scores, ranking, words)
        self.project.store_model(model)
        self.model = model
        self._set_ranking()

    def _remove_model(self) -> None:
        if self.model is not None:
            self.project.remove_model()
            self.model = None
            self._set_ranking()

    def model_state(self) -> dict[str, Any]:
        """The ranker in a few words, for the page."""
        training = self.trainer is not None and self.trainer.is_training
        state = "training" if training else "waiting" if self.model is None else "ready"
        message = "" if self.trainer is None else self.trainer.message
        if message == PREPARING and self.model is not None:  # the stored ranking is in use
            message, state = "", "ready"
        return {
            "version": 0 if self.model is None else self.model.version,
            "state": state,
            "trained_on": 0 if self.model is None else self.model.trained_on,
            "labels": int(np.count_nonzero(self.decisions.label >= 0)),
            "message": message,
        }

    # --- Reading ---

    def state(self, person: int) -> dict[str, Any]:
        """What the page needs to begin with."""
        who = self._person(person)
        names = ("name", "file", "mode", "team", "strategy", "target", "confidence", "created")
        labels = self.settings["labels"]
        return {
            "project": {name: self.settings[name] for name in names}
            | {"n_records": self.decisions.n_records},
            "person": {"id": who.id, "name": who.name, "role": who.role},
            "labels": [{"value": value, "name": name} for value, name in enumerate(labels)],
            "threshold": self.settings["threshold"],
            "shared": self.settings["shared"],
            "mine": who.settings,
            "counts": self.counts(person),
            "model": self.model_state(),
            "audit": self.audit is not None,
        }

    def counts(self, person: int) -> dict[str, int]:
        """Numbers of records by status."""
        status, label = self.decisions.status, self.decisions.label
        read = int(np.count_nonzero(status == DECIDED))
        relevant = int(np.count_nonzero(label >= self.settings["threshold"]))
        return {
            "records": status.size,
            "read": read,
            "unread": status.size - read,
            "relevant": relevant,
            "irrelevant": read - relevant,
            "skipped": self.n_skipped(person),
            "conflicts": int(np.count_nonzero(status == CONFLICT)),
            "leased": self.assignments.n_leased,
            "mine": self.decisions.n_labelled_by(person),
        }

    def n_skipped(self, person: int) -> int:
        """Number of skipped records; with double reading only those that the person skipped."""
        status = self.decisions.status
        if not self.decisions.double:
            return int(np.count_nonzero(status == SKIPPED))
        skipped = self.decisions.skipped_by(person)
        return sum(bool(status[record - 1] != DECIDED) for record in skipped)

    def queue(
        self, person: int, n: int, have: Iterable[int], *, sweep: bool = False
    ) -> dict[str, Any]:
        """The records that a person reads next; more of them for a sweep."""
        who = self._person(person)
        alone, in_team = (_SWEEP, _TEAM_SWEEP) if sweep else (_QUEUE, _TEAM_QUEUE)
        most = in_team if self.settings["team"] else alone
        records = self.assignments.queue(person, max(1, min(n, most)), who.shown)
        held = set(have)
        contents = [record for record in records if record not in held]
        return {
            "queue": records,
            "records": views.records(self, contents, person),
            "counts": self.counts(person),
            "model": self.model_state(),
            "stop": self._stop_sentence(),
        }

    def _stop_sentence(self) -> dict[str, Any]:
        """The sentence on stopping, made in a thread of its own and so perhaps some seconds old."""
        now = time.monotonic()
        if self._stop_revision != self.revision and now - self._stop_time >= _STOP_SECONDS:
            self._stop_revision, self._stop_time = self.revision, now
            self._panel.submit(self._make_sentence, panel.snapshot(self))
        return self._stop

    def _make_sentence(self, taken: panel.Snapshot) -> None:
        self._stop = panel.sentence(taken)

    # --- Deciding ---

    def take_events(self, person: int, body: Mapping[str, Any]) -> dict[str, Any]:
        """Store events, those that are stored already once only; the next records to read."""
        events = body.get("events")
        if not isinstance(events, list) or len(events) > _MOST_EVENTS:
            raise Refusal(f"events must be a list of at most {_MOST_EVENTS}")
        # All is checked before anything changes: a refusal leaves no trace.
        self._person(person)
        n, have = _integer(body.get("n", _QUEUE)), _integers(body.get("have", []))
        parsed = [_event(each, person) for each in events]
        accepted, refused = [], []
        for event in parsed:
            problem = None if self.project.has_event(event.uuid) else self._take(event)
            if problem is None:
                accepted.append(event.uuid)
            else:
                refused.append({"uuid": event.uuid, "reason": problem})
        self._set_shown(person, body.get("shown"))
        self._train()
        reply = self.queue(person, n, have, sweep=body.get("sweep") is True)
        return {**reply, "accepted": accepted, "refused": refused}

    def _take(self, event: Event) -> str | None:
        """Store an event and apply it; the reason where it is refused."""
        decisions = self.decisions
        problem = decisions.problem(event, len(self.settings["labels"]))
        if problem is None and event.kind == "resolve":
            problem = self._cannot_resolve(event.person, event.record or 0)
        if problem is not None:
            return problem
        record = decisions.about(event)
        before = decisions.decision(record, event.person)
        self.project.add_event(event)
        decisions.apply(event)
        self.revision += 1
        after = decisions.decision(record, event.person)
        if after is not None and event.kind in ("label", "skip"):
            in_turn = event.screen in _IN_TURN
            self.assignments.decided(record, event.person, in_turn=in_turn)
        elif after is None and before is not None:
            self.assignments.undecided(record, event.person)
        return None

    def _cannot_resolve(self, person: int, record: int) -> str | None:
        """Readers of a record resolve a conflict only where there is nobody else."""
        readers = self.decisions.readers(record)
        others = self.people.keys() - readers.keys()
        if person in readers and others and self._person(person).role != "owner":
            return "a conflict is resolved by someone who has not read the record"
        return None

    def may_resolve(self, person: int, record: int) -> bool:
        """Whether a person may decide a conflict."""
        return self._cannot_resolve(person, record) is None

    def _set_shown(self, person: int, record: Any) -> None:
        who = self._person(person)
        is_record = isinstance(record, int) and 1 <= record <= self.decisions.n_records
        if is_record and record != who.shown:
            self.project.set_shown(person, record)
            self.people[person] = Person(who.id, who.name, who.role, who.settings, record)

    def leave(self, person: int) -> None:
        """Return the leases of a person."""
        self.assignments.release(person)

    # --- Settings, team, audit ---

    def set_settings(self, person: int, body: Mapping[str, Any]) -> dict[str, Any]:
        """Store the settings of a person, and those that all share."""
        who, mine, shared = self._person(person), body.get("mine"), body.get("shared")
        if unknown := body.keys() - {"mine", "shared"}:
            raise Refusal(f"there are no settings {min(unknown)!r}; expected 'mine' or 'shared'")
        if mine is not None:
            mine = views.checked_mine(mine)
        if shared is not None:
            shared = views.checked_shared(self.settings["shared"], shared)
        if mine is not None:
            self.project.set_person_settings(person, mine)
            self.people[person] = Person(who.id, who.name, who.role, mine, who.shown)
        if shared is not None:
            self.settings["shared"] = shared
            self.project.set("shared", shared)
        return self.state(person)

    def set_audit(self, person: int, on: bool) -> dict[str, Any]:
        """Begin to read the unread records in random order, or end that."""
        self._owner(person)
        if on and self.audit is None:
            from forerank.active.stopping import audit_order

            unread = np.flatnonzero(self.decisions.status != DECIDED) + 1
            seed = int(self.settings["seed"]) + len(self.project.assignments())
            self.project.begin_audit(seed, audit_order(unread, seed))
        elif not on and self.audit is not None:
            self.project.end_audit()
        self.audit = self.project.audit()
        self.revision += 1
        self._set_ranking()
        return self.state(person)

    def add_person(self, name: str, role: str = "reader") -> int:
        """The number of a new person."""
        name = name.strip() if isinstance(name, str) else ""
        if not 1 <= len(name) <= 100:
            raise Refusal("a name has 1 to 100 characters")
        if any(each.name == name for each in self.people.values()):
            raise Refusal(f"there is a person called {name} already")
        number = self.project.add_person(name, role)
        self.people = {each.id: each for each in self.project.people()}
        return number

    def seen(self, person: int) -> None:
        """Note that a person's page has asked for something."""
        self._seen[person] = time.monotonic()

    def seconds_since(self, person: int) -> int | None:
        """Seconds since a person's page asked for something, or None."""
        seen = self._seen.get(person)
        return None if seen is None else int(time.monotonic() - seen)

    def require_owner(self, person: int) -> None:
        """Refusal unless the person owns the project."""
        self._owner(person)

    def name_of(self, person: int) -> str:
        """The name of a person."""
        return self.people[person].name

    def _owner(self, person: int) -> None:
        if self._person(person).role != "owner":
            raise Refusal("only the owner of the project may do this", 403)

    def _person(self, person: int) -> Person:
        if person not in self.people:
            raise Refusal("this person is no longer part of the project", 403)
        return self.people[person]


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _LATEST:
        raise Refusal("expected an integer of moderate size")
    return value


def _integers(values: Any) -> list[int]:
    if not isinstance(values, list) or len(values) > _MOST_EVENTS:
        raise Refusal("'have' must be a list of record numbers")
    return [_integer(value) for value in values]


def _event(fields: Any, person: int) -> Event:
    """An event of a request, its form checked."""
    if not isinstance(fields, dict):
        raise Refusal("an event must be an object")
    uuid, kind, at = fields.get("uuid"), fields.get("kind"), fields.get("at", 0)
    if not isinstance(uuid, str) or _UUID.fullmatch(uuid) is None:
        raise Refusal("an event needs a uuid of 8 to 64 letters, digits and hyphens")
    if not isinstance(kind, str) or not isinstance(at, int | float) or isinstance(at, bool):
        raise Refusal("an event needs a kind and a time")
    if not 0 <= at <= _LATEST:
        raise Refusal("the time of an event is in milliseconds since 1970")
    record, value = fields.get("record"), fields.get("value")
    if record is not None:
        record = _integer(record)
    if len(json.dumps(value)) > _LONGEST_TEXT:
        raise Refusal(f"the value of an event has more than {_LONGEST_TEXT:,} characters")
    screen = fields.get("screen")
    screen = screen if isinstance(screen, str) and len(screen) < 20 else "read"
    return Event(uuid, person, kind, record, value, float(at) / 1000.0, screen)
