"""Nonlinear rankings at the top of the list: TopPush on an approximate kernel.

    python examples/kernels.py [picture.png]

Relevant rows lie on an arc among irrelevant ones, so no linear score puts any of them first.
scikit-learn's Nystroem and RBFSampler map the rows to columns whose inner products approximate a
Gaussian kernel; in a Pipeline with TopPush they give a nonlinear ranking, and alpha and gamma are
chosen by the share of positives at the top.
"""

import sys
import warnings

import numpy as np
from sklearn.datasets import make_moons
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline

from forerank import TopPush
from forerank.metrics import average_precision, pos_at_top


def rankers() -> dict:
    """The linear ranker, and two nonlinear ones with their parameters searched."""
    at_the_top = make_scorer(pos_at_top, response_method="decision_function")
    nystroem = make_pipeline(Nystroem(n_components=150, random_state=0), TopPush())
    fourier = make_pipeline(RBFSampler(n_components=400, random_state=0), TopPush())
    alphas, gammas = [1e-1, 1e-2, 1e-3], [0.5, 2.0, 8.0]
    return {
        "linear": TopPush(alpha=1e-2),
        "Nystroem": GridSearchCV(
            nystroem,
            {"toppush__alpha": alphas, "nystroem__gamma": gammas},
            scoring=at_the_top,
            cv=3,
        ),
        "random Fourier features": GridSearchCV(
            fourier,
            {"toppush__alpha": alphas, "rbfsampler__gamma": gammas},
            scoring=at_the_top,
            cv=3,
        ),
    }


def main(picture: str | None = None) -> None:
    X, y = make_moons(1500, noise=0.25, random_state=0)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, random_state=0, stratify=y
    )
    fitted = {}
    print(f"{'':>25} {'Pos@Top':>8} {'AP':>6}")
    for name, ranker in rankers().items():
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # w = 0 is the best for some parameters of the search
            fitted[name] = ranker.fit(X_train, y_train)
        scores = fitted[name].decision_function(X_test)
        top, precision = pos_at_top(y_test, scores), average_precision(y_test, scores)
        print(f"{name:>25} {top:>8.3f} {precision:>6.3f}")
    if picture:
        draw(fitted, X_test, y_test, picture)


def draw(fitted: dict, X: np.ndarray, y: np.ndarray, path: str) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(
        1, len(fitted), figsize=(12, 4), layout="constrained", sharey=True
    )
    grid = np.stack(np.meshgrid(np.linspace(-1.8, 2.8, 150), np.linspace(-1.4, 1.8, 150)), axis=-1)
    for axes, (name, ranker) in zip(panels, fitted.items(), strict=True):
        field = ranker.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
        axes.contourf(grid[..., 0], grid[..., 1], field, levels=20, cmap="RdBu_r", alpha=0.6)
        first = ranker.decision_function(X[y == 0]).max()
        if np.ptp(field) > 0.0:  # the linear ranker finds no direction at all here
            axes.contour(
                grid[..., 0], grid[..., 1], field, levels=[first], colors="k", linewidths=1.5
            )
        axes.scatter(*X[y == 0].T, s=6, color="#1f4e79", label="irrelevant")
        axes.scatter(*X[y == 1].T, s=6, color="#a61c1c", label="relevant")
        axes.set_title(
            f"{name}: {pos_at_top(y, ranker.decision_function(X)):.0%} at the top", fontsize=10
        )
    panels[0].legend(fontsize=8, loc="lower left")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:2])
