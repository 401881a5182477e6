"""From a file to a project: it is made or opened, and records are added."""

import getpass
import hashlib
import json
import numbers
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forerank._text import counted
from forerank.exceptions import DataFileError, ProjectFileError
from forerank.label.project import ROLES, Project, create_project
from forerank.label.views import fold

if TYPE_CHECKING:
    from forerank.label.importing import ImportedRecords

__all__ = [
    "MODES",
    "STRATEGIES",
    "SUFFIX",
    "add_file",
    "change_settings",
    "check_settings",
    "create",
    "open_project",
    "project_path",
]

SUFFIX = ".forerank-project"
# Most labels: the page has a digit for each.
_MOST_LABELS = 10
# Settings that are fixed when reading has begun, and their names in an error.
_FIXED = {
    "target": "target recall",
    "confidence": "confidence",
    "mode": "mode",
    "threshold": "smallest relevant grade",
}
# The mode of projects, by the number of people who read each record.
MODES = ("single", "double")
# Names in `forerank.active.strategies`, which would take a second to import here.
STRATEGIES = ("greedy", "random", "uncertain", "entropy", "diverse", "lossmin", "pairlossmin")


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
    check_settings(given, team)
    if path.exists():
        return _reopened(file, path, team, given)
    if Path(file).name.endswith(SUFFIX):
        raise ProjectFileError(path, "there is no such project; give a file of records first")
    from forerank.label.duplicates import duplicates
    from forerank.label.importing import read_records

    found = read_records(file, **(read or {}))
    found = _with_roles(found, roles, Path(file).name)
    repeats = duplicates([], found.by_role(only_named=not (roles or {}).get("title")))
    name = Path(file).name
    return create(path, found, name, team=team, settings=given, repeats=repeats)


def create(
    path: Path,
    found: "ImportedRecords",
    name: str,
    *,
    team: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    repeats: Sequence[int | None] | None = None,
) -> tuple[Project, list[str]]:
    """A new project with records, and notes for people.

    `repeats` has for each record the number of an earlier one, from 0, that it repeats and for
    which it is set aside; default: all are kept.
    """
    made = _settings(found, name, bool(team), dict(settings or {}))
    people = list(team) or [_user()]
    kept, aside = _apart(found, repeats or [None] * len(found.fields))
    rows = [(record, name, fields) for record, fields, _ in aside]
    project = create_project(path, made, records=_rows(kept, name), duplicates=rows, people=people)
    notes = [*found.notes]
    if made["n_labels"] > 2 and "threshold" not in (settings or {}):
        told = "" if found.threshold else "; give the smallest relevant grade if it is another one"
        notes.append(f"grades from {made['threshold']} on are relevant{told}")
    if aside:
        notes.append(f"{counted(len(aside), 'duplicate')} (doi or title) set aside")
    return project, [*notes, f"the project is {path}"]


def _apart(
    found: "ImportedRecords", repeats: Sequence[int | None], n_known: int = 0
) -> "tuple[ImportedRecords, list[tuple[int, str, int]]]":
    """The records that repeat none; and of the others the number of the one that they repeat, from
    1 in the project, their fields and their label.

    `repeats` counts the records of the project first, of which there are `n_known`. A new record
    without a label has that of its first duplicate with one.
    """
    chosen = [number for number, earlier in enumerate(repeats) if earlier is None]
    places = {n_known + number: n_known + place for place, number in enumerate(chosen)}
    labels, aside = [found.labels[number] for number in chosen], []
    for number, earlier in enumerate(repeats):
        if earlier is None:
            continue
        place, label = places.get(earlier, earlier), found.labels[number]
        aside.append((place + 1, json.dumps(found.fields[number], ensure_ascii=False), label))
        if place >= n_known and labels[place - n_known] < 0:
            labels[place - n_known] = label
    fields = [found.fields[number] for number in chosen]
    return replace(found, fields=fields, labels=labels), aside


def check_settings(given: Mapping[str, Any], team: Sequence[str] = ()) -> None:
    """An error for settings of a project that cannot be."""
    for name in ("target", "confidence"):
        value = given.get(name, 0.5)
        if not isinstance(value, numbers.Real) or not 0.0 < float(value) < 1.0:
            raise ValueError(f"the {_FIXED[name]} is {value!r}; give a number between 0 and 1")
    if (strategy := given.get("strategy", "greedy")) not in STRATEGIES:
        raise ValueError(f"there is no strategy {strategy!r}; choose {', '.join(STRATEGIES)}")
    if (mode := given.get("mode", "single")) not in MODES:
        raise ValueError(f"the mode is {mode!r}; choose {' or '.join(MODES)}")
    seed = given.get("seed", 0)
    if not isinstance(seed, numbers.Integral) or isinstance(seed, bool) or seed < 0:
        raise ValueError(f"the seed is {seed!r}; give an integer from 0 on")
    if len(set(team)) < len(team) or any(not 1 <= len(each) <= 100 for each in team):
        raise ValueError("names of a team must differ and have 1 to 100 characters")
    if given.get("mode") == "double" and len(team) == 1:
        raise ValueError("double reading needs at least two people; give more names")
    if len(labels := given.get("labels", ["", ""])) not in range(2, _MOST_LABELS + 1):
        raise ValueError(f"{counted(len(labels), 'label')} given; give 2 to {_MOST_LABELS}")


