"""From a file to an open page: projects are made or opened, records added, and served."""

import getpass
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forerank._text import counted
from forerank.exceptions import ProjectFileError
from forerank.label.project import ROLES, Project, create_project
from forerank.label.views import fold

if TYPE_CHECKING:
    from forerank.label.importing import ImportedRecords

__all__ = ["SUFFIX", "Page", "add_file", "open_page", "open_project", "project_path"]

SUFFIX = ".forerank-project"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
# Seconds until the ranker is started: first the page has the processor for itself.
_TRAINING_DELAY = 1.0
# Most labels: the page has a digit for each.
_MOST_LABELS = 10
# Settings that are fixed when reading has begun, and their names in an error.
_FIXED = {
    "target": "target recall",
    "confidence": "confidence",
    "mode": "mode",
    "labels": "labels",
    "threshold": "smallest relevant grade",
}
# The mode of projects, by the number of people who read each record.
MODES = ("single", "double")


# --- Projects ---


def project_path(file: str | os.PathLike, project: str | os.PathLike | None = None) -> Path:
    """The project of a file: the one that is named, or one beside the file."""
    if project is not None:
        return Path(project)
    path = Path(file)
    if path.name.endswith(SUFFIX):
        return path
    stem = path.name
    while Path(stem).suffix.lower() in (".gz", ".bz2"):
        stem = Path(stem).stem
    return path.with_name(f"{Path(stem).stem or stem}{SUFFIX}")


def open_project(
    file: Any,
    project: str | os.PathLike | None = None,
    *,
    team: Sequence[str] = (),
    read: Mapping[str, Any] | None = None,
    roles: Mapping[str, str] | None = None,
    **settings: Any,
) -> tuple[Project, list[str]]:
    """The project of a file, made where there is none, and notes for people.

    Parameters
    ----------
    file : path
        Records in any format that `forerank.label.importing.read_records` reads, or a project.
    project : path, optional
        Default: beside the file.
    team : sequence of str
        Names of the people who read; the first one owns the project.
    read : mapping
        Options of `read_records`.
    roles : mapping
        Columns of title, abstract and so on, where they are not to be found by their names.
    settings
        "strategy", "target", "confidence", "mode", "labels", "threshold", "seed"; None for the
        default, or in an existing project for what it has.
    """
    path = project_path(file, project)
    given = {name: value for name, value in settings.items() if value is not None}
    _check_settings(given, team)
    if path.exists():
        return _reopened(file, path, team, given)
    if Path(file).name.endswith(SUFFIX):
        raise ProjectFileError(path, "there is no such project; give a file of records first")
    from forerank.label.importing import read_records

    found = read_records(file, **(read or {}))
    return create(path, found, Path(file).name, team=team, roles=roles, settings=given)


