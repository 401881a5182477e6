"""Methods compared by cross-validation on the same folds, with tests of the differences.

Each method is fitted on the training rows of each fold and measured on the test rows. The columns
of a table are prepared inside the folds. The result of each fit is appended to a file, so that an
interrupted comparison can be resumed.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from numpy.typing import ArrayLike

from forerank._typing import Index
from forerank._validation import check_number, is_integer
from forerank.data.column_plan import FORMS
from forerank.data.folds import make_folds, with_seed
from forerank.data.problem import RankingProblem, ReadOptions, read_problem
from forerank.data.records import RecordFile
from forerank.metrics.registry import describe_depth, measure_for_labels
from forerank.metrics.significance import corrected_t_test, holm
from forerank.models.versions import package_versions
from forerank.workflows.compare.inputs import data_settings, digest_of, with_integer_labels
from forerank.workflows.compare.methods import ComparedMethod, recorded_measures, select_methods
from forerank.workflows.compare.result import Comparison, shown_row
from forerank.workflows.compare.runs import FitPlan, Key, run_tasks, within_budget

__all__ = ["Comparison", "compare", "corrected_t_test", "holm", "shown_row"]

Splits = dict[tuple[int, int], tuple[Index, Index]]
Records = dict[Key, dict[str, Any]]


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
    progress: Callable[[float], Any] | None = None,
    n_jobs: int | None = None,
    time_budget: float | None = None,
    delimiter: str | None = None,
    types: Mapping[str, str] | None = None,
    encoding: str | None = None,
    format: str | None = None,
    skip_unlabelled: bool = False,
) -> "Comparison":
    """Compare methods by cross-validation on the same folds.

    In each fold, columns are prepared on its training rows only: missing values filled, numbers
    scaled (sparse matrices by the largest value), categories and texts encoded. Estimators that
    accept missing values, such as boosted trees, get tables with missing numbers as NaN, and
    matrices unscaled. A `Pipeline` gets the rows unchanged, since it prepares them itself.

    Parameters
    ----------
    data : array or sparse matrix of shape (n_samples, n_features), frame, path or Matrix
        Rows; files by their suffix, as in `forerank.workflows.fit.fit`.
    target : array-like of shape (n_samples,) or str
        The labels, or the name of their column. svmlight files and NumPy archives have their own.
    methods : list or dict, optional
        Names, or a dict of estimators (or names) by the name to show. A name is "Ranker"; a method
        of it, such as "pairwise-logistic", tuned alone; an estimator of forerank; the import path
        of any scikit-learn estimator; or "logistic-regression-cv", "ridge-regression-cv",
        "lightgbm", "xgboost". Parameters go in parentheses:
        "sklearn.linear_model.LogisticRegression(C=0.1)". By default "Ranker" and "baseline":
        logistic-regression-cv, or ridge-regression-cv for grades, since logistic regression takes
        very long with many of them.
    metric : str, default="auc"
        auc, ap, pos_at_top, ndcg@k, pauc@fpr or recall@k. With grades, auc is the share of pairs in
        order. The first k rows are those of a list as long as the data: in a fold, the same share
        of its rows counts; with groups, k counts the rows of a group.
    cv : int, splitter or list of (train, test), default=5
        Stratified folds; with groups, a group is in one fold. There are never more folds than rows
        of the smaller class.
    seeds : int, default=1
        Number of times that rows are shuffled into folds.
    seed : int, default=0
        The first of the seeds; each shuffles the rows and is the random state of the estimators
        that have one and are given none.
    sample_weight, qid : array-likes of shape (n_samples,), optional
        Weights, in fits that take them and in measures; groups within which rows are ranked.
    group, positive, drop, delimiter, types, encoding, format, skip_unlabelled
        As in `forerank.workflows.fit.fit`.
    record : path, optional
        A file of JSON lines, one for each fit, written as soon as it is done. Fits that an existing
        file holds, failed ones included, are not repeated; methods and seeds can be added. A file
        with other data, measure or folds is an error.
    progress : callable, optional
        Called with the share of the fits that are done.
    n_jobs : int, optional
        Number of fits at a time, in separate processes. Times are then those of a shared machine.
        Within a fit, estimators have one thread (`n_jobs`, OpenMP, BLAS), unless they are given
        more: "lightgbm(n_jobs=4)".
    time_budget : float, optional
        Seconds after which no fold is begun; the first is always completed with all methods. The
        result reports how many fits were done.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((200, 5))
    >>> y = X[:, 0] + X[:, 1] > 1
    >>> result = compare(X, y, ["PairwiseRanker(alpha=0.01)", "sklearn.dummy.DummyClassifier"])
    >>> [row["method"] for row in result.table()]
    ['PairwiseRanker(alpha=0.01)', 'DummyClassifier']
    """
    if time_budget is not None and not time_budget > 0.0:
        raise ValueError(f"time_budget={time_budget!r}: give a number of seconds above 0, or None.")
    progress = progress or (lambda share: None)
    check_number("seeds", seeds, low=1, integer=True)
    options = ReadOptions(delimiter, encoding, format, types, drop, skip_unlabelled)
    given = {"group": group, "positive": positive, "qid": qid, "sample_weight": sample_weight}
    problem = with_integer_labels(read_problem(data, target, **given, options=options))
    measure = measure_for_labels(metric, graded=problem.graded)
    metric = measure.key
    measures = recorded_measures(metric, problem.graded)
    selected = select_methods(methods, metric, problem)
    seed_numbers = range(seed, seed + seeds)
    splits, fold_settings, fold_notes = _seeded_folds(cv, problem, seed_numbers)
    plan = FitPlan(problem, selected, splits, measures)
    settings = data_settings(problem) | {"metric": metric} | fold_settings
    depth = ""
    if measure.k is not None:
        depth = describe_depth(measure.k, None if problem.groups is not None else problem.y.size)
        settings["depth"] = depth  # records of early versions have none: k were rows of a fold
    data_warnings = problem.warnings()
    with _opened(record, settings) as file:
        records = _resumed(file, selected)
        keys = plan.keys()
        missing = [key for key in keys if key not in records]
        done = len(keys) - len(missing)
        progress(done / len(keys))
        for result in run_tasks(within_budget(plan.tasks(missing), time_budget), n_jobs):
            file.append(result)
            records[_key(result)] = result
            done += 1
            progress(done / len(keys))
    cut = "" if done == len(keys) else f"The time budget of {time_budget:g} seconds ended the "
    cut += f"comparison after {done} of {len(keys)} fits." if cut else ""
    return Comparison(
        records=[records[key] for key in keys if key in records],
        metric=metric,
        methods=list(selected),
        folds=fold_settings["folds"],
        seeds=list(seed_numbers),
        rows=int(problem.y.size),
        classes=problem.labels.classes,
        notes=problem.notes_on(_forms_fitted(selected, records)) + fold_notes,
        warnings=data_warnings,
        depth=depth,
        cut=cut,
    )


def _forms_fitted(methods: Mapping[str, ComparedMethod], records: Records) -> list[str]:
    """The forms of the columns that were fitted, of a `Ranker` those that it chose; "plain" stands
    for others.
    """
    fits = [(methods[key[0]].form, record) for key, record in records.items() if key[0] in methods]
    done = [(form, record) for form, record in fits if "error" not in record]
    found = {each for form, record in done or fits for each in record.get("forms", form.split("+"))}
    found = found if found <= set(FORMS) else found | {"plain"}
    return [form for form in FORMS if form in found]


def _opened(path: Any, settings: dict[str, Any]) -> RecordFile:
    versions = package_versions("forerank", "scikit-learn", "numpy")
    return RecordFile(
        path,
        {"forerank": "comparison", **settings, "versions": versions},
        kind="comparison",
        hashes={"data": "other values or labels", "splits": "other folds"},
        noted=("versions",),
        exclusive=True,
    )


def _seeded_folds(
    cv: Any, problem: RankingProblem, seeds: range
) -> tuple[Splits, dict[str, Any], list[str]]:
    """Folds by seed and number, the settings that identify them, and notes for the user."""
    is_splitter = hasattr(cv, "split")
    if not is_integer(cv) and len(seeds) > 1 and not hasattr(cv, "random_state"):
        raise ValueError(
            f"{type(cv).__name__} has no random_state, so its folds are the same for all seeds; "
            "pass seeds=1, or a splitter with a random_state."
        )

    def folds(seed: int) -> Any:
        splitter = with_seed(cv, seed) if is_splitter else cv
        return make_folds(splitter, problem.y, problem.groups, seed)

    by_seed = {seed: folds(seed) for seed in seeds}
    splits = {(s, k): split for s in seeds for k, split in enumerate(by_seed[s].splits)}
    first, identifying = by_seed[seeds[0]], folds(0).splits
    digest = digest_of(*(test for _, test in identifying))
    return splits, {"folds": len(first), "splits": digest}, first.notes


def _resumed(file: RecordFile, methods: Mapping[str, ComparedMethod]) -> Records:
    """Records of the file by method, seed and fold."""
    records = dict(zip(file.parsed(_key), file.lines, strict=True))
    for (name, *_), record in records.items():
        if name in methods and record.get("spec") != methods[name].spec:
            raise ValueError(
                f"{file.path} holds results of {name!r} with other parameters. Give the method "
                "another name (pass a dict of estimators by name), or choose another path."
            )
    return records


def _key(record: dict[str, Any]) -> Key:
    return record["method"], record["seed"], record["fold"]
