"""The fits of a comparison: one task for each method, seed and fold, run in turn or in parallel."""

import inspect
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from forerank._typing import Index, Vector
from forerank.data.files import first_line
from forerank.data.forms import ColumnForms, in_form
from forerank.data.labels import label_text
from forerank.data.problem import RankingProblem
from forerank.estimators.scores import score_rows
from forerank.metrics.registry import Measure, measure_named
from forerank.selection import Ranker
from forerank.workflows.compare.inputs import fold_inputs
from forerank.workflows.compare.methods import ComparedMethod, seeded, takes_sparse

__all__ = ["FitPlan", "FitTask", "Key", "run_tasks", "within_budget"]

# Method, seed and fold.
Key = tuple[str, int, int]
# Most entries (1 GiB) of a sparse matrix that is made dense, for estimators that need it.
_LARGEST_DENSE = 2**27
# Most messages of warnings in a record.
_MOST_WARNINGS = 3


@dataclass(frozen=True)
class FitTask:
    """A method to fit on the training rows of a fold and to measure on its test rows.

    `inputs` are the training and the test matrix, or the message of the error that their
    preparation raised. `sides` are labels ("y") and, where given, weights ("sample_weight") and
    groups ("qid") of the two.
    """

    method: ComparedMethod
    seed: int
    fold: int
    inputs: Any
    sides: tuple[dict[str, NDArray], ...]
    measures: list[Measure]

    def record(self) -> dict[str, Any]:
        """The entries of a record that identify the fit."""
        record: dict[str, Any] = {"method": self.method.name, "seed": self.seed}
        record |= {"fold": self.fold, "spec": self.method.spec}
        n_train, n_test = (int(side["y"].size) for side in self.sides)
        return record | {"n_train": n_train, "n_test": n_test}


@dataclass(frozen=True)
class FitPlan:
    """The fits of a comparison: each method in each split, which are by seed and fold."""

    problem: RankingProblem
    methods: Mapping[str, ComparedMethod]
    splits: Mapping[tuple[int, int], tuple[Index, Index]]
    measures: tuple[str, ...]

    def keys(self) -> list[Key]:
        return [(name, *place) for place in self.splits for name in self.methods]

    def tasks(self, keys: list[Key]) -> Iterator[FitTask]:
        """A task for each key. Rows are prepared when the first task of a fold is requested, once
        for all methods that take them in the same form.
        """
        problem = self.problem
        n, grouped = problem.y.size, problem.groups is not None
        given = {"y": problem.y, "sample_weight": problem.weights, "qid": problem.groups}
        parts = {name: part for name, part in given.items() if part is not None}
        for (seed, fold), fold_keys in groupby(keys, key=lambda key: key[1:]):
            train, test = self.splits[seed, fold]
            measures = [measure_named(name) for name in self.measures]
            measures = [each.for_rows(test.size, n, grouped=grouped) for each in measures]
            sides = tuple({name: v[rows] for name, v in parts.items()} for rows in (train, test))
            inputs: dict[str, Any] = {}
            for name, *_ in fold_keys:
                method = self.methods[name]
                if method.form not in inputs:
                    try:
                        inputs[method.form] = fold_inputs(problem, train, test, method.form)
                    except (ValueError, MemoryError) as error:
                        inputs[method.form] = f"the columns cannot be prepared: {first_line(error)}"
                yield FitTask(method, seed, fold, inputs[method.form], sides, measures)


def within_budget(tasks: Iterator[FitTask], seconds: float | None) -> Iterator[FitTask]:
    """The tasks of the first fold, and of the folds that begin within `seconds`: every method then
    has the same folds.
    """
    begin, current = perf_counter(), None
    for task in tasks:
        late = seconds is not None and perf_counter() - begin > seconds
        if current is not None and (task.seed, task.fold) != current and late:
            return
        current = task.seed, task.fold
        yield task


def run_tasks(tasks: Iterator[FitTask], n_jobs: int | None) -> Iterator[dict[str, Any]]:
    """The record of each task: measures and seconds, or an error."""
    if n_jobs in (None, 1):
        yield from map(_run, tasks)
        return
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    yield from parallel(delayed(_run)(task) for task in tasks)


