"""When to stop reading: scripts/reviews-stopping [--quick] [--out DIR].

Writes DIR/stopping.md. Every review is read once per seeding to its last relevant record, by one
reader and by several who decide late; these orders are recorded, and all stopping rules are
replayed on them. The full run takes about ten minutes on one core, a page from the record one.
"""

import heapq
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.papers import common
from benchmarks.papers.pages import Page, figure, table
from numpy.typing import NDArray
from scipy.special import gammaln
from sklearn.model_selection import StratifiedKFold

from forerank.active import (
    PoolRanker,
    Reading,
    RecallBound,
    audit_order,
    estimate_missing,
    simulate,
)
from forerank.active.estimates import count_interval
from forerank.active.stakes import ROUNDING, fewest_breaking, largest_unread

from . import protocol

Relevant = NDArray[np.bool_]
# Records unread at which a rule stops, from the number of finds and the records unread at the last.
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
            yield {"share": share, "scores": kind, "missing": missing, "expected": made.expected}


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


def boundaries(target: float, confidence: float) -> dict[str, Boundary]:
    """The rule, that of earlier versions, and the floor, which is no valid rule."""
    delta = 1.0 - confidence
    rule = RecallBound(target, confidence)

    def new(found: int, at_last: int) -> int:
        reading = Reading(found + at_last, np.ones(found, dtype=bool))
        return at_last - rule.records_to_go(reading)

    def old(found: int, at_last: int) -> int:
        """Stakes delta / ((j+1)(j+2))."""

        def stops(unread: int) -> bool:
            d = np.arange(fewest_breaking(found, target), unread + 1)
            j = np.ceil(target * (found + d) - ROUNDING) - 1 - found
            return bool(np.all(_log_run(unread, at_last, d) <= np.log(delta / ((j + 1) * (j + 2)))))

        return largest_unread(stops, at_last)

    def floor(found: int, at_last: int) -> int:
        """The whole of delta for the smallest number that breaks the target."""
        m = fewest_breaking(found, target)
        return largest_unread(
            lambda r: r < m or bool(_log_run(r, at_last, m) <= np.log(delta)), at_last
        )

    return {"new": cache(new), "old": cache(old), "floor": cache(floor)}


def _log_run(unread: int, at_last: int, d: Any) -> Any:
    """The logarithm of the probability of a run, (1) of docs/maths/stopping.md."""
    falling = gammaln(unread + 1.0) - gammaln(unread - d + 1.0)
    return falling - gammaln(at_last + 1.0) + gammaln(at_last - d + 1.0)


def stopped(relevant: Relevant, boundary: Boundary, start: int = 0) -> Relevant:
    """Whether the rule stops after 0, 1, 2, ... records; it begins after `start` of them."""
    n = relevant.size
    finds = [start, *(np.flatnonzero(relevant[start:]) + 1 + start).tolist(), n + 1]
    states = np.zeros(n + 1, dtype=bool)
    found = int(relevant[:start].sum())
    for k in range(len(finds) - 1):
        states[n - boundary(found + k, n - finds[k]) : finds[k + 1]] = True
    states[n] = True
    return states


def in_order(record: dict, reading: str) -> tuple[Relevant, int]:
    """Labels in the order of one way of reading, and where the rule begins."""
    relevant = protocol.relevant_of(record)
    if reading == "random":
        return np.random.default_rng([record["seeding"], 3]).permutation(relevant), 0
    if reading != "greedy, then random":
        return relevant, 0
    finds = [0, *(np.flatnonzero(relevant) + 1).tolist(), relevant.size]
    dry = np.flatnonzero(np.diff(finds) > DONE_AFTER)
    start = finds[dry[0]] + DONE_AFTER if dry.size else relevant.size
    rest = audit_order(np.arange(start, relevant.size), seed=record["seeding"])
    return np.concatenate([relevant[:start], relevant[rest]]), start


def ends(record: dict, reading: str, target: float, rules: dict[str, Boundary]) -> dict[str, Any]:
    """(records read, whether the target was reached) at the end by each rule, and the records
    after which it was in fact reached.
    """
    relevant, start = in_order(record, reading)
    wanted = np.ceil(target * relevant.sum() - ROUNDING)
    made: dict[str, Any] = {"needed": int(np.searchsorted(np.cumsum(relevant), wanted) + 1)}
    for name, boundary in rules.items():
        states = stopped(relevant, boundary, start)
        if reading == "late readers":
            complete = np.array(record["complete"])
            k = int(np.argmax(states[complete]))
            end, read = int(complete[k]), int(record["assigned"][k])
        else:
            end = read = int(np.argmax(states))
        made[name] = (read, bool(relevant[:end].sum() >= wanted))
    return made


# --- The page ---

SETTING = f"""Each run knows one relevant and one irrelevant record and reads the others: in a
random order; greedily with PoolRanker, batches growing with 5 % of the records read; greedily until
{DONE_AFTER} records in a row are irrelevant and then at random (`Audit`); and greedily by
{N_READERS} readers at once, each with one record in hand, whose decisions take exponential times:
the ranker learns of them late, the rule counts the records from the first one on up to the first
that is undecided, and all that were handed out count as read."""
STOPPING = """The rule is evaluated after every record. "kept": runs in which it stopped at the
target or above, which should be at least as many as the confidence says. "read": records read until
then, the mean over the runs, by the rule, by that of earlier versions (stakes delta / ((j+1)(j+2)))
and by the floor (docs/maths/stopping.md), which stakes all of delta on one number and is itself no
valid rule. "needed": records after which the target was in fact reached. "more than earlier": runs
in which the rule read more than that of earlier versions, and by how many records at most."""
REVIEWS = "Read greedily, the mean over the seedings."
ESTIMATES = """`estimate_missing` with scores of the read rows by a ranker that was trained on their
labels (which it should not be given), and by rankers trained without them (cross-validation).
"ratio": the estimate against the truth, with one half added to both; "in the interval": runs in
which the truth lies in the interval, which says 90 %. Its width was chosen on the first two of the
ten seedings."""
READINGS = ("random", "greedy", "greedy, then random", "late readers")


