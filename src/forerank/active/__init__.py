"""Active rank learning: ask a person only for the labels that matter.

- `simulate`, `compare`: what a strategy and a ranker would have cost, on data with labels;
- `LabellingLoop`: the loop itself, for people;
- `LossMin`, `Entropy`, `Uncertain`, `Diverse`, `Random`, `Greedy`: which rows to ask about next;
- `Budget`, `IrrelevantInARow`, `RecallBound`, `RankingStable`: when to stop;
- `PoolRanker`: the ranker for a pool that is mostly unread;
- `rank_threshold`, `relevance_posterior`: from scores to a probability of relevance.
"""

from forerank.active.loop import LabellingLoop, Step
from forerank.active.posterior import RankThreshold, rank_threshold, relevance_posterior
from forerank.active.simulation import Simulation, StrategyComparison, compare, paired_t, simulate
from forerank.active.stopping import (
    Budget,
    IrrelevantInARow,
    RankingStable,
    Reading,
    RecallBound,
    StoppingRule,
)
from forerank.active.strategies import (
    Diverse,
    Entropy,
    Greedy,
    LossMin,
    Random,
    Strategy,
    Uncertain,
    make_strategy,
    score_rows,
)
from forerank.estimators.pool import PoolRanker

__all__ = [
    "Budget",
    "Diverse",
    "Entropy",
    "Greedy",
    "IrrelevantInARow",
    "LabellingLoop",
    "LossMin",
    "PoolRanker",
    "Random",
    "RankThreshold",
    "RankingStable",
    "Reading",
    "RecallBound",
    "Simulation",
    "Step",
    "StoppingRule",
    "Strategy",
    "StrategyComparison",
    "Uncertain",
    "compare",
    "make_strategy",
    "paired_t",
    "rank_threshold",
    "relevance_posterior",
    "score_rows",
    "simulate",
]
