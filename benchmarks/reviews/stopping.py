"""When to stop reading: scripts/reviews-stopping [--quick] [--out DIR].

Writes DIR/stopping.md. Every review is read once per seeding to its last relevant record, by one
reader and by several who decide late; all stopping rules are replayed on these orders. The full run
takes about fifteen minutes on one core.
"""

import heapq
from collections.abc import Callable, Iterator
from itertools import pairwise
from math import lgamma, log
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.papers import common
from benchmarks.papers.pages import Page, table
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from forerank.active import (
    Audit,
    IrrelevantInARow,
    PoolRanker,
    Reading,
    RecallBound,
    audit_order,
    estimate_missing,
    simulate,
)

from . import protocol

Relevant = NDArray[np.bool_]
# Records unread, out of R right after the f-th find, at which a rule stops; -1 where it does not.
Boundary = Callable[[int, int], int]
# Pairs of target and confidence.
PROMISES = ((0.95, 0.95), (0.9, 0.9))
N_READERS = 5
# Irrelevant records in a row after which a reader believes to be done and begins the audit.
DONE_AFTER = 50
# Shares of the records read at which the number missing is estimated.
CHECKPOINTS = (0.1, 0.2, 0.4, 0.6)


# --- Units of work ---


def greedy(name: str, seeding: int) -> list[dict]:
    """One review read greedily to the last relevant record, and estimates on the way."""
    X, y = protocol.features(name)
    found = simulate(
        X, y, ranker=PoolRanker(), seeds=protocol.SEEDS, batch=protocol.BATCH,
        until_recall=1.0, random_state=seeding,
    )  # fmt: skip
    record = {"review": name, "seeding": seeding, "n_records": found.n_records}
    ranks = (np.flatnonzero(found.relevant) + 1).tolist()
    return [
        {"kind": "greedy", **record, "found_at": ranks},
        *({"kind": "estimate", **record, **each} for each in _estimates(X, y, found)),
    ]


def _estimates(X: Any, y: NDArray, found: Any) -> Iterator[dict]:
    for share in CHECKPOINTS:
        n = int(share * found.n_records)
        if n > len(found.order):
            return
        labels = np.full(y.size, -1)
        read = np.array(found.seeds + found.order[:n])
        labels[read] = y[read]
        missing = int(np.sum(y[labels < 0]))
        in_sample = PoolRanker().fit(X, labels).decision_function(X)
        scores = in_sample.copy()
        if min(np.sum(y[read]), np.sum(1 - y[read])) >= 2:
            folds = StratifiedKFold(int(min(5, np.sum(y[read]), np.sum(1 - y[read]))))
            for _, left_out in folds.split(read, y[read]):
                kept = labels.copy()
                kept[read[left_out]] = -1
                scores[read[left_out]] = (
                    PoolRanker().fit(X, kept).decision_function(X[read[left_out]])
                )
        for kind, values in (("trained on", in_sample), ("left out", scores)):
            made = estimate_missing(values, labels)
            inside = made.low <= missing <= made.high
            yield {
                "share": share, "scores": kind, "missing": missing, "expected": made.expected,
                "inside": bool(inside),
            }  # fmt: skip


def readers(name: str, seeding: int) -> list[dict]:
    """One review read by several readers, each with a record of their own at any time.

    A free reader gets the record that the latest ranker puts first. Decisions take exponential
    times; the ranker is trained again when decisions have grown by the share of a batch.
    """
    X, y = protocol.features(name)
    begun = simulate(X, y, seeds=protocol.SEEDS, rounds=0, random_state=seeding)
    rng = np.random.default_rng([seeding, 7])
    labels = np.full(y.size, -1)
    labels[begun.seeds] = y[begun.seeds]
    free = labels < 0
    ranker, scores, fitted = PoolRanker(warm_start=True), np.zeros(0), 0
    order: list[int] = []
    prefix: list[tuple[int, int]] = []  # (completed from the start on, assigned) at each decision
    pending: list[tuple[float, int]] = []
    decided = np.zeros(y.size, dtype=bool)
    n_decided = complete = 0
    now = 0.0
    while free.any() or pending:
        if free.any() and len(pending) < N_READERS:
            if not scores.size or n_decided - fitted >= max(1, int(protocol.BATCH * n_decided)):
                scores, fitted = ranker.fit(X, labels).decision_function(X), n_decided
            row = int(np.argmax(np.where(free, scores, -np.inf)))
            free[row] = False
            heapq.heappush(pending, (now + rng.exponential(), len(order)))
            order.append(row)
            continue
        now, place = heapq.heappop(pending)
        decided[place], n_decided = True, n_decided + 1
        labels[order[place]] = y[order[place]]
        while complete < len(order) and decided[complete]:
            complete += 1
        prefix.append((complete, len(order)))
    relevant = y[order].astype(bool)
    return [
        {
            "kind": "readers", "review": name, "seeding": seeding, "n_records": len(order),
            "found_at": (np.flatnonzero(relevant) + 1).tolist(),
            "complete": [p for p, _ in prefix], "assigned": [a for _, a in prefix],
        }
    ]  # fmt: skip


