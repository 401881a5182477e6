"""Section 3.1 of donmez2009 on the available data: seeds and labels per query, with RankSVM."""

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
    PairLossMin,
    Random,
    Simulation,
    Strategy,
    Uncertain,
    simulate,
)
from forerank.data import datasets

from ..common import processor_seconds

STRATEGIES: dict[str, Strategy] = {
    "LossMin": LossMin(),
    "Entropy": Entropy(),
    "Diverse": Diverse(),
    "Uncertain": Uncertain(),
    "Random": Random(),
    "Greedy": Greedy(),
}
# Forms of LossMin that the paper prints or names, beside the one that is compared with the others.
FORMS: dict[str, Strategy] = {
    "unit scale": LossMin(scale=1.0),
    "eq. 8": LossMin(calibrated=False),
    "eq. 8, unit scale": LossMin(scale=1.0, calibrated=False),
    "eq. 6": LossMin(0.5, normalized=False),
    "pairs (eq. 5)": PairLossMin(),
}

# Relevant and irrelevant seeds per query, labels per query and round, rounds, and seedings of each
# split.
SETTINGS: dict[str, dict[str, Any]] = {
    "MQ2008": {"seeds": (1, 2), "batch": 1, "rounds": 8, "seedings": 20},
    "MSLR, grade > 0": {"seeds": (1, 10), "batch": 5, "rounds": 20, "seedings": 20},
    "MSLR, grade > 1": {"seeds": (1, 10), "batch": 5, "rounds": 20, "seedings": 20},
}
# The same queries with all their grades, and the number of thresholds between these.
GRADED = {"MQ2008, grades": 2, "MSLR, grades": 4}
SETTINGS |= {"MQ2008, grades": SETTINGS["MQ2008"], "MSLR, grades": SETTINGS["MSLR, grade > 0"]}
BINARY = [name for name in SETTINGS if name not in GRADED]
N_SPLITS = {name: 5 if name.startswith("MQ2008") else 2 for name in SETTINGS}
# Rounds that Table 2 times, each as the median of so many simulations.
TIMED_ROUNDS, TIMED_RUNS = 5, 5


def methods(name: str) -> dict[str, Strategy]:
    """Strategies and forms of LossMin, or the strategies for grades."""
    if name not in GRADED:
        return {**STRATEGIES, **FORMS}
    k = GRADED[name]
    more = {f"LossMin, {k} thresholds": LossMin(thresholds=k)}
    more |= {f"pairs, {k} thresholds": PairLossMin(thresholds=k)}
    chosen = ("LossMin", "Diverse", "Random", "Greedy")
    return {**more, **{each: STRATEGIES[each] for each in chosen}}


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
        size = np.unique(qid, return_counts=True)[1]
        alike = np.unique(np.column_stack([qid, y]), axis=0, return_counts=True)[1]
        pairs = ((size**2).sum() - (alike**2).sum()) / 2
        # Our objective is a mean over the pairs: alpha = 1 / (C * pairs).
        self.alpha = float(np.mean((X**2).sum(axis=1)) / pairs)
        return super().fit(X, y, qid=qid)


@cache
def splits(name: str) -> list[tuple[NDArray, NDArray, NDArray, tuple]]:
    """Training rows, labels and queries, and the test part, of every split."""
    above = None if name in GRADED else int(name[-1]) if name.startswith("MSLR") else 0
    if name.startswith("MQ2008"):
        X, y, qid, part = _read("letor_mq2008", above)
        pieces = []
        for fold in range(5):
            train = np.isin(part, [(fold + k) % 5 + 1 for k in range(3)])
            test = part == (fold + 4) % 5 + 1
            pieces.append((X[train], y[train], qid[train], (X[test], y[test], qid[test])))
    else:
        one, other = (
            _read(f"ltr_mslr10k_fold1_{which}5k", above)[:3] for which in ("train", "test")
        )
        pieces = [(*one, other), (*other, one)]
    # One relevant seed per query: queries without a relevant document cannot be used.
    kept = [(piece, np.isin(piece[2], piece[2][piece[1] > 0])) for piece in pieces]
    return [(X[rows], y[rows], qid[rows], test) for (X, y, qid, test), rows in kept]


