"""Sections of a report: figures, weights, selection of a method, comparison, reproduction."""

import hashlib
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from forerank._text import counted
from forerank._validation import is_integer
from forerank.data.source import DataSource
from forerank.metrics.estimates import format_value
from forerank.models.versions import package_versions
from forerank.workflows.report import figures
from forerank.workflows.report.cross_validation import HeldOut
from forerank.workflows.report.figures import ReportFigure
from forerank.workflows.report.formatting import as_sentence
from forerank.workflows.report.results import HeldOutResults

__all__ = [
    "call_text",
    "comparison_section",
    "held_out_sections",
    "reproduction",
    "selection_section",
    "weights_section",
]

# Weights in the table and the figure.
_MOST_WEIGHTS = 20
# Characters of an argument in the call that makes the report again; longer ones become "...".
_LONGEST_ARGUMENT = 200
# Packages whose versions the report lists.
_PACKAGES = ("python", "forerank", "scikit-learn", "numpy", "scipy", "numba")
_EXTRA_PACKAGES = ("pandas", "pyarrow", "matplotlib")


def held_out_sections(results: HeldOutResults) -> dict[str, Any]:
    """Tables and figures of the held-out rows."""
    return {
        "measures": results.measure_table(),
        "measure_note": results.measure_note(),
        "first_rows": results.first_rows_table(),
        "data": results.data_table(),
        "grouped": results.problem.groups is not None,
        "figures": _figures(results),
        "absent": _absent_figures(results),
    }


def _figures(results: HeldOutResults) -> dict[str, ReportFigure | None]:
    """Figures of the held-out rows; None for those that cannot be drawn."""
    y, scores, fold, held = results.y, results.scores, results.fold, results.held
    names = ("roc", "precision_recall", "hits", "reliability", "distributions", "stability")
    drawn: dict[str, ReportFigure | None] = dict.fromkeys(names)
    if results.two_classes:
        auc, tpr, ap = (results.by_key[key].value for key in ("auc", "tpr@0.01", "ap"))
        drawn["roc"] = figures.roc(y, scores, fold, auc, tpr)
        drawn["precision_recall"] = figures.precision_recall(y, scores, fold, ap)
        drawn["hits"] = figures.hits(y, scores)
        drawn["reliability"] = figures.reliability(y, scores, fold)
    if results.estimates and results.groups is None:
        drawn["distributions"] = figures.distributions(y, scores, _class_names(results))
    if held.n_folds > 1 and results.problem.groups is None:
        k = results.depth_discussed()
        drawn["stability"] = figures.stability(held.by_model, results.seed, k)
    return drawn


def _class_names(results: HeldOutResults) -> dict[Any, str]:
    target, labels = results.problem.target, results.problem.labels
    if labels.graded:
        return {y.item(): f"{target} = {y * labels.unit:g}" for y in np.unique(results.y)}
    return {is_positive: f"{target} = {name}" for is_positive, name in labels.names.items()}


def _absent_figures(results: HeldOutResults) -> dict[str, str]:
    """The reason why a figure is not drawn, by its name."""
    if not results.estimates:
        curves = "Not drawn: no row could be held out, so there are no scores."
    elif results.problem.graded:
        curves = "Not drawn: the labels are grades, and this figure is for two classes. NDCG above "
        curves += "uses all grades."
    else:
        curves = (
            "Not drawn: rows are ranked within groups, and a curve over all rows would compare "
        )
        curves += "rows of different groups. The measures above are means over groups."
    reasons = dict.fromkeys(
        ("roc", "precision_recall", "hits", "reliability", "distributions"), curves
    )
    if results.two_classes:
        reasons["reliability"] = (
            "Not drawn: it needs scores that differ, and at least ten rows of each class outside "
            "every fold."
        )
    reasons["stability"] = "Not drawn: it needs the models of at least two folds."
    if results.problem.groups is not None:
        reasons["stability"] = "Not drawn: rows of different groups are not compared."
    return reasons


