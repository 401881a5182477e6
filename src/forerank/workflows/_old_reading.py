"""From a table to a ranker and what is known about it: the work of the commands, as functions.

`fit` reads, prepares the columns, keeps some rows aside to say how good the ranking is, and fits on
all of them. `evaluate` measures a model on labelled rows, `explain` says what its scores are made
of. Ranking is in `forerank.models.ranked_list`, since it also works on files that do not fit into
memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from forerank._text import counted, listed
from forerank._typing import Vector
from forerank.data.column_kinds import COLUMN_TYPES, arrow_types
from forerank.data.column_plan import MixedColumn, mixed_columns, plan_columns
from forerank.data.encodings import usual_encoding
from forerank.data.formats import check_readable, file_kind
from forerank.data.frames import as_frame, column_name, distinct, with_types
from forerank.data.readers import (
    Matrix,
    iter_table,
    open_csv,
    pick_columns,
    read_matrix,
    read_table,
)
from forerank.exceptions import DataFileError

# Different strings in a column of a CSV file up to which it is kept as codes.
_CATEGORIES = 4096
# More different numbers than this are a quantity, not grades.
_MOST_GRADES = 32
# Columns of numbers and words that are spoken of one by one: for each, the file is read again up to
# its line.
_MIXED_SHOWN = 8


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


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
