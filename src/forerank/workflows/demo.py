"""Demonstration on data sets of scikit-learn: tables to rank, and rankers compared by
cross-validation.
"""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from inspect import getdoc
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_diabetes, load_digits
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from forerank import metrics
from forerank._typing import Vector
from forerank.data.datasets import cut_into_grades
from forerank.estimators import PairwiseRanker, PointwiseRanker
from forerank.plots.curves import (
    draw_precision_recall,
    draw_roc,
    mean_precision_recall,
    mean_roc,
)

__all__ = [
    "RankerResult",
    "compare_rankers",
    "draw",
    "rankers",
    "table_rows",
    "write_records",
    "write_tables",
]

# Characters of the texts of `write_records`: about a long abstract.
_LONGEST_TEXT = 1500
_SITE = "https://scikit-learn.org/stable/modules/generated/"


@dataclass
class RankerResult:
    """Held-out labels and scores of one ranker by fold, and the seconds of each fit."""

    name: str
    y: list[NDArray] = field(default_factory=list)
    scores: list[Vector] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def mean(self, metric: Callable[..., float]) -> float:
        """Mean of a measure over the folds."""
        return float(np.mean([metric(y, s) for y, s in zip(self.y, self.scores, strict=True)]))

    def joined(self) -> tuple[NDArray, Vector, NDArray]:
        """Labels, scores and fold numbers of all rows."""
        fold = np.repeat(np.arange(len(self.y)), [y.size for y in self.y])
        return np.concatenate(self.y), np.concatenate(self.scores), fold


def write_records(path: Path) -> Path:
    """Write the documentation of scikit-learn's classes and functions as records to label: title,
    abstract, module and address of each, in a random order.
    """
    from sklearn.utils.discovery import all_estimators, all_functions

    rows = {}
    for name, item in [*all_estimators(), *all_functions()]:
        lines = (getdoc(item) or "").strip().partition("\n")
        if lines[0] and lines[2].strip():
            module = ".".join(part for part in item.__module__.split(".") if part[0] != "_")
            text = " ".join(lines[2].split())[:_LONGEST_TEXT]
            rows[module, name] = [
                f"{name}: {lines[0]}",
                text,
                module,
                f"{_SITE}{module}.{name}.html",
            ]
    order = np.random.default_rng(0).permutation(len(rows))
    made = list(rows.values())
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["title", "abstract", "module", "url"])
        writer.writerows(made[row] for row in order)
    return path


def write_tables(directory: Path) -> tuple[Path, Path]:
    """Write data sets of scikit-learn as files of several formats; returns the paths of the
    labelled tumours and of the new ones.

    tumours.csv and new.csv: breast tumours, numeric columns, with their diagnosis. patients.csv and
    new-patients.csv: diabetes patients, strings and numbers, separated by semicolons; the worst
    quarter a year later is "yes" in `worse`. grades.csv: the same with five grades in `grade`.
    digits.svm and digits-new.svm: handwritten digits as a sparse matrix, eights labelled 1 and
    others -1.
    """
    import pandas as pd

    data = load_breast_cancer()
    frame = pd.DataFrame(data.data, columns=data.feature_names)
    frame.insert(0, "diagnosis", data.target_names[data.target])
    frame.insert(0, "case", [f"case-{k:03d}" for k in range(1, len(frame) + 1)])
    directory.mkdir(parents=True, exist_ok=True)
    paths = directory / "tumours.csv", directory / "new.csv"
    frame.iloc[:400].to_csv(paths[0], index=False)
    frame.iloc[400:].to_csv(paths[1], index=False)
    _write_patients(directory)
    X, digit = load_digits(return_X_y=True)
    y = np.where(digit == 8, 1, -1)
    for name, rows in (("digits.svm", slice(0, 1200)), ("digits-new.svm", slice(1200, None))):
        dump_svmlight_file(X[rows], y[rows], str(directory / name), zero_based=False)
    return paths


