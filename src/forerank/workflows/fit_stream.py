"""Fitting a ranker on files larger than memory: the method and the columns from a sample of the
rows, the weights from all of them.

A sample of the rows is drawn in one read. On it the columns are prepared, and the ranker is chosen,
measured and fitted as for a file that fits into memory (`forerank.workflows.fit`). Then the linear
ranker at its end is fitted on all rows, which are read block by block and prepared in the same way.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from forerank._text import counted, listed
from forerank.data.formats import file_kind, is_compressed
from forerank.data.forms import in_form
from forerank.data.frame_sample import draw_rows, sample_size
from forerank.data.frames import as_frame
from forerank.data.group_labels import group_values
from forerank.data.labels import is_unlabelled, label_text, read_labels
from forerank.data.readers import check_columns, iter_table
from forerank.data.row_blocks import BlockStorage
from forerank.data.row_sources import Batch, find_files, known_rows, name_of_files
from forerank.data.row_stream import RowStream
from forerank.data.source import ReadOptions
from forerank.estimators import PairwiseRanker, PointwiseRanker
from forerank.exceptions import DataFileError
from forerank.models import Model
from forerank.models.tables import column_types, model_frame, model_readings
from forerank.selection import Ranker

__all__ = ["FileSet", "fit_file_set", "streamed_files"]

Say = Callable[[str], None]

# Formats that are read in blocks.
_STREAMED = ("csv", "tsv", "parquet", "feather")
# Ratio of the memory of a fit to the size of its file: tables and matrices of a CSV file, of a
# compressed one, and of Parquet and Feather.
_MEMORY_OF_TEXT, _MEMORY_OF_COMPRESSED, _MEMORY_OF_COLUMNS = 4.0, 20.0, 10.0
# Share of the memory of the machine that a fit in memory may take, where no memory is given.
_SHARE_OF_MACHINE = 0.5


def machine_memory() -> int:
    """Bytes of memory of the machine; 8 GiB where the system does not say."""
    try:
        return int(os.sysconf("SC_PHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return 2**33


def streamed_files(data: Any, format: str | None, memory: int | None) -> list[Path] | None:
    """The files to be streamed: those of a pattern, or one whose fit would pass its share of the
    memory; None for all other data.
    """
    if not isinstance(data, str | Path):
        return None
    is_pattern = not Path(data).exists() and any(mark in str(data) for mark in "*?[")
    if not is_pattern and not Path(data).is_file():
        return None
    files = find_files(data)
    kinds = {file_kind(path, format) for path in files} if is_pattern else set()
    if is_pattern and not (len(kinds) == 1 and kinds <= set(_STREAMED)):
        raise DataFileError(
            data, f"files of format {listed(sorted(kinds))} cannot be read together; give one file"
        )
    if is_pattern:
        return files
    try:
        kind = file_kind(files[0], format)
    except DataFileError:  # reported where the file is read
        return None
    limit = memory if memory is not None else int(_SHARE_OF_MACHINE * machine_memory())
    return files if kind in _STREAMED and _memory_of(files[0], kind) > limit else None


def _memory_of(path: Path, kind: str) -> float:
    """Rough bytes of a fit in memory."""
    size = path.stat().st_size
    if kind in ("csv", "tsv"):
        return size * (_MEMORY_OF_COMPRESSED if is_compressed(path) else _MEMORY_OF_TEXT)
    return size * _MEMORY_OF_COLUMNS


class FileSet:
    """Tables of one format that are read block by block.

    Parameters
    ----------
    files : list of paths
    options : ReadOptions
    target, group : str
    """

    def __init__(
        self, files: list[Path], options: ReadOptions, target: str | None, group: str | None
    ) -> None:
        self.files, self._options = files, options
        if target is None:
            raise DataFileError(files[0], "no target was given; choose one of its columns")
        self.target, self.group = target, group
        self.kind = file_kind(files[0], options.format)
        check_columns(files[0], list(self.head().columns), target, group, *options.drop)

    def head(self) -> Any:
        """The first rows."""
        for frame in self.frames():
            return frame
        raise DataFileError(self.files[0], "there are no rows")

    def frames(self, columns: list[str] | None = None, **csv_options: Any) -> Iterator[Any]:
        """All rows as frames, without those that have no label if these are to be skipped.

        `csv_options` are `types` and `readings` of the columns of CSV files. One of several files
        may be empty.
        """
        options, allow_empty = self._options, len(self.files) > 1
        for path in self.files:
            reading: dict[str, Any] = {"columns": columns, "format": options.format}
            if file_kind(path, options.format) in ("csv", "tsv"):
                reading |= {"delimiter": options.delimiter, "encoding": options.encoding}
                reading |= csv_options
            for frame in iter_table(path, allow_empty=allow_empty, **reading):
                frame = as_frame(frame)
                if options.skip_unlabelled and self.target in frame.columns:
                    frame = frame[~is_unlabelled(frame[self.target])]
                yield frame

    def sample(self, size: float, seed: int) -> tuple[Any, Counter[str]]:
        """A random sample of at most `size` rows (complete groups), and the number of rows of each
        label over all rows.
        """
        counts: Counter[str] = Counter()

        def counted_frames() -> Iterator[Any]:
            for frame in self.frames():
                for value, count in frame[self.target].value_counts(dropna=False).items():
                    counts[label_text(value).strip()] += int(count)
                yield frame

        drawn = draw_rows(counted_frames(), size, seed, self.group)
        if drawn is None:
            raise DataFileError(name_of_files(self.files), "there are no rows")
        return drawn, counts


class _PreparedRows:
    """The rows of files as the columns of a fitted model, for `RowStream`."""

    transformer = None

    def __init__(self, files: FileSet, model: Model, y_of: Mapping[str, Any]) -> None:
        self._files, self._model, self._y_of = files, model, y_of
        self.files, self.name = files.files, name_of_files(files.files)
        self._steps, self._form, self._map = _steps_of(model)
        self.columns: list[str] = []
        self.n_columns_read, self.n_rows = len(model.columns), known_rows(files.files, files.kind)
        self._in_blocks = BlockStorage()

    def _matrix(self, frame: Any, n_before: int) -> Any:
        frame = model_frame(self._model, frame, self.name, rows_before=n_before)
        X = in_form(self._steps.transform(frame), self._form)
        return self._in_blocks(X if self._map is None else self._map.transform(X))

    def batches(self) -> Iterator[Batch]:
        """All rows, block by block."""
        files = self._files
        read = {"types": column_types(self._model), "readings": model_readings(self._model)}
        wanted = list(dict.fromkeys([*self._model.columns, files.target, *_listed(files.group)]))
        n_rows = 0
        for frame in files.frames(wanted, **read):
            if len(frame):
                group = None
                if files.group is not None:
                    group = self._groups(frame[files.group], n_rows)
                X, y = self._matrix(frame, n_rows), self._labels(frame[files.target])
                yield Batch(X, y, None, group)
            n_rows += len(frame)

    def _groups(self, column: Any, n_before: int) -> NDArray:
        missing = column.isna().to_numpy()
        if missing.any():
            where = f"row {n_before + int(np.argmax(missing)) + 1:,}"
            problem = f"{where}: the group column {column.name!r} is empty here; give each row one"
            raise DataFileError(self.name, problem)
        return group_values(column)

    def _labels(self, column: Any) -> NDArray:
        import pandas as pd

        codes, values = pd.factorize(column)
        texts = [label_text(value).strip() for value in values]
        unknown = [text for text in texts if text not in self._y_of]
        if unknown or (codes < 0).any():
            problem = f"the label {unknown[0]!r} is not in the sample" if unknown else (
                f"a row has no label in {self._files.target!r}")  # fmt: skip
            raise DataFileError(
                self.name, f"{problem} from which the method was chosen; remove these rows"
            )
        return np.array([self._y_of[text] for text in texts])[codes]


def _listed(name: str | None) -> list[str]:
    return [] if name is None else [name]


def _steps_of(model: Model) -> tuple[Any, str, Any]:
    """The transformer of the columns, their form, and a feature map if there is one."""
    ranker = model.estimator[-1]
    if not isinstance(ranker, Ranker):
        return model.estimator[0], "plain", None
    return (
        model.estimator[0],
        ranker.forms_[0],
        ranker.best_estimator_.named_steps.get("map"),
    )


def _linear_ranker(model: Model) -> Any:
    """The ranker that can be fitted on a stream, or None."""
    ranker = model.estimator[-1]
    if isinstance(ranker, Ranker):
        steps = getattr(ranker.best_estimator_, "named_steps", {})
        ranker = steps.get("rank")
    return ranker if isinstance(ranker, PairwiseRanker | PointwiseRanker) else None


def fit_file_set(
    files: FileSet,
    fit_frame: Callable[[Any, bool], Model],
    *,
    positive: Any,
    memory: int | None,
    seed: int,
    checkpoint: str | os.PathLike[str] | None,
    say: Say,
) -> Model:
    """A model whose columns and method are those of `fit_frame` on a sample of the rows, and whose
    weights are fitted on all rows, where its ranker is linear.

    `fit_frame` takes a frame, and whether it has all rows: those of files that fit into memory.
    `checkpoint` is that of the fit on all rows.
    """
    limit = memory if memory is not None else int(_SHARE_OF_MACHINE * machine_memory())
    say("reading a sample of the rows")
    sample, counts = files.sample(_sample_rows(files, limit), seed)
    n_rows, n_sample = counts.total(), len(sample)
    model = fit_frame(sample, n_sample == n_rows)
    model.summary["source"] = _source_name(files.files)
    if n_sample == n_rows:
        return model
    labels = read_labels(as_frame(sample)[files.target], files.target, positive, _error(files))
    texts = [label_text(value).strip() for value in sample[files.target].tolist()]
    y_of = dict(zip(texts, labels.y.tolist(), strict=True))
    del sample
    chosen = f"columns and method are those of a sample of {n_sample:,} of {n_rows:,} rows"
    before = _linear_ranker(model)
    if before is None:
        name = type(model.estimator[-1]).__name__
        model.notes.append(
            f"{chosen}, and so is the fit: {name} chose a method that needs its rows in memory; "
            "PairwiseRanker and PointwiseRanker are fitted on all rows"
        )
        return model
    last = {} if checkpoint is None else {"checkpoint": checkpoint}
    stream = RowStream(
        _PreparedRows(files, model, y_of), grouped=files.group is not None, memory=limit, say=say
    )
    with stream:
        fitted = clone(before).set_params(**last).fit(stream)
    _replace(model, before, fitted)
    model.summary.pop("text_spread", None)  # that of the weights of the sample
    model.summary |= {
        "rows": n_rows,
        "classes": _class_counts(model.summary, counts, y_of),
        "sample_rows": n_sample,
        "n_iter": float(fitted.n_iter_),
        "optimality": float(fitted.optimality_),
    }
    model.notes.append(f"{chosen}; the weights are fitted on all rows")
    return model


def _class_counts(
    summary: Mapping[str, Any], counts: Counter[str], y_of: Mapping[str, Any]
) -> dict[str, int]:
    """The numbers of rows of the classes of a sample in all files. A positive label may be written
    in another way there, and many negative ones have one entry.
    """
    n_positive = sum(n for text, n in counts.items() if y_of.get(text))
    n_others, positive = counts.total() - n_positive, summary["positive"]
    return {
        name: n_positive if name == positive else counts.get(name, n_others)
        for name in summary["classes"]
    }


def _sample_rows(files: FileSet, memory: int) -> float:
    """Rows of the sample: they and what is made of them take about a quarter of the memory; all
    rows where these fit into memory.
    """
    if sum(_memory_of(path, files.kind) for path in files.files) <= memory:
        return np.inf
    return sample_size(files.head(), memory)


def _replace(model: Model, before: Any, fitted: Any) -> None:
    """Put the fitted ranker in the place of the one that was fitted on the sample."""
    fitted.classes_ = before.classes_
    vars(before).update(vars(fitted))
    ranker = model.estimator[-1]
    if isinstance(ranker, Ranker) and hasattr(ranker, "coef_"):
        ranker.coef_, ranker.intercept_ = fitted.coef_.copy(), fitted.intercept_.copy()


def _source_name(files: list[Path]) -> str:
    if len(files) == 1:
        return files[0].name
    return f"{counted(len(files), 'file')}, {files[0].name} to {files[-1].name}"


def _error(files: FileSet) -> Callable[..., DataFileError]:
    def error(problem: str, row: int | None = None, arguments: Any = None) -> DataFileError:
        return DataFileError(name_of_files(files.files), problem, None, arguments)

    return error
