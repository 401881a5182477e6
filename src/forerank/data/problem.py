"""A ranking problem: rows with labels, and perhaps groups and weights, read from any source.

    options = ReadOptions(delimiter=";", drop=["customer id"])
    problem = read_problem("leads.csv", "bought", positive="yes", options=options)
    problem.rows, problem.y, problem.groups, problem.weights
    problem.labels.classes, problem.notes, problem.column_kinds
    steps, X = problem.prepare(order, n_train)  # columns fitted on the first rows of an order
    problem.forget_rows()                       # once the matrix is all that is needed

`read_problem` is the only way in: fit, compare and report call it with the same arguments.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils import check_array

from forerank._text import counted, listed
from forerank._typing import Index, Vector
from forerank._validation import check_choice, refuse_dask
from forerank.data.checks import DataWarning, check_rows
from forerank.data.column_plan import FORMS, ColumnPlan, MixedColumn
from forerank.data.forms import ColumnForms, FormColumns
from forerank.data.frames import as_frame, column_name
from forerank.data.labels import Labels, read_labels
from forerank.data.notations import PLAIN, Reading
from forerank.data.planned_columns import planned
from forerank.data.readers import NOTES, Matrix, check_columns
from forerank.data.readings import reading_notes
from forerank.data.source import DataSource, ReadOptions, is_frame
from forerank.data.table_rows import TableRows
from forerank.data.word_counts import WordCounts, holds_counts
from forerank.metrics.validation import number_groups

__all__ = ["RankingProblem", "ReadOptions", "first_rows", "read_problem"]

# Columns of numbers and strings that have a note each: for each note a CSV file is read again, up
# to the first string.
_MIXED_NOTES = 8


@dataclass
class RankingProblem:
    """Rows with labels, and perhaps groups and weights.

    Attributes
    ----------
    source : DataSource
        Where the rows came from; `source.error` makes errors that name it.
    rows : DataFrame, CSR matrix or array
        The columns that are used. None after `forget_rows`.
    labels : Labels
        Names and counts of the classes, and `labels.y`.
    y : array
        Labels that rankers accept: True for positive rows, or grades.
    target : str
    groups : array of int, or None
        Number of each row's group.
    weights : array or None
    plan : ColumnPlan or None
        Treatment of the columns of a table; None for a matrix.
    column_kinds : dict
        Kind of each column that is used, as in a model file; empty for a matrix.
    read_settings : dict
        Entries of a model's summary by which new files are read in the same way.
    notes : list of str
        Information for the user on columns, rows and labels.
    """

    source: DataSource
    rows: Any
    labels: Labels
    y: NDArray
    target: str
    groups: Index | None = None
    weights: Vector | None = None
    plan: ColumnPlan | None = None
    column_kinds: dict[str, str] = field(default_factory=dict)
    read_settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def graded(self) -> bool:
        """Whether the labels are grades."""
        return self.labels.graded

    @property
    def n_groups(self) -> int | None:
        """Number of groups; None where there are none."""
        return None if self.groups is None else int(np.unique(self.groups).size)

    def warnings(self) -> list[DataWarning]:
        """Problems of the data that make results too good, or uncertain."""
        return check_rows(self.rows, self.y, self.groups)

    def summary(self) -> dict[str, Any]:
        """Entries of a model's summary: number of rows, classes and groups."""
        labels = vars(self.labels)
        named = {name: labels[name] for name in ("positive", "negative", "classes")}
        return {"rows": int(self.y.size), **named, "groups": self.n_groups}

    @property
    def forms(self) -> tuple[str, ...]:
        """Forms that the columns may have: those of a table, of which only numbers and dates differ
        in the additive form, or "tf-idf" of word counts.
        """
        if self.plan is not None:
            has_curves = self.plan.numbers or self.plan.dates
            return FORMS if has_curves else tuple(form for form in FORMS if form != "additive")
        return ("plain", "tf-idf") if holds_counts(self.rows) else ("plain",)

    def steps(self, forms: str | Sequence[str] = "plain") -> Any:
        """The transformer of the columns into one of `forms`, or into several (`FormColumns`), not
        fitted. Of several, those that there are not are ignored; if "plain" is left alone, it is
        the transformer of that.
        """
        if isinstance(forms, str):
            return self._steps(forms)
        steps = {form: self._steps(form) for form in forms if form in self.forms}
        return FormColumns(steps) if set(steps) - {"plain"} else self._steps("plain")

    def _steps(self, form: str) -> Any:
        if self.plan is not None:
            return self.plan.transformer(form)
        check_choice("form", form, self.forms)
        if form == "tf-idf":
            return WordCounts()
        if sp.issparse(self.rows):
            return MaxAbsScaler()
        imputer = SimpleImputer(strategy="median", keep_empty_features=True)
        return make_pipeline(imputer, StandardScaler())

    def prepare(
        self, order: Index, n_train: int, forms: str | Sequence[str] = "plain"
    ) -> tuple[Any, Any]:
        """The transformer fitted on the first `n_train` rows of an order, and the matrix of all, or
        `ColumnForms` if several forms are asked for; see `steps`.
        """
        if self.plan is not None:
            steps = self._fitted_steps(order[:n_train], forms)
            return steps, steps.transform_rows(self.rows, order)
        steps = self.steps(forms)
        X = self.rows if np.array_equal(order, np.arange(order.size)) else self.rows[order]
        steps.fit(first_rows(X, n_train))
        return steps, steps.transform(X)

    def prepare_on_demand(
        self, train: Index, forms: str | Sequence[str] = "plain"
    ) -> tuple[Any, ColumnForms]:
        """The transformer of a table fitted on some rows, and these rows in the forms, each of
        which is made when it is needed: `TableRows` in place of matrices.
        """
        steps = self._fitted_steps(train, forms)
        of_form = steps.steps if isinstance(steps, FormColumns) else {"plain": steps}
        made = {form: TableRows(each, self.rows, train) for form, each in of_form.items()}
        return steps, ColumnForms(made, list(getattr(steps, "categorical", [])))

    def _fitted_steps(self, train: Index, forms: str | Sequence[str]) -> Any:
        all_rows = train.size == len(self.rows)  # then a copy is saved
        return self.steps(forms).fit(self.rows if all_rows else self.rows.iloc[train])

    def notes_on(self, forms: str | Sequence[str]) -> list[str]:
        """The notes, with the treatment of the columns of a table in these forms."""
        forms = [forms] if isinstance(forms, str) else forms
        if self.plan is None or list(forms) == ["plain"]:
            return self.notes
        plain = set(self.plan.lines())
        lines = self.plan.lines(forms[0])
        for form in forms[1:]:
            lines += [f"for {form}: {line}" for line in self.plan.lines(form) if line not in lines]
        return lines + [note for note in self.notes if note not in plain]

    def forget_rows(self) -> None:
        """Release the memory of the rows."""
        self.rows = None


