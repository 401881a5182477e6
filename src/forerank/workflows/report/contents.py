"""What a report says: cross-validated, measured, drawn and put into sentences."""

import hashlib
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._text import counted, printable
from forerank.data.checks import data_warnings
from forerank.data.files import opened_atomically, refuse_existing
from forerank.metrics.estimates import Estimate, estimate_measure, estimate_measures
from forerank.metrics.registry import Measure
from forerank.models import Model
from forerank.models.versions import package_versions
from forerank.selection.ranker import Ranker
from forerank.workflows.fit import (
    _is_plain,
    _labelled_rows,
    _labels,
    _Source,
    for_list,
    make_ranker,
)
from forerank.workflows.report import figures
from forerank.workflows.report.cross_validation import (
    HeldOut,
    cross_validate,
    fit_all,
    named_weights,
)
from forerank.workflows.report.sentences import (
    Headline,
    count,
    figure,
    headline_of,
    interval,
    judged,
    percent,
    unbroken,
)

__all__ = ["Report", "make_report"]

Say = Callable[[str], None]
_MOST_WEIGHTS = 20
_MOST_WARNINGS = 20
_LONGEST_ARGUMENT = 200
_PLACES = (10, 50, 100, 500, 1000, 5000)
# With fewer rows in the smaller class, resamples say less about how sure a figure is than they seem
# to.
_FEWEST_FOR_INTERVALS = 10
# An AUC from here on is more often a column that knows the answer than a good model.
_TOO_GOOD = 0.999
_PACKAGES = (
    "python",
    "forerank",
    "scikit-learn",
    "numpy",
    "scipy",
    "numba",
    "pandas",
    "pyarrow",
    "matplotlib",
)


@dataclass
class Report:
    """A report on a ranking.

    Attributes
    ----------
    sentences : list of str
        The result in words.
    warnings : list of str
        What may be wrong with the data or the figures.
    measures : list of Estimate
        Means over the folds, the one that was asked for first; empty where nothing could be held
        out.
    model : Model
        Fitted on all rows.
    held_out : HeldOut
        Places of all rows by models that have not seen them, and their scores by all models.
    page : dict
        Everything the page is made of.
    """

    sentences: list[str]
    warnings: list[str]
    measures: list[Estimate]
    model: Model
    held_out: HeldOut
    page: dict[str, Any]

    def html(self) -> str:
        """The page: one file, no scripts, nothing loaded from elsewhere."""
        from jinja2 import Environment, StrictUndefined

        text = (
            resources.files("forerank.workflows.report")
            .joinpath("template.html.j2")
            .read_text(encoding="utf-8")
        )
        environment = Environment(
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_printable,
        )
        environment.filters["unbroken"] = unbroken
        return environment.from_string(text).render(**self.page)

    def save(self, path: Any, force: bool = False) -> None:
        """Write the page; a file that is there already is kept, unless `force`."""
        refuse_existing(path, force=force)
        data = self.html().encode("utf-8")
        with opened_atomically(path, force=force) as file:
            file.write(data)


