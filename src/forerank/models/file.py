"""Model files that are safe to share: no pickle, a readable card, and a hash of the contents.

A model file is a zip archive of two members: `card.json` (format, versions, columns, target, how it
was trained, the hash of the other member) and `model.skops`, the fitted estimator as skops writes
it: arrays and parameters, no code. Loading builds objects of some classes of this package,
scikit-learn and numpy only: `forerank.models.safety` lists them, and checks a file before anything
is built from it.
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
from forerank.data.notations import NOTATIONS
from forerank.exceptions import ModelFileError, Refused
from forerank.models.aliases import with_current_names
from forerank.models.archive import MAX_BYTES, check_members, open_archive, read_member
from forerank.models.safety import EstimatorCheck, check_built, check_estimator, json_type
from forerank.models.versions import package_versions

__all__ = ["COLUMN_KINDS", "Model", "load_model", "read_card", "save_model"]

_FORMAT = 1
_CARD, _ESTIMATOR = "card.json", "model.skops"
_MEMBERS = re.compile(re.escape(_CARD) + "|" + re.escape(_ESTIMATOR))
# Bytes of the card, which is parsed before the hash is checked: the names of 100,000 columns,
# twice, with 80 characters each.
_MAX_CARD_BYTES = 1 << 24
# Packages whose versions are written, and attributes of a model that are fields of its card.
_PACKAGES = ("forerank", "scikit-learn", "numpy", "scipy", "python")
_DESCRIPTION = ("columns", "target", "group", "summary", "notes")
# Exceptions that bytes of another format, or damaged ones, lead to.
_DAMAGE = (zipfile.BadZipFile, zlib.error, KeyError, ValueError, RuntimeError, EOFError, OSError)

# --- Fields of a card: the type of each, as text and as a test ---

_Test = Callable[[Any], bool]


def _is(kind: Any) -> _Test:
    return lambda value: isinstance(value, kind)


def _list_of(is_item: _Test) -> _Test:
    return lambda value: isinstance(value, list) and all(map(is_item, value))


def _dict_of(is_item: _Test) -> _Test:
    return lambda value: isinstance(value, dict) and all(map(is_item, value.values()))


def _is_int(value: Any) -> bool:
    return type(value) is int


def _is_measure(value: Any) -> bool:
    kinds = {"name": str, "value": float, "low": float | None, "high": float | None}
    return isinstance(value, dict) and all(
        name in value and isinstance(value[name], kind) for name, kind in kinds.items()
    )


_BOOLEAN = ("a boolean", _is(bool))
_DICT = ("a dictionary", _is(dict))
_INTEGER = ("an integer", _is_int)
_STRING = ("a string", _is(str))
_STRING_OR_NULL = ("a string or null", _is(str | None))
_STRINGS = ("a list of strings", _list_of(_is(str)))
_FIELDS: dict[str, tuple[str, _Test]] = {
    "sha256": _STRING,
    "columns": (
        f"a dictionary from names to {', '.join(COLUMN_KINDS[:-1])} or {COLUMN_KINDS[-1]}",
        _dict_of(lambda kind: isinstance(kind, str) and kind in COLUMN_KINDS),
    ),
    "target": _STRING_OR_NULL,
    "group": _STRING_OR_NULL,
    "summary": _DICT,
    "notes": _STRINGS,
    "versions": ("a dictionary of strings", _dict_of(_is(str))),
}
# Fields of the summary that the commands read; each may be missing.
_SUMMARY: dict[str, tuple[str, _Test]] = {
    "rows": _INTEGER,
    "classes": ("a dictionary of integers", _dict_of(_is_int)),
    "params": _DICT,
    "measures": ("a list of measures with name, value, low and high", _list_of(_is_measure)),
    "warnings": _STRINGS,
    "choice": _DICT,
    "n_columns": _INTEGER,
    "zero_based": _BOOLEAN,
    "encoding": _STRING,
    "missing_words": ("a dictionary of lists of strings", _dict_of(_list_of(_is(str)))),
    "notations": (
        f"a dictionary from names to {', '.join(NOTATIONS[:-1])} or {NOTATIONS[-1]}",
        _dict_of(lambda notation: isinstance(notation, str) and notation in NOTATIONS),
    ),
    "skip_unlabelled": _BOOLEAN,
    "text_spread": ("a dictionary of numbers", _dict_of(_is(float))),
}


@dataclass
class Model:
    """A fitted estimator and its description.

    Attributes
    ----------
    estimator : fitted estimator or pipeline
    columns : dict
        Name and kind of each column that it reads; empty for a matrix without names.
    target : str or None
    group : str or None
        The column of groups that it was trained with.
    summary : dict
        Rows, classes, measures: anything that JSON can hold.
    notes : list of str
        Descriptions of how the columns are used.
    versions : dict
        Versions of the packages that wrote it.
    """

    estimator: Any
    columns: dict[str, str] = field(default_factory=dict)
    target: str | None = None
    group: str | None = None
    summary: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)


def save_model(model: Model, path: Any, *, force: bool = False) -> str:
    """Write a model; returns the SHA-256 of its estimator.

    The file is written atomically. An existing one is an error, unless `force`.
    """
    if not isinstance(model, Model):
        raise TypeError(
            "save_model writes a Model, as forerank.workflows.fit.fit returns it; got "
            f"{type(model).__name__}. Save a single estimator with joblib.dump(estimator, path)."
        )
    import skops.io

    refuse_existing(path, force=force)
    data = skops.io.dumps(model.estimator)
    digest = hashlib.sha256(data).hexdigest()
    card = {"format": _FORMAT, "sha256": digest}
    card |= {name: getattr(model, name) for name in _DESCRIPTION}
    card["versions"] = package_versions(*_PACKAGES)
    _check_card(path, card)  # a file that could not be read again is not written
    text = json.dumps(card, indent=1).encode()
    if len(text) > _MAX_CARD_BYTES:
        limit = _MAX_CARD_BYTES >> 20
        raise ModelFileError(path, f"summary and notes take more than {limit} MB; shorten them")
    _refuse_problems(path, _checked(path, data))
    with (
        opened_atomically(path, force=force) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        archive.writestr(_CARD, text)
        archive.writestr(_ESTIMATOR, data)
    return digest


def read_card(path: Any) -> dict[str, Any]:
    """The card of a model file and the result of its safety check; no object is built from it.

    Beside the fields of the card: "types", the names of the classes in it; "foreign_types", those
    that are not allowed in a model file; "problems", all reasons for which it would not be loaded.
    """
    card, data = _read(path)
    result = _checked(path, data)
    types, foreign = sorted(result.types), sorted(result.foreign)
    return {**card, "types": types, "foreign_types": foreign, "problems": result.problems}


def load_model(path: Any) -> Model:
    """The model in a file; `ModelFileError` if it is damaged, too new, or could run code."""
    import skops.io

    card, data = _read(path)
    result = _checked(path, data)
    _refuse_problems(path, result)
    try:
        estimator = skops.io.loads(data, trusted=sorted(result.types))
        check_built(estimator)
    except Refused as problem:
        raise ModelFileError(
            path, f"it contains {problem}; the file is damaged or malicious"
        ) from None
    except Exception as error:  # malformed contents make skops raise many types
        raise ModelFileError(
            path, f"the estimator cannot be rebuilt ({first_line(error)}); the file may be damaged"
        ) from None
    if not isinstance(estimator, BaseEstimator) or not hasattr(estimator, "decision_function"):
        name = type(estimator).__name__
        raise ModelFileError(
            path, f"it contains a {name}, which is not an estimator with a decision_function"
        )
    return Model(estimator, **{name: card[name] for name in (*_DESCRIPTION, "versions")})


def _checked(path: Any, data: bytes) -> EstimatorCheck:
    """Result of our check of an estimator and, where that finds no problem, of that of skops."""
    import skops.io

    try:
        result = check_estimator(data)
        if not result.problems:
            for name in sorted(set(skops.io.get_untrusted_types(data=data)) - result.types):
                result.add_foreign("node", name)
    except Refused as problem:
        raise ModelFileError(path, f"the estimator cannot be read: {problem}") from None
    except Exception as error:  # malformed contents make skops raise many types
        raise ModelFileError(
            path, f"the estimator cannot be read ({first_line(error)}); the file may be damaged"
        ) from None
    return result


def _refuse_problems(path: Any, result: EstimatorCheck) -> None:
    if result.problems:
        raise ModelFileError(
            path,
            f"it contains {'; '.join(result.problems)}. "
            "A model of forerank does not need this, and it could run code.",
        )


def _read(path: Any) -> tuple[dict[str, Any], bytes]:
    """The card and the bytes of the estimator."""
    if not Path(path).is_file():
        raise ModelFileError(path, "the file does not exist")
    try:
        with Path(path).open("rb") as file, open_archive(file) as archive:
            text = read_member(archive, _CARD, _MAX_CARD_BYTES)
            if text is None:
                limit = _MAX_CARD_BYTES >> 20
                raise Refused(f"not a forerank model file: the card has more than {limit} MB")
            card = json.loads(text)
            _check_card(path, card)
            check_members(archive, _MEMBERS, MAX_BYTES)
            data = read_member(archive, _ESTIMATOR) or b""
        if hashlib.sha256(data).hexdigest() != card["sha256"]:
            raise Refused("the estimator does not have the hash in the card; the file is damaged")
        return card, with_current_names(data)
    except ModelFileError:
        raise
    except Refused as problem:
        raise ModelFileError(path, str(problem)) from None
    except _DAMAGE:
        raise ModelFileError(path, "not a forerank model file, or a damaged one") from None


def _check_card(path: Any, card: Any) -> None:
    if not isinstance(card, dict) or type(card.get("format")) is not int:
        raise ModelFileError(path, "not a forerank model file: the card has no format number")
    if card["format"] > _FORMAT:
        versions = card.get("versions")
        known = versions if isinstance(versions, dict) else {}
        writer = known.get("forerank", "of a newer version")
        raise ModelFileError(
            path,
            f"it was written by forerank {writer}, in a newer format; update forerank to read it",
        )
    if missing := sorted(set(_FIELDS) - set(card)):
        raise ModelFileError(path, f"the card lacks {', '.join(missing)}; the file is damaged")
    if problem := _card_problem(card, _FIELDS) or _card_problem(card["summary"], _SUMMARY):
        raise ModelFileError(path, f"not a forerank model file: {problem}")


def _card_problem(card: dict[str, Any], fields: dict[str, tuple[str, _Test]]) -> str | None:
    """Description of the first field of a wrong type."""
    for name, (expected, is_right) in fields.items():
        if name in card and not is_right(card[name]):
            value = card[name]
            shown = reprlib.repr(value) if isinstance(value, list | dict) else json_type(value)
            return f"the card's field {name!r} should be {expected}, found {shown}"
    return None
