"""Export to a plain scikit-learn pipeline, for machines without forerank."""

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from forerank._text import listed
from forerank.data.transformers import CategoryColumns, NumberColumns, TableColumns, TextColumn
from forerank.data.word_counts import WordCounts
from forerank.models.file import Model
from forerank.models.scoring import linear_steps, score_parts

__all__ = ["to_sklearn"]


def to_sklearn(model: Model) -> Pipeline:
    """A pipeline of scikit-learn's classes alone that gives the same scores.

    Numbers, categories and texts become SimpleImputer, StandardScaler, OneHotEncoder and
    TfidfVectorizer in a ColumnTransformer; a linear ranker becomes a LinearSVC with its weights.
    Rows are frames with unchanged strings; a missing category must be NaN, a missing text an empty
    string. Dates have no equivalent and raise ValueError.
    """
    if any(part.ensemble is not None for part in score_parts(model)[0]):
        raise ValueError(
            "scikit-learn has no class that holds given trees; export boosted trees to ONNX"
        )
    steps, ranker, weights, intercept = linear_steps(model)
    classifier = LinearSVC()
    classifier.coef_, classifier.intercept_ = weights[None, :], np.array([intercept])
    classifier.classes_ = ranker.classes_ if ranker.classes_.size == 2 else np.array([False, True])
    classifier.n_features_in_ = weights.size
    classifier.n_iter_ = 0
    if isinstance(steps, TableColumns):
        steps = _column_transformer(steps, model.columns)
    elif isinstance(steps, WordCounts):
        steps = steps.tfidf_
    return Pipeline([("columns", steps), ("ranker", classifier)])


def _column_transformer(steps: TableColumns, kinds: dict[str, str]) -> ColumnTransformer:
    import pandas as pd

    parts: list[tuple[str, Any, Any]] = []
    example: dict[str, Any] = {}
    for name, step, columns in steps.transformers_:
        if any(kinds[column].startswith("date") for column in columns):
            raise ValueError(
                f"scikit-learn has no transformer for dates ({listed(columns)}); "
                "fit the model without them."
            )
        if isinstance(step, NumberColumns):
            parts.append((name, FrozenEstimator(_number_pipeline(step)), list(columns)))
            medians = zip(columns, step.median_, strict=True)
            example |= {column: [value] for column, value in medians}
        elif isinstance(step, CategoryColumns):
            for column, encoder in zip(columns, step.encoders_, strict=True):
                fill = SimpleImputer(strategy="constant", fill_value="")
                fill.fit(pd.DataFrame({column: [""]}, dtype=object))
                both = Pipeline([("missing", fill), ("values", encoder)])
                parts.append((f"category {column}", FrozenEstimator(both), [column]))
                example[column] = [encoder.categories_[0][0]]
        elif isinstance(step, TextColumn):
            parts.append((name, FrozenEstimator(step.tfidf_), columns[0]))
            example[columns[0]] = [""]
        else:
            raise ValueError(
                f"scikit-learn has no transformer for the curves of {listed(columns)}; "
                "fit a linear model on plain columns."
            )
    transformer = ColumnTransformer(parts, sparse_threshold=1.0 if steps.sparse_output_ else 0.0)
    frame = pd.DataFrame({column: example[column] for column in steps.feature_names_in_})
    transformer.fit(frame)
    # The steps were frozen for this fit only.
    transformer.transformers_ = [
        (name, step.estimator if isinstance(step, FrozenEstimator) else step, columns)
        for name, step, columns in transformer.transformers_
    ]
    return transformer


def _number_pipeline(step: NumberColumns) -> Pipeline:
    """Imputer and scaler, fitted on the fewest rows that have this median, mean and scale."""
    import pandas as pd

    rows = pd.DataFrame([step.median_], columns=step.feature_names_in_)
    imputer = SimpleImputer(strategy="median").fit(rows)
    scaler = StandardScaler().fit(np.vstack([step.mean_ - step.scale_, step.mean_ + step.scale_]))
    # Set exactly: the fit above has rounding errors.
    scaler.mean_, scaler.scale_ = step.mean_.copy(), step.scale_.copy()
    scaler.var_ = step.scale_**2
    return Pipeline([("missing", imputer), ("scale", scaler)])
