"""Tables and figures from the records, as one page."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import stats

from ..common import Results
from ..pages import Claim, Page, bold, compare_paired, figure, listed, slope, spread, table
from . import protocol, published
from .protocol import ALL, LAMBDAS, OURS

CLOSE = 0.01
LEVEL = 0.05
TABLE_1 = f"""Mean rank loss (1 - AUC) with the best lambda for each method, as in the paper; in
parentheses the published value. Bold: within {CLOSE} of it, or below. Our two columns minimise
a smooth loss over all pairs."""
FIGURE_1 = """Rank risk of random models in each panel: the mean over the training sets, as an
expectation over the labels of 10,000 test rows, with the lambda that is best for the method in
that panel. The dotted line is the risk of the best ranking, 0.1."""
REGRETS = """Theorem 4.1 on models with known probabilities: fits with balanced losses, the rank
regret on 10,000 rows and its bound from the regret of the loss (eq. 12 exponential, eq. 13
logistic), means over the draws. Slopes are those of the logarithms over the last three sizes.
Linear scores can represent the probabilities of the logistic model: both regrets go to zero, and
the bound, a square root, at half the rate of the rank regret. They cannot represent those of the
others, which have two values: the regret of the loss stays, and the bound with it, even where the
ranking becomes the best one (linear model)."""
STUDY = """Linear rankers on models whose best ranking is known, the mean over the draws with the
lambda that is best for the method in that cell, by the share of positives and the number of
training rows. Bold: not significantly worse than the best (paired t-test over the draws, p <
0.05). A linear score is right for the linear model and wrong for the nonlinear one. "top 5 %" is
`TopRanker(at=0.05)`. Its regret of 0.4 is that of equal scores: with many mislabelled rows among
the highest negatives w = 0 has the smallest loss, as a warning of its fits says."""
DIFFERENCES = """- lambda is a penalty on the sum over rows: alpha = lambda / n for every method
  ("rescaled properly" for pairs).
- All solvers are ours, stopped at a relative gradient norm of 1e-3, or a relative duality gap of
  1e-3 for the hinge.
- Missing values are replaced by the mean of the column in the training part and columns
  standardised there; the paper does not say what it does. Categories are zeros and ones.
- The rank risk in Figure 1 is the expectation over labels, not a count over drawn labels: the same
  in the mean.
- Thresholds of the models are quantiles over 200,000 rows.
- covtype: a random split of the sizes given; the paper's split is not known."""


def make(results: Results, out: Path) -> Page:
    """Draw the figures and make the page."""
    names = results.found("data", published.TABLE_1, kind="set")
    boxes = _figure_1(results, out / "figure1.png")
    _figure_study(results, out / "study.png")
    sections = {
        "Table 1: rank loss on real data": f"{TABLE_1}\n\n{_table_1(results, names)}",
        "Figure 1: random models": "\n\n".join(
            [FIGURE_1, boxes, "![Rank risk by panel and method](figure1.png)"]
        ),
        "Theorem 4.1: regret against its bound": "\n\n".join(
            [REGRETS, _regrets(results, out / "regrets.png"), "![Regret by rows](regrets.png)"]
        ),
        "When do pairs pay? Rank regret": "\n\n".join(
            [STUDY, _study(results, "regret"), "![Regret by rows](study.png)"]
        ),
        "When do pairs pay? Expected precision in the first 1 %": _study(results, "top"),
        "When do pairs pay? Documents within queries": _queries(results),
        "When do pairs pay? The top of real lists": _top(results),
    }
    return Page(
        "Bipartite ranking through minimization of univariate loss (kotlowski2011), reproduced",
        _run(results, names),
        _claims(results, names),
        sections,
        "Data that could not be had: kdd04 (the physics task of the KDD Cup 2004).",
        DIFFERENCES + _unsettled(results),
    )


