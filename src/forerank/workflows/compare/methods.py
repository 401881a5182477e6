"""From the names of methods and measures to estimators and functions."""

import ast
import inspect
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from forerank.data.files import first_line
from forerank.estimators.scores import score_rows
from forerank.metrics.registry import measure_named, takes_grades
from forerank.selection.methods import method_names
from forerank.workflows import fit as workflow
from forerank.workflows.compare.rows import RowsToCompare, digest_of

__all__ = [
    "BASELINE",
    "Method",
    "chosen_methods",
    "measure_names",
    "seeded",
    "takes_sparse",
]


_RIVALS = ("logistic-regression-cv", "ridge-regression-cv", "lightgbm", "xgboost")
# Stands for logistic regression, or for grades, of which that fits a model each, for ridge
# regression.
BASELINE = "baseline"
_DEFAULT = ("Ranker", BASELINE)
# Measures that are kept beside the chosen one.
_MEASURES = ("auc", "wmw", "ap", "pos_at_top", "pauc@0.1", "recall@100", "ndcg@10")


@dataclass(frozen=True)
class Method:
    name: str
    estimator: Any
    form: str
    spec: str


def chosen_methods(methods: Any, metric: str, rows: RowsToCompare) -> dict[str, Method]:
    """The methods by name, in the order given; those that are tuned are tuned for lists as long as
    the rows.
    """
    if isinstance(methods, str):
        raise ValueError(
            f"methods={methods!r}: give a list of names, or a dict of estimators by name."
        )
    wanted = _DEFAULT if methods is None else methods
    pairs = (
        list(wanted.items()) if isinstance(wanted, Mapping) else [(None, each) for each in wanted]
    )
    if not pairs:
        raise ValueError("No method was given; name at least one.")
    found: dict[str, Method] = {}
    for name, method in pairs:
        if isinstance(method, str):
            short, estimator = _named_method(method, metric, rows)
            long = method
        else:
            if not hasattr(method, "fit") or inspect.isclass(method):
                raise ValueError(f"{method!r} is no estimator: give an object with fit, or a name.")
            short = long = type(method).__name__
            estimator = method
        name = str(name) if name is not None else short if short not in found else long
        if name in found:
            raise ValueError(f"There are two methods {name!r}; give a dict with a name for each.")
        estimator = workflow.for_list(estimator, rows.y.size, rows.qid)
        found[name] = Method(name, estimator, _form(estimator), _spec(estimator))
    return found


def _named_method(text: str, metric: str, rows: RowsToCompare) -> tuple[str, Any]:
    """The name to show and the estimator that a text stands for."""
    graded = rows.graded
    if text == BASELINE:
        text = "ridge-regression-cv" if graded else "logistic-regression-cv"
    if text in method_names():
        return text, _of_forerank("Ranker", {"metric": metric, "methods": [text]}, graded)
    head, params = _parsed(text)
    if head.lower() in _RIVALS:
        return text, _rival(
            head.lower(), params, _Scorer(metric, rows.y.size, rows.qid is not None), graded
        )
    if "." in head:
        return text.removeprefix(head.rpartition(".")[0] + "."), _imported(head, params)
    if head.lower() == "ranker":
        params = {"metric": metric} | params
    return text, _of_forerank(head, params, graded)


def _of_forerank(name: str, params: dict[str, Any], graded: bool) -> Any:
    try:
        # Ranker takes grades as they are.
        estimator = workflow.make_ranker(name, params, graded=graded and name.lower() != "ranker")
    except ValueError as error:
        if not str(error).startswith("There is no ranker"):
            raise
        raise ValueError(
            f"{error} Other methods are {', '.join(_RIVALS)}, a method of Ranker such as 'pairs, logistic', and import "
            "paths such as sklearn.ensemble.HistGradientBoostingClassifier."
        ) from None
    if "random_state" in estimator.get_params() and "random_state" not in params:
        estimator.set_params(random_state=None)  # each seed sets it
    return estimator


def _parsed(text: str) -> tuple[str, dict[str, Any]]:
    """A name and the parameters in parentheses after it, which are literals: nothing is evaluated."""
    head, bracket, rest = text.strip().partition("(")
    head = head.strip()
    if not bracket:
        return head, {}
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError("parameters have names")
        params = {}
        for each in call.keywords:
            if each.arg is None:
                raise ValueError("parameters have names")
            params[each.arg] = ast.literal_eval(each.value)
    except (SyntaxError, ValueError) as error:
        raise ValueError(
            f"{text!r} cannot be read ({first_line(error)}); write NAME(parameter=value, ...) with numbers, strings, "
            "lists, True, False or None."
        ) from None
    return head, params