def make_report(
    data: Any,
    target: str | None = None,
    *,
    ranker: Any = "Ranker",
    params: Mapping[str, Any] | None = None,
    metric: str = "auc",
    comparison: Any = None,
    group: str | None = None,
    positive: Any = None,
    drop: Iterable[str] = (),
    folds: Any = 5,
    seed: int = 0,
    delimiter: str | None = None,
    types: Mapping[str, str] | None = None,
    encoding: str | None = None,
    format: str | None = None,
    skip_unlabelled: bool = False,
    command: str | None = None,
    say: Say = lambda line: None,
) -> Report:
    """Cross-validate a ranker on labelled rows, fit it on all of them, and say what was found.

    Columns are prepared, and a ranker that chooses makes its choice, inside each fold: no held-out
    row has a part in the model that scores it. Measures are taken in each fold, and their means
    count, as in `forerank.compare`, whose folds are the same for the same seed. Cost: that of
    `folds` + 1 fits, and of `folds` fits without a choice.

    Parameters
    ----------
    data, target, params, group, positive, drop, delimiter, types, encoding, format, skip_unlabelled
        As in `forerank.workflows.fit.fit`.
    ranker : str or estimator, default="Ranker"
        An estimator of forerank by name, or any with `decision_function` or `predict_proba`.
    metric : str, default="auc"
        What the report is about: auc, ap, pos_at_top, ndcg@k, pauc@fpr or recall@k. A ranker with a
        parameter `metric` is fitted for it. The first k rows are those of a list as long as the
        data: in a fold as large a share is looked at; with groups, k counts the rows of a group.
    comparison : Comparison or list of dict, optional
        Methods that were compared: a `forerank.workflows.compare.Comparison`, or one dict per
        method with method, mean and where known std, difference, p and seconds.
    folds : int, splitter or list of (train, test), default=5
        Fewer are made where the smaller class, or the groups, do not suffice.
    seed : int, default=0
        Of the folds, the resamples and rankers with a random state.
    command : str, optional
        The command that makes this report again; by default this call is shown.
    say : callable, optional
        Is told what is being done.

    Returns
    -------
    Report
    """
    _require_packages()
    drop = [str(name) for name in drop]
    say("reading")
    source = _Source(data, delimiter, encoding, format)
    table = _labelled_rows(source, target, group, drop, types, skip_unlabelled)
    y, labels = _labels(source, table.label_column, table.target, positive)
    graded = labels["positive"] is None
    metric = "wmw" if graded and metric == "auc" else metric  # the same, for grades
    headline = headline_of(metric, graded=graded)
    notes = table.notes() + labels["notes"]
    estimator = for_list(_estimator(ranker, params, metric, graded, seed), y.size, table.groups)
    kinds = table.kinds()
    say("looking at the data")
    seen = table._frame if source.is_table else table.X
    warnings = [each.sentence for each in data_warnings(seen, y, qid=table.groups)]
    say(f"fitting on {counted(y.size, 'row')}")
    cautions: list[str] = []
    pipeline = fit_all(table, y, estimator, cautions)
    chosen = pipeline[-1] if hasattr(pipeline[-1], "refit") else None
    held = cross_validate(
        table, y, estimator, kinds=kinds, folds=folds, seed=seed, say=say, chosen=chosen
    )
    held.cautions += [line for line in cautions if line not in held.cautions]
    say("measuring and drawing")
    facts = _Facts(source.name, table, y, labels, headline, held, seed)
    weights = named_weights(pipeline, kinds, table.extra)
    warnings += facts.warnings(next(iter(weights), None))
    summary = {
        "rows": int(y.size),
        "positive": labels["positive"],
        "negative": labels["negative"],
        "classes": labels["classes"],
        "groups": facts.n_groups,
        "ranker": type(estimator).__name__,
        "params": {
            name: value for name, value in estimator.get_params().items() if _is_plain(value)
        },
        "measures": [each.to_dict() for each in facts.measures],
        "seed": seed,
        "source": source.name,
        **table.extra,
    }
    named = table.target if source.is_table else None
    model = Model(pipeline, columns=kinds, target=named, group=group, summary=summary, notes=notes)
    sentences = facts.sentences(pipeline[-1])
    arguments = {
        "ranker": ranker,
        "params": params,
        "metric": metric,
        "group": group,
        "positive": positive,
        "drop": drop or None,
        "folds": folds,
        "seed": seed,
        "delimiter": delimiter,
        "types": dict(types) if types else None,
        "encoding": encoding,
        "format": format,
        "skip_unlabelled": skip_unlabelled or None,
    }
    page = {
        "title": f"Ranking report: {source.name or 'a table in memory'}",
        "sentences": sentences,
        "warnings": _shortened(warnings),
        "measures": facts.measure_rows(),
        "measure_note": facts.measure_note(),
        "pictures": facts.pictures(),
        "left_out": facts.left_out(),
        "hits": facts.hit_rows(),
        "hits_in_groups": table.groups is not None,
        "comparison": _comparison(comparison, facts.same_folds(comparison, metric, folds)),
        "choice": _choice(pipeline[-1], held, facts.headline_title()),
        "weights": _weights(weights, held, type(pipeline[-1]).__name__),
        "facts": facts.about_the_data(kinds),
        "notes": notes,
        "redo": _redo(source, data, command, target, arguments, comparison is not None),
        "ranker": " ".join(repr(estimator).split()),
    }
    return Report(sentences, warnings, facts.measures, model, held, page)


