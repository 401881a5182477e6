"""The project file: records, people and every decision, in one SQLite database.

Decisions are rows of the append-only table `event`. The database is in WAL mode with
synchronous=FULL, so a committed event survives a crash of the program or of the machine. One
connection writes, and it alone checkpoints; other connections only read.
"""

import json
import os
import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from forerank._typing import Index, Vector
from forerank.data.files import first_line
from forerank.exceptions import ProjectFileError

__all__ = ["Event", "Model", "Person", "Project", "create_project"]

# Version of the schema; a project of another version is refused.
FORMAT = 1
# Identifies the file as a project, in the header of the database ("FRnk" in ASCII).
_APPLICATION_ID = 0x46526E6B
# Bytes of the header of an SQLite database, the place of the identification, and its beginning.
_HEADER_BYTES, _APPLICATION_AT, _MAGIC = 100, slice(68, 72), b"SQLite format 3\x00"
# Places of the bytes of a page (1 for 65,536) and of the number of pages in the header.
_PAGE_SIZE_AT, _PAGES_AT = slice(16, 18), slice(28, 32)
_CUT = "the project is damaged: the file is cut off; use a copy of it"
_SCHEMA = """
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE record (
    id INTEGER PRIMARY KEY, source TEXT NOT NULL, title TEXT NOT NULL, abstract TEXT NOT NULL,
    authors TEXT NOT NULL, year TEXT NOT NULL, doi TEXT NOT NULL, url TEXT NOT NULL,
    fields TEXT NOT NULL, folded TEXT NOT NULL, known INTEGER NOT NULL) STRICT;
CREATE TABLE duplicate (
    id INTEGER PRIMARY KEY, record INTEGER NOT NULL REFERENCES record, source TEXT NOT NULL,
    fields TEXT NOT NULL) STRICT;
CREATE TABLE person (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, role TEXT NOT NULL,
    settings TEXT NOT NULL DEFAULT '{}', shown INTEGER) STRICT;
CREATE TABLE session (
    hash TEXT PRIMARY KEY, person INTEGER NOT NULL REFERENCES person, kind TEXT NOT NULL,
    created REAL NOT NULL) STRICT;
CREATE TABLE event (
    id INTEGER PRIMARY KEY AUTOINCREMENT, uuid TEXT NOT NULL UNIQUE,
    person INTEGER NOT NULL REFERENCES person, kind TEXT NOT NULL, record INTEGER,
    value TEXT NOT NULL, at REAL NOT NULL, stored REAL NOT NULL, screen TEXT NOT NULL) STRICT;
CREATE INDEX event_record ON event (record);
CREATE TABLE assignment (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, record INTEGER NOT NULL REFERENCES record,
    person INTEGER NOT NULL REFERENCES person, at REAL NOT NULL, score REAL,
    returned INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE audit (
    id INTEGER PRIMARY KEY, started REAL NOT NULL, ended REAL, seed INTEGER NOT NULL,
    rows BLOB NOT NULL) STRICT;
CREATE TABLE model (
    id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL, trained_on INTEGER NOT NULL,
    made REAL NOT NULL, scores BLOB NOT NULL, ranking BLOB NOT NULL, words TEXT NOT NULL) STRICT;
"""
_INSERT_RECORD = f"INSERT INTO record VALUES (NULL, {', '.join('?' * 10)})"
_INSERT_DUPLICATE = "INSERT INTO duplicate VALUES (NULL, ?, ?, ?)"
# Columns of `record` that the page shows apart from the other fields.
ROLES = ("title", "abstract", "authors", "year", "doi", "url")


@dataclass(frozen=True)
class Event:
    """A decision or another action of a person.

    Attributes
    ----------
    uuid : str
        Made by the page; an event that is sent twice is stored once.
    person : int
    kind : {"label", "skip", "retract", "note", "tags", "resolve"}
    record : int or None
        Number of the record, from 1.
    value : Any
        The label, the text, the tags, or the uuid of the event that is retracted.
    at : float
        Time of the action by the clock of the page, in seconds since 1970.
    screen : str
        Part of the page; labels given on "read" and "sweep" are those of assigned records.
    """

    uuid: str
    person: int
    kind: str
    record: int | None
    value: Any
    at: float = 0.0
    screen: str = "read"


@dataclass(frozen=True)
class Person:
    """A reader; `role` is "owner" or "reader", `shown` the record last shown."""

    id: int
    name: str
    role: str
    settings: dict[str, Any]
    shown: int | None


