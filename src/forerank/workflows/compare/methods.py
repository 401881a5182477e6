"""Estimators of a comparison from their names, and the measures that are recorded."""

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from forerank.data.files import first_line
from forerank.data.problem import RankingProblem
from forerank.estimators.scores import score_rows
from forerank.metrics.registry import measure_named, takes_grades
from forerank.selection.methods import METHODS, OLD_METHOD_NAMES, resolve_method
from forerank.workflows.compare.inputs import digest_of
from forerank.workflows.rankers import check_categories, column_forms, make_ranker, with_list_rows

__all__ = [
    "BASELINE",
    "ComparedMethod",
    "recorded_measures",
    "seeded",
    "select_methods",
    "takes_sparse",
]

# The default baseline: logistic regression, or ridge regression for grades, since logistic
# regression fits one model per grade.
BASELINE = "baseline"
_DEFAULT = ("Ranker", BASELINE)
# Estimators of other packages that have a short name.
_OTHERS = ("logistic-regression-cv", "ridge-regression-cv", "lightgbm", "xgboost")
# Measures that are recorded in addition to the requested one.
_MEASURES = ("auc", "wmw", "ap", "pos_at_top", "pauc@0.1", "recall@100", "ndcg@10")


@dataclass(frozen=True)
class ComparedMethod:
    """An estimator by the name that is shown.

    `form` is the form of its rows, as in `fold_inputs`; `spec` is a digest of class and parameters.
    """

    name: str
    estimator: Any
    form: str
    spec: str


@dataclass(frozen=True)
class _Scorer:
    """Scorer for the searches of scikit-learn: a measure of lists of `list_rows` rows."""

    metric: str
    list_rows: int
    grouped: bool

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        # Searches of scikit-learn pass no groups: the first k of all rows of a fold count instead.
        n = X.shape[0]
        measure = measure_named(self.metric).for_rows(n, n if self.grouped else self.list_rows)
        return measure.function(y, score_rows(estimator, X))


def select_methods(methods: Any, metric: str, problem: RankingProblem) -> dict[str, ComparedMethod]:
    """The methods by name, in the order given; `Ranker` is tuned for lists as long as the data."""
    selected: dict[str, ComparedMethod] = {}
    for name, method in _requested(methods):
        if isinstance(method, str):
            short, estimator = _from_text(method, metric, problem)
            long = method
        else:
            if not hasattr(method, "fit") or inspect.isclass(method):
                raise ValueError(
                    f"{method!r} is not an estimator: give an object with fit, or a name."
                )
            short = long = type(method).__name__
            estimator = method
        if name is None:
            name = short if short not in selected else long
        if name in selected:
            raise ValueError(f"There are two methods {name!r}; give a dict with a name for each.")
        check_categories(estimator, problem)
        estimator = with_list_rows(estimator, problem.y.size, problem.groups)
        selected[name] = ComparedMethod(name, estimator, _form(estimator), _spec(estimator))
    return selected


def _requested(methods: Any) -> Iterator[tuple[str | None, Any]]:
    if isinstance(methods, str):
        raise ValueError(
            f"methods={methods!r}: give a list of names, or a dict of estimators by name."
        )
    requested = _DEFAULT if methods is None else methods
    if not len(requested):
        raise ValueError("methods is empty; give at least one.")
    if isinstance(requested, Mapping):
        yield from ((str(name), method) for name, method in requested.items())
    else:
        yield from ((None, method) for method in requested)


def _from_text(text: str, metric: str, problem: RankingProblem) -> tuple[str, Any]:
    """The name to show, and the estimator that a text names."""
    graded = problem.graded
    if text == BASELINE:
        text = "ridge-regression-cv" if graded else "logistic-regression-cv"
    if text in METHODS or text in OLD_METHOD_NAMES:
        text = resolve_method(text)
        return text, _from_forerank("Ranker", {"metric": metric, "methods": [text]}, graded)
    head, params = _parsed(text)
    if head.lower() in _OTHERS:
        scorer = _Scorer(metric, problem.y.size, problem.groups is not None)
        return text, _from_others(head.lower(), params, scorer, graded)
    if "." in head:
        return text.removeprefix(head.rpartition(".")[0] + "."), _imported(head, params)
    if head.lower() == "ranker":
        params = {"metric": metric} | params
    return text, _from_forerank(head, params, graded)


def _from_forerank(name: str, params: dict[str, Any], graded: bool) -> Any:
    try:
        # Ranker needs no setting for grades.
        estimator = make_ranker(name, params, graded=graded and name.lower() != "ranker")
    except ValueError as error:
        if not str(error).startswith("There is no ranker"):
            raise
        raise ValueError(
            f"{error} Other methods are {', '.join(_OTHERS)}, a method of Ranker such as "
            "pairwise-logistic, and import paths such as "
            "sklearn.ensemble.HistGradientBoostingClassifier."
        ) from None
    if "random_state" in estimator.get_params() and "random_state" not in params:
        estimator.set_params(random_state=None)  # each seed sets it
    return estimator


