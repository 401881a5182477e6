"""Files and frames as a model reads them."""

from typing import Any

from forerank.data.source import DataSource, ReadOptions
from forerank.models import Model
from forerank.models.scoring import missing_words

__all__ = ["model_source", "model_table"]


def model_source(model: Model, data: Any, options: ReadOptions) -> DataSource:
    """The source of rows for a model, in the encoding of its training file unless it is UTF-8."""
    return DataSource(data, options, usual=model.summary.get("encoding"))


def model_table(model: Model, source: DataSource) -> Any:
    """The table of a source, with the columns of the model read as the kinds it was fitted on."""
    if not model.columns:
        raise source.error("the model was fitted on a matrix (svmlight or .npz)")
    groups = {} if model.group is None else {model.group: "text"}
    return source.frame({**model.columns, **groups}, missing_words(model))
