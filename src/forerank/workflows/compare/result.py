"""Result of a comparison: means, ranks, and tests of the differences."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

from forerank._text import counted
from forerank._typing import Vector
from forerank.data.checks import DataWarning
from forerank.metrics.estimates import format_value
from forerank.metrics.registry import measure_phrase
from forerank.metrics.significance import (
    corrected_t_test,
    critical_difference,
    critical_difference_groups,
    friedman_test,
    holm,
)

__all__ = ["Comparison", "shown_row"]

# Level of significance.
_LEVEL = 0.05
# Number of folds below which the sentence notes that the t-test has little power.
_FEW_FOLDS = 10

# Values of each method by seed and fold.
Values = dict[str, dict[tuple[int, int], float]]


@dataclass(frozen=True)
class Comparison:
    """Values of each method in each fold, and tests of the differences.

    Attributes
    ----------
    records : list of dict
        One for each method, seed and fold: value (of the metric), measures (others by key),
        fit_seconds, score_seconds (both without the preparation of columns, which is the same for
        all), n_train, n_test, and for Ranker the method and alpha that it selected (chosen, alpha)
        and the forms of the columns that these take (forms); `unused` lists arguments (weights,
        groups) that a fit does not accept. The record of a failed fit has `error`, the message of
        its exception.
    metric : str
    methods : list of str
        In the order given.
    folds : int
    seeds : list of int
    rows : int
    classes : dict
    notes : list of str
        Information on columns, labels and folds.
    warnings : list of DataWarning
        Problems of the data, from `forerank.data.checks.data_warnings`.
    depth : str
        For a metric of the first k rows, the number of rows of the whole list and the share that k
        is of it, such as "of 171 rows (first 29.2 %)"; in a fold, the same share of its rows
        counts. "of a group" for rows in groups; empty for other metrics.
    cut : str
        How many fits were done when the time budget ended, as a sentence; empty if all were.

    Notes
    -----
    Folds of one data set share most of their training rows, so the values of a method in them are
    not independent. The t-test of `differences` is corrected for that (Nadeau and Bengio 2003).
    The Friedman test and Nemenyi's critical difference assume independent data sets (Demšar 2006);
    over folds of one data set they find differences too easily, and serve as a summary. Neither
    test is about other data sets. The best method is selected on the values it is compared by,
    which biases its mean upwards.
    """

    records: list[dict[str, Any]]
    metric: str
    methods: list[str]
    folds: int
    seeds: list[int]
    rows: int = 0
    classes: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[DataWarning] = field(default_factory=list)
    depth: str = ""
    cut: str = ""

    @property
    def title(self) -> str:
        """The measure as headings and sentences name it, with the depth of its list."""
        return f"{measure_phrase(self.metric)} {self.depth}".rstrip()

    def values(self, measure: str | None = None) -> Values:
        """Values of a measure, by method, then by seed and fold; failed fits have none.

        Parameters
        ----------
        measure : str, optional
            One of the measures in the records; by default the requested one.
        """
        key = measure or self.metric
        values: Values = {method: {} for method in self.methods}
        known = {self.metric}
        for record in self.records:
            if "error" in record:
                continue
            known |= set(record["measures"])
            value = record["value"] if key == self.metric else record["measures"].get(key)
            if value is not None:
                values[record["method"]][record["seed"], record["fold"]] = value
        if key not in known:
            listed = ", ".join(sorted(known))
            raise ValueError(f"There is no measure {key!r} in the records; give one of {listed}.")
        return values

    def table(self, measure: str | None = None) -> list[dict[str, Any]]:
        """One row for each method, best first.

        Methods that failed in some folds come after those with all values, since means over
        different folds are not comparable. Seconds are medians over the fits, which the first fit
        of a process, while kernels are loaded, does not affect.

        Returns
        -------
        list of dict
            method, mean, std (None with one value), n (values), failed (fits), seconds,
            score_seconds, and from `differences` difference and p (None for the best).
        """
        values = self.values(measure)
        tests = {test["method"]: test for test in self.differences(measure)}
        rows = []
        for method in _best_first(values):
            own = np.array(list(values[method].values()))
            records = [record for record in self.records if record["method"] == method]
            fits = [record for record in records if "error" not in record]
            row: dict[str, Any] = {"method": method}
            row["mean"] = float(own.mean()) if own.size else None
            row["std"] = float(own.std(ddof=1)) if own.size > 1 else None
            row |= {"n": int(own.size), "failed": len(records) - len(fits)}
            for name, key in (("seconds", "fit_seconds"), ("score_seconds", "score_seconds")):
                row[name] = float(np.median([fit[key] for fit in fits])) if fits else None
            rows.append(
                row | {name: tests.get(method, {}).get(name) for name in ("difference", "p")}
            )
        return rows

    @property
    def best(self) -> str | None:
        """The method with the highest mean; None if every fit failed."""
        values = self.values()
        first = _best_first(values)[0]
        return first if values[first] else None

    def differences(
        self, measure: str | None = None, *, confidence: float = 0.95
    ) -> list[dict[str, Any]]:
        """Each method against the best, on the folds that both have.

        With the J differences d of folds and seeds, ``t = mean(d) / sqrt((1/J + n_test/n_train)
        var(d))`` with J - 1 degrees of freedom: `corrected_t_test`. p-values are Holm's over all
        methods. The effect size is Cohen's d of the paired differences, ``mean(d) / std(d)``, its
        interval from the noncentral t distribution of t.

        Parameters
        ----------
        measure : str, optional
            By default the requested one.
        confidence : float, default=0.95
            Of each interval.

        Returns
        -------
        list of dict
            method, difference (negative if it is lower than the best), low, high, t, p (Holm),
            p_single, effect, effect_low, effect_high, n. With one fold all but the difference are
            None.
        """
        if not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence={confidence!r}: give a probability between 0 and 1.")
        values = self.values(measure)
        best, *others = _best_first(values)
        sizes = {(r["seed"], r["fold"]): (r["n_train"], r["n_test"]) for r in self.records}
        tests = []
        for method in others:
            common = [fold for fold in values[best] if fold in values[method]]
            if not common:
                continue
            d = np.array([values[method][fold] - values[best][fold] for fold in common])
            n_train, n_test = np.sum([sizes[fold] for fold in common], axis=0)
            test = corrected_t_test(d, n_test / n_train, confidence=confidence)
            tests.append({"method": method, **test})
        corrected = iter(holm([test["p_single"] for test in tests if test["p_single"] is not None]))
        for test in tests:
            test["p"] = None if test["p_single"] is None else next(corrected)
        return tests

    def ranks(self, measure: str | None = None) -> dict[str, float]:
        """Mean rank of each method over the folds that all of them have, 1 being the best; best
        first.

        Ties share their mean rank. Methods of which every fit failed are not included.
        """
        names, matrix = self._common(measure)
        if not matrix.size:
            return {}
        means = stats.rankdata(-matrix, axis=1).mean(axis=0)
        return {names[k]: float(means[k]) for k in np.argsort(means, kind="stable")}

    @property
    def cd(self) -> float:
        """Nemenyi's critical difference of mean ranks at the level 0.05, as in
        `forerank.metrics.significance.critical_difference`; NaN with fewer than two methods.
        """
        n, k = self._common()[1].shape
        return critical_difference(k, n, _LEVEL)

    def friedman(self) -> dict[str, float] | None:
        """Friedman's test that all methods rank alike: chi2 and p; None with fewer than three
        methods or two folds.
        """
        return friedman_test(self._common()[1])

    def groups(self) -> list[list[str]]:
        """Largest groups of methods whose mean ranks differ by less than `cd`, best first."""
        ranks = self.ranks()
        names = list(ranks)
        bounds = critical_difference_groups(ranks.values(), self.cd)
        return [names[first : last + 1] for first, last in bounds]

    def _common(self, measure: str | None = None) -> tuple[list[str], Vector]:
        """Methods with any value, and their values in the folds that all of these have."""
        values = {method: own for method, own in self.values(measure).items() if own}
        first: dict[tuple[int, int], float] = next(iter(values.values()), {})
        folds = [fold for fold in first if all(fold in own for own in values.values())]
        matrix = np.array([[own[fold] for own in values.values()] for fold in folds])
        return list(values), matrix.reshape(len(folds), len(values))

    def sentence(self) -> str:
        """The result as a sentence."""
        best = self.best
        if best is None:
            return f"Every fit failed; the first because {self.errors()[0]}."
        first, *others = self.table()
        mean = format_value(first["mean"])
        if not others:
            return f"{best} has a mean {self.title} of {mean}."
        parts = [f"{best} has the highest {self.title}, {mean}"]
        similar = [row for row in others if row["p"] is not None and row["p"] >= _LEVEL]
        if similar:
            smallest, verb = min(row["p"] for row in similar), "is" if len(similar) == 1 else "are"
            p = f"p = {smallest:.2g}" + " or more" * (len(similar) > 1 and smallest < 0.995)
            names = _joined([row["method"] for row in similar])
            parts.append(f"{names} {verb} not significantly different ({p})")
        parts += [_described(row) for row in others if row not in similar]
        if first["n"] == 1:
            parts.append("one fold cannot show which differences are significant")
        elif similar and first["n"] < _FEW_FOLDS:
            parts.append(f"{first['n']} folds show only large differences, more seeds smaller ones")
        return " ".join(["; ".join(parts) + ".", *([self.cut] if self.cut else [])])

    def choices(self) -> list[str]:
        """For each method that selects others, such as Ranker, a line with its selections and the
        number of fits of each.
        """
        lines = []
        for method in self.methods:
            records = [r for r in self.records if r["method"] == method and "chosen" in r]
            counts = Counter(record["chosen"] for record in records)
            if set(counts) - {method}:
                n = len(records)
                listed = [f"{name} ({count} of {n})" for name, count in counts.most_common()]
                lines.append(f"{method} chose {'; '.join(listed)}")
        return lines

    def errors(self) -> list[str]:
        """Messages of the failed fits, each with its method, seed and fold."""
        return [
            f"{r['method']} (seed {r['seed']}, fold {r['fold'] + 1}): {r['error']}"
            for r in self.records
            if "error" in r
        ]

    def to_dict(self) -> dict[str, Any]:
        """All results, for JSON."""
        return {
            "metric": self.metric,
            "depth": self.depth,
            "cut": self.cut,
            "rows": self.rows,
            "classes": self.classes,
            "folds": self.folds,
            "seeds": self.seeds,
            "best": self.best,
            "result": self.sentence(),
            "table": self.table(),
            "differences": self.differences(),
            "ranks": self.ranks(),
            "critical_difference": self.cd,
            "friedman": self.friedman(),
            "not_significantly_different_by_ranks": self.groups(),
            "records": self.records,
            "notes": self.notes,
            "warnings": [vars(warning) for warning in self.warnings],
        }

    def __str__(self) -> str:
        rows = [("method", self.title, "std", "difference", "p", "s per fit")]
        rows += [shown_row(row) for row in self.table()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for name, *cells in rows:
            padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
            lines.append("  ".join([name.ljust(widths[0]), *padded]))
        lines += [*self.choices(), self.sentence()]
        errors = self.errors()
        if errors and self.best is not None:
            lines.append(f"{counted(len(errors), 'fit')} failed; the first: {errors[0]}.")
        return "\n".join(lines)


def _best_first(values: Values) -> list[str]:
    """Methods by descending number of values, then by descending mean."""

    def key(method: str) -> tuple[int, float]:
        own = list(values[method].values())
        return -len(own), -float(np.mean(own)) if own else 0.0

    return sorted(values, key=key)


def shown_row(row: dict[str, Any]) -> tuple[str, str, str, str, str, str]:
    """A row of `Comparison.table` as text: method, mean, std, difference, p, seconds."""
    return (
        row["method"] + (f" ({row['failed']} failed)" if row["failed"] else ""),
        "-" if row["mean"] is None else f"{row['mean']:.4f}",
        "-" if row["std"] is None else f"{row['std']:.4f}",
        "" if row["difference"] is None else f"{row['difference']:+.4f}",
        "" if row["p"] is None else f"{row['p']:.3f}" if row["p"] >= 0.001 else "<0.001",
        "-" if row["seconds"] is None else f"{row['seconds']:.3g}",
    )


def _described(row: dict[str, Any]) -> str:
    if row["mean"] is None:
        return f"{row['method']} failed in every fold"
    if row["difference"] is None:
        return f"{row['method']} was measured on other folds"
    if row["p"] is None:
        return f"{row['method']} has {format_value(row['mean'])}"
    p = f"p = {row['p']:.2g}" if row["p"] >= 0.001 else "p < 0.001"
    direction, size = "lower" if row["difference"] < 0 else "higher", abs(row["difference"])
    return f"{row['method']} is {direction} by {size:.2g} ({p})"


def _joined(names: list[str]) -> str:
    quoted = [f'"{name}"' if ", " in name and len(names) > 1 else name for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
