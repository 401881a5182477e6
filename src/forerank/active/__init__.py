"""Active learning to rank: label only the rows that matter.

- `simulate`, `compare_strategies`: the labels that strategies and rankers would need, on data with
  labels;
- `LabellingLoop`: the loop itself, for people;
- `LossMin`, `PairLossMin`, `Entropy`, `Uncertain`, `Diverse`, `Random`, `Greedy`: strategies,
  which rows to label next;
- `Budget`, `IrrelevantInARow`, `RecallBound`, `RankingStable`: stopping rules;
- `PoolRanker`: the ranker for pools of which few rows are labelled;
- `rank_threshold`, `relevance_posterior`: from scores to a probability of relevance.
"""

from forerank.active.comparison import StrategyComparison, compare, compare_strategies
from forerank.active.loop import LabellingLoop, Step
from forerank.active.posterior import RankThreshold, rank_threshold, relevance_posterior
from forerank.active.simulation import Simulation, simulate
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
    PairLossMin,
    Random,
    Strategy,
    Uncertain,
    make_strategy,
)
from forerank.estimators.pool import PoolRanker
from forerank.estimators.scores import score_rows
from forerank.metrics.significance import paired_t

__all__ = [
    "Budget",
    "Diverse",
    "Entropy",
    "Greedy",
    "IrrelevantInARow",
    "LabellingLoop",
    "LossMin",
    "PairLossMin",
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
    "compare_strategies",
    "make_strategy",
    "paired_t",
    "rank_threshold",
    "relevance_posterior",
    "score_rows",
    "simulate",
]
