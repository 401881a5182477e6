"""Figures 1 to 3 from the records, each with the sentences below it."""

from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import erfc

from ..common import Results
from ..pages import figure
from . import protocol, published


def _yes(held: Any) -> str:
    return "yes" if held else "NO"


def figure_1(results: Results, path: Path) -> str:
    with figure(path, 1, 4, size=(15.0, 3.6)) as (_, axes):
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
        axes[3].semilogy(p, [r["error"] for r in records], "C0-s", ms=4, label="largest error")
        axes[3].semilogy(p, [r["bound"] for r in records], "k:", label="bound (eq. 6)")
        axes[3].set(xlabel="p", title="(d) series of p terms, |z| <= 4", ylim=(1e-17, 3.0))
        for panel in axes:
            panel.grid(visible=True, alpha=0.2)
            panel.legend(fontsize=8)
    # Rounding errors of the series are about 1e-15.
    held = all(r["error"] <= r["bound"] + 2e-15 for r in records)
    twelve = next(r for r in records if r["p"] == 12)
    return (
        f"(a) The bound is below the step everywhere: {_yes(np.all(bound <= (z > 0.0)))}. "
        f"(b) They differ by {np.abs(sigmoid - replaced).max():.3f} at most. (d) With the h for "
        "which the bound is smallest, the error is within the bound for every p up to "
        f"{p[-1]}, up to rounding errors of 2e-15: {_yes(held)}. Twelve terms have an error of "
        f"{twelve['error']:.1e} (bound {twelve['bound']:.1e}, h = {twelve['h']:.3f}); the paper "
        "says less than 1e-6."
    )


def figure_2(results: Results, path: Path) -> str:
    with figure(path, 2, 2, size=(9.5, 7.0)) as (_, axes):
        by_size = sorted(results.select(kind="sum"), key=lambda r: r["n"])
        n = np.array([r["n"] for r in by_size])
        panel = axes[0, 0]
        measured = np.array([not r["extrapolated"] for r in by_size])
        direct = np.array([r["direct"] for r in by_size])
        panel.loglog(n[measured], direct[measured], "k-o", ms=4, label="direct")
        last = max(int(measured.sum()) - 1, 0)
        panel.loglog(n[last:], direct[last:], "k:o", ms=4, label="direct, extrapolated")
        panel.loglog(
            n,
            [r["fast"] for r in by_size],
            "C0-s",
            ms=4,
            label=f"erfc_sum, eps = {protocol.SUM_EPS:g}",
        )
        panel.loglog(
            n,
            [r["grid"] for r in by_size],
            "C1-^",
            ms=4,
            label="logistic sums on a grid, both sides",
        )
        panel.set(xlabel="N = M", ylabel="processor seconds", title="(a) time")
        panel.legend(fontsize=8)
        axes[0, 1].loglog(n, [r["error"] for r in by_size], "C0-s", ms=4, label="observed")
        axes[0, 1].axhline(protocol.SUM_EPS, color="k", ls="--", lw=1, label="promised")
        axes[0, 1].set(xlabel="N = M", ylabel="largest error / sum of |weights|", title="(b) error")
        axes[0, 1].legend(fontsize=8)
        by_eps = sorted(results.select(kind="precision"), key=lambda r: r["eps"])
        eps = np.array([r["eps"] for r in by_eps])
        axes[1, 0].semilogx(eps, [r["direct"] / r["fast"] for r in by_eps], "C0-s", ms=4)
        axes[1, 0].set(
            xlabel="eps", ylabel="times faster than direct", title="(c) speed-up, N = M = 3,000"
        )
        axes[1, 1].loglog(eps, [r["error"] for r in by_eps], "C0-s", ms=4, label="observed")
        axes[1, 1].loglog(eps, eps, "k--", lw=1, label="promised")
        axes[1, 1].set(
            xlabel="eps",
            ylabel="largest error / sum of |weights|",
            title="(d) error, N = M = 3,000",
        )
        axes[1, 1].legend(fontsize=8)
        for panel in axes.flat:
            panel.grid(visible=True, alpha=0.2)
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


def figure_3(results: Results, path: Path) -> str:
    with figure(path, 1, 2, size=(9.5, 3.6)) as (_, axes):
        records = results.select(kind="eps")
        direct = next(r for r in records if r["eps"] is None)
        fast = sorted((r for r in records if r["eps"] is not None), key=lambda r: r["eps"])
        eps = [r["eps"] for r in fast]
        for panel, what, label in (
            (axes[0], "seconds", "processor seconds"),
            (axes[1], "wmw", "WMW on the test part"),
        ):
            values = [r[what] for r in fast]
            (panel.loglog if what == "seconds" else panel.semilogx)(
                eps, values, "C0-s", ms=4, label="RankNCG fast"
            )
            panel.axhline(direct[what], color="k", ls="--", lw=1, label="RankNCG direct")
            panel.set(xlabel="eps", ylabel=label)
            panel.grid(visible=True, alpha=0.2)
            panel.legend(fontsize=8)
    steps = ", ".join(
        f"{r['eps']:g}: {r['steps']}" + ("" if r["settled"] else " (not settled)") for r in fast
    )
    case = f"{protocol.FIGURE_3_DATA}, one fold, alpha = 1e-3"
    return f"{case}. Steps by eps: {steps}; direct: {direct['steps']}."
