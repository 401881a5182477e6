"""scikit-learn scorers of the measures."""

import inspect
from collections.abc import Callable
from typing import Any

from sklearn.metrics import make_scorer

from forerank.metrics.pairs import rank_loss
from forerank.metrics.registry import KINDS, takes_grades
from forerank.metrics.thresholds import work_saved

__all__ = ["SCORERS", "get_scorer"]

# Functions by name: those of the registry, and two that are not in it.
_FUNCTIONS: dict[str, Callable[..., float]] = {
    **{kind.function.__name__: kind.function for kind in KINDS.values()},
    "rank_loss": rank_loss,
    "work_saved": work_saved,
}
# Settings of `make_scorer`, or of the function, beyond the defaults.
_SETTINGS: dict[str, dict[str, Any]] = {
    "partial_auc": {"standardize": "mcclish"},
    "rank_loss": {"greater_is_better": False},
}


def get_scorer(name: str, **params: Any) -> Any:
    """A new scikit-learn scorer for the measure `name`, one of `SCORERS`, with parameters of the
    measure.

    It ranks by ``decision_function``, else ``predict_proba``; measures of grades (ndcg, wmw) also
    accept a regressor's ``predict``. `rank_loss` is negated, as scikit-learn does for losses. For
    weights or groups enable metadata routing and request them:
    ``get_scorer("wmw").set_score_request(qid=True, sample_weight=True)``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = make_classification(random_state=0)
    >>> scorer = get_scorer("recall_at_k", k=25)
    >>> cross_val_score(LogisticRegression(), X, y, cv=2, scoring=scorer).round(2)
    array([0.84, 0.84])
    """
    if name not in _FUNCTIONS:
        known = ", ".join(sorted(_FUNCTIONS))
        raise ValueError(f"No scorer is called {name!r}; choose one of {known}.")
    function, settings = _FUNCTIONS[name], _SETTINGS.get(name, {})
    accepted = set(inspect.signature(function).parameters)
    accepted -= {"y_true", "y_score", "sample_weight", "qid"}
    if unknown := sorted(set(params) - accepted):
        raise ValueError(
            f"The scorer {name!r} does not take {', '.join(unknown)}; it takes "
            f"{', '.join(sorted(accepted))}."
        )
    responses = ("decision_function", "predict_proba", *["predict"] * takes_grades(name))
    return make_scorer(function, **{"response_method": responses, **settings, **params})


SCORERS: dict[str, Any] = {name: get_scorer(name) for name in _FUNCTIONS}
"""Scorers with default parameters; `get_scorer` makes new ones, to set parameters or requests."""
