"""The main job on data that come with scikit-learn: tables to rank, and rankers compared by
cross-validation.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_diabetes, load_digits
from sklearn.metrics import precision_recall_curve, roc_curve
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from forerank import metrics
from forerank._typing import Vector
from forerank.data.datasets import cut_into_grades
from forerank.estimators import PairwiseRanker, PointwiseRanker

__all__ = ["Comparison", "compare_rankers", "draw", "write_tables"]


@dataclass
class Comparison:
    """Held-out labels and scores of one ranker, fold by fold, and the seconds each fit took."""

    name: str
    y: list[NDArray]
    scores: list[Vector]
    seconds: list[float]

    def mean(self, metric: Callable[..., float]) -> float:
        """The mean of a metric over the folds."""
        return float(np.mean([metric(y, s) for y, s in zip(self.y, self.scores, strict=True)]))


def write_tables(directory: Path) -> tuple[Path, Path]:
    """Data that come with scikit-learn as files of several kinds; returns tumours to learn from,
    and new ones.

    tumours.csv and new.csv: breast tumours, numbers, with their diagnosis. patients.csv and
    new-patients.csv: diabetes patients, words and numbers, separated by semicolons; the worst
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
    for name, rows in (("digits.svm", slice(0, 1200)), ("digits-new.svm", slice(1200, None))):
        dump_svmlight_file(
            X[rows], np.where(digit[rows] == 8, 1, -1), str(directory / name), zero_based=False
        )
    return paths


def _write_patients(directory: Path) -> None:
    import pandas as pd

    X, progression = load_diabetes(return_X_y=True, scaled=False)
    age = X[:, 0].astype(int)
    frame = pd.DataFrame(
        {
            "patient": [f"patient-{k:03d}" for k in range(1, len(X) + 1)],
            "age group": np.array(["below 40", "40 to 59", "60 and more"])[
                np.digitize(age, [40, 60])
            ],
            "age": age,
            "sex": [
                f"sex {code:.0f}" for code in X[:, 1]
            ],  # the source does not say which is which
            **dict(zip(("bmi", "blood pressure"), X[:, 2:4].T, strict=True)),
            **dict(
                zip(
                    ("cholesterol", "ldl", "hdl", "ratio", "triglycerides", "blood sugar"),
                    X[:, 4:].T,
                    strict=True,
                )
            ),
        }
    )
    worse = frame.assign(worse=np.where(progression > np.quantile(progression, 0.75), "yes", "no"))
    for name, rows in (("patients.csv", worse.iloc[:330]), ("new-patients.csv", worse.iloc[330:])):
        rows.to_csv(directory / name, index=False, sep=";")
    grades = frame.drop(columns="age group").assign(grade=cut_into_grades(progression, 5))
    grades.to_csv(directory / "grades.csv", index=False)


def rankers() -> dict[str, Any]:
    """What the demonstration compares."""
    return {
        "rows, logistic": PointwiseRanker("logistic", alpha=1e-3),
        "rows, squared hinge": PointwiseRanker(
            "squared_hinge", alpha=1e-3, class_weight="balanced"
        ),
        "pairs, squared hinge": PairwiseRanker("squared_hinge", alpha=1e-3),
        "pairs, logistic": PairwiseRanker("logistic", alpha=1e-3),
        "pairs, hinge (RankSVM)": PairwiseRanker("hinge", alpha=1e-3),
    }


def compare_rankers(n_splits: int = 5, seed: int = 0) -> Iterator[Comparison]:
    """Cross-validate each ranker on handwritten digits: the eights ahead of all others."""
    X, digit = load_digits(return_X_y=True)
    y = digit == 8
    # Each fit compiles its kernels at its first call in the life of an installation: not part of a
    # fit's time.
    for ranker in rankers().values():
        clone(ranker).fit(X[:200], y[:200])
    folds = list(StratifiedKFold(n_splits, shuffle=True, random_state=seed).split(X, y))
    for name, ranker in rankers().items():
        result = Comparison(name, [], [], [])
        for train, test in folds:
            pipeline = make_pipeline(StandardScaler(), clone(ranker))
            clock = perf_counter()
            pipeline.fit(X[train], y[train])
            result.seconds.append(perf_counter() - clock)
            result.y.append(y[test])
            result.scores.append(pipeline.decision_function(X[test]))
        yield result


def draw(comparisons: list[Comparison], directory: Path) -> list[Path]:
    """Save the mean ROC and precision-recall curves over the folds; returns the files."""
    from matplotlib.figure import Figure

    directory.mkdir(parents=True, exist_ok=True)
    grid = np.linspace(0.0, 1.0, 501)
    files = []
    for title, name, axes, curve in (
        ("ROC", "roc.png", ("false positive rate", "true positive rate"), _roc),
        ("Precision and recall", "precision_recall.png", ("recall", "precision"), _precision),
    ):
        figure = Figure(figsize=(6.0, 4.6), layout="constrained")
        plot = figure.subplots()
        for k, result in enumerate(comparisons):
            mean = np.mean(
                [curve(y, s, grid) for y, s in zip(result.y, result.scores, strict=True)], axis=0
            )
            plot.plot(
                grid,
                mean,
                label=result.name,
                color=f"C{k}",
                linestyle="--" if "rows" in result.name else "-",
            )
        plot.set(xlabel=axes[0], ylabel=axes[1], xlim=(0, 1), ylim=(0, 1.02))
        plot.set_title(f"{title}: eights ahead of the other digits, mean of the folds", fontsize=11)
        plot.grid(alpha=0.3)
        plot.legend(loc="lower right" if name == "roc.png" else "lower left", fontsize=9)
        files.append(directory / name)
        figure.savefig(files[-1], dpi=120)
    return files


def _roc(y: NDArray, scores: Vector, grid: Vector) -> Vector:
    fpr, tpr, _ = roc_curve(y, scores, drop_intermediate=False)
    return np.interp(grid, fpr, tpr)


def _precision(y: NDArray, scores: Vector, grid: Vector) -> Vector:
    """The precision at the first place where each recall is reached."""
    precision, recall, _ = precision_recall_curve(y, scores)
    precision, recall = precision[::-1], recall[::-1]
    return precision[np.minimum(np.searchsorted(recall, grid), recall.size - 1)]


def table_rows(comparisons: list[Comparison]) -> list[tuple[str, ...]]:
    """One row of text per ranker: name, AUC, AP, positives at the top, milliseconds per fit."""
    return [
        (
            result.name,
            f"{result.mean(metrics.roc_auc):.4f}",
            f"{result.mean(metrics.average_precision):.4f}",
            f"{result.mean(metrics.pos_at_top):.3f}",
            f"{1000 * float(np.median(result.seconds)):.1f}",
        )
        for result in comparisons
    ]