def _run(results: Results, names: Sequence[str]) -> str:
    models = results.count("model", kind="model", panel=next(iter(protocol.PANELS)))
    sets = {record["sets"] for record in results.select(kind="model")}
    folds = {(r["repeats"], r["folds"]) for r in results.select(kind="set") if "folds" in r}
    draws = {len(record["regret"]) for record in results.select(kind="study")}
    regrets = results.count("seed", kind="regret")
    timed = [r for who in published.METHODS for r in results.select(kind="model", method=who)]
    fits, seconds = sum(r["sets"] for r in timed), sum(r["seconds"] for r in timed)
    crossed = listed(f"{n} times {k} folds" for n, k in sorted(folds))
    span = " to ".join(map(str, dict.fromkeys((min(draws), max(draws)))))
    return f"""Figure 1: {models} random models in each panel, {listed(map(str, sorted(sets)))}
training sets of {protocol.TRAINING_ROWS:,} rows for each. Table 1: {listed(names)}; {crossed},
for covtype one split. Regrets: {regrets} draws; "When do pairs pay?":
{span} draws of each case. The {fits:,} fits of Figure 1 for the paper's three losses, with their
test risks, took {seconds / 60:.1f} minutes."""


def of_panel(results: Results, panel: str, who: str) -> tuple[np.ndarray, float]:
    """Rank risks of the models in a panel with the best lambda, and that lambda."""
    by_penalty = {}
    for penalty in LAMBDAS:
        records = results.select(kind="model", panel=panel, method=who, **{"lambda": penalty})
        by_penalty[penalty] = np.array(
            [r["loss"] for r in sorted(records, key=lambda r: r["model"])]
        )
    best = min(LAMBDAS, key=lambda penalty: by_penalty[penalty].mean())
    return by_penalty[best], best


def of_set(results: Results, name: str, who: str) -> dict | None:
    """The record with the smallest loss over lambda."""
    records = results.select(kind="set", data=name, method=who)
    return min(records, key=lambda r: r["loss"]) if records else None


def _table_1(results: Results, names: Sequence[str]) -> str:
    rows = []
    for name in names:
        row = [name]
        for who in ALL:
            record = of_set(results, name, who)
            if record is None:
                row.append("-")
                continue
            cell = f"{record['loss']:.4f}"
            if who in published.METHODS:
                target = published.TABLE_1[name][published.METHODS.index(who)]
                cell = bold(cell, record["loss"] <= target + CLOSE) + f" ({target:.4f})"
            row.append(cell + f" λ={record['lambda']:g}")
        rows.append(row)
    return table(("data", *ALL), rows)


def _claims(results: Results, names: Sequence[str]) -> list[Claim]:
    claims = []
    for who in published.METHODS:
        near, far = {}, ["see Table 1"]
        for name in names:
            record, k = of_set(results, name, who), published.METHODS.index(who)
            if record:
                near[name] = record["loss"] <= published.TABLE_1[name][k] + CLOSE
                if not near[name]:
                    far.append(f"{name} {record['loss']:.4f}, there {published.TABLE_1[name][k]}")
        text = f"rank loss of {who} within {CLOSE} of the paper or below"
        claims.append(Claim("Table 1", text, "; ".join(far), near))
    return [*claims, *_orders(results), *_bounds(results)]


def _orders(results: Results) -> list[Claim]:
    """The order of the three losses in the panels of Figure 1."""
    small, worst, winner, distances, largest_p = {}, {}, {}, [], 0.0
    for panel in protocol.PANELS:
        risks = {who: of_panel(results, panel, who)[0] for who in published.METHODS}
        means = {who: values.mean() for who, values in risks.items()}
        order = sorted(means, key=lambda who: means[who])
        distances.append(means[order[-1]] - means[order[0]])
        small[panel], worst[panel] = bool(distances[-1] <= 0.015), order[-1] == "exponential"
        better = ("SVM-OR", "logistic") if "0.5" in panel else ("logistic", "SVM-OR")
        winner[panel] = bool(means[better[0]] < means[better[1]])
        first = [risks[who] for who in order[:2]]
        p = stats.ttest_rel(*first).pvalue if first[0].size > 1 else 1.0
        largest_p = max(largest_p, float(p))
    apart = f"largest minus smallest mean of a panel: {min(distances):.4f} to {max(distances):.4f}"
    first_two = f"the first two of each panel apart with p of at most {largest_p:.1g}"
    return [
        Claim("Figure 1", "the three losses differ by about 0.01 at most", apart, small),
        Claim("Figure 1", "the exponential loss is the worst", "see the table there", worst),
        Claim("section 5.1", "SVM leads if balanced, logistic if not", first_two, winner),
    ]


