"""PairwiseLoss and fits on a device, beside BCEWithLogitsLoss, a pointwise fit and the host.

    PYTHONPATH=src python benchmarks/speed/gpu.py [--device cuda] [--quick] [--out FILE]

Needs torch, numpy, scipy, scikit-learn and numba only. Prints one JSON line per figure, which
--out writes to a file as well, then tables:

- agreement: loss and gradient against the double loop, in single and double precision;
- loss: forward and backward on a million scores against BCEWithLogitsLoss;
- memory: peak bytes per score from 1e5 to 1e7 scores;
- matrix: the largest batch of which the matrix of pairs fits into memory;
- parts: products with X as a share of the bandwidth, sums over pairs, parts of a fit;
- fit: 11,000,000 x 28 float32 rows to a tolerance of 1e-3, all pairs and single rows;
- growth: the time of a fit from 1e5 to 1e8 rows;
- same weights: fits on the device and on the host at a tight tolerance;
- host: the same fits on arrays, for as many rows.

A figure that fails is reported, and the others go on.
"""

import argparse
import json
import os
import traceback
import warnings
from statistics import median
from time import perf_counter

import numpy as np
import torch

from forerank import PairwiseRanker, PointwiseRanker
from forerank.solvers.units import column_units
from forerank.torch import pairwise_loss, top_loss
from forerank.torch.design import TensorDesign
from forerank.torch.margins import MARGIN_LOSSES
from forerank.torch.objectives import TensorAllPairs, TensorPointwise
from forerank.torch.rows import prevalence_thresholds, read_rows

COLUMNS = 28
# Bytes per second of the memory of an H200, as its maker states it.
BANDWIDTH = 4.8e12


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def seconds(call, device, repeats=10):
    """The median time of a call, after one that is not counted."""
    call()
    synchronize(device)
    times = []
    for _ in range(repeats):
        if device.type == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) / 1e3)
        else:
            clock = perf_counter()
            call()
            times.append(perf_counter() - clock)
    return median(times)


def peak_memory(call, device):
    """Bytes that a call has at most, beyond those before it; NaN where they are not known."""
    if device.type != "cuda":
        return float("nan")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def definition(s, y, w, group, loss):
    s = s.double()
    counts = y[:, None] > y[None, :]
    if group is not None:
        counts &= group[:, None] == group[None, :]
    weight = w[:, None] * w[None, :] * counts
    return (weight * MARGIN_LOSSES[loss](s[:, None] - s[None, :])).sum() / weight.sum()