def _parsed(text: str) -> tuple[str, dict[str, Any]]:
    """A name and the parameters in parentheses after it, literals of which none is evaluated."""
    head, bracket, rest = text.strip().partition("(")
    if not bracket:
        return head.strip(), {}
    params = {}
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError("parameters have names")
        for each in call.keywords:
            if each.arg is None:
                raise ValueError("parameters have names")
            params[each.arg] = _literal(each.value)
    except (SyntaxError, ValueError) as error:
        raise ValueError(
            f"{text!r} cannot be read ({first_line(error)}); write NAME(parameter=value, ...) with "
            "numbers, strings, lists, True, False or None."
        ) from None
    return head.strip(), params


def _literal(value: ast.expr) -> Any:
    """A literal; a bare word is a string, since shells remove quotation marks."""
    return value.id if isinstance(value, ast.Name) else ast.literal_eval(value)


def _imported(path: str, params: dict[str, Any]) -> Any:
    module, _, name = path.rpartition(".")
    try:
        kind = getattr(import_module(module), name)
    except ImportError as error:
        raise ValueError(
            f"{path} cannot be imported ({first_line(error)}); check its spelling, and that the "
            "package is installed."
        ) from None
    except AttributeError:
        raise ValueError(f"{module} has no {name}; check its spelling.") from None
    if not inspect.isclass(kind) or not hasattr(kind, "fit") or not hasattr(kind, "get_params"):
        raise ValueError(
            f"{path} is not an estimator of scikit-learn's kind: a class with fit and get_params."
        )
    return _made(kind, params)


def _made(kind: Any, params: dict[str, Any]) -> Any:
    try:
        return kind(**params)
    except TypeError as error:
        raise ValueError(f"{kind.__name__}: {first_line(error)}.") from None


def _from_others(name: str, params: dict[str, Any], scorer: _Scorer, graded: bool) -> Any:
    """An estimator of another package; the linear ones are tuned by the measure on shuffled folds,
    as Ranker is, since rows of a file are often in order of time.
    """
    if name == "ridge-regression-cv":
        from sklearn.linear_model import RidgeCV
        from sklearn.model_selection import KFold

        cv: Any = KFold(5, shuffle=True, random_state=0)
        defaults = {"alphas": np.logspace(-2, 4, 7), "cv": cv, "scoring": scorer}
        return _made(RidgeCV, defaults | params)
    if name == "logistic-regression-cv":
        from sklearn.linear_model import LogisticRegressionCV
        from sklearn.model_selection import StratifiedKFold

        cv = StratifiedKFold(5, shuffle=True, random_state=0)
        scoring = "neg_log_loss" if graded else scorer
        defaults = {"scoring": scoring, "cv": cv, "max_iter": 1000}
        known = inspect.signature(LogisticRegressionCV.__init__).parameters
        if "use_legacy_attributes" in known:  # newer versions, whose defaults are to change
            defaults |= {"l1_ratios": (0,), "use_legacy_attributes": False}
        return _made(LogisticRegressionCV, defaults | params)
    try:
        module = import_module(name)
    except ImportError:
        raise ValueError(f"{name} is not installed: pip install {name}") from None
    kind, verbosity = ("LGBMClassifier", -1) if name == "lightgbm" else ("XGBClassifier", 0)
    return _made(getattr(module, kind), {"verbosity": verbosity} | params)


def _form(estimator: Any) -> str:
    forms = column_forms(estimator)
    if forms != "plain":
        return forms if isinstance(forms, str) else "+".join(forms)
    nested = getattr(estimator, "estimator", None)
    if isinstance(estimator, Pipeline) or isinstance(nested, Pipeline):
        return "raw"
    with suppress(Exception):  # estimators without tags
        return "missing" if get_tags(estimator).input_tags.allow_nan else "prepared"
    return "prepared"


def takes_sparse(estimator: Any) -> bool:
    """Whether an estimator accepts sparse matrices; True where it does not tell."""
    with suppress(Exception):
        return bool(get_tags(estimator).input_tags.sparse)
    return True


def seeded(estimator: Any, seed: int) -> Any:
    """A clone with the seed in place of a random state of None, and one thread where n_jobs is
    None.
    """
    fresh = clone(estimator, safe=False)
    if hasattr(fresh, "get_params"):
        unset = [name for name, value in fresh.get_params().items() if value is None]
        for last, value in (("random_state", seed), ("n_jobs", 1)):
            names = [name for name in unset if re.search(rf"(^|__){last}$", name)]
            fresh.set_params(**dict.fromkeys(names, value))
    return fresh


def _spec(estimator: Any) -> str:
    params = estimator.get_params() if hasattr(estimator, "get_params") else vars(estimator)
    text = repr(sorted((name, repr(value)) for name, value in params.items()))
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    return digest_of(f"{type(estimator).__module__}.{type(estimator).__qualname__}{text}".encode())


def recorded_measures(metric: str, graded: bool) -> tuple[str, ...]:
    """Keys of the measures that are recorded, the requested one first."""
    names = dict.fromkeys([metric, *_MEASURES])
    if not graded:  # wmw is the AUC then
        return tuple(name for name in names if name == metric or name != "wmw")
    return tuple(name for name in names if takes_grades(name))
