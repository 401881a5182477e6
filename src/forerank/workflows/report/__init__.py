"""A report on a ranking: one HTML file that stands by itself, the result in words first."""

from forerank.workflows.report.contents import Report, make_report

__all__ = ["Report", "make_report"]