def create(
    path: Path,
    found: "ImportedRecords",
    name: str,
    *,
    team: Sequence[str] = (),
    roles: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> tuple[Project, list[str]]:
    """A new project with records, and notes for people."""
    found = _with_roles(found, roles, name)
    made = _settings(found, name, bool(team), dict(settings or {}))
    people = list(team) or [_user()]
    project = create_project(path, made, records=_rows(found, name), people=people)
    return project, [*found.notes, f"the project is {path}"]


def _check_settings(given: Mapping[str, Any], team: Sequence[str]) -> None:
    for name in ("target", "confidence"):
        if name in given and not 0.0 < given[name] < 1.0:
            raise ValueError(f"the {_FIXED[name]} is {given[name]}; give a number between 0 and 1")
    if len(set(team)) < len(team) or any(not 1 <= len(each) <= 100 for each in team):
        raise ValueError("names of a team must differ and have 1 to 100 characters")
    if given.get("mode") == "double" and len(team) == 1:
        raise ValueError("double reading needs at least two people; give more names")
    if len(labels := given.get("labels", ["", ""])) not in range(2, _MOST_LABELS + 1):
        raise ValueError(f"{counted(len(labels), 'label')} given; give 2 to {_MOST_LABELS}")


def _settings(
    found: "ImportedRecords", name: str, team: bool, given: dict[str, Any]
) -> dict[str, Any]:
    largest = max(found.labels, default=0)
    names = given.get("labels")
    if names is None:
        graded = [f"Grade {grade}" for grade in range(largest + 1)]
        names = graded if largest > 1 else ["Irrelevant", "Relevant"]
    if len(names) > _MOST_LABELS or largest >= len(names):
        problem = f"the file has labels up to {largest} and there are names for {len(names)}; "
        raise ValueError(problem + f"at most {_MOST_LABELS} labels are possible")
    threshold = given.get("threshold", 1)
    if not 1 <= threshold < len(names):
        raise ValueError(f"the smallest relevant grade is {threshold}; give 1 to {len(names) - 1}")
    if given.get("mode") == "double" and not team:
        raise ValueError("double reading needs a team; give the names of at least two people")
    text = [found.roles[role] for role in ("title", "abstract") if role in found.roles]
    apart = {*found.roles.values(), found.label_column}
    others = [] if {"title", "abstract"} <= found.roles.keys() else list(found.fields[0])
    return {
        "id": secrets.token_hex(4),
        "name": Path(name).stem,
        "file": name,
        "created": time.time(),
        "mode": given.get("mode", "single"),
        "team": team,
        "strategy": given.get("strategy", "greedy"),
        "target": given.get("target", 0.95),
        "confidence": given.get("confidence", 0.95),
        "labels": list(names),
        "n_labels": len(names),
        "threshold": threshold,
        "seed": given.get("seed", 0),
        "shared": {"relevant_words": [], "irrelevant_words": [], "criteria": "", "tags": []},
        "columns": {
            "is_text": bool(text),
            "others": [each for each in others if each not in apart],
        },
        "sources": {name: {"roles": found.roles, "label": found.label_column}},
        "added": 0,
        "port": 0,
    }


def _with_roles(
    found: "ImportedRecords", roles: Mapping[str, str] | None, name: str
) -> "ImportedRecords":
    """The records with the columns that were named."""
    from forerank.data.readers import check_columns

    for role, column in (roles or {}).items():
        check_columns(name, list(found.fields[0]), column)
        found.roles[role] = column
    return found


def _rows(found: "ImportedRecords", source: str) -> Iterator[tuple]:
    """Rows of the table of records."""
    for record, label in zip(found.fields, found.labels, strict=True):
        values = [record.get(found.roles.get(role, ""), "") for role in ROLES]
        fields = json.dumps(record, ensure_ascii=False)
        shown = (value for name, value in record.items() if name != found.label_column and value)
        yield source, *values, fields, fold("\n".join(shown)), label


def _user() -> str:
    """The name of the one reader."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # no name in the environment
        return "reader"


def _reopened(
    file: Any, path: Path, team: Sequence[str], given: dict[str, Any]
) -> tuple[Project, list[str]]:
    project = Project(path)
    try:
        with project.transaction():
            notes = _update(project, file, team, given)
    except BaseException:
        project.close()
        raise
    return project, notes


def _update(project: Project, file: Any, team: Sequence[str], given: dict[str, Any]) -> list[str]:
    """Store what may change in an existing project."""
    settings, path, name = project.settings(), project.path, Path(file).name
    if not name.endswith(SUFFIX) and name not in settings["sources"]:
        problem = (
            f"it was made from {settings['file']}; add {name} to it, or choose another project"
        )
        raise ProjectFileError(path, problem)
    begun = next(project.events(), None) is not None
    if given.get("mode") == "double" and not (team or settings["team"]):
        raise ProjectFileError(path, "double reading needs a team; give the names of the people")
    for key, value in given.items():
        if key in _FIXED and value != settings[key] and begun:
            problem = f"the {_FIXED[key]} is {settings[key]} and reading has begun; it stays fixed"
            raise ProjectFileError(path, problem)
        if key in ("labels", "seed") and value != settings[key]:
            raise ProjectFileError(path, f"its {key} cannot change; make a new project")
        project.set(key, value)
    names = [each.name for each in project.people()]
    for each in team:
        if each not in names:
            project.add_person(each, "reader")
    if team and not settings["team"]:
        project.set("team", True)
    return [f"{counted(project.n_records, 'record')} in {path}"]


def add_file(project: Project, file: Any, read: Mapping[str, Any] | None = None) -> list[str]:
    """Add the records of another file, without those that are there already; notes for people."""
    from forerank.label.importing import read_records

    found, settings = read_records(file, **(read or {})), project.settings()
    source = _new_name(Path(file).name, settings["sources"])
    if max(found.labels, default=0) >= settings["n_labels"]:
        problem = f"{file}: labels up to {max(found.labels)}; the project has "
        raise ValueError(problem + counted(settings["n_labels"], "label"))
    n_known, repeats = project.n_records, _repeats(project, found)
    kept = [number for number, earlier in enumerate(repeats) if earlier is None]
    places = {n_known + number: n_known + place for place, number in enumerate(kept)}
    new = type(found)(
        [found.fields[number] for number in kept],
        found.roles,
        [found.labels[number] for number in kept],
        found.label_column,
    )
    sources = settings["sources"] | {source: {"roles": found.roles, "label": found.label_column}}
    with project.transaction():
        project.add_records(_rows(new, source))
        for number, earlier in enumerate(repeats):
            if earlier is None:
                continue
            record = places.get(earlier, earlier) + 1
            fields = json.dumps(found.fields[number], ensure_ascii=False)
            project.add_duplicates([(record, source, fields)])
            if found.labels[number] >= 0:
                project.take_over(record, found.labels[number])
        project.set("sources", sources)
        project.set("added", max((row[0] for row in project.assignments()), default=0))
        project.end_audit()
    gone = len(repeats) - len(kept)
    note = f"{counted(len(kept), 'record')} of {file} added"
    return [*found.notes, note + (f", {gone:,} were there already (doi or title)" if gone else "")]


def _repeats(project: Project, found: "ImportedRecords") -> list[int | None]:
    from forerank.label.duplicates import duplicates

    return duplicates(project.records_by_role(), found.by_role())


def _new_name(name: str, taken: Iterable[str]) -> str:
    """The name of a file, with a number if there is one of that name already."""
    names, number, made = set(taken), 1, name
    while made in names:
        number += 1
        made = f"{name} ({number})"
    return made


# --- The page ---


@dataclass
class Page:
    """A served project.

    Attributes
    ----------
    links : dict
        A one-time link for each person, by name.
    service : Service
    """

    links: dict[str, str]
    service: Any
    _server: Any
    _socket: socket.socket
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self._timer = threading.Timer(_TRAINING_DELAY, self.service.start_training)
        self._timer.daemon = True

    @property
    def url(self) -> str:
        """The link of the first person."""
        return next(iter(self.links.values()))

    def serve(self) -> None:
        """Answer requests until a signal ends the program (Ctrl-C) or `stop` is called."""
        self._timer.start()
        self._server.run(sockets=[self._socket])

    def serve_in_thread(self) -> None:
        """Answer requests in another thread."""
        self._thread = threading.Thread(target=self.serve, name="server", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the server and close the project."""
        self._server.should_exit = True
        self._timer.cancel()
        if self._timer.ident is not None:
            self._timer.join()
        if self._thread is not None:
            self._thread.join()
        self._socket.close()
        self.service.close()


@contextmanager
def open_page(
    project: Project,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    certfile: Any = None,
    keyfile: Any = None,
) -> Iterator[Page]:
    """A page of an open project, which ends with the context; the caller serves it.

    Parameters
    ----------
    project : Project
        Closed at the end.
    host : str
        Name or address to which the server is bound.
    port : int, optional
        Default: that of the last time if it is free, else any free one. 0 for any free one.
    certfile, keyfile : path, optional
        Certificate and key for TLS.
    """
    page = make_page(project, host=host, port=port, certfile=certfile, keyfile=keyfile)
    try:
        yield page
    finally:
        page.stop()


def make_page(
    project: Project,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    certfile: Any = None,
    keyfile: Any = None,
) -> Page:
    """A page of an open project, for which the socket is open already; see `open_page`."""
    try:
        listening = _listen(host, port, project.settings()["port"])
    except BaseException:
        project.close()
        raise
    try:
        return _page(project, listening, host, certfile, keyfile)
    except BaseException:
        listening.close()
        project.close()
        raise


def _page(
    project: Project, listening: socket.socket, host: str, certfile: Any, keyfile: Any
) -> Page:
    from forerank.label.security import Sessions, allowed_hosts
    from forerank.label.server import make_app, make_server
    from forerank.label.service import Service

    port, tls = listening.getsockname()[1], certfile is not None
    if tls:
        _check_certificate(certfile, keyfile)
    names = _names(host)
    shown = f"[{names[0]}]" if ":" in names[0] else names[0]
    base = f"{'https' if tls else 'http'}://{shown}:{port}/"
    hosts = allowed_hosts(names, port, tls=tls)
    sessions = Sessions(project)
    with project.transaction():
        project.set("port", port)
        links = {
            each.name: f"{base}?token={sessions.new_link(each.id)}" for each in project.people()
        }
    service = Service(project)
    app = make_app(service, sessions, hosts=hosts, base_url=base, tls=tls)
    options = {"ssl_certfile": certfile, "ssl_keyfile": keyfile} if tls else {}
    return Page(links, service, make_server(app, **options), listening)


def _check_certificate(certfile: Any, keyfile: Any) -> None:
    import ssl

    for file in (certfile, keyfile):
        with Path(file).open("rb"):
            pass  # a file that cannot be read is an error with its name
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certfile, keyfile)
    except ssl.SSLError as error:
        problem = f"not a certificate and its key as PEM ({error.reason or error})"
        raise ValueError(f"{certfile}, {keyfile}: {problem}") from None