# --- Rules, replayed ---


def old_boundary(target: float, confidence: float) -> Boundary:
    """The rule of earlier versions: stakes delta / ((j+1)(j+2))."""
    from scipy.special import gammaln

    def boundary(found: int, at_last: int) -> int:
        def stops(unread: int) -> bool:
            d = np.arange(unread + 1)
            j = np.ceil(target * (found + d) - 1e-9) - 1 - found
            run = gammaln(unread + 1.0) - gammaln(unread - d + 1.0)
            run = run - gammaln(at_last + 1.0) + gammaln(at_last - d + 1.0)
            j = np.where(j >= 0, j, np.inf)
            return not np.any((j < np.inf) & (-run < np.log((j + 1) * (j + 2) / (1 - confidence))))

        return _largest(stops, at_last)

    return boundary


def floor_boundary(target: float, confidence: float) -> Boundary:
    """The floor: the single smallest number that breaks the target, at the whole of delta."""

    def boundary(found: int, at_last: int) -> int:
        m = int(np.floor(found / target + 1e-9)) + 1 - found

        def stops(r: int) -> bool:
            if r < m:
                return True
            run = lgamma(r + 1) - lgamma(r - m + 1) - lgamma(at_last + 1) + lgamma(at_last - m + 1)
            return run <= log(1 - confidence)

        return _largest(stops, at_last)

    return boundary


def _largest(stops: Callable[[int], bool], high: int) -> int:
    if stops(high):
        return high
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if stops(middle) else (low, middle)
    return low


def stopped_states(relevant: Relevant, boundary: Boundary) -> NDArray[np.bool_]:
    """Whether the rule stops after 0, 1, 2, ... records."""
    n = relevant.size
    finds = [0, *(np.flatnonzero(relevant) + 1).tolist(), n + 1]
    states = np.zeros(n + 1, dtype=bool)
    for found, (at, following) in enumerate(pairwise(finds)):
        states[n - boundary(found, n - at) : following] = True
    states[n] = True
    return states


def new_boundary(relevant: Relevant, rule: RecallBound) -> Boundary:
    def boundary(found: int, at_last: int) -> int:
        reading = Reading(relevant.size, relevant[: relevant.size - at_last])
        return at_last - rule.records_to_go(reading)

    return boundary


def relevant_of(record: dict) -> Relevant:
    return protocol.relevant_of(record)


def audited(record: dict, rule: RecallBound) -> tuple[int, Relevant]:
    """Where the audit starts, and the labels in the order with the rest at random."""
    relevant = relevant_of(record).copy()
    n = relevant.size
    done = IrrelevantInARow(DONE_AFTER)
    start = next((i for i in range(n) if done.reason(Reading(n, relevant[:i]))), n)
    rest = audit_order(np.arange(start, n), seed=record["seeding"])
    return start, np.concatenate([relevant[:start], relevant[rest]])


def ends(record: dict, reading: str, promise: tuple[float, float]) -> dict[str, tuple]:
    """(share read, recall) at the end, by each rule, of a run in one way of reading."""
    target, confidence = promise
    rule = RecallBound(target, confidence)
    relevant, start = relevant_of(record), 0
    if reading == "random":
        relevant = np.random.default_rng([record["seeding"], 3]).permutation(relevant)
    elif reading == "audit":
        start, relevant = audited(record, rule)
        rule = Audit(target, confidence, start=start)
    made = {}
    for name, of in (("old", old_boundary), ("floor", floor_boundary), ("new", None)):
        if name == "new":
            states = _new_states(relevant, rule, start)
        elif reading == "audit":
            continue
        else:
            states = stopped_states(relevant, of(target, confidence))
        made[name] = _end(record, relevant, states, delayed=reading == "readers")
    return made