def read_problem(
    data: Any,
    target: Any = None,
    *,
    group: Any = None,
    positive: Any = None,
    qid: Any = None,
    sample_weight: ArrayLike | None = None,
    options: ReadOptions | None = None,
) -> RankingProblem:
    """Rows with labels from a file, a frame, or arrays.

    Parameters
    ----------
    data : path, pandas or polars frame, Matrix, array or sparse matrix
    target : str or array-like, optional
        Name of the column of labels, or labels of a frame or an array. svmlight files, NumPy
        archives and `Matrix` have their own.
    group : str, optional
        Column of groups.
    positive : label, optional
        The positive class; see `forerank.data.labels.read_labels`.
    qid, sample_weight : array-likes, optional
        Groups and weights, one for each row of the data.
    options : ReadOptions, optional
    """
    refuse_dask(data, "This function", "Give it a sample in memory: data.sample(...).compute().")
    data, target = _with_labels(data, target)
    source = DataSource(data, options)
    problem = (_read_table if source.is_table else _read_matrix)(source, target, group, positive)
    n = problem.y.size
    if source.selected is not None:
        qid = None if qid is None else np.asarray(qid)[source.selected]
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight)[source.selected]
    if qid is not None:
        if problem.groups is not None:
            raise ValueError("Groups were given twice, by a column and as qid; give them once.")
        problem.groups = number_groups(qid, n)
    if sample_weight is not None:
        problem.weights = _checked_weights(sample_weight, n)
    return problem


