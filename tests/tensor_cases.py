"""Rows for the tests of `forerank.torch`, plain definitions of its losses, and the device.

FORERANK_DEVICE names the device of the tests, by default the host.
"""

import os

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

DEVICE = torch.device(os.environ.get("FORERANK_DEVICE", "cpu"))
LOSSES = ("exponential", "hinge", "logistic", "squared", "squared_hinge")
SMOOTH = ("exponential", "logistic", "squared")
# Largest relative error in each precision.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-6}


def margin_loss(loss, t):
    """The loss of margins t, written out."""
    if loss == "exponential":
        return torch.exp(-t)
    if loss == "logistic":
        return torch.logaddexp(torch.zeros_like(t), -t)
    below = torch.where(t < 1.0, 1.0 - t, 0.0)
    return {"hinge": below, "squared": (1.0 - t) ** 2, "squared_hinge": below**2}[loss]


def pair_matrix(y, w=None, group=None):
    """w_i w_j where row i should be above row j, else 0."""
    w = torch.ones(y.shape, dtype=torch.float64, device=y.device) if w is None else w.double()
    counts = y[:, None] > y[None, :]
    if group is not None:
        counts = counts & (group[:, None] == group[None, :])
    return w[:, None] * w[None, :] * counts


def pairwise_definition(s, y, w=None, group=None, *, loss, reduction="mean"):
    """The loss over all pairs, with a matrix of them."""
    s, weight = s.double(), pair_matrix(y, w, group)
    losses = weight * margin_loss(loss, torch.where(weight > 0.0, s[:, None] - s[None, :], 1.0))
    if reduction == "none":
        return 0.5 * (losses.sum(0) + losses.sum(1))
    return losses.sum() / weight.sum() if reduction == "mean" else losses.sum()


def rows(seed, n=120, *, classes=2, weighted=False, grouped=False, ties=False, scale=1.0):
    """Scores in double precision, labels, weights and groups on the device."""
    generator = torch.Generator().manual_seed(seed)
    s = scale * torch.randn(n, generator=generator, dtype=torch.float64)
    y = torch.randint(0, classes, (n,), generator=generator)
    w = torch.rand(n, generator=generator, dtype=torch.float64)
    w[::7] = 0.0
    group = torch.randint(0, 6, (n,), generator=generator)
    s = (4.0 * s).round() / 4.0 if ties else s
    return (
        s.to(DEVICE),
        y.to(DEVICE),
        w.to(DEVICE) if weighted else None,
        group.to(DEVICE) if grouped else None,
    )


def value_and_gradient(function, s):
    """The value of a function of the scores, and its gradient."""
    s = s.detach().clone().requires_grad_()
    value = function(s)
    return value.detach(), torch.autograd.grad(value, s)[0]


def assert_close(found, expected, tolerance):
    """Found equals expected up to a tolerance relative to the largest number."""
    found, expected = found.double(), expected.double()
    largest = float(expected.abs().max()) if expected.numel() else 0.0
    assert found.shape == expected.shape
    assert float((found - expected).abs().max()) <= tolerance * max(largest, 1e-300)
