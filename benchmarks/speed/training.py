"""Networks trained with BCE, PairwiseLoss, a memory bank, TopLoss and LibAUC's AUCM loss.

    scripts/bench training [--seeds 5] [--out FOLDER]

Three tables and one set of images, where positives are rare in a batch. Each method has two
learning rates; the rate and the epoch are chosen by the AUC on validation rows, and the figures are
those of test rows, as means over the seeds with their standard errors. Writes training.json, a
Markdown table and learning curves into the folder. About a quarter of an hour on one core. AUCM is
left out where libauc is not installed.
"""

import argparse
import json
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from scipy import sparse
from torch import nn

from forerank.data.datasets import load
from forerank.torch import CombinedLoss, MemoryBankLoss, PairwiseLoss, RankingMetrics, TopLoss

MEASURES = {"auc": "AUC", "ap": "AP", "pos_at_top": "pos@top"}
BATCH = 128
EPOCHS = 10
RATES = (1e-3, 5e-3)
# Rows for training, validation and tests together, so that the study takes minutes.
MOST_ROWS = {"tables": 10_000, "images": 6_000}


def rows_of(name, seed):
    """Standardised rows and labels of a data set: at most so many, drawn at random."""
    data = load(name)
    generator = np.random.default_rng(seed)
    y = data.y == data.y.max()
    is_image = name == "mnist_0"
    order = generator.permutation(y.size)
    if is_image:  # a tenth of the zeros: about one positive in a batch
        order = order[~y[order] | (generator.random(y.size) < 0.1)]
    order = order[: MOST_ROWS["images" if is_image else "tables"]]
    X = data.X[order]
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    X = X.astype(np.float32)
    if is_image:
        X = np.pad(X, ((0, 0), (0, 784 - X.shape[1]))).reshape(-1, 1, 28, 28) / X.max()
    else:
        X = (X - X.mean(0)) / np.maximum(X.std(0), 1e-3)
    return torch.from_numpy(X), torch.from_numpy(y[order].astype(np.float32))