def _names(host: str) -> list[str]:
    """Names under which the server may be addressed, the one to print first."""
    if host in _LOOPBACK:
        return [host, *(each for each in _LOOPBACK[:2] if each != host)]
    if host in ("0.0.0.0", "::", ""):
        names = [socket.getfqdn(), socket.gethostname()]
        with suppress(OSError):
            names += [str(each[4][0]) for each in socket.getaddrinfo(socket.gethostname(), None)]
        return list(dict.fromkeys([*names, *_LOOPBACK[:2]]))
    return [host]


def is_loopback(host: str) -> bool:
    """Whether a server that is bound to this host can be reached from this machine only."""
    return host in _LOOPBACK


def _listen(host: str, port: int | None, last: int) -> socket.socket:
    """A listening socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    wanted = [last, 0] if port is None else [port]
    for number in wanted:
        # With the protocol named, asyncio sends small replies at once (TCP_NODELAY).
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        if os.name != "nt":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, number))
            made.listen(128)
        except OSError as error:
            made.close()
            if number != wanted[-1]:
                continue
            place = f"{host}:{number}" if number else host
            problem = (error.strerror or str(error)).lower()
            raise ValueError(f"cannot listen on {place}: {problem}") from None
        return made
    raise ValueError(f"cannot listen on {host}")