def selection_section(ranker: Any, held: HeldOut, title: str) -> dict[str, Any] | None:
    """Methods and penalties that a ranker tried, and those that it selected on all rows and in each
    fold; None if it selects nothing.
    """
    if getattr(ranker, "cv_results_", None) is None:
        return None
    lines = []
    if hasattr(ranker, "best_method_"):
        alpha, rounds = (getattr(ranker, f"best_{name}_", None) for name in ("alpha", "rounds"))
        values = [] if alpha is None else [f"alpha = {alpha:.3g}"]
        values += [] if rounds is None else [counted(rounds, "round")]
        chosen = f" with {' and '.join(values)}" if values else ""
        lines.append(f"On all rows: {ranker.best_method_}{chosen}.")
    if held.choices:
        counts = Counter(method for method, _ in held.choices)
        listed = ", ".join(f"{method} ({number})" for method, number in counts.items())
        alphas = [alpha for _, alpha in held.choices if alpha is not None]
        span = f", alpha from {min(alphas):.3g} to {max(alphas):.3g}" if alphas else ""
        lines.append(
            f"In the {len(held.choices)} folds, each selecting separately: {listed}{span}."
        )
    curve, learning = getattr(ranker, "learning_curve_", None), None
    if isinstance(curve, Mapping) and len(curve.get("rows", ())) > 1:
        sentence = as_sentence(str(curve.get("sentence", "")))
        learning = figures.learning_curve(curve, title, sentence)
    paths = figures.alpha_path(ranker, title), figures.rounds_path(ranker, title)
    drawn = [figure for figure in (*paths, learning) if figure is not None]
    shows = "The figure shows" if len(drawn) == 1 else "The figures show"
    return {
        "sentence": " ".join(lines),
        "figures": drawn,
        "note": f"{shows} {title} in the folds in which the method was selected, on all rows.",
    }


def weights_section(weights: dict[str, float], held: HeldOut, ranker: str) -> dict[str, Any]:
    """The largest weights, and their range over the folds."""
    largest = [name for name, value in weights.items() if value != 0.0][:_MOST_WEIGHTS]
    if not largest:
        sentence = f"{ranker} is not linear in the columns here: there are no weights by column."
        sentence = "All weights are zero." if weights else sentence
        return {"sentence": sentence, "rows": [], "figure": None, "ranged": False}
    values = np.array([weights[name] for name in largest])
    ranged, low, high = len(held.weights) > 1 and all(held.weights), None, None
    if ranged:
        # A rare value of a category may have no column in some fold; what needs more rows, such as
        # weekdays, in none.
        table = np.array([[fold.get(name, 0.0) for fold in held.weights] for name in largest])
        table[[not any(name in fold for fold in held.weights) for name in largest]] = np.nan
        low, high = table.min(axis=1), table.max(axis=1)
    digits = int(np.clip(2 - np.floor(np.log10(abs(values[0]))), 0, 12))
    rows = [{"name": name, "weight": _signed(weights[name], digits)} for name in largest]
    if low is not None and high is not None:
        for row, *ends in zip(rows, low, high, strict=True):
            has_column = bool(np.isfinite(ends[0]))
            text = " to ".join(_signed(end, digits) for end in ends) if has_column else "no column"
            row["range"] = text
    which = f"The {len(largest)} largest of {len(weights):,} weights"
    which = which if len(largest) < len(weights) else f"All {len(largest)} weights"
    sentence = (
        f"{which}, fitted on all rows. Columns are scaled, so sizes are comparable; a weight shows "
        "what the model uses, not a cause. Correlated columns, such as the values of one category, "
        "share a weight, and not always in the same way."
    )
    if ranged and held.choices:
        sentence += " In the folds, the same method and alpha were fitted as on all rows."
    drawing = figures.weights(largest, values, low, high)
    return {"sentence": sentence, "rows": rows, "figure": drawing, "ranged": ranged}


def _signed(value: float, digits: int) -> str:
    text = f"{value:+.{digits}f}"
    return text if float(text) != 0.0 else text[1:]


# --- Comparison ---