def network(X, seed):
    torch.manual_seed(seed)
    if X.ndim == 4:
        return nn.Sequential(
            nn.Conv2d(1, 8, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.Flatten(), nn.Linear(16 * 49, 1),
        )  # fmt: skip
    return nn.Sequential(
        nn.Linear(X.shape[1], 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
    )


def aucm():
    from libauc.losses.auc import AUCMLoss

    return AUCMLoss()


METHODS = {
    "BCE": lambda: nn.BCEWithLogitsLoss(),
    "pairs": lambda: PairwiseLoss("logistic"),
    "pairs + bank": lambda: MemoryBankLoss("logistic", size=2048),
    "pairs and points": lambda: CombinedLoss(0.5),
    "top": lambda: TopLoss("logistic", at=0.05),
    "AUCM (LibAUC)": aucm,
}


def optimizer_of(loss, model, rate):
    if type(loss).__name__ != "AUCMLoss":
        return torch.optim.Adam(model.parameters(), lr=rate)
    from libauc.optimizers import PESG

    # Its own optimiser, at its usual rates: a hundred times those of Adam.
    return PESG(
        model.parameters(), loss_fn=loss, lr=100 * rate, epoch_decay=2e-3, weight_decay=1e-5,
        verbose=False, device="cpu",
    )  # fmt: skip


def measured(model, X, y):
    metrics = RankingMetrics(k=100)
    model.eval()
    with torch.no_grad():
        metrics.update(model(X), y)
    model.train()
    return {name: float(value) for name, value in metrics.compute().items()}


def train(method, rate, seed, splits):
    """Measures of validation and test rows after each epoch."""
    (X, y), validation, test = splits
    model, loss = network(X, seed), METHODS[method]()
    is_aucm = method.startswith("AUCM")
    optimizer = optimizer_of(loss, model, rate)
    generator = torch.Generator().manual_seed(seed)
    curve = []
    for _ in range(EPOCHS):
        for rows in torch.randperm(y.numel(), generator=generator).split(BATCH):
            optimizer.zero_grad()
            scores = model(X[rows])[:, 0]
            # AUCM is defined on probabilities, and without positives it is NaN.
            if is_aucm and not y[rows].any():
                continue
            value = loss(torch.sigmoid(scores) if is_aucm else scores, y[rows])
            value.backward()
            optimizer.step()
        curve.append({"validation": measured(model, *validation), "test": measured(model, *test)})
    return curve


def split(X, y):
    """Half for training, a quarter each for validation and tests."""
    a, b = y.numel() // 2, 3 * y.numel() // 4
    return [(X[:a], y[:a]), (X[a:b], y[a:b]), (X[b:], y[b:])]


def run(names, seeds, methods):
    for name in names:
        for seed in range(seeds):
            splits = split(*rows_of(name, seed))
            for method in methods:
                for rate in RATES:
                    clock = perf_counter()
                    curve = train(method, rate, seed, splits)
                    yield {
                        "data": name, "seed": seed, "method": method, "rate": rate,
                        "positives": float(splits[0][1].mean()), "curve": curve,
                        "seconds": perf_counter() - clock,
                    }  # fmt: skip


def chosen(records, data, method):
    """The test measures of each seed at the rate and the epoch of the best validation AUC, and the
    curves of test measures at that rate.
    """
    best, curves = [], []
    own = [each for each in records if each["data"] == data and each["method"] == method]
    for seed in sorted({each["seed"] for each in own}):
        runs = [each["curve"] for each in own if each["seed"] == seed]
        curve = max(runs, key=lambda c: max(e["validation"]["auc"] for e in c))
        best.append(max(curve, key=lambda e: e["validation"]["auc"])["test"])
        curves.append([epoch["test"] for epoch in curve])
    return best, curves


def table(records):
    lines = ["| data | method | AUC | AP | pos@top |", "|---|---|---|---|---|"]
    for data in dict.fromkeys(each["data"] for each in records):
        for method in dict.fromkeys(each["method"] for each in records):
            best, _ = chosen(records, data, method)
            cells = []
            for key in MEASURES:
                values = np.array([each[key] for each in best])
                error = values.std(ddof=1) / values.size**0.5 if values.size > 1 else np.nan
                cells.append(f"{values.mean():.4f} ± {error:.4f}")
            lines.append(f"| {data} | {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(records, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(each["data"] for each in records))
    figure, axes = plt.subplots(
        2, len(names), figsize=(3.4 * len(names), 5.6), sharex=True, layout="constrained",
        squeeze=False,
    )  # fmt: skip
    for column, data in enumerate(names):
        for row, key in enumerate(("auc", "pos_at_top")):
            axis = axes[row, column]
            for method in dict.fromkeys(each["method"] for each in records):
                curves = [[e[key] for e in curve] for curve in chosen(records, data, method)[1]]
                axis.plot(range(1, EPOCHS + 1), np.mean(curves, axis=0), label=method)
            axis.set_title(data if row == 0 else "")
            axis.grid(alpha=0.3)
            if key == "auc":  # the first epochs of slow methods would hide the differences
                last = [
                    np.mean([curve[-1][key] for curve in chosen(records, data, method)[1]])
                    for method in dict.fromkeys(each["method"] for each in records)
                ]
                axis.set_ylim(min(last) - 0.03, max(last) + 0.01)
        axes[1, column].set_xlabel("epoch")
    axes[0, 0].set_ylabel("test AUC")
    axes[1, 0].set_ylabel("test pos@top")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", default="w8a_train,bank,letter,mnist_0")
    parser.add_argument("--methods", help="names of methods, separated by commas")
    parser.add_argument("--out", default="bench-output/training")
    parser.add_argument("--page-only", action="store_true", help="of an earlier run")
    options = parser.parse_args()
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / "training.json"
    if options.page_only:
        records = [json.loads(line) for line in record.read_text().splitlines()]
    else:
        torch.set_num_threads(1)
        methods = list(METHODS)
        try:
            aucm()
        except ImportError:
            print("libauc is not installed: AUCM is left out")
            methods = methods[:-1]
        methods = options.methods.split(",") if options.methods else methods
        records = []
        with record.open("w") as out:
            for each in run(options.data.split(","), options.seeds, methods):
                records.append(each)
                out.write(json.dumps(each) + "\n")
                out.flush()
                best = max(epoch["validation"]["auc"] for epoch in each["curve"])
                shown = (each["data"], each["seed"], each["method"], each["rate"])
                print(*shown, f"{best:.4f} {each['seconds']:.1f} s", flush=True)
    (folder / "training.md").write_text(table(records) + "\n")
    print(table(records))
    draw(records, folder / "training.png")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