def _require_packages() -> None:
    """Say which extra is missing, before the work."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"A report needs {error.name}: pip install 'forerank[report]'."
        ) from error


def _estimator(
    ranker: Any, params: Mapping[str, Any] | None, metric: str, graded: bool, seed: int
) -> Any:
    """The ranker, for this measure where it takes one."""
    found = make_ranker(ranker)
    chosen = dict(params or {})
    if isinstance(ranker, str) and "metric" in found.get_params():
        chosen.setdefault("metric", metric)
    # Ranker takes grades by itself; the others have to be told.
    return make_ranker(ranker, chosen, graded=graded and not isinstance(found, Ranker), seed=seed)


class _Facts:
    """What is known from the held-out scores, as rows of tables, pictures and sentences."""

    def __init__(
        self,
        name: str | None,
        table: Any,
        y: NDArray,
        labels: dict[str, Any],
        headline: Headline,
        held: HeldOut,
        seed: int,
    ) -> None:
        self._name, self._target = name or "a table in memory", table.target
        self._labels, self._headline, self._held, self._seed = labels, headline, held, seed
        self._all_y, self._groups = y, table.groups
        rows = held.rows
        self._y, self._scores, self._fold = y[rows], held.scores[rows], held.fold[rows]
        self._qid = None if table.groups is None else table.groups[rows]
        self.n_groups = None if table.groups is None else int(np.unique(table.groups).size)
        self._graded = labels["positive"] is None
        self._places = self._chosen_places()
        self.measures: list[Estimate] = []
        self._chance: dict[str, float] = {}
        self._not_measured = ""
        if np.unique(self._y).size > 1:
            try:
                self._measure()
            except ValueError as error:
                self._not_measured = str(error)
        self._by_name = {each.name: each for each in self.measures}

    def _chosen_places(self) -> list[int]:
        """Numbers of rows from the top that the tables speak of; with groups, those that most
        groups have.
        """
        longest = self._y.size
        places: Sequence[int] = _PLACES
        if self._qid is not None and self._y.size:
            longest = int(np.median(np.unique(self._qid, return_counts=True)[1]))
            places = (1, 3, 5, 10, 20, 50, 100)
        found = {place for place in places if place <= longest}
        if self._headline.place is not None and self._headline.place <= self._y.size:
            found.add(self._headline.place)
        return sorted(found or ({1} if longest else set()))

    def _measure(self) -> None:
        y, scores, qid, seed = self._y, self._scores, self._qid, self._seed
        lists: dict[str, Any] = {
            "qid": qid,
            "fold": self._fold,
            "list_rows": self._all_y.size,
            "random_state": seed,
        }
        found = estimate_measures(y, scores, k=self._places, **lists)
        if self._headline.name not in [each.name for each in found]:
            found.insert(0, estimate_measure(self._headline.definition, y, scores, **lists))
        found.sort(
            key=lambda each: each.name != self._headline.name
        )  # stable: the others stay in order
        if not self._graded and qid is None and min(y.sum(), (~y).sum()) < _FEWEST_FOR_INTERVALS:
            found = [replace(each, low=np.nan, high=np.nan) for each in found]
        self.measures = found
        self._chance = self._by_chance()

    def _by_chance(self) -> dict[str, float]:
        """What an order drawn at random has; by drawing some where groups or grades leave no
        formula.
        """
        y, main = self._y, self._headline
        known = {}
        for each in self.measures:
            constant = each.measure.kind in ("auc", "wmw") or (
                each.key.startswith("pauc@") and each.name == main.name
            )
            simple = self._qid is None and not self._graded
            if each.measure.chance is not None and (simple or constant):
                known[each.name] = self._chance_of(each.measure)
        rng = np.random.default_rng(self._seed)
        lists: dict[str, Any] = {
            "qid": self._qid,
            "fold": self._fold,
            "list_rows": self._all_y.size,
            "n_resamples": 1,
        }
        orders: Any = (
            []
            if all(each.name in known for each in self.measures)
            else rng.uniform(size=(10, y.size))
        )
        drawn: dict[str, list[float]] = {}
        for order in orders:
            found = estimate_measures(y, order, k=self._places, **lists)
            if main.name not in [each.name for each in found]:
                found.append(estimate_measure(main.definition, y, order, **lists))
            for each in found:
                drawn.setdefault(each.name, []).append(each.value)
        return {name: float(np.mean(values)) for name, values in drawn.items()} | known

    def _chance_of(self, measure: Measure) -> float:
        """The expected value of a random order: of all rows for the first k, else its mean over folds."""
        assert measure.chance is not None
        if measure.kind == "recall":
            return measure.chance(self._all_y.size, 1)
        if measure.kind in ("precision", "auc", "wmw", "pauc"):
            return measure.chance(self._y.size, int(self._y.sum()))
        labels = [self._y[self._fold == number] for number in np.unique(self._fold)]
        both = [(y.size, int(y.sum())) for y in labels if 0 < y.sum() < y.size]
        return float(np.mean([measure.chance(*counts) for counts in both]))

    # --- Words ---

    def sentences(self, ranker: Any) -> list[str]:
        """The result: what was ranked, how well, what it means for the first rows, whether more
        data would help.
        """
        classes, n = self._labels["classes"], self._all_y.size
        if self._graded:
            what = f"{n:,} rows of {self._name} in {len(classes)} grades of {self._target}"
        else:
            hits = classes[self._labels["positive"]]
            label = f"{self._target} = {self._labels['positive']}"
            have = "has" if hits == 1 else "have"
            what = f"{n:,} rows of {self._name}, of which {hits:,} ({percent(hits / n)}) {have} {label},"
        within = "" if self.n_groups is None else f" within {self.n_groups:,} groups"
        if not self.measures:
            first = f"{what} were ranked{within}; how well could not be measured."
            return [
                _capital(first),
                *([_sentence(self._not_measured)] if self._not_measured else []),
            ]
        folds = self._held.n_folds
        said = [
            _capital(
                f"{what} were ranked{within} in {folds} folds, each row by a model that had not seen it."
            )
        ]
        main, chance = self.measures[0], self._chance[self.measures[0].name]
        sure = "" if interval(main) == "–" else f" (95 % interval {interval(main)})"
        mean = (
            ", the mean of the folds"
            if self.n_groups is None
            else ", the mean over folds of means over groups"
        )
        said.append(
            f"{_capital(self._headline.spoken(main.depth))} is {figure(main.value)}{sure}{mean}: "
            f"{judged(main, chance)} ({figure(chance)}). In words, "
            f"{self._headline.meaning(grouped=self._qid is not None).format(percent(main.value))}."
        )
        if top := self._first_rows():
            said.append(top)
        return said + self._on_the_choice(ranker)

    def _on_the_choice(self, ranker: Any) -> list[str]:
        """What was chosen and whether more data would help, and why their figures are not the one
        above.
        """
        said = [_sentence(str(ranker.reason_))] if hasattr(ranker, "reason_") else []
        curve = getattr(ranker, "learning_curve_", None)
        if isinstance(curve, Mapping) and curve.get("sentence"):
            said.append(_sentence(str(curve["sentence"])))
        if said and getattr(ranker, "best_score_", None) is not None:
            said.append(
                f"The {self._headline.spoken()} of the choice, just above, is measured on rows that had a part in the "
                f"choice; {figure(self.measures[0].value)} is measured on rows that had none."
            )
        return said + _choices(ranker, self._held)

    def headline_title(self) -> str:
        """The measure with its depth."""
        return self.measures[0].title if self.measures else self._headline.name

    def same_folds(self, comparison: Any, metric: str, folds: Any) -> str:
        """Whether the means of a comparison are of the folds of this report, as a sentence."""
        if comparison is None or not self.measures:
            return ""
        main = f"{self.measures[0].title} of {figure(self.measures[0].value)} above"
        same = (
            getattr(comparison, "metric", None) == metric
            and getattr(comparison, "seeds", None) == [self._seed]
            and getattr(comparison, "folds", None) == self._held.n_folds
            and isinstance(folds, int | np.integer)
        )
        means = [each["mean"] for each in _records(comparison.table())] if same else []
        if any(
            mean is not None and figure(mean) == figure(self.measures[0].value) for mean in means
        ):
            return "Means and standard deviations are over the folds of this report."
        return f"These means are of other folds, or of other fits, than the {main}, and may differ from it."

    def place(self) -> int:
        """The number of first rows that the words speak of."""
        n = self._y.size
        wanted = 100 if n >= 500 else 10
        if self._qid is not None:
            wanted = 10
        if self._headline.place is not None:
            wanted = self._headline.place
        return max([place for place in self._places if place <= wanted], default=1)

    def _first_rows(self) -> str:
        k = self.place()
        found = self._by_name.get(f"precision at {k}")
        if found is None:
            return ""
        by_chance = k * self._chance[found.name]
        span = interval(found, lambda v: count(k * v))
        sure = "" if span == "–" else f" (95 % interval {span})"
        number = count(k * found.value)
        are = {"0": "none is a hit", "1": "about 1 is a hit"}.get(
            number, f"about {number} are hits"
        )
        if found.value == 1.0:
            are = "all are hits"
        first = "the first row" if k == 1 else f"the first {k:,} rows"
        where = first if self._qid is None else f"{first} of a group"
        return f"Of {where} {are}{sure}; a random order would have about {count(by_chance)}."

    def warnings(self, largest: str | None) -> list[str]:
        """What makes the figures doubtful, beyond what the data show by themselves."""
        found = list(self._held.problems)
        if self._y.size and self._y.size < self._all_y.size:
            left = self._all_y.size - self._y.size
            were, them = ("was", "it") if left == 1 else ("were", "them")
            found.append(
                f"{counted(left, 'row')} {were} in no fold that could be scored; the figures leave {them} out."
            )
        found += self._ties()
        if not self._graded and self.measures:
            rarest = min(int(self._y.sum()), int((~self._y).sum()))
            if rarest < _FEWEST_FOR_INTERVALS and self._qid is None:
                found.append(
                    f"The smaller class has {rarest} of the rows measured: too few for intervals, and other rows could "
                    "give quite other figures."
                )
            auc = self._by_name["AUC"]
            if auc.value >= _TOO_GOOD:
                which = (
                    ""
                    if largest is None
                    else f", first of all {largest}, which has the largest weight"
                )
                found.append(
                    f"The ranking is (nearly) perfect, which is rare: look whether a column holds the answer or was "
                    f"filled in after it was known{which}."
                )
        if self.measures and self.measures[0].low == self.measures[0].high:
            found.append(
                f"The interval of {self._headline.spoken()} is a single point: resampled rows do not vary here, which "
                "is not certainty."
            )
        found += [f"While fitting: {line}" for line in self._held.cautions]
        return found

    def _ties(self) -> list[str]:
        """Scores that are the same for many rows, in the first fold that has them."""
        found: dict[str, str] = {}
        for number, scores in zip(np.unique(self._fold), self._held.by_model, strict=False):
            rows = self._held.fold == number
            for each in data_warnings(None, self._all_y[rows], scores=scores[rows]):
                if each.kind in ("constant score", "tied scores"):
                    found.setdefault(each.kind, f"In fold {number + 1}: {each.sentence}")
        return list(found.values())

    # --- Tables ---

    def measure_rows(self) -> list[dict[str, Any]]:
        """The measures, without those of the table of hits."""
        return [
            {
                "name": each.title,
                "value": figure(each.value),
                "interval": interval(each),
                "chance": figure(self._chance[each.name]),
                "main": number == 0,
            }
            for number, each in enumerate(self.measures)
            if number == 0 or not each.name.startswith(("precision at", "recall at"))
        ]

    def measure_note(self) -> str:
        """How the figures came about, and how they differ between folds."""
        if not self.measures:
            return "Nothing was measured: no row could be held out."
        each = "each" if self._qid is None else "each, and there over groups"
        said = f"Each value is the mean over the {self._held.n_folds} folds, measured in {each}: scores of different "
        said += "models are not compared."
        if self._headline.place is not None and self._qid is None:
            said += (
                f" The first {self._headline.place:,} of {self._all_y.size:,} rows stand for as large a share of the "
                "rows of a fold, the last of which counts in part."
            )
        values = self._values_of_folds()
        if len(values) > 1:
            said += f" In single folds, {self._headline.name} goes from {figure(min(values))} to {figure(max(values))}."
        over = "the rows" if self._qid is None else "groups"
        if np.isfinite(self.measures[0].low):
            said += f" Intervals are at 95 % and over {over}, given these models; other rows to learn from would add "
            said += "to them. A dash: resampled rows do not vary, or are too few, which is not certainty."
        else:
            said += " There are no intervals, for want of rows."
        return said

    def _values_of_folds(self) -> list[float]:
        """The measure in each fold that has rows of two classes."""
        found = []
        y = self._y - min(0.0, self._all_y.min())  # grades count from the lowest of all rows
        for number in np.unique(self._fold):
            rows = self._fold == number
            lists: dict[str, Any] = {"list_rows": self._all_y.size, "n_resamples": 1}
            lists["qid"] = None if self._qid is None else self._qid[rows]
            try:
                one = estimate_measure(
                    self._headline.definition, y[rows], self._scores[rows], **lists
                )
            except ValueError:  # rows of one class, or no group of two
                continue
            found.append(one.value)
        return found

    def hit_rows(self) -> list[dict[str, str]]:
        """Hits among the first k rows, for some k."""
        rows = []
        for k in self._places:
            found, recall = (
                self._by_name.get(f"precision at {k}"),
                self._by_name.get(f"recall at {k}"),
            )
            if found is None or recall is None:
                continue
            rows.append(
                {
                    "k": f"{k:,}",
                    "hits": count(k * found.value),
                    "interval": interval(found, lambda v, k=k: count(k * v)),  # type: ignore[misc]
                    "chance": count(k * self._chance[found.name]),
                    "share": percent(recall.value),
                }
            )
        return rows

    def about_the_data(self, kinds: dict[str, str]) -> list[tuple[str, str]]:
        """Rows, classes, groups and columns."""
        n = self._all_y.size
        shown = [
            f"{name}: {number:,} ({percent(number / n)})"
            for name, number in self._labels["classes"].items()
        ]
        facts = [("Rows", f"{n:,}"), (f"Classes of {self._target}", "; ".join(shown))]
        if self.n_groups is not None:
            facts.append(("Groups", f"{self.n_groups:,}"))
        if kinds:
            facts.append(("Columns used", f"{len(kinds):,}"))
        return facts

    # --- Pictures ---

    def pictures(self) -> dict[str, figures.Picture | None]:
        """Those that can be drawn."""
        binary = bool(self.measures) and not self._graded and self._qid is None
        y, scores = self._y, self._scores
        drawn: dict[str, figures.Picture | None] = dict.fromkeys(
            ("roc", "precision_recall", "hits", "reliability", "distributions", "stability")
        )
        if binary:
            values = {name: found.value for name, found in self._by_name.items()}
            drawn["roc"] = figures.roc(
                y, scores, self._fold, values["AUC"], values["TPR at FPR 0.01"]
            )
            drawn["precision_recall"] = figures.precision_recall(
                y, scores, self._fold, values["average precision"]
            )
            drawn["hits"] = figures.hits(y, scores)
            drawn["reliability"] = figures.reliability(y, scores, self._fold)
        if self.measures and self._qid is None:
            drawn["distributions"] = figures.distributions(y, scores, self._class_names())
        if self._held.n_folds > 1 and self._groups is None:
            drawn["stability"] = figures.stability(self._held.by_model, self._seed, self.place())
        return drawn

    def _class_names(self) -> dict[Any, str]:
        if self._graded:
            return {
                value.item(): f"{self._target} = {value * self._labels['unit']:g}"
                for value in np.unique(self._y)
            }
        negative = self._labels["negative"] or f"not {self._labels['positive']}"
        return {
            True: f"{self._target} = {self._labels['positive']}",
            False: f"{self._target} = {negative}",
        }

    def left_out(self) -> dict[str, str]:
        """Why a picture is not there."""
        if not self.measures:
            curves = "Left out: no row could be held out, so there are no scores to draw."
        elif self._graded:
            curves = "Left out: the labels are grades, and this is drawn for two classes. NDCG above takes all of them."
        else:
            curves = (
                "Left out: rows are ranked within groups, and a curve over all rows would compare rows of different "
                "groups. The measures above are means over groups."
            )
        few = "Left out: it takes scores that differ, and at least ten rows of each class outside every fold."
        scored = "Left out: rows of different groups are not compared."
        return {
            "roc": curves,
            "precision_recall": curves,
            "hits": curves,
            "reliability": few
            if self.measures and not self._graded and self._qid is None
            else curves,
            "distributions": curves,
            "stability": scored
            if self._groups is not None
            else "Left out: it takes the models of at least two folds.",
        }


# --- The parts that do not depend on held-out scores ---


def _choices(ranker: Any, held: HeldOut) -> list[str]:
    """Whether the folds have chosen as the fit on all rows has, as a sentence."""
    if not held.choices or not hasattr(ranker, "best_method_"):
        return []
    chosen, counts = str(ranker.best_method_), Counter(method for method, _ in held.choices)
    if set(counts) == {chosen}:
        return [f"In each fold the method was chosen anew, and was {chosen} as on all rows."]
    listed = ", ".join(f"{method} in {number}" for method, number in counts.most_common())
    return [
        f"In each fold the method was chosen anew: {listed} of {len(held.choices)}. The measures are those of this "
        f"way of choosing; the model that is described below and was fitted on all rows is {chosen}."
    ]


def _choice(ranker: Any, held: HeldOut, title: str) -> dict[str, Any] | None:
    """What a ranker that chooses has tried and chosen, on all rows and in each fold."""
    if getattr(ranker, "cv_results_", None) is None:
        return None
    said = []
    if hasattr(ranker, "best_method_"):
        alpha = getattr(ranker, "best_alpha_", None)
        said.append(
            f"On all rows: {ranker.best_method_}"
            + ("." if alpha is None else f" with alpha = {alpha:.3g}.")
        )
    if held.choices:
        methods = [method for method, _ in held.choices]
        listed = ", ".join(
            f"{method} ({methods.count(method)})" for method in dict.fromkeys(methods)
        )
        alphas = [alpha for _, alpha in held.choices if alpha is not None]
        span = f", alpha from {min(alphas):.3g} to {max(alphas):.3g}" if alphas else ""
        said.append(f"In the {len(methods)} folds, each choosing anew: {listed}{span}.")
    curve = getattr(ranker, "learning_curve_", None)
    learning = None
    if isinstance(curve, Mapping) and len(curve.get("rows", ())) > 1:
        learning = figures.learning_curve(curve, title, _sentence(str(curve.get("sentence", ""))))
    note = f"Both pictures show {title} in the folds in which the method was chosen, on all rows."
    return {
        "sentence": " ".join(said),
        "path": figures.alpha_path(ranker, title),
        "learning": learning,
        "note": note
        if learning is not None
        else note.replace("Both pictures show", "The picture shows"),
    }


def _weights(weights: dict[str, float], held: HeldOut, ranker: str) -> dict[str, Any]:
    """The largest weights, and how they vary over the folds."""
    if not weights:
        return {
            "sentence": f"{ranker} is not linear in the columns here: there are no weights by column.",
            "rows": [],
            "picture": None,
            "ranged": False,
        }
    largest = [name for name, value in weights.items() if value != 0.0][:_MOST_WEIGHTS]
    ranged = len(held.weights) > 1 and all(held.weights)
    # A value that is rare may have no column of its own in some fold.
    over = (
        {name: [each.get(name, 0.0) for each in held.weights] for name in largest} if ranged else {}
    )
    if not largest:
        return {"sentence": "All weights are zero.", "rows": [], "picture": None, "ranged": False}
    digits = int(np.clip(2 - np.floor(np.log10(abs(weights[largest[0]]))), 0, 12))
    rows = [
        {
            "name": name,
            "weight": _signed(weights[name], digits),
            "range": f"{_signed(min(over[name]), digits)} to {_signed(max(over[name]), digits)}"
            if ranged
            else "",
        }
        for name in largest
    ]
    shown = len(largest)
    sentence = (
        f"The {shown} largest of {len(weights):,} weights, fitted on all rows. "
        if shown < len(weights)
        else f"All {shown} weights, fitted on all rows. "
    )
    sentence += (
        "Columns are scaled, so sizes can be compared; a weight says what the model uses, not what causes what. "
        "Columns that say the same, such as the values of one category, share it, and not always in the same way."
    )
    if ranged and held.choices:
        sentence += " In the folds, the same method and alpha were fitted, whatever the fold itself had chosen."
    values = np.array([weights[name] for name in largest])
    low, high = (
        (np.array([pick(over[name]) for name in largest]) for pick in (min, max))
        if ranged
        else (None, None)
    )
    return {
        "sentence": sentence,
        "rows": rows,
        "picture": figures.weights(largest, values, low, high),
        "ranged": ranged,
    }


def _signed(value: float, digits: int) -> str:
    text = f"{value:+.{digits}f}"
    return text if float(text) != 0.0 else text[1:]


def _comparison(comparison: Any, folds: str = "") -> dict[str, Any] | None:
    """A comparison as rows of text, whatever it came as."""
    if comparison is None:
        return None
    table = _records(comparison.table() if hasattr(comparison, "table") else comparison)
    against = {}
    if hasattr(comparison, "differences"):
        against = {
            str(_one(each, "method", "name")): each for each in _records(comparison.differences())
        }
    rows = []
    for each in table:
        name = str(_one(each, "method", "name"))
        each = {
            **each,
            **{key: value for key, value in against.get(name, {}).items() if value is not None},
        }
        mean, spread = _one(each, "mean", "value"), _one(each, "std", "deviation")
        p = _one(each, "p_holm", "p_corrected", "p", "p_value")
        seconds = _one(each, "seconds", "fit_seconds", "time")
        difference = _one(each, "difference", "mean_difference")
        rows.append(
            {
                "method": name,
                "mean": "–"
                if mean is None
                else figure(mean)
                + ("" if spread is None else f" ±\N{NO-BREAK SPACE}{figure(spread)}"),
                "difference": "–" if difference is None else f"{difference:+.4f}",
                "p": "–" if p is None else ("< 0.001" if p < 0.001 else f"{p:.3f}"),
                "seconds": "–" if seconds is None else f"{seconds:.3g}",
            }
        )
    ranks = (
        comparison.ranks()
        if callable(getattr(comparison, "ranks", None))
        else getattr(comparison, "ranks", None)
    )
    cd = getattr(comparison, "cd", None)
    cd = cd() if callable(cd) else cd
    picture = None
    if ranks and len(ranks) > 2 and np.isfinite(list(ranks.values())).all():
        picture = figures.critical_difference(
            ranks, None if cd is None or not np.isfinite(cd) else float(cd)
        )
    sentence = getattr(comparison, "sentence", None)
    sentence = sentence() if callable(sentence) else sentence
    errors = comparison.errors() if hasattr(comparison, "errors") else []
    said = [f"{len(errors)} fits failed; the first: {errors[0]}."] if errors else []
    return {
        "rows": rows,
        "picture": picture,
        "sentence": str(sentence or ""),
        "errors": said,
        "folds": folds,
    }


def _records(table: Any) -> list[dict[str, Any]]:
    """A frame, or a sequence of dicts or of dataclass objects, as dicts."""
    if hasattr(table, "to_dict") and hasattr(table, "columns"):
        if "method" not in table.columns:
            table = table.rename_axis("method").reset_index()
        table = table.to_dict("records")
    if isinstance(table, Mapping):
        table = [{"method": name, **row} for name, row in table.items()]
    found = [dict(each) if isinstance(each, Mapping) else dict(vars(each)) for each in table]
    if any(_one(each, "method", "name") is None for each in found):
        raise ValueError("comparison has a row without a method; each row needs method and mean.")
    return found


def _one(row: Mapping[str, Any], *names: str) -> Any:
    """The first of these that a row has; no number is none."""
    for name in names:
        value = row.get(name)
        if value is not None and not (isinstance(value, float | np.floating) and np.isnan(value)):
            return value
    return None


def _redo(
    source: Any,
    data: Any,
    command: str | None,
    target: str | None,
    arguments: dict[str, Any],
    compared: bool,
) -> list[tuple[str, str]]:
    """What it takes to make the report again."""
    if command is None:
        shown = repr(str(data)) if source.name is not None else "data"
        listed = [shown] + ([] if target is None else [repr(target)])
        listed += [
            f"{name}={_argument(value)}" for name, value in arguments.items() if value is not None
        ]
        listed += ["comparison=..."] if compared else []
        command = f"make_report({', '.join(listed)})"
    elif not isinstance(command, str):
        command = shlex.join(map(str, command))
    digest = "the data came from memory; no file to compare with"
    if source.name is not None:
        with open(source.path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    return [
        ("Command", command),
        ("Data", source.name or "in memory"),
        ("SHA-256 of the data", digest),
        ("Seed", str(arguments["seed"])),
        ("Date", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),
        (
            "Versions",
            ", ".join(f"{name} {number}" for name, number in package_versions(*_PACKAGES).items()),
        ),
    ]


def _argument(value: Any) -> str:
    """As it is written in a call; what is too long for that is left open."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST_ARGUMENT else "..."


def _shortened(lines: list[str]) -> list[str]:
    lines = list(dict.fromkeys(lines))
    if len(lines) <= _MOST_WARNINGS:
        return lines
    return [*lines[:_MOST_WARNINGS], f"{len(lines) - _MOST_WARNINGS} more of this kind."]


def _sentence(text: str) -> str:
    text = _capital(text.strip())
    return text if not text or text.endswith((".", "!", "?")) else text + "."


def _printable(value: Any) -> Any:
    """What the page shows: a browser, too, turns around the order of letters where it is told to."""
    return printable(value, keep="\n") if type(value) is str else value


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