def first_rows(X: Any, n: int) -> Any:
    """The first n rows of a matrix, without a copy."""
    if n == X.shape[0]:
        return X
    if isinstance(X, ColumnForms):
        return ColumnForms({f: first_rows(m, n) for f, m in X.matrices.items()}, X.categorical)
    if not sp.issparse(X):
        return X[:n]
    end = X.indptr[n]
    parts = (X.data[:end], X.indices[:end], X.indptr[: n + 1])
    return sp.csr_matrix(parts, shape=(n, X.shape[1]), copy=False)


def _with_labels(data: Any, target: Any) -> tuple[Any, Any]:
    """Data that hold their labels, and the name of the column; an array becomes a `Matrix`."""
    in_file = isinstance(data, Matrix | str | PathLike)
    has_levels = getattr(getattr(data, "columns", None), "nlevels", 1) > 1
    if np.ndim(target) == 0 or (isinstance(target, tuple) and has_levels):
        if not in_file and not is_frame(data):
            kind = type(data).__name__
            raise ValueError(f"data is {kind}: pass its labels, one for each row, as target.")
        return data, target
    if in_file:
        raise ValueError(
            "A file has its labels in a column: pass its name as target, not an array."
        )
    if is_frame(data):
        data, name = as_frame(data), "label"
        while name in data.columns:
            name = f"_{name}"
        return data.assign(**{name: _checked_labels(target, len(data))}), name
    X = check_array(data, accept_sparse="csr", ensure_all_finite="allow-nan", input_name="X")
    return Matrix(X, _checked_labels(target, X.shape[0]), None), None


def _checked_labels(y: Any, n: int) -> NDArray:
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(
            f"target has shape {labels.shape}; expected one label for each of {n} rows."
        )
    return labels


def _checked_weights(sample_weight: ArrayLike, n: int) -> Vector:
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(
            f"sample_weight has shape {weights.shape}; expected {n} finite weights of at least 0."
        )
    return weights


def _read_table(source: DataSource, target: Any, group: Any, positive: Any) -> RankingProblem:
    options = source.options
    types, drop = dict(options.types or {}), list(options.drop)
    target, group = (None if name is None else column_name(name) for name in (target, group))
    _check_untyped(types, target, group, drop)
    group_kind = {} if group is None else {group: "text"}  # names, also where they are numbers
    frame = source.frame({**source.kinds_to_read(types), **group_kind})
    if target is None:
        shown = listed(frame.columns)
        raise source.error(f"no target was given; choose one of the columns {shown}")
    check_columns(source.path, list(frame.columns), target, group, *drop, *types)
    settings: dict[str, Any] = {} if source.encoding is None else {"encoding": source.encoding}
    notes: list[str] = list(frame.attrs.get(NOTES, []))
    if options.skip_unlabelled:
        settings["skip_unlabelled"] = True
        notes += source.select_labelled(frame[target], target)
        frame = frame if source.selected is None else frame.iloc[source.selected]
    label_column, groups = frame[target], None
    if group is not None:
        groups = np.unique(source.group_names(frame, group), return_inverse=True)[1]
    found = planned(frame, source.error, types=types, exclude={target, group, *drop})
    settings |= _reading_settings(found.readings)
    plan, rows = found.plan, found.frame[found.plan.used]
    notes_on_strings = reading_notes(found.written, source.position)
    notes_on_strings += _mixed_notes(source, plan, found.mixed)
    del frame, found
    labels = read_labels(label_column, target, positive, source.error)
    notes += plan.lines() + ([f"left out {listed(drop)}: as requested"] if drop else [])
    notes += notes_on_strings + labels.notes
    problem = RankingProblem(source, rows, labels, labels.y, target, groups, plan=plan, notes=notes)
    problem.column_kinds, problem.read_settings = plan.kinds(rows), settings
    return problem