def _imported(path: str, params: dict[str, Any]) -> Any:
    module, _, name = path.rpartition(".")
    try:
        found = getattr(import_module(module), name)
    except ImportError as error:
        raise ValueError(
            f"{path} cannot be imported ({first_line(error)}): is it spelt right and installed?"
        ) from None
    except AttributeError:
        raise ValueError(f"{module} has no {name}.") from None
    if not inspect.isclass(found) or not hasattr(found, "fit") or not hasattr(found, "get_params"):
        raise ValueError(
            f"{path} is no estimator of the scikit-learn kind: a class with fit and get_params."
        )
    return _made(found, params)


def _made(kind: Any, params: dict[str, Any]) -> Any:
    try:
        return kind(**params)
    except TypeError as error:
        raise ValueError(f"{kind.__name__}: {first_line(error)}.") from None


def _rival(name: str, params: dict[str, Any], scorer: "_Scorer", graded: bool) -> Any:
    if name == "ridge-regression-cv":
        from sklearn.linear_model import RidgeCV
        from sklearn.model_selection import KFold

        shuffled = KFold(5, shuffle=True, random_state=0)
        return _made(
            RidgeCV, {"alphas": np.logspace(-2, 4, 7), "cv": shuffled, "scoring": scorer} | params
        )
    if name == "logistic-regression-cv":
        from sklearn.linear_model import LogisticRegressionCV
        from sklearn.model_selection import StratifiedKFold

        # Tuned by what it is judged by, on shuffled folds, as Ranker is: rows of a file often come
        # in order of time. Parameters are named one by one since their defaults change between
        # versions.
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        scoring = "neg_log_loss" if graded else scorer
        chosen: dict[str, Any] = {
            "scoring": scoring,
            "cv": folds,
            "max_iter": 1000,
            "l1_ratios": (0,),
            "use_legacy_attributes": False,
        }
        possible = inspect.signature(LogisticRegressionCV.__init__).parameters
        if "use_legacy_attributes" not in possible:  # an older scikit-learn
            chosen = {"scoring": scoring, "cv": folds, "max_iter": 1000}
        return _made(LogisticRegressionCV, chosen | params)
    quiet = {
        "lightgbm": ("LGBMClassifier", {"verbosity": -1}),
        "xgboost": ("XGBClassifier", {"verbosity": 0}),
    }
    kind, silent = quiet[name]
    try:
        module = import_module(name)
    except ImportError:
        raise ValueError(f"{name} is not installed: pip install {name}") from None
    return _made(getattr(module, kind), silent | params)


@dataclass(frozen=True)
class _Scorer:
    """A measure of lists of so many rows as scikit-learn's searches call it; ready to be sent to
    another process.
    """

    metric: str
    list_rows: int
    grouped: bool

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        # Searches of scikit-learn know no groups: where there are some, the first k of all rows of
        # a fold count.
        n = X.shape[0]
        measure = measure_named(self.metric).for_rows(n, n if self.grouped else self.list_rows)
        return measure.function(y, score_rows(estimator, X))


def _form(estimator: Any) -> str:
    if isinstance(estimator, Pipeline) or isinstance(
        getattr(estimator, "estimator", None), Pipeline
    ):
        return "rows"
    with suppress(Exception):  # an estimator of another kind has no tags
        return "gaps" if get_tags(estimator).input_tags.allow_nan else "prepared"
    return "prepared"


def takes_sparse(estimator: Any) -> bool:
    with suppress(Exception):
        return bool(get_tags(estimator).input_tags.sparse)
    return True


def seeded(estimator: Any, seed: int) -> Any:
    """A fresh copy, its random states set where they are not, and on one thread where no number of
    them is given.
    """
    fresh = clone(estimator, safe=False)
    if hasattr(fresh, "get_params"):
        free = [name for name, value in fresh.get_params().items() if value is None]
        for last, value in (("random_state", seed), ("n_jobs", 1)):
            fresh.set_params(
                **dict.fromkeys(
                    (name for name in free if re.search(rf"(^|__){last}$", name)), value
                )
            )
    return fresh


def _spec(estimator: Any) -> str:
    """The class and its parameters in a few letters."""
    params = estimator.get_params() if hasattr(estimator, "get_params") else vars(estimator)
    shown = re.sub(
        r" at 0x[0-9a-f]+", "", repr(sorted((name, repr(value)) for name, value in params.items()))
    )
    return digest_of(f"{type(estimator).__module__}.{type(estimator).__qualname__}{shown}".encode())


# --- Measures ---


def measure_names(metric: str, graded: bool) -> tuple[str, ...]:
    """The chosen measure first, then others."""
    measure_named(metric)  # says what is wrong with it
    names = dict.fromkeys([metric, *_MEASURES])
    if not graded:
        return tuple(
            name for name in names if name == metric or name != "wmw"
        )  # AUC, where there are two classes
    if not takes_grades(metric):
        raise ValueError(
            f"metric={metric!r} is for two classes, and the labels are grades: choose wmw or ndcg@k."
        )
    return tuple(name for name in names if takes_grades(name))