def _write_patients(directory: Path) -> None:
    import pandas as pd

    X, progression = load_diabetes(return_X_y=True, scaled=False)
    age = X[:, 0].astype(int)
    age_groups = np.array(["below 40", "40 to 59", "60 and more"])
    blood = ("cholesterol", "ldl", "hdl", "ratio", "triglycerides", "blood sugar")
    columns = {
        "patient": [f"patient-{k:03d}" for k in range(1, len(X) + 1)],
        "age group": age_groups[np.digitize(age, [40, 60])],
        "age": age,
        "sex": [f"sex {code:.0f}" for code in X[:, 1]],  # the source does not name the codes
        **dict(zip(("bmi", "blood pressure", *blood), X[:, 2:].T, strict=True)),
    }
    frame = pd.DataFrame(columns)
    worse = frame.assign(worse=np.where(progression > np.quantile(progression, 0.75), "yes", "no"))
    for name, rows in (("patients.csv", worse.iloc[:330]), ("new-patients.csv", worse.iloc[330:])):
        rows.to_csv(directory / name, index=False, sep=";")
    grades = frame.drop(columns="age group").assign(grade=cut_into_grades(progression, 5))
    grades.to_csv(directory / "grades.csv", index=False)


def rankers() -> dict[str, Any]:
    """The rankers that are compared, by name."""
    balanced = PointwiseRanker("squared_hinge", alpha=1e-3, class_weight="balanced")
    return {
        "pointwise-logistic": PointwiseRanker("logistic", alpha=1e-3),
        "pointwise-squared-hinge": balanced,
        "pairwise-squared-hinge": PairwiseRanker("squared_hinge", alpha=1e-3),
        "pairwise-logistic": PairwiseRanker("logistic", alpha=1e-3),
        "pairwise-hinge (RankSVM)": PairwiseRanker("hinge", alpha=1e-3),
    }


def compare_rankers(n_splits: int = 5, seed: int = 0) -> Iterator[RankerResult]:
    """Cross-validate each ranker on handwritten digits, eights against all others."""
    X, digit = load_digits(return_X_y=True)
    y = digit == 8
    # Kernels are compiled at their first call after an installation: not part of a fit's time.
    for ranker in rankers().values():
        clone(ranker).fit(X[:200], y[:200])
    folds = list(StratifiedKFold(n_splits, shuffle=True, random_state=seed).split(X, y))
    for name, ranker in rankers().items():
        result = RankerResult(name)
        for train, test in folds:
            pipeline = make_pipeline(StandardScaler(), clone(ranker))
            clock = perf_counter()
            pipeline.fit(X[train], y[train])
            result.seconds.append(perf_counter() - clock)
            result.y.append(y[test])
            result.scores.append(pipeline.decision_function(X[test]))
        yield result


def draw(results: list[RankerResult], directory: Path) -> list[Path]:
    """Save the mean ROC and precision-recall curves over the folds; returns the paths."""
    from matplotlib.figure import Figure

    directory.mkdir(parents=True, exist_ok=True)
    joined = {result.name: result.joined() for result in results}
    share = float(np.mean(next(iter(joined.values()))[0]))
    paths = [directory / "roc.png", directory / "precision_recall.png"]
    for path, title in zip(paths, ("ROC", "Precision and recall"), strict=True):
        figure = Figure(figsize=(6.0, 4.6), layout="constrained")
        ax = figure.subplots()
        if path.stem == "roc":
            draw_roc(ax, {name: mean_roc(*each) for name, each in joined.items()})
        else:
            curves = {name: mean_precision_recall(*each) for name, each in joined.items()}
            draw_precision_recall(ax, curves, share)
        ax.set_title(f"{title}: eights against the other digits, mean of the folds", fontsize=11)
        ax.grid(alpha=0.3)
        figure.savefig(path, dpi=120)
    return paths


def table_rows(results: list[RankerResult]) -> list[tuple[str, ...]]:
    """One row of text per ranker: name, AUC, AP, positives at the top, milliseconds per fit."""
    return [
        (
            result.name,
            f"{result.mean(metrics.roc_auc):.4f}",
            f"{result.mean(metrics.average_precision):.4f}",
            f"{result.mean(metrics.pos_at_top):.3f}",
            f"{1000 * float(np.median(result.seconds)):.1f}",
        )
        for result in results
    ]
