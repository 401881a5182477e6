"""From the columns of a table to the columns of a matrix, as scikit-learn steps, with a word on
each.

`plan_columns` looks at a frame and says what each column is; `ColumnPlan.transformer` gives the
steps that do what was said: numbers are imputed and scaled, categories become ones and zeros (rare
ones together), texts tf-idf, dates numbers. Columns that cannot help (constants, ids, empty ones)
are left out, by name and with the reason.
"""

import datetime
import decimal
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from forerank._text import counted, listed
from forerank.data.column_kinds import COLUMN_TYPES
from forerank.data.csv import named
from forerank.data.readers import LARGEST_EXACT, to_frame

__all__ = [
    "CategoryColumns",
    "ColumnPlan",
    "MixedColumn",
    "NumberColumns",
    "TableColumns",
    "TextColumn",
    "as_frame",
    "category_codes",
    "column_name",
    "distinct",
    "mixed_columns",
    "plan_columns",
    "value_places",
    "with_types",
]

# Values that words are counted in.
_LOOKED_AT = 20_000
# A text has this many words in the mean. Shorter strings are names of something.
_WORDS_OF_A_TEXT = 4.0
# From so many rows on, a range of integers is taken for an id, and short strings of which this
# share are distinct.
_FEWEST_FOR_AN_ID = 20
_OWN_VALUES = 0.95
_NAME_OF_AN_ID = re.compile(r"(?i)(^|[^a-z])id$|(?-i:[a-z]ID$|[a-z]Id$)")
# How pandas names the index of a frame that it wrote to a CSV file: not at all, or as it read that
# name again.
_NAME_OF_ROW_NUMBERS = re.compile(r"Unnamed: 0(\.\d+)?|column 1 \(no name\)")
# Names that it gives to an index that became a column; whole numbers that rise from row to row are
# row numbers then.
_NAME_OF_AN_INDEX = re.compile(r"Unnamed: \d+|column \d+ \(no name\)|index|level_\d+")
# Of row numbers at least this share are distinct; fewer where tables were put together.
_OWN_ROW_NUMBERS = 0.5
# Where this share of the values are numbers, of which there are more than so many, and at most so
# many different words are not, the words are taken for missing numbers.
_NEARLY_ALL = 0.95
_FEWEST_NUMBERS = 20
_MOST_WORDS = 5
_WHOLE_NUMBER = re.compile(r"[-+]?\d+")
_ZERO_BEFORE_DIGITS = re.compile(r"[-+]?0\d")
# Rows that are made into numbers at a time.
_ROWS_AT_A_TIME = 1 << 16
_MICROSECONDS_OF_A_DAY = 86_400_000_000
# As Python and R write what others write in small letters.
_WORDS = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false"}
# What people write for numbers and readers do not take for them: money, shares, commas.
_LIKE_A_NUMBER = re.compile(r"^[^\w\s]?\s?[-+]?\d[\d.,' ]*\s?[^\w\s]?$")
# A matrix with this share of numbers that are not zero is made dense.
_DENSE_ENOUGH = 0.6


