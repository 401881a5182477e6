"""Table 1, Table 2 and Figure 3 from the records, as one page."""

from pathlib import Path

import numpy as np

from forerank.active import StrategyComparison
from forerank.metrics.significance import PairedT

from ..common import Results
from ..pages import Claim, Page, bold, figure, table
from . import protocol, published

MEASURES = {"auc": "AUC", "map": "MAP", "ndcg@10": "NDCG@10", "wmw": "pairs in order"}
SHOWN = ("auc", "map", "ndcg@10")
OTHERS = ("Random", "Entropy", "Diverse", "Uncertain")
TABLE_1 = """Methods from the best to the worst by the mean over the curve. `>>` p < 0.01, `>` p
< 0.05, `~` neither, by a two-sided paired t-test of neighbours. "rounds" pairs every round of
every run, as the paper does; rounds of one run are alike, so that this test finds differences
too easily, and the more runs the more of them. "runs" pairs the means of whole curves, one
figure per run."""
AGAINST = """The mean over the curve of LossMin minus that of the other method, and p of the paired
t-test over rounds, as in the paper, and over whole runs; bold where the latter is below 0.05.
Greedy is not in the paper."""
TABLE_2 = """Seconds per round (training, scoring and choosing), without the compilation of
functions, and MAP (the mean over all runs). Random trains nothing in order to choose. Published:
TD2003."""
FORMS = """LossMin in the forms that the paper prints or names, from the same seeds: its posterior
with scores as they are ("unit scale"), without calibration at the rank threshold (eq. 8), without
normalised losses (eq. 6), and pairs by their expected loss (eq. 5), which the paper leaves out for
the cost of visiting all pairs; it takes a convex hull here. Means over the curves, and the
difference to LossMin with p of the paired t-test over runs."""
GRADES = """The queries with all their grades, which the paper leaves to future work: several rank
thresholds, one between every two neighbouring grades, against one. Means over the curves, and the
difference to LossMin with one threshold, p over runs. Grades above the lowest count as relevant for
the seeds."""
FIGURE_3 = """Means over the runs; the band is the 95 % confidence interval of the mean of LossMin,
and those of the others are about as wide. Runs of all methods have the same splits and seeds, so
that their differences are more certain than the band suggests: see the tests above."""
ABSENT = """TD2003 and TD2004 of LETOR (50 and 75 queries of about 1,000 documents, 1 % and 0.6 %
relevant, 44 columns) could not be had. MQ2008 has short queries (a median of 8 documents) of which
about a third is relevant here, and begins with some 340 queries: at the start its ranker is already
close to its final quality. The MSLR samples have 43 queries of about 100 documents each, 136
columns, 44 % of grade above 0 and 14 % above 1."""
DIFFERENCES = """- MQ2008: one relevant and two irrelevant seeds per query and one label per query
  and round for 8 rounds, instead of 1 + 10, 5 and 20. MSLR: the numbers of the paper; training and
  test sample change places for a second split.
- Queries without a relevant document cannot be seeded and are left out of training.
- Seeds are drawn several times for each split, not once.
- RankSVM over all pairs with the squared hinge, solved to a relative gradient norm of 1e-3, with
  the default C of SVMlight; the paper has the plain hinge.
- The posterior is the consistent form with scaled scores, except in the forms of LossMin; Entropy
  and Uncertain are our readings of one-sentence descriptions (see their docstrings). Entropy here
  costs a sort, not all pairs. Diverse compares ranks with rankers trained on five folds of the
  labels; among the last in the paper, it is the first on MSLR."""


def comparison(results: Results, name: str) -> StrategyComparison:
    """The runs of one data set, by method."""
    runs = {}
    for method in protocol.methods(name):
        records = results.select(kind="run", data=name, method=method)
        records.sort(key=lambda record: (record["split"], record["seeding"]))
        runs[method] = [protocol.simulation_of(record) for record in records]
    return StrategyComparison(runs)


