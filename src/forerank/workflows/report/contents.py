"""Contents of a report: a ranker cross-validated, measured, and fitted on all rows."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from forerank._text import counted
from forerank.data.frames import column_name
from forerank.data.problem import RankingProblem, ReadOptions, read_problem
from forerank.models import Model
from forerank.selection.ranker import Ranker
from forerank.workflows.rankers import (
    available_forms,
    check_categories,
    make_ranker,
    plain_params,
    with_list_rows,
)
from forerank.workflows.report.cross_validation import cross_validate, fit_all, named_weights
from forerank.workflows.report.page import Report
from forerank.workflows.report.results import HeldOutResults, requested_measure
from forerank.workflows.report.sections import (
    call_text,
    comparison_section,
    held_out_sections,
    reproduction,
    selection_section,
    weights_section,
)

__all__ = ["make_report"]

# Most warnings on the page.
_MOST_WARNINGS = 20


def make_report(
    data: Any,
    target: str | None = None,
    *,
    ranker: Any = "Ranker",
    params: Mapping[str, Any] | None = None,
    metric: str = "auc",
    comparison: Any = None,
    group: str | None = None,
    positive: Any = None,
    drop: Iterable[str] = (),
    folds: Any = 5,
    seed: int = 0,
    delimiter: str | None = None,
    types: Mapping[str, str] | None = None,
    encoding: str | None = None,
    format: str | None = None,
    skip_unlabelled: bool = False,
    command: str | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Report:
    """Cross-validate a ranker on labelled rows, fit it on all of them, and report the results.

    Columns are prepared, and `Ranker` selects its method, inside each fold: no held-out row is used
    for the model that scores it. Measures are means over the folds, as in `forerank.compare`, whose
    folds are the same for the same seed. Cost: that of `folds` + 1 fits, and of `folds` fits
    without a selection.

    Parameters
    ----------
    data, target, params, group, positive, drop, delimiter, types, encoding, format, skip_unlabelled
        As in `forerank.workflows.fit.fit`.
    ranker : str or estimator, default="Ranker"
        An estimator of forerank by name, or any with `decision_function` or `predict_proba`.
    metric : str, default="auc"
        The measure of the report: auc, ap, pos_at_top, ndcg@k, pauc@fpr or recall@k. A ranker with
        a parameter `metric` is fitted for it. The first k rows are those of a list as long as the
        data: in a fold, the same share of its rows counts; with groups, k counts the rows of a
        group.
    comparison : Comparison or list of dict, optional
        Methods that were compared: a `forerank.workflows.compare.Comparison`, or one dict per
        method with method, mean and where known std, difference, p and seconds.
    folds : int, splitter or list of (train, test), default=5
        Fewer are made where the smaller class, or the groups, do not suffice.
    seed : int, default=0
        Of the folds, the resamples and rankers with a random state.
    command : str, optional
        The command that makes this report again; by default this call is shown.
    say : callable, optional
        Called with a line on each step.

    Returns
    -------
    Report
    """
    _require_packages()
    say("reading")
    options = ReadOptions(delimiter, encoding, format, types, drop, skip_unlabelled)
    problem = read_problem(data, target, group=group, positive=positive, options=options)
    measure = requested_measure(metric, graded=problem.graded)
    estimator = _estimator(ranker, params, measure.key, problem, seed)
    say("checking the data")
    warnings = [warning.sentence for warning in problem.warnings()]
    say(f"fitting on {counted(problem.y.size, 'row')}")
    pipeline, fit_summary, fit_warnings = fit_all(problem, estimator)
    fitted = pipeline[-1]
    selected = fitted if hasattr(fitted, "refit") else None
    held = cross_validate(problem, estimator, folds, seed, say, selected)
    held.add_warnings(fit_warnings)
    say("measuring and drawing")
    results = HeldOutResults(problem, measure, held, seed)
    weights = named_weights(problem, pipeline)
    warnings += results.warnings(next(iter(weights), None))
    sentences = results.sentences(fitted)
    notes = problem.notes_on(available_forms(fitted, problem))
    if command is None:
        call = {"ranker": ranker, "params": params, "metric": measure.key, "group": group}
        call |= {"positive": positive, "folds": folds, "seed": seed}
        call |= {name: value or None for name, value in vars(options).items()}
        call["comparison"] = None if comparison is None else ...
        command = call_text(data if problem.source.name else None, target, call)
    page = {
        "title": f"Ranking report: {problem.source.name or 'a table in memory'}",
        "sentences": sentences,
        "warnings": _shortened(warnings),
        **held_out_sections(results),
        "comparison": comparison_section(comparison, results, folds),
        "selection": selection_section(fitted, held, results.title()),
        "weights": weights_section(weights, held, type(fitted).__name__),
        "notes": notes,
        "reproduction": reproduction(problem.source, command, seed),
        "ranker": " ".join(repr(estimator).split()),
    }
    summary = problem.summary() | {"ranker": type(estimator).__name__}
    summary |= {"params": plain_params(estimator), "seed": seed, "source": problem.source.name}
    summary["measures"] = [estimate.to_dict() for estimate in results.estimates]
    model = Model(
        pipeline,
        columns=problem.column_kinds,
        target=problem.target if problem.source.is_table else None,
        group=None if group is None else column_name(group),
        summary=summary | problem.read_settings | fit_summary,
        notes=notes,
    )
    return Report(sentences, warnings, results.estimates, model, held, page)


def _require_packages() -> None:
    """ImportError with the command that installs the missing package."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"A report needs {error.name}: pip install 'forerank[report]'."
        ) from error


def _estimator(
    ranker: Any, params: Mapping[str, Any] | None, metric: str, problem: RankingProblem, seed: int
) -> Any:
    """The ranker, set to the measure if it has a parameter for it."""
    plain = make_ranker(ranker)
    params = dict(params or {})
    if isinstance(ranker, str) and "metric" in plain.get_params():
        params.setdefault("metric", metric)
    graded = problem.graded and not isinstance(plain, Ranker)  # Ranker needs no setting for grades
    estimator = make_ranker(ranker, params, graded=graded, seed=seed)
    check_categories(estimator, problem)
    return with_list_rows(estimator, problem.y.size, problem.groups)


def _shortened(lines: list[str]) -> list[str]:
    lines = list(dict.fromkeys(lines))
    if len(lines) <= _MOST_WARNINGS:
        return lines
    return [*lines[:_MOST_WARNINGS], f"{len(lines) - _MOST_WARNINGS} more of this kind."]
