"""Fitted models: their files, scores of a table, explanations, ranked lists, other formats."""

from forerank.models.file import COLUMN_KINDS, Model, load_model, read_card, save_model

__all__ = ["COLUMN_KINDS", "Model", "load_model", "read_card", "save_model"]
