"""What forerank computes and prints, recorded bit for bit, to check that a change of the code
changes no result.

    python tests/recording.py write before.json                  # with the code as it was
    python tests/recording.py compare before.json                # with the code as it is
    python tests/recording.py compare before.json --only 'command/*'

An item is a fit, a simulation, a measure or a command, on small synthetic data with fixed seeds.
Each has fields:

- numbers and arrays, kept with all their bits (coefficients, scores, objectives, certificates,
  histories, curves);
- texts, kept whole (printed output, JSON, ranked lists, pages), and beside them the figures that
  they contain, in
  their order: where a sentence is reworded, the figures in it must still be the same;
- names (of methods and measures), which may be renamed;
- bytes (pictures, exported models), of which only a digest is kept.

Durations, dates, versions, digests and the temporary directory are replaced by a placeholder. An
item that raises is kept as its exception. `compare` prints what is not equal, with a summary at the
end, and exits with 1 where a figure differs or a field is missing; a changed text with the same
figures is shown and accepted.

The recording belongs to one machine and one set of installed packages: other processors round
otherwise. Only public names are used, and commands as a shell runs them; modules that may move are
looked for in several places.
"""
# ruff: noqa: E402

import argparse
import base64
import dataclasses
import difflib
import fnmatch
import gzip
import hashlib
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

# One thread, before NumPy is loaded: sums over several threads may be rounded otherwise from run to
# run.
SURROUNDINGS = {
    "COLUMNS": "100",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "MPLBACKEND": "agg",
}
if __name__ == "__main__":  # not where pytest looks for doctests
    os.environ.update(SURROUNDINGS)
    os.environ.pop("FORERANK_DATA", None)

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import forerank
from forerank import active, losses, metrics

FORMAT = 1
HERE = Path(__file__).resolve().parent
OLD_MODELS = HERE / ("model_files" if (HERE / "model_files").exists() else "data")

# --- Modules that may move ---

PLACES = {
    "bounds": ("forerank.bounds", "forerank.metrics.bounds"),
    "datasets": ("forerank.datasets", "forerank.data.datasets", "forerank.data.data_sets"),
    "displays": ("forerank.displays", "forerank.plots"),
    "graphs": ("forerank.graphs",),
    "io": ("forerank.io", "forerank.data.readers", "forerank.data"),
    "objectives": ("forerank.objectives",),
    "pairsums": ("forerank.pairsums",),
}


def module(name: str) -> Any:
    """A module at the first of its places that exists."""
    for place in PLACES[name]:
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            if not str(error.name).startswith("forerank"):
                raise
    raise ModuleNotFoundError(
        f"{name} is at none of {', '.join(PLACES[name])}; add its place to PLACES."
    )


# --- Fields ---

# Keys whose values are durations, and keys whose values are names that may be changed.
DURATIONS = re.compile(r"(?:^|_)(?:seconds|time)(?:$| per )")
NAMES = {"method", "methods", "strategy", "best", "best_method_", "dtype"}
# Arrays up to this number of values are kept whole, so that the largest difference can be told; of
# larger ones the first values and a digest.
WHOLE = 4000

NUMBER = re.compile(
    r"(?<![\w.])(?:(?<![\w)\]%.-])[-+])?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?"
)
# Method names with a figure in them, which is no result.
METHOD_WITH_FIGURE = re.compile(
    r"\btop[ -]\d+(?: ?%|-?percent|-?pct)?(?=[, -]+(?:share|squared))", re.IGNORECASE
)


@dataclasses.dataclass
class Text:
    """A text; `figures` says whether the numbers in it are results."""

    text: str
    figures: bool = True


def figures_of(text: str) -> list[str]:
    """The numbers in a text, in their order, without separators of thousands."""
    return [found.replace(",", "") for found in NUMBER.findall(METHOD_WITH_FIGURE.sub("", text))]


def is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating)


def flatten(value: Any, path: str = "", key: str = "") -> dict[str, dict]:
    """Fields by their path. Objects of other kinds, such as estimators and figures, have none."""
    if DURATIONS.search(key):
        return {}
    if sp.issparse(value):
        value = value.toarray()
    if isinstance(value, str) and key in NAMES:
        return {path: {"kind": "name", "text": value}}
    if value is None or isinstance(value, str):
        value = Text(str(value))
    if isinstance(value, Text):
        figures = {"figures": figures_of(value.text)} if value.figures else {}
        return {path: {"kind": "text", "text": value.text, **figures}}
    if isinstance(value, bytes):
        return {
            path: {"kind": "bytes", "size": len(value), "sha256": hashlib.sha256(value).hexdigest()}
        }
    if is_number(value):
        exact = float(value).hex() if isinstance(value, float | np.floating) else str(int(value))
        return {path: {"kind": "number", "exact": exact, "shown": repr(value)}}
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "biuf":
            return {path: array_field(value)}
        return flatten(value.tolist(), path, key)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        found = {}
        for name, each in value.items():
            if not str(name).startswith("_"):
                found |= flatten(each, f"{path}/{name}".lstrip("/"), str(name))
        return found
    if isinstance(value, list | tuple):
        return flatten_list(list(value), path, key)
    return {}


def flatten_list(value: list, path: str, key: str) -> dict[str, dict]:
    if value and all(is_number(each) for each in value):
        return {path: array_field(np.array(value))}
    if all(isinstance(each, str) for each in value):
        lines = "\n".join(value)
        return (
            {path: {"kind": "name", "text": lines}} if key in NAMES else flatten(Text(lines), path)
        )
    rows = [dataclasses.asdict(each) if dataclasses.is_dataclass(each) else each for each in value]
    rows = [each._asdict() if hasattr(each, "_asdict") else each for each in rows]
    if all(isinstance(each, Mapping) for each in rows) and len({tuple(each) for each in rows}) == 1:
        rows = [
            {name: [each[name] for each in rows] for name in rows[0]}
        ]  # a table: a field for each column
        return flatten(rows[0], path)
    found = {}
    for number, each in enumerate(rows):
        found |= flatten(each, f"{path}/{number}", key)
    return found


def array_field(value: np.ndarray) -> dict:
    value = np.ascontiguousarray(value)
    raw = value.tobytes()
    field = {
        "kind": "array",
        "dtype": str(value.dtype),
        "shape": list(value.shape),
        "sha256": hashlib.sha256(raw).hexdigest(),
        "first": [str(each) for each in value.ravel()[:6]],
    }
    if value.size <= WHOLE:
        field["bytes"] = base64.b64encode(raw).decode("ascii")
    return field


def by_name(values: Mapping) -> dict:
    """A mapping from names, as two columns: names may change and values may not."""
    return {"method": [str(name) for name in values], "value": list(values.values())}


# --- Items ---

ITEMS: dict[str, Callable[[], Any]] = {}


def item(name: str, *arguments: Any, **options: Any) -> Callable:
    """Decorator: a function without parameters that returns what is to be recorded."""

    def add(function: Callable) -> Callable:
        if name in ITEMS:
            raise ValueError(f"there are two items {name!r}")
        ITEMS[name] = partial(function, *arguments, **options)
        return function

    return add


