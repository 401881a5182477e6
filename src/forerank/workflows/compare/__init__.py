"""Methods compared on the same folds, with a word on which differences are more than chance.

Each method is fitted on the training rows of each fold and measured on the others. The columns of a
table are prepared inside the folds. What came of each fit is kept as one line of a file, so that a
comparison that was stopped goes on where it was.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from numpy.typing import ArrayLike

from forerank.metrics.registry import describe_depth, measure_named
from forerank.metrics.significance import corrected_t_test, holm
from forerank.workflows.compare.methods import chosen_methods, measure_names
from forerank.workflows.compare.result import Comparison, shown_row
from forerank.workflows.compare.rows import Folds, read_rows
from forerank.workflows.compare.runs import (
    check_same_methods,
    in_time,
    opened_record,
    run_tasks,
    tasks_of,
)

__all__ = ["Comparison", "compare", "corrected_t_test", "holm", "shown_row"]


def compare(
    data: Any,
    target: Any = None,
    methods: Any = None,
    *,
    metric: str = "auc",
    cv: Any = 5,
    seeds: int = 1,
    seed: int = 0,
    sample_weight: ArrayLike | None = None,
    qid: Any = None,
    group: str | None = None,
    positive: Any = None,
    drop: Iterable[str] = (),
    record: Any = None,
    progress: Callable[[float], None] | None = None,
    n_jobs: int | None = None,
    time_budget: float | None = None,
    delimiter: str | None = None,
    types: Mapping[str, str] | None = None,
    encoding: str | None = None,
    format: str | None = None,
    skip_unlabelled: bool = False,
) -> "Comparison":
    """Compare methods by cross-validation on the same folds.

    The columns are prepared in each fold from its training rows alone: missing values filled,
    numbers scaled (matrices that are sparse by the largest value), categories and texts made into
    numbers. Estimators that take missing values, such as boosted trees, get numbers with their gaps
    and matrices unscaled. A `Pipeline` that is handed over gets the rows as they are, since it
    prepares them itself.

    Parameters
    ----------
    data : array or sparse matrix of shape (n_samples, n_features), frame, path or Matrix
        Rows; files by their suffix, as in `forerank.workflows.fit.fit`.
    target : array-like of shape (n_samples,) or str
        The labels, or the name of their column. svmlight files and NumPy archives have their own.
    methods : list or dict, optional
        Names, or a dict of estimators (or names) by the name to show. A name is "Ranker"; a method
        of it, such as "pairs, logistic", tuned alone; an estimator of forerank; the import path of
        any scikit-learn estimator; or "logistic-regression-cv", "ridge-regression-cv", "lightgbm",
        "xgboost". Parameters go in parentheses: "sklearn.linear_model.LogisticRegression(C=0.1)".
        By default "Ranker" and "baseline": logistic-regression-cv, or ridge-regression-cv for
        grades, since logistic regression takes very long with many of them.
    metric : str, default="auc"
        auc, ap, pos_at_top, ndcg@k, pauc@fpr or recall@k. With grades, auc is the share of pairs in
        order. The first k rows are those of a list as long as the data: in a fold as large a share
        is looked at; with groups, k counts the rows of a group.
    cv : int or splitter, default=5
        Stratified folds; with groups, a group is in one fold. There are never more folds than rows
        of the smaller class.
    seeds : int, default=1
        How many times rows are shuffled into folds anew.
    seed : int, default=0
        The first of the seeds; each shuffles the rows and is the random state of the estimators
        that have one and are given none.
    sample_weight, qid : array-likes of shape (n_samples,), optional
        Weights, in fits that take them and in measures; groups within which rows are ranked.
    group, positive, drop, delimiter, types, encoding, format, skip_unlabelled
        As in `forerank.workflows.fit.fit`.
    record : path, optional
        A file of JSON lines, one for each fit, written as soon as it is done. Where it is there
        already, what it holds is not done again, failed fits included; more methods and more seeds
        may be asked for. It is refused where data, metric or folds differ.
    progress : callable, optional
        Is told the share that is done.
    n_jobs : int, optional
        Fits at a time, in processes of their own. Times are then those of a shared machine. Within
        a fit, estimators have one thread (`n_jobs`, OpenMP, BLAS), unless they are given more:
        "lightgbm(n_jobs=4)".
    time_budget : float, optional
        Seconds after which no fold is begun. The first is always done, with all methods, and what
        was cut is said.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((200, 5))
    >>> y = X[:, 0] + X[:, 1] > 1
    >>> found = compare(X, y, ["PairwiseRanker(alpha=0.01)", "sklearn.dummy.DummyClassifier"])
    >>> [row["method"] for row in found.table()]
    ['PairwiseRanker(alpha=0.01)', 'DummyClassifier']
    """
    if time_budget is not None and not time_budget > 0.0:
        raise ValueError(f"time_budget={time_budget!r}: give a number of seconds above 0, or None.")
    if seeds < 1:
        raise ValueError(f"seeds={seeds!r}: rows are shuffled at least once.")
    reading = {
        "types": types,
        "encoding": encoding,
        "format": format,
        "skip_unlabelled": skip_unlabelled,
    }
    rows = read_rows(data, target, sample_weight, qid, group, positive, drop, delimiter, **reading)  # type: ignore[arg-type]
    metric = "wmw" if rows.graded and metric == "auc" else metric  # the same, for grades
    measures = measure_names(metric, rows.graded)
    chosen = chosen_methods(methods, metric, rows)
    splitter = Folds(cv, rows)
    wanted = range(seed, seed + seeds)
    splits = {(s, k): split for s in wanted for k, split in enumerate(splitter.splits(s, seeds))}
    odd = rows.warnings()
    todo = [(method.name, *place) for place in splits for method in chosen.values()]
    header = rows.header | {
        "metric": metric,
        "folds": splitter.n_folds,
        "splits": splitter.digest(),
    }
    place, depth = measure_named(metric).k, ""
    if place is not None:
        depth = describe_depth(place, None if rows.qid is not None else rows.y.size)
        header["depth"] = (
            depth  # records of earlier versions counted k rows of a fold, and have none
        )
    with opened_record(record, header) as kept:
        check_same_methods(record, kept.records.values(), chosen)
        done = sum(key in kept.records for key in todo)
        missing = [key for key in todo if key not in kept.records]
        if progress is not None:
            progress(done / len(todo))
        tasks = in_time(tasks_of(rows, chosen, splits, missing, measures), time_budget)
        for found in run_tasks(tasks, n_jobs):
            kept.add(found)
            done += 1
            if progress is not None:
                progress(done / len(todo))
    cut = len(todo) - done
    return Comparison(
        records=[kept.records[key] for key in todo if key in kept.records],
        metric=metric,
        methods=list(chosen),
        folds=splitter.n_folds,
        seeds=list(wanted),
        rows=int(rows.y.size),
        classes=rows.classes,
        notes=rows.notes + splitter.notes,
        warnings=odd,
        depth=depth,
        cut=f"The time budget of {time_budget:g} seconds ended it after {done} of {len(todo)} fits."
        if cut
        else "",
    )
