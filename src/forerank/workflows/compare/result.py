"""What a comparison found: means, ranks, and tests of the differences."""

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


_LEVEL = 0.05
# Fewer folds than this leave the test with little power.
_FEW_FOLDS = 10


@dataclass(frozen=True)
class Comparison:
    """Methods, what they reached in each fold, and which differences are more than chance.

    Attributes
    ----------
    records : list of dict
        One for each method, seed and fold: value (of the metric), measures (others by name),
        fit_seconds, score_seconds (both without the preparation of columns, which is the same for
        all), n_train, n_test, and for Ranker the method and alpha that it chose (chosen, alpha);
        weights or groups that a fit does not take are named under unused. Or error, in words.
    metric : str
    methods : list of str
        In the order given.
    folds : int
    seeds : list of int
    rows : int
    classes : dict
    notes : list of str
        What was done with the columns.
    warnings : list of DataWarning
        What is odd about the data, as `forerank.data.checks.data_warnings` says.
    depth : str
        What the first k rows of the metric are, such as "of 171 rows (first 29.2 %)": a share of
        the rows of a fold.
    cut : str
        What a time budget has cut, in a sentence; empty where it has cut nothing.

    Notes
    -----
    Two tests are given, and they do not have the same standing. Folds of one data set share
    most of their training rows, so the values of a method in them are not independent. The t-test
    of `differences` is corrected for that (Nadeau and Bengio 2003) and is the one to trust. The
    Friedman test and Nemenyi's critical difference were made for independent data sets (Demšar
    2006); over folds of one data set they find differences too easily, and their ranks are for a
    summary. Neither speaks about other data sets. The best method is picked by the same values that
    it is compared on, which flatters it a little.
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
        """The measure as it is called in heads and sentences, with the depth of the list that it
        looks at.
        """
        return f"{measure_phrase(self.metric)} {self.depth}".rstrip()

    def values(self, measure: str | None = None) -> dict[str, dict[tuple[int, int], float]]:
        """For each method its values of a measure, by default the chosen one, by seed and fold;
        failed fits have none.

        Parameters
        ----------
        measure : str, optional
            One that is among the measures of the records.
        """
        name = measure or self.metric
        found: dict[str, dict[tuple[int, int], float]] = {method: {} for method in self.methods}
        known: set[str] = {self.metric}
        for each in self.records:
            if "error" in each:
                continue
            known |= set(each["measures"])
            value = each["value"] if name == self.metric else each["measures"].get(name)
            if value is not None:
                found[each["method"]][each["seed"], each["fold"]] = value
        if name not in known:
            raise ValueError(
                f"There is no measure {name!r} in the records; there are {', '.join(sorted(known))}."
            )
        return found

    def table(self, measure: str | None = None) -> list[dict[str, Any]]:
        """One row for each method, best first.

        Methods that failed in some fold where others did not come after those that are complete: a
        mean over fewer folds is another figure. Seconds are medians over the fits, which the first
        fit of a process, while kernels are loaded, does not disturb.

        Returns
        -------
        list of dict
            method, mean, std (None with one value), n (values), failed (fits), seconds,
            score_seconds, and from `differences` difference and p (None for the best).
        """
        values = self.values(measure)
        against = {each["method"]: each for each in self.differences(measure)}
        rows = []
        for method in self._best_first(values):
            own = np.array(list(values[method].values()))
            records = [each for each in self.records if each["method"] == method]
            fits = [each for each in records if "error" not in each]
            rows.append(
                {
                    "method": method,
                    "mean": float(own.mean()) if own.size else None,
                    "std": float(own.std(ddof=1)) if own.size > 1 else None,
                    "n": int(own.size),
                    "failed": len(records) - len(fits),
                    "seconds": float(np.median([each["fit_seconds"] for each in fits]))
                    if fits
                    else None,
                    "score_seconds": float(np.median([each["score_seconds"] for each in fits]))
                    if fits
                    else None,
                    "difference": against[method]["difference"] if method in against else None,
                    "p": against[method]["p"] if method in against else None,
                }
            )
        return rows

    @property
    def best(self) -> str | None:
        """The method with the highest mean; None where every fit failed."""
        values = self.values()
        first = self._best_first(values)[0]
        return first if values[first] else None

    @staticmethod
    def _best_first(values: dict[str, dict[tuple[int, int], float]]) -> list[str]:
        def place(method: str) -> tuple[int, float]:
            own = list(values[method].values())
            return -len(own), -float(np.mean(own)) if own else 0.0

        most = max(map(len, values.values()))
        complete = [method for method in values if len(values[method]) == most]
        return sorted(complete, key=place) + sorted(
            (m for m in values if len(values[m]) < most), key=place
        )

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
            By default the chosen one.
        confidence : float, default=0.95
            Of the intervals, each for itself.

        Returns
        -------
        list of dict
            method, difference (negative where it is behind the best), low, high, t, p (Holm),
            p_single, effect, effect_low, effect_high, n. What cannot be had from one fold is None.
        """
        if not 0.0 < confidence < 1.0:
            raise ValueError(
                f"confidence={confidence!r}: give a probability strictly between 0 and 1, such as 0.95."
            )
        values = self.values(measure)
        best, *others = self._best_first(values)
        sizes = {
            (each["seed"], each["fold"]): (each["n_train"], each["n_test"]) for each in self.records
        }
        found = []
        for method in others:
            common = [place for place in values[best] if place in values[method]]
            if not common:
                continue
            d = np.array([values[method][place] - values[best][place] for place in common])
            n_train, n_test = np.sum([sizes[place] for place in common], axis=0)
            test = corrected_t_test(d, n_test / n_train, confidence=confidence)
            found.append({"method": method, **test})
        corrected = iter(holm([each["p_single"] for each in found if each["p_single"] is not None]))
        for each in found:
            each["p"] = None if each["p_single"] is None else next(corrected)
        return found

    def ranks(self, measure: str | None = None) -> dict[str, float]:
        """The mean rank of each method over the folds that all of them have, 1 being the best; best
        first.

        Ties share their mean rank. Methods of which every fit failed are left out.
        """
        names, matrix = self._common(measure)
        if not matrix.size:
            return {}
        means = stats.rankdata(-matrix, axis=1).mean(axis=0)
        return {names[k]: float(means[k]) for k in np.argsort(means, kind="stable")}

    @property
    def cd(self) -> float:
        """Nemenyi's critical difference of mean ranks at the level 0.05: ``q sqrt(k (k + 1) / (6
        N))``.

        k methods, N folds; q is the quantile of the studentized range with infinitely many degrees
        of freedom, over sqrt(2) (Demšar 2006). NaN where there are fewer than two methods. See the
        notes of the class.
        """
        n, k = self._common()[1].shape
        return critical_difference(k, n, _LEVEL)

    def friedman(self) -> dict[str, float] | None:
        """Friedman's test that all methods rank alike: chi2 and p; None with fewer than three
        methods or two folds.
        """
        return friedman_test(self._common()[1])

    def groups(self) -> list[list[str]]:
        """Methods whose mean ranks differ by less than `cd`: the largest such sets of more than
        one, best first.
        """
        ranks = self.ranks()
        names = list(ranks)
        bounds = critical_difference_groups(ranks.values(), self.cd)
        return [names[first : last + 1] for first, last in bounds]

    def _common(self, measure: str | None = None) -> tuple[list[str], Vector]:
        """Methods with any value, and their values in the folds that all of these have."""
        values = {method: own for method, own in self.values(measure).items() if own}
        places = [
            place
            for place in next(iter(values.values()), {})
            if all(place in own for own in values.values())
        ]
        return list(values), np.array(
            [[own[place] for own in values.values()] for place in places]
        ).reshape(len(places), len(values))

    def sentence(self) -> str:
        """The result in words."""
        best = self.best
        if best is None:
            return f"Every fit failed; the first because {self.errors()[0]}."
        first, *others = self.table()
        if not others:
            return f"{best} has a mean {self.title} of {format_value(first['mean'])}."
        parts = [f"{best} has the highest {self.title}, {format_value(first['mean'])}"]
        alike = [row for row in others if row["p"] is not None and row["p"] >= _LEVEL]
        if alike:
            names, least = [row["method"] for row in alike], min(row["p"] for row in alike)
            p = f"p = {least:.2g}" + (" or more" if len(alike) > 1 and least < 0.995 else "")
            parts.append(
                f"{_listed(names)} {'is' if len(alike) == 1 else 'are'} not significantly different ({p})"
            )
        parts += [_against(row) for row in others if row not in alike]
        if first["n"] == 1:
            parts.append("one fold does not show which differences are more than chance")
        elif alike and first["n"] < _FEW_FOLDS:
            parts.append(f"{first['n']} folds show large differences only, more seeds smaller ones")
        return " ".join(["; ".join(parts) + ".", *([self.cut] if self.cut else [])])

    def choices(self) -> list[str]:
        """What methods that choose for themselves, such as Ranker, chose, and in how many fits; a
        line for each.
        """
        lines = []
        for method in self.methods:
            chosen = Counter(
                each["chosen"]
                for each in self.records
                if each["method"] == method and "chosen" in each
            )
            if set(chosen) - {method}:
                shown = [
                    f"{name} ({count} of {chosen.total()})" for name, count in chosen.most_common()
                ]
                lines.append(f"{method} chose {'; '.join(shown)}")
        return lines

    def errors(self) -> list[str]:
        """What went wrong, each with its method, seed and fold."""
        return [
            f"{each['method']} (seed {each['seed']}, fold {each['fold'] + 1}): {each['error']}"
            for each in self.records
            if "error" in each
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as it goes into JSON."""
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
            "warnings": [vars(each) for each in self.warnings],
        }

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [
            ("method", self.title, "std", "difference", "p", "s per fit")
        ]
        rows += [shown_row(row) for row in self.table()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                [
                    row[0].ljust(widths[0]),
                    *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
                ]
            )
            for row in rows
        ]
        errors = self.errors()
        said = (
            [f"{counted(len(errors), 'fit')} failed; the first: {errors[0]}."]
            if errors and self.best is not None
            else []
        )
        return "\n".join([*lines, *self.choices(), self.sentence(), *said])


def shown_row(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of `Comparison.table` in print: method, mean, std, difference, p, seconds."""
    return (
        row["method"] + (f" ({row['failed']} failed)" if row["failed"] else ""),
        "-" if row["mean"] is None else f"{row['mean']:.4f}",
        "-" if row["std"] is None else f"{row['std']:.4f}",
        "" if row["difference"] is None else f"{row['difference']:+.4f}",
        "" if row["p"] is None else f"{row['p']:.3f}" if row["p"] >= 0.001 else "<0.001",
        "-" if row["seconds"] is None else f"{row['seconds']:.3g}",
    )


def _against(row: dict[str, Any]) -> str:
    if row["mean"] is None:
        return f"{row['method']} failed in every fold"
    if row["difference"] is None:
        return f"{row['method']} was measured on other folds"
    if row["p"] is None:
        return f"{row['method']} has {format_value(row['mean'])}"
    p = f"p = {row['p']:.2g}" if row["p"] >= 0.001 else "p < 0.001"
    return f"{row['method']} is {'behind' if row['difference'] < 0 else 'ahead'} by {abs(row['difference']):.2g} ({p})"


def _listed(names: list[str]) -> str:
    quoted = [f'"{name}"' if ", " in name and len(names) > 1 else name for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