def _read(name: str, above: int | None) -> tuple[NDArray, NDArray, NDArray, NDArray | None]:
    """Columns scaled to [0, 1] within each query; relevant are grades above the one given, or the
    grades themselves.
    """
    with np.load(datasets.data_directory() / f"{name}.npz") as file:
        X, grade, qid = file["X"].astype(np.float64), file["y"], file["qid"]
        part = file.get("part")
    for query in np.unique(qid):
        rows = qid == query
        low, high = X[rows].min(axis=0), X[rows].max(axis=0)
        X[rows] = (X[rows] - low) / np.where(high > low, high - low, 1.0)
    return X, grade.astype(int) if above is None else (grade > above).astype(int), qid, part


def run(name: str, split: int, seeding: int, method: str, rounds: int) -> list[dict]:
    """One simulation; all methods start from the same documents of a split and seeding."""
    graded = name in GRADED
    found = _simulate(
        name,
        split,
        methods(name)[method],
        seeding,
        rounds=rounds,
        test=splits(name)[split][3],
        measures=("wmw", "ndcg@10") if graded else ("auc", "map", "ndcg@10"),
    )
    record = {"kind": "run", "data": name, "split": split, "seeding": seeding, "method": method}
    curves = {key: [round(value, 5) for value in curve] for key, curve in found.curves.items()}
    return [{**record, "read": found.read, "curves": curves}]


def _simulate(
    name: str, split: int, strategy: Strategy, seeding: int, **options: Any
) -> Simulation:
    X, y, qid, _ = splits(name)[split]
    graded = name in GRADED
    return simulate(
        X,
        y,
        strategy=strategy,
        ranker=RankSVM(graph="order" if graded else None),
        seeds=SETTINGS[name]["seeds"],
        batch=SETTINGS[name]["batch"],
        qid=qid,
        grades=graded,
        random_state=1000 * split + seeding,
        **options,
    )


def compiling(name: str) -> list[dict]:
    """What the first round of each method takes longer than a second one, in a new process: to
    compile functions, or to read compiled ones.
    """
    totals = []
    for _ in range(2):
        begin = processor_seconds()
        for strategy in methods(name).values():
            _simulate(name, 0, strategy, 0, rounds=1)
        totals.append(processor_seconds() - begin)
    return [{"kind": "compiling", "seconds": totals[0] - totals[1]}]


def timing(name: str, method: str, rounds: int, runs: int) -> list[dict]:
    """Seconds of each round of one method, medians over several seedings."""
    strategy = methods(name)[method]
    _seconds(name, strategy, 0, 1)  # compiles
    each = [_seconds(name, strategy, k, rounds) for k in range(runs)]
    record = {"kind": "time", "data": name, "method": method}
    return [{**record, "seconds": np.median(each, axis=0).tolist()}]


def _seconds(name: str, strategy: Strategy, seeding: int, rounds: int) -> list[float]:
    """Seconds in which each round is trained, scored and chosen, on the first split."""
    loop, y = _seeded_loop(name, 0, strategy, seeding), splits(name)[0][1]
    seconds = []
    for _ in range(rounds):
        begin = processor_seconds()
        rows = loop.ask()
        seconds.append(processor_seconds() - begin)
        loop.tell(rows, y[rows])
    return seconds


def simulation_of(record: dict) -> Simulation:
    """The learning curves of a record; the order of labelling is not recorded."""
    return Simulation([], [], 0, 0, [], record["read"], record["curves"])


def overlap(name: str, split: int, rounds: int) -> list[dict]:
    """The share of LossMin's choices that Greedy would make from the same scores, by round."""
    loop, y = _seeded_loop(name, split, LossMin(), 0), splits(name)[split][1]
    batch, qid = SETTINGS[name]["batch"], splits(name)[split][2]
    shares = []
    for _ in range(rounds):
        rows = loop.ask()
        greedy = Greedy().choose(loop.scores(), loop.labels != -1, groups=qid, n=batch)
        shares.append(float(np.isin(rows, greedy).mean()))
        loop.tell(rows, y[rows])
    return [{"kind": "overlap", "data": name, "split": split, "shares": shares}]


def _seeded_loop(name: str, split: int, strategy: Strategy, seeding: int) -> LabellingLoop:
    """The loop of a simulation on two classes, with its seeds labelled."""
    X, y, qid, _ = splits(name)[split]
    seeds = _simulate(name, split, strategy, seeding, rounds=0).seeds
    loop = LabellingLoop(
        X,
        strategy=strategy,
        ranker=RankSVM(),
        batch=SETTINGS[name]["batch"],
        qid=qid,
        random_state=1000 * split + seeding,
    )
    loop.tell(seeds, y[seeds], seed=True)
    return loop