def _run(task: FitTask) -> dict[str, Any]:
    problem = task.inputs if isinstance(task.inputs, str) else _one_class(task)
    if problem is not None:
        return task.record() | {"error": problem}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for kind in (DeprecationWarning, FutureWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", kind)
        try:
            # One thread for each fit, here and in `seeded`: waiting OpenMP threads spin, which has
            # made a fit thirty times slower on busy cores.
            with threadpool_limits(limits=1):
                results = _fit_and_measure(task)
        except Exception as error:  # of any estimator; the other fits continue
            return task.record() | {"error": f"{type(error).__name__}: {first_line(error)}"}
    messages = list(dict.fromkeys(" ".join(str(each.message).split()) for each in caught))
    if messages:
        results["warnings"] = messages[:_MOST_WARNINGS]
    return task.record() | results


def _fit_and_measure(task: FitTask) -> dict[str, Any]:
    X_train, X_test = task.inputs
    train = task.sides[0]
    estimator = seeded(task.method.estimator, task.seed)
    if isinstance(X_train, ColumnForms) and not isinstance(estimator, Ranker):
        estimator.set_params(categorical_features=X_train.categorical)
        X_train, X_test = (in_form(X, task.method.form) for X in (X_train, X_test))
    if sp.issparse(X_train) and not takes_sparse(estimator):
        X_train, X_test = _dense(X_train), _dense(X_test)
    arguments, unused = _fit_arguments(estimator, train)
    begin = perf_counter()
    estimator.fit(X_train, train["y"], **arguments)
    fitted = perf_counter()
    scores = score_rows(estimator, X_test)
    scored = perf_counter()
    values = _measured(task, scores)
    results: dict[str, Any] = {"value": values[task.measures[0].key], "measures": values}
    results["fit_seconds"] = round(fitted - begin, 6)
    results["score_seconds"] = round(scored - fitted, 6)
    if unused:
        results["unused"] = unused
    if hasattr(estimator, "best_method_"):
        results["chosen"] = str(estimator.best_method_)
        results["alpha"] = estimator.best_alpha_
    if isinstance(estimator, Ranker):
        results["forms"] = list(estimator.forms_)
    return results


def _one_class(task: FitTask) -> str | None:
    for what, side in zip(("train", "test"), task.sides, strict=True):
        y = side["y"]
        if np.unique(y).size < 2:
            label = label_text(y[0]) if y.size else "-"
            return f"all {y.size} rows to {what} on in this fold have the label {label}"
    return None


def _dense(X: Any) -> Vector:
    if X.shape[0] * X.shape[1] > _LARGEST_DENSE:
        raise ValueError(
            f"it needs a dense matrix, and {X.shape[0]} x {X.shape[1]} numbers are too many; "
            "choose an estimator that takes sparse matrices"
        )
    return X.toarray()


def _fit_arguments(
    estimator: Any, train: Mapping[str, NDArray]
) -> tuple[dict[str, NDArray], list[str]]:
    """Weights and groups for `fit`, and the names of those that it does not take."""
    last, prefix = estimator, ""
    if isinstance(estimator, Pipeline):
        last, prefix = estimator[-1], f"{estimator.steps[-1][0]}__"
    known = inspect.signature(last.fit).parameters
    # Estimators of other packages may require sorted rows, or mean something else by qid.
    takes_qid = type(last).__module__.startswith("forerank.")
    arguments, unused = {}, []
    for name in ("sample_weight", "qid"):
        if name in train and name in known and (takes_qid or name != "qid"):
            arguments[prefix + name] = train[name]
        elif name in train:
            unused.append(name)
    return arguments, unused


def _measured(task: FitTask, scores: Vector) -> dict[str, float]:
    arguments = dict(task.sides[1])
    y = arguments.pop("y")
    with warnings.catch_warnings():
        excluded = ".*groups excluded from the mean"
        warnings.filterwarnings("ignore", message=excluded, category=UserWarning)
        return {
            measure.key: float(measure.function(y, scores, **arguments))
            for measure in task.measures
        }
