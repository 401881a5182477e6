"""Grades in place of yes and no: which preference graph, and which ranker?

    python examples/grades.py [picture.png]

The progress of a disease is cut into four grades. In the full order every higher grade belongs
ahead of every lower one; other readings are a chain, in which only neighbours are compared, and the
highest grade against the rest. The same rows are then ranked by five rankers on the full order, and
compared by the share of pairs in the right order (WMW) on rows not seen.
"""

import sys

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from forerank import PairwiseRanker, QuadraticFeatures, RankBoost, RankNCG, RankNet
from forerank.data.datasets import cut_into_grades
from forerank.metrics import wmw


def rankers() -> dict:
    """The same task by five methods."""
    return {
        "PairwiseRanker": make_pipeline(
            StandardScaler(), PairwiseRanker("logistic", graph="order", alpha=1e-2)
        ),
        "RankNCG": make_pipeline(StandardScaler(), RankNCG(graph="order", alpha=1e-2)),
        "quadratic": make_pipeline(
            StandardScaler(), QuadraticFeatures(), PairwiseRanker(graph="order", alpha=1.0)
        ),
        "RankNet": make_pipeline(
            StandardScaler(), RankNet(graph="order", alpha=1e-2, random_state=0)
        ),
        "RankBoost": RankBoost(50, graph="order"),
    }


def main(picture: str | None = None) -> None:
    X, target = load_diabetes(return_X_y=True)
    grade = cut_into_grades(target, 4)  # how far the disease went, in four steps
    X_train, X_test, y_train, y_test = train_test_split(X, grade, test_size=0.4, random_state=0)
    print(f"{'fitted on':>20} {'order':>7} {'chain':>7} {'one-against-rest':>17}")
    for graph in ("order", "chain", "one-against-rest"):
        ranker = make_pipeline(
            StandardScaler(), PairwiseRanker("logistic", graph=graph, alpha=1e-2)
        )
        scores = ranker.fit(X_train, y_train).decision_function(X_test)
        found = [wmw(y_test, scores, graph=g) for g in ("order", "chain", "one-against-rest")]
        print(f"{graph:>20} {found[0]:>7.3f} {found[1]:>7.3f} {found[2]:>17.3f}")
    print(f"\n{'ranker':>20} {'order':>7}")
    scored = {}
    for name, ranker in rankers().items():
        scored[name] = ranker.fit(X_train, y_train).decision_function(X_test)
        print(f"{name:>20} {wmw(y_test, scored[name]):>7.3f}")
    if picture:
        draw(scored, y_test, picture)


def draw(scored: dict, grade: np.ndarray, path: str) -> None:
    """For each ranker, where the rows of each grade stand in the ranking."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(
        1, len(scored), figsize=(13, 3.4), layout="constrained", sharey=True
    )
    for axes, (name, scores) in zip(panels, scored.items(), strict=True):
        place = 100.0 * np.argsort(np.argsort(-scores)) / scores.size
        axes.boxplot(
            [place[grade == g] for g in np.unique(grade)], tick_labels=np.unique(grade), widths=0.6
        )
        axes.set_title(f"{name}: WMW {wmw(grade, scores):.3f}", fontsize=10)
        axes.set_xlabel("grade")
    panels[0].set_ylabel("place in the ranking, % from the top")
    panels[0].invert_yaxis()
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:2])