def record(name: str) -> dict[str, dict]:
    """The fields of an item, its warnings among them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = flatten(ITEMS[name]())
        except Exception as error:  # kept, and the next item goes on
            found = flatten({"exception": Text(masked(f"{type(error).__name__}: {error}"))})
    said = [masked(f"{each.category.__name__}: {each.message}") for each in caught]
    return found | flatten({"warnings": said} if said else {})


# --- Synthetic data ---


@dataclasses.dataclass(frozen=True)
class Rows:
    X: Any
    y: Any
    grade: Any
    weight: Any
    qid: Any


@cache
def rows(n: int = 240, d: int = 6, seed: int = 0, noise: float = 0.8) -> Rows:
    """Rows of which three in ten are positive, with four grades, weights (some zero) and groups of
    about 15.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, -1] = np.round(X[:, -1])
    latent = X @ np.linspace(1.0, -0.6, d) + noise * rng.standard_normal(n)
    y = (latent > np.quantile(latent, 0.7)).astype(int)
    grade = np.digitize(latent, np.quantile(latent, [0.4, 0.7, 0.9]))
    return Rows(X, y, grade, rng.integers(0, 5, n) / 2.0, rng.integers(0, n // 15, n))


@cache
def sparse_rows(n: int = 240, d: int = 30, seed: int = 1) -> Rows:
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.2)
    latent = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    y = (latent > np.quantile(latent, 0.7)).astype(int)
    grade = np.digitize(latent, np.quantile(latent, [0.4, 0.7, 0.9]))
    return Rows(sp.csr_array(X), y, grade, rng.integers(0, 5, n) / 2.0, rng.integers(0, n // 15, n))


NEW = rows(60, seed=9).X


# --- Estimators ---


def fitted(estimator: Any, X: Any, y: Any, new: Any = None, **given: Any) -> dict:
    """Everything that a fit leaves behind, and its scores."""
    estimator.fit(X, y, **given)
    found = {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and name[0] != "_"
    }
    found.pop("cv_results_", None)
    found["scores"] = estimator.decision_function(X)
    found["rank"] = estimator.rank(X) if hasattr(estimator, "rank") else None
    if new is not None:
        found["scores of new rows"] = estimator.decision_function(new)
    return found


def plain(make: Callable[[], Any], new: Any = NEW, **given: Any) -> dict:
    data = rows()
    return fitted(make(), data.X, data.y, new, **given)


PAIR_LOSSES = ("exponential", "hinge", "logistic", "squared", "squared_hinge")
KINDS = {
    "dense": lambda: (rows().X, rows().y, {}),
    "csr": lambda: (sparse_rows().X, sparse_rows().y, {}),
    "float32": lambda: (rows().X.astype(np.float32), rows().y, {}),
    "columns-first": lambda: (np.asfortranarray(rows().X), rows().y, {}),
    "easy": lambda: (rows(noise=0.1).X, rows(noise=0.1).y, {}),
    "easy-weighted": lambda: (
        rows(noise=0.1).X,
        rows(noise=0.1).y,
        {"sample_weight": rows(noise=0.1).weight},
    ),
    "grouped": lambda: (rows().X, rows().y, {"qid": rows().qid}),
    "graded": lambda: (rows().X, rows().grade, {}),
    "weighted": lambda: (rows().X, rows().y, {"sample_weight": rows().weight}),
    "csr-graded-grouped-weighted": lambda: (
        sparse_rows().X,
        sparse_rows().grade,
        {"qid": sparse_rows().qid, "sample_weight": sparse_rows().weight},
    ),
}


def of_kinds(make: Callable[[], Any], *kinds: str) -> dict:
    """A fit for each kind of rows; one that fails is kept as its exception."""
    found = {}
    for kind in kinds:
        X, y, given = KINDS[kind]()
        ranker = make()
        if "graded" in kind:
            ranker.set_params(graph="order")
        try:
            found[kind] = fitted(ranker, X, y, **given)
        except (ValueError, TypeError) as error:
            found[kind] = {"exception": f"{type(error).__name__}: {error}"}
    return found


for loss in PAIR_LOSSES:
    item(f"fit/pairwise/{loss}")(
        partial(of_kinds, partial(forerank.PairwiseRanker, loss, alpha=0.01), *KINDS)
    )
    item(f"fit/pointwise/{loss}")(
        partial(
            of_kinds,
            partial(forerank.PointwiseRanker, loss, alpha=0.01),
            *("dense", "csr", "float32", "weighted"),
        )
    )


@item("fit/pairwise/graphs")
def graphs() -> dict:
    data, named = rows(), module("graphs")
    given = {"chain": "chain", "one-against-rest": "one-against-rest", "edges": [(3, 0), (2, 1)]}
    written = {
        "order": named.order([0, 1, 2]),
        "chain": named.chain([0, 1, 2]),
        "two": named.bipartite([1], [0]),
    }
    fits = {
        name: fitted(
            forerank.PairwiseRanker("logistic", alpha=0.1, graph=graph), data.X, data.grade
        )
        for name, graph in given.items()
    }
    return {**fits, "written out": {name: np.array(edges) for name, edges in written.items()}}


@item("fit/pairwise/warm-start")
def warm_start() -> dict:
    data = rows()
    ranker = forerank.PairwiseRanker("logistic", alpha=0.1, warm_start=True)
    first = fitted(ranker, data.X, data.y)
    return {"first": first, "second": fitted(ranker.set_params(alpha=0.01), data.X, data.y)}


@item("fit/pointwise/class-weight")
def class_weight() -> dict:
    return {
        "balanced": plain(partial(forerank.PointwiseRanker, class_weight="balanced", alpha=0.01)),
        "given": plain(
            partial(forerank.PointwiseRanker, "hinge", class_weight={0: 1.0, 1: 3.0}, alpha=0.01)
        ),
        "no intercept": plain(
            partial(forerank.PointwiseRanker, "squared_hinge", fit_intercept=False, alpha=0.01)
        ),
    }


for loss in ("exponential", "hinge", "logistic", "squared_hinge"):
    kinds = ("dense", "easy", "csr", "float32", "weighted", "easy-weighted")
    item(f"fit/top-push/{loss}")(
        partial(of_kinds, partial(forerank.TopPush, loss, alpha=0.01), *kinds)
    )
    item(f"fit/sparse-top-push/{loss}")(
        partial(of_kinds, partial(forerank.SparseTopPush, loss, alpha=0.01), *kinds)
    )


@item("fit/top-push/nesterov")
def nesterov() -> dict:
    return {
        loss: of_kinds(
            partial(forerank.TopPush, loss, alpha=0.01, solver="nesterov"),
            "dense",
            "easy",
            "csr",
            "weighted",
        )
        for loss in ("hinge", "squared_hinge", "logistic")
    }


@item("fit/top-ranker")
def top_ranker() -> dict:
    return {
        f"{at} {loss}": of_kinds(
            partial(forerank.TopRanker, loss, at=at, alpha=0.01), "easy", "csr", "easy-weighted"
        )
        for at in ("max", 5, 0.1)
        for loss in ("hinge", "squared_hinge", "logistic")
    }


@item("fit/aatp")
def aatp() -> dict:
    return {
        anchors: of_kinds(
            partial(forerank.AATPRanker, 0.2, anchors=anchors, alpha=0.01), "easy", "csr"
        )
        for anchors in ("auto", "all")
    }


item("fit/map")(
    partial(of_kinds, partial(forerank.MAPRanker, alpha=0.01), "dense", "csr", "float32")
)
item("fit/partial-auc")(
    partial(
        of_kinds,
        partial(forerank.PartialAUCRanker, (0.0, 0.2), alpha=0.01),
        "dense",
        "csr",
        "weighted",
    )
)
item("fit/partial-auc/middle")(
    partial(plain, partial(forerank.PartialAUCRanker, (0.1, 0.4), alpha=0.01))
)


@item("fit/owpc")
def owpc() -> dict:
    return {
        "harmonic": of_kinds(partial(forerank.OWPCRanker, alpha=0.01), "dense", "csr", "weighted"),
        "uniform": plain(partial(forerank.OWPCRanker, "uniform", alpha=0.01)),
        "given": plain(partial(forerank.OWPCRanker, [1.0, 0.5, 0.25], alpha=0.01)),
    }


@item("fit/rankboost")
def rankboost() -> dict:
    found = of_kinds(
        partial(forerank.RankBoost, 20), "dense", "csr", "grouped", "graded", "weighted"
    )
    data = rows()
    ranker = forerank.RankBoost(15, max_bins=8).fit(data.X, data.y)
    found["staged"] = np.array(list(ranker.staged_decision_function(data.X)))
    found["importances"] = ranker.feature_importances_
    return found


for sums in ("erfc", "exact", "direct"):
    item(f"fit/rank-ncg/{sums}")(
        partial(
            of_kinds,
            partial(forerank.RankNCG, sums, alpha=0.01),
            *("dense", "csr", "grouped", "graded", "weighted"),
        )
    )
item("fit/ranknet")(
    partial(
        of_kinds,
        partial(forerank.RankNet, 4, alpha=0.01, max_iter=40, random_state=0),
        *("dense", "csr", "grouped", "graded", "weighted"),
    )
)


def sampled(**options: Any) -> dict:
    data = rows()
    ranker = forerank.ActiveSamplingRanker(
        alpha=0.01, step=20, budget=120, random_state=0, **options
    )
    test = (rows(60, seed=9).X, rows(60, seed=9).y)
    return fitted(ranker, data.X, data.y, NEW, eval_set=test)


for strategy in ("random", "soft-close", "soft-correct", "hard-close", "hard-correct"):
    item(f"fit/active-sampling/{strategy}", strategy=strategy)(sampled)


@item("fit/active-sampling/options")
def active_sampling_options() -> dict:
    ranker = partial(forerank.ActiveSamplingRanker, alpha=0.01, step=30, budget=90, random_state=1)
    return {
        "points": sampled(gamma=0.3, class_weight="balanced"),
        "uniform": sampled(gamma="uniform", bias_correction=False),
        "normalized": sampled(bias_correction="normalized"),
        "rows": of_kinds(ranker, "csr", "weighted"),
    }


@item("fit/combined-sgd")
def combined_sgd() -> dict:
    ranker = partial(forerank.CombinedSGDRanker, n_steps=4000, alpha=0.01, random_state=0)
    return {
        **{
            loss: plain(partial(ranker, loss, pair_loss=loss))
            for loss in ("hinge", "logistic", "squared")
        },
        "last": plain(partial(ranker, gamma=0.9, average=False, fit_intercept=False)),
        "rows": of_kinds(ranker, "csr", "weighted"),
    }


@item("fit/quadratic-features")
def quadratic() -> dict:
    data = rows()
    features = forerank.QuadraticFeatures(0.5).fit(data.X)
    pipeline = make_pipeline(
        StandardScaler(), forerank.QuadraticFeatures(), forerank.PairwiseRanker(alpha=0.01)
    )
    return {
        "features": features.transform(data.X[:20]),
        "csr": said(lambda: forerank.QuadraticFeatures().fit_transform(sparse_rows().X[:10])),
        "names": list(features.get_feature_names_out()),
        "scores": pipeline.fit(data.X, data.y).decision_function(NEW),
    }


@item("fit/pool-ranker")
def pool_ranker() -> dict:
    found = {}
    for name, data in (("dense", rows()), ("csr", sparse_rows())):
        y = np.where(np.arange(data.y.size) % 4 == 0, data.y, -1)
        for loss in ("squared_hinge", "logistic", "squared", "exponential"):
            found[f"{name} {loss}"] = fitted(active.PoolRanker(loss=loss), data.X, y)
        found[f"{name} labelled"] = fitted(active.PoolRanker(C=1.0, unread_weight=0.0), data.X, y)
    return found


@item("fit/alpha-paths")
def alpha_paths() -> dict:
    data = rows(noise=0.1)
    rankers = {
        **{f"pairwise {loss}": forerank.PairwiseRanker(loss) for loss in PAIR_LOSSES},
        **{f"pointwise {loss}": forerank.PointwiseRanker(loss) for loss in PAIR_LOSSES},
        "top-push": forerank.TopPush(),
        "sparse-top-push": forerank.SparseTopPush(),
        "top-ranker": forerank.TopRanker(at=0.1),
        "aatp": forerank.AATPRanker(0.2),
        "map": forerank.MAPRanker(),
        "partial-auc": forerank.PartialAUCRanker(),
        "owpc": forerank.OWPCRanker(),
        "rank-ncg": forerank.RankNCG(),
    }
    found = {
        name: vars(ranker.alpha_path(data.X, data.y, [1.0, 0.1, 0.01]))
        for name, ranker in rankers.items()
    }
    path = forerank.PairwiseRanker("logistic", graph="order").alpha_path(
        data.X, data.grade, 5, sample_weight=data.weight, qid=data.qid
    )
    return {**found, "graded": vars(path)}


@item("fit/errors")
def fit_errors() -> dict:
    """What is said about rows and parameters that cannot be used."""
    data = rows()
    nan = data.X.copy()
    nan[3, 2] = np.nan
    tries: dict[str, Callable[[], Any]] = {
        "one class": lambda: forerank.PairwiseRanker().fit(data.X, np.ones(data.y.size)),
        "NaN": lambda: forerank.PairwiseRanker().fit(nan, data.y),
        "lengths": lambda: forerank.PairwiseRanker().fit(data.X, data.y[:-1]),
        "weights": lambda: forerank.PairwiseRanker().fit(
            data.X, data.y, sample_weight=-data.weight
        ),
        "qid": lambda: forerank.PairwiseRanker().fit(data.X, data.y, qid=np.arange(data.y.size)),
        "loss": lambda: forerank.PairwiseRanker("hinged").fit(data.X, data.y),
        "alpha": lambda: forerank.PairwiseRanker(alpha=-1.0).fit(data.X, data.y),
        "graph": lambda: forerank.PairwiseRanker(graph=[(0, 1), (1, 0)]).fit(data.X, data.y),
        "grades": lambda: forerank.TopPush().fit(data.X, data.grade),
        "solver": lambda: forerank.TopPush("logistic", solver="nesterov").fit(data.X, data.y),
        "budget": lambda: forerank.ActiveSamplingRanker(budget=10**9).fit(data.X, data.y),
        "metric": lambda: forerank.Ranker("aucc").fit(data.X, data.y),
        "metric of grades": lambda: forerank.Ranker("ap").fit(data.X, data.grade),
        "method": lambda: forerank.Ranker(methods=["none such"]).fit(data.X, data.y),
        "not fitted": lambda: forerank.PairwiseRanker().decision_function(data.X),
        "steps": lambda: forerank.PairwiseRanker("logistic", max_iter=1, alpha=1e-6).fit(
            data.X, data.y
        ),
    }
    return {name: said(attempt) for name, attempt in tries.items()}


def said(attempt: Callable[[], Any]) -> str:
    try:
        attempt()
    except Exception as error:  # its text is what is recorded
        return f"{type(error).__name__}: {error}"
    return "no error"


# --- The choice of a method ---


def chosen(
    metric: str, y: str = "y", new: Any = NEW, given: tuple[str, ...] = (), **options: Any
) -> dict:
    data = rows()
    ranker = forerank.Ranker(metric, cv=3, alphas=5, random_state=0, **options)
    found = fitted(
        ranker,
        data.X,
        getattr(data, y),
        new,
        **{_argument(name): getattr(data, name) for name in given},
    )
    found["results"] = ranker.cv_results_
    found["best_method_"] = ranker.best_method_
    if hasattr(ranker, "calibration_"):
        found["probabilities"] = ranker.predict_proba(data.X)
    return found


def _argument(name: str) -> str:
    return "sample_weight" if name == "weight" else name


for metric in ("auc", "ap", "pos_at_top", "wmw", "ndcg@5", "pauc@0.2", "recall@20"):
    item(f"choose/{metric}", metric)(chosen)
item("choose/graded-wmw", "wmw", "grade")(chosen)
item("choose/graded-ndcg-grouped", "ndcg@5", "grade", given=("qid",))(chosen)
item("choose/grouped", "auc", given=("qid",))(chosen)
item("choose/weighted", "auc", given=("weight",))(chosen)
item("choose/calibrated", "ap", calibrate=True)(chosen)
item("choose/maps", "auc", maps=["quadratic", "nystroem", "fourier"], methods="auto")(chosen)
item("choose/unscaled-list-rows", "recall@50", scale=False, list_rows=1000)(chosen)
item("choose/searched-on-part", "auc", search_rows=100)(chosen)


@item("choose/csr")
def chosen_csr() -> dict:
    data = sparse_rows()
    ranker = forerank.Ranker("ap", cv=3, alphas=4, random_state=0)
    return {**fitted(ranker, data.X, data.y), "results": ranker.cv_results_}


@item("choose/grid-search")
def grid_search() -> dict:
    data = rows()
    grid = {"loss": ["logistic", "squared_hinge"], "alpha": [0.001, 0.1]}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(forerank.PairwiseRanker(), grid, scoring="roc_auc", cv=folds).fit(
        data.X, data.y
    )
    results = {
        name: value for name, value in search.cv_results_.items() if name.endswith("test_score")
    }
    return {
        "results": results,
        "best": search.best_params_,
        "scores": search.decision_function(NEW),
    }


# --- Losses, sums over pairs, samples ---


@item("losses")
def loss_values() -> dict:
    margins = np.linspace(-3.0, 3.0, 25)
    named = [losses.get_loss(name) for name in PAIR_LOSSES]
    found = {}
    for loss in (
        *named,
        losses.SmoothedHinge(0.3),
        losses.DirectLogistic(),
        losses.ErfcLogistic(1e-8),
    ):
        own = found[repr(loss)] = {}
        for name in ("value", "slope", "derivative", "curvature", "second_derivative", "conjugate"):
            if hasattr(loss, name):
                with np.errstate(all="ignore"):
                    own[name] = value_or_error(partial(getattr(loss, name), margins))
    return found


def value_or_error(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # recorded in place of the value
        return f"{type(error).__name__}: {error}"


@item("objectives/all-pairs")
def all_pairs() -> dict:
    data, AllPairs = rows(), module("objectives").AllPairs
    scores = np.round(data.X @ np.ones(data.X.shape[1]), 1)
    given = [losses.get_loss(name) for name in PAIR_LOSSES] + [
        losses.SmoothedHinge(0.3),
        losses.ErfcLogistic(1e-8),
    ]
    found = {}
    for loss in given:
        for name, group in (("all", None), ("grouped", data.qid)):
            there = AllPairs(data.grade, loss, weight=data.weight, group=group).at(scores)
            own = found[f"{loss!r} {name}"] = {"value": there.value, "gradient": there.gradient}
            if hasattr(there, "curvature_product"):
                own["curvature"] = value_or_error(partial(there.curvature_product, np.cos(scores)))
    return found


@item("pairsums/erfc")
def erfc() -> dict:
    sums, rng = module("pairsums"), np.random.default_rng(3)
    targets, sources, weight = (
        rng.standard_normal(200),
        rng.standard_normal(300),
        rng.uniform(size=300),
    )
    return {
        "fast": {
            str(eps): sums.erfc_sum(targets, sources, weight, eps) for eps in (1e-4, 1e-6, 1e-12)
        },
        "direct": sums.erfc_sum_direct(targets, sources, weight),
    }


@item("datasets")
def made_data() -> dict:
    data = module("datasets")
    return {
        "randnet": data.make_randnet(50, 5, 4, random_state=0),
        "randpoly": data.make_randpoly(50, 5, 4, random_state=0),
        **{
            f"bipartite {kind}": value_or_error(
                partial(data.make_bipartite, 50, kind, prior=0.3, n_features=6, random_state=0)
            )
            for kind in ("linear", "rules", "none such")
        },
        "grades": data.cut_into_grades(np.sin(np.arange(30.0)), 4),
    }


# --- Measures ---

MEASURES: dict[str, Callable[..., float]] = {
    "roc_auc": metrics.roc_auc,
    "average_precision": metrics.average_precision,
    "pos_at_top": metrics.pos_at_top,
    "rank_loss": metrics.rank_loss,
    "wmw": metrics.wmw,
    "wmw, ties 0": partial(metrics.wmw, ties=0.0),
    "ndcg": metrics.ndcg,
    "ndcg at 10": partial(metrics.ndcg, k=10),
    "ndcg, exponential": partial(metrics.ndcg, gain="exponential"),
    **{
        f"partial_auc {kind}": partial(metrics.partial_auc, standardize=kind)
        for kind in (False, "mcclish", "range")
    },
    "partial_auc, middle": partial(metrics.partial_auc, standardize="range", fpr_range=(0.2, 0.5)),
    "precision at 10": metrics.precision_at_k,
    "recall at 33": partial(metrics.recall_at_k, k=33),
    "tpr at 0.05": partial(metrics.tpr_at_fpr, fpr=0.05),
    "work_saved": metrics.work_saved,
}


def measured(y: Any, kinds: tuple[str, ...] = tuple(MEASURES), **given: Any) -> dict:
    data = rows()
    exact = data.X @ np.linspace(1.0, 0.0, data.X.shape[1])
    return {
        name: {
            kind: value_or_error(partial(measure, y, scores, **given))
            for kind, scores in (("exact", exact), ("ties", np.round(exact)))
        }
        for name, measure in MEASURES.items()
        if name in kinds
    }


GRADED_MEASURES = ("wmw", "wmw, ties 0", "ndcg", "ndcg at 10", "ndcg, exponential", "roc_auc")
item("metrics/plain")(lambda: measured(rows().y))
item("metrics/weighted")(lambda: measured(rows().y, sample_weight=rows().weight))
item("metrics/grouped")(lambda: measured(rows().y, qid=rows().qid))
item("metrics/grouped-weighted")(
    lambda: measured(rows().y, qid=rows().qid, sample_weight=rows().weight)
)
item("metrics/graded")(lambda: measured(rows().grade, GRADED_MEASURES))
item("metrics/graded-grouped")(lambda: measured(rows().grade, GRADED_MEASURES, qid=rows().qid))


@item("metrics/intervals-and-scorers")
def intervals() -> dict:
    data = rows()
    scores = np.round(data.X[:, 0], 1)
    ranker = forerank.PairwiseRanker().fit(data.X, data.y)
    return {
        "delong": metrics.auc_interval(data.y, scores),
        "90 %": metrics.auc_interval(data.y, scores, confidence=0.9),
        "bootstrap": metrics.auc_interval(
            data.y, scores, method="bootstrap", n_resamples=200, random_state=0
        ),
        "weighted": metrics.auc_interval(
            data.y,
            scores,
            method="bootstrap",
            n_resamples=200,
            random_state=0,
            sample_weight=data.weight,
        ),
        "scorers": {
            name: metrics.get_scorer(name)(ranker, data.X, data.y) for name in metrics.SCORERS
        },
    }


@item("bounds")
def bounds() -> dict:
    found, data = module("bounds"), rows()
    probability = 1.0 / (1.0 + np.exp(-data.X[:, 0]))
    ranker = forerank.PointwiseRanker(alpha=0.01).fit(data.X, data.y)
    reports = {
        "plain": found.report(ranker, data.X, data.y),
        "probability": found.report(ranker, data.X, data.y, probability=probability),
        "weighted": found.report(ranker, data.X, data.y, sample_weight=data.weight),
    }
    return {
        "reports": reports,
        "printed": {name: str(report) for name, report in reports.items()},
        "expected": found.expected_rank_loss(data.X[:, 1], probability, sample_weight=data.weight),
        "balanced_error": found.balanced_error_bound(0.2),
        "error": found.error_bound(0.1, 0.3),
        "error_rates": found.error_rates_bound(0.1, 0.2, 0.3),
        "exponential": found.exponential_regret_bound(0.05),
        "logistic": found.logistic_regret_bound(0.05),
        "margin": found.margin_bound(0.3),
        "deviation": found.weight_deviation_bound(0.3, 1000, 0.05),
    }


@item("displays")
def displays() -> dict:
    import matplotlib.pyplot as plt

    plots, data = module("displays"), rows()
    scores = data.X[:, 0] + 0.5 * data.X[:, 1]
    ranker = forerank.Ranker("auc", cv=3, alphas=4, random_state=0).fit(data.X, data.y)
    models = [
        forerank.PairwiseRanker(alpha=alpha).fit(data.X, data.y) for alpha in (0.01, 1.0, 10.0)
    ]
    shown = {
        "hits": plots.HitsDisplay.from_predictions(data.y, scores),
        "hits of a ranker": plots.HitsDisplay.from_estimator(
            ranker, data.X, data.y, sample_weight=data.weight
        ),
        "scores": plots.ScoreDistributionDisplay.from_predictions(data.y, scores, bins=12),
        "stability": plots.TopStabilityDisplay.from_estimators(models, data.X, max_k=50),
        "ranks": plots.CriticalDifferenceDisplay.from_ranks({"a": 1.2, "b": 1.9, "c": 2.9}, 0.8),
        "path": plots.AlphaPathDisplay.from_estimator(ranker),
    }
    plt.close("all")
    found = {name: vars(display) for name, display in shown.items()}
    found["path"] = {
        name: by_name(value) if name == "paths" else value for name, value in found["path"].items()
    }
    return {
        name: {key: value for key, value in each.items() if not key.endswith("_") and key != "name"}
        for name, each in found.items()
    }


# --- Active learning ---

STRATEGIES = {
    "lossmin": "lossmin",
    "entropy": "entropy",
    "uncertain": "uncertain",
    "diverse": active.Diverse(3),
    "random": "random",
    "greedy": "greedy",
}


def simulated(strategy: Any, data: Rows | None = None, **options: Any) -> dict:
    data = data or rows(150, seed=4)
    found = active.simulate(
        data.X, data.y, strategy=strategy, random_state=0, **{"batch": 8, **options}
    )
    reached = {
        str(recall): value_or_error(partial(found.records_to_recall, recall))
        for recall in (0.2, 0.5)
    }
    return {"simulation": found, "recall": found.recall, "reached": reached}


for name, strategy in STRATEGIES.items():
    test = (rows(60, seed=9).X, rows(60, seed=9).y)
    item(f"simulate/{name}", strategy, test=test, rounds=8)(simulated)


@item("simulate/grouped")
def simulated_groups() -> dict:
    data = rows(150, seed=4)
    return {
        name: simulated(strategy, data, qid=data.qid, batch=1, rounds=5, seeds=(1, 2))
        for name, strategy in STRATEGIES.items()
    }


@item("simulate/rankers")
def simulated_rankers() -> dict:
    rankers = {
        "pairwise": forerank.PairwiseRanker("logistic", alpha=0.1),
        "pointwise": forerank.PointwiseRanker(),
    }
    return {
        **{name: simulated("greedy", ranker=ranker, rounds=6) for name, ranker in rankers.items()},
        "csr": simulated("greedy", sparse_rows(), until_recall=0.8, batch=0.2),
    }


@item("simulate/stopping")
def stopping() -> dict:
    rules = {
        "budget": active.Budget(40),
        "irrelevant": active.IrrelevantInARow(15),
        "recall": active.RecallBound(0.8, 0.8),
        "stable": active.RankingStable(0.97, 2),
        "either": active.Budget(60) | active.IrrelevantInARow(12),
        "both": active.Budget(30) & active.IrrelevantInARow(5),
    }
    return {
        name: {"rule": repr(rule), **simulated("greedy", stopping=rule)}
        for name, rule in rules.items()
    }


@item("simulate/compare")
def compared_strategies() -> dict:
    data = rows(120, seed=5)
    options = {"batch": 10, "test": (rows(60, seed=9).X, rows(60, seed=9).y)}
    with tempfile.TemporaryDirectory() as directory:
        kept = Path(directory) / "runs.jsonl"
        again = [
            active.compare_strategies(
                data.X,
                data.y,
                strategies=["greedy", "random"],
                n_runs=n,
                progress=False,
                results=kept,
                **options,
            )
            for n in (1, 3)
        ][-1]
    return {
        "runs": again.runs,
        "table": again.table(),
        "tests": {name: again.test(name, "greedy", "random") for name in ("auc", "map", "ndcg@10")},
        "band": again.band("auc", "greedy"),
        "ordering": again.ordering("auc"),
        "paired": active.paired_t([1.0, 2.0, 4.0], [0.5, 2.5, 3.0]),
    }


@item("loop/resumed")
def resumed_loop() -> dict:
    """Half of the labels, then a new loop from the record of the first."""
    data = rows(100, seed=6)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "loop.jsonl"
        open_loop = partial(
            active.LabellingLoop,
            data.X,
            strategy="lossmin",
            batch=4,
            stopping=active.RankingStable(0.999),
            record=path,
        )
        first = open_loop(random_state=3)
        first.tell(
            [int(np.flatnonzero(data.y == 1)[0]), int(np.flatnonzero(data.y == 0)[0])],
            [1, 0],
            seed=True,
        )
        asked = []
        for _ in range(4):
            asked.append(first.ask())
            first.tell(asked[-1], data.y[asked[-1]])
        second = open_loop()
        for _ in range(4):
            asked.append(second.ask())
            second.tell(asked[-1], data.y[asked[-1]])
        kept = masked(path.read_text())
    return {
        "asked": asked,
        "order": second.order,
        "labels": second.labels,
        "steps": [
            {"rows": step.rows, "labels": step.labels, "agreement": step.agreement}
            for step in second.steps
        ],
        "scores": second.scores(),
        "record": kept,
        "stopped": second.stopped,
        "refused": said(lambda: second.tell(0, 7)),
    }


@item("loop/posterior")
def posterior() -> dict:
    data = rows()
    scores = np.round(data.X[:, 0], 2)
    return {
        "threshold": active.rank_threshold(scores),
        "grouped threshold": active.rank_threshold(scores, groups=data.qid),
        "posterior": active.relevance_posterior(scores),
        "grouped": active.relevance_posterior(scores, groups=data.qid),
    }


# --- Methods compared ---


def compared(target: str, methods: list[str], given: tuple[str, ...] = (), **options: Any) -> dict:
    data = rows()
    arguments = {_argument(name): getattr(data, name) for name in given}
    found = forerank.compare(data.X, getattr(data, target), methods, cv=3, **arguments, **options)
    values = {name: by_name(found.values(name)) for name in (None, *found.records[0]["measures"])}
    values = {
        str(name): [list(each.values()) for each in value["value"]]
        for name, value in values.items()
    }
    return {
        "values": list(values.values()),
        "table": found.table(),
        "differences": found.differences(),
        "ranks": by_name(found.ranks()),
        "friedman": found.friedman(),
        "cd": found.cd() if callable(found.cd) else found.cd,
        "sentence": found.sentence() if callable(found.sentence) else found.sentence,
        "title": found.title,
        "notes": [*found.notes],
        "as dict": masked(json.dumps(found.to_dict(), indent=1, default=str)),
    }


METHODS = [
    "PairwiseRanker(alpha=0.01)",
    "sklearn.linear_model.LogisticRegression(C=0.1)",
    "TopPush",
]
GRADED = ["PairwiseRanker(alpha=0.01)", "RankNCG(alpha=0.01)", "sklearn.linear_model.Ridge"]
item("compare/binary", "y", METHODS, seeds=2)(compared)
item("compare/weighted-ap", "y", METHODS[:2], ("weight",), metric="ap")(compared)
item("compare/grouped-recall", "y", METHODS[:2], ("qid",), metric="recall@5")(compared)
item(
    "compare/default",
    "y",
    ["Ranker", "logistic-regression-cv", "pairwise-logistic"],
    metric="recall@20",
)(compared)
item("compare/graded", "grade", GRADED, seeds=2)(compared)
item(
    "compare/graded-classifier", "grade", [*GRADED[:1], "sklearn.linear_model.LogisticRegression"]
)(compared)
item("compare/graded-ndcg-grouped", "grade", GRADED, ("qid",), metric="ndcg@5")(compared)


# --- Commands ---


@cache
def workspace() -> Path:
    """A directory of files to read, in all formats; it is removed when the program ends."""
    directory = _temporary_directory()
    frame, grades = table(260), table(200, seed=2)
    frame.to_csv(directory / "train.csv", index=False)
    table(80, seed=1).to_csv(directory / "new.csv", index=False)
    frame.to_parquet(directory / "train.parquet")
    (directory / "train.csv.gz").write_bytes(
        gzip.compress((directory / "train.csv").read_bytes(), mtime=0)
    )
    frame.to_csv(directory / "semicolons.csv", index=False, sep=";", encoding="cp1252")
    grades.drop(columns="y").to_csv(directory / "grades.csv", index=False)
    frame.assign(y=frame["y"].where(frame.index % 10 != 0)).to_csv(
        directory / "gaps.csv", index=False
    )
    frame.drop(columns="income").to_csv(directory / "lacking.csv", index=False)
    frame.assign(y="yes").to_csv(directory / "one-class.csv", index=False)
    (directory / "empty.csv").write_text("")
    (directory / "ragged.csv").write_text("a,b,y\n1,2,0\n3,4,1,9\n")
    (directory / "ranker.toml").write_text(
        'ranker = "PairwiseRanker"\nalpha = 0.5\nloss = "logistic"\n'
    )
    old = json.loads((OLD_MODELS / "format-1.json").read_text())
    pd.DataFrame(old["rows"]).to_csv(directory / "old.csv", index=False)
    data = sparse_rows()
    dump_svmlight_file(
        data.X, np.where(data.y == 1, 1, -1), str(directory / "rows.svm"), zero_based=False
    )
    order = np.argsort(data.qid, kind="stable")
    dump_svmlight_file(
        data.X[order],
        data.grade[order],
        str(directory / "queries.svm"),
        zero_based=False,
        query_id=data.qid[order],
    )
    return directory


@cache
def _holder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="recording-")


def _temporary_directory() -> Path:
    return Path(_holder().name)


def table(n: int, seed: int = 0) -> pd.DataFrame:
    """Numbers with gaps, categories, texts, dates, an id, groups; labels in y, and grades."""
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal(n)
    words = np.array(
        ["late payment", "new customer", "call again", "no interest", "asked for an offer"]
    )
    likely = np.clip((latent + 2.0) / 4.0, 0.0, 1.0)
    texts = [
        " ".join(rng.choice(words, 4)) + (" offer" if rng.uniform() < p else " bill")
        for p in likely
    ]
    return pd.DataFrame(
        {
            "id": [f"row-{seed}-{k:04d}" for k in range(n)],
            "age": np.round(40 + 10 * (0.6 * latent + rng.standard_normal(n))).astype(int),
            "income": np.where(
                rng.uniform(size=n) < 0.1, np.nan, np.round(latent + rng.standard_normal(n), 3)
            ),
            "city": rng.choice(["Rome", "Oslo", "Zürich", "Lyon"], n),
            "note": texts,
            "since": (
                pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
            ).strftime("%Y-%m-%d"),
            "query": rng.integers(0, n // 10, n),
            "grade": np.digitize(latent + 0.5 * rng.standard_normal(n), [-0.5, 0.5, 1.3]),
            "y": np.where(latent + 0.5 * rng.standard_normal(n) > 0.6, "yes", "no"),
        }
    )


def run(*words: Any, given: bytes | None = None) -> dict:
    """A command in the workspace: what it prints, and its exit code."""
    source = str(Path(forerank.__file__).resolve().parents[1])
    environment = {name: value for name, value in os.environ.items() if name != "FORERANK_DATA"}
    done = subprocess.run(
        [sys.executable, "-m", "forerank", *map(str, words)],
        cwd=workspace(),
        env={**environment, **SURROUNDINGS, "PYTHONPATH": source},
        input=given if given is not None else b"",
        capture_output=True,
        check=False,
    )
    texts = {"stdout": done.stdout, "stderr": done.stderr}
    return {"exit code": done.returncode} | {
        name: masked(text.decode()) for name, text in texts.items()
    }


BASE = ("--drop", "grade", "--drop", "query")
MODELS: dict[str, tuple[str, ...]] = {
    "table": ("train.csv", "-t", "y", "--ranker", "PairwiseRanker", "--alpha", "0.01", *BASE),
    "calibrated": (
        "train.csv",
        "-t",
        "y",
        "--calibrate",
        "--drop",
        "note",
        "--metric",
        "recall@50",
        *BASE,
    ),
    "grouped": (
        "grades.csv",
        "-t",
        "grade",
        "-g",
        "query",
        "--ranker",
        "PairwiseRanker",
        "--alpha",
        "0.1",
    ),
    "sparse": ("rows.svm", "--ranker", "TopPush", "--alpha", "0.01"),
}


@cache
def model(name: str) -> tuple[str, dict]:
    """A model file in the workspace, and what fitting it printed."""
    file = f"{name}.forerank"
    return file, run("fit", *MODELS[name], "-o", file)


def content(name: str) -> Any:
    """A file that a command wrote: the text of lists, the columns of tables, the bytes of others."""
    path = workspace() / name
    if not path.exists():
        return "no such file"
    if path.suffix == ".parquet":
        frame = pd.read_parquet(path)
        return {
            "columns": list(frame.columns),
            "values": {name: frame[name].to_numpy() for name in frame.columns},
        }
    return (
        masked(path.read_text()) if path.suffix in (".csv", ".tsv", ".jsonl") else path.read_bytes()
    )


def command(
    *words: Any, writes: str | None = None, needs: str | None = None, given: str | None = None
) -> dict:
    """A command, with a model that is fitted first (its file is the second word), and what it
    writes.
    """
    if needs is not None:
        words = (words[0], model(needs)[0], *words[1:])
    found = run(*words, given=None if given is None else (workspace() / given).read_bytes())
    return found if writes is None else {**found, "written": content(writes)}


for name in MODELS:
    item(f"command/fit-{name}")(lambda name=name: model(name)[1])

COMMANDS: dict[str, tuple[tuple, dict]] = {
    "fit-chosen-json": (
        ("fit", "train.csv.gz", "-t", "y", *BASE, "-o", "a.forerank", "--json"),
        {},
    ),
    "fit-parquet-params": (
        (
            "fit",
            "train.parquet",
            "-t",
            "y",
            *BASE,
            "-o",
            "b.forerank",
            "--params",
            "ranker.toml",
            "--alpha=2",
            "--json",
        ),
        {},
    ),
    "fit-semicolons-positive": (
        (
            *(
                "fit",
                "semicolons.csv",
                "-t",
                "y",
                "--positive",
                "no",
                "--encoding",
                "cp1252",
                *BASE,
                "-o",
                "c.forerank",
            ),
            *("--category", "age", "--check", "0", "--metric", "pauc@0.2"),
        ),
        {},
    ),
    "fit-queries-graded": (
        ("fit", "queries.svm", "--metric", "ndcg@5", "-o", "e.forerank", "--json"),
        {},
    ),
    "fit-skip-unlabelled": (
        (
            "fit",
            "gaps.csv",
            "-t",
            "y",
            "--skip-unlabelled",
            "--ranker",
            "RankBoost",
            "-o",
            "f.forerank",
            *BASE,
        ),
        {},
    ),
    "rank-csv": (
        ("rank", "new.csv", "-o", "ranked.csv"),
        {"needs": "table", "writes": "ranked.csv"},
    ),
    "rank-parquet": (
        ("rank", "train.parquet", "-o", "ranked.parquet", "--json"),
        {"needs": "table", "writes": "ranked.parquet"},
    ),
    "rank-standard-input": (
        ("rank", "-", "--top", "5", "-q"),
        {"needs": "table", "given": "new.csv"},
    ),
    "rank-probability": (
        ("rank", "new.csv", "--probability", "--top", "20", "-o", "likely.csv"),
        {"needs": "calibrated", "writes": "likely.csv"},
    ),
    "rank-grouped": (
        ("rank", "grades.csv", "--top", "2", "-o", "groups.tsv"),
        {"needs": "grouped", "writes": "groups.tsv"},
    ),
    "rank-svmlight": (("rank", "rows.svm", "--top", "10"), {"needs": "sparse"}),
    "rank-allow-missing": (
        ("rank", "lacking.csv", "--allow-missing", "--top", "5"),
        {"needs": "table"},
    ),
    "evaluate": (
        ("evaluate", "train.csv", "--by", "city", "--k", "30", "--curves", "curves.png"),
        {"needs": "table", "writes": "curves.png"},
    ),
    "evaluate-json": (("evaluate", "train.parquet", "--json"), {"needs": "calibrated"}),
    "evaluate-grouped": (("evaluate", "grades.csv", "--json", "--k", "3"), {"needs": "grouped"}),
    "evaluate-sparse": (("evaluate", "rows.svm", "--confidence", "0.9"), {"needs": "sparse"}),
    "compare": (
        (
            *(
                "compare",
                "train.csv",
                "-t",
                "y",
                *BASE,
                "--folds",
                "3",
                "-m",
                METHODS[0],
                "-m",
                METHODS[1],
            ),
            *("--record", "compare.jsonl"),
        ),
        {"writes": "compare.jsonl"},
    ),
    "compare-json": (
        (
            *(
                "compare",
                "train.csv.gz",
                "-t",
                "y",
                *BASE,
                "--folds",
                "3",
                "-m",
                "Ranker",
                "-m",
                "pointwise-logistic",
            ),
            *("--metric", "recall@30", "--json"),
        ),
        {},
    ),
    "compare-graded": (
        (
            "compare",
            "queries.svm",
            "--folds",
            "3",
            "--metric",
            "ndcg@5",
            "-m",
            GRADED[0],
            "-m",
            GRADED[2],
        ),
        {},
    ),
    "explain": (
        ("explain", "new.csv", "--row", "1", "--row", "17", "--weights", "8"),
        {"needs": "table"},
    ),
    "explain-json": (("explain", "new.csv", "--json"), {"needs": "calibrated"}),
    "explain-weights": (("explain",), {"needs": "sparse"}),
    "inspect": (("inspect",), {"needs": "table"}),
    "inspect-json": (("inspect", "--json"), {"needs": "grouped"}),
    "export": (
        ("export", "-o", "model.onnx", "--json"),
        {"needs": "calibrated", "writes": "model.onnx"},
    ),
    "export-sparse": (
        ("export", "-o", "sparse.onnx"),
        {"needs": "sparse", "writes": "sparse.onnx"},
    ),
    "export-text": (("export", "-o", "text.onnx"), {"needs": "table"}),
    "old-model": (("inspect", OLD_MODELS / "format-1.forerank"), {}),
    "old-model-rank": (("rank", OLD_MODELS / "format-1.forerank", "old.csv"), {}),
    "version": (("--version",), {}),
}
for name, (words, options) in COMMANDS.items():
    item(f"command/{name}", *words, **options)(command)

ERRORS: dict[str, tuple] = {
    "no-file": ("fit", "none.csv", "-t", "y", "-o", "x.forerank"),
    "no-target": ("fit", "train.csv", "-t", "yy", "-o", "x.forerank"),
    "one-class": ("fit", "one-class.csv", "-t", "y", "-o", "x.forerank"),
    "empty": ("fit", "empty.csv", "-t", "y", "-o", "x.forerank"),
    "ragged": ("fit", "ragged.csv", "-t", "y", "-o", "x.forerank"),
    "unlabelled": ("fit", "gaps.csv", "-t", "y", "-o", "x.forerank"),
    "metric": ("fit", "train.csv", "-t", "y", "--metric", "recall", "-o", "x.forerank"),
    "ranker": ("fit", "train.csv", "-t", "y", "--ranker", "TopRank", "-o", "x.forerank"),
    "parameter": (
        "fit",
        "train.csv",
        "-t",
        "y",
        "--ranker",
        "TopPush",
        "--alfa",
        "1",
        "-o",
        "x.forerank",
    ),
    "method": ("compare", "train.csv", "-t", "y", "-m", "none such"),
    "not-a-model": ("inspect", "train.csv"),
}
NEEDING: dict[str, tuple] = {
    "lacking-column": ("rank", "lacking.csv"),
    "no-probability": ("rank", "new.csv", "--probability"),
    "existing-file": ("rank", "new.csv", "-o", "train.csv"),
}


@item("command/errors")
def command_errors() -> dict:
    found = {name: command(*words) for name, words in ERRORS.items()}
    return found | {name: command(*words, needs="table") for name, words in NEEDING.items()}


class VisibleText(HTMLParser):
    """The text of a page as it is read, a line for each element."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.tag = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tag = tag

    def handle_endtag(self, tag: str) -> None:
        self.tag = ""

    def handle_data(self, data: str) -> None:
        if self.tag not in ("style", "script") and data.strip():
            self.lines.append(" ".join(data.split()))


PICTURE = re.compile(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)")


def page_parts(page: str) -> dict:
    """A page as its visible text, its source without pictures, and its pictures with and without
    their lettering.
    """
    pictures = [base64.b64decode(each).decode() for each in PICTURE.findall(page)]
    bare = PICTURE.sub("<picture>", page)
    return {
        "text": masked("\n".join(VisibleText(bare).lines)),
        "source": Text(masked(bare), figures=False),
        "pictures": {
            str(k): {"svg": picture.encode(), "lines": np.array(lines_of(picture))}
            for k, picture in enumerate(pictures)
        },
    }


def lines_of(picture: str) -> list[float]:
    """The coordinates of what is drawn by a line or a marker, without lettering, which goes with
    the wording.
    """
    without = re.sub(r'<g id="text_\d+">.*?</g>\s*</g>', "", picture, flags=re.DOTALL)
    drawn = re.findall(r'<path d="([^"]*)" clip-path', without)
    return [float(each) for path in drawn for each in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", path)]


def report(*words: str, page: str) -> dict:
    found = run("report", *words, "-o", page)
    path = workspace() / page
    return {**found, **(page_parts(path.read_text()) if path.exists() else {})}


item(
    "command/report",
    "train.csv",
    "-t",
    "y",
    *BASE,
    "--folds",
    "3",
    "--drop",
    "note",
    page="page.html",
)(report)
item(
    "command/report-parquet",
    *(
        "train.parquet",
        "-t",
        "y",
        *BASE,
        "--folds",
        "3",
        "--ranker",
        "PairwiseRanker",
        "--metric",
        "recall@40",
    ),
    *("--against", "TopPush", "--json"),
    page="page-recall.html",
)(report)
item(
    "command/report-graded",
    *("queries.svm", "--ranker", "PairwiseRanker", "--folds", "3", "--metric", "ndcg@5"),
    page="page-graded.html",
)(report)


@item("command/demo")
def demo() -> dict:
    found = run("demo", "-o", "demo")
    written = sorted(path.name for path in (workspace() / "demo").iterdir())
    return {
        **found,
        "files": written,
        "ranked": content("demo/ranked.csv"),
        "roc": content("demo/roc.png"),
    }


# --- What differs from run to run ---

PACKAGES = "forerank|scikit-learn|numpy|scipy|python|pandas|pyarrow|numba|joblib|skops|matplotlib|jinja2|onnx|typer|rich"
MASKS: list[tuple[str, str]] = [
    (r"Traceback \(most recent call last\):\n(?:[ ].*\n)+", "<traceback>\n"),
    (r"note: compiling [^\n]*\n", ""),
    (r"\b[0-9a-f]{40,}\n\s+[0-9a-f]+\b", "<digest>"),
    (r"(?<![\w.])(?=[0-9a-f]*[a-f][0-9a-f]*[a-f])[0-9a-f]{12,}(?![\w.-])", "<digest>"),
    (r'("(?:\w+_)?seconds": )\{[^}]*\}', r"\1<seconds>"),
    (r'("(?:\w+_)?(?:seconds|time)": )[-+.\deE]+', r"\1<seconds>"),
    (r"(?<![\w.])\d+(?:\.\d+)? (s|seconds)\b", r"<seconds> \1"),
    (rf"\b({PACKAGES})(\s+)\d+\.[\w.]*\w", r"\1\2<version>"),
    (rf'"({PACKAGES})": "\d+\.[\w.]*"', r'"\1": "<version>"'),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "<date>"),
    (r"\S+\.py:\d+: ", "<line>: "),
    (r"\bscores agree to \S+", "scores agree to <difference>"),
]
# The head of a column of durations in a printed table.
DURATION_HEAD = re.compile(r"^(?:m?s|seconds|milliseconds)\b.*\bfit$|^(?:seconds|fit time.*)$")


def masked(text: str) -> str:
    """A text with a placeholder for what is not the same in every run."""
    text = text.replace("\r\n", "\n")
    for place in {
        str(_temporary_directory()),
        tempfile.gettempdir() + "/recording-",
        str(HERE.parent),
    }:
        text = text.replace(place, "<directory>")
    text = re.sub(re.escape(tempfile.gettempdir()) + r"/\w+", "<directory>", text)
    for pattern, placeholder in MASKS:
        text = re.sub(pattern, placeholder, text)
    return masked_tables(text)


def masked_tables(text: str) -> str:
    """Cells below a head that names a duration, masked at their width."""
    lines, columns = [], []
    for line in text.split("\n"):
        if line.startswith("┃"):
            columns = [
                k for k, cell in enumerate(line.split("┃")) if DURATION_HEAD.match(cell.strip())
            ]
        elif line.startswith("│") and columns:
            cells = line.split("│")
            for k in columns:
                cells[k] = "-".center(len(cells[k])) if k < len(cells) else ""
            line = "│".join(cells)
        elif line.startswith("└"):
            columns = []
        lines.append(line)
    return "\n".join(lines)


# --- Writing and comparing ---


def recorded(name: str) -> dict[str, dict]:
    begin = time.perf_counter()
    found = record(name)
    print(f"{time.perf_counter() - begin:6.1f} s  {name}", file=sys.stderr, flush=True)
    return found


def write(path: Path, names: list[str]) -> int:
    items = {name: recorded(name) for name in names}
    path.write_text(json.dumps({"format": FORMAT, "items": items}, indent=0, ensure_ascii=False))
    raised = [name for name, fields in items.items() if "exception" in fields]
    print(
        f"{len(items)} items, {sum(map(len, items.values()))} fields written to {path}; raised: {raised or 'none'}"
    )
    return 0


EQUAL, REWORDED, DIFFERENT, NEW_FIELD = "equal", "text differs, figures equal", "DIFFERENT", "new"


def compare_fields(old: dict | None, new: dict | None) -> tuple[str, list[str]]:
    """How a field compares with the recorded one, and what to show of it."""
    if old is None:
        return NEW_FIELD, [f"not in the recording: {shown(new)}"]
    if new is None:
        return DIFFERENT, [f"is missing; it was {shown(old)}"]
    if old == new:
        return EQUAL, []
    if old["kind"] != new["kind"]:
        return DIFFERENT, [f"was {shown(old)}, is {shown(new)}"]
    if old["kind"] in ("name", "bytes"):
        return REWORDED, [f"was {shown(old)}, is {shown(new)}"]
    if old["kind"] == "text":
        return compare_texts(old, new)
    if old["kind"] == "number":
        return DIFFERENT, [f"was {old['shown']}, is {new['shown']}"]
    return DIFFERENT, [f"was {shown(old)}, is {shown(new)}", *largest_difference(old, new)]


def compare_texts(old: dict, new: dict, most: int = 14) -> tuple[str, list[str]]:
    before, after = old.get("figures", []), new.get("figures", [])
    lines = list(
        difflib.unified_diff(old["text"].split("\n"), new["text"].split("\n"), lineterm="", n=0)
    )[2:]
    lines = [line[:220] for line in lines if not line.startswith("@@")]
    if len(lines) > most:
        lines = [*lines[:most], f"... and {len(lines) - most} lines more"]
    if before == after:
        return REWORDED, lines
    gone, come = Counter(before) - Counter(after), Counter(after) - Counter(before)
    if not gone and not come:
        return DIFFERENT, ["the same figures in another order", *lines]
    figures = f"figures gone: {' '.join(list(gone)[:12]) or '-'}; figures come: {' '.join(list(come)[:12]) or '-'}"
    return DIFFERENT, [figures, *lines]


def shown(field: dict | None) -> str:
    """A field in a few words."""
    assert field is not None
    match field["kind"]:
        case "number":
            return field["shown"]
        case "array":
            return f"{field['dtype']} {field['shape']} [{', '.join(field['first'])} ...]"
        case "bytes":
            return f"{field['size']} bytes {field['sha256'][:12]}"
        case _:
            return repr(field["text"][:160])


def largest_difference(old: dict, new: dict) -> list[str]:
    if old["shape"] != new["shape"] or "bytes" not in old or "bytes" not in new:
        return []
    before, after = (
        np.frombuffer(base64.b64decode(field["bytes"]), dtype=field["dtype"]).astype(float)
        for field in (old, new)
    )
    apart = np.abs(before - after)
    differing = ~((before == after) | (np.isnan(before) & np.isnan(after)))
    if not differing.any():
        return [
            "the values are equal: the type of number, the sign of a zero or the bits of a NaN differ"
        ]
    return [f"{differing.sum()} of {before.size} values differ, at most by {np.nanmax(apart):.3g}"]


def compare(path: Path, pattern: str) -> int:
    kept = json.loads(path.read_text())
    if kept["format"] != FORMAT:
        raise SystemExit(
            f"{path} has format {kept['format']}, this script writes {FORMAT}: write the recording anew."
        )
    before = {
        name: fields for name, fields in kept["items"].items() if fnmatch.fnmatch(name, pattern)
    }
    now = [name for name in ITEMS if fnmatch.fnmatch(name, pattern)]
    counts: Counter[str] = Counter()
    for name in [*before, *(name for name in now if name not in before)]:
        old, new = before.get(name, {}), recorded(name) if name in now else {}
        results = {
            path: compare_fields(old.get(path), new.get(path))
            for path in [*old, *(p for p in new if p not in old)]
        }
        own = Counter(state for state, _ in results.values())
        counts += own
        print(
            f"{name}: " + ", ".join(f"{number} {state}" for state, number in own.items()),
            flush=True,
        )
        for path_, (state, lines) in results.items():
            if state != EQUAL:
                print(f"  {state}: {path_}")
                print("".join(f"      {line}\n" for line in lines), end="")
    print(
        f"{len(before)} items: {counts[EQUAL]} fields equal, {counts[REWORDED]} texts differ with equal figures, "
        f"{counts[DIFFERENT]} DIFFERENT, {counts[NEW_FIELD]} new"
    )
    return 1 if counts[DIFFERENT] else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("write", "compare", "list"))
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument(
        "--only", default="*", metavar="PATTERN", help="items whose name matches, such as 'fit/*'"
    )
    arguments = parser.parse_args()
    names = [name for name in ITEMS if fnmatch.fnmatch(name, arguments.only)]
    if arguments.action == "list":
        print("\n".join(names))
        return 0
    if arguments.file is None:
        parser.error("give the file of the recording.")
    if not names:
        parser.error(f"no item matches {arguments.only!r}; see 'list'.")
    return (
        write(arguments.file, names)
        if arguments.action == "write"
        else compare(arguments.file, arguments.only)
    )


if __name__ == "__main__":
    sys.exit(main())
