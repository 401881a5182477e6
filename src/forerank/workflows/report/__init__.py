"""Report on a ranking: one self-contained HTML file that opens with the result in sentences."""

from forerank.workflows.report.contents import make_report
from forerank.workflows.report.page import Report

__all__ = ["Report", "make_report"]
