"""A small network on a table: cross-entropy, all pairs, or the top of the list?

    python examples/network.py [picture.png]

Needs the extra torch. Rows have ten columns, of which four decide, with a product that a linear
model cannot see; three in a hundred are positive. The same network is trained with
BCEWithLogitsLoss, PairwiseLoss, MemoryBankLoss and TopLoss, and judged on rows not seen, after each
epoch: AUC, average precision, and the share of positives above the first negative.
"""

import sys

import torch
from torch import Tensor, nn

from forerank.torch import MemoryBankLoss, PairwiseLoss, RankingMetrics, TopLoss

EPOCHS = 15


def losses() -> dict[str, nn.Module]:
    return {
        "BCE": nn.BCEWithLogitsLoss(),
        "pairs": PairwiseLoss("logistic"),
        "pairs + bank": MemoryBankLoss("logistic", size=1000),
        "top": TopLoss("logistic", at=0.05),
    }


def make_rows(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    X = torch.randn(n, 10, generator=generator)
    s = X[:, 0] + X[:, 1] * X[:, 2] - 0.5 * X[:, 3] ** 2
    s = s + 0.7 * torch.randn(n, generator=generator)
    return X, (s > torch.quantile(s, 0.97)).float()


def train(loss: nn.Module, rows: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]) -> list[dict]:
    """The measures on test rows after each epoch."""
    torch.manual_seed(0)
    X, y = rows
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(),
                          nn.Linear(32, 1))  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    curve = []
    for _ in range(EPOCHS):
        for batch in torch.randperm(y.numel()).split(128):
            optimizer.zero_grad()
            loss(model(X[batch])[:, 0], y[batch]).backward()
            optimizer.step()
        metrics = RankingMetrics(k=100)
        with torch.no_grad():
            metrics.update(model(test[0]), test[1])
        curve.append({name: value.item() for name, value in metrics.compute().items()})
    return curve


def draw(curves: dict[str, list[dict]], path: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axis, (key, title) in zip(
        figure.subplots(1, 2), (("auc", "AUC"), ("pos_at_top", "pos@top")), strict=True
    ):
        for name, curve in curves.items():
            axis.plot(range(1, EPOCHS + 1), [epoch[key] for epoch in curve], label=name)
        axis.set_xlabel("epoch")
        axis.set_ylabel(f"{title} on test rows")
        axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=120)


def main(picture: str | None = None) -> None:
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    rows, test = make_rows(6000, generator), make_rows(6000, generator)
    curves = {}
    print(f"{'trained with':>14} {'AUC':>7} {'AP':>7} {'pos@top':>8}")
    for name, loss in losses().items():
        curves[name] = train(loss, rows, test)
        last = curves[name][-1]
        print(f"{name:>14} {last['auc']:7.4f} {last['ap']:7.4f} {last['pos_at_top']:8.4f}")
    if picture:
        draw(curves, picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
