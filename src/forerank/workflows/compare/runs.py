"""The fits of a comparison, one by one or side by side, and the file that keeps what came of them."""

import inspect
import json
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from forerank._typing import Index, Vector
from forerank.data.files import first_line
from forerank.estimators.scores import score_rows
from forerank.metrics.registry import Measure, measure_named
from forerank.models.versions import package_versions
from forerank.workflows import fit as workflow
from forerank.workflows.compare.methods import Method, seeded, takes_sparse
from forerank.workflows.compare.rows import RowsToCompare

__all__ = ["check_same_methods", "in_time", "opened_record", "run_tasks", "tasks_of"]


# Sparse matrices of up to so many numbers are made dense for estimators that take no others.
_LARGEST_DENSE = 2**27

Task = tuple[dict[str, Any], Method, Any, dict[str, NDArray], dict[str, NDArray], list[Measure]]


def tasks_of(
    rows: RowsToCompare,
    methods: dict[str, Method],
    splits: dict[tuple[int, int], tuple[Index, Index]],
    missing: list[tuple[str, int, int]],
    measures: tuple[str, ...],
) -> Iterator[Task]:
    """One for each fit that is to be done, its rows prepared when it is asked for: once for all
    methods of a fold.
    """
    for (seed, fold), keys in groupby(missing, key=lambda key: key[1:]):
        train, test = splits[seed, fold]
        inputs: dict[str, Any] = {}
        known = [measure_named(name) for name in measures]
        known = [
            each.for_rows(test.size, rows.y.size, grouped=rows.qid is not None) for each in known
        ]
        sides = []
        for side in (train, test):
            parts = {"y": rows.y, "sample_weight": rows.weights, "qid": rows.qid}
            sides.append({name: part[side] for name, part in parts.items() if part is not None})
        for name, *_ in keys:
            method = methods[name]
            if method.form not in inputs:
                try:
                    inputs[method.form] = rows.inputs(train, test, method.form)
                except (ValueError, MemoryError) as error:
                    inputs[method.form] = f"the columns cannot be prepared: {first_line(error)}"
            place = {"method": name, "seed": seed, "fold": fold, "spec": method.spec}
            place |= {"n_train": int(train.size), "n_test": int(test.size)}
            yield place, method, inputs[method.form], sides[0], sides[1], known


def in_time(tasks: Iterator[Task], seconds: float | None) -> Iterator[Task]:
    """The tasks of the first fold, and those of others that begin within so many seconds: methods
    keep equal folds.
    """
    begin, current = perf_counter(), None
    for task in tasks:
        fold = task[0]["seed"], task[0]["fold"]
        late = seconds is not None and perf_counter() - begin > seconds
        if current is not None and fold != current and late:
            return
        current = fold
        yield task


def run_tasks(tasks: Iterator[Task], n_jobs: int | None) -> Iterator[dict[str, Any]]:
    if n_jobs in (None, 1):
        yield from (_fit_and_measure(*task) for task in tasks)
        return
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(_fit_and_measure)(*task) for task in tasks
    )


