"""Relative probabilities of the sampling strategies of shen2013, as functions of the score
difference d of a candidate.

    random          1
    soft-close      2 / (1 + exp |d|)
    soft-correct    1 - 2 / (1 + exp [1 - d]_+)  =  tanh([1 - d]_+ / 2)
    hard-close      the smallest |d| first
    hard-correct    the smallest d first, which are the largest [1 - d]_+

The hard strategies choose without randomness (`forerank.sampling.hardest`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np

from forerank._typing import Vector

__all__ = ["PROBABILITIES", "STRATEGIES", "Interval", "Probability"]

# [low, high) of score differences.
Interval = tuple[float, float]


@dataclass(frozen=True)
class Probability:
    """Relative probability of a soft strategy as a function of d, at most one (`acceptance`).

    `intervals(depth)` are intervals of d on which it is within a factor of about two of its
    maximum; it falls with the depth. `beyond(depth)` is the rest of the line after the intervals of
    all smaller depths, as far as the probability is positive.
    """

    acceptance: Callable[[Vector], Vector]
    intervals: Callable[[int], list[Interval]]
    beyond: Callable[[int], list[Interval]]


def _close(d: Vector) -> Vector:
    with np.errstate(over="ignore"):
        return 2.0 / (1.0 + np.exp(np.abs(d)))


def _correct(d: Vector) -> Vector:
    return np.tanh(0.5 * np.maximum(1.0 - d, 0.0))


def _lowest_correct(depth: int) -> float:
    """Lower end of an interval: 1 - d is above 4, then from 4 to 2, from 2 to 1, ..."""
    return 1.0 - 2.0 ** (3 - depth) if depth else -inf


PROBABILITIES = {
    "random": Probability(
        np.ones_like,
        lambda depth: [(-inf, inf)],
        lambda depth: [] if depth else [(-inf, inf)],
    ),
    "soft-close": Probability(
        _close,
        lambda depth: [(float(depth), depth + 1.0), (-depth - 1.0, -float(depth))],
        lambda depth: [(float(depth), inf), (-inf, -float(depth))],
    ),
    "soft-correct": Probability(
        _correct,
        lambda depth: [(_lowest_correct(depth), 1.0 - 2.0 ** (2 - depth))],
        lambda depth: [(_lowest_correct(depth), 1.0)],
    ),
}
STRATEGIES = (*PROBABILITIES, "hard-close", "hard-correct")
