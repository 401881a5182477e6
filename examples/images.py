"""A small convolutional network on images made here: rare rings among crosses and bars.

    python examples/images.py [picture.png]

Needs the extra torch. Images of 16 x 16 pixels with noise show a ring (two in a hundred), a cross
or a bar, anywhere. With 64 images in a batch one of them is a ring: PairwiseLoss has few pairs,
MemoryBankLoss compares with the rings of earlier batches, TopLoss with the likeliest others.
"""

import sys

import torch
from torch import Tensor, nn

from forerank.torch import MemoryBankLoss, PairwiseLoss, RankingMetrics, TopLoss

EPOCHS = 6
SIZE = 16


def losses() -> dict[str, nn.Module]:
    return {
        "BCE": nn.BCEWithLogitsLoss(),
        "pairs": PairwiseLoss("logistic"),
        "pairs + bank": MemoryBankLoss("logistic", size=500),
        "top": TopLoss("logistic", at=0.05),
    }


def make_images(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images of shape (n, 1, 16, 16), and whether each shows a ring."""
    kind = torch.rand(n, generator=generator)
    centre = 5.0 + 6.0 * torch.rand(n, 2, 1, 1, generator=generator)
    place = torch.arange(SIZE, dtype=torch.float32)
    dx, dy = place[None, :, None] - centre[:, 0], place[None, None, :] - centre[:, 1]
    near = torch.maximum(dx.abs(), dy.abs()) < 4.0
    ring = ((dx**2 + dy**2).sqrt() - 3.0).abs() < 0.7
    bar = (dx.abs() < 0.7) & near
    cross = bar | ((dy.abs() < 0.7) & near)
    positive = kind < 0.02
    shape = torch.where(
        positive[:, None, None], ring, torch.where((kind < 0.5)[:, None, None], bar, cross)
    )
    noise = 0.5 * torch.randn(n, SIZE, SIZE, generator=generator)
    return (shape.float() + noise)[:, None], positive.float()


def train(loss: nn.Module, rows: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]) -> list[dict]:
    """The measures on test images after each epoch."""
    torch.manual_seed(0)
    X, y = rows
    model = nn.Sequential(
        nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(1),
        nn.Flatten(), nn.Linear(16, 1),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    curve = []
    for _ in range(EPOCHS):
        for batch in torch.randperm(y.numel()).split(64):
            optimizer.zero_grad()
            loss(model(X[batch])[:, 0], y[batch]).backward()
            optimizer.step()
        metrics = RankingMetrics(k=50)
        with torch.no_grad():
            for some, labels in zip(test[0].split(500), test[1].split(500), strict=True):
                metrics.update(model(some), labels)
        curve.append({name: value.item() for name, value in metrics.compute().items()})
    return curve


def draw(curves: dict[str, list[dict]], test: tuple[Tensor, Tensor], path: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    left, *others = figure.subplots(1, 3)
    order = torch.argsort(test[1], descending=True, stable=True)
    some = torch.cat([test[0][order[:3], 0], test[0][order[-6:], 0]])
    grid = torch.cat([torch.cat(list(some[k : k + 3]), 1) for k in (0, 3, 6)])
    left.imshow(grid.numpy(), cmap="gray")
    left.set_title("first row: rings")
    left.set_axis_off()
    for axis, (key, title) in zip(others, (("auc", "AUC"), ("pos_at_top", "pos@top")), strict=True):
        for name, curve in curves.items():
            axis.plot(range(1, EPOCHS + 1), [epoch[key] for epoch in curve], label=name)
        axis.set_xlabel("epoch")
        axis.set_ylabel(f"{title} on test images")
        axis.grid(alpha=0.3)
    figure.legend(*others[0].get_legend_handles_labels(), loc="outside upper right", ncols=4)
    figure.savefig(path, dpi=120)


def main(picture: str | None = None) -> None:
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    rows, test = make_images(3000, generator), make_images(3000, generator)
    curves = {}
    print(f"{'trained with':>14} {'AUC':>7} {'AP':>7} {'pos@top':>8}")
    for name, loss in losses().items():
        curves[name] = train(loss, rows, test)
        last = curves[name][-1]
        print(f"{name:>14} {last['auc']:7.4f} {last['ap']:7.4f} {last['pos_at_top']:8.4f}")
    if picture:
        draw(curves, test, picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
