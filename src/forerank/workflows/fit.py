"""Fitting a ranker on a table or a matrix: read, prepare the columns, measure on held-out rows, fit
on all rows.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit
from sklearn.pipeline import Pipeline

from forerank._text import counted
from forerank._typing import Index, Vector
from forerank.data.forms import ColumnForms
from forerank.data.frames import column_name
from forerank.data.memory import release_memory
from forerank.data.problem import RankingProblem, ReadOptions, first_rows, read_problem
from forerank.data.row_stream import parse_bytes
from forerank.metrics.estimates import Estimate
from forerank.models import Model
from forerank.models.importance import text_spreads
from forerank.selection import Ranker
from forerank.selection.training_rows import stratified_sample
from forerank.solvers.checkpoints import check_checkpoint_file
from forerank.workflows.fit_stream import FileSet, fit_file_set, streamed_files
from forerank.workflows.rankers import (
    available_forms,
    check_categories,
    check_groups,
    columns_used,
    estimates_of,
    make_ranker,
    plain_params,
    with_categories,
    with_list_rows,
)

__all__ = ["fit"]

Say = Callable[[str], None]

# Held-out rows of a large table that are scored at a time.
_SCORED_ROWS = 1 << 14


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
    memory: int | str | None = None,
    say: Say = lambda line: None,
) -> Model:
    """Fit a ranker on a table, or on a matrix with labels.

    Parameters
    ----------
    data : path, pandas or polars frame, or Matrix
        A file by its suffix, as in `forerank.data.readers`; or a pattern such as "data/*.parquet"
        for several files of one format, which are read block by block (see `memory`).
    target : str, optional
        The column of labels; svmlight files and NumPy archives have their own.
    ranker : str or estimator, default="Ranker"
        One of `forerank.workflows.rankers.ranker_names()`, or any estimator with a
        `decision_function`. `Ranker` chooses method and penalty by cross-validation.
    params : dict, optional
        Parameters of the ranker.
    metric : str, optional
        The measure that `Ranker` maximises, such as "auc" (its default), "ap" or "recall@50".
    group : str, optional
        The column of groups within which rows are ranked. A matrix with qid is ranked within them.
    positive : label, optional
        The positive class. By default the larger of two labels; numbers of more than two values are
        grades, and higher ones are ranked above lower ones.
    drop : iterable of str
        Columns that are not used.
    check : float, default=0.2
        Share of rows (or groups) that are held out to measure the ranking. The model is fitted on
        all rows afterwards.
    seed : int, default=0
        For the choice of held-out rows and for rankers with a random state.
    delimiter : str, optional
        Of a CSV file.
    types : dict, optional
        Columns that are "number", "category", "text" or "date", regardless of their values. A value
        of another type is an error. The types of other columns follow from their values: see
        `forerank.data.column_plan.plan_columns`.
    encoding : str, optional
        Of a text file, such as "cp1252"; by default UTF-8, or UTF-16 where the file begins with its
        byte order mark. The model keeps it for new files that are not in UTF-8.
    format : str, optional
        The format of a file with another suffix: "csv", "tsv", "parquet", "feather", "xlsx",
        "jsonl", "ris", "bib", "svm" or "npz".
    skip_unlabelled : bool, default=False
        Exclude rows without a label; by default they are an error.
    memory : int or str, optional
        Bytes, such as "4GB", that the fit may take; half of the machine's by default. CSV, Parquet
        and Feather files that would take more are read block by block: columns and method are
        chosen on a sample of the rows, among linear models, and the weights are fitted on all rows.
    say : callable, optional
        Called with a line on each step of the work.

    Returns
    -------
    Model
    """
    begin = perf_counter()
    if not 0.0 <= check < 1.0:
        raise ValueError(
            f"check={check!r}: give the share of rows to measure on, at least 0 and less than 1."
        )
    options = ReadOptions(delimiter, encoding, format, types, drop, skip_unlabelled)
    n_bytes = None if memory is None else parse_bytes(memory)
    files = streamed_files(data, format, n_bytes)
    if files is not None:
        model = _fit_files(
            FileSet(files, options, target, group), ranker, params,
            metric=metric, positive=positive, check=check, seed=seed, memory=n_bytes, say=say,
            types=types, drop=drop,
        )  # fmt: skip
        model.summary["seconds"] = round(perf_counter() - begin, 3)
        return model
    say("reading")
    problem = read_problem(data, target, group=group, positive=positive, options=options)
    say("checking the data")
    warnings = [warning.sentence for warning in problem.warnings()]
    release_memory()
    model = make_ranker(ranker, params, metric=metric, graded=problem.graded, seed=seed)
    model = with_list_rows(model, problem.y.size, problem.groups)
    check_categories(model, problem)
    if problem.groups is not None:
        check_groups(model)
    tried, measures, n_held = _held_out_measures(problem, model, check, seed, say)
    say(f"fitting on {counted(problem.y.size, 'row')}")
    every, n = np.arange(problem.y.size), problem.y.size
    last = _fit_rows(problem, model, every, n, last=True, selected=tried)
    fitted = last.ranker
    summary = {
        **problem.summary(),
        "ranker": type(model).__name__,
        "params": plain_params(model),
        "kept_aside": n_held if measures else 0,
        "measures": [each.to_dict() for each in measures],
        "seed": seed,
        "seconds": round(perf_counter() - begin, 3),
        "source": problem.source.name,
        "warnings": warnings,
        **problem.read_settings,
        **_fit_summary(fitted),
        **({"text_spread": last.text_spread} if last.text_spread else {}),
    }
    pipeline = Pipeline([("columns", last.columns), ("ranker", fitted)])
    return Model(
        pipeline,
        columns=problem.column_kinds,
        target=problem.target if problem.source.is_table else None,
        group=None if group is None else column_name(group),
        summary=summary,
        notes=problem.notes_on(available_forms(fitted, problem)),
    )


def _fit_files(
    files: FileSet,
    ranker: Any,
    params: Mapping[str, Any] | None,
    *,
    positive: Any,
    memory: int | None,
    seed: int,
    say: Say,
    **options: Any,
) -> Model:
    """A model of files that are read block by block; `Ranker` chooses among linear models, unless
    all rows fit into memory.
    """
    by_name = isinstance(ranker, str) and ranker.lower() == "ranker"
    is_free = by_name and not {"families", "methods"} & set(params or {})

    checkpoint = make_ranker(ranker, params).get_params().get("checkpoint")
    if checkpoint is not None:
        check_checkpoint_file(checkpoint)
    of_sample: dict[str, Any] = {"families": "linear"} if is_free else {}
    if checkpoint is not None:
        of_sample["checkpoint"] = None

    def fit_frame(frame: Any, has_all_rows: bool) -> Model:
        changes = {} if has_all_rows else of_sample
        return fit(
            frame, files.target, ranker=ranker, params={**(params or {}), **changes},
            group=files.group, positive=positive, seed=seed, say=say, **options,
        )  # fmt: skip

    return fit_file_set(
        files, fit_frame,
        positive=positive, memory=memory, seed=seed, checkpoint=checkpoint, say=say,
    )  # fmt: skip


def _held_out_measures(
    problem: RankingProblem, model: Any, check: float, seed: int, say: Say
) -> tuple[Any, list[Estimate], int]:
    """The ranker whose choice of method is to be fitted on all rows (None where it makes none), the
    measures on held-out rows, and the number of these.

    Why there are none is added to the notes of the problem.
    """
    y, groups = problem.y, problem.groups
    order, n_train = _split(y, groups, check, seed)
    n_held = y.size - n_train
    if not n_held:
        if check > 0.0:
            problem.notes.append("not measured: too few rows of some class to hold any out")
        return None, [], 0
    say(f"measuring on {counted(n_held, 'held-out row')}")
    found = _fit_rows(problem, model, order, n_train)
    fitted, scores = found.ranker, found.scores
    held = order[n_train:]
    qid = None if groups is None else groups[held]
    try:
        settings: dict[str, Any] = {"qid": qid, "list_rows": y.size, "random_state": seed}
        measures = estimates_of(model, y[held], scores, **settings)
    except ValueError as error:
        problem.notes.append(f"not measured: {error}")
        measures = []
    # The choice that was measured is the one fitted on all rows: it is not made twice.
    return (fitted if hasattr(fitted, "refit") else None), measures, n_held


def _fit_summary(fitted: Any) -> dict[str, Any]:
    """Entries of the summary on the choice of a `Ranker` and on convergence."""
    summary: dict[str, Any] = {}
    if hasattr(fitted, "best_method_"):
        summary["choice"] = {
            "metric": fitted.metric,
            "family": fitted.best_family_,
            "method": fitted.best_method_,
            "alpha": fitted.best_alpha_,
            "rounds": fitted.best_rounds_,
            "reason": fitted.reason_,
            "more_data": fitted.learning_curve_["sentence"],
        }
    for name in ("n_iter_", "optimality_", "wmw_bound_"):
        if hasattr(fitted, name) and np.ndim(getattr(fitted, name)) == 0:
            summary[name.rstrip("_")] = float(getattr(fitted, name))
    return summary


@dataclass(frozen=True)
class _FittedRows:
    """A fitted transformer and ranker, the scores of the other rows and, of an additive model, the
    standard deviation of what each text adds to those of the rows of the fit.
    """

    columns: Any
    ranker: Any
    scores: Vector
    text_spread: dict[str, float]


def _fit_rows(
    problem: RankingProblem,
    model: Any,
    order: Index,
    n_train: int,
    *,
    last: bool = False,
    selected: Any = None,
) -> _FittedRows:
    """The transformer and the ranker fitted on the first rows of an order, and scores of the rest.

    `selected` is a `Ranker` that has chosen its method already. Rows are released where this is the
    `last` fit.
    """
    train = order[:n_train]
    if selected is None:
        selected = _selected_on_sample(problem, model, train)
    if selected is not None and _is_large(problem, selected):
        return _fit_on_demand(problem, selected, order, n_train, last=last)
    fitted = clone(model) if selected is None else selected
    prepared, X = problem.prepare(order, n_train, available_forms(fitted, problem))
    if last:
        problem.forget_rows()
    fitted = with_categories(fitted, prepared)
    fit_or_refit = fitted.fit if selected is None else fitted.refit
    rows = first_rows(X, n_train)
    fit_or_refit(rows, problem.y[train], **_qid(problem, train))
    getattr(fitted, "learning_curve_", None)  # until it is read, a Ranker keeps these rows
    scores = fitted.decision_function(X[n_train:]) if n_train < order.size else np.empty(0)
    used = columns_used(prepared, fitted)
    return _FittedRows(used, fitted, scores, text_spreads(used, fitted, rows))


def _is_large(problem: RankingProblem, selected: Ranker) -> bool:
    """Whether a table has more rows than the choice of a method is made on."""
    is_free = problem.plan is not None and not selected.calibrate  # which takes rows of matrices
    most = selected.search_rows
    return is_free and most is not None and problem.y.size > most


def _fit_on_demand(
    problem: RankingProblem, selected: Any, order: Index, n_train: int, *, last: bool
) -> _FittedRows:
    """The same for a large table: its forms are made one after another, and those of the other rows
    block by block.
    """
    train, held = order[:n_train], order[n_train:]
    prepared, X = problem.prepare_on_demand(train, available_forms(selected, problem))
    used, rows = columns_used(prepared, selected), problem.rows
    if last:
        problem.forget_rows()
    release_memory()
    selected.refit(X, problem.y[train], **_qid(problem, train))
    spread = text_spreads(used, selected, X)
    blocks = (held[k : k + _SCORED_ROWS] for k in range(0, held.size, _SCORED_ROWS))
    scores = [selected.decision_function(used.transform_rows(rows, each)) for each in blocks]
    return _FittedRows(used, selected, np.concatenate([np.empty(0), *scores]), spread)


def _selected_on_sample(problem: RankingProblem, model: Any, rows: Index) -> Any:
    """A `Ranker` that has chosen its method on a sample, where there are more rows than it uses for
    the choice; else None.

    The sample is prepared before all rows take up memory.
    """
    if not isinstance(model, Ranker) or model.search_rows is None:
        return None
    groups = None if problem.groups is None else problem.groups[rows]
    size, seed = int(model.search_rows), int(model.random_state or 0)
    some = rows[stratified_sample(problem.y[rows], groups, size, seed)]
    if some.size == rows.size:
        return None
    X = _sample_forms(problem, some, available_forms(model, problem))
    # One fit at a time: memory that threads allocate and release is not returned, which costs more
    # than the seconds they save. And no sample of the sample.
    selected = clone(model).set_params(n_jobs=1, search_rows=None)
    selected.fit(X, problem.y[some], **_qid(problem, some))
    selected.learning_curve_  # noqa: B018 (until it is read, these rows are kept)
    selected.set_params(n_jobs=model.n_jobs, search_rows=model.search_rows)
    selected.reason_ += f" Note that the choice was made on {some.size:,} of {rows.size:,} rows."
    return selected


def _sample_forms(problem: RankingProblem, rows: Index, forms: str | tuple[str, ...]) -> Any:
    """The matrices of a sample; of a table, those of linear models as float32, which are exact
    enough for a choice.
    """
    if problem.plan is None:
        return problem.prepare(rows, rows.size, forms)[1]
    made = problem.prepare_on_demand(rows, forms)[1]
    numbers = {form: np.float64 if form == "trees" else np.float32 for form in made.matrices}
    matrices = {form: each.matrix(numbers[form]) for form, each in made.matrices.items()}
    release_memory()
    return ColumnForms(matrices, made.categorical)


def _qid(problem: RankingProblem, rows: Index) -> dict[str, Index]:
    return {} if problem.groups is None else {"qid": problem.groups[rows]}


def _split(y: Any, groups: Index | None, check: float, seed: int) -> tuple[Index, int]:
    """All rows, the held-out ones last, and the number of the others: all, where there are too few
    rows to hold any out.
    """
    no_split = np.arange(y.size), y.size
    if check == 0.0:
        return no_split
    if groups is not None:
        splitter: Any = GroupShuffleSplit(1, test_size=check, random_state=seed)
    elif np.unique(y, return_counts=True)[1].min() > 1:
        splitter = StratifiedShuffleSplit(1, test_size=check, random_state=seed)
    else:  # a class of one row cannot be in both parts
        splitter = ShuffleSplit(1, test_size=check, random_state=seed)
    try:
        train, test = next(splitter.split(y, y, groups))
    except ValueError:
        return no_split
    if np.unique(y[train]).size < 2 or np.unique(y[test]).size < 2:
        return no_split
    return np.concatenate([train, test]), train.size