def _reading_settings(readings: Mapping[str, Reading]) -> dict[str, Any]:
    """Entries of a model's summary on how columns of strings are read."""
    missing = {name: list(each.missing) for name, each in readings.items() if each.missing}
    notations = {name: each.notation for name, each in readings.items() if each.notation != PLAIN}
    settings = {"missing_words": missing, "notations": notations}
    return {name: value for name, value in settings.items() if value}


def _check_untyped(
    types: dict[str, str], target: str | None, group: str | None, drop: Iterable[str]
) -> None:
    for name in types:
        if name in (target, group, *drop):
            what = "the target" if name == target else "the group" if name == group else "not used"
            raise ValueError(f"The column {name!r} is {what}; do not declare a type for it.")


def _mixed_notes(source: DataSource, plan: ColumnPlan, mixed: list[MixedColumn]) -> list[str]:
    """Notes on the strings in columns of numbers and of dates: how many, the first of them, and its
    position.
    """
    notes = []
    for column in mixed[:_MIXED_NOTES]:
        first = f"{column.words[0]!r} in {source.position(column.row)}"
        if column.is_number:
            verb = "is not a number" if column.n_words == 1 else "are not numbers"
            what = f"{column.n_words:,} of {column.n_known:,} values {verb} ({first})"
            what = f"{what}: taken as missing"
        else:
            taken = "a category" if column.name in plan.categories else "text"
            taken = "left out" if column.name in plan.left_out else f"taken as {taken}"
            what = f"{column.n_known - column.n_words:,} of {column.n_known:,} values are "
            what += f"{column.what}, others strings ({first}): {taken}"
        advice = "if that is wrong, correct these values or set the type of the column"
        notes.append(f"{column.name}: {what}; {advice}")
    if len(mixed) > _MIXED_NOTES:
        more = counted(len(mixed) - _MIXED_NOTES, "more column")
        notes.append(f"strings among the numbers or dates of {more}")
    return notes


def _read_matrix(source: DataSource, target: Any, group: Any, positive: Any) -> RankingProblem:
    for what, names in (("dropped", source.options.drop), ("given a type", source.options.types)):
        for name in names or ():
            raise source.error(f"the columns of a matrix have no names; {name!r} cannot be {what}")
    matrix, notes = matrix_rows(source, target, group)
    groups = None if matrix.qid is None else np.unique(matrix.qid, return_inverse=True)[1]
    labels = read_labels(matrix.y, "label", positive, source.error)
    settings = {"n_columns": int(matrix.X.shape[1]), "zero_based": bool(matrix.zero_based)}
    settings |= {"skip_unlabelled": True} if source.options.skip_unlabelled else {}
    sparse = sp.issparse(matrix.X)
    how = "each divided by its largest value" if sparse else "missing values filled, scaled"
    notes += [f"{counted(matrix.X.shape[1], 'column')} of numbers, {how}", *labels.notes]
    return RankingProblem(
        source, matrix.X, labels, labels.y, "label", groups, read_settings=settings, notes=notes
    )


def matrix_rows(
    source: DataSource, target: Any = None, group: Any = None, zero_based: bool | None = None
) -> tuple[Matrix, list[str]]:
    """The rows of a matrix, without those that the options exclude, and notes for the user."""
    if target is not None:
        raise source.error(f"a matrix has its own labels; do not pass the target {target!r}")
    matrix = source.matrix(zero_based)
    if sp.issparse(matrix.X):
        if not np.isfinite(matrix.X.data).all():
            raise source.error("some values are not finite numbers; replace or remove them")
    elif not np.isfinite(matrix.X).all():  # infinite numbers are missing, as in tables
        matrix = replace(matrix, X=np.where(np.isfinite(matrix.X), matrix.X, np.nan))
    if group not in (None, "qid"):
        raise source.error(f"the groups of a matrix are called qid, not {group!r}")
    if group == "qid" and matrix.qid is None:
        raise source.error("it has no groups (qid); do not pass group")
    notes = source.select_labelled(matrix.y, "label") if source.options.skip_unlabelled else []
    kept = source.selected
    if kept is not None:
        qid = None if matrix.qid is None else matrix.qid[kept]
        matrix = replace(matrix, X=matrix.X[kept], y=matrix.y[kept], qid=qid)
    return matrix, notes
