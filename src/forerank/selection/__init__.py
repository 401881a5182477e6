"""Selection of a method and a penalty for a measure."""

from forerank.selection.methods import method_names, method_title
from forerank.selection.ranker import Ranker

__all__ = ["Ranker", "method_names", "method_title"]
