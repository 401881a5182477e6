"""Measures of rankings: one sort of the scores, then counts.

Ties
----
Rows with equal scores have no order among themselves, and no measure depends on their order in the
input:

- `roc_auc`, `rank_loss`, `wmw`, `partial_auc`, `auc_interval`: a tied pair counts one half (`wmw`
  has a parameter for it);
- `pos_at_top`: a positive tied with the best negative is not above it, so a tie is never a success;
- `average_precision`, `tpr_at_fpr`, `work_saved`: a threshold accepts all rows of a block of tied
  rows, or none;
- `precision_at_k`, `recall_at_k`, `ndcg`: the expected value over a random order of the tied rows.

Labels, weights, groups
-----------------------
The larger of two labels in sorted order is the positive one, unless `pos_label` is given. Scores
may be infinite (they still order the rows) but not NaN. A pair weighs w_i * w_j; a row of weight
zero is equivalent to no row. With `qid`, rows are compared within their group only and the measure
is the mean over groups. Groups on which it is undefined (for most measures: those without both
classes) are excluded, and one `UserWarning` gives their number.

Rows are sorted once, highest score first within each group; a group is then a contiguous run of
rows, and a block of tied rows a contiguous run within a group. Costs are for n rows and include one
sort: O(n log n).
"""

from typing import TYPE_CHECKING, Any

from forerank.metrics.boosting import for_lightgbm, for_xgboost
from forerank.metrics.intervals import AucInterval, auc_interval
from forerank.metrics.pairs import rank_loss, roc_auc, wmw
from forerank.metrics.thresholds import (
    average_precision,
    partial_auc,
    pos_at_top,
    tpr_at_fpr,
    work_saved,
)
from forerank.metrics.top_k import ndcg, precision_at_k, recall_at_k

if TYPE_CHECKING:
    from forerank.metrics.scorers import SCORERS, get_scorer

__all__ = [
    "SCORERS",
    "AucInterval",
    "auc_interval",
    "average_precision",
    "for_lightgbm",
    "for_xgboost",
    "get_scorer",
    "ndcg",
    "partial_auc",
    "pos_at_top",
    "precision_at_k",
    "rank_loss",
    "recall_at_k",
    "roc_auc",
    "tpr_at_fpr",
    "wmw",
    "work_saved",
]


def __getattr__(name: str) -> Any:
    """Scorers are made when first used: they import scikit-learn's metrics, which takes long."""
    if name in ("SCORERS", "get_scorer"):
        from forerank.metrics import scorers

        return getattr(scorers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