def _bounds(results: Results) -> list[Claim]:
    holds = {
        f"eq. {equation}, {model}": all(
            r["regret"] <= r["bound"] + 1e-12
            for r in results.select(kind="regret", model=model, method=loss)
        )
        for loss, equation in protocol.REGRET_LOSSES.items()
        for model in results.found("model", protocol.REGRET_MODELS, kind="regret")
    }
    return [Claim("Theorem 4.1", "rank regret at most its bound", "every draw and size", holds)]


def _figure_1(results: Results, path: Path) -> str:
    rows = []
    ticks = ["exp", "SVM-OR", "logistic", "pairs\nlogistic", "pairs\nsq. hinge"]
    with figure(path, 1, 4, size=(14, 3.8)) as (_, panels):
        for axes, panel in zip(panels, protocol.PANELS, strict=True):
            values = [of_panel(results, panel, who) for who in ALL]
            axes.boxplot([v for v, _ in values], tick_labels=ticks)
            axes.axhline(protocol.BAYES_RISK, color="k", linestyle=":", linewidth=1)
            axes.set_title(panel, fontsize=10)
            axes.tick_params(axis="x", labelsize=8)
            rows.append([panel, *(f"{v.mean():.4f} (λ={best:g})" for v, best in values)])
        panels[0].set_ylabel("rank risk")
    return table(("mean over models", *ALL), rows)


def _regrets(results: Results, path: Path) -> str:
    """Rank regrets and bounds by the number of training rows: a table, and curves."""
    names = {"logistic": "logistic model", "linear": "linear model", "rules": "nonlinear model"}
    rows = []
    with figure(path, 1, 3, size=(13.5, 4.0), sharey=True) as (_, panels):
        for panel, (kind, shown) in zip(panels, names.items(), strict=True):
            for colour, (loss, equation) in enumerate(protocol.REGRET_LOSSES.items()):
                records = results.select(kind="regret", model=kind, method=loss)
                if not records:
                    continue
                sizes = sorted({r["rows"] for r in records})
                means = [
                    [np.mean([r[what] for r in records if r["rows"] == n]) for n in sizes]
                    for what in ("regret", "bound")
                ]
                style = {"color": f"C{colour}", "marker": "o", "markersize": 3}
                panel.loglog(sizes, means[0], "-", label=f"{loss}, rank regret", **style)
                panel.loglog(sizes, means[1], ":", label=f"{loss}, bound ({equation})", **style)
                held = all(r["regret"] <= r["bound"] + 1e-12 for r in records)
                ends = [
                    f"{m[0]:.4f} to {m[-1]:.4f} ({slope(sizes[-3:], m[-3:]):+.2f})" for m in means
                ]
                span = f"{sizes[0]:,} to {sizes[-1]:,}"
                rows.append((shown, loss, span, *ends, "yes" if held else "NO"))
            panel.set(title=shown, xlabel="training rows")
            panel.grid(visible=True, which="both", alpha=0.2)
        panels[0].set_ylabel("rank regret")
        panels[0].legend(fontsize=8)
    head = ("model", "loss", "rows", "rank regret (slope)", "bound (slope)", "held")
    return table(head, rows)


def _cells(
    results: Results, kind: str, share: float, rows: int, what: str
) -> dict[str, np.ndarray]:
    """For each method the values over the draws, with its best lambda."""
    found = {}
    for who in protocol.STUDY_METHODS:
        records = results.select(kind="study", model=kind, share=share, rows=rows, method=who)
        if records:
            better = min if what == "regret" else max
            found[who] = np.array(better(records, key=lambda r: np.mean(r[what]))[what])
    return found


def _study(results: Results, what: str) -> str:
    """Bold: not significantly worse than the best, by a paired t-test over the draws."""
    rows = []
    for kind in ("linear", "rules"):
        for share in protocol.STUDY_SHARES:
            for n in protocol.STUDY_ROWS:
                cells = _cells(results, kind, share, n, what)
                if not cells:
                    continue
                sign = 1.0 if what == "regret" else -1.0
                best = min(cells.values(), key=lambda v: sign * v.mean())
                row = ["linear" if kind == "linear" else "nonlinear", f"{share:.0%}", f"{n:,}"]
                for who in protocol.STUDY_METHODS:
                    clear = compare_paired(cells[who], best, LEVEL)
                    row.append(bold(f"{cells[who].mean():.4f}", not clear))
                rows.append(row)
    return table(("model", "positives", "rows", *protocol.STUDY_METHODS), rows)


