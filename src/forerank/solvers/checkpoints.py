"""Checkpoints: a file from which an interrupted fit on rows in parts continues.

The file is an .npz archive without pickled objects. It holds the problem it belongs to, the
weights and the metric. It is written under another name and renamed when complete, so that a
process that is killed at any moment leaves the previous checkpoint or the new one.
"""

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

import numpy as np

from forerank._typing import Vector
from forerank.objectives.part_columns import ColumnMoments

__all__ = ["Checkpoint", "CheckpointState", "check_checkpoint_file"]

# Member that marks a checkpoint, the number of its format, and the prefix of those of a stage.
_MARK, _FORMAT = "forerank_checkpoint", 1
_STAGE = "stage_"
_MEMBERS = ("problem", "columns", "w", "metric_point", "reference", "iteration")
# Difference of the moments of the columns, relative to their mean squares, that counts as rounding
# error: blocks or partitions of other sizes are added in another order.
_SAME_MOMENTS = 1e-9
# What reading a file that is not a checkpoint raises.
_UNREADABLE = (
    AttributeError, EOFError, IsADirectoryError, KeyError, RuntimeError, TypeError, ValueError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


@dataclass(frozen=True)
class CheckpointState:
    """Where a fit is.

    Attributes
    ----------
    w : array of shape (d,)
        The weights of the columns in their units.
    metric : dict of arrays
        `Metric.state` there.
    metric_point : array of shape (d,)
        The weights at which the Hessian of the metric was computed.
    reference : float
        The gradient norm to which the certificate is relative.
    iteration : int
        Iterations so far.
    stage : dict of arrays
        What a solver in stages needs beside these.
    """

    w: Vector
    metric: dict[str, Vector]
    metric_point: Vector
    reference: float
    iteration: int
    stage: Mapping[str, Vector] = field(default_factory=dict)


class Checkpoint:
    """The checkpoint of one problem.

    Parameters
    ----------
    path : str or path
    problem : dict
        What the weights depend on, by the names that an error message has for it; values can be
        written as JSON.
    moments : ColumnMoments
        Of all rows.
    """

    def __init__(
        self, path: str | os.PathLike[str], problem: Mapping[str, Any], moments: ColumnMoments
    ) -> None:
        self._path = Path(path)
        # As JSON has it: tuples are lists.
        self._problem = json.loads(json.dumps(dict(problem)))
        self._columns = _described_columns(moments)

    @property
    def _unfinished(self) -> Path:
        return self._path.with_name(f"{self._path.name}.tmp")

    def load(self) -> CheckpointState | None:
        """The state in the file, or None where there is no file; ValueError where the file is not
        a checkpoint of this problem.
        """
        if not os.path.lexists(self._path):
            return None
        members = _read(self._path)
        self._refuse_other_problem(json.loads(str(members["problem"])), members["columns"])
        metric, stage = {}, {}
        for name, value in members.items():
            if name.startswith(_STAGE):
                stage[name.removeprefix(_STAGE)] = value
            elif name not in (_MARK, *_MEMBERS):
                metric[name] = value
        return CheckpointState(
            members["w"],
            metric,
            members["metric_point"],
            float(members["reference"]),
            int(members["iteration"]),
            stage,
        )

    def _refuse_other_problem(self, problem: dict[str, Any], columns: Vector) -> None:
        names = dict.fromkeys((*self._problem, *problem))
        differing = [name for name in names if problem.get(name) != self._problem.get(name)]
        if differing:
            found, expected = (
                ", ".join(f"{name} = {shortened(each.get(name))}" for name in differing)
                for each in (problem, self._problem)
            )
        elif not _are_same_columns(columns, self._columns):
            found, expected = "columns of other moments", "those of these rows"
        else:
            return
        raise ValueError(
            f"The checkpoint {self._path} belongs to another problem: it has {found}; this fit "
            f"has {expected}. Continue with the rows and parameters it was written with, remove "
            "the file, or give another path."
        )

    def save(self, state: CheckpointState) -> None:
        """Replace the file."""
        members: dict[str, Any] = {
            _MARK: np.array(_FORMAT),
            "problem": np.array(json.dumps(self._problem)),
            "columns": self._columns,
            "w": state.w,
            "metric_point": state.metric_point,
            "reference": np.array(state.reference),
            "iteration": np.array(state.iteration),
            **state.metric,
            **{_STAGE + name: value for name, value in state.stage.items()},
        }
        try:
            with self._unfinished.open("wb") as file:
                np.savez(file, **members)
                file.flush()
                os.fsync(file.fileno())
            os.replace(self._unfinished, self._path)
        except BaseException as error:
            self._unfinished.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise self._not_written(error) from error
            raise

    def _not_written(self, error: OSError) -> OSError:
        """The error of a write, with what is left and what to do."""
        kept = ", and the file has an earlier state" if self._path.exists() else ""
        problem = f"the checkpoint was not written ({error.strerror or error}){kept}"
        remedy = "make room, or give another path, and fit again"
        return OSError(error.errno, f"{problem}; {remedy}", str(self._path))

    def remove(self) -> None:
        """Remove the file, at the end of the fit."""
        self._unfinished.unlink(missing_ok=True)
        self._path.unlink(missing_ok=True)


def check_checkpoint_file(path: str | os.PathLike[str]) -> None:
    """ValueError where a checkpoint cannot be written to `path`, or what is there is not one."""
    path = Path(path)
    if not path.parent.is_dir():
        raise ValueError(
            f"checkpoint={str(path)!r}: there is no folder {str(path.parent)!r}. Make it, or give "
            "another path."
        )
    if os.path.lexists(path):
        _read(path)


def _read(path: Path) -> dict[str, Any]:
    """The members of a checkpoint."""
    remedy = "Give the path of a checkpoint or of a file that does not exist; it is not changed."
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            number = int(archive[_MARK])
            members = {name: archive[name] for name in archive.files} if number == _FORMAT else {}
        if members:
            _check_members(members)
    except _UNREADABLE as error:
        raise ValueError(f"{path} is not a checkpoint of a fit. {remedy}") from error
    if not members:
        raise ValueError(
            f"{path} is a checkpoint of format {number}; format {_FORMAT} was expected. Continue "
            "with the version of forerank that wrote it, remove the file, or give another path."
        )
    return members


def _check_members(members: Mapping[str, Any]) -> None:
    """ValueError or KeyError unless all members are there and fit each other."""
    d = members["w"].size
    shapes = {"w": (d,), "metric_point": (d,), "reference": (), "iteration": (), "scale": ()}
    k = len(members["steps"])
    shapes |= {"steps": (k, d), "changes": (k, d)}
    shapes["columns"] = (*members["columns"].shape[:1], members["columns"].shape[-1])
    if "hessian" in members:
        shapes["hessian"] = (d,) * members["hessian"].ndim
    for name, shape in shapes.items():
        if members[name].shape != shape or members[name].dtype.kind not in "fi":
            raise ValueError(name)
    if not np.isfinite(members["w"]).all() or not isinstance(
        json.loads(str(members["problem"])), dict
    ):
        raise ValueError("w or problem")


def _described_columns(moments: ColumnMoments) -> Vector:
    """Root mean squares of the columns; relative to them, means and mean squares by class. The
    last column has the shares of the classes.
    """
    weight = np.where(moments.weight > 0.0, moments.weight, 1.0)[:, None]
    share = moments.weight / moments.weight.sum()
    with np.errstate(over="ignore", invalid="ignore"):
        raw = moments.moved(np.zeros(moments.about.size))
        mean, square = raw.first / weight, raw.second / weight
        root = np.sqrt(np.maximum(share @ square, 0.0))
        unit = np.where(root > 0.0, root, 1.0)
        by_column = np.vstack([root, mean / unit, square / unit**2])
    return np.column_stack([by_column, np.concatenate([[1.0], share, share])])


def _are_same_columns(columns: Vector, others: Vector) -> bool:
    """Whether descriptions of columns are equal up to rounding errors."""
    if columns.shape != others.shape:
        return False
    return np.allclose(
        columns[0], others[0], rtol=_SAME_MOMENTS, atol=0.0, equal_nan=True
    ) and np.allclose(columns[1:], others[1:], rtol=0.0, atol=_SAME_MOMENTS, equal_nan=True)
