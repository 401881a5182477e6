"""Active learning to rank: label only the rows that matter.

- `simulate`, `compare_strategies`: the labels that strategies and rankers would need, on data with
  labels;
- `LabellingLoop`: the loop itself, for people;
- `LossMin`, `PairLossMin`, `Entropy`, `Uncertain`, `Diverse`, `Random`, `Greedy`: strategies,
  which rows to label next;
- `Budget`, `IrrelevantInARow`, `RecallBound`, `Audit`, `RankingStable`: stopping rules;
- `estimate_missing`: how many relevant rows may be left, an estimate;
- `PoolRanker`: the ranker for pools of which few rows are labelled;
- `label`: a page on which people label the rows of a table (`forerank label` for files);
- `rank_threshold`, `relevance_posterior`: from scores to a probability of relevance.
"""

from importlib import import_module
from typing import Any

from forerank.active.comparison import StrategyComparison, compare, compare_strategies
from forerank.active.estimates import MissingEstimate, estimate_missing
from forerank.active.loop import LabellingLoop, Step
from forerank.active.posterior import RankThreshold, rank_threshold, relevance_posterior
from forerank.active.simulation import Simulation, simulate
from forerank.active.stopping import (
    Audit,
    Budget,
    IrrelevantInARow,
    RankingStable,
    Reading,
    RecallBound,
    StoppingRule,
    audit_order,
    recall_by_confidence,
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
    "Audit",
    "Budget",
    "Diverse",
    "Entropy",
    "Greedy",
    "IrrelevantInARow",
    "LabellingLoop",
    "LossMin",
    "MissingEstimate",
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
    "audit_order",
    "compare",
    "compare_strategies",
    "estimate_missing",
    "label",
    "make_strategy",
    "paired_t",
    "rank_threshold",
    "recall_by_confidence",
    "relevance_posterior",
    "score_rows",
    "simulate",
]


def label(frame: Any, project: Any = None, **options: Any) -> Any:
    """A page on which the rows of a table are labelled; see `forerank.label.notebook.label`.

    Parameters
    ----------
    frame : DataFrame of pandas or polars, or table of pyarrow
    project : path, optional
        Where the decisions are kept. Default: a temporary file.
    **options
        `strategy`, `target`, `confidence`, `random_state` and `open_browser`.

    Returns
    -------
    LabellingPage
        `labels()` has the labels so far, -1 for rows without one; `stop()` ends the page.
    """
    # By name: the page lies above this package, and only this call reaches up.
    return import_module("forerank.label.notebook").label(frame, project, **options)