@dataclass(frozen=True)
class ColumnPlan:
    """What is done with each column.

    Attributes
    ----------
    numbers, categories, texts, dates : list of str
    left_out : dict
        Column to reason.
    """

    numbers: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def used(self) -> list[str]:
        """The columns that take part."""
        return [*self.numbers, *self.dates, *self.categories, *self.texts]

    def transformer(self) -> "TableColumns":
        """The steps, not yet fitted. Columns of a frame are found by name, in any order; others are
        ignored.
        """
        steps: list[tuple[str, Any, list[str]]] = []
        if self.numbers:
            steps.append(("numbers", NumberColumns(), self.numbers))
        if self.dates:
            steps.append(("dates", NumberColumns(), self.dates))
        if self.categories:
            steps.append(("categories", CategoryColumns(), self.categories))
        steps += [(f"text {name}", TextColumn(), [name]) for name in self.texts]
        return TableColumns(steps)

    def kinds(self, frame: Any) -> dict[str, str]:
        """What is expected of each column that is used: "number", "date", "date with zone",
        "category" or "text".
        """
        kinds = dict.fromkeys(self.numbers, "number")
        for name in self.dates:
            kinds[name] = (
                "date with zone" if getattr(frame[name].dtype, "tz", None) is not None else "date"
            )
        return (
            kinds | dict.fromkeys(self.categories, "category") | dict.fromkeys(self.texts, "text")
        )

    def lines(self) -> list[str]:
        """What is done, one line per kind of column."""
        shown = []
        for names, noun, plural, what in (
            (self.numbers, "number", "numbers", "missing ones filled with the median, scaled"),
            (self.dates, "date", "dates", "as days, scaled"),
            (
                self.categories,
                "category",
                "categories",
                "one column per value, rare values together",
            ),
            (self.texts, "text", "texts", "words by tf-idf"),
        ):
            if names:
                shown.append(f"{counted(len(names), noun, plural)}, {what}: {listed(names)}")
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.left_out.items():
            by_reason.setdefault(reason, []).append(name)
        shown += [f"left out {listed(names)}: {reason}" for reason, names in by_reason.items()]
        return shown


def as_frame(data: Any) -> Any:
    """A pandas frame of a pandas, polars or Arrow one, as `plan_columns` and the fitted steps
    expect it.

    Names are strings (see `column_name`), booleans the words "true" and "false", decimals doubles,
    spans of time days; infinite numbers are missing. Whole numbers beyond 2^53, which doubles do
    not tell apart, are names: strings.
    """
    import pandas as pd

    if hasattr(data, "schema") and hasattr(data, "column_names"):
        data = to_frame(data)
    elif hasattr(data, "to_pandas"):
        data = data.to_pandas()
    if not isinstance(data, pd.DataFrame):
        raise TypeError(f"A pandas or polars frame is expected, not {type(data).__name__}.")
    names = named([column_name(name) for name in data.columns])
    if names != list(data.columns):
        data = data.set_axis(names, axis=1)
    if not data.columns.is_unique:
        twice = data.columns[data.columns.duplicated()][0]
        raise ValueError(f"The table has more than one column {twice!r}; names must differ.")
    changed = {}
    for name in data.columns:
        column = data[name]
        if pd.api.types.is_bool_dtype(column.dtype) or (
            column.dtype == object and _all_are(column, bool)
        ):
            changed[name] = column.map({True: "true", False: "false"})
        elif pd.api.types.is_timedelta64_dtype(column.dtype):
            changed[name] = column / pd.Timedelta(days=1)
        elif column.dtype == object and _all_are(column, decimal.Decimal):
            changed[name] = column.astype(np.float64)
        elif pd.api.types.is_integer_dtype(column.dtype):
            known = column.dropna() if column.hasnans else column
            if len(known) and max(int(known.max()), -int(known.min())) > LARGEST_EXACT:
                changed[name] = column.map(str, na_action="ignore").astype(object)
        elif pd.api.types.is_float_dtype(column.dtype):
            finite = np.isfinite(column.to_numpy(np.float64, na_value=np.nan))
            if not finite.all() and np.isinf(column.to_numpy(np.float64, na_value=np.nan)).any():
                changed[name] = column.where(finite)
    return data.assign(**changed) if changed else data


def column_name(name: Any) -> str:
    """The name of a column as a string; that of several levels is joined by points.

    Examples
    --------
    >>> column_name(7), column_name(("price", "mean")), column_name(("label", ""))
    ('7', 'price.mean', 'label')
    """
    return (
        ".".join(str(part) for part in name if str(part)) if isinstance(name, tuple) else str(name)
    )