def make(results: common.Results, out: Path) -> Page:
    """The page, from the record."""
    runs = {kind: results.select(kind=kind) for kind in ("greedy", "readers")}
    made = {}
    for promise in PROMISES:
        rules = boundaries(*promise)
        for reading in READINGS:
            records = runs["readers" if reading == "late readers" else "greedy"]
            made[promise, reading] = [(r, ends(r, reading, promise[0], rules)) for r in records]
    _figure(made, out / "stopping.png")
    head = ("target / confidence", "reading", "kept", "kept, earlier", "read", "read, earlier",
            "read, floor", "needed", "more than earlier", "runs")  # fmt: skip
    rows = [_row(*key, runs) for key, runs in made.items()]
    pictures = "![Share of the records read, by review](stopping.png)"
    sections = {
        "When to stop": f"{STOPPING}\n\n{table(head, rows)}",
        "Review by review": f"{REVIEWS}\n\n{_reviews(made)}\n\n{pictures}",
        "Estimates of what is missing": f"{ESTIMATES}\n\n{_estimate_table(results)}",
    }
    return Page("When to stop reading, simulated", SETTING, [], sections, "", "", times="")


def _share(runs: list[tuple], rule: str) -> float:
    """The mean share of the records read."""
    read = [made[rule] if rule == "needed" else made[rule][0] for _, made in runs]
    return float(np.mean(np.array(read) / [record["n_records"] for record, _ in runs]))


def _row(promise: tuple[float, float], reading: str, runs: list[tuple]) -> tuple:
    kept = [f"{np.mean([made[rule][1] for _, made in runs]):.1%}" for rule in ("new", "old")]
    read = [f"{_share(runs, rule):.1%}" for rule in ("new", "old", "floor", "needed")]
    more = np.array([made["new"][0] - made["old"][0] for _, made in runs])
    text = f"{np.sum(more > 0)}, by {more.max()}" if more.max() > 0 else "0"
    return f"{promise[0]:.0%} / {promise[1]:.0%}", reading, *kept, *read, text, len(runs)


def _by_review(runs: list[tuple]) -> list[tuple[dict, list[tuple]]]:
    """(first record, runs) of each review, by number of relevant records."""
    names = {record["review"]: record for record, _ in runs}
    ordered = sorted(names, key=lambda name: len(names[name]["found_at"]))
    return [(names[n], [run for run in runs if run[0]["review"] == n]) for n in ordered]


def _reviews(made: dict[Any, list[tuple]]) -> str:
    tables = [_by_review(made[promise, "greedy"]) for promise in PROMISES]
    rows = []
    for parts in zip(*tables, strict=True):
        record = parts[0][0]
        shares = [
            f"{_share(runs, rule):.0%}" for _, runs in parts for rule in ("new", "old", "floor")
        ]
        n_relevant = len(record["found_at"])
        rows.append((record["review"], record["n_records"], n_relevant, *shares))
    columns = [
        f"{promise[0]:.0%}: {rule}" for promise in PROMISES for rule in ("read", "earlier", "floor")
    ]
    return table(("review", "records", "relevant", *columns), rows)


def _figure(made: dict[Any, list[tuple]], path: Path) -> None:
    styles = {
        "old": ("earlier rule", "o", "0.6"),
        "new": ("rule", "o", "C0"),
        "floor": ("floor", "_", "C3"),
        "needed": ("needed in fact", "x", "C2"),
    }
    with figure(path, 1, 2, size=(11.0, 4.4), sharey=True) as (_, panels):
        for panel, promise in zip(panels, PROMISES, strict=True):
            parts = _by_review(made[promise, "greedy"])
            x = [len(record["found_at"]) for record, _ in parts]
            for rule, (label, marker, colour) in styles.items():
                shares = [_share(runs, rule) for _, runs in parts]
                panel.plot(x, shares, marker, color=colour, label=label, markersize=7, alpha=0.9)
            panel.set(xscale="log", xlabel="relevant records of the review", ylim=(0, 1.02))
            panel.set_title(f"recall {promise[0]:.0%} at {promise[1]:.0%} confidence, greedy")
            panel.grid(alpha=0.3)
        panels[0].set_ylabel("share of the records read")
        panels[0].legend(fontsize=9, loc="lower left")


def _estimate_table(results: common.Results) -> str:
    rows = []
    for scores in ("trained on", "left out"):
        for share in CHECKPOINTS:
            records = results.select(kind="estimate", scores=scores, share=share)
            if records:
                ratio = np.array([(r["expected"] + 0.5) / (r["missing"] + 0.5) for r in records])
                low, middle, high = np.quantile(ratio, [0.1, 0.5, 0.9])
                intervals = [count_interval(r["expected"], 0.9) for r in records]
                pairs = zip(intervals, records, strict=True)
                inside = np.mean([low <= r["missing"] <= high for (low, high), r in pairs])
                rows.append((scores, f"{share:.0%}", f"{middle:.2f}", f"{low:.2f} to {high:.2f}",
                             f"{inside:.0%}", len(records)))  # fmt: skip
    head = (
        "scores of read rows",
        "read",
        "ratio, median",
        "10 % to 90 % of runs",
        "in the interval",
        "runs",
    )
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
