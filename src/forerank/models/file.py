"""Model files that are safe to share: no pickle, a card that says what is in them, and a hash that
says it is whole.

A model file is a zip archive of two members: `card.json` (format, versions, columns, target, how it
was trained, the hash of the other member) and `model.skops`, the fitted estimator as skops writes
it: arrays and parameters, no code. Loading makes objects of the classes of this package that models
are made of, and of some of scikit-learn's and numpy's: `forerank.models.check` lists them, and
judges a file before anything is built of it.
"""

import hashlib
import json
import re
import reprlib
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from forerank.data.column_kinds import COLUMN_KINDS
from forerank.data.files import first_line, opened_atomically, refuse_existing
from forerank.exceptions import ModelFileError, Refused
from forerank.models.aliases import with_present_names
from forerank.models.check import (
    MOST_BYTES,
    Contents,
    check_built,
    check_estimator,
    check_members,
    found,
    open_archive,
    read_member,
)
from forerank.models.versions import package_versions

__all__ = ["COLUMN_KINDS", "Model", "load_model", "read_card", "save_model"]

_FORMAT = 1
_CARD, _ESTIMATOR = "card.json", "model.skops"
_MEMBERS = re.compile(re.escape(_CARD) + "|" + re.escape(_ESTIMATOR))
# Of the card, in bytes: the names of 100,000 columns, twice, with 80 letters each. It is parsed
# before it is trusted.
_MOST_OF_CARD = 1 << 24
_MEASURE = {"name": str, "value": float, "low": float | None, "high": float | None}


def _is_measure(measure: Any) -> bool:
    return isinstance(measure, dict) and all(
        name in measure and isinstance(measure[name], kind) for name, kind in _MEASURE.items()
    )


def _is_int(value: Any) -> bool:
    return type(value) is int


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_dict_of(value: Any, is_one: Callable[[Any], bool]) -> bool:
    return isinstance(value, dict) and all(is_one(each) for each in value.values())


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


# The fields of a card, what they should be, in words and as a test.
_Field = tuple[str, Callable[[Any], bool]]
_FIELDS: dict[str, _Field] = {
    "sha256": ("a string", _is_string),
    "columns": (
        f"a dictionary from names to {', '.join(COLUMN_KINDS[:-1])} or {COLUMN_KINDS[-1]}",
        lambda value: _is_dict_of(value, lambda kind: kind in COLUMN_KINDS),
    ),
    "target": ("a string or null", lambda value: isinstance(value, str | None)),
    "group": ("a string or null", lambda value: isinstance(value, str | None)),
    "summary": ("a dictionary", lambda value: isinstance(value, dict)),
    "notes": ("a list of strings", _is_strings),
    "versions": ("a dictionary of strings", lambda value: _is_dict_of(value, _is_string)),
}
# What the commands read of a summary, where it is there.
_SUMMARY: dict[str, _Field] = {
    "rows": ("an integer", _is_int),
    "classes": ("a dictionary of integers", lambda value: _is_dict_of(value, _is_int)),
    "params": ("a dictionary", lambda value: isinstance(value, dict)),
    "measures": (
        "a list of measures with name, value, low and high",
        lambda value: isinstance(value, list) and all(_is_measure(each) for each in value),
    ),
    "warnings": ("a list of strings", _is_strings),
    "choice": ("a dictionary", lambda value: isinstance(value, dict)),
    "n_columns": ("an integer", _is_int),
    "zero_based": ("a truth value", lambda value: isinstance(value, bool)),
    "encoding": ("a string", lambda value: isinstance(value, str)),
    "missing_words": (
        "a dictionary of lists of strings",
        lambda value: isinstance(value, dict) and all(map(_is_strings, value.values())),
    ),
    "skip_unlabelled": ("a truth value", lambda value: isinstance(value, bool)),
}


@dataclass
class Model:
    """A fitted estimator and what is known about it.

    Attributes
    ----------
    estimator : fitted estimator or pipeline
    columns : dict
        Name and type of each column that it reads; empty for a matrix without names.
    target : str or None
    group : str or None
        The column of groups that it was trained with.
    summary : dict
        Rows, classes, measures: anything that JSON can hold.
    notes : list of str
        What was done with the columns, in words.
    versions : dict
        Of the packages that wrote it.
    """

    estimator: Any
    columns: dict[str, str] = field(default_factory=dict)
    target: str | None = None
    group: str | None = None
    summary: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)


