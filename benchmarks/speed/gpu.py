"""PairwiseLoss and fits on a device, beside BCEWithLogitsLoss, a pointwise fit and the host.

    PYTHONPATH=src python benchmarks/speed/gpu.py [--device cuda] [--quick] [--json FILE]

Needs torch, numpy, scipy, scikit-learn and numba only. Prints one JSON line per figure:

- agreement: loss and gradient against the double loop, in single and double precision;
- loss: forward and backward on a million scores against BCEWithLogitsLoss; peak memory;
- matrix: the largest batch of which the matrix of pairs fits into memory;
- fits: rows x 28 float32 to a tolerance of 1e-3, products with X as a share of the bandwidth;
- growth: the time of a fit from 1e5 to 1e8 rows;
- host: the same fit on arrays, for as many rows.
"""

import argparse
import json
import warnings
from statistics import median
from time import perf_counter

import numpy as np
import torch

from forerank import PairwiseRanker, PointwiseRanker
from forerank.torch import pairwise_loss
from forerank.torch.design import TensorDesign
from forerank.torch.margins import MARGIN_LOSSES
from forerank.torch.objectives import TensorAllPairs, TensorPointwise

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
    """Bytes that a call has at most, beyond those before it."""
    if device.type != "cuda":
        return None
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


def losses(device, n):
    generator = torch.Generator().manual_seed(0)
    y = (torch.rand(n, generator=generator) < 0.1).float().to(device)
    s = (torch.randn(n, generator=generator).to(device) + y).requires_grad_()
    bce = torch.nn.BCEWithLogitsLoss()

    def of(call):
        def both():
            s.grad = None
            call().backward()

        return both

    reference = of(lambda: bce(s, y))
    bce_seconds = seconds(reference, device, 20)
    yield {"figure": "loss", "n": n, "loss": "BCEWithLogitsLoss", "seconds": bce_seconds}
    for loss in MARGIN_LOSSES:
        both = of(lambda loss=loss: pairwise_loss(s, y, loss=loss))
        took = seconds(both, device, 20)
        yield {
            "figure": "loss",
            "n": n,
            "loss": loss,
            "seconds": took,
            "within 5 x BCE + 3 ms": took <= 5.0 * bce_seconds + 3e-3,
            "peak bytes per score": (peak_memory(both, device) or 0) / n,
        }


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
    "all pairs, squared hinge": lambda: PairwiseRanker(),
    "all pairs, logistic": lambda: PairwiseRanker("logistic"),
    "single rows, logistic": lambda: PointwiseRanker(),
}


def parts(X, y, device):
    """Times of the parts of a fit."""
    n, entries = X.shape[0], X.numel() * X.element_size()
    design, w = TensorDesign(X), np.ones(X.shape[1]) / 10
    s = design.scores(w)
    for name, call in {
        "scores": lambda: design.scores(w),
        "adjoint": lambda: design.adjoint(s),
        "matrix times vector in torch alone": lambda: X @ X[0],
    }.items():
        took = seconds(call, device)
        share = entries / took / BANDWIDTH
        yield {"figure": "part", "n": n, "part": name, "seconds": took, "bandwidth share": share}
    for loss in ("squared_hinge", "logistic"):
        objective = TensorAllPairs(y, loss)
        took = seconds(lambda objective=objective: objective.at(s), device, 5)
        yield {"figure": "part", "n": n, "part": f"pairs, {loss}", "seconds": took}
    objective = TensorPointwise(y == 1, "logistic")
    took = seconds(lambda: objective.at(s), device, 5)
    yield {"figure": "part", "n": n, "part": "single rows, logistic", "seconds": took}


def fits(device, n, growth):
    X, y = make_rows(n, device)
    yield from parts(X, y, device)
    for name, make in FITS.items():
        times, ranker = [], None
        for _ in range(4):  # the first is not counted: libraries are loaded
            took, ranker = fitted(make, X, y, device)
            times.append(took)
        yield {
            "figure": "fit",
            "n": n,
            "fit": name,
            "seconds": median(times[1:]),
            "iterations": ranker.n_iter_,
            "steps": [[step.n_rows, round(step.seconds, 4)] for step in ranker.history_],
            "optimality": ranker.optimality_,
            "objective": ranker.objective_,
        }
    del X, y
    for rows in growth:
        X, y = make_rows(rows, device)
        for name, make in FITS.items():
            fitted(make, X, y, device)
            yield {
                "figure": "growth",
                "n": rows,
                "fit": name,
                "seconds": fitted(make, X, y, device)[0],
            }
        del X, y
        if device.type == "cuda":
            torch.cuda.empty_cache()


def on_host(n, device):
    """The same fits on arrays, and the largest difference of the weights at a tight tolerance."""
    X, y = make_rows(n, device)
    A, b = X.cpu().numpy(), y.cpu().numpy()
    for name, make in FITS.items():
        make().fit(A[:5000], b[:5000])  # compiles
        clock = perf_counter()
        make().fit(A, b)
        yield {"figure": "host", "n": n, "fit": name, "seconds": perf_counter() - clock}
    some = min(n, 200_000)
    for name, make in FITS.items():
        here = make().set_params(tol=1e-7).fit(X[:some], y[:some])
        there = make().set_params(tol=1e-7).fit(A[:some], b[:some])
        error = abs(here.coef_.cpu().numpy() - there.coef_).max() / abs(there.coef_).max()
        yield {"figure": "same weights", "n": some, "fit": name, "error": float(error)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows")
    parser.add_argument("--json", help="file for the figures, one JSON object per line")
    options = parser.parse_args()
    device, small = torch.device(options.device), options.quick
    scale = 100 if small else 1
    growth = [10**5 // scale, 10**6 // scale, 10**7 // scale, 10**8 // scale]
    stages = [
        agreement(device),
        losses(device, 10**6 // scale),
        matrix(device, 2**12 if small else 2**20),
        fits(device, 11_000_000 // scale, growth),
        on_host(11_000_000 // scale, device),
    ]
    name = torch.cuda.get_device_name() if device.type == "cuda" else "host"
    found = [{"figure": "device", "name": name, "torch": torch.__version__}]
    print(json.dumps(found[0]), flush=True)
    for stage in stages:
        try:
            for figure in stage:
                print(json.dumps(figure), flush=True)
                found.append(figure)
        except torch.cuda.OutOfMemoryError as error:
            print(json.dumps({"figure": "out of memory", "error": str(error)[:200]}), flush=True)
    if options.json:
        with open(options.json, "w") as out:
            out.writelines(json.dumps(figure) + "\n" for figure in found)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