def _queries(results: Results) -> str:
    """MQ2008 by method: means over the folds."""
    folds = results.count("fold", kind="queries")
    text = f"""LETOR 4.0 MQ2008, {folds} of five folds, alpha by NDCG@10 on a part of its own.
Single rows: logistic regression of "at all relevant". Mean ± standard deviation over the folds."""
    rows = []
    for who in protocol.QUERY_METHODS:
        records = results.select(kind="queries", method=who)
        rows.append([who, *(spread([r[what] for r in records]) for what in ("ndcg", "wmw"))])
    return text + "\n\n" + table(("fitted on", "NDCG@10", "WMW within queries"), rows)


def _top(results: Results) -> str:
    """Real sets by method: means over the splits with the best alpha for each measure."""
    text = """Random halves for training and test, columns scaled to [0, 1], the mean over the
splits with the best alpha for each method and measure. "first negative" is `TopPush`. Bold: not
significantly worse than the best (paired t-test)."""
    rows = []
    for name in protocol.TOP_SETS:
        columns = {what: _best_alphas(results, name, what) for what in ("auc", "ap", "pos")}
        for who in protocol.TOP_METHODS if columns["auc"] else ():
            row = [name, who]
            for by_method in columns.values():
                clear = compare_paired(by_method[who], max(by_method.values(), key=np.mean), LEVEL)
                row.append(bold(f"{by_method[who].mean():.4f}", not clear))
            rows.append(row)
    return text + "\n\n" + table(("data", "method", "AUC", "AP", "Pos@Top"), rows)


def _best_alphas(results: Results, name: str, what: str) -> dict[str, np.ndarray]:
    found = {}
    for who in protocol.TOP_METHODS:
        by_alpha = [
            np.array(
                [r[what] for r in results.select(kind="top", data=name, method=who, alpha=alpha)]
            )
            for alpha in protocol.TOP_ALPHAS
        ]
        if by_alpha[0].size:
            found[who] = max(by_alpha, key=np.mean)
    return found


def _figure_study(results: Results, path: Path) -> None:
    shares = results.found("share", protocol.STUDY_SHARES, kind="study")
    size = (4.0 * len(shares), 6.4)
    shared = {"sharex": True, "sharey": "row", "squeeze": False}
    with figure(path, 2, len(shares), size=size, **shared) as (_, panels):
        for i, kind in enumerate(("linear", "rules")):
            for axes, share in zip(panels[i], shares, strict=True):
                points = [
                    (n, _cells(results, kind, share, n, "regret")) for n in protocol.STUDY_ROWS
                ]
                for who in protocol.STUDY_METHODS:
                    drawn = [(n, cells[who].mean()) for n, cells in points if who in cells]
                    axes.loglog(*zip(*drawn, strict=True), marker="o", markersize=3, label=who)
                name = "linear" if kind == "linear" else "nonlinear"
                axes.set_title(f"{name} model, {share:.0%} positives", fontsize=10)
                axes.grid(visible=True, which="both", alpha=0.2)
        panels[0, 0].legend(fontsize=8)
        for axes in panels[1]:
            axes.set_xlabel("training rows")
        for axes in panels[:, 0]:
            axes.set_ylabel("rank regret")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("")
        panels[1, 0].set_yticks([0.05, 0.1, 0.2, 0.4])


def _unsettled(results: Results) -> str:
    counts: dict[str, int] = {}
    for record in [*results.select(kind="model"), *results.select(kind="set")]:
        if record["unsettled"]:
            place = record.get("panel") or record["data"]
            key = f"{record['method']} on {place}"
            counts[key] = max(counts.get(key, 0), record["unsettled"])
    failed = listed(f"{key} ({count})" for key, count in counts.items())
    return (
        f"\n- Fits that did not reach their tolerance: {failed}. "
        f"Methods beyond the paper: {', '.join(OURS)}."
    )
