"""What tables, figures and claims read from the records."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import stats

from ..common import Results
from ..pages import slope
from . import published
from .protocol import BASELINES

RIVALS = (*BASELINES, "Random", "Soft-Close")


def per_pool(results: Results, data: str, who: str, **wanted: Any) -> np.ndarray:
    """AUC for each initial pool, averaged over the folds."""
    kind = "gamma" if "gamma" in wanted else "auc"
    records = results.select(kind=kind, data=data, method=who, **wanted)
    seeds = sorted({record["seed"] for record in records})
    return np.array([np.mean([r["auc"] for r in records if r["seed"] == seed]) for seed in seeds])


def verdict(ours: np.ndarray, other: np.ndarray) -> str:
    """Win, loss or tie of `ours` by right-tailed t-tests: two samples of pools, or one against a
    fixed figure.
    """
    if ours.size < 2:
        return "-"
    if np.ptp(ours) == 0.0 and np.ptp(other) == 0.0:
        return "win" if ours[0] > other[0] else "loss" if ours[0] < other[0] else "tie"
    if other.size == 1:
        test = stats.ttest_1samp(ours, other[0], alternative="greater")
    else:
        test = stats.ttest_ind(ours, other, equal_var=False, alternative="greater")
    return "win" if test.pvalue < 0.05 else "loss" if test.pvalue > 0.95 else "tie"


def paper_verdict(name: str, rival: str, n_pools: int = 10) -> str:
    """Win, loss or tie of soft-correct in the paper, from its Table 2."""
    (mean, spread), other = published.AUC[name]["Soft-Correct"], published.AUC[name][rival]
    other, other_spread = other if isinstance(other, tuple) else (other, None)
    if spread == 0.0 and not other_spread:  # rounded to four digits
        return "win" if mean > other else "loss" if mean < other else "tie"
    if other_spread is None:
        t = (mean - other) / (spread / np.sqrt(n_pools))
        p = stats.t.sf(t, n_pools - 1)
    else:
        p = stats.ttest_ind_from_stats(
            mean, spread, n_pools, other, other_spread, n_pools, False, "greater"
        ).pvalue
    return "win" if p < 0.05 else "loss" if p > 0.95 else "tie"


def outcome(results: Results, name: str, rival: str) -> str:
    return verdict(per_pool(results, name, "Soft-Correct"), per_pool(results, name, rival))


def total(outcomes: Iterable[str]) -> str:
    counts = Counter(outcomes)
    return "/".join(str(counts[what]) for what in ("win", "loss", "tie"))


def best_gammas(results: Results, name: str, who: str) -> tuple[list, float]:
    """As in the paper: all values of gamma with the best AUC to four digits, and that AUC."""
    gammas = results.settings["gammas"]
    runs = {gamma: per_pool(results, name, who, gamma=gamma).mean() for gamma in gammas}
    best = max(round(float(auc), 4) for auc in runs.values())
    return [gamma for gamma, auc in runs.items() if round(float(auc), 4) == best], best


def shared_gammas(results: Results, name: str, who: str) -> set[str]:
    ours = {gamma_name(gamma) for gamma in best_gammas(results, name, who)[0]}
    return ours & set(published.GAMMA[name][who][0].split(", "))


def gamma_name(gamma: float | str) -> str:
    return gamma if isinstance(gamma, str) else f"{gamma:g}"


def curve_of(results: Results, data: str, who: str) -> np.ndarray:
    """Columns (pool, AUC, rejected by plain rejection for each one kept, rejected) along the fit,
    averaged over folds and pools.
    """
    records = results.select(kind="curve", data=data, method=who)
    return np.mean([record["mean"] for record in records], axis=0)


def grown(results: Results, who: str) -> tuple[list[int], list[float]]:
    records = sorted(results.select(kind="growth", method=who), key=lambda r: r["rows"])
    return [r["rows"] for r in records], [r["seconds"] for r in records]


def growth_slope(results: Results, who: str) -> float:
    return slope(*grown(results, who))