def _settings(
    found: "ImportedRecords", name: str, team: bool, given: dict[str, Any]
) -> dict[str, Any]:
    threshold = given.get("threshold", found.threshold or 1)
    told = 0 if "threshold" in given else found.threshold or 0
    largest = max(max(found.labels), told)
    names = given.get("labels")
    if names is None:
        graded = [f"Grade {grade}" for grade in range(largest + 1)]
        names = graded if largest > 1 else ["Irrelevant", "Relevant"]
    if len(names) > _MOST_LABELS or largest >= len(names):
        raise _too_many(name, found, largest, given.get("labels"))
    _check_threshold(threshold, len(names))
    if given.get("mode") == "double" and not team:
        raise ValueError("double reading needs a team; give the names of at least two people")
    text = [found.roles[role] for role in ("title", "abstract") if role in found.roles]
    apart = {*found.roles.values(), found.label_column, found.unused_label}
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
        "sources": {name: _source(found)},
        "added": 0,
        "port": 0,
    }


def _too_many(
    file: Any, found: "ImportedRecords", largest: int, names: Sequence[str] | None
) -> DataFileError:
    """The error of a file with labels for which there is no name."""
    from forerank.label.importing import LABEL_ARGUMENT

    place = "" if found.label_column is None else f" in the column {found.label_column!r}"
    n_possible = len(names or range(_MOST_LABELS))
    problem = f"the largest label{place} is {largest}, and the labels of the project can be 0 to "
    problem += f"{n_possible - 1}; correct them, name another column of labels, or take none"
    return DataFileError(file, problem, arguments=LABEL_ARGUMENT)


def _check_threshold(threshold: int, n_labels: int) -> None:
    if not 1 <= threshold < n_labels:
        raise ValueError(f"the smallest relevant grade is {threshold}; give 1 to {n_labels - 1}")


def _source(found: "ImportedRecords") -> dict[str, Any]:
    """What is kept about a file: columns, and a digest by which it is known again."""
    contents = json.dumps([found.fields, found.labels], ensure_ascii=False)
    digest = hashlib.sha256(contents.encode("utf-8", "replace")).hexdigest()
    label = found.label_column or found.unused_label
    return {"roles": found.roles, "label": label, "digest": digest}


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
    hidden = found.label_column or found.unused_label
    for record, label in zip(found.fields, found.labels, strict=True):
        values = [record.get(found.roles.get(role, ""), "") for role in ROLES]
        fields = json.dumps(record, ensure_ascii=False)
        shown = (value for name, value in record.items() if name != hidden and value)
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
    if given.get("mode") == "double" and not (team or settings["team"]):
        raise ProjectFileError(path, "double reading needs a team; give the names of the people")
    change_settings(project, given)
    names = [each.name for each in project.people()]
    for each in team:
        if each not in names:
            project.add_person(each, "reader")
    if team and not settings["team"]:
        project.set("team", True)
    return [f"{counted(project.n_records, 'record')} in {path}"]


def change_settings(project: Project, given: Mapping[str, Any]) -> None:
    """Store settings of an existing project; an error for those that are fixed."""
    settings, path = project.settings(), project.path
    begun = next(project.events(), None) is not None
    for key, value in given.items():
        if value == settings[key]:
            continue
        if key in ("labels", "seed"):
            raise ProjectFileError(path, f"its {key} cannot change; make a new project")
        if key in _FIXED and begun:
            problem = f"the {_FIXED[key]} is {settings[key]} and reading has begun; it stays fixed"
            raise ProjectFileError(path, problem)
        if key == "threshold":
            _check_threshold(value, settings["n_labels"])
        project.set(key, value)


def add_file(
    project: Project,
    file: Any,
    read: Mapping[str, Any] | None = None,
    roles: Mapping[str, str] | None = None,
) -> list[str]:
    """Add the records of another file, without those that are there already; notes for people.

    A file whose contents were imported before is not added. `read` and `roles` as in
    `open_project`.
    """
    from forerank.label.duplicates import duplicates
    from forerank.label.importing import read_records

    found = _with_roles(read_records(file, **(read or {})), roles, Path(file).name)
    settings, made = project.settings(), _source(found)
    if any(made["digest"] == each.get("digest") for each in settings["sources"].values()):
        return [f"{file} is in the project already and was not added again"]
    if max(found.labels) >= settings["n_labels"]:
        raise _too_many(file, found, max(found.labels), settings["labels"])
    source = _new_name(Path(file).name, settings["sources"])
    repeats = duplicates(project.records_by_role(), found.by_role())
    kept, aside = _apart(found, repeats, project.n_records)
    with project.transaction():
        project.add_records(_rows(kept, source))
        project.add_duplicates((record, source, fields) for record, fields, _ in aside)
        for record, _, label in aside:
            if label >= 0:
                project.take_over(record, label)
        project.set("sources", settings["sources"] | {source: made})
        ended = _begin_anew(project) if kept.fields or any(row[2] >= 0 for row in aside) else []
    note = f"{counted(len(kept.fields), 'record')} of {file} added"
    note += f", {len(aside):,} were there already (doi or title)" if aside else ""
    return [*found.notes, note, *ended]


def _begin_anew(project: Project) -> list[str]:
    """Runs of irrelevant records and audits end where the unread records have changed; a note."""
    project.set("added", max((row[0] for row in project.assignments()), default=0))
    if project.audit() is None:
        return []
    project.end_audit()
    return ["the audit has ended, since it did not draw from these records; begin another one"]


def _new_name(name: str, taken: Iterable[str]) -> str:
    """The name of a file, with a number if there is one of that name already."""
    names, number, made = set(taken), 1, name
    while made in names:
        number += 1
        made = f"{name} ({number})"
    return made
