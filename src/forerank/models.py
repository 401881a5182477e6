"""Model files that are safe to share: no pickle, a card that says what is in them, and a hash that says it is whole.

A model file is a zip archive of two members: `card.json` (format, versions, columns, target, how it was trained, the
hash of the other member) and `model.skops`, the fitted estimator as skops writes it: arrays and parameters, no code.
Loading makes objects of scikit-learn's, numpy's and this package's types only.
"""

import hashlib
import json
import platform
import zipfile
import zlib
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

import forerank
from forerank._files import opened_atomically, refuse_existing

__all__ = ["Model", "ModelFileError", "load_model", "read_card", "save_model"]

_FORMAT = 1
_CARD, _ESTIMATOR = "card.json", "model.skops"
# Types beyond those that skops knows to be harmless: this package's, and one that is named by a string.
_OURS = "forerank."
_HARMLESS = {"numpy.dtype"}


class ModelFileError(ValueError):
    """A model file that cannot be used, in one line: the file, what is wrong, what to do."""

    def __init__(self, path: Any, problem: str) -> None:
        super().__init__(f"{path}: {problem}")


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

    The file appears whole or not at all: it is written beside the place where it goes and put there at the end. One
    that is there already is kept, unless `force`.
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
        "versions": _versions(),
    }
    with opened_atomically(path, force=force) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_CARD, json.dumps(card, indent=1))
        archive.writestr(_ESTIMATOR, data)
    return digest


def read_card(path: Any) -> dict[str, Any]:
    """What a model file says about itself, and the types in it, without making any object of it."""
    import skops.io

    card, data = _members(path)
    try:
        beyond = sorted(set(skops.io.get_untrusted_types(data=data)))
    except Exception as error:  # whatever a damaged archive leads to, it is this file's fault
        raise ModelFileError(path, f"its estimator cannot be read ({_first_line(error)})") from None
    return {**card, "types": beyond, "foreign_types": _foreign(beyond)}


def _foreign(types: list[str]) -> list[str]:
    return [name for name in types if not name.startswith(_OURS) and name not in _HARMLESS]


def load_model(path: Any) -> Model:
    """Read a model; a file that is damaged, too new, or holds types of other packages is refused."""
    import skops.io

    card, data = _members(path)
    try:
        found = sorted(set(skops.io.get_untrusted_types(data=data)))
    except Exception as error:  # whatever a damaged archive leads to, it is this file's fault
        raise ModelFileError(path, f"its estimator cannot be read ({_first_line(error)})") from None
    if foreign := _foreign(found):
        raise ModelFileError(
            path,
            f"it holds the types {', '.join(foreign)}, which are not forerank's or scikit-learn's and could run code. "
            "If you trust who made it, open its member model.skops with skops.io.load and that list.",
        )
    try:
        estimator = skops.io.loads(data, trusted=found)
    except Exception as error:  # whatever a damaged or foreign archive leads to, it is this file's fault
        raise ModelFileError(path, f"its estimator cannot be rebuilt ({_first_line(error)})") from None
    return Model(
        estimator,
        columns=card["columns"],
        target=card["target"],
        group=card["group"],
        summary=card["summary"],
        notes=card["notes"],
        versions=card["versions"],
    )


def _members(path: Any) -> tuple[dict[str, Any], bytes]:
    target = Path(path)
    if not target.is_file():
        raise ModelFileError(path, "there is no such file")
    try:
        with zipfile.ZipFile(BytesIO(target.read_bytes())) as archive:
            card, data = json.loads(archive.read(_CARD)), archive.read(_ESTIMATOR)
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, NotImplementedError, RuntimeError, EOFError, OSError):
        raise ModelFileError(path, "this is not a model file, or it is damaged") from None
    if not isinstance(card, dict) or not isinstance(card.get("format"), int):
        raise ModelFileError(path, "this is not a model file: its card has no format")
    if card["format"] > _FORMAT:
        newer = card.get("versions", {}).get("forerank", "a newer version")
        raise ModelFileError(path, f"it was written by forerank {newer}, in a newer format; update forerank to read it")
    missing = {"sha256", "columns", "target", "group", "summary", "notes", "versions"} - set(card)
    if missing:
        raise ModelFileError(path, f"its card lacks {', '.join(sorted(missing))}; the file is damaged")
    if hashlib.sha256(data).hexdigest() != card["sha256"]:
        raise ModelFileError(path, "its contents do not have the hash in its card; the file is damaged")
    return card, data


def _versions() -> dict[str, str]:
    return {
        "forerank": forerank.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