def save_model(model: Model, path: Any, *, force: bool = False) -> str:
    """Write a model; returns the hash of its estimator.

    The file appears whole or not at all: it is written beside the place where it goes and put there
    at the end. One that is there already is kept, unless `force`.
    """
    import skops.io

    refuse_existing(path, force=force)
    data = skops.io.dumps(model.estimator)
    digest = hashlib.sha256(data).hexdigest()
    card = {
        "format": _FORMAT,
        "sha256": digest,
        "columns": model.columns,
        "target": model.target,
        "group": model.group,
        "summary": model.summary,
        "notes": model.notes,
        "versions": package_versions("forerank", "scikit-learn", "numpy", "scipy", "python"),
    }
    _check_card(path, card)  # what would not be read again is not written
    text = json.dumps(card, indent=1).encode()
    if len(text) > _MOST_OF_CARD:
        raise ModelFileError(
            path, f"what is known about the model takes more than {_MOST_OF_CARD >> 20} MB"
        )
    _refuse_problems(path, _contents(path, data))
    with (
        opened_atomically(path, force=force) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        archive.writestr(_CARD, text)
        archive.writestr(_ESTIMATOR, data)
    return digest


def read_card(path: Any) -> dict[str, Any]:
    """What a model file says about itself, and what is in it, without making any object of it.

    Beside the fields of the card: "types", the names of the classes in it; "foreign_types", those
    of nodes that no model has; "problems", everything for which it would not be loaded, in words.
    """
    card, data = _members(path)
    contents = _contents(path, data)
    types, foreign = sorted(contents.types), sorted(contents.foreign)
    return {**card, "types": types, "foreign_types": foreign, "problems": contents.problems}


def load_model(path: Any) -> Model:
    """Read a model; a file that is damaged, too new, or holds what models of this package do not
    need is refused.
    """
    import skops.io

    card, data = _members(path)
    contents = _contents(path, data)
    _refuse_problems(path, contents)
    try:
        estimator = skops.io.loads(data, trusted=sorted(contents.types))
        check_built(estimator)
    except Refused as problem:
        raise ModelFileError(
            path, f"it holds {problem}; the file is damaged, or was made to do harm"
        ) from None
    except (
        Exception
    ) as error:  # whatever a damaged or foreign archive leads to, it is this file's fault
        raise ModelFileError(
            path, f"its estimator cannot be rebuilt ({first_line(error)})"
        ) from None
    if not isinstance(estimator, BaseEstimator) or not hasattr(estimator, "decision_function"):
        raise ModelFileError(path, f"it holds a {type(estimator).__name__}, which gives no scores")
    return Model(
        estimator,
        columns=card["columns"],
        target=card["target"],
        group=card["group"],
        summary=card["summary"],
        notes=card["notes"],
        versions=card["versions"],
    )


def _contents(path: Any, data: bytes) -> Contents:
    """What is in an estimator, by our own check and, where that finds nothing wrong, by that of
    skops.
    """
    import skops.io

    try:
        contents = check_estimator(data)
        if not contents.problems:
            for name in sorted(set(skops.io.get_untrusted_types(data=data)) - contents.types):
                contents.add_node("node", name)
    except Refused as problem:
        raise ModelFileError(path, f"its estimator cannot be read: {problem}") from None
    except Exception as error:  # whatever a damaged archive leads to, it is this file's fault
        raise ModelFileError(path, f"its estimator cannot be read ({first_line(error)})") from None
    return contents


def _refuse_problems(path: Any, contents: Contents) -> None:
    if contents.problems:
        named = "; ".join(contents.problems)
        raise ModelFileError(
            path,
            f"it holds {named}. A model of forerank does not need that, and it could run code.",
        )


def _members(path: Any) -> tuple[dict[str, Any], bytes]:
    target = Path(path)
    if not target.is_file():
        raise ModelFileError(path, "there is no such file")
    try:
        with target.open("rb") as file, open_archive(file) as archive:
            card = _read_card(path, archive)
            check_members(archive, _MEMBERS, MOST_BYTES)
            data = read_member(archive, _ESTIMATOR) or b""
        if hashlib.sha256(data).hexdigest() != card["sha256"]:
            raise ModelFileError(
                path, "its contents do not have the hash in its card; the file is damaged"
            )
        return card, with_present_names(data)
    except ModelFileError:
        raise
    except Refused as problem:
        raise ModelFileError(path, str(problem)) from None
    except (
        zipfile.BadZipFile,
        zlib.error,
        KeyError,
        ValueError,
        NotImplementedError,
        RuntimeError,
        EOFError,
        OSError,
    ):
        raise ModelFileError(path, "not a forerank model file, or it is damaged") from None


def _read_card(path: Any, archive: zipfile.ZipFile) -> dict[str, Any]:
    data = read_member(archive, _CARD, _MOST_OF_CARD)
    if data is None:
        raise ModelFileError(
            path,
            f"not a forerank model file: the card has more than {_MOST_OF_CARD >> 20} MB, which no model's has",
        )
    card = json.loads(data)
    _check_card(path, card)
    return card


def _check_card(path: Any, card: Any) -> None:
    if not isinstance(card, dict) or type(card.get("format")) is not int:
        raise ModelFileError(path, "not a forerank model file: its card has no format")
    versions = card.get("versions")
    if card["format"] > _FORMAT:
        newer = (
            versions.get("forerank", "a newer version")
            if isinstance(versions, dict)
            else "a newer version"
        )
        raise ModelFileError(
            path,
            f"it was written by forerank {newer}, in a newer format; update forerank to read it",
        )
    if missing := set(_FIELDS) - set(card):
        raise ModelFileError(
            path, f"its card lacks {', '.join(sorted(missing))}; the file is damaged"
        )
    if problem := _card_problem(card, _FIELDS) or _card_problem(card["summary"], _SUMMARY):
        raise ModelFileError(path, f"not a forerank model file: {problem}")


def _card_problem(card: dict[str, Any], fields: dict[str, _Field]) -> str | None:
    """The first field that is not what it should be, in words."""
    for name, (expected, is_right) in fields.items():
        if name in card and not is_right(card[name]):
            value = card[name]
            shown = reprlib.repr(value) if isinstance(value, list | dict) else found(value)
            return f"the card's field {name!r} should be {expected}, found {shown}"
    return None
