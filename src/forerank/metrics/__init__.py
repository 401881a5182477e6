"""Measures of rankings: one sort, then counts."""

from forerank.metrics.measures import (
    SCORERS,
    AucInterval,
    auc_interval,
    average_precision,
    get_scorer,
    ndcg,
    partial_auc,
    pos_at_top,
    precision_at_k,
    rank_loss,
    recall_at_k,
    roc_auc,
    tpr_at_fpr,
    wmw,
    work_saved,
)

__all__ = [
    "SCORERS",
    "AucInterval",
    "auc_interval",
    "average_precision",
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