def _fit_and_measure(
    place: dict[str, Any],
    method: Method,
    inputs: Any,
    train: dict[str, NDArray],
    test: dict[str, NDArray],
    measures: list[Measure],
) -> dict[str, Any]:
    """The record of one fit: measures and seconds, or what went wrong."""
    problem = inputs if isinstance(inputs, str) else _one_class(train["y"], test["y"])
    if problem is not None:
        return place | {"error": problem}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for kind in (DeprecationWarning, FutureWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", kind)
        try:
            # One thread for each fit, here and in `seeded`: threads of OpenMP wait for each other
            # by spinning, and on cores that are busy with something else that has made a fit thirty
            # times slower.
            with threadpool_limits(limits=1):
                found = _fitted_record(place, method, inputs, train, test, measures)
        except (
            Exception
        ) as error:  # whatever an estimator of others may raise is said and the rest goes on
            return place | {"error": f"{type(error).__name__}: {first_line(error)}"}
    remarks = list(dict.fromkeys(" ".join(str(each.message).split()) for each in caught))
    return found | ({"warnings": remarks[:3]} if remarks else {})


def _fitted_record(
    place: dict[str, Any],
    method: Method,
    inputs: tuple[Any, Any],
    train: dict[str, NDArray],
    test: dict[str, NDArray],
    measures: list[Measure],
) -> dict[str, Any]:
    X_train, X_test = inputs
    estimator = seeded(method.estimator, place["seed"])
    if sp.issparse(X_train) and not takes_sparse(estimator):
        X_train, X_test = _dense(X_train), _dense(X_test)
    extra, unused = _fit_arguments(estimator, train)
    begin = perf_counter()
    estimator.fit(X_train, train["y"], **extra)
    fitted = perf_counter()
    scores = score_rows(estimator, X_test)
    scored = perf_counter()
    measured = _measured(test, scores, measures)
    found = place | {"value": measured[measures[0].key], "measures": measured}
    found |= {"fit_seconds": round(fitted - begin, 6), "score_seconds": round(scored - fitted, 6)}
    if unused:
        found["unused"] = unused
    if hasattr(estimator, "best_method_"):
        found |= {"chosen": str(estimator.best_method_), "alpha": float(estimator.best_alpha_)}
    return found


def _one_class(train: NDArray, test: NDArray) -> str | None:
    for what, y in (("learn from", train), ("measure on", test)):
        if np.unique(y).size < 2:
            return f"all {y.size} rows to {what} in this fold have the label {workflow._shown(y[0]) if y.size else '-'}"
    return None


def _dense(X: Any) -> Vector:
    if X.shape[0] * X.shape[1] > _LARGEST_DENSE:
        raise ValueError(
            f"it takes no sparse matrix, and {X.shape[0]} x {X.shape[1]} numbers are too many to store"
        )
    return X.toarray()


def _fit_arguments(
    estimator: Any, rows: dict[str, NDArray]
) -> tuple[dict[str, NDArray], list[str]]:
    """Weights and groups for a fit that takes them, and the names of those that it does not take."""
    last, prefix = estimator, ""
    if isinstance(estimator, Pipeline):
        last, prefix = estimator[-1], f"{estimator.steps[-1][0]}__"
    possible = inspect.signature(last.fit).parameters
    own = type(last).__module__.startswith(
        "forerank."
    )  # others may mean something else by qid, or want rows in order
    extra: dict[str, NDArray] = {}
    unused: list[str] = []
    for name in ("sample_weight", "qid"):
        if name in rows and name in possible and (own or name != "qid"):
            extra[prefix + name] = rows[name]
        elif name in rows:
            unused.append(name)
    return extra, unused


def _measured(
    test: dict[str, NDArray], scores: Vector, measures: list[Measure]
) -> dict[str, float]:
    y, extra = test["y"], {name: part for name, part in test.items() if name != "y"}
    found = {}
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=".*queries left out of the mean", category=UserWarning
        )
        for each in measures:
            found[each.key] = float(each.function(y, scores, **extra))
    return found


# --- The record ---


@dataclass
class _Record:
    """Records by method, seed and fold, and the file that they go to."""

    records: dict[tuple[str, int, int], dict[str, Any]] = field(default_factory=dict)
    file: BinaryIO | None = None

    def add(self, record: dict[str, Any]) -> None:
        self.records[record["method"], record["seed"], record["fold"]] = record
        self.write(record)

    def write(self, line: dict[str, Any]) -> None:
        if self.file is not None:
            self.file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            self.file.flush()
            os.fsync(self.file.fileno())


@contextmanager
def opened_record(path: Any, header: dict[str, Any]) -> Iterator[_Record]:
    """What is there already, open for more. A last line that was cut off is taken away."""
    if path is None:
        yield _Record()
        return
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with Path(path).open("a+b") as file:
        _lock(file, path)
        file.seek(0)
        content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        if content and not content.startswith(b'{"forerank": "comparison"'[: len(content)]):
            raise ValueError(
                f"{path} is there already and is no record of a comparison; choose another name."
            )
        file.truncate(len(whole))
        kept = _Record(file=file)
        lines = whole.splitlines()
        if not lines:
            versions = package_versions("forerank", "scikit-learn", "numpy")
            kept.write({"forerank": "comparison", **header, "versions": versions})
        for number, line in enumerate(lines, start=1):
            try:
                each = json.loads(line)
                if number > 1:
                    kept.records[each["method"], each["seed"], each["fold"]] = each
                else:
                    _check_header(path, each, header)
            except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
                raise ValueError(
                    f"{path}, line {number}: no record of a fit; delete the line, or the file."
                ) from None
        yield kept


def check_same_methods(
    path: Any, records: Iterable[dict[str, Any]], chosen: dict[str, Method]
) -> None:
    for each in records:
        if each["method"] in chosen and each.get("spec") != chosen[each["method"]].spec:
            raise ValueError(
                f"{path} holds results of {each['method']!r} with other parameters. Give the method another name (a "
                "dict of names), or choose another record."
            )


def _lock(file: BinaryIO, path: Any) -> None:
    """Two comparisons that write one file would do everything twice."""
    try:
        import fcntl
    except ImportError:  # not on this system
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ValueError(
            f"{path} is being written by another comparison; wait for it, or choose another name."
        ) from None
    except OSError:  # a file system without locks
        return


def _check_header(path: Any, there: dict[str, Any], here: dict[str, Any]) -> None:
    differing = []
    for name in ("rows", "columns", "metric", "depth", "folds"):
        if there.get(name) != here.get(name):
            differing.append(f"{name} {there.get(name)!r} there and {here[name]!r} here")
    if not differing and there.get("data") != here["data"]:
        differing.append("other values or labels")
    if not differing and there.get("splits") != here["splits"]:
        differing.append("other folds")
    if differing:
        raise ValueError(
            f"{path} is the record of another comparison ({'; '.join(differing)}). Choose another name for this one, "
            "or delete the file."
        )
