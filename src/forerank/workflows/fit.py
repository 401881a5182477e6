"""From a table to a ranker and what is known about it: the work of the commands, as functions.

`fit` reads, prepares the columns, keeps some rows aside to say how good the ranking is, and fits on
all of them. `evaluate` measures a model on labelled rows, `explain` says what its scores are made
of. Ranking is in `forerank.models.ranked_list`, since it also works on files that do not fit into
memory.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from forerank import estimators
from forerank._text import counted, listed
from forerank._typing import Vector
from forerank.data.checks import data_warnings
from forerank.data.column_kinds import COLUMN_TYPES, arrow_types
from forerank.data.columns import (
    MixedColumn,
    as_frame,
    column_name,
    distinct,
    mixed_columns,
    plan_columns,
    with_types,
)
from forerank.data.readers import (
    Matrix,
    check_readable,
    file_kind,
    iter_table,
    open_csv,
    pick_columns,
    read_matrix,
    read_table,
    usual_encoding,
)
from forerank.exceptions import DataFileError
from forerank.metrics.estimates import Estimate, estimate_measures
from forerank.metrics.registry import measure_named
from forerank.models import Model
from forerank.models.scoring import (
    LinearScorer,
    last_step,
    matrix_scores,
    missing_words,
    model_frame,
    n_matrix_columns,
    scorer_of,
    table_scores,
    two_steps,
)
from forerank.selection import Ranker
from forerank.selection.search import drawn

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

Say = Callable[[str], None]
# Different strings in a column of a CSV file up to which it is kept as codes.
_CATEGORIES = 4096
# More different numbers than this are a quantity, not grades.
_MOST_GRADES = 32
# Columns of numbers and words that are spoken of one by one: for each, the file is read again up to
# its line.
_MIXED_SHOWN = 8
# Words of a text that are named in an explanation.
_WORDS_SHOWN = 5


# --- Fitting ---


def fit(
    data: Any,
    target: str | None = None,
    *,
    ranker: Any = "Ranker",
    params: Mapping[str, Any] | None = None,
    metric: str | None = None,
    group: str | None = None,
    positive: Any = None,
    drop: Iterable[str] = (),
    check: float = 0.2,
    seed: int = 0,
    delimiter: str | None = None,
    types: Mapping[str, str] | None = None,
    encoding: str | None = None,
    format: str | None = None,
    skip_unlabelled: bool = False,
    say: Say = lambda line: None,
) -> Model:
    """Fit a ranker on a table, or on a matrix with labels.

    Parameters
    ----------
    data : path, pandas or polars frame, or Matrix
        A file by its suffix, as in `forerank.data.readers`.
    target : str, optional
        The column of labels; svmlight files and NumPy archives have their own.
    ranker : str or estimator, default="Ranker"
        One of `ranker_names()`, or any estimator with a `decision_function`. `Ranker` chooses
        method and penalty by cross-validation.
    params : dict, optional
        Parameters of the ranker.
    metric : str, optional
        What `Ranker` is to be good at, such as "auc" (its default), "ap" or "recall@50".
    group : str, optional
        The column of groups within which rows are ranked. A matrix with qid is ranked within them.
    positive : label, optional
        The label of the rows that belong ahead. By default the larger of two; numbers of more than
        two values are grades, and higher ones belong ahead.
    drop : iterable of str
        Columns that are not used.
    check : float, default=0.2
        The share of rows (or groups) kept aside to measure the ranking on. The model is fitted on
        all rows afterwards.
    seed : int, default=0
        For the rows that are kept aside and for rankers with a random state.
    delimiter : str, optional
        Of a CSV file.
    types : dict, optional
        Columns that are "number", "category", "text" or "date", whatever they look like. A value
        that is not is an error that names it. Other columns are looked at: see
        `forerank.data.columns.plan_columns`.
    encoding : str, optional
        Of a CSV file, such as "cp1252"; by default UTF-8, or UTF-16 where the file begins with its
        byte order mark. The model keeps it for new files that are not in UTF-8.
    format : str, optional
        What the file is, where its suffix does not say so: "csv", "tsv", "parquet", "feather",
        "svm" or "npz".
    skip_unlabelled : bool, default=False
        Leave rows without a label out; by default they are an error.
    say : callable, optional
        Is told what is being done.

    Returns
    -------
    Model
    """
    begin = perf_counter()
    if not 0.0 <= check < 1.0:
        raise ValueError(
            f"check={check!r}: give the share of rows to measure on, at least 0 and less than 1."
        )
    say("reading")
    source = _Source(data, delimiter, encoding, format)
    table = _labelled_rows(source, target, group, drop, types, skip_unlabelled)
    y, labels = _labels(source, table.label_column, table.target, positive)
    steps = table.steps()
    say("looking for what is odd")
    odd = [each.sentence for each in data_warnings(table.rows, y, qid=table.groups)]
    model = make_ranker(ranker, params, metric=metric, graded=labels["positive"] is None, seed=seed)
    model = for_list(model, y.size, table.groups)
    if table.groups is not None and "qid" not in inspect.signature(model.fit).parameters:
        raise ValueError(
            f"{type(model).__name__} does not rank within groups; leave the groups out, or choose one of "
            f"{', '.join(name for name in ranker_names() if _takes_groups(name))}."
        )
    notes = table.notes() + labels["notes"]
    measures: list[Estimate] = []
    tried: Any = None
    order, n_train = _split(y, table.groups, check, seed)
    if n_train < y.size:
        say(f"measuring on {counted(y.size - n_train, 'row')} kept aside")
        _, tried, scores = _fit_rows(steps, model, table, y, order, n_train)
        held = order[n_train:]
        try:
            groups = None if table.groups is None else table.groups[held]
            measures = estimate_measures(
                y[held], scores, qid=groups, list_rows=y.size, k=_places(model), random_state=seed
            )
        except ValueError as error:
            notes.append(f"not measured: {error}")
    elif check > 0.0:
        notes.append("not measured: too few rows of some class to keep any aside")
    say(f"fitting on {counted(y.size, 'row')}")
    kinds = table.kinds()
    # What the rows kept aside have measured is what is fitted on all rows: a choice is not made
    # twice.
    chosen = tried if hasattr(tried, "refit") else None
    prepared, fitted, _ = _fit_rows(
        steps, model, table, y, np.arange(y.size), y.size, last=True, chosen=chosen
    )
    summary = {
        "rows": int(y.size),
        **{name: labels[name] for name in ("positive", "negative", "classes")},
        "groups": None if table.groups is None else int(np.unique(table.groups).size),
        "ranker": type(model).__name__,
        "params": {name: value for name, value in model.get_params().items() if _is_plain(value)},
        "kept_aside": int(y.size - n_train) if measures else 0,
        "measures": [each.to_dict() for each in measures],
        "seed": seed,
        "seconds": round(perf_counter() - begin, 3),
        "source": source.name,
        "warnings": odd,
        **table.extra,
    }
    if hasattr(fitted, "best_method_"):
        summary["choice"] = {
            "metric": fitted.metric,
            "method": fitted.best_method_,
            "alpha": fitted.best_alpha_,
            "reason": fitted.reason_,
            "more_data": fitted.learning_curve_["sentence"],
        }
    for name in ("n_iter_", "optimality_"):
        if hasattr(fitted, name) and np.ndim(getattr(fitted, name)) == 0:
            summary[name.rstrip("_")] = float(getattr(fitted, name))
    pipeline = Pipeline([("columns", prepared), ("ranker", fitted)])
    target = table.target if source.is_table else None
    group = None if group is None else column_name(group)
    return Model(pipeline, columns=kinds, target=target, group=group, summary=summary, notes=notes)


def ranker_names() -> list[str]:
    """The estimators that can be fitted by name."""
    return sorted(_ranker_classes())


def _ranker_classes() -> dict[str, Any]:
    known = {name: getattr(estimators, name) for name in estimators.__all__}
    del known[
        "PoolRanker"
    ]  # of labelled and unlabelled rows; the others are fitted on labelled ones
    return {
        "Ranker": Ranker,
        **{name: each for name, each in known.items() if hasattr(each, "decision_function")},
    }


def make_ranker(
    ranker: Any = "Ranker",
    params: Mapping[str, Any] | None = None,
    *,
    metric: str | None = None,
    graded: bool = False,
    seed: int = 0,
) -> Any:
    """An estimator by name (case does not matter) with these parameters; grades are ordered where
    it can do so.
    """
    if isinstance(ranker, str):
        known = {name.lower(): name for name in ranker_names()}
        wanted = ranker.lower().replace("-", "").replace("_", "")
        if wanted not in known:
            near = get_close_matches(wanted, known, n=1, cutoff=0.4)
            hint = f" Did you mean {known[near[0]]}?" if near else ""
            raise ValueError(
                f"There is no ranker {ranker!r}.{hint} Choose one of {', '.join(ranker_names())}."
            )
        ranker = _ranker_classes()[known[wanted]]()
    model = clone(ranker)
    possible = model.get_params()
    for name in params or {}:
        if name not in possible:
            near = get_close_matches(name, possible, n=1, cutoff=0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            if name == "calibrate":
                hint = " Ranker has it; choose that, which tries this and other methods."
            if isinstance(model, Ranker) and name in estimators.PairwiseRanker().get_params():
                hint = " Single rankers have it: name one, such as PairwiseRanker."
            raise ValueError(
                f"{type(model).__name__} has no parameter {name!r}.{hint} It has {', '.join(sorted(possible))}."
            )
    if metric is not None and "metric" not in possible:
        raise ValueError(
            f"{type(model).__name__} has no measure of its own; leave the metric out, or use Ranker."
        )
    model.set_params(**dict(params or {}), **({} if metric is None else {"metric": metric}))
    if isinstance(model, Ranker):
        _set_up(model, dict(params or {}), metric, graded)
    if "random_state" in possible and "random_state" not in (params or {}):
        model.set_params(random_state=seed)
    if graded and not isinstance(model, Ranker):
        if "graph" not in possible:
            raise ValueError(
                f"{type(model).__name__} ranks two classes, and the labels are grades. Name the positive one, or "
                "choose PairwiseRanker, RankNCG, RankNet or RankBoost, which order grades."
            )
        if possible["graph"] is None and "graph" not in (params or {}):
            model.set_params(graph="order")
    return model


def _set_up(model: Any, params: dict[str, Any], metric: str | None, graded: bool) -> None:
    """Columns are prepared already, both cores are ours, and grades have a measure of their own."""
    given = {**params, **({} if metric is None else {"metric": metric})}
    model.set_params(
        **{
            name: value
            for name, value in {"scale": False, "n_jobs": -1}.items()
            if name not in given
        }
    )
    if graded and "metric" not in given:
        model.set_params(metric="wmw")


def for_list(model: Any, n_rows: int, groups: Any) -> Any:
    """A `Ranker` whose recall@k or ndcg@k is that of a list of so many rows, on whatever part of
    them it is fitted.
    """
    if not isinstance(model, Ranker) or model.list_rows is not None or groups is not None:
        return model
    if measure_named(model.metric).k is None:
        return model
    return clone(model).set_params(list_rows=int(n_rows))


def _places(model: Any) -> list[int]:
    """Places from the top at which a ranking is measured: the usual ones, and the one that it was
    made for.
    """
    kind, _, k = str(getattr(model, "metric", "")).partition("@")
    return [10, 100, *([int(k)] if kind in ("recall", "ndcg") else [])]


def _takes_groups(name: str) -> bool:
    return "qid" in inspect.signature(_ranker_classes()[name].fit).parameters


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _fit_rows(
    steps: Any,
    model: Any,
    table: Any,
    y: NDArray,
    order: NDArray,
    n_train: int,
    *,
    last: bool = False,
    chosen: Any = None,
) -> tuple[Any, Any, Vector]:
    """Steps and ranker fitted on the first rows of an order, and the scores of the others."""
    if chosen is None:
        chosen = _chosen_on_some(steps, model, table, y, order[:n_train])
    prepared, X = table.prepared(clone(steps), order, n_train)
    if last:
        table.forget()  # the matrix is all that is needed now
    fitted = clone(model) if chosen is None else chosen
    extra = {} if table.groups is None else {"qid": table.groups[order[:n_train]]}
    (fitted.fit if chosen is None else fitted.refit)(
        _first_rows(X, n_train), y[order[:n_train]], **extra
    )
    scores = fitted.decision_function(X[n_train:]) if n_train < order.size else np.empty(0)
    return prepared, fitted, scores


def _chosen_on_some(steps: Any, model: Any, table: Any, y: NDArray, rows: NDArray) -> Any:
    """Of many rows `Ranker` looks at some for its choice: these are prepared before the others take
    up memory.
    """
    if not isinstance(model, Ranker) or model.search_rows is None:
        return None
    groups = None if table.groups is None else table.groups[rows]
    some = rows[drawn(y[rows], groups, int(model.search_rows), int(model.random_state or 0))]
    if some.size == rows.size:
        return None
    _, X = table.prepared(clone(steps), some, some.size)
    # One fit at a time: the heaps of threads that come and go would hold on to more memory than
    # they save in seconds.
    found = (
        clone(model)
        .set_params(n_jobs=1)
        .fit(X, y[some], **({} if groups is None else {"qid": table.groups[some]}))
    )
    found.set_params(n_jobs=model.n_jobs)
    found.reason_ += f" Note that the choice was made on {some.size:,} of {rows.size:,} rows."
    return found


def _first_rows(X: Any, n: int) -> Any:
    """The first rows, without a copy."""
    if n == X.shape[0]:
        return X
    if not sp.issparse(X):
        return X[:n]
    end = X.indptr[n]
    return sp.csr_matrix(
        (X.data[:end], X.indices[:end], X.indptr[: n + 1]), shape=(n, X.shape[1]), copy=False
    )


def _split(y: NDArray, groups: NDArray | None, check: float, seed: int) -> tuple[NDArray, int]:
    """All rows, those to measure on last, and the number of the others. None where there are too
    few.
    """
    whole = np.arange(y.size), y.size
    if check == 0.0:
        return whole
    if groups is not None:
        splitter: Any = GroupShuffleSplit(1, test_size=check, random_state=seed)
    elif np.unique(y, return_counts=True)[1].min() > 1:
        splitter = StratifiedShuffleSplit(1, test_size=check, random_state=seed)
    else:  # a class of one row cannot be on both sides
        splitter = ShuffleSplit(1, test_size=check, random_state=seed)
    try:
        train, test = next(splitter.split(y, y, groups))
    except ValueError:
        return whole
    if np.unique(y[train]).size < 2 or np.unique(y[test]).size < 2:
        return whole
    return np.concatenate([train, test]), train.size


# --- Where rows come from ---


class _Source:
    """A file or data in memory, and how to speak of it."""

    def __init__(
        self,
        data: Any,
        delimiter: str | None = None,
        encoding: str | None = None,
        format: str | None = None,
        *,
        usual: str | None = None,
    ) -> None:
        """`usual` is the encoding that other files of the kind had; this one is read with it unless
        it is UTF-8.
        """
        self._data, self._delimiter, self._format = data, delimiter, format
        in_memory = (
            isinstance(data, Matrix) or hasattr(data, "columns") or hasattr(data, "to_pandas")
        )
        if not in_memory:
            check_readable(data)
        kind = None if in_memory else file_kind(data, format)
        self.is_table = not isinstance(data, Matrix) and kind not in ("svmlight", "npz")
        self.path: Any = data
        if in_memory:
            self.path = "the table" if self.is_table else "the matrix"
        self.name = None if in_memory else Path(data).name
        self._is_csv = kind in ("csv", "tsv")
        if encoding is not None and not self._is_csv:
            raise self.error("an encoding is one of CSV files; leave it out")
        self.encoding = encoding or (usual_encoding(data, usual) if self._is_csv else None)
        # The rows that are kept, by their numbers, where some are left out.
        self.kept: NDArray | None = None

    def frame(
        self, columns: Mapping[str, str], missing: Mapping[str, Sequence[str]] | None = None
    ) -> Any:
        """The table; of a CSV file, columns of these types are read as such, whatever they look
        like.
        """
        data = self._data
        if self.name is not None:
            data = read_table(
                self.path,
                delimiter=self._delimiter,
                types=arrow_types(columns),
                categories=_CATEGORIES,
                encoding=self.encoding,
                format=self._format,
                missing=missing,
            )
        return as_frame(data)

    def with_zones(self, columns: Mapping[str, str]) -> Mapping[str, str]:
        """Dates of a CSV file have a zone where the first of them has one."""
        import pyarrow as pa

        dates = [name for name, kind in columns.items() if kind == "date"]
        if not dates or not self._is_csv:
            return columns
        csv: Any = {"delimiter": self._delimiter, "encoding": self.encoding, "format": self._format}
        texts = dict.fromkeys(dates, pa.string())
        head = next(iter_table(self.path, columns=dates, types=texts, **csv))
        first = head.bfill().iloc[0].astype(str)
        has_zone = first.str.contains(r":.*(?:Z|[-+]\d\d(?::?\d\d)?)$")
        return {**columns, **dict.fromkeys(first.index[has_zone], "date with zone")}

    def matrix(self, zero_based: bool | None = None) -> Matrix:
        return (
            self._data
            if self.name is None
            else read_matrix(self.path, zero_based=zero_based, format=self._format)
        )

    def keep(self, rows: NDArray) -> None:
        """Only these rows are used; errors still count all of them."""
        self.kept = rows

    def line_of(self, row: int) -> int | None:
        """The line of a row of a CSV file, rows counted from 0."""
        if not self._is_csv:
            return None
        csv = open_csv(self.path, self._delimiter, encoding=self.encoding, format=self._format)
        return csv.line_of_row(row if self.kept is None else int(self.kept[row]))

    def place(self, row: int) -> str:
        """Where a row is, in words."""
        line = self.line_of(row)
        number = (row if self.kept is None else int(self.kept[row])) + 1
        return f"row {number:,}" if line is None else f"line {line:,}"

    def error(
        self, problem: str, row: int | None = None, arguments: Mapping[str, Any] | None = None
    ) -> DataFileError:
        """What is wrong, in which line or row, and the arguments that may help."""
        if row is None or self._is_csv:
            return DataFileError(
                self.path, problem, None if row is None else self.line_of(row), arguments
            )
        return DataFileError(self.path, f"{self.place(row)}: {problem}", arguments=arguments)

    def words(self, frame: Any, column: str) -> NDArray:
        """A column of groups as strings."""
        if frame[column].isna().any():
            row = int(np.argmax(frame[column].isna()))
            raise self.error(f"the group column {column!r} is empty here", row)
        return frame[column].astype(str).to_numpy()


def _labelled_rows(
    source: _Source,
    target: Any,
    group: Any = None,
    drop: Iterable[Any] = (),
    types: Mapping[Any, str] | None = None,
    skip_unlabelled: bool = False,
) -> Any:
    """The rows of a source with their labels and groups: a `_Table`, or `_Rows` of a matrix."""
    if source.is_table:
        return _Table(source, target, group, drop, types, skip_unlabelled)
    if types:
        raise source.error(
            f"the columns of a matrix have no names; {next(iter(types))!r} cannot be given a type"
        )
    return _Rows(source, target, group, skip_unlabelled=skip_unlabelled)


class _Table:
    """A frame, its labels and groups."""

    def __init__(
        self,
        source: _Source,
        target: Any,
        group: Any = None,
        drop: Iterable[Any] = (),
        types: Mapping[Any, str] | None = None,
        skip_unlabelled: bool = False,
    ) -> None:
        self._source, self.target = source, None if target is None else column_name(target)
        group = None if group is None else column_name(group)
        drop = [column_name(name) for name in drop]
        types = {column_name(name): kind for name, kind in (types or {}).items()}
        _check_types(types, self.target, group, drop)
        # Groups are names, also where they look like numbers.
        frame = source.frame(
            {**source.with_zones(types), **({} if group is None else {group: "text"})}
        )
        names = list(frame.columns)
        if self.target is None:
            raise source.error(f"name the target, one of the columns {listed(names)}")
        pick_columns(source.path, names, self.target, group, *drop, *types)
        self.extra: dict[str, Any] = (
            {} if source.encoding is None else {"encoding": source.encoding}
        )
        self._skipped = ""
        if skip_unlabelled:
            frame = self._with_labels(frame)
        self.label_column = frame[self.target]
        self.groups = None
        if group is not None:
            self.groups = np.unique(source.words(frame, group), return_inverse=True)[1]
        frame = with_types(frame, types, source.error)
        excluded = {self.target, group, *drop}
        self._mixed = mixed_columns(frame, exclude={*excluded, *types})
        words = {each.name: each.words for each in self._mixed if each.is_number}
        if words:
            frame = with_types(frame, dict.fromkeys(words, "number"), source.error, missing=words)
            self.extra["missing_words"] = words
        self._plan = plan_columns(frame, exclude=excluded, types=types)
        if not self._plan.used:
            reasons = "; ".join(self._plan.lines()) or "only the target"
            raise source.error(f"no column is left to learn from ({reasons})")
        self._frame = frame[self._plan.used]
        self._dropped = drop

    def _with_labels(self, frame: Any) -> Any:
        """The rows that have a label."""
        unlabelled = _is_unlabelled(frame[self.target])
        self.extra["skip_unlabelled"] = True
        if not unlabelled.any():
            return frame
        if unlabelled.all():
            raise self._source.error(f"no row has a label in {self.target!r}")
        self._skipped = (
            f"{unlabelled.sum():,} of {unlabelled.size:,} rows without a label are left out"
        )
        kept = np.flatnonzero(~unlabelled)
        self._source.keep(kept)
        return frame.iloc[kept]

    def steps(self) -> Any:
        return self._plan.transformer()

    @property
    def rows(self) -> Any:
        return self._frame

    def kinds(self) -> dict[str, str]:
        return self._plan.kinds(self._frame)

    def notes(self) -> list[str]:
        notes = [self._skipped] if self._skipped else []
        notes += self._plan.lines() + (
            [f"left out {listed(self._dropped)}: as asked"] if self._dropped else []
        )
        notes += [self._mixed_note(each) for each in self._mixed[:_MIXED_SHOWN]]
        more = len(self._mixed) - _MIXED_SHOWN
        return notes + (
            [f"words among the numbers of {counted(more, 'more column')}"] if more > 0 else []
        )

    def _mixed_note(self, mixed: MixedColumn) -> str:
        """Which values of a column of numbers are none, where the first of them is, and what was
        made of it.
        """
        first = f"{mixed.words[0]!r} in {self._source.place(mixed.row)}"
        if mixed.is_number:
            verb = "is no number" if mixed.n_words == 1 else "are no numbers"
            what = (
                f"{mixed.n_words:,} of {mixed.n_known:,} values {verb} ({first}): taken as missing"
            )
        else:
            taken = "a category" if mixed.name in self._plan.categories else "text"
            taken = "left out" if mixed.name in self._plan.left_out else f"taken as {taken}"
            numbers = mixed.n_known - mixed.n_words
            what = f"{numbers:,} of {mixed.n_known:,} values are numbers, others words ({first}): {taken}"
        return (
            f"{mixed.name}: {what}; if that is wrong, mend the words or name the type of the column"
        )

    def forget(self) -> None:
        self._frame = self.label_column = None

    def prepared(self, steps: Any, order: NDArray, n_train: int) -> tuple[Any, Any]:
        # The training rows are not kept beyond the fit.
        steps.fit(self._frame if n_train == len(self._frame) else self._frame.iloc[order[:n_train]])
        return steps, steps.transform_rows(self._frame, order)


def _check_types(
    types: dict[str, str], target: str | None, group: str | None, drop: list[str]
) -> None:
    for name, kind in types.items():
        if kind not in COLUMN_TYPES:
            raise ValueError(
                f"The type of {name!r} is {kind!r}; choose one of {', '.join(COLUMN_TYPES)}."
            )
        if name in (target, group, *drop):
            what = "the target" if name == target else "the group" if name == group else "not used"
            raise ValueError(f"The column {name!r} is {what}; it takes no type.")


def _is_unlabelled(column: Any) -> NDArray[np.bool_]:
    """Where there is no label: a missing value, or nothing but spaces."""
    codes, values = distinct(column)
    blank = np.array([isinstance(value, str) and not value.strip() for value in values] + [True])
    return blank[codes]


class _Rows:
    """A matrix with labels and perhaps groups."""

    def __init__(
        self,
        source: _Source,
        target: str | None,
        group: str | None,
        zero_based: bool | None = None,
        skip_unlabelled: bool = False,
    ) -> None:
        if target is not None:
            raise source.error(
                f"this is a matrix with its own labels; leave the target {target!r} out"
            )
        matrix = source.matrix(zero_based)
        if sp.issparse(matrix.X):
            if not np.isfinite(matrix.X.data).all():
                raise source.error("there are values that are not finite numbers")
        elif not np.isfinite(matrix.X).all():  # infinite numbers are missing, as in tables
            matrix = replace(matrix, X=np.where(np.isfinite(matrix.X), matrix.X, np.nan))
        if group not in (None, "qid"):
            raise source.error(f"the groups of a matrix are called qid, not {group!r}")
        if group == "qid" and matrix.qid is None:
            raise source.error("there is no qid in it")
        self._skipped = ""
        if skip_unlabelled:
            matrix = self._with_labels(source, matrix)
        self.X, self.label_column, self.target = matrix.X, matrix.y, "label"
        self.groups = None if matrix.qid is None else np.unique(matrix.qid, return_inverse=True)[1]
        self.extra = {"n_columns": int(matrix.X.shape[1]), "zero_based": bool(matrix.zero_based)}
        self.extra |= {"skip_unlabelled": True} if skip_unlabelled else {}

    def _with_labels(self, source: _Source, matrix: Matrix) -> Matrix:
        """The rows that have a label."""
        import pandas as pd

        kept = np.flatnonzero(~_is_unlabelled(pd.Series(matrix.y)))
        if kept.size == matrix.y.size:
            return matrix
        if not kept.size:
            raise source.error("no row has a label")
        source.keep(kept)
        self._skipped = (
            f"{matrix.y.size - kept.size:,} of {matrix.y.size:,} rows without a label are left out"
        )
        qid = None if matrix.qid is None else matrix.qid[kept]
        return replace(matrix, X=matrix.X[kept], y=matrix.y[kept], qid=qid)

    def steps(self) -> Any:
        if sp.issparse(self.X):
            return MaxAbsScaler()
        return make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
        )

    @property
    def rows(self) -> Any:
        return self.X

    def kinds(self) -> dict[str, str]:
        return {}

    def notes(self) -> list[str]:
        how = (
            "each divided by its largest value"
            if sp.issparse(self.X)
            else "missing values filled, scaled"
        )
        return [
            *([self._skipped] if self._skipped else []),
            f"{counted(self.X.shape[1], 'column')} of numbers, {how}",
        ]

    def forget(self) -> None:
        self.X = None

    def prepared(self, steps: Any, order: NDArray, n_train: int) -> tuple[Any, Any]:
        X = self.X if np.array_equal(order, np.arange(order.size)) else self.X[order]
        steps.fit(_first_rows(X, n_train))
        return steps, steps.transform(X)


def _labels(
    source: _Source, column: Any, target: str, positive: Any, negative: str | None = None
) -> tuple[NDArray, dict[str, Any]]:
    """Labels that rankers take, True for the positive ones or grades, and a word on them.

    Grades are whole numbers, those of the column divided by the "unit" of the words; "notes" are
    for the user. Where a negative label is named, too, there may be no other.
    """
    import pandas as pd

    codes, found = distinct(as_frame(pd.DataFrame({target: column}))[target])
    values = np.asarray(found)
    numeric = np.issubdtype(values.dtype, np.number)
    notes: list[str] = []
    if not numeric:
        values = np.array([str(value) for value in found], dtype=object)
        codes, values, notes = _trimmed(codes, values, target)
    if (codes < 0).any():
        n_missing = int(np.count_nonzero(codes < 0))
        raise source.error(
            f"the label {target!r} is missing here ({n_missing:,} of {codes.size:,} rows "
            f"{'has' if n_missing == 1 else 'have'} none); give it, or skip the rows without a label",
            int(np.argmax(codes < 0)),
            {"skip_unlabelled": True},
        )
    ascending = np.argsort(values)
    shown = ", ".join(_quoted(value) for value in values[ascending[:6]]) + (
        ", ..." if values.size > 6 else ""
    )
    if values.size < 2:
        raise source.error(
            f"all labels in {target!r} are {shown}; ranking needs rows of at least two classes"
        )
    if positive is not None:
        hit = np.array([_same_label(value, positive) for value in values])
        if not hit.any():
            raise source.error(f"no label in {target!r} is {positive!r}; there are {shown}")
        others = [
            value
            for value in values[~hit]
            if negative is not None and not _same_label(value, negative)
        ]
        if others:
            shown = ", ".join(_quoted(value) for value in others[:6])
            raise source.error(
                f"labels in {target!r} that are neither {positive!r} nor {negative!r}: {shown}"
            )
        return hit[codes], _label_words(hit[codes], str(positive).strip(), negative, notes)
    if not numeric:
        words = np.array([_as_number(value) is None for value in values])
        if words.any() and not words.all():
            rows = words[codes]
            odd = int(np.argmax(rows if rows.mean() <= 0.5 else ~rows))
            raise source.error(
                f"mixed labels in {target!r}: {values[codes[odd]]!r} among {shown}; name the positive one",
                odd,
                {"positive": "LABEL"},
            )
        if values.size > 2:
            raise source.error(
                f"{target!r} has {values.size} different labels ({shown}); name the positive one",
                arguments={"positive": "LABEL"},
            )
    if values.size == 2:
        low, high = values[ascending]
        hit = codes == ascending[1]
        words_of_yes = ("y", "yes", "t", "true", "p", "pos", "positive")
        if not numeric and _as_number(high) is None and str(high).lower() not in words_of_yes:
            notes.append(
                f"{high!r} is taken for the positive label, being the later word; if it is not, name the positive one"
            )
        return hit, _label_words(hit, _shown(high), _shown(low), notes)
    if values.size > _MOST_GRADES:
        raise source.error(
            f"{target!r} has {values.size} different numbers; a ranker takes two classes or up to {_MOST_GRADES} "
            "grades. Cut it into grades, or name the positive value",
            arguments={"positive": "LABEL"},
        )
    counts = np.bincount(codes)
    classes = {_shown(values[k]): int(counts[k]) for k in ascending}
    grades = values.astype(np.float64)
    unit = _unit(grades)
    said = {"positive": None, "negative": None, "classes": classes, "unit": unit, "notes": notes}
    return (grades if unit == 1.0 else np.round(grades / unit))[codes], said


def _trimmed(codes: NDArray, values: NDArray, target: str) -> tuple[NDArray, NDArray, list[str]]:
    """Labels without spaces around them, and a word on those that had some; nothing but spaces is a
    missing label.
    """
    import pandas as pd

    trimmed = np.array([value.strip() for value in values], dtype=object)
    odd = np.flatnonzero(trimmed != values)
    if not odd.size:
        return codes, values, []
    places, kept = pd.factorize(
        np.array([each or None for each in trimmed], dtype=object)
    )  # -1 for nothing
    counts = np.bincount(codes[codes >= 0], minlength=values.size)
    shown = [f"{values[k]!r} ({counts[k]:,}) as {trimmed[k]!r}" for k in odd if trimmed[k]]
    shown = shown[:3] + (["..."] if len(shown) > 3 else [])
    notes = (
        [f"labels in {target!r} are read without the spaces around them: {', '.join(shown)}"]
        if shown
        else []
    )
    return np.append(places, -1)[codes], np.asarray(kept, dtype=object), notes


def _unit(grades: Vector) -> float:
    """What grades are whole multiples of, such as 0.5 of 0, 0.5 and 1: estimators take whole
    numbers as classes.

    Measures do not change with the unit: the gain of NDCG is linear.
    """
    for parts in (*range(1, 101), 1000, 10_000, 1_000_000):
        scaled = grades * parts
        if (
            np.allclose(scaled, np.round(scaled), rtol=0, atol=1e-6)
            and np.unique(np.round(scaled)).size == grades.size
        ):
            return 1.0 / parts
    raise ValueError(
        f"The grades {', '.join(map(_shown, grades[:6]))} have no common unit; round them."
    )


def _same_label(value: Any, wanted: Any) -> bool:
    """Whether two labels are the same word, or the same number: 1, 1.0 and "1"."""
    one, other = _as_number(value), _as_number(wanted)
    words = [str(each).strip() for each in (value, wanted)]
    words = [each.lower() if each.lower() in ("true", "false") else each for each in words]
    return words[0] == words[1] or (one is not None and one == other)


def _as_number(value: Any) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _label_words(
    hit: NDArray[np.bool_], positive: str, negative: str | None, notes: list[str]
) -> dict[str, Any]:
    other = negative or f"not {positive}"
    counts = {positive: int(np.count_nonzero(hit)), other: int(np.count_nonzero(~hit))}
    return {
        "positive": positive,
        "negative": negative,
        "classes": counts,
        "unit": 1.0,
        "notes": notes,
    }


def _shown(value: Any) -> str:
    if isinstance(value, int | float | np.number):
        return str(int(value)) if float(value).is_integer() else str(float(value))
    return str(value)


def _quoted(value: Any) -> str:
    """A label in a message: words in quotes, so that spaces are seen."""
    return repr(value) if isinstance(value, str) else _shown(value)


# --- Scores, measures, reasons ---


@dataclass(frozen=True)
class Evaluation:
    """How good a ranking is.

    Attributes
    ----------
    rows : int
    classes : dict
    measures : list of Estimate
    parts : dict
        The measures for each value of the column that was asked for; none where its rows are of one
        class.
    y, scores : arrays
        Labels (True, or grades) and scores, in the order of the rows.
    notes : list of str
        What was done with labels, in words.
    """

    rows: int
    classes: dict[str, int]
    measures: list[Estimate]
    parts: dict[str, list[Estimate]]
    y: NDArray
    scores: Vector
    notes: list[str] = field(default_factory=list)


def evaluate(
    model: Model,
    data: Any,
    target: str | None = None,
    *,
    by: str | None = None,
    k: Iterable[int] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    delimiter: str | None = None,
    allow_missing: bool = False,
    encoding: str | None = None,
    format: str | None = None,
    skip_unlabelled: bool | None = None,
) -> Evaluation:
    """Measure a model on labelled rows.

    Parameters
    ----------
    model : Model
    data, target, delimiter, encoding, format, skip_unlabelled
        As in `fit`; target, encoding and whether rows without a label are skipped are those of the
        model where none are named.
    by : str, optional
        A column whose values part the rows; the measures are also given for each of them.
    k : iterable of int, optional
        Places from the top for precision and recall: rows of this file as they are, however long
        the list was that the model was fitted for. By default 10, 100 and the k of the metric that
        the model was chosen for.
    confidence : float
        Of the intervals.
    seed : int
        Of the resamples.
    allow_missing : bool
        Take columns of the model that are not there for empty ones.
    """
    source, positive = (
        _model_source(model, data, delimiter, encoding, format),
        model.summary.get("positive"),
    )
    skip = (
        bool(model.summary.get("skip_unlabelled")) if skip_unlabelled is None else skip_unlabelled
    )
    parts, notes = None, list[str]()
    if source.is_table:
        target = target or model.target
        frame = _model_table(model, source)
        if target is None:
            raise source.error("name the target; the model has none")
        target = column_name(target)
        pick_columns(source.path, list(frame.columns), target, by, model.group)
        unlabelled = _is_unlabelled(frame[target])
        if skip and unlabelled.any():
            kept = np.flatnonzero(~unlabelled)
            notes.append(
                f"{len(frame) - kept.size:,} of {len(frame):,} rows without a label are left out"
            )
            source.keep(kept)
            frame = frame.iloc[kept]
        y, labels = _labels(source, frame[target], target, positive, model.summary.get("negative"))
        scores = table_scores(model)(
            model_frame(model, frame, source.path, allow_missing=allow_missing)
        )
        groups = None if model.group is None else source.words(frame, model.group)
        if by is not None:
            parts = (
                frame[by]
                .astype(object)
                .where(frame[by].notna(), "(missing)")
                .astype(str)
                .to_numpy()
            )
    else:
        if by is not None:
            raise source.error("a matrix has no columns by which to part the rows")
        rows = _Rows(source, target, None, model.summary.get("zero_based"), skip)
        if model.summary.get("groups") is not None and rows.groups is None:
            raise source.error("the model ranks within groups, and there is no qid")
        y, labels = _labels(
            source, rows.label_column, rows.target, positive, model.summary.get("negative")
        )
        scores, groups = matrix_scores(model, rows.X, source.path), rows.groups
    y = y * labels["unit"] if labels["positive"] is None else y
    places = _places(last_step(model)) if k is None else list(k)

    def measured(chosen: NDArray) -> list[Estimate]:
        within = None if groups is None else groups[chosen]
        return estimate_measures(
            y[chosen],
            scores[chosen],
            qid=within,
            k=places,
            confidence=confidence,
            random_state=seed,
        )

    found = measured(np.arange(y.size))
    by_part: dict[str, list[Estimate]] = {}
    if parts is not None:
        order = np.argsort(parts, kind="stable")
        values, begins = np.unique(parts[order], return_index=True)
        for value, chosen in zip(values, np.split(order, begins[1:]), strict=True):
            try:
                by_part[str(value)] = measured(chosen)
            except ValueError:  # rows of one class only
                by_part[str(value)] = []
    return Evaluation(
        int(y.size), labels["classes"], found, by_part, y, scores, notes + labels["notes"]
    )


def _model_source(
    model: Model, data: Any, delimiter: str | None, encoding: str | None, format: str | None
) -> "_Source":
    """A source for a model, in the encoding that its training file had, where that is needed."""
    return _Source(data, delimiter, encoding, format, usual=model.summary.get("encoding"))


def _model_table(model: Model, source: _Source) -> Any:
    """The table of a file, its columns read as the model has them."""
    if not model.columns:
        raise source.error("the model was fitted on a matrix (svmlight or .npz)")
    groups = {} if model.group is None else {model.group: "text"}
    return source.frame({**model.columns, **groups}, missing_words(model))


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
        For each row that was asked for: `row`, `score`, `constant` and `columns`, a dict from each
        column to its `value` and what it `adds` to the score. The constant and what the columns add
        are the score. A text also has the `words` that add most, each with what it adds, and what
        the `other_words` add.
    intercept : float
        The constant, which is the same for all rows.
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
    encoding: str | None = None,
    format: str | None = None,
    words: int = _WORDS_SHOWN,
) -> Explanation:
    """The weights of a linear model, and what each column adds to the score of some rows.

    Parameters
    ----------
    model : Model
    data : path or frame, optional
        Rows to explain.
    rows : iterable of int, optional
        Which of them, counted from 1; by default the five with the highest scores.
    delimiter, allow_missing, encoding, format
        As in `evaluate`.
    words : int, default=5
        How many words of a text are named.

    Returns
    -------
    Explanation
        The contributions of a row and the intercept add up to its score, and those of words to that
        of their text.
    """
    pipeline = model.estimator
    _, ranker = two_steps(model)
    if getattr(ranker, "coef_", None) is None:
        raise ValueError(f"{type(ranker).__name__} has no weights by column; linear rankers have.")
    if model.columns:
        names = [str(name) for name in pipeline[0].get_feature_names_out()]
        columns = pipeline[0].origins()
    else:
        first = 0 if model.summary.get("zero_based", True) else 1
        names = [f"column {k + first}" for k in range(n_matrix_columns(model))]
        columns = names
    coef = np.ravel(ranker.coef_)
    biggest_first = np.argsort(-np.abs(coef), kind="stable")
    weights = [Weight(names[k], columns[k], float(coef[k])) for k in biggest_first]
    intercept = float(np.ravel(ranker.intercept_)[0])
    if data is None:
        return Explanation(weights, [], intercept)
    source = _model_source(model, data, delimiter, encoding, format)
    if not source.is_table:
        raise source.error("rows are explained by the columns of a table; this is a matrix")
    frame = _model_table(model, source)
    prepared = model_frame(model, frame, source.path, allow_missing=allow_missing)
    scorer = scorer_of(pipeline)
    assert isinstance(scorer, LinearScorer)
    scores = scorer(prepared)
    if rows is None:
        chosen = np.argsort(-scores, kind="stable")[:5]
    else:
        chosen = np.array([row - 1 for row in rows], dtype=np.intp)
        if chosen.size and (chosen.min() < 0 or chosen.max() >= len(frame)):
            raise source.error(f"rows are counted from 1 to {len(frame)}")
    some = prepared.iloc[chosen]
    parts = scorer.contributions(some)
    texts = {name: of_words(some[name]) for name, of_words in scorer.words.items()}
    contributions = []
    for j, row in enumerate(chosen.tolist()):
        terms = {
            name: {"value": _cell(some[name].iloc[j]), "adds": float(values[j])}
            for name, values in sorted(parts.items(), key=lambda item: -abs(item[1][j]))
        }
        for name, of_rows in texts.items():
            terms[name] |= _largest_words(of_rows[j], words)
        contributions.append(
            {"row": row + 1, "score": float(scores[row]), "constant": intercept, "columns": terms}
        )
    return Explanation(weights, contributions, intercept)


def _largest_words(adds: Mapping[str, float], n_named: int) -> dict[str, Any]:
    """What the words add that add most, and what the others add together."""
    largest = sorted(adds, key=lambda word: (-abs(adds[word]), word))
    others = largest[n_named:]
    return {
        "words": {word: adds[word] for word in largest[:n_named]},
        "other_words": {"count": len(others), "adds": float(sum(adds[word] for word in others))},
    }


def _cell(value: Any) -> Any:
    import pandas as pd

    if pd.isna(value):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        return int(value)  # files read numbers as doubles
    return value if isinstance(value, int | float | str) else str(value)