def plan_columns(
    frame: Any, *, exclude: Any = (), types: Mapping[str, str] | None = None
) -> ColumnPlan:
    """Say what each column of a pandas frame is.

    Parameters
    ----------
    frame : pandas.DataFrame
        As from `as_frame`.
    exclude : iterable of str
        Columns that are something else, such as the target and the groups.
    types : mapping, optional
        Columns that are "number", "category", "text" or "date" whatever they look like; see
        `with_types`.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [31, 45, 28], "job": ["clerk", "cook", "clerk"], "country": ["fr", "fr", "fr"]})
    >>> plan = plan_columns(frame)
    >>> plan.numbers, plan.categories, plan.left_out
    (['age'], ['job'], {'country': 'the same in every row'})
    """
    plan = ColumnPlan()
    excluded = set(exclude)
    for name in frame.columns:
        if name in excluded:
            continue
        kind, reason = (
            (COLUMN_TYPES[types[name]], None) if types and name in types else _kind(frame[name])
        )
        if reason is not None:
            plan.left_out[name] = reason
        else:
            getattr(plan, kind).append(name)
    return plan


def _kind(column: Any) -> tuple[str, str | None]:
    """Which list of the plan a column goes to, or why it goes to none."""
    from pandas.api import types

    if column.dtype == object and _holds_containers(column):
        return "", "lists, bytes or other values that are no text and no number"
    codes, values = distinct(column)
    n_missing = int(np.count_nonzero(codes < 0))
    if n_missing == len(column):
        return "", "empty"
    if len(values) == 1 and n_missing == 0:
        return "", "the same in every row"
    if _holds_dates(column):
        return "dates", None
    if types.is_numeric_dtype(column.dtype):
        if types.is_integer_dtype(column.dtype) and n_missing == 0:
            if _are_row_numbers(column, len(values)):
                return "", "row numbers, as pandas writes them"
            if len(values) < max(len(column), _FEWEST_FOR_AN_ID):
                return "numbers", None
            if np.ptp(values) == len(values) - 1:
                return "", "an id: every whole number of a range once"
            if _NAME_OF_AN_ID.search(str(column.name)):
                return "", "an id by its name: another whole number in every row"
        return "numbers", None
    n_known = len(column) - n_missing
    if (
        n_known >= _FEWEST_FOR_AN_ID
        and len(values) >= _OWN_VALUES * n_known
        and _words(values) < _WORDS_OF_A_TEXT
    ):
        return "", _why_an_id(values)
    return ("texts" if _words(values) >= _WORDS_OF_A_TEXT else "categories"), None


def _are_row_numbers(column: Any, n_distinct: int) -> bool:
    """Whether whole numbers are the index of a frame that pandas wrote; rows may have been left out
    or shuffled.
    """
    name = str(column.name)
    if _NAME_OF_ROW_NUMBERS.fullmatch(name):
        return n_distinct >= _OWN_ROW_NUMBERS * len(column)
    rises = n_distinct == len(column) >= _FEWEST_FOR_AN_ID and column.is_monotonic_increasing
    return bool(rises and _NAME_OF_AN_INDEX.fullmatch(name))


