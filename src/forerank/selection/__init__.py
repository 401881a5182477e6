"""The choice of method and penalty for the measure that the user names."""

from forerank.selection.methods import method_names
from forerank.selection.ranker import Ranker

__all__ = ["Ranker", "method_names"]
