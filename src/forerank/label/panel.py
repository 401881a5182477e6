"""The screen "Stop": what was found, which recall is guaranteed, and what may be missing.

A `Snapshot` is taken in the writer's thread; everything else is computed from it in another one,
since the stopping rules import scikit-learn and compiled functions.

Labels are counted in the order in which records were assigned, up to the first record that is
leased, in conflict or half read (`Assignments.completed`). Skipped records keep their places and
count as relevant and not found. Records labelled before the reading began are known besides. Those
labelled out of turn count as found where they are relevant, and stay among the records from which
the others were drawn (docs/maths/stopping.md).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forerank._text import counted
from forerank._typing import Index, Mask, Vector
from forerank.label.decisions import CONFLICT, DECIDED, HALF

if TYPE_CHECKING:
    from forerank.active.stopping import Reading, RecallBound
    from forerank.label.service import Service

__all__ = ["Snapshot", "report", "sentence", "snapshot"]

# Confidences of the curve of the recall.
_CONFIDENCES = np.concatenate([np.linspace(0.5, 0.95, 19), [0.96, 0.97, 0.98, 0.99]])
# Strategies that select by relevance, or at random, as the assumption of the bound demands.
_STRATEGIES = ("greedy", "random")
_ASSUMPTION = (
    "each record shown was at least as likely to be relevant as one drawn at random from the "
    "unread ones, given the labels before it, and the labels are correct."
)
_AUDIT_ASSUMPTION = "the labels are correct; there is no assumption about the ranking."
_ESTIMATE = "A logistic fit of the labels on the scores by which the records were selected."


@dataclass(frozen=True)
class Snapshot:
    """What the screen is computed from.

    Attributes
    ----------
    status, label : array of shape (n_records,)
    known : array of bool
        Records whose labels were in the file.
    sequence : array of int
        Records in the order of their assignments.
    completed : array of int
        Those of them, or of the audit, that are counted.
    start : int
        Number of completed records before the last addition of records.
    audit : array of int or None
    selection : dict
        The score by which each record was selected.
    scores : array or None
        Scores of the model now.
    skipped : int
    settings : dict
    """

    status: NDArray[np.int8]
    label: NDArray[np.int8]
    known: Mask
    sequence: Index
    completed: Index
    start: int
    audit: Index | None
    selection: dict[int, float]
    scores: Vector | None
    skipped: int
    settings: dict[str, Any]

    @property
    def relevant(self) -> Mask:
        """Whether each record is relevant."""
        return self.label >= self.settings["threshold"]


def snapshot(service: "Service", person: int | None = None) -> Snapshot:
    """The state now; `skipped` is counted for a person."""
    assignments, decisions = service.assignments, service.decisions
    sequence = assignments.sequence()
    completed = assignments.completed(sequence if service.audit is None else service.audit)
    added = service.settings["added"]  # the last assignment before records were added
    start = assignments.n_before(completed, added) if added and service.audit is None else 0
    return Snapshot(
        decisions.status.copy(),
        decisions.label.copy(),
        decisions.known,
        sequence,
        completed,
        start,
        service.audit,
        dict(assignments.selection_scores),
        None if service.model is None else service.model.scores,
        0 if person is None else service.n_skipped(person),
        dict(service.settings),
    )


# --- The bound ---


def _reading(taken: Snapshot) -> "tuple[Reading, RecallBound]":
    """The labels as a stopping rule counts them, and the rule."""
    from forerank.active.stopping import Audit, Reading, RecallBound

    relevant, decided = taken.relevant, taken.status == DECIDED
    options = {"target": taken.settings["target"], "confidence": taken.settings["confidence"]}
    if taken.audit is not None:
        # All records outside of the audit were read before it; their labels are certain.
        outside = np.ones(relevant.size, dtype=bool)
        outside[taken.audit - 1] = False
        before = np.flatnonzero(outside) + 1
        order = np.concatenate([before, taken.completed]) - 1
        audited = Reading(relevant.size, relevant[order], undecided=~decided[order])
        return audited, Audit(**options, start=before.size)
    in_order = np.zeros(relevant.size, dtype=bool)
    in_order[taken.sequence - 1] = True
    elsewhere = decided & ~in_order
    known = elsewhere & taken.known
    order = taken.completed - 1
    reading = Reading(
        relevant.size - int(np.count_nonzero(known)),
        relevant[order],
        known_relevant=int(np.count_nonzero(elsewhere & relevant)),
        undecided=~decided[order],
        out_of_order=int(np.count_nonzero(elsewhere & ~known)),
    )
    # A run of irrelevant records says nothing about records that were added later.
    rule = Audit(**options, start=taken.start) if taken.start else RecallBound(**options)
    return reading, rule


def _bound(taken: Snapshot, reading: "Reading", rule: "RecallBound") -> dict[str, Any]:
    recall = rule.lower_bound(reading)
    reached = rule.reason(reading) is not None
    return {
        "recall": recall,
        "confidence": rule.confidence,
        "target": rule.target,
        "reached": reached,
        "records_to_go": rule.records_to_go(reading),
        "sentence": _sentence(recall, rule, reached),
        "assumption": _assumption(taken),
    }


def _sentence(recall: float, rule: "RecallBound", reached: bool) -> str:
    if recall <= 0.0:
        return "Nothing can be said about the recall yet."
    text = f"At least {_percent(recall)} of the relevant records are found, "
    text += f"with {_percent(rule.confidence)} confidence"
    return f"{text}: the target of {_percent(rule.target)} is reached." if reached else f"{text}."


def _assumption(taken: Snapshot) -> str:
    if taken.audit is not None:
        return _AUDIT_ASSUMPTION
    strategy = taken.settings["strategy"]
    if strategy in _STRATEGIES:
        return _ASSUMPTION
    doubt = f"the strategy {strategy!r} does not select by relevance, which may violate it: "
    return f"{_ASSUMPTION[:-1]}; {doubt}start an audit for a guarantee."


def _percent(share: float) -> str:
    """A share in per cent, rounded down so that it is not overstated."""
    return f"{np.floor(1000.0 * share + 1e-9) / 10.0:g} %"


def sentence(taken: Snapshot) -> dict[str, Any]:
    """Whether the target is reached, and the sentence that says so."""
    reading, rule = _reading(taken)
    recall, reached = rule.lower_bound(reading), rule.reason(reading) is not None
    return {"reached": reached, "sentence": _sentence(recall, rule, reached)}


# --- The whole screen ---


def report(taken: Snapshot) -> dict[str, Any]:
    """All figures of the screen."""
    from forerank.active.stopping import recall_by_confidence

    reading, rule = _reading(taken)
    relevant, decided = taken.relevant, taken.status == DECIDED
    read, found = int(np.count_nonzero(decided)), int(np.count_nonzero(relevant))
    bound = _bound(taken, reading, rule)
    curve = recall_by_confidence(reading, _CONFIDENCES, rule)
    in_order = int(np.count_nonzero(decided[taken.sequence - 1]))
    made = {
        "n_records": relevant.size,
        "found": found,
        "read": read,
        "unread": relevant.size - read,
        "skipped": taken.skipped,
        "undecided": int(np.count_nonzero(np.isin(taken.status, (CONFLICT, HALF)))),
        "known": read - in_order,
        "bound": bound,
        "curve": [[float(c), float(r)] for c, r in zip(_CONFIDENCES, curve, strict=True)],
        "progress": _progress(taken),
        "estimate": _estimate(taken),
        "audit": _audit(taken),
    }
    return made | {"certificate": _certificate(taken, made)}


def _progress(taken: Snapshot) -> list[list[int]]:
    """Points (records read, relevant ones) in the order of the assignments: those of the finds, and
    the last one.
    """
    order = taken.sequence[taken.status[taken.sequence - 1] == DECIDED]
    finds = np.flatnonzero(taken.relevant[order - 1]) + 1
    points = [[int(place), number] for number, place in enumerate(finds, start=1)]
    if order.size and (not points or points[-1][0] < order.size):
        points.append([int(order.size), len(points)])
    return points


def _estimate(taken: Snapshot) -> dict[str, Any] | None:
    """An estimate of what is missing, from scores that the labels have not influenced."""
    from forerank.active.estimates import estimate_missing

    decided = taken.status == DECIDED
    chosen = [record for record in taken.selection if decided[record - 1]]
    if taken.scores is None or not chosen:
        return None
    unread = np.flatnonzero(~decided[: taken.scores.size])
    scores = np.array([taken.selection[record] for record in chosen])
    labels = taken.relevant[np.array(chosen) - 1].astype(int)
    estimate = estimate_missing(
        np.concatenate([scores, taken.scores[unread]]),
        np.concatenate([labels, np.full(unread.size, -1)]),
    )
    made = {"missing": estimate.expected, "low": estimate.low, "high": estimate.high}
    return made | {"sentence": _ESTIMATE}


def _audit(taken: Snapshot) -> dict[str, Any] | None:
    if taken.audit is None:
        return None
    done = taken.completed - 1
    return {
        "on": True,
        "sentence": "The unread records are read in a random order, drawn when the audit began.",
        "read": int(done.size),
        "found": int(np.count_nonzero(taken.relevant[done])),
        "left": int(taken.audit.size - done.size),
    }


def _verb(n: int, one: str = "is", many: str = "are") -> str:
    """A number with the verb that follows it."""
    return f"{n:,} {one if n == 1 else many}"


def _certificate(taken: Snapshot, made: dict[str, Any]) -> list[str]:
    """Sentences to print."""
    bound, settings = made["bound"], taken.settings
    how = "the rest in a random order" if taken.audit is not None else "in the order of a ranking"
    lines = [
        f"Of {counted(made['n_records'], 'record')}, {_verb(made['read'], 'was', 'were')} read and "
        f"{_verb(made['found'])} relevant; {_verb(made['unread'])} unread.",
        f"{bound['sentence']} Target and confidence were set before the reading began.",
        f"Assumption: {bound['assumption']}",
        f"Records were read {how} (strategy {settings['strategy']!r}, seed {settings['seed']}), "
        + ("each by two people." if settings["mode"] == "double" else "each by one person."),
    ]
    if made["skipped"] or made["undecided"]:
        lines.append(
            f"Skipped: {made['skipped']:,}; in conflict or with one of two readers: "
            f"{made['undecided']:,}. They are among the unread records; the bound takes skipped "
            "ones for relevant and not found, and counts labels up to the first undecided one."
        )
    if made["known"]:
        lines.append(
            f"{counted(made['known'], 'record')} labelled out of turn or before the reading began."
        )
    return lines