def _new_states(relevant: Relevant, rule: RecallBound, start: int) -> NDArray[np.bool_]:
    """`stopped_states` of a rule, from the record `start` on."""
    n = relevant.size
    finds = (np.flatnonzero(relevant[start:]) + 1 + start).tolist()
    states = np.zeros(n + 1, dtype=bool)
    for at, following in zip([start, *finds], [*finds, n + 1], strict=True):
        states[at + rule.records_to_go(Reading(n, relevant[:at])) : following] = True
    states[n] = True
    return states


def _end(record: dict, relevant: Relevant, states: Relevant, *, delayed: bool) -> tuple:
    if delayed:
        complete = np.array(record["complete"])
        k = int(np.argmax(states[complete]))
        end, read = int(complete[k]), int(record["assigned"][k])
    else:
        end = read = int(np.argmax(states))
    return read / relevant.size, float(relevant[:end].sum() / relevant.sum())


# --- The page ---

SETTING = f"""Each run knows one relevant and one irrelevant record and reads the others: in a
random order; greedily with PoolRanker; greedily until {DONE_AFTER} records in a row are irrelevant
and then at random (`Audit`); and greedily by {N_READERS} readers at once, whose decisions come
late, of which the completed part from the start on counts and all that are assigned are read.
"kept": runs that ended at the target or above."""


def make(results: common.Results, out: Path) -> Page:
    """The page, from the record."""
    runs = {kind: results.select(kind=kind) for kind in ("greedy", "readers")}
    rows = []
    for promise in PROMISES:
        for reading in ("random", "greedy", "audit", "readers"):
            records = runs["readers" if reading == "readers" else "greedy"]
            if records:
                rows.append(_row(records, reading, promise))
    head = ("target / confidence", "reading", "kept, new", "kept, old", "read, new", "read, old",
            "read, floor", "needed", "runs")  # fmt: skip
    sections = {"When to stop": table(head, rows), "Estimates": _estimate_table(results)}
    return Page("When to stop reading, simulated", SETTING, [], sections, "", "")


def _row(records: list[dict], reading: str, promise: tuple[float, float]) -> tuple:
    target = promise[0]
    made = [ends(record, reading, promise) for record in records]

    def kept(rule: str) -> str:
        if rule not in made[0]:
            return ""
        return f"{np.mean([each[rule][1] >= target - 1e-9 for each in made]):.1%}"

    def read(rule: str) -> str:
        return f"{np.mean([each[rule][0] for each in made]):.1%}" if rule in made[0] else ""

    needed = [_needed(record, reading, promise) for record in records]
    name = f"{target:.0%} / {promise[1]:.0%}"
    return (
        name, reading, kept("new"), kept("old"), read("new"), read("old"), read("floor"),
        f"{np.mean(needed):.1%}", len(made),
    )  # fmt: skip


def _needed(record: dict, reading: str, promise: tuple[float, float]) -> float:
    relevant = relevant_of(record)
    if reading == "random":
        relevant = np.random.default_rng([record["seeding"], 3]).permutation(relevant)
    elif reading == "audit":
        relevant = audited(record, RecallBound(*promise))[1]
    wanted = np.ceil(promise[0] * relevant.sum() - 1e-9)
    return float(np.searchsorted(np.cumsum(relevant), wanted) + 1) / relevant.size


def _estimate_table(results: common.Results) -> str:
    rows = []
    for scores in ("trained on", "left out"):
        for share in CHECKPOINTS:
            records = results.select(kind="estimate", scores=scores, share=share)
            if records:
                ratio = np.array([(r["expected"] + 0.5) / (r["missing"] + 0.5) for r in records])
                low, middle, high = np.quantile(ratio, [0.1, 0.5, 0.9])
                inside = np.mean([r["inside"] for r in records])
                rows.append((scores, f"{share:.0%}", f"{middle:.2f}", f"{low:.2f} to {high:.2f}",
                             f"{inside:.0%}", len(records)))  # fmt: skip
    head = ("scores of read rows", "read", "median ratio", "10 % to 90 %", "in interval", "runs")
    return table(head, rows)


def _stages(results: common.Results, args: Any) -> Iterator[common.Stage]:
    names = protocol.names()
    if args.quick:
        names = sorted(names, key=lambda name: len(protocol.read(name)))[:1]
    yield [
        (f"{name} {seeding} {kind.__name__}", kind, name, seeding)
        for seeding in range(1 if args.quick else protocol.N_SEEDINGS)
        for kind in (greedy, readers)
        for name in names
    ]


if __name__ == "__main__":
    common.main(
        "stopping",
        __doc__ or "",
        "the smallest review, one seeding",
        stages=_stages,
        page=make,
        settings=lambda args: {"protocol": protocol.constants(), "readers": N_READERS},
        script="scripts/reviews-",
    )