def make(results: Results, out: Path) -> Page:
    """Draw the figures and make the page."""
    names = results.found("data", protocol.SETTINGS, kind="run")
    every = {name: comparison(results, name) for name in names}
    binary = [name for name in names if name in protocol.BINARY]
    found = {
        name: StrategyComparison({who: every[name].runs[who] for who in protocol.STRATEGIES})
        for name in binary
    }
    for name in binary:
        _figure_3(found[name], name, out / f"{_file(name)}.png")
    sections = {
        "Table 1: order of the methods": f"{TABLE_1}\n\n{_table_1(found)}",
        "Section 3.2: LossMin against the others": f"{AGAINST}\n\n{_against_others(found)}",
        "Table 2: time and MAP per round": f"{TABLE_2}\n\n{_table_2(results, found)}",
        "Figure 3: learning curves": "\n\n".join(
            [FIGURE_3, *(f"![{name}]({_file(name)}.png)" for name in binary)]
        ),
        "Forms of LossMin": f"{FORMS}\n\n{_forms(every, binary)}",
        "Grades": f"{GRADES}\n\n{_forms(every, [n for n in names if n in protocol.GRADED])}",
        "LossMin against Greedy": _overlap(results, binary),
    }
    return Page(
        "Active rank learning via optimizing AUC (donmez2009), reproduced",
        _run(results, every),
        [*_claims(found), *_costs(results, binary)],
        sections,
        ABSENT,
        DIFFERENCES,
    )


def _run(results: Results, every: dict[str, StrategyComparison]) -> str:
    rows = []
    for name, runs in every.items():
        counts = [results.count(key, kind="run", data=name) for key in ("split", "seeding")]
        measure = "wmw" if name in protocol.GRADED else "auc"
        rounds = runs.values(measure, "LossMin").shape[1] - 1
        seeds = "{} + {}".format(*protocol.SETTINGS[name]["seeds"])
        rows.append((name, *counts, rounds, seeds, protocol.SETTINGS[name]["batch"]))
    head = ("data", "splits", "seedings", "rounds", "seeds per query", "labels per query and round")
    text = "Section 3.1 of the paper on other data, from seeds that all methods share."
    return f"{text}\n\n{table(head, rows)}"


def _file(name: str) -> str:
    return "figure3-" + "".join(
        c if c.isalnum() else "-" for c in name.lower().replace(", ", "-").replace(" > ", "-")
    )


def _claims(found: dict[str, StrategyComparison]) -> list[Claim]:
    """LossMin against every other method, by the test that the paper makes, over rounds."""
    claims = []
    for other in OTHERS:
        holds: dict[tuple[str, str], bool] = {}
        over_runs = 0
        for name, runs in found.items():
            for measure in SHOWN:
                rounds, means = _tests(runs, measure, other)
                holds[name, MEASURES[measure]] = rounds.p < 0.05 and rounds.difference > 0
                over_runs += means.p < 0.05 and means.difference > 0
        text = f"LossMin is significantly better than {other}"
        seen = f"by a test over whole runs, on {over_runs} of {len(holds)}; differences below"
        claims.append(Claim("section 3.2", text, seen, holds))
    return claims


def _tests(runs: StrategyComparison, measure: str, other: str) -> tuple[PairedT, PairedT]:
    """LossMin against another method: over all rounds, and over whole runs."""
    return runs.test(measure, "LossMin", other), runs.test(measure, "LossMin", other, over="runs")


def _against_others(found: dict[str, StrategyComparison]) -> str:
    rows = []
    for name, runs in found.items():
        for measure in SHOWN:
            cells = []
            for other in (*OTHERS, "Greedy"):
                rounds, means = _tests(runs, measure, other)
                ps = f"{rounds.p:.1g}, {means.p:.1g}"
                cells.append(f"{bold(f'{rounds.difference:+.4f}', means.p < 0.05)} ({ps})")
            rows.append((name, MEASURES[measure], *cells))
    return table(("data", "measure", *OTHERS, "Greedy"), rows)


def _costs(results: Results, names: list[str]) -> list[Claim]:
    ratios: dict[str, dict[str, float]] = {"Entropy": {}, "Diverse": {}}
    for name in names:
        seconds = {r["method"]: sum(r["seconds"]) for r in results.select(kind="time", data=name)}
        for other in ratios if "LossMin" in seconds else ():
            ratios[other][name] = seconds[other] / seconds["LossMin"]
    seen = [
        f"{other} {min(by_name.values()):.2f} to {max(by_name.values()):.2f}"
        for other, by_name in ratios.items()
        if by_name
    ]
    holds = {(o, name): ratio > 1.1 for o in ratios for name, ratio in ratios[o].items()}
    text = "LossMin takes less time than Entropy and Diverse (by a tenth or more)"
    found = f"time of the other over that of LossMin: {'; '.join(seen)}"
    return [Claim("Table 2", text, f"{found}. Entropy costs a sort here, not all pairs", holds)]


