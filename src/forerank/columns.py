"""From the columns of a table to the columns of a matrix, as scikit-learn steps, with a word on each.

`plan_columns` looks at a frame and says what each column is; `ColumnPlan.transformer` is a ColumnTransformer that does
what was said: numbers are imputed and scaled, categories become ones and zeros (rare ones together), texts tf-idf,
dates numbers. Columns that cannot help (constants, ids, empty ones) are left out, by name and with the reason.
"""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

__all__ = ["ColumnPlan", "DateNumbers", "TextColumn", "plan_columns"]

# Rows that a column is judged by: enough for shares, and a sort of so few costs nothing.
_LOOKED_AT = 20_000
# A text has this many words in the mean. Shorter strings are names of something.
_WORDS_OF_A_TEXT = 4.0
# Categories in less than this share of the rows are rare and go together, as do those beyond so many.
_RARE = 0.001
_MOST_CATEGORIES = 200
# Distinct in all of so many rows, an integer that counts up or a short string is taken for an id.
_FEWEST_FOR_AN_ID = 20


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

    def transformer(self) -> ColumnTransformer:
        """The steps, not yet fitted. Columns of a frame are found by name, in any order; others are ignored."""
        steps: list[tuple[str, Any, Any]] = []
        if self.numbers:
            steps.append(("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), self.numbers))
        if self.dates:
            dates = make_pipeline(DateNumbers(), SimpleImputer(strategy="median"), StandardScaler())
            steps.append(("dates", dates, self.dates))
        if self.categories:
            encoder = OneHotEncoder(
                handle_unknown="infrequent_if_exist", min_frequency=_RARE, max_categories=_MOST_CATEGORIES
            )
            steps.append(("categories", encoder, self.categories))
        steps += [(f"text {name}", TextColumn(), [name]) for name in self.texts]
        return ColumnTransformer(steps, verbose_feature_names_out=False)

    def lines(self) -> list[str]:
        """What is done, one line per kind of column."""
        shown = []
        for names, what in (
            (self.numbers, "numbers, missing ones filled with the median, scaled"),
            (self.dates, "dates, as days, scaled"),
            (self.categories, "categories, one column per value, rare values together"),
            (self.texts, "texts, words by tf-idf"),
        ):
            if names:
                shown.append(f"{len(names)} {what}: {', '.join(names)}")
        shown += [f"left out {name}: {reason}" for name, reason in self.left_out.items()]
        return shown


def plan_columns(frame: Any, *, exclude: Any = ()) -> ColumnPlan:
    """Say what each column of a pandas frame is.

    Parameters
    ----------
    frame : pandas.DataFrame
    exclude : iterable of str
        Columns that are something else, such as the target and the groups.

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
        kind, reason = _kind(frame[name], str(name))
        if reason is not None:
            plan.left_out[name] = reason
        else:
            getattr(plan, kind).append(name)
    return plan


def _kind(column: Any, name: str) -> tuple[str, str | None]:
    """Which list of the plan a column goes to, or why it goes to none."""
    from pandas.api import types

    known = column.dropna()
    if known.empty:
        return "", "empty"
    part = known.iloc[:_LOOKED_AT]
    if types.is_datetime64_any_dtype(column.dtype) or _holds_dates(part):
        return ("", "the same in every row") if _constant(known, column) else ("dates", None)
    if types.is_numeric_dtype(column.dtype):
        if _constant(known, column):
            return "", "the same in every row"
        if types.is_integer_dtype(column.dtype) and _counts_up(part):
            return "", "an id: whole numbers that count up"
        return "numbers", None
    texts = part.astype(str)
    if _constant(known, column):
        return "", "the same in every row"
    words = float(texts.str.count(r"\S+").mean())
    if words >= _WORDS_OF_A_TEXT:
        return "texts", None
    if len(texts) >= _FEWEST_FOR_AN_ID and texts.nunique() == len(texts):
        return "", "an id: a different string in every row"
    return "categories", None


def _constant(known: Any, column: Any) -> bool:
    """One value and none missing; where some are missing, missing is a value too."""
    return known.nunique() == 1 and len(known) == len(column)


def _counts_up(part: Any) -> bool:
    values = part.to_numpy(dtype=np.float64)
    return values.size >= _FEWEST_FOR_AN_ID and bool(np.all(np.diff(values) == 1.0))


def _holds_dates(part: Any) -> bool:
    """Whether these are the Python objects as which pyarrow gives dates without a time."""
    import datetime

    return part.dtype == object and all(isinstance(value, datetime.date) for value in part.iloc[:100])


class DateNumbers(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Dates as days since 1970; missing ones as NaN."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Note the columns."""
        self.n_features_in_ = X.shape[1]
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """One column of days for each column of dates."""
        import pandas as pd

        check_is_fitted(self, "n_features_in_")
        frame = pd.DataFrame(X)
        days = np.empty(frame.shape)
        for k in range(frame.shape[1]):
            times = pd.to_datetime(frame.iloc[:, k], utc=True)
            days[:, k] = (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
        return days


class TextColumn(TransformerMixin, BaseEstimator):
    """tf-idf of the words of one column; a missing text has no words."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the words."""
        self.n_features_in_ = 1
        self.tfidf_ = TfidfVectorizer(sublinear_tf=True, max_features=100_000, dtype=np.float64)
        texts = self._texts(X)
        try:
            self.tfidf_.fit(texts)
        except ValueError as error:
            raise ValueError(f"The column {_name(X)!r} has no words to learn from ({error}).") from None
        return self

    def transform(self, X: Any) -> Any:
        """A sparse matrix with a column per word."""
        check_is_fitted(self, "tfidf_")
        return self.tfidf_.transform(self._texts(X))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """The words, after the name of the column."""
        prefix = "" if input_features is None else f"{input_features[0]}: "
        return np.array([f"{prefix}{word}" for word in self.tfidf_.get_feature_names_out()], dtype=object)

    def _texts(self, X: Any) -> Any:
        return X.iloc[:, 0].fillna("").astype(str)


def _name(X: Any) -> str:
    return str(X.columns[0])