def _why_an_id(values: Any) -> str:
    """An id, unless most of the strings are numbers in disguise."""
    some = [str(value) for value in values[:: max(1, len(values) // 1000)]]
    odd = next((value for value in map(str, values) if not _is_number(value)), None)
    if odd is not None and np.mean([_is_number(value) for value in some]) > 0.5:
        return f"words among its numbers, such as {odd!r}: mend them"
    if odd is not None and np.mean([bool(_LIKE_A_NUMBER.match(value)) for value in some]) > 0.5:
        return f"not read as numbers, being written like {odd!r}"
    if all(_WHOLE_NUMBER.fullmatch(value) for value in some) and any(
        abs(int(value)) > LARGEST_EXACT for value in some
    ):
        return "an id: another whole number beyond 2^53 in nearly every row"
    return "an id: another string in nearly every row"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class MixedColumn:
    """A column of numbers with words among them.

    Attributes
    ----------
    name : str
    words : list of str
        The different words.
    n_words, n_known : int
        Values that are words, and values that are not missing.
    row : int
        The first row with a word, counted from 0.
    is_number : bool
        Whether nearly all values are numbers, so that the words are taken for missing ones.
    """

    name: str
    words: list[str]
    n_words: int
    n_known: int
    row: int
    is_number: bool


def mixed_columns(frame: Any, *, exclude: Iterable[str] = ()) -> list[MixedColumn]:
    """The columns of words of which at least half are numbers."""
    excluded = set(exclude)
    found = (_mixed_column(frame[name]) for name in frame.columns if name not in excluded)
    return [each for each in found if each is not None]


def _mixed_column(column: Any) -> MixedColumn | None:
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column.dtype) or _holds_dates(column):
        return None
    if column.dtype == object and _holds_containers(column):
        return None
    codes, values = distinct(column)
    some = values[:: max(1, len(values) // 1000)]
    if not any(_is_number(str(value)) for value in some):
        return None
    texts = pd.Series([str(value) for value in values], dtype=object)
    is_word = pd.to_numeric(texts, errors="coerce").isna().to_numpy()
    known = codes >= 0
    rows = known & is_word[codes]
    n_words, n_known = int(rows.sum()), int(known.sum())
    if not n_words or 2 * n_words > n_known:
        return None
    words, numbers = texts[is_word].tolist(), texts[~is_word]
    is_number = n_words <= (1 - _NEARLY_ALL) * n_known and len(
        words
    ) <= _MOST_WORDS < _FEWEST_NUMBERS < len(numbers)
    is_number = is_number and not any(
        _ZERO_BEFORE_DIGITS.match(text) for text in numbers
    )  # a code, such as 007
    return MixedColumn(str(column.name), words, n_words, n_known, int(np.argmax(rows)), is_number)


def with_types(
    frame: Any,
    types: Mapping[str, str],
    refuse: Callable[[str, int], Exception],
    *,
    missing: Mapping[str, Sequence[str]] | None = None,
) -> Any:
    """A frame whose columns are of the given types; a value that is not is an error.

    Parameters
    ----------
    frame : pandas.DataFrame
        As from `as_frame`.
    types : mapping from names to "number", "category", "text", "date" or "date with zone"
    refuse : callable
        Makes the error from what is wrong and the row in which it is, counted from 0.
    missing : mapping from names to words, optional
        The words in columns of numbers that stand for a missing one.
    """
    import pandas as pd

    changed: dict[str, Any] = {}
    for name, kind in types.items():
        column = frame[name]
        is_number = pd.api.types.is_numeric_dtype(column.dtype)
        is_date = pd.api.types.is_datetime64_any_dtype(column.dtype)
        if kind == "number" and not is_number:
            words = (missing or {}).get(name)
            if words:
                column = column.astype(object).where(~column.astype(object).isin(words))
            changed[name] = _read_as(pd.to_numeric, column, "a number", is_date, refuse)
        elif kind.startswith("date") and not is_date and not _holds_dates(column):
            changed[name] = _read_as(_dates, column, "a date such as 2021-03-04", is_number, refuse)
        elif kind in ("category", "text") and is_number:
            # 1 and 1.0 are one word: integers with gaps among them are doubles.
            changed[name] = column.map(
                lambda v: str(int(v)) if float(v).is_integer() else str(v), na_action="ignore"
            )
    return frame.assign(**changed) if changed else frame


def _dates(texts: Any, errors: str) -> Any:
    """ISO 8601 alone: the day and the month of other ways of writing a date are anybody's guess."""
    import pandas as pd

    dates = pd.to_datetime(texts, errors=errors, format="ISO8601", utc=True)
    first = texts.dropna().iloc[:1].astype(str)
    has_zone = first.str.contains(r":.*(?:Z|[-+]\d\d(?::?\d\d)?)$").any()
    return dates if has_zone else dates.dt.tz_localize(None)


def _read_as(
    read: Callable[..., Any],
    column: Any,
    what: str,
    is_another_kind: bool,
    refuse: Callable[[str, int], Exception],
) -> Any:
    """Words as numbers or dates. Numbers are no dates, and dates no numbers: pandas would take one
    for the other.
    """
    import pandas as pd

    given = column.notna()
    texts = column.astype(object)
    values = (
        pd.Series(np.nan, index=column.index) if is_another_kind else read(texts, errors="coerce")
    )
    bad = (given & values.isna()).to_numpy()
    if bad.any():
        row = int(np.argmax(bad))
        raise refuse(
            f"the column {column.name!r} has {str(column.iloc[row])!r}, and {what} is expected", row
        )
    return values


def distinct(column: Any) -> tuple[NDArray[np.integer], Any]:
    """The number of each row's value, and the values; -1 where one is missing."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy()
        used = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(column.cat.categories)))
        if used.size < len(column.cat.categories):
            place = np.full(len(column.cat.categories) + 1, -1)
            place[used] = np.arange(used.size)
            codes = place[codes]
        return codes, column.cat.categories[used]
    return pd.factorize(column, use_na_sentinel=True)


def _words(values: Any) -> float:
    """The mean number of words, over some of the values."""
    some = values[:: max(1, len(values) // _LOOKED_AT)]
    return float(np.mean([len(str(value).split()) for value in some]))


def _all_are(column: Any, kind: type) -> bool:
    """Whether the first values of a column of Python objects are of a kind."""
    known = column.dropna().iloc[:100]
    return len(known) > 0 and all(isinstance(value, kind) for value in known)


def _holds_containers(column: Any) -> bool:
    known = column.dropna().iloc[:100]
    return any(
        isinstance(value, bytes) or (hasattr(value, "__len__") and not isinstance(value, str))
        for value in known
    )


class TableColumns(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Steps for groups of columns, side by side: a ColumnTransformer that fills its matrix some
    rows at a time.

    ColumnTransformer makes each part whole and then stacks them, and so needs the matrix twice and
    more; also while it is fitted. This one needs it once.

    Parameters
    ----------
    steps : list of (name, transformer, columns)
        The transformers take pandas frames.

    Attributes
    ----------
    transformers_ : list of (name, fitted transformer, columns)
    output_indices_ : dict
        For each step, the slice of its columns in the matrix.
    """

    def __init__(self, steps: list[tuple[str, Any, list[str]]]) -> None:
        self.steps = steps

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit each step on its columns."""
        self.transformers_ = [
            (name, clone(step).fit(X[columns]), columns) for name, step, columns in self.steps
        ]
        self.feature_names_in_ = np.array(
            [name for *_, columns in self.steps for name in columns], dtype=object
        )
        self.n_features_in_ = self.feature_names_in_.size
        first, self.output_indices_ = 0, {}
        for name, step, columns in self.transformers_:
            width = len(step.get_feature_names_out(columns))
            self.output_indices_[name] = slice(first, first + width)
            first += width
        some = self._stacked(X.iloc[:_ROWS_AT_A_TIME])
        self.sparse_output_ = sp.issparse(some) and bool(
            some.nnz < _DENSE_ENOUGH * some.shape[0] * some.shape[1]
        )
        return self

    def transform(self, X: Any) -> Any:
        """The matrix: sparse where most of it is zero, else dense."""
        return self.transform_rows(X, np.arange(len(X)))

    def transform_rows(self, X: Any, rows: NDArray[np.integer]) -> Any:
        """The matrix of these rows, in this order."""
        check_is_fitted(self, "transformers_")
        missing = [name for name in self.feature_names_in_ if name not in X.columns]
        if missing:
            raise ValueError(f"The columns {missing} are missing.")
        parts = (
            self._stacked(X.iloc[rows[begin : begin + _ROWS_AT_A_TIME]])
            for begin in range(0, len(rows), _ROWS_AT_A_TIME)
        )
        shape = (len(rows), max(part.stop for part in self.output_indices_.values()))
        return _filled_sparse(parts, shape) if self.sparse_output_ else _filled_dense(parts, shape)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """The names of the columns of the matrix."""
        check_is_fitted(self, "transformers_")
        return np.concatenate(
            [step.get_feature_names_out(columns) for _, step, columns in self.transformers_]
        )

    def origins(self) -> list[str]:
        """For each column of the matrix, the column of the table that it comes from."""
        found: list[str] = []
        for name, step, columns in self.transformers_:
            part = self.output_indices_[name]
            each = (part.stop - part.start) // len(columns)
            widths = step.widths_ if isinstance(step, CategoryColumns) else [each] * len(columns)
            found += [
                column for column, width in zip(columns, widths, strict=True) for _ in range(width)
            ]
        return found

    def _stacked(self, X: Any) -> Any:
        parts = [step.transform(X[columns]) for _, step, columns in self.transformers_]
        if not any(sp.issparse(part) for part in parts):
            return np.hstack([np.asarray(part) for part in parts])
        matrices = [sp.csr_matrix(part) for part in parts]
        for matrix in matrices:
            matrix.check_format(
                full_check=True
            )  # a model from a stranger may name columns that are not there
        return sp.hstack(matrices, format="csr")


def _filled_dense(parts: Iterator[Any], shape: tuple[int, int]) -> NDArray[np.float64]:
    out, begin = np.empty(shape), 0
    for part in parts:
        out[begin : begin + part.shape[0]] = part.toarray() if sp.issparse(part) else part
        begin += part.shape[0]
    return out


def _filled_sparse(parts: Iterator[sp.csr_matrix], shape: tuple[int, int]) -> sp.csr_matrix:
    """Stacked in arrays that grow where they are, so that nothing is there twice."""
    data, indices = np.empty(0), np.empty(0, dtype=np.int32)
    indptr, row = np.zeros(shape[0] + 1, dtype=np.int64), 0
    for part in parts:
        used = int(indptr[row])
        if used + part.nnz > data.size:
            share = (row + part.shape[0]) / shape[0]
            room = int((used + part.nnz) / share * 1.02) + 1024
            data.resize(room, refcheck=False)
            indices.resize(room, refcheck=False)
        data[used : used + part.nnz] = part.data
        indices[used : used + part.nnz] = part.indices
        indptr[row + 1 : row + 1 + part.shape[0]] = used + part.indptr[1:]
        row += part.shape[0]
    used = int(indptr[-1])
    data.resize(used, refcheck=False)
    indices.resize(used, refcheck=False)
    if used < 2**31:
        indptr = indptr.astype(np.int32)
    return sp.csr_matrix((data, indices, indptr), shape=shape)


class CategoryColumns(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """One column of ones and zeros per value; rare values share one, which unknown ones fall into.

    What scikit-learn's OneHotEncoder does, on the distinct values of a column in place of its rows:
    a million rows of a dozen values cost as much as their codes. A missing value is a value like
    others.

    Parameters
    ----------
    min_frequency : float, default=0.001
        Values in a smaller share of the rows are rare.
    max_categories : int, default=200
        Those beyond the most frequent ones are rare, too.

    Attributes
    ----------
    encoders_ : list of OneHotEncoder
        One for each column, of the values as strings; a missing one is the empty string.
    widths_ : list of int
        How many columns each of them makes.
    """

    def __init__(self, min_frequency: float = 0.001, max_categories: int = 200) -> None:
        self.min_frequency = min_frequency
        self.max_categories = max_categories

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the values and which of them are rare."""
        self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.n_features_in_ = X.shape[1]
        self.encoders_ = [self._encoder(X[name]) for name in self.feature_names_in_]
        self.widths_ = [len(encoder.get_feature_names_out()) for encoder in self.encoders_]
        return self

    def _encoder(self, column: Any) -> OneHotEncoder:
        codes, values = category_codes(column)
        counts = np.bincount(codes, minlength=len(values))
        values, counts = values[counts > 0], counts[counts > 0]
        frequent = counts >= self.min_frequency * codes.size
        if frequent.sum() + (not frequent.all()) > self.max_categories:
            frequent[np.argsort(-counts, kind="stable")[self.max_categories - 1 :]] = False
        # Twice where it is frequent and once where it is rare: the encoder need not see the rows
        # themselves.
        sample = np.concatenate([values[frequent], values])
        return OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=2).fit(
            sample[:, None]
        )

    def transform(self, X: Any) -> sp.csr_matrix:
        """A sparse matrix; rows whose values are unknown have zeros where there are no rare values."""
        check_is_fitted(self, "encoders_")
        places = np.empty((len(X), self.n_features_in_), dtype=np.int32)
        first = 0
        for k, encoder in enumerate(self.encoders_):
            codes, values = category_codes(X[self.feature_names_in_[k]])
            places[:, k] = value_places(encoder, values)[codes]
            places[places[:, k] >= 0, k] += first
            first += self.widths_[k]
        known = places >= 0
        indptr = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
        return sp.csr_matrix((np.ones(indptr[-1]), places[known], indptr), shape=(len(X), first))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """COLUMN=VALUE, and COLUMN=(rare) for the rare ones together."""
        check_is_fitted(self, "encoders_")
        names = []
        for column, encoder in zip(self.feature_names_in_, self.encoders_, strict=True):
            for name in encoder.get_feature_names_out(["x"]):
                value = name.removeprefix("x_")
                value = {"": "(missing)", "infrequent_sklearn": "(rare)"}.get(value, value)
                names.append(f"{column}={value}")
        return np.array(names, dtype=object)


def value_places(encoder: OneHotEncoder, values: NDArray) -> NDArray[np.intp]:
    """The output column of each value; -1 for a value that has none."""
    if not len(values):
        return np.empty(0, dtype=np.intp)
    with warnings.catch_warnings(), sklearn.config_context(transform_output="default"):
        warnings.simplefilter("ignore", UserWarning)  # unknown values are what this is about
        rows = encoder.transform(values[:, None])
    places = np.full(len(values), -1, dtype=np.intp)
    places[np.diff(rows.indptr) == 1] = rows.indices
    return places


def category_codes(column: Any) -> tuple[NDArray[np.integer], NDArray]:
    """The number of each row's value, and the values as strings; a missing one is the empty string.

    The column is one of pandas, or a dictionary of pyarrow.
    """
    import pandas as pd

    if _is_arrow(column):
        column = column.unify_dictionaries().combine_chunks()
        codes, values = (
            column.indices.fill_null(-1).to_numpy(zero_copy_only=False),
            column.dictionary.to_pylist(),
        )
    elif isinstance(column.dtype, pd.CategoricalDtype):
        codes, values = column.cat.codes.to_numpy(), column.cat.categories.tolist()
    else:
        codes, values = distinct(column)
    texts = np.array([_WORDS.get(str(value), str(value)) for value in values], dtype=object)
    if codes.size and codes.min() < 0:
        codes = np.where(codes < 0, len(texts), codes)
        texts = np.append(texts, "")
    return codes, texts


def _is_arrow(column: Any) -> bool:
    return hasattr(column, "combine_chunks")


class NumberColumns(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Numbers, and dates as days since 1970: missing ones filled with the median, then centred and
    scaled.

    What SimpleImputer and StandardScaler do one after the other, one column at a time and so
    without copies of all of them. Infinite numbers are missing.

    Attributes
    ----------
    median_, mean_, scale_ : arrays
        Of each column; mean and standard deviation with the missing ones filled.
    dates_ : list of bool
        Whether it holds dates.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn median, mean and scale."""
        self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.n_features_in_ = X.shape[1]
        self.median_, self.mean_, self.scale_ = np.zeros((3, self.n_features_in_))
        self.dates_ = [_holds_dates(X[name]) for name in self.feature_names_in_]
        for k, name in enumerate(self.feature_names_in_):
            values = column_floats(X[name], dates=self.dates_[k])
            known = np.isfinite(values)
            if known.any():
                self.median_[k] = np.median(values if known.all() else values[known])
            values = np.where(known, values, self.median_[k])
            largest = max(np.abs(values).max(initial=0.0), np.finfo(np.float64).tiny)
            values /= largest  # squares of large numbers overflow
            self.mean_[k], spread = largest * values.mean(), largest * values.std()
            # Equal values have a spread of rounding errors, by which nothing should be scaled.
            self.scale_[k] = spread if spread > 1e-14 * abs(self.mean_[k]) else 1.0
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """One column of scaled numbers for each column."""
        check_is_fitted(self, "median_")
        names = self.feature_names_in_
        return np.column_stack([self.transform_column(X[name], k) for k, name in enumerate(names)])

    def transform_column(self, column: Any, k: int) -> NDArray[np.float64]:
        """The scaled numbers of column k."""
        values = column_floats(column, dates=self.dates_[k])
        values = np.where(np.isfinite(values), values, self.median_[k])
        values -= self.mean_[k]
        values /= self.scale_[k]
        return values


def column_floats(column: Any, *, dates: bool = False) -> NDArray[np.float64]:
    """Numbers as doubles, dates as days since 1970; missing ones as NaN. Of pandas or pyarrow."""
    import pandas as pd

    if _is_arrow(column):
        from pyarrow import types

        if types.is_floating(column.type) or types.is_integer(column.type):
            return column.to_numpy().astype(np.float64, copy=False)
        column = column.to_pandas()
    if not dates or pd.api.types.is_numeric_dtype(column.dtype):  # days already
        if not pd.api.types.is_numeric_dtype(column.dtype):
            column = pd.to_numeric(column.astype(object)).astype(
                np.float64
            )  # strings and decimals that are numbers
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    # Microseconds: nanoseconds end in the year 2262, and open ends are written as 9999-12-31.
    times = column.to_numpy(dtype="datetime64[us]")
    return np.where(np.isnat(times), np.nan, times.astype(np.int64) / _MICROSECONDS_OF_A_DAY)


def _holds_dates(column: Any) -> bool:
    from pandas.api import types

    if types.is_datetime64_any_dtype(column.dtype):
        return True
    return column.dtype == object and _all_are(column, datetime.date)


class TextColumn(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """tf-idf of the words of one column; a missing text has no words."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the words."""
        self.n_features_in_ = 1
        self.tfidf_ = TfidfVectorizer(sublinear_tf=True, max_features=100_000, dtype=np.float64)
        texts = self._texts(X)
        try:
            self.tfidf_.fit(texts)
        except ValueError as error:
            raise ValueError(
                f"The column {_name(X)!r} has no words to learn from ({error})."
            ) from None
        # A model file keeps a number of numpy's as an array of its own, and 100,000 of them take
        # minutes to write.
        self.tfidf_.vocabulary_ = {
            word: int(place) for word, place in self.tfidf_.vocabulary_.items()
        }
        return self

    def transform(self, X: Any) -> Any:
        """A sparse matrix with a column per word."""
        check_is_fitted(self, "tfidf_")
        return self.tfidf_.transform(self._texts(X))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """The words, after the name of the column."""
        prefix = "" if input_features is None else f"{input_features[0]}: "
        return np.array(
            [f"{prefix}{word}" for word in self.tfidf_.get_feature_names_out()], dtype=object
        )

    def _texts(self, X: Any) -> Any:
        column = X.iloc[:, 0].astype(object)
        return column.where(column.notna(), "").astype(str)


def _name(X: Any) -> str:
    return str(X.columns[0])