def _overlap(results: Results, names: list[str]) -> str:
    lines = []
    for name in names:
        shares = [record["shares"] for record in results.select(kind="overlap", data=name)]
        lines.append(
            f"- {name}: of what LossMin chooses, Greedy would choose {np.mean(shares):.0%} from "
            f"the same scores ({np.mean([s[0] for s in shares]):.0%} in the first round)."
        )
    return "\n".join(lines)


def _table_1(found: dict[str, StrategyComparison]) -> str:
    rows = []
    for measure in SHOWN:
        shown = MEASURES[measure]
        rows += [
            (shown, f"{data}, published", f"`{order}`")
            for data, order in published.TABLE_1[measure].items()
        ]
        for name, runs in found.items():
            rows.append((shown, f"{name}, rounds", f"`{runs.ordering(measure)}`"))
            rows.append((shown, f"{name}, runs", f"`{runs.ordering(measure, over='runs')}`"))
    return table(("measure", "data and test", "order"), rows, "---")


def _forms(every: dict[str, StrategyComparison], names: list[str]) -> str:
    """Means over the curves of the forms of LossMin, each against LossMin."""
    rows = []
    measures = list(every[names[0]].runs["LossMin"][0].curves)
    for name in names:
        runs = every[name]
        shown = ["LossMin", *(who for who in runs.runs if who not in protocol.STRATEGIES)]
        shown += [who for who in ("Diverse", "Random", "Greedy") if name in protocol.GRADED]
        for who in shown:
            row = [name, who]
            for measure in measures:
                cell = f"{runs.values(measure, who)[:, 1:].mean():.4f}"
                if who != "LossMin" and len(runs.runs[who]) > 1:
                    test = runs.test(measure, who, "LossMin", over="runs")
                    cell += f" ({test.difference:+.4f}, p = {test.p:.2g})"
                row.append(cell)
            rows.append(row)
    return table(("data", "method", *(MEASURES[measure] for measure in measures)), rows)


def _table_2(results: Results, found: dict[str, StrategyComparison]) -> str:
    rows = []
    for method, values in published.TABLE_2.items():
        rows.append(("TD2003, published", method, *_cells(values["seconds"], values["map"])))
    for name in found:
        runs = comparison(results, name)
        for record in results.select(kind="time", data=name):
            values = runs.values("map", record["method"]).mean(axis=0)
            length = min(values.size, len(record["seconds"]))
            cells = _cells(record["seconds"][:length], values[:length])
            rows.append((name, record["method"], *cells))
    width = max(len(row) for row in rows)
    rows = [(*row, *[""] * (width - len(row))) for row in rows]
    seconds = sum(record["seconds"] for record in results.select(kind="compiling"))
    text = f"Compiling functions, or reading compiled ones, took {seconds:.1f} s, once."
    head = ("data", "method", *(f"round {k}: s, MAP" for k in range(width - 2)))
    return f"{text}\n\n{table(head, rows)}"


def _cells(seconds: list[float] | np.ndarray, values: list[float] | np.ndarray) -> list[str]:
    return [f"{s:.2g}, {v:.3f}" for s, v in zip(seconds, values, strict=True)]


def _figure_3(runs: StrategyComparison, name: str, path: Path) -> None:
    with figure(path, 1, 3, size=(13.5, 4.2)) as (drawn, panels):
        for panel, measure in zip(panels, SHOWN, strict=True):
            for k, who in enumerate(runs.runs):
                labels, mean, low, high = runs.band(measure, who)
                panel.plot(labels, mean, label=who, color=f"C{k}")
                if who == "LossMin":
                    panel.fill_between(labels, low, high, color=f"C{k}", alpha=0.15, linewidth=0)
            shown = MEASURES[measure]
            panel.set(title=shown, ylabel=shown, xlabel="labels beyond the seeds")
            panel.grid(alpha=0.3)
        panels[0].legend(fontsize=9)
        drawn.suptitle(name)
