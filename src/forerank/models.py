"""Model files that are safe to share: no pickle, a card that says what is in them, and a hash that says it is whole.

A model file is a zip archive of two members: `card.json` (format, versions, columns, target, how it was trained, the
hash of the other member) and `model.skops`, the fitted estimator as skops writes it: arrays and parameters, no code.
Loading makes objects of scikit-learn's and numpy's types and of the classes of this package that models are made of.
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
from sklearn.base import BaseEstimator

import forerank
from forerank._files import first_line, opened_atomically, refuse_existing

__all__ = ["COLUMN_KINDS", "Model", "ModelFileError", "load_model", "read_card", "save_model"]

_FORMAT = 1
_CARD, _ESTIMATOR = "card.json", "model.skops"
# What is read of a file at most, unpacked: no model comes near it, and a few kilobytes can unpack to gigabytes.
_MOST_BYTES = 1 << 29
_MEMBERS = {"sha256": str, "columns": dict, "summary": dict, "notes": list, "versions": dict}
# What a column may be for a model, as `forerank.columns` says it.
COLUMN_KINDS = ("number", "category", "text", "date", "date with zone")
# What the commands read of a summary, where it is there.
_SUMMARY: dict[str, type] = {
    "rows": int,
    "classes": dict,
    "params": dict,
    "measures": list,
    "warnings": list,
    "choice": dict,
    "n_columns": int,
    "zero_based": bool,
}
_MEASURE = {"name": str, "value": float, "low": float | None, "high": float | None}


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
    _check_card(path, card)  # what would not be read again is not written
    with opened_atomically(path, force=force) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_CARD, json.dumps(card, indent=1))
        archive.writestr(_ESTIMATOR, data)
    return digest


def read_card(path: Any) -> dict[str, Any]:
    """What a model file says about itself, and the types in it, without making any object of it."""
    card, data = _members(path)
    types = _types(path, data)
    return {**card, "types": types, "foreign_types": _foreign(types)}


def load_model(path: Any) -> Model:
    """Read a model; a file that is damaged, too new, or holds types of other packages is refused."""
    import skops.io

    card, data = _members(path)
    types = _types(path, data)
    if foreign := _foreign(types):
        raise ModelFileError(
            path,
            f"it holds {', '.join(foreign)}, which a model of forerank does not need and which could run code. If you "
            "trust who made it, open its member model.skops with skops.io.load and that list.",
        )
    try:
        estimator = skops.io.loads(data, trusted=types)
    except Exception as error:  # whatever a damaged or foreign archive leads to, it is this file's fault
        raise ModelFileError(path, f"its estimator cannot be rebuilt ({first_line(error)})") from None
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


def _types(path: Any, data: bytes) -> list[str]:
    """What skops would make of a file beyond scikit-learn's types and numpy's."""
    import skops.io

    try:
        with zipfile.ZipFile(BytesIO(data)) as inner:
            _refuse_large(path, inner)
        return sorted(set(skops.io.get_untrusted_types(data=data)))
    except ModelFileError:
        raise
    except Exception as error:  # whatever a damaged archive leads to, it is this file's fault
        raise ModelFileError(path, f"its estimator cannot be read ({first_line(error)})") from None


def _foreign(types: list[str]) -> list[str]:
    """Those that are not among the classes that models are made of.

    By their whole names: the modules of this package hold other modules, and a name such as forerank.models.platform.os
    would otherwise reach anything.
    """
    from forerank import columns, estimators
    from forerank.active.ranker import PoolRanker
    from forerank.estimators.sampled import Round
    from forerank.solvers.boosting import Stump
    from forerank.solvers.result import Step

    classes = [getattr(estimators, name) for name in estimators.__all__]
    classes += [PoolRanker, Round, Stump, Step, columns.TableColumns]
    classes += [columns.NumberColumns, columns.CategoryColumns, columns.TextColumn]
    ours = {f"{each.__module__}.{each.__qualname__}" for each in classes} | {"numpy.dtype"}
    return [name for name in types if name not in ours]


def _members(path: Any) -> tuple[dict[str, Any], bytes]:
    target = Path(path)
    if not target.is_file():
        raise ModelFileError(path, "there is no such file")
    try:
        with zipfile.ZipFile(target) as archive:
            _refuse_large(path, archive)
            card = json.loads(archive.read(_CARD))
            _check_card(path, card)
            data = archive.read(_ESTIMATOR)
    except ModelFileError:
        raise
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, NotImplementedError, RuntimeError, EOFError, OSError):
        raise ModelFileError(path, "this is not a model file, or it is damaged") from None
    if hashlib.sha256(data).hexdigest() != card["sha256"]:
        raise ModelFileError(path, "its contents do not have the hash in its card; the file is damaged")
    return card, data


def _refuse_large(path: Any, archive: zipfile.ZipFile) -> None:
    if sum(member.file_size for member in archive.infolist()) > _MOST_BYTES:
        raise ModelFileError(path, f"it unpacks to more than {_MOST_BYTES >> 20} MB, which no model does")


def _check_card(path: Any, card: Any) -> None:
    if not isinstance(card, dict) or type(card.get("format")) is not int:
        raise ModelFileError(path, "this is not a model file: its card has no format")
    versions = card.get("versions")
    if card["format"] > _FORMAT:
        newer = versions.get("forerank", "a newer version") if isinstance(versions, dict) else "a newer version"
        raise ModelFileError(path, f"it was written by forerank {newer}, in a newer format; update forerank to read it")
    missing = {*_MEMBERS, "target", "group"} - set(card)
    if missing:
        raise ModelFileError(path, f"its card lacks {', '.join(sorted(missing))}; the file is damaged")
    if odd := _odd_members(card):
        raise ModelFileError(path, f"its card has {', '.join(odd)} of another kind than a model's")


def _odd_members(card: dict[str, Any]) -> list[str]:
    """The members of a card that are not what they are called."""
    odd = [name for name, kind in _MEMBERS.items() if not isinstance(card[name], kind)]
    odd += [name for name in ("target", "group") if not isinstance(card[name], str | None)]
    if odd:
        return odd
    summary = card["summary"]
    odd = [name for name, kind in _SUMMARY.items() if name in summary and not isinstance(summary[name], kind)]
    if not all(kind in COLUMN_KINDS for kind in card["columns"].values()):
        odd.append("columns")
    if not all(isinstance(note, str) for note in card["notes"]):
        odd.append("notes")
    if "classes" not in odd and not all(isinstance(count, int) for count in summary.get("classes", {}).values()):
        odd.append("classes")
    measures = [] if "measures" in odd else summary.get("measures", [])
    if not all(isinstance(each, dict) and _is_measure(each) for each in measures):
        odd.append("measures")
    return odd


def _is_measure(measure: dict[str, Any]) -> bool:
    return all(name in measure and isinstance(measure[name], kind) for name, kind in _MEASURE.items())


def _versions() -> dict[str, str]:
    return {
        "forerank": forerank.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }
