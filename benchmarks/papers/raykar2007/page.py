"""Tables and figures from the records, as one Markdown page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import erfc

from ..common import QUICK, Results, pyplot, table, write_page
from . import protocol, published
from .protocol import ALL, OURS
from .published import METHODS

QUICK_RUN = "two folds, two alphas, two users, one draw of RandPoly, small sums"
TITLES = {"columns": "the columns alone", "with target": "the target among the columns"}
TARGET = """The figures of Table 4 cannot come from the columns of these data sets alone. Table 1
counts one column more than each set has (14 for Boston housing with its 13, 9 for California
housing with its 8, and so on for all nine), and on Boston housing every method but one has a WMW
of exactly 1.000 ± 0.000, which no method comes near without the target. With the target among
the columns the figures are reached or passed on most sets; the published value for abalone,
little better than chance, remains unexplained. So both tables are below: the columns alone,
which is the problem one has in practice, and the columns with the target, which is what seems to
have been measured."""
DIFFERENCES = """- Every method is our own. RankNet trains on all pairs at once by L-BFGS (up to 500
  steps), not on single pairs; RankSVM stops at a certified relative gap of 1e-3; RankBoost takes 50
  or 100 rounds, by cross-validation.
- RankNCG stops at a gradient norm of 1e-3 relative to the start; the paper does not say relative to
  what. Direct is too slow to be cross-validated and takes over the alpha of fast.
- alpha (a penalty on the mean over pairs) is chosen from 1, 0.1, ..., 1e-5 by five inner folds
  (RankSVM quadratic: 10 to 0.01, rbf kernel: 0.01 to 1e-5); the paper's grid is not given. Columns
  are standardised on the training part.
- Grades are quantile bins of the target with equal values kept together. The paper's numbers of
  pairs (Table 1) fit bins of equal size on abalone, bins of equal width on California housing, and
  neither on the others.
- RandNet is generated anew (`forerank.data.datasets`), after the description the paper cites.
  RandPoly is not the polynomial of that description but the one that has the published values; see
  its section.
- "RankNCG, rbf kernel" is the kernel version that section 8.1 of the paper names, with exact sums:
  1 / (number of columns) for gamma, all rows up to 5,000 and Nystroem with 1,000 beyond.
- Auto-MPG has its six incomplete rows left out; its and abalone's categories are zeros and ones,
  which makes more columns than the paper has.
- Table 2: 100 users drawn from those with at least 100 ratings; the columns are the ratings of the
  d users who rate most. The paper says neither. alpha from 100 to 0.01 by five inner folds;
  RankBoost takes 100 rounds.
- Seconds are those of the fit on the training part, one after the other on an otherwise idle
  machine, compiled before; the median of five where it takes less than half a second."""


def write(results: Results, names: Sequence[str], out: Path, *, quick: bool) -> Path:
    """Draw the figures and write the page."""
    figure_1 = _figure_1(results, out / "figure1.png")
    figure_2, figure_3 = (
        _figure_2(results, out / "figure2.png"),
        _figure_3(results, out / "figure3.png"),
    )
    sections = {
        "Table 1: data": _table_1(results, names, quick=quick),
        "Verdicts": _verdicts(results, names),
    }
    for variant, title in TITLES.items():
        shown = [name for name in names if variant in protocol.variants(name)]
        if shown:
            sections[f"Table 3: training seconds, {title}"] = _by_method(
                results, shown, variant, "seconds"
            )
            sections[f"Table 4: WMW, {title}"] = _by_method(results, shown, variant, "wmw")
    sections |= {
        "Table 2: collaborative filtering": _table_2(results),
        "The log-sigmoid bound": _bounds(results, names),
        "RandPoly: which polynomial": _randpoly(results),
        "Figure 1: bound, sigmoid, erfc and its series": "\n\n".join(
            [figure_1, "![The bound, the sigmoid, erfc, and the error of its series](figure1.png)"]
        ),
        "Figure 2: sums of erfc": f"{figure_2}\n\n![Time and error of the sums](figure2.png)",
        "Figure 3: precision of the gradient": "\n\n".join(
            [figure_3, "![Time and WMW against eps](figure3.png)"]
        ),
        "Where we differ from the paper": DIFFERENCES + _unsettled(results),
    }
    title = "Learning large scale preference relations (raykar2007), reproduced"
    return write_page(out / "raykar2007.md", title, sections, results.commits)


def per_fold(results: Results, data: str, variant: str, who: str, what: str) -> np.ndarray:
    """The measure on each fold recorded, in order."""
    records = results.select(kind="fold", data=data, variant=variant, method=who)
    by_fold = {record["fold"]: record[what] for record in records}
    return np.array([by_fold[fold] for fold in sorted(by_fold)])


def _spread(values: np.ndarray, form: str) -> str:
    if values.size == 0:
        return "-"
    return format(values.mean(), form) + (
        f" ± {format(values.std(ddof=1), form)}" if values.size > 1 else ""
    )


def _form(what: str) -> str:
    return ".3f" if what == "wmw" else ".2g"


def _told(entry: tuple[float, float] | None, form: str) -> str:
    return " (-)" if entry is None else f" ({format(entry[0], form)} ± {format(entry[1], form)})"


def _table_1(results: Results, names: Sequence[str], *, quick: bool) -> str:
    rows = []
    for name in names:
        number, n, d, n_grades, pairs = published.TABLE_1[name]
        columns = protocol.load(name, "columns")[0].shape[1]
        ours = per_fold(results, name, "columns", OURS, "pairs")
        rows.append(
            (f"{number} {name}", n, f"{columns} ({d})", n_grades, f"{ours.mean():,.0f} ({pairs:,})")
        )
    text = (
        "In parentheses the paper's values; pairs are the mean of the training parts. Set 1 was "
        "not available."
    )
    head = ("data", "rows", "columns", "grades", "pairs")
    return "\n\n".join(
        [*([f"{QUICK} It took {QUICK_RUN}."] if quick else []), text, table(head, rows), TARGET]
    )


def _by_method(results: Results, names: Sequence[str], variant: str, what: str) -> str:
    """Data sets as rows, methods as columns, the published value in parentheses."""
    told = published.TABLE_4 if what == "wmw" else published.TABLE_3
    rows = []
    for name in names:
        row = [name]
        for k, who in enumerate(ALL):
            values = per_fold(results, name, variant, who, what)
            cell = _spread(values, _form(what))
            if what == "wmw" and values.size:
                cell = (
                    f"**{cell}**" if values.mean() >= _best(results, name, variant) - 5e-4 else cell
                )
            row.append(
                cell
                + (
                    _told(told[name][k], ".3f" if what == "wmw" else ".2f")
                    if who in METHODS
                    else ""
                )
            )
        rows.append(row)
    return table(("data", *ALL), rows)


def _best(results: Results, name: str, variant: str) -> float:
    return max(v.mean() for who in ALL if (v := per_fold(results, name, variant, who, "wmw")).size)


def _verdicts(results: Results, names: Sequence[str]) -> str:
    """The claims of the paper against our records, in sentences."""
    cases = [(name, variant) for name in names for variant in protocol.variants(name)]
    lines = [_fast_against_direct(results, cases), _newton_against_fast(results, cases)]
    for variant, title in TITLES.items():
        real = [name for name in names if name in protocol.FILES]
        if real:
            lines.append(f"- Table 4, {title}: " + _within_a_deviation(results, real, variant))
    lines += _two_layers(results, names)
    if "california housing" in names:
        lines += [_california(results, variant) for variant in TITLES]
    return "\n".join(lines)


def _fast_against_direct(results: Results, cases: list[tuple[str, str]]) -> str:
    apart, ratios = {}, {}
    for name, variant in cases:
        direct = per_fold(results, name, variant, "RankNCG direct", "wmw")
        fast = per_fold(results, name, variant, "RankNCG fast", "wmw")[: direct.size]
        apart[name, variant] = abs(direct.mean() - fast.mean())
        times = [
            per_fold(results, name, variant, who, "seconds")
            for who in ("RankNCG direct", "RankNCG fast")
        ]
        ratios[name, variant] = times[0].mean() / times[1][: times[0].size].mean()
    worst = max(apart, key=lambda case: apart[case])
    largest = f"{max(apart.values()):.4f} at most ({_case(*worst)})"
    text = f"- RankNCG fast and direct: WMW differs by {largest}"
    shown = [
        f"{_case(*case)} {ratio:,.0f}"
        for case, ratio in ratios.items()
        if ratio >= 20.0 or case[0] == "abalone"
    ]
    return (
        text
        + ". Fast is faster by a factor of: "
        + ("; ".join(shown) or "less than 20 everywhere")
        + "."
    )


def _newton_against_fast(results: Results, cases: list[tuple[str, str]]) -> str:
    ratios, behind, worst = [], [], 0.0
    for name, variant in cases:
        ours = [
            per_fold(results, name, variant, OURS, what)
            for what in ("seconds", "wmw", "optimality")
        ]
        fast = [
            per_fold(results, name, variant, "RankNCG fast", what) for what in ("seconds", "wmw")
        ]
        ratios.append(fast[0].mean() / ours[0].mean())
        behind.append(ours[1].mean() - fast[1].mean())
        worst = max(worst, float(ours[2].max()))
    mean = float(np.exp(np.mean(np.log(ratios))))
    return (
        f"- {OURS}: {mean:.1f} times faster than RankNCG fast (geometric mean over {len(cases)} "
        f"cases, from {min(ratios):.1f} to {max(ratios):.1f}); WMW less that of RankNCG fast: "
        f"{np.mean(behind):+.4f} in the mean, from {min(behind):+.4f} to {max(behind):+.4f}; "
        f"largest relative gradient norm at the end {worst:.1e}."
    )


def _case(name: str, variant: str) -> str:
    return name if variant == "columns" else f"{name}, with target"


def _within_a_deviation(results: Results, names: Sequence[str], variant: str) -> str:
    """The paper's own figure is that of RankNCG fast, which alone finished everywhere."""
    fine, short = [], []
    for name in names:
        mean, deviation = published.TABLE_4[name][1]
        ours = per_fold(results, name, variant, "RankNCG fast", "wmw").mean()
        reached = ours >= mean - deviation - 5e-4  # published values have three digits
        (fine if reached else short).append(
            f"{name} {ours:.3f} against {mean:.3f} ± {deviation:.3f}"
        )
    missed = f" Below: {'; '.join(short)}." if short else ""
    sets = f"{len(fine)} of {len(names)} real sets"
    return f"RankNCG fast within one published deviation or above on {sets}.{missed}"


def _two_layers(results: Results, names: Sequence[str]) -> list[str]:
    linear = ("RankNCG direct", "RankNCG fast", "RankNet linear", "RankSVM linear", OURS)
    lines = []
    for name in names:
        if name.startswith("randnet"):
            ours = per_fold(results, name, "columns", "RankNet two layer", "wmw").mean()
            best = max(per_fold(results, name, "columns", who, "wmw").mean() for who in linear)
            lines.append(
                f"- RankNet two layer on {name}: {ours:.3f}, best linear method {best:.3f}."
            )
    return lines


def _california(results: Results, variant: str) -> str:
    total = {
        who: per_fold(results, "california housing", variant, who, "seconds")
        for who in ALL
        if who != "RankNCG direct"
    }
    once = sum(seconds.mean() for seconds in total.values())
    return (
        f"- California housing, {TITLES[variant]}: all {len(total)} methods that do not enumerate "
        f"pairs take {once:.1f} seconds together for one fold, "
        f"{sum(s.sum() for s in total.values()):.1f} for all folds."
    )


def _table_2(results: Results) -> str:
    rows = []
    for d in protocol.COLUMNS:
        records = results.select(kind="user", columns=d)
        if not records:
            continue
        row: list[Any] = [d]
        for who in protocol.USER_METHODS:
            mine = [record for record in records if record["method"] == who]
            told = published.TABLE_2[d].get(who)
            for k, what in enumerate(("seconds", "wmw")):
                cell = _spread(np.array([record[what] for record in mine]), _form(what))
                row.append(cell + (_told(told[k], ".2f" if k == 0 else ".3f") if told else ""))
        rows.append(row)
    users = len({record["user"] for record in results.select(kind="user")})
    movies = np.mean([record["movies"] for record in results.select(kind="user")]) if users else 0
    head = [
        "d",
        *(f"{who}, {what}" for who in protocol.USER_METHODS for what in ("seconds", "WMW")),
    ]
    text = (
        f"MovieLens 1M: the movies of one user at a time ({users} users, {movies:.0f} movies on "
        "average), described by the ratings of d other users. Mean ± standard deviation over the "
        "users, in parentheses the paper's (whose caption names another data set)."
    )
    return text + "\n\n" + table(head, rows)


def _bounds(results: Results, names: Sequence[str]) -> str:
    """The bound of section 3 beside the WMW that it bounds, on the training parts."""
    text = """Section 3: 1 + L / (M log 2) <= WMW on the training pairs, for RankNCG fast. The mean
over the folds; `wmw_bound_` of every ranker fitted on all pairs."""
    rows = []
    for name in names:
        for variant in protocol.variants(name):
            values = [
                per_fold(results, name, variant, "RankNCG fast", what)
                for what in ("bound", "training")
            ]
            held = "yes" if np.all(values[0] <= values[1]) else "NO"
            means = (f"{value.mean():.3f}" for value in values)
            rows.append((_case(name, variant), *means, held))
    return f"{text}\n\n{table(('data', 'bound', 'WMW in training', 'held'), rows)}"


def _randpoly(results: Results) -> str:
    """Published values of RandPoly beside those of two generators."""
    text = """The paper refers to Burges et al. (2005), whose polynomial is the mean of three terms
of equal variance (linear, quadratic, cubic; products of columns by random permutations) in bins of
equal size. It cannot have been that: a linear ranking then puts more pairs in order than published
and a quadratic one far fewer, and bins of equal size have more pairs. A polynomial of degree two in
all products x_k x_l, k <= l, with coefficients uniform in [-1, 1] and bins of equal width is near
the published values, within the spread over its draws. So it stands for RandPoly in the tables. WMW
over five folds with the best of a few penalties, the mean ± standard deviation over draws;
quadratic for the first draw. Not explained: in the paper RankNet linear has 0.688 where two other
linear methods have 0.625."""
    rows = []
    for n in (1000, 5000):
        told = published.TABLE_4[f"randpoly {n}"]
        quadratic = "-" if told[5] is None else f"{told[5][0]:.3f}"
        pairs = f"{published.TABLE_1[f'randpoly {n}'][4]:,}"
        rows.append((f"published, {n:,} rows", f"{told[0][0]:.3f}", quadratic, pairs))
        for form in ("cubic", "quadratic"):
            records = results.select(kind="randpoly", form=form, rows=n)
            if records:
                linear = np.array([r["linear"] for r in records])
                found = [r["quadratic"] for r in records if r["quadratic"] is not None]
                pairs = f"{np.mean([r['pairs'] for r in records]):,.0f}"
                name = f"{form}, {'equal size' if form == 'cubic' else 'equal width'}, {n:,} rows"
                shown = f"{np.mean(found):.3f}" if found else "-"
                rows.append((name, _spread(linear, ".3f"), shown, pairs))
    return f"{text}\n\n{table(('generator', 'linear', 'quadratic', 'pairs'), rows)}"


def _figure_1(results: Results, path: Path) -> str:
    plt = pyplot()
    figure, axes = plt.subplots(1, 4, figsize=(15.0, 3.6), layout="constrained")
    z = np.linspace(-4.0, 4.0, 801)
    bound = 1.0 - np.logaddexp(0.0, -z) / np.log(2.0)
    axes[0].plot(z, z > 0.0, "k-", label="1 if z > 0")
    axes[0].plot(z, bound, "C0--", label="1 + log sigmoid(z) / log 2")
    axes[0].set(xlabel="z", title="(a) log-sigmoid bound", ylim=(-3.0, 1.5))
    wide = 2.0 * z
    sigmoid = 1.0 / (1.0 + np.exp(-wide))
    replaced = 1.0 - 0.5 * erfc(np.sqrt(3.0) * wide / (np.sqrt(2.0) * np.pi))
    axes[1].plot(wide, sigmoid, "k-", label="sigmoid")
    axes[1].plot(wide, replaced, "C0--", label="1 - erfc(√3 z / √2 π) / 2")
    axes[1].set(xlabel="z", title="(b) sigmoid")
    axes[2].plot(z, erfc(z), "k-", label="erfc")
    axes[2].set(xlabel="z", title="(c) erfc")
    records = sorted(results.select(kind="series"), key=lambda r: r["p"])
    p = [r["p"] for r in records]
    axes[3].semilogy(p, [r["error"] for r in records], "C0-s", markersize=4, label="largest error")
    axes[3].semilogy(p, [r["bound"] for r in records], "k:", label="bound (eq. 6)")
    axes[3].set(xlabel="p", title="(d) series of p terms, |z| <= 4", ylim=(1e-17, 3.0))
    for panel in axes:
        panel.grid(visible=True, alpha=0.2)
        panel.legend(fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    # Rounding errors of the series are about 1e-15.
    held = all(r["error"] <= r["bound"] + 2e-15 for r in records)
    twelve = next(r for r in records if r["p"] == 12)
    return (
        f"(a) The bound is below the step everywhere: {bool(np.all(bound <= (z > 0.0)))}. "
        f"(b) The largest difference is {np.abs(sigmoid - replaced).max():.3f}. (d) With the h for "
        "which the bound is smallest, the error is within the bound for every p up to "
        f"{p[-1]}: {held}. Twelve terms have an error of {twelve['error']:.1e} (bound "
        f"{twelve['bound']:.1e}, h = {twelve['h']:.3f}); the paper says less than 1e-6."
    )


def _figure_2(results: Results, path: Path) -> str:
    plt = pyplot()
    figure, axes = plt.subplots(2, 2, figsize=(9.5, 7.0), layout="constrained")
    by_size = sorted(results.select(kind="sum"), key=lambda r: r["n"])
    n = np.array([r["n"] for r in by_size])
    panel = axes[0, 0]
    measured = np.array([not r["extrapolated"] for r in by_size])
    direct = np.array([r["direct"] for r in by_size])
    panel.loglog(n[measured], direct[measured], "k-o", markersize=4, label="direct")
    last = max(int(measured.sum()) - 1, 0)
    panel.loglog(n[last:], direct[last:], "k:o", markersize=4, label="direct, extrapolated")
    panel.loglog(
        n,
        [r["fast"] for r in by_size],
        "C0-s",
        markersize=4,
        label=f"erfc_sum, eps = {protocol.SUM_EPS:g}",
    )
    panel.loglog(
        n,
        [r["grid"] for r in by_size],
        "C1-^",
        markersize=4,
        label="logistic sums on a grid, both sides",
    )
    panel.set(xlabel="N = M", ylabel="seconds", title="(a) time")
    panel.legend(fontsize=8)
    axes[0, 1].loglog(n, [r["error"] for r in by_size], "C0-s", markersize=4, label="observed")
    axes[0, 1].axhline(protocol.SUM_EPS, color="k", linestyle="--", linewidth=1, label="promised")
    axes[0, 1].set(xlabel="N = M", ylabel="largest error / sum of |weights|", title="(b) error")
    axes[0, 1].legend(fontsize=8)
    by_eps = sorted(results.select(kind="precision"), key=lambda r: r["eps"])
    eps = np.array([r["eps"] for r in by_eps])
    axes[1, 0].loglog(eps, [r["direct"] / r["fast"] for r in by_eps], "C0-s", markersize=4)
    axes[1, 0].set(
        xlabel="eps", ylabel="times faster than direct", title="(c) speed-up, N = M = 3,000"
    )
    axes[1, 1].loglog(eps, [r["error"] for r in by_eps], "C0-s", markersize=4, label="observed")
    axes[1, 1].loglog(eps, eps, "k--", linewidth=1, label="promised")
    axes[1, 1].set(
        xlabel="eps", ylabel="largest error / sum of |weights|", title="(d) error, N = M = 3,000"
    )
    axes[1, 1].legend(fontsize=8)
    for panel in axes.flat:
        panel.grid(visible=True, alpha=0.2)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    largest = by_size[-1]
    extrapolated = " (extrapolated)" if largest["extrapolated"] else ""
    hours = published.DIRECT_SUM / 3600
    paper = f"The paper has {published.FAST_SUM} s against {hours:.2f} hours at 51,200."
    errors = [r["error"] / protocol.SUM_EPS for r in by_size]
    errors += [r["error"] / r["eps"] for r in by_eps]
    return (
        f"N = M = {largest['n']:,} at eps = {protocol.SUM_EPS:g}: {1000 * largest['fast']:.1f} ms "
        f"against {largest['direct']:.3g} s{extrapolated}, "
        f"{largest['direct'] / largest['fast']:,.0f} times faster, with an error of "
        f"{largest['error']:.1e}. {paper} Largest error relative to eps, all sizes and "
        "precisions: "
        f"{max(errors):.2g}."
    )


def _figure_3(results: Results, path: Path) -> str:
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
    records = results.select(kind="eps")
    direct = next(r for r in records if r["eps"] is None)
    fast = sorted((r for r in records if r["eps"] is not None), key=lambda r: r["eps"])
    eps = [r["eps"] for r in fast]
    for panel, what, label in (
        (axes[0], "seconds", "seconds"),
        (axes[1], "wmw", "WMW on the test part"),
    ):
        values = [r[what] for r in fast]
        (panel.loglog if what == "seconds" else panel.semilogx)(
            eps, values, "C0-s", markersize=4, label="RankNCG fast"
        )
        panel.axhline(direct[what], color="k", linestyle="--", linewidth=1, label="RankNCG direct")
        panel.set(xlabel="eps", ylabel=label)
        panel.grid(visible=True, alpha=0.2)
        panel.legend(fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    steps = ", ".join(
        f"{r['eps']:g}: {r['steps']}" + ("" if r["settled"] else " (not settled)") for r in fast
    )
    case = f"{protocol.FIGURE_3_DATA}, one fold, alpha = 1e-3"
    return f"{case}. Steps by eps: {steps}; direct: {direct['steps']}."


def _unsettled(results: Results) -> str:
    listed = [
        f"{r['method']} on {_case(r['data'], r['variant'])} (fold {r['fold']}, "
        f"{r['optimality']:.1e})"
        for r in results.select(kind="fold")
        if not r["settled"]
    ]
    chosen = results.select(kind="chosen")
    inner = sum(r["unsettled"] for r in chosen)
    total = sum(r["fits"] for r in chosen)
    return (
        "\n- Fits of the tables that did not reach their tolerance: "
        f"{', '.join(listed) or 'none'}. In the selection of parameters: {inner:,} of {total:,}."
    )