def comparison_section(
    comparison: Any, results: HeldOutResults, folds: Any
) -> dict[str, Any] | None:
    """A comparison as rows of text; it may be a `Comparison`, a frame, or a sequence of dicts."""
    if comparison is None:
        return None
    table = _dicts(_attribute(comparison, "table", comparison))
    tests = {test["method"]: test for test in _dicts(_attribute(comparison, "differences", []))}
    rows = []
    for row in table:
        row = row | tests.get(row["method"], {})
        text = {"method": str(row["method"])} | dict.fromkeys(("mean", "difference", "p"), "–")
        if "mean" in row:
            text["mean"] = format_value(row["mean"])
            if "std" in row:
                text["mean"] += f" ±\N{NO-BREAK SPACE}{format_value(row['std'])}"
        if "difference" in row:
            text["difference"] = f"{row['difference']:+.4f}"
        if "p" in row:
            text["p"] = "< 0.001" if row["p"] < 0.001 else f"{row['p']:.3f}"
        text["seconds"] = f"{row['seconds']:.3g}" if "seconds" in row else "–"
        rows.append(text)
    ranks, cd = _attribute(comparison, "ranks", None), _attribute(comparison, "cd", None)
    drawing = None
    if ranks and len(ranks) > 2 and np.isfinite(list(ranks.values())).all():
        known = cd is not None and np.isfinite(cd)
        drawing = figures.critical_difference(ranks, float(cd) if known else None)
    errors = _attribute(comparison, "errors", [])
    return {
        "rows": rows,
        "figure": drawing,
        "sentence": _attribute(comparison, "sentence", ""),
        "errors": [f"{len(errors)} fits failed; the first: {errors[0]}."] if errors else [],
        "folds": _same_folds(comparison, table, results, folds),
    }


def _same_folds(
    comparison: Any, table: list[dict[str, Any]], results: HeldOutResults, folds: Any
) -> str:
    """A sentence on whether the means of a comparison are over the folds of the report."""
    if not results.estimates:
        return ""
    main = results.estimates[0]
    expected: dict[str, Any] = {"metric": results.measure.key, "seeds": [results.seed]}
    expected["folds"] = results.held.n_folds if is_integer(folds) else None
    same = all(getattr(comparison, name, None) == value for name, value in expected.items())
    means = [format_value(row["mean"]) for row in table if same and "mean" in row]
    if format_value(main.value) in means:
        return "Means and standard deviations are over the folds of this report."
    return (
        "These means are over other folds, or of other fits, than the "
        f"{main.title} of {format_value(main.value)} above, and may differ from it."
    )


def _attribute(comparison: Any, name: str, default: Any) -> Any:
    value = getattr(comparison, name, default)
    return value() if callable(value) else value


def _dicts(table: Any) -> list[dict[str, Any]]:
    """The rows of a frame, or of a sequence of dicts, without entries that are None or NaN."""
    if hasattr(table, "columns"):
        table = table if "method" in table.columns else table.rename_axis("method").reset_index()
        table = table.to_dict("records")
    rows = [{key: v for key, v in row.items() if v is not None and v == v} for row in table]
    if any("method" not in row for row in rows):
        raise ValueError("comparison has a row without a method; each row needs method and mean.")
    return rows


# --- Reproduction ---


def reproduction(
    source: DataSource, command: str | Sequence[str], seed: int
) -> list[tuple[str, str]]:
    """The command or call that makes the report again, the data and the versions of packages."""
    digest = "the data came from memory; no file to compare with"
    if source.name is not None:
        with open(source.path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    versions = package_versions(*_PACKAGES, *_EXTRA_PACKAGES).items()
    return [
        ("Command", command if isinstance(command, str) else shlex.join(map(str, command))),
        ("Data", source.name or "in memory"),
        ("SHA-256 of the data", digest),
        ("Seed", str(seed)),
        ("Date", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),
        ("Versions", ", ".join(f"{name} {number}" for name, number in versions)),
    ]


def call_text(path: Any, target: str | None, arguments: Mapping[str, Any]) -> str:
    """The call of `make_report` with the arguments that are not None; data in memory and long
    arguments are left open.
    """
    listed = ["data" if path is None else repr(str(path))]
    listed += [] if target is None else [repr(target)]
    for name, value in arguments.items():
        if value is not None:
            text = "..." if value is ... else " ".join(repr(value).split())
            listed.append(f"{name}={text if len(text) <= _LONGEST_ARGUMENT else '...'}")
    return f"make_report({', '.join(listed)})"
