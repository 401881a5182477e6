"""From a table to a ranker and what is known about it: the work of the commands, as functions.

`fit` reads, prepares the columns, keeps some rows aside to say how good the ranking is, and fits on all of them.
`evaluate` measures a model on labelled rows, `explain` says what its scores are made of. Ranking is in
`forerank.ranked`, since it also works on files that do not fit into memory.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from forerank import estimators
from forerank.columns import as_frame, distinct, plan_columns
from forerank.evaluation import Measure, measure
from forerank.io import DataFileError, Matrix, file_kind, open_csv, pick_columns, read_matrix, read_table
from forerank.models import Model
from forerank.scoring import LinearScorer, matrix_scores, model_frame, scorer_of, table_scores

__all__ = [
    "Evaluation",
    "Explanation",
    "Weight",
    "evaluate",
    "explain",
    "fit",
    "make_ranker",
    "ranker_names",
]

Floats = NDArray[np.float64]
Say = Callable[[str], None]
# Different strings in a column of a CSV file up to which it is kept as codes.
_CATEGORIES = 4096
# More different numbers than this are a quantity, not grades.
_MOST_GRADES = 32


# --- Fitting ---


def fit(
    data: Any,
    target: str | None = None,
    *,
    ranker: Any = "PairwiseRanker",
    params: Mapping[str, Any] | None = None,
    group: str | None = None,
    positive: Any = None,
    drop: Iterable[str] = (),
    check: float = 0.2,
    seed: int = 0,
    delimiter: str | None = None,
    say: Say = lambda line: None,
) -> Model:
    """Fit a ranker on a table, or on a matrix with labels.

    Parameters
    ----------
    data : path, pandas or polars frame, or Matrix
        A file by its suffix, as in `forerank.io`.
    target : str, optional
        The column of labels; svmlight files and NumPy archives have their own.
    ranker : str or estimator, default="PairwiseRanker"
        One of `ranker_names()`, or any estimator with a `decision_function`.
    params : dict, optional
        Parameters of the ranker.
    group : str, optional
        The column of groups within which rows are ranked. A matrix with qid is ranked within them.
    positive : label, optional
        The label of the rows that belong ahead. By default the larger of two; numbers of more than two values are
        grades, and higher ones belong ahead.
    drop : iterable of str
        Columns that are not used.
    check : float, default=0.2
        The share of rows (or groups) kept aside to measure the ranking on. The model is fitted on all rows afterwards.
    seed : int, default=0
        For the rows that are kept aside and for rankers with a random state.
    delimiter : str, optional
        Of a CSV file.
    say : callable, optional
        Is told what is being done.

    Returns
    -------
    Model
    """
    begin = perf_counter()
    if not 0.0 <= check < 1.0:
        raise ValueError(f"check={check!r}: give the share of rows to measure on, at least 0 and less than 1.")
    say("reading")
    table = _Table(data, target, group, drop, delimiter) if _is_table(data) else _Rows(data, target, group)
    y, labels = _labels(table, positive)
    steps = table.steps()
    model = make_ranker(ranker, params, graded=labels["positive"] is None, seed=seed)
    if table.groups is not None and "qid" not in inspect.signature(model.fit).parameters:
        raise ValueError(
            f"{type(model).__name__} does not rank within groups; leave the groups out, or choose one of "
            f"{', '.join(name for name in ranker_names() if _takes_groups(name))}."
        )
    notes = table.notes()
    measures: list[Measure] = []
    order, n_train = _split(y, table.groups, check, seed)
    if n_train < y.size:
        say(f"measuring on {y.size - n_train:,} rows kept aside")
        _, _, scores = _fit_rows(steps, model, table, y, order, n_train)
        held = order[n_train:]
        try:
            measures = measure(
                y[held], scores, qid=None if table.groups is None else table.groups[held], random_state=seed
            )
        except ValueError as error:
            notes.append(f"not measured: {error}")
    elif check > 0.0:
        notes.append("not measured: too few rows to keep any aside")
    say(f"fitting on {y.size:,} rows")
    prepared, fitted, _ = _fit_rows(steps, model, table, y, np.arange(y.size), y.size)
    summary = {
        "rows": int(y.size),
        **labels,
        "groups": None if table.groups is None else int(np.unique(table.groups).size),
        "ranker": type(model).__name__,
        "params": {name: value for name, value in model.get_params().items() if _is_plain(value)},
        "kept_aside": int(y.size - n_train) if measures else 0,
        "measures": [vars(each) for each in measures],
        "seed": seed,
        "seconds": round(perf_counter() - begin, 3),
        "source": table.source,
        **table.extra,
    }
    for name in ("n_iter_", "optimality_"):
        if hasattr(fitted, name) and np.ndim(getattr(fitted, name)) == 0:
            summary[name.rstrip("_")] = float(getattr(fitted, name))
    pipeline = Pipeline([("columns", prepared), ("ranker", fitted)])
    return Model(pipeline, columns=table.kinds(), target=target, group=group, summary=summary, notes=notes)


def ranker_names() -> list[str]:
    """The estimators that can be fitted by name."""
    return [name for name in estimators.__all__ if hasattr(getattr(estimators, name), "decision_function")]


def make_ranker(
    ranker: Any = "PairwiseRanker", params: Mapping[str, Any] | None = None, *, graded: bool = False, seed: int = 0
) -> Any:
    """An estimator by name (case does not matter) with these parameters; grades are ordered where it can do so."""
    if isinstance(ranker, str):
        known = {name.lower(): name for name in ranker_names()}
        wanted = ranker.lower().replace("-", "").replace("_", "")
        if wanted not in known:
            near = get_close_matches(wanted, known, n=1, cutoff=0.4)
            hint = f" Did you mean {known[near[0]]}?" if near else ""
            raise ValueError(f"There is no ranker {ranker!r}.{hint} Choose one of {', '.join(ranker_names())}.")
        ranker = getattr(estimators, known[wanted])()
    model = clone(ranker)
    possible = model.get_params()
    for name in params or {}:
        if name not in possible:
            near = get_close_matches(name, possible, n=1, cutoff=0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"{type(model).__name__} has no parameter {name!r}.{hint} It has {', '.join(sorted(possible))}."
            )
    model.set_params(**dict(params or {}))
    if "random_state" in possible and "random_state" not in (params or {}):
        model.set_params(random_state=seed)
    if graded:
        if "graph" not in possible:
            raise ValueError(
                f"{type(model).__name__} ranks two classes, and the labels are grades. Name the positive one, or "
                "choose PairwiseRanker, RankNCG, RankNet or RankBoost, which order grades."
            )
        if possible["graph"] is None and "graph" not in (params or {}):
            model.set_params(graph="order")
    return model


def _takes_groups(name: str) -> bool:
    return "qid" in inspect.signature(getattr(estimators, name).fit).parameters


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _fit_rows(
    steps: Any, model: Any, table: "_Table | _Rows", y: NDArray, order: NDArray, n_train: int
) -> tuple[Any, Any, Floats]:
    """Steps and ranker fitted on the first rows of an order, and the scores of the others."""
    prepared, X = table.prepared(clone(steps), order, n_train)
    fitted = clone(model)
    extra = {} if table.groups is None else {"qid": table.groups[order[:n_train]]}
    fitted.fit(_first_rows(X, n_train), y[order[:n_train]], **extra)
    scores = fitted.decision_function(X[n_train:]) if n_train < order.size else np.empty(0)
    return prepared, fitted, scores


def _first_rows(X: Any, n: int) -> Any:
    """The first rows, without a copy."""
    if n == X.shape[0]:
        return X
    if not sp.issparse(X):
        return X[:n]
    end = X.indptr[n]
    return sp.csr_matrix((X.data[:end], X.indices[:end], X.indptr[: n + 1]), shape=(n, X.shape[1]), copy=False)


def _split(y: NDArray, groups: NDArray | None, check: float, seed: int) -> tuple[NDArray, int]:
    """All rows, those to measure on last, and the number of the others. None where there are too few."""
    whole = np.arange(y.size), y.size
    if check == 0.0:
        return whole
    try:
        if groups is None:
            splits = StratifiedShuffleSplit(1, test_size=check, random_state=seed).split(y, y)
        else:
            splits = GroupShuffleSplit(1, test_size=check, random_state=seed).split(y, y, groups)
        train, test = next(splits)
    except ValueError:
        return whole
    if np.unique(y[train]).size < 2 or np.unique(y[test]).size < 2:
        return whole
    return np.concatenate([train, test]), train.size


# --- Where rows come from ---


def _is_table(data: Any) -> bool:
    if isinstance(data, Matrix):
        return False
    if hasattr(data, "columns") or hasattr(data, "to_pandas"):
        return True
    return file_kind(data) not in ("svmlight", "npz")


class _Table:
    """A frame, its labels and groups."""

    def __init__(
        self, data: Any, target: str | None, group: str | None, drop: Iterable[str], delimiter: str | None
    ) -> None:
        is_file = not (hasattr(data, "columns") or hasattr(data, "to_pandas"))
        self._path = data if is_file else "the table"
        self.source = str(getattr(data, "name", data)).rsplit("/", 1)[-1] if is_file else None
        self._delimiter = delimiter
        self._is_csv = is_file and file_kind(data) in ("csv", "tsv")
        frame = read_table(data, delimiter=delimiter, categories=_CATEGORIES) if is_file else data
        frame = as_frame(frame)
        names = [str(name) for name in frame.columns]
        if target is None:
            raise DataFileError(self._path, f"name the target, one of the columns {', '.join(names[:12])}")
        pick_columns(self._path, names, target, group, *drop)
        self.label_column = frame[target]
        self.target = target
        if group is not None and frame[group].isna().any():
            raise self.error_in_row(int(np.argmax(frame[group].isna())), f"the group column {group!r} is empty here")
        self.groups = None if group is None else np.unique(frame[group].astype(str), return_inverse=True)[1]
        others = {target, *([group] if group else []), *drop}
        self._plan = plan_columns(frame, exclude=others)
        if not self._plan.used:
            reasons = "; ".join(f"{name}: {why}" for name, why in self._plan.left_out.items())
            raise DataFileError(self._path, f"no column is left to learn from ({reasons or 'only the target'})")
        self._frame = frame[self._plan.used]
        self._dropped = list(drop)
        self.extra: dict[str, Any] = {}

    def error_in_row(self, row: int, problem: str) -> DataFileError:
        line = open_csv(self._path, self._delimiter).line_of_row(row) if self._is_csv else None
        return DataFileError(self._path, problem if line else f"row {row + 1}: {problem}", line)

    def error(self, problem: str) -> DataFileError:
        return DataFileError(self._path, problem)

    def steps(self) -> Any:
        return self._plan.transformer()

    def kinds(self) -> dict[str, str]:
        return self._plan.kinds(self._frame)

    def notes(self) -> list[str]:
        return self._plan.lines() + [f"left out {name}: as asked" for name in self._dropped]

    def prepared(self, steps: Any, order: NDArray, n_train: int) -> tuple[Any, Any]:
        train = self._frame if n_train == len(self._frame) else self._frame.iloc[order[:n_train]]
        steps.fit(train)
        return steps, steps.transform_rows(self._frame, order)


class _Rows:
    """A matrix with labels and perhaps groups."""

    def __init__(self, data: Any, target: str | None, group: str | None) -> None:
        is_file = not isinstance(data, Matrix)
        self._path = data if is_file else "the matrix"
        self.source = str(getattr(data, "name", data)).rsplit("/", 1)[-1] if is_file else None
        if target is not None:
            raise DataFileError(self._path, f"this is a matrix with its own labels; leave the target {target!r} out")
        matrix = read_matrix(data) if is_file else data
        if group not in (None, "qid"):
            raise DataFileError(self._path, f"the groups of a matrix are called qid, not {group!r}")
        if group == "qid" and matrix.qid is None:
            raise DataFileError(self._path, "there is no qid in it")
        self._X, self.label_column, self.target = matrix.X, matrix.y, "label"
        self.groups = None if matrix.qid is None else np.unique(matrix.qid, return_inverse=True)[1]
        self.extra = {"n_columns": int(matrix.X.shape[1]), "zero_based": bool(matrix.zero_based)}

    def error_in_row(self, row: int, problem: str) -> DataFileError:
        return DataFileError(self._path, f"row {row + 1}: {problem}")

    def error(self, problem: str) -> DataFileError:
        return DataFileError(self._path, problem)

    def steps(self) -> Any:
        if sp.issparse(self._X):
            return MaxAbsScaler()
        return make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())

    def kinds(self) -> dict[str, str]:
        return {}

    def notes(self) -> list[str]:
        how = "each divided by its largest value" if sp.issparse(self._X) else "missing values filled, scaled"
        return [f"{self._X.shape[1]} columns of numbers, {how}"]

    def prepared(self, steps: Any, order: NDArray, n_train: int) -> tuple[Any, Any]:
        X = self._X if np.array_equal(order, np.arange(order.size)) else self._X[order]
        steps.fit(_first_rows(X, n_train))
        return steps, steps.transform(X)


def _labels(table: "_Table | _Rows", positive: Any) -> tuple[NDArray, dict[str, Any]]:
    """Labels that rankers take, True for the positive ones or grades, and a word on them."""
    import pandas as pd

    codes, found = distinct(pd.Series(table.label_column))
    if (codes < 0).any():
        raise table.error_in_row(int(np.argmax(codes < 0)), f"the label {table.target!r} is missing here")
    values = np.asarray(found)
    numeric = np.issubdtype(values.dtype, np.number)
    if not numeric:
        values = np.array([str(value) for value in found], dtype=object)
    ascending = np.argsort(values)
    shown = ", ".join(_shown(value) for value in values[ascending[:6]]) + (", ..." if values.size > 6 else "")
    if values.size < 2:
        raise table.error(f"all labels in {table.target!r} are {shown}; ranking needs rows of at least two classes")
    if positive is not None:
        hit = np.array([_same_label(value, positive) for value in values])
        if not hit.any():
            raise table.error(f"no label in {table.target!r} is {positive!r}; there are {shown}")
        return hit[codes], _label_words(hit[codes], str(positive), None)
    if not numeric:
        words = np.array([_as_number(value) is None for value in values])
        if words.any() and not words.all():
            rows = words[codes]
            odd = int(np.argmax(rows if rows.mean() <= 0.5 else ~rows))
            raise table.error_in_row(
                odd, f"mixed labels in {table.target!r}: {values[codes[odd]]!r} among {shown}; name the positive one"
            )
        if values.size > 2:
            raise table.error(
                f"{table.target!r} has {values.size} different labels ({shown}); name the positive one (--positive)"
            )
    if values.size == 2:
        low, high = values[ascending]
        hit = codes == ascending[1]
        return hit, _label_words(hit, _shown(high), _shown(low))
    if values.size > _MOST_GRADES:
        raise table.error(
            f"{table.target!r} has {values.size} different numbers; a ranker takes two classes or up to {_MOST_GRADES} "
            "grades. Cut it into grades, or name the positive value (--positive)"
        )
    counts = np.bincount(codes)
    classes = {_shown(values[k]): int(counts[k]) for k in ascending}
    return values.astype(np.float64)[codes], {"positive": None, "negative": None, "classes": classes}


def _same_label(value: Any, wanted: Any) -> bool:
    """Whether two labels are the same word, or the same number: 1, 1.0 and "1"."""
    one, other = _as_number(value), _as_number(wanted)
    return str(value) == str(wanted) or (one is not None and one == other)


def _as_number(value: Any) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _label_words(hit: NDArray[np.bool_], positive: str, negative: str | None) -> dict[str, Any]:
    other = negative or f"not {positive}"
    counts = {positive: int(np.count_nonzero(hit)), other: int(np.count_nonzero(~hit))}
    return {"positive": positive, "negative": negative, "classes": counts}


def _shown(value: Any) -> str:
    if isinstance(value, int | float | np.number):
        return str(int(value)) if float(value).is_integer() else str(float(value))
    return str(value)


# --- Scores, measures, reasons ---


@dataclass(frozen=True)
class Evaluation:
    """How good a ranking is.

    Attributes
    ----------
    rows : int
    classes : dict
    measures : list of Measure
    groups : dict
        For each group, its rows and measures, where that was asked for.
    y, scores : arrays
        Labels (True, or grades) and scores, in the order of the rows.
    """

    rows: int
    classes: dict[str, int]
    measures: list[Measure]
    groups: dict[str, list[Measure]]
    y: NDArray
    scores: Floats


def evaluate(
    model: Model,
    data: Any,
    target: str | None = None,
    *,
    by: str | None = None,
    k: Iterable[int] = (10, 100),
    confidence: float = 0.95,
    seed: int = 0,
    delimiter: str | None = None,
    allow_missing: bool = False,
) -> Evaluation:
    """Measure a model on labelled rows.

    Parameters
    ----------
    model : Model
    data, target, delimiter
        As in `fit`; the target is that of the model where none is named.
    by : str, optional
        A column whose values part the rows; the measures are also given for each of them.
    k : iterable of int
        Places from the top for precision and recall.
    confidence : float
        Of the intervals.
    seed : int
        Of the resamples.
    allow_missing : bool
        Take columns of the model that are not there for empty ones.
    """
    k = list(k)
    positive = model.summary.get("positive")
    if not _is_table(data):
        rows = _Rows(data, target, None)
        y, labels = _labels(rows, positive)
        if by is not None:
            raise DataFileError(data, "a matrix has no columns by which to part the rows")
        scores, groups, parts = matrix_scores(model, rows._X, data), rows.groups, None
    else:
        is_file = not (hasattr(data, "columns") or hasattr(data, "to_pandas"))
        frame = as_frame(read_table(data, delimiter=delimiter, categories=_CATEGORIES) if is_file else data)
        path = data if is_file else "the table"
        target = target or model.target
        pick_columns(path, [str(name) for name in frame.columns], target, by, model.group)
        y, labels = _labels(_LabelColumn(path, frame, target, delimiter), positive)
        scores = table_scores(model)(model_frame(model, frame, path, allow_missing=allow_missing))
        groups = None if model.group is None else np.unique(frame[model.group].astype(str), return_inverse=True)[1]
        parts = None if by is None else frame[by].astype(str).to_numpy()
    if model.summary.get("negative") is not None and set(labels["classes"]) == {positive, f"not {positive}"}:
        labels["classes"][model.summary["negative"]] = labels["classes"].pop(f"not {positive}")
    found = measure(y, scores, qid=groups, k=k, confidence=confidence, random_state=seed)
    by_part: dict[str, list[Measure]] = {}
    for part in [] if parts is None else np.unique(parts):
        rows_of = np.flatnonzero(parts == part)
        try:
            within = None if groups is None else groups[rows_of]
            by_part[str(part)] = measure(
                y[rows_of], scores[rows_of], qid=within, k=k, confidence=confidence, random_state=seed
            )
        except ValueError:
            by_part[str(part)] = []  # rows of one class only: nothing to measure
    return Evaluation(int(y.size), labels["classes"], found, by_part, y, scores)


class _LabelColumn(_Table):
    """The labels of a table, for reading them as `fit` does."""

    def __init__(self, path: Any, frame: Any, target: str | None, delimiter: str | None) -> None:
        self._path, self._delimiter, self.target = path, delimiter, target or ""
        self._is_csv = not isinstance(path, str) or path != "the table"
        self._is_csv = self._is_csv and file_kind(path) in ("csv", "tsv")
        self.label_column = frame[target]


@dataclass(frozen=True)
class Weight:
    """The weight of one column of the matrix, and where it comes from."""

    name: str
    column: str
    weight: float


@dataclass(frozen=True)
class Explanation:
    """What scores are made of.

    Attributes
    ----------
    weights : list of Weight
        The largest first, by size.
    contributions : list of dict
        For each row that was asked for: its score, and what each column adds to it.
    intercept : float
    """

    weights: list[Weight]
    contributions: list[dict[str, Any]]
    intercept: float


def explain(
    model: Model,
    data: Any = None,
    *,
    rows: Iterable[int] | None = None,
    delimiter: str | None = None,
    allow_missing: bool = False,
) -> Explanation:
    """The weights of a linear model, and what each column adds to the score of some rows.

    Parameters
    ----------
    model : Model
    data : path or frame, optional
        Rows to explain.
    rows : iterable of int, optional
        Which of them, counted from 1; by default the five with the highest scores.
    delimiter, allow_missing
        As in `evaluate`.

    Returns
    -------
    Explanation
        The contributions of a row and the intercept add up to its score.
    """
    pipeline = model.estimator
    ranker = pipeline[-1]
    if getattr(ranker, "coef_", None) is None:
        raise ValueError(f"{type(ranker).__name__} has no weights by column; linear rankers have.")
    if model.columns:
        names = [str(name) for name in pipeline[0].get_feature_names_out()]
        columns = pipeline[0].origins()
    else:
        first = 0 if model.summary.get("zero_based", True) else 1
        names = [f"column {k + first}" for k in range(model.summary["n_columns"])]
        columns = names
    coef = np.ravel(ranker.coef_)
    biggest_first = np.argsort(-np.abs(coef), kind="stable")
    weights = [Weight(names[k], columns[k], float(coef[k])) for k in biggest_first]
    intercept = float(np.ravel(ranker.intercept_)[0])
    if data is None:
        return Explanation(weights, [], intercept)
    if not model.columns or not _is_table(data):
        raise ValueError("Rows are explained by the columns of a table; this model, or this file, is a matrix.")
    is_file = not (hasattr(data, "columns") or hasattr(data, "to_pandas"))
    path = data if is_file else "the table"
    frame = as_frame(read_table(data, delimiter=delimiter, categories=_CATEGORIES) if is_file else data)
    prepared = model_frame(model, frame, path, allow_missing=allow_missing)
    scorer = scorer_of(pipeline)
    assert isinstance(scorer, LinearScorer)
    scores = scorer(prepared)
    if rows is None:
        chosen = np.argsort(-scores, kind="stable")[:5]
    else:
        chosen = np.array([row - 1 for row in rows], dtype=np.intp)
        if chosen.size and (chosen.min() < 0 or chosen.max() >= len(frame)):
            raise DataFileError(path, f"rows are counted from 1 to {len(frame)}")
    some = prepared.iloc[chosen]
    parts = scorer.contributions(some)
    contributions = []
    for j, row in enumerate(chosen.tolist()):
        terms = {
            name: {"value": _cell(some[name].iloc[j]), "adds": float(values[j])}
            for name, values in sorted(parts.items(), key=lambda item: -abs(item[1][j]))
        }
        contributions.append({"row": row + 1, "score": float(scores[row]), "columns": terms})
    return Explanation(weights, contributions, intercept)


def _cell(value: Any) -> Any:
    import pandas as pd

    if pd.isna(value):
        return None
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, int | float | str) else str(value)