@dataclass(frozen=True)
class Model:
    """Scores of all records by one fit, the order in which to read them, and telling words."""

    version: int
    trained_on: int
    scores: Vector
    ranking: Index
    words: list[tuple[str, float]]


class Project:
    """An open project file.

    Parameters
    ----------
    path : path
        An existing project.

    Notes
    -----
    Methods that write are called within `transaction`, by one thread.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise ProjectFileError(path, "there is no such project")
        _check_header(self.path)
        self._lock = _lock(self.path)
        try:
            self._db = _connect(self.path)
            self._check_format()
        except BaseException as error:
            _unlock(self._lock)
            if isinstance(error, sqlite3.Error):
                problem = f"the project cannot be written to ({error})"
                raise ProjectFileError(self.path, problem) from None
            raise

    def _check_format(self) -> None:
        try:
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            self._db.execute("SELECT count(*) FROM setting, sqlite_master").fetchone()
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise ProjectFileError(self.path, f"the project is damaged ({error})") from None
        if version != FORMAT:
            self._db.close()
            known = f"this version of forerank reads format {FORMAT}; install the one that made it"
            raise ProjectFileError(self.path, f"the project has format {version}, and {known}")

    def close(self) -> None:
        """Close the file; the write-ahead log is merged into it."""
        self._db.close()
        _unlock(self._lock)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written inside is committed together or, on an error, not at all."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # a full disk ends it already
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """A part of a transaction that is undone alone on an error."""
        if not self._db.in_transaction:  # a savepoint would begin and commit one of its own
            raise sqlite3.OperationalError("the transaction was rolled back")
        self._db.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK TO part")
                self._db.execute("RELEASE part")
            raise
        self._db.execute("RELEASE part")

    def reader(self) -> sqlite3.Connection:
        """Another connection, which cannot write; the caller closes it."""
        return open_reader(self.path)

    # --- Settings ---

    def settings(self) -> dict[str, Any]:
        """All settings by name."""
        rows = self._db.execute("SELECT name, value FROM setting").fetchall()
        return {name: json.loads(value) for name, value in rows}

    def set(self, name: str, value: Any) -> None:
        """Store a setting."""
        self._db.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, json.dumps(value)))

    # --- Records ---

    @property
    def n_records(self) -> int:
        """Number of records; they are numbered from 1."""
        return self._db.execute("SELECT coalesce(max(id), 0) FROM record").fetchone()[0]

    @property
    def n_duplicates(self) -> int:
        """Number of records that were not added since they were there already."""
        return self._db.execute("SELECT count(*) FROM duplicate").fetchone()[0]

    def add_records(self, rows: Iterable[tuple]) -> None:
        """Append rows (source, title, abstract, authors, year, doi, url, fields as JSON, folded,
        known label or -1).
        """
        self._db.executemany(_INSERT_RECORD, rows)

    def add_duplicates(self, rows: Iterable[tuple[int, str, str]]) -> None:
        """Keep records that are not read again: (number of the first one, source, fields)."""
        self._db.executemany(_INSERT_DUPLICATE, rows)

    def take_over(self, record: int, label: int) -> None:
        """The label of a duplicate becomes that of a record without a known one."""
        self._db.execute("UPDATE record SET known = ? WHERE id = ? AND known < 0", (label, record))

    def records_by_role(self) -> list[dict[str, str]]:
        """Title, doi and year of all records."""
        rows = self._db.execute("SELECT title, doi, year FROM record ORDER BY id")
        return [{"title": title, "doi": doi, "year": year} for title, doi, year in rows]

    def known_labels(self) -> Index:
        """Label of each record that the files gave, or -1."""
        rows = self._db.execute("SELECT known FROM record ORDER BY id").fetchall()
        return np.array([label for (label,) in rows], dtype=np.int8)

    # --- People ---

    def people(self) -> list[Person]:
        """All people, in the order in which they were added."""
        rows = self._db.execute("SELECT id, name, role, settings, shown FROM person ORDER BY id")
        return [
            Person(number, name, role, json.loads(settings), shown)
            for number, name, role, settings, shown in rows
        ]

    def add_person(self, name: str, role: str) -> int:
        """The number of a new person."""
        cursor = self._db.execute("INSERT INTO person (name, role) VALUES (?, ?)", (name, role))
        return int(cursor.lastrowid or 0)

    def set_person_settings(self, person: int, settings: Mapping[str, Any]) -> None:
        self._db.execute(
            "UPDATE person SET settings = ? WHERE id = ?", (json.dumps(settings), person)
        )

    def set_shown(self, person: int, record: int | None) -> None:
        """Keep the record that a person sees, to show it first when the page is opened again."""
        self._db.execute("UPDATE person SET shown = ? WHERE id = ?", (record, person))

    # --- Sessions: hashes of secrets; the secrets themselves are not stored ---

    def add_session(self, digest: str, person: int, kind: str) -> None:
        """A one-time link ("link") or a cookie ("cookie") of a person."""
        row = (digest, person, kind, time.time())
        self._db.execute("INSERT INTO session VALUES (?, ?, ?, ?)", row)

    def session(self, digest: str, kind: str) -> int | None:
        """The person of a session, or None."""
        row = self._db.execute(
            "SELECT person FROM session WHERE hash = ? AND kind = ?", (digest, kind)
        ).fetchone()
        return None if row is None else row[0]

    def sessions(self, kind: str, since: float = 0.0) -> dict[str, int]:
        """The person of each session of a kind that began after a time, by hash."""
        rows = self._db.execute(
            "SELECT hash, person FROM session WHERE kind = ? AND created >= ?", (kind, since)
        )
        return dict(rows.fetchall())

    def remove_session(self, digest: str) -> None:
        """Remove the session with this hash."""
        self._db.execute("DELETE FROM session WHERE hash = ?", (digest,))

    def remove_links(self, person: int) -> None:
        """Remove the links of a person that were not opened."""
        self._db.execute("DELETE FROM session WHERE person = ? AND kind = 'link'", (person,))

    # --- Events, assignments, audits, models ---

    def has_event(self, uuid: str) -> bool:
        """Whether an event is stored."""
        found = self._db.execute("SELECT 1 FROM event WHERE uuid = ?", (uuid,)).fetchone()
        return found is not None

    def add_event(self, event: Event) -> None:
        """Append an event."""
        value = json.dumps(event.value, ensure_ascii=False)
        row = (event.uuid, event.person, event.kind, event.record, value, event.at, time.time())
        self._db.execute(
            "INSERT INTO event (uuid, person, kind, record, value, at, stored, screen) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, event.screen),
        )

    def events(self) -> Iterator[Event]:
        """All events in the order in which they were stored."""
        rows = self._db.execute(
            "SELECT uuid, person, kind, record, value, at, screen FROM event ORDER BY id"
        )
        for uuid, person, kind, record, value, at, screen in rows:
            yield Event(uuid, person, kind, record, json.loads(value), at, screen)

    def add_assignment(self, record: int, person: int, score: float | None = None) -> int:
        """The number of a new assignment; `score` is that by which the record was selected."""
        cursor = self._db.execute(
            "INSERT INTO assignment (record, person, at, score) VALUES (?, ?, ?, ?)",
            (record, person, time.time(), score),
        )
        return int(cursor.lastrowid or 0)

    def set_returned(self, seqs: Sequence[int], returned: bool = True) -> None:
        """Mark assignments as returned unread, or as given again."""
        self._db.executemany(
            "UPDATE assignment SET returned = ? WHERE seq = ?", [(returned, seq) for seq in seqs]
        )

    def assignments(self) -> list[tuple[int, int, int, bool, float | None]]:
        """Rows (number, record, person, whether returned, score) in their order."""
        rows = self._db.execute(
            "SELECT seq, record, person, returned, score FROM assignment ORDER BY seq"
        )
        return [
            (seq, record, person, bool(back), score) for seq, record, person, back, score in rows
        ]

    def begin_audit(self, seed: int, records: Index) -> None:
        """Store the random order in which the unread records are read from now on."""
        row = (time.time(), seed, records.astype("<i4").tobytes())
        self._db.execute("INSERT INTO audit (started, seed, rows) VALUES (?, ?, ?)", row)

    def end_audit(self) -> None:
        self._db.execute("UPDATE audit SET ended = ? WHERE ended IS NULL", (time.time(),))

    def audit(self) -> Index | None:
        """Record numbers in the order of the audit that is under way, or None."""
        row = self._db.execute("SELECT rows FROM audit WHERE ended IS NULL").fetchone()
        return None if row is None else np.frombuffer(row[0], dtype="<i4").astype(np.intp)

    def store_model(self, model: Model) -> None:
        """Replace the stored model."""
        self._db.execute(
            "INSERT OR REPLACE INTO model VALUES (1, ?, ?, ?, ?, ?, ?)",
            (
                model.version,
                model.trained_on,
                time.time(),
                model.scores.astype("<f4").tobytes(),
                model.ranking.astype("<i4").tobytes(),
                json.dumps(model.words),
            ),
        )

    def remove_model(self) -> None:
        self._db.execute("DELETE FROM model")

    def model(self) -> Model | None:
        """The model stored last, or None."""
        row = self._db.execute(
            "SELECT version, trained_on, scores, ranking, words FROM model"
        ).fetchone()
        if row is None:
            return None
        scores, ranking = np.frombuffer(row[2], "<f4"), np.frombuffer(row[3], "<i4")
        words = [(word, weight) for word, weight in json.loads(row[4])]
        return Model(row[0], row[1], scores.astype(float), ranking.astype(np.intp), words)


def create_project(
    path: str | os.PathLike,
    settings: Mapping[str, Any],
    *,
    records: Iterable[tuple] = (),
    duplicates: Iterable[tuple[int, str, str]] = (),
    people: Iterable[str] = (),
) -> Project:
    """A new project file with settings, rows of records (`Project.add_records`) and of duplicates
    (`Project.add_duplicates`), and names of people, of whom the first is the owner.

    It is made under another name and renamed when complete.
    """
    path = Path(path)
    if path.exists():
        raise ProjectFileError(path, "the file exists already; choose another name")
    if not path.parent.is_dir():
        raise ProjectFileError(path, f"there is no folder {path.parent}; make it first")
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with closing(_connect(part)) as db:
            db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {FORMAT}")
            db.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
            rows = [(name, json.dumps(value)) for name, value in settings.items()]
            roles = [(name, "reader" if number else "owner") for number, name in enumerate(people)]
            db.execute("BEGIN")
            db.executemany("INSERT INTO setting VALUES (?, ?)", rows)
            db.executemany("INSERT INTO person (name, role) VALUES (?, ?)", roles)
            db.executemany(_INSERT_RECORD, records)
            db.executemany(_INSERT_DUPLICATE, duplicates)
            db.execute("COMMIT")
        part.replace(path)
    except (OSError, sqlite3.Error) as error:
        problem = f"the project cannot be made ({first_line(error)})"
        raise ProjectFileError(path, f"{problem}; choose a folder that can be written to") from None
    finally:
        for suffix in ("", "-wal", "-shm"):
            part.with_name(part.name + suffix).unlink(missing_ok=True)
    return Project(path)


def open_reader(path: str | os.PathLike) -> sqlite3.Connection:
    """A connection to a project that cannot write; the caller closes it."""
    uri = f"{Path(path).resolve().as_uri()}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _check_header(path: Path) -> None:
    """An error for a file that is not a project, which is not changed by looking at it."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise ProjectFileError(path, f"cannot be read ({first_line(error)})") from None
    if header.startswith(_MAGIC) and len(header) < _HEADER_BYTES:
        raise ProjectFileError(path, _CUT)
    if not header.startswith(_MAGIC):
        raise ProjectFileError(path, "not a project file; give the one that forerank label made")
    if int.from_bytes(header[_APPLICATION_AT], "big") != _APPLICATION_ID:
        raise ProjectFileError(path, "not a project file, but another SQLite database")
    page_size = int.from_bytes(header[_PAGE_SIZE_AT], "big")
    expected = (65_536 if page_size == 1 else page_size) * int.from_bytes(header[_PAGES_AT], "big")
    log = path.with_name(f"{path.name}-wal")  # may have the rest
    if path.stat().st_size < expected and not log.exists():
        raise ProjectFileError(path, _CUT)


def _connect(path: Path) -> sqlite3.Connection:
    options: Any = {"isolation_level": None, "check_same_thread": False, "timeout": 10}
    connection = sqlite3.connect(path, **options)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _lock(path: Path) -> Any:
    """A lock that ends with the process: one program at a time opens a project."""
    try:
        file = path.with_name(path.name + "-lock").open("a+b")
    except OSError as error:
        problem = f"the project cannot be locked ({first_line(error)})"
        raise ProjectFileError(path, f"{problem}; copy it to a folder of yours") from None
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        problem = "the project is open in another program; close that one first"
        raise ProjectFileError(path, problem) from None
    return file


def _unlock(file: Any) -> None:
    # The file stays: removing it would let two programs hold locks on two files of one name.
    file.close()
