"""Section 3.1 of donmez2009 on the available data: seeds and labels per query, with RankSVM."""

from dataclasses import asdict
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from forerank import PairwiseRanker
from forerank.active import (
    Diverse,
    Entropy,
    Greedy,
    LabellingLoop,
    LossMin,
    Random,
    Simulation,
    Strategy,
    Uncertain,
    simulate,
)
from forerank.data import datasets

STRATEGIES: dict[str, Strategy] = {
    "LossMin": LossMin(),
    "Entropy": Entropy(),
    "Diverse": Diverse(),
    "Uncertain": Uncertain(),
    "Random": Random(),
    "Greedy": Greedy(),
}

# Relevant and irrelevant seeds per query, labels per query and round, rounds, and seedings of each
# split.
SETTINGS: dict[str, dict[str, Any]] = {
    "MQ2008": {"seeds": (1, 2), "batch": 1, "rounds": 8, "seedings": 20},
    "MSLR, grade > 0": {"seeds": (1, 10), "batch": 5, "rounds": 20, "seedings": 20},
    "MSLR, grade > 1": {"seeds": (1, 10), "batch": 5, "rounds": 20, "seedings": 20},
}
N_SPLITS = {"MQ2008": 5, "MSLR, grade > 0": 2, "MSLR, grade > 1": 2}


def constants() -> dict[str, Any]:
    return {
        "settings": {
            name: {**values, "seeds": list(values["seeds"])} for name, values in SETTINGS.items()
        }
    }


class RankSVM(PairwiseRanker):
    """The squared hinge over all pairs with the C of SVMlight.

    Minimises 1/2 |w|^2 + C (sum over pairs), C = 1 / mean |x|^2.

    With that little penalty the plain hinge takes a hundred times as long on the MSLR samples.
    """

    def __init__(
        self,
        loss: str = "squared_hinge",
        *,
        alpha: float = 1.0,
        graph: Any = None,
        tol: float = 1e-3,
        max_iter: int = 200,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            loss,
            alpha=alpha,
            graph=graph,
            tol=tol,
            max_iter=max_iter,
            warm_start=warm_start,
            verbose=verbose,
        )

    def fit(self, X: NDArray, y: NDArray, sample_weight: Any = None, qid: Any = None) -> Self:
        number = np.unique(qid, return_inverse=True)[1]
        relevant, size = np.bincount(number, weights=y), np.bincount(number)
        # Our objective is a mean over the pairs: alpha = 1 / (C * pairs).
        self.alpha = float(np.mean((X**2).sum(axis=1)) / (relevant * (size - relevant)).sum())
        return super().fit(X, y, qid=qid)


@cache
def splits(name: str) -> list[tuple[NDArray, NDArray, NDArray, tuple]]:
    """Training rows, labels and queries, and the test part, of every split."""
    if name == "MQ2008":
        X, y, qid, part = _read("letor_mq2008", 0)
        pieces = []
        for fold in range(5):
            train = np.isin(part, [(fold + k) % 5 + 1 for k in range(3)])
            test = part == (fold + 4) % 5 + 1
            pieces.append((X[train], y[train], qid[train], (X[test], y[test], qid[test])))
    else:
        above = int(name[-1])
        one, other = (
            _read(f"ltr_mslr10k_fold1_{which}5k", above)[:3] for which in ("train", "test")
        )
        pieces = [(*one, other), (*other, one)]
    # One relevant seed per query: queries without a relevant document cannot be used.
    kept = [(piece, np.isin(piece[2], piece[2][piece[1] == 1])) for piece in pieces]
    return [(X[rows], y[rows], qid[rows], test) for (X, y, qid, test), rows in kept]


def _read(name: str, above: int) -> tuple[NDArray, NDArray, NDArray, NDArray | None]:
    """Columns scaled to [0, 1] within each query; relevant are grades above the one given."""
    with np.load(datasets.data_directory() / f"{name}.npz") as file:
        X, grade, qid = file["X"].astype(np.float64), file["y"], file["qid"]
        part = file.get("part")
    for query in np.unique(qid):
        rows = qid == query
        low, high = X[rows].min(axis=0), X[rows].max(axis=0)
        X[rows] = (X[rows] - low) / np.where(high > low, high - low, 1.0)
    return X, (grade > above).astype(int), qid, part


def run(name: str, split: int, seeding: int, method: str, rounds: int) -> list[dict]:
    """One simulation; all methods start from the same documents of a split and seeding."""
    X, y, qid, test = splits(name)[split]
    settings = SETTINGS[name]
    found = simulate(
        X,
        y,
        strategy=STRATEGIES[method],
        ranker=RankSVM(),
        seeds=settings["seeds"],
        batch=settings["batch"],
        qid=qid,
        rounds=rounds,
        test=test,
        random_state=1000 * split + seeding,
    )
    kept = {
        **asdict(found),
        "order": [],
        "relevant": [],
        "seeds": [],
    }  # the orders are long, and not needed again
    return [
        {
            "kind": "run",
            "data": name,
            "split": split,
            "seeding": seeding,
            "method": method,
            "simulation": kept,
        }
    ]


def simulation_of(record: dict) -> Simulation:
    return Simulation(**record["simulation"])


def overlap(name: str, split: int, rounds: int) -> list[dict]:
    """The share of LossMin's choices that Greedy would make from the same scores, by round."""
    X, y, qid, _ = splits(name)[split]
    settings = SETTINGS[name]
    begun = simulate(
        X,
        y,
        seeds=settings["seeds"],
        qid=qid,
        rounds=0,
        ranker=RankSVM(),
        random_state=1000 * split,
    )  # fmt: skip
    loop = LabellingLoop(
        X,
        strategy=LossMin(),
        ranker=RankSVM(),
        batch=settings["batch"],
        qid=qid,
        random_state=split,
    )
    loop.tell(begun.seeds, y[begun.seeds], seed=True)
    shares = []
    for _ in range(rounds):
        rows = loop.ask()
        greedy = Greedy().choose(loop.scores(), loop.labels != -1, groups=qid, n=settings["batch"])
        shares.append(float(np.isin(rows, greedy).mean()))
        loop.tell(rows, y[rows])
    return [{"kind": "overlap", "data": name, "split": split, "shares": shares}]