def agreement(device):
    """Largest relative error of loss and gradient over ties, weights, groups and grades."""
    for dtype in (torch.float64, torch.float32):
        for loss in MARGIN_LOSSES:
            worst = 0.0
            for seed in range(12):
                generator = torch.Generator().manual_seed(seed)
                n = (50, 800, 3000)[seed % 3]
                s = torch.randn(n, generator=generator, dtype=torch.float64) * (0.5, 4.0)[seed % 2]
                s = (s.round(decimals=1) if seed % 4 < 2 else s).to(dtype)
                y = torch.randint(0, (2, 5)[seed // 6], (n,), generator=generator)
                w = torch.rand(n, generator=generator, dtype=torch.float64)
                group = torch.randint(0, 9, (n,), generator=generator) if seed % 5 == 0 else None
                s, y, w = s.to(device), y.to(device), w.to(device)
                group = None if group is None else group.to(device)
                s.requires_grad_()
                found = pairwise_loss(s, y, w, group, loss=loss)
                expected = definition(s, y, w, group, loss)
                (g,), (h,) = (torch.autograd.grad(value, s) for value in (found, expected))
                errors = abs(found - expected) / expected, (g - h).abs().max() / h.abs().max()
                worst = max(worst, *(float(error.detach()) for error in errors))
            yield {"figure": "agreement", "dtype": str(dtype), "loss": loss, "error": worst}


def scores_and_labels(n, device):
    generator = torch.Generator(device=device).manual_seed(0)
    y = (torch.rand(n, generator=generator, device=device) < 0.1).float()
    return (torch.randn(n, generator=generator, device=device) + y).requires_grad_(), y


def both_passes(call, s):
    """A function that runs a loss forward and backward."""

    def both():
        s.grad = None
        call().backward()

    return both


def losses(device, n):
    s, y = scores_and_labels(n, device)
    bce = torch.nn.BCEWithLogitsLoss()
    bce_seconds = seconds(both_passes(lambda: bce(s, y), s), device, 20)
    yield {"figure": "loss", "n": n, "loss": "BCEWithLogitsLoss", "seconds": bce_seconds}
    calls = {loss: (lambda loss=loss: pairwise_loss(s, y, loss=loss)) for loss in MARGIN_LOSSES}
    calls["top"] = lambda: top_loss(s, y)
    for loss, call in calls.items():
        took = seconds(both_passes(call, s), device, 20)
        yield {
            "figure": "loss",
            "n": n,
            "loss": loss,
            "seconds": took,
            "ratio": took / bce_seconds,
            "within 5 x BCE + 3 ms": took <= 5.0 * bce_seconds + 3e-3,
        }


def memory(device, sizes):
    for n in sizes:
        s, y = scores_and_labels(n, device)
        for loss in ("logistic", "squared_hinge"):
            both = both_passes(lambda s=s, y=y, loss=loss: pairwise_loss(s, y, loss=loss), s)
            both()  # kernels of the grid are kept
            peak = peak_memory(both, device)
            yield {"figure": "memory", "n": n, "loss": loss, "bytes per score": peak / n}


def matrix(device, largest):
    """The largest power of two whose matrix of pairs has a forward and a backward pass."""
    n, survived, took = 2**10, 0, 0.0
    while n <= largest:
        y = torch.arange(n, device=device) % 2
        s = torch.randn(n, device=device, requires_grad=True)
        try:
            clock = perf_counter()
            difference = s[y == 1][:, None] - s[y == 0][None, :]
            torch.nn.functional.softplus(-difference).mean().backward()
            synchronize(device)
        except RuntimeError:  # out of memory
            break
        survived, took = n, perf_counter() - clock
        n *= 2
    if device.type == "cuda":
        torch.cuda.empty_cache()
    yield {"figure": "matrix", "largest batch": survived, "seconds": took}


def make_rows(n, device):
    """Rows like those of HIGGS: 28 columns, about half of them positive, AUC about 0.7."""
    generator = torch.Generator(device=device).manual_seed(1)
    X = torch.randn(n, COLUMNS, generator=generator, device=device)
    w = torch.randn(COLUMNS, generator=generator, device=device) / COLUMNS**0.5
    noise = torch.randn(n, generator=generator, device=device)
    return X, (0.7 * (X @ w) + noise > 0.0).to(torch.int64)


def fitted(make, X, y, device):
    synchronize(device)
    clock = perf_counter()
    ranker = make().fit(X, y)
    synchronize(device)
    return perf_counter() - clock, ranker


FITS = {
    "all pairs, squared hinge": lambda: PairwiseRanker(tol=1e-3),
    "all pairs, logistic": lambda: PairwiseRanker("logistic", tol=1e-3),
    "single rows, logistic": lambda: PointwiseRanker(tol=1e-3),
}


def products(X, device):
    """Times of products with X, each as a share of the bandwidth."""
    entries = X.numel() * X.element_size()
    design, plain = TensorDesign(X), TensorDesign(X)
    plain._kernels = None
    w, g = np.ones(X.shape[1]) / 10, torch.ones(X.shape[0], dtype=torch.float64, device=device)
    single = g.to(X.dtype)
    calls = {}
    if design._kernels is not None:  # the vectors on the device already
        kernels, weights = design._kernels, torch.as_tensor(np.append(w, 0.0), device=device)
        calls["scores, kernel alone"] = lambda: kernels.scores(X, weights)
        calls["adjoint, kernel alone"] = lambda: kernels.adjoint(X, g)
    calls |= {
        "scores": lambda: design.scores(w),
        "adjoint": lambda: design.adjoint(g),
        "scores, plain": lambda: plain.scores(w),
        "adjoint, plain": lambda: plain.adjoint(g),
        "X @ w in torch alone": lambda: X @ X[0],
        "g @ X in torch alone": lambda: single @ X,
    }
    for name, call in calls.items():
        took = seconds(call, device)
        share = entries / took / BANDWIDTH
        yield {
            "figure": "part",
            "n": X.shape[0],
            "part": name,
            "seconds": took,
            "bandwidth share": share,
        }


def parts(X, y, device):
    """Times of the parts of a fit."""
    yield from products(X, device)
    design = TensorDesign(X)
    s = design.scores(np.ones(X.shape[1]) / 10)
    calls = {"sort": lambda: torch.sort(s), "rows": lambda: read_rows(X, y)}
    for loss in ("squared_hinge", "logistic"):
        objective = TensorAllPairs(y, loss)
        calls[f"pairs, {loss}"] = lambda objective=objective: objective.at(s)
        here = objective.at(s)
        calls[f"curvature, {loss}"] = lambda here=here: here.curvature_product(s)
        calls[f"units, {loss}"] = lambda objective=objective: column_units(objective, design)
    calls["sample"] = lambda: objective.sample(200_000, np.random.default_rng(0))
    calls["thresholds"] = lambda: prevalence_thresholds(s, y, None, 2)
    points = TensorPointwise(y == 1, "logistic")
    calls["single rows, logistic"] = lambda: points.at(s)
    for name, call in calls.items():
        yield {
            "figure": "part",
            "n": X.shape[0],
            "part": name,
            "seconds": seconds(call, device, 5),
        }


def fits(device, n):
    X, y = make_rows(n, device)
    yield from parts(X, y, device)
    times = {}
    for name, make in FITS.items():
        runs, ranker = [], None
        for _ in range(4):  # the first is not counted: libraries are loaded
            took, ranker = fitted(make, X, y, device)
            runs.append(took)
        times[name] = median(runs[1:])
        steps = [[step.n_rows, round(1e3 * step.seconds, 2)] for step in ranker.history_]
        yield {
            "figure": "fit",
            "n": n,
            "fit": name,
            "seconds": times[name],
            "first": runs[0],
            "iterations": ranker.n_iter_,
            "optimality": ranker.optimality_,
            "objective": ranker.objective_,
            "rows and ms": steps,
        }
    reference = times["single rows, logistic"]
    for name, took in times.items():
        ratio = took / reference
        yield {"figure": "ratio to single rows", "fit": name, "ratio": ratio, "bar": ratio <= 3.0}


def profile(device, n):
    """The operations that take most of a fit's time."""
    X, y = make_rows(n, device)
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if device.type == "cuda":
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    key = "self_device_time_total" if device.type == "cuda" else "self_cpu_time_total"
    for name, make in FITS.items():
        make().fit(X, y)
        with torch.profiler.profile(activities=kinds) as profiler:
            make().fit(X, y)
            synchronize(device)
        events = sorted(profiler.key_averages(), key=lambda each: -getattr(each, key))
        top = [
            [each.key[:60], each.count, round(getattr(each, key) / 1e3, 2)] for each in events[:14]
        ]
        yield {"figure": "profile", "fit": name, "operation, calls, ms": top}


def growth(device, sizes):
    for n in sizes:
        X, y = make_rows(n, device)
        for name, make in FITS.items():
            fitted(make, X, y, device)
            took = min(fitted(make, X, y, device)[0] for _ in range(2))
            yield {"figure": "growth", "n": n, "fit": name, "seconds": took}
        del X, y
        if device.type == "cuda":
            torch.cuda.empty_cache()


def same_weights(device, n):
    """The largest difference of the weights to those of a fit on arrays, at a tight tolerance."""
    X, y = make_rows(n, device)
    A, b = X.cpu().numpy(), y.cpu().numpy()
    for name, make in FITS.items():
        here = make().set_params(tol=1e-8).fit(X, y)
        there = make().set_params(tol=1e-8).fit(A, b)
        error = abs(here.coef_.cpu().numpy() - there.coef_).max() / abs(there.coef_).max()
        yield {"figure": "same weights", "n": n, "fit": name, "error": float(error)}


def on_host(device, n):
    """The same fits on arrays."""
    X, y = make_rows(n, device)
    A, b = X.cpu().numpy(), y.cpu().numpy()
    for name, make in FITS.items():
        make().fit(A[:20_000], b[:20_000])  # compiles
        clock = perf_counter()
        make().fit(A, b)
        yield {"figure": "host", "n": n, "fit": name, "seconds": perf_counter() - clock}


def figures(stages):
    """The figures of all stages; one that fails is a figure too."""
    for name, stage in stages.items():
        clock = perf_counter()
        try:
            yield from stage
        except Exception as error:
            traceback.print_exc()
            yield {"figure": "failed", "stage": name, "error": f"{type(error).__name__}: {error}"}
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        yield {"figure": "stage", "stage": name, "seconds": perf_counter() - clock}


def text(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def print_tables(found):
    """A table for each kind of figure."""
    for kind in dict.fromkeys(figure["figure"] for figure in found):
        rows = [figure for figure in found if figure["figure"] == kind]
        names = list(dict.fromkeys(name for row in rows for name in row if name != "figure"))
        names = [name for name in names if not any(isinstance(row.get(name), list) for row in rows)]
        cells = [names, *([text(row.get(name, "")) for name in names] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        print(f"\n{kind}")
        for line in cells:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows")
    parser.add_argument("--stages", help="names of stages to run, separated by commas")
    parser.add_argument("--out", help="file for the figures, one JSON object per line")
    options = parser.parse_args()
    device, scale = torch.device(options.device), 100 if options.quick else 1
    sizes = [10**5 // scale, 10**6 // scale, 10**7 // scale]
    stages = {
        "agreement": agreement(device),
        "losses": losses(device, 10**6 // scale),
        "memory": memory(device, sizes),
        "matrix": matrix(device, 2**12 if options.quick else 2**20),
        "fits": fits(device, 11_000_000 // scale),
        "profile": profile(device, 11_000_000 // scale),
        "growth": growth(device, [*sizes, 10**8 // scale]),
        "same weights": same_weights(device, 500_000 // scale),
        "host": on_host(device, 11_000_000 // scale),
    }
    if options.stages:
        stages = {name: stages[name] for name in options.stages.split(",")}
    name = torch.cuda.get_device_name() if device.type == "cuda" else "host"
    found = [{"figure": "device", "name": name, "torch": torch.__version__}]
    print(json.dumps(found[0]), flush=True)
    with open(options.out or os.devnull, "w") as out:
        out.write(json.dumps(found[0]) + "\n")
        for figure in figures(stages):
            found.append(figure)
            line = json.dumps(figure)
            print(line, flush=True)
            out.write(line + "\n")
            out.flush()
    print_tables(found)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
