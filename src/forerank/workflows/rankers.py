"""Rankers by name, with the parameters that fit, compare and report set for them."""

import inspect
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from forerank import estimators
from forerank._typing import Vector
from forerank.data.forms import FormColumns
from forerank.data.problem import RankingProblem
from forerank.metrics.estimates import Estimate, estimate_measure, estimate_measures
from forerank.metrics.registry import measure_named
from forerank.selection import Ranker

__all__ = [
    "accepts_groups",
    "available_forms",
    "check_categories",
    "column_forms",
    "columns_used",
    "estimates_of",
    "make_ranker",
    "plain_params",
    "ranker_names",
    "with_categories",
    "with_list_rows",
]


def ranker_names() -> list[str]:
    """The estimators that can be fitted by name."""
    return sorted(_ranker_classes())


def _ranker_classes() -> dict[str, Any]:
    known = {name: getattr(estimators, name) for name in estimators.__all__}
    del known["PoolRanker"]  # it needs unlabelled rows, too
    rankers = {name: cls for name, cls in known.items() if hasattr(cls, "decision_function")}
    return {"Ranker": Ranker, **rankers}


def accepts_groups(ranker: Any) -> bool:
    """Whether an estimator, or a class of estimators, ranks within groups."""
    return "qid" in inspect.signature(ranker.fit).parameters


def check_groups(model: Any) -> None:
    """An error where an estimator does not rank within groups."""
    if not accepts_groups(model):
        names = [name for name, cls in sorted(_ranker_classes().items()) if accepts_groups(cls)]
        raise ValueError(
            f"{type(model).__name__} does not rank within groups; do not pass groups, or choose "
            f"one of {', '.join(names)}."
        )


def check_categories(model: Any, problem: RankingProblem) -> None:
    """An error where boosted trees are given columns of categories, which the types of the columns
    of a table decide.
    """
    if not isinstance(model, estimators.BoostedRanker) or problem.plan is None:
        return
    if model.categorical_features is not None:
        raise problem.source.error(
            f"categorical_features={model.categorical_features!r} is for arrays and frames that an "
            "estimator is fitted on itself; the columns of a table are categories by their types. "
            'Omit it, and declare the type of a column: types={"column": "category"}',
            arguments={"category": "COLUMN"},
        )


def make_ranker(
    ranker: Any = "Ranker",
    params: Mapping[str, Any] | None = None,
    *,
    metric: str | None = None,
    graded: bool = False,
    seed: int = 0,
) -> Any:
    """An estimator with these parameters, by name (in capital or small letters) or a copy of one.

    Where the labels are grades, it is set to order them.
    """
    model = _ranker_named(ranker) if isinstance(ranker, str) else clone(ranker)
    possible, params = model.get_params(), dict(params or {})
    for name in params:
        if name not in possible:
            raise _unknown_parameter(model, name)
    if metric is not None:
        if "metric" not in possible:
            raise ValueError(
                f"{type(model).__name__} has no parameter 'metric'; omit it, or use Ranker."
            )
        params["metric"] = metric
    if isinstance(model, Ranker):
        # Columns are scaled already, and all cores are available.
        defaults = {"scale": False, "n_jobs": -1, **({"metric": "wmw"} if graded else {})}
        params = {**defaults, **params}
    elif graded:
        if "graph" not in possible:
            raise ValueError(
                f"{type(model).__name__} ranks two classes, and the labels are grades. Pass the "
                "positive label, or choose PairwiseRanker, RankNCG, RankNet or RankBoost, which "
                "order grades."
            )
        if possible["graph"] is None:
            params = {"graph": "order", **params}
    if "random_state" in possible:
        params = {"random_state": seed, **params}
    return model.set_params(**params)


def _ranker_named(name: str) -> Any:
    known = {each.lower(): each for each in ranker_names()}
    wanted = name.lower().replace("-", "").replace("_", "")
    if wanted in known:
        return _ranker_classes()[known[wanted]]()
    near = get_close_matches(wanted, known, n=1, cutoff=0.4)
    hint = f" Did you mean {known[near[0]]}?" if near else ""
    names = ", ".join(ranker_names())
    raise ValueError(f"There is no ranker {name!r}.{hint} Choose one of {names}.")


def _unknown_parameter(model: Any, name: str) -> ValueError:
    possible = model.get_params()
    near = get_close_matches(name, possible, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if name == "calibrate":
        hint = " Ranker has it; choose that, which tries this and other methods."
    if isinstance(model, Ranker) and name in estimators.PairwiseRanker().get_params():
        hint = " Single rankers have it: name one, such as PairwiseRanker."
    names = ", ".join(sorted(possible))
    return ValueError(f"{type(model).__name__} has no parameter {name!r}.{hint} It has {names}.")


def with_list_rows(model: Any, n_rows: int, groups: Any) -> Any:
    """A ranker whose recall@k or ndcg@k is that of a list of `n_rows` rows, when it is fitted on a
    part of them.
    """
    if not isinstance(model, Ranker) or model.list_rows is not None or groups is not None:
        return model
    if measure_named(model.metric).k is None:
        return model
    return clone(model).set_params(list_rows=int(n_rows))


def estimates_of(
    model: Any, y: NDArray, scores: Vector, *, k: Sequence[int] | None = None, **settings: Any
) -> list[Estimate]:
    """Estimates of the usual measures, before them that of the measure that a `Ranker` was selected
    by, where it is none of them.

    `k` are numbers of first rows; by default 10, 100, and the k of the measure. `settings` are
    those of `estimate_measures`.
    """
    measure = measure_named(model.metric) if isinstance(model, Ranker) else None
    own = [measure.k] if k is None and measure is not None and measure.k is not None else []
    estimates = estimate_measures(y, scores, k=[10, 100, *own] if k is None else k, **settings)
    if measure is None or any(each.name == measure.title for each in estimates):
        return estimates
    n_rows = (settings.get("qid") is None and settings.get("list_rows")) or y.size
    is_given = measure.k is None or (k is None and measure.k <= n_rows)
    if is_given and (measure.graded or np.unique(y).size == 2):
        estimates.insert(0, estimate_measure(measure, y, scores, **settings))
    return estimates


def column_forms(model: Any) -> str | tuple[str, ...]:
    """The form of the columns that an estimator is fitted on, or several forms, between which a
    `Ranker` chooses; those that it takes, for a fitted one.
    """
    if not isinstance(model, Ranker):
        return "trees" if isinstance(model, estimators.BoostedRanker) else "plain"
    return model.forms_ if hasattr(model, "best_estimator_") else model.needed_forms()


def available_forms(model: Any, problem: RankingProblem) -> str | tuple[str, ...]:
    """The forms of `column_forms`, or "plain" where a matrix does not have the only one."""
    forms = column_forms(model)
    return "plain" if isinstance(forms, str) and forms not in problem.forms else forms


def with_categories(model: Any, steps: Any) -> Any:
    """Boosted trees that know which columns are categories, and any other estimator as it is."""
    if isinstance(model, estimators.BoostedRanker) and hasattr(steps, "categorical_"):
        return model.set_params(categorical_features=list(steps.categorical_))
    return model


def columns_used(steps: Any, fitted: Any) -> Any:
    """The fitted transformer without the forms that a fitted ranker does not take."""
    return steps.only(fitted.forms_) if isinstance(steps, FormColumns) else steps


def plain_params(model: Any) -> dict[str, Any]:
    """The parameters of an estimator that are numbers, strings, booleans or None."""
    params = model.get_params().items()
    plain = bool | int | float | str | None
    return {name: value for name, value in params if isinstance(value, plain)}
