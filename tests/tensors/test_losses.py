"""Losses and their gradients equal the definition over all pairs."""

import numpy as np
import pytest

import oracles
from forerank.losses import get_loss
from forerank.torch import (
    CombinedLoss,
    PairwiseLoss,
    TopLoss,
    combined_loss,
    pairwise_loss,
    top_loss,
)
from tensor_cases import (
    DEVICE,
    LOSSES,
    SMOOTH,
    TOLERANCE,
    assert_close,
    margin_loss,
    pair_matrix,
    pairwise_definition,
    rows,
    torch,
    value_and_gradient,
)

KINDS = {
    "two classes": {},
    "many rows": {"n": 700},
    "ties": {"ties": True},
    "weights": {"weighted": True},
    "groups": {"grouped": True, "weighted": True},
    "large groups": {"n": 2400, "grouped": True},
    "grades": {"classes": 5, "ties": True},
    "grades in groups": {"classes": 7, "grouped": True, "weighted": True, "ties": True},
    "wide": {"scale": 30.0},
    "many wide rows": {"n": 700, "scale": 30.0, "weighted": True},
    "narrow": {"n": 700, "scale": 1e-3},
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_pairwise_loss(kind, loss, dtype):
    s, y, w, group = rows(1, **KINDS[kind])
    if loss == "exponential" and "wide" in kind:
        s = s / 10.0
    s = s.to(dtype)
    found = value_and_gradient(lambda s: pairwise_loss(s, y, w, group, loss=loss), s)
    expected = value_and_gradient(lambda s: pairwise_definition(s, y, w, group, loss=loss), s)
    assert found[0].dtype == found[1].dtype == dtype
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, TOLERANCE[dtype])


@pytest.mark.parametrize("loss", LOSSES)
def test_the_definition_of_the_library(loss):
    """The matrix of these tests agrees with the double loop that all other tests use."""
    s, y, w, group = (each.cpu() for each in rows(2, 40, classes=4, weighted=True, grouped=True))
    pairs = oracles.pairs_of(y.tolist(), group.tolist(), lambda a, b: a > b)
    value, gradient, product = oracles.all_pairs(
        get_loss(loss), s.numpy(), w.numpy(), pairs, np.cos(np.arange(40))
    )
    found = value_and_gradient(lambda s: pairwise_loss(s, y, w, group, loss=loss), s)
    assert float(found[0]) == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(found[1].numpy(), gradient, atol=1e-12)
    if loss in SMOOTH:
        s.requires_grad_()
        first = torch.autograd.grad(pairwise_loss(s, y, w, group, loss=loss), s, create_graph=True)[
            0
        ]
        u = torch.cos(torch.arange(40, dtype=torch.float64))
        np.testing.assert_allclose(torch.autograd.grad(first @ u, s)[0], product, atol=1e-12)


@pytest.mark.parametrize("reduction", ["sum", "none"])
@pytest.mark.parametrize("loss", LOSSES)
def test_reductions(loss, reduction):
    s, y, w, group = rows(3, classes=3, weighted=True, grouped=True)
    found = pairwise_loss(s, y, w, group, loss=loss, reduction=reduction)
    expected = pairwise_definition(s, y, w, group, loss=loss, reduction=reduction)
    assert_close(found, expected, 1e-10)
    if reduction == "none":
        gradients = [
            value_and_gradient(lambda s, r=r: pairwise_loss(s, y, w, group, loss=loss,
                                                            reduction=r).sum(), s)[1]
            for r in ("sum", "none")
        ]  # fmt: skip
        assert_close(gradients[1], gradients[0], 1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_of_weights(loss):
    s, y, w, group = rows(4, 60, weighted=True, grouped=True)
    found = value_and_gradient(lambda w: pairwise_loss(s, y, w, group, loss=loss), w + 0.1)
    expected = value_and_gradient(lambda w: pairwise_definition(s, y, w, group, loss=loss), w + 0.1)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, 1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_kinks_take_the_derivative_from_the_right(loss):
    s = torch.tensor([1.0, 0.0], dtype=torch.float64, device=DEVICE)
    y = torch.tensor([1, 0], device=DEVICE)
    slope = float(get_loss(loss).slope(1.0))
    _, gradient = value_and_gradient(lambda s: pairwise_loss(s, y, loss=loss), s)
    assert gradient.tolist() == pytest.approx([slope, -slope])


@pytest.mark.parametrize("function", [pairwise_loss, top_loss, combined_loss])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("labels", [[], [1], [0], [1, 1, 1], [0, 0, 0, 0]])
def test_without_pairs_the_loss_of_pairs_is_zero(function, loss, labels):
    s = torch.linspace(-1.0, 1.0, len(labels), device=DEVICE)
    y = torch.tensor(labels, device=DEVICE)
    options = {"gamma": 1.0} if function is combined_loss else {}
    value, gradient = value_and_gradient(lambda s: function(s, y, loss=loss, **options), s)
    assert float(value) == 0.0
    assert not gradient.any()


@pytest.mark.parametrize("loss", LOSSES)
def test_groups_of_one_class_do_not_count(loss):
    s, y, w, group = rows(5, weighted=True, grouped=True)
    y = torch.where(group < 3, 1, y)
    kept = group >= 3
    found = pairwise_loss(s, y, w, group, loss=loss)
    expected = pairwise_loss(s[kept], y[kept], w[kept], group[kept], loss=loss)
    assert_close(found, expected, 1e-12)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge", "squared"])
@pytest.mark.parametrize("scale", [1e2, 1e3, 1e4, 1e6, 1e12])
def test_huge_ranges_of_scores(loss, scale):
    s, y, _, _ = rows(6, 900, scale=scale)
    found = value_and_gradient(lambda s: pairwise_loss(s, y, loss=loss), s)
    expected = value_and_gradient(lambda s: pairwise_definition(s, y, loss=loss), s)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, 1e-9)


@pytest.mark.parametrize("scale", [1e4, 1e6])
def test_wide_scores_near_each_other(scale):
    """Half of the rows within one unit, the others far apart: near pairs and straight lines."""
    s, y, w, _ = rows(7, 900, weighted=True, scale=scale)
    s[::2] = torch.linspace(0.0, 1.0, 450, dtype=torch.float64, device=DEVICE)
    found = value_and_gradient(lambda s: pairwise_loss(s, y, w), s)
    expected = value_and_gradient(lambda s: pairwise_definition(s, y, w, loss="logistic"), s)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, 1e-9)


@pytest.mark.parametrize("n", [10, 1000])
def test_nan_is_not_hidden(n):
    s, y, _, _ = rows(8, n)
    y[0], s[0] = 1 - y[1], torch.nan
    assert torch.isnan(pairwise_loss(s, y))


def test_a_constant_and_the_order_of_rows_do_not_matter():
    s, y, w, group = rows(9, 500, classes=3, weighted=True, grouped=True)
    order = torch.randperm(500, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    for loss in LOSSES:
        here = pairwise_loss(s, y, w, group, loss=loss)
        there = pairwise_loss(s[order] + 5.0, y[order], w[order], group[order], loss=loss)
        assert_close(there, here, 1e-10)


# --- Precision ---


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("loss", LOSSES)
def test_half_precision(loss, dtype):
    s, y, w, _ = rows(10, 300, weighted=True)
    s = s.to(dtype)
    found = value_and_gradient(lambda s: pairwise_loss(s, y, w, loss=loss, reduction="sum"), s)
    expected = value_and_gradient(
        lambda s: pairwise_definition(s, y, w, loss=loss, reduction="sum"), s.double()
    )
    assert found[0].dtype == torch.float32
    assert found[1].dtype == dtype
    assert_close(found[0], expected[0], 1e-6)
    assert_close(found[1], expected[1], 4.0 * torch.finfo(dtype).eps)


def test_autocast():
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 1, device=DEVICE)
    X, y = torch.randn(600, 8, device=DEVICE), torch.arange(600, device=DEVICE) % 2
    with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
        scores = model(X)
        value = PairwiseLoss()(scores, y)
    assert scores.dtype == torch.bfloat16
    assert value.dtype == torch.float32
    expected = pairwise_definition(scores[:, 0], y, loss="logistic")
    assert float(value.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)
    value.backward()
    assert model.weight.grad.dtype == torch.float32


# --- Derivatives ---

# Sums on a GPU are added in any order.
CHECKS = {"nondet_tol": 0.0 if DEVICE.type == "cpu" else 1e-9}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradcheck(loss, reduction):
    s, y, w, group = rows(11, 14, classes=3, weighted=True)
    group = torch.arange(14, device=DEVICE) % 2

    def function(s, w):
        return pairwise_loss(s, y, w, group, loss=loss, reduction=reduction)

    inputs = s.requires_grad_(), (w + 0.5).requires_grad_()
    assert torch.autograd.gradcheck(function, inputs, **CHECKS)
    if loss in SMOOTH:
        assert torch.autograd.gradgradcheck(function, inputs, **CHECKS)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("function", [top_loss, combined_loss])
def test_gradcheck_of_other_losses(function, loss):
    s, y, w, _ = rows(12, 14, weighted=True)
    s.requires_grad_()
    assert torch.autograd.gradcheck(lambda s: function(s, y, w, loss=loss), (s,), **CHECKS)
    assert torch.autograd.gradgradcheck(lambda s: function(s, y, w, loss=loss), (s,), **CHECKS)


def test_curvature_product_on_a_grid():
    """The second derivative of many rows, where sums are convolutions."""
    s, y, w, _ = rows(13, 1500, weighted=True)
    u = torch.cos(torch.arange(1500, dtype=torch.float64, device=DEVICE))

    def product(function):
        x = s.clone().requires_grad_()
        first = torch.autograd.grad(function(x), x, create_graph=True)[0]
        return torch.autograd.grad(first @ u, x)[0]

    expected = product(lambda s: pairwise_definition(s, y, w, loss="logistic"))
    assert_close(product(lambda s: pairwise_loss(s, y, w)), expected, 1e-10)


# --- The top ---


def top_definition(s, y, w, group, loss, at):
    """Positives against the mean of the highest negatives, one group after the other."""
    value, total = 0.0, 0.0
    for g in group.unique().tolist():
        own = group == g
        negative, positive = own & (y == 0) & (w > 0.0), own & (y == 1) & (w > 0.0)
        if not negative.any():
            continue
        order = torch.argsort(s[negative], descending=True, stable=True)
        scores, weights = s[negative][order], w[negative][order]
        if at == "max":
            threshold = scores[0]
        else:
            depth = min(at, float(weights.sum())) if isinstance(at, int) else at * weights.sum()
            before = torch.cumsum(weights, 0) - weights
            share = torch.minimum(weights, (depth - before).clamp(min=0.0)) / depth
            threshold = (share * scores).sum()
        value = value + (w[positive] * margin_loss(loss, s[positive] - threshold)).sum()
        total = total + w[positive].sum()
    return value / total


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("at", ["max", 1, 3, 1000, 0.1, 0.5])
@pytest.mark.parametrize("grouped", [False, True])
def test_top_loss(grouped, at, loss, dtype):
    s, y, w, group = rows(14, weighted=True, grouped=True)
    s, w = s.to(dtype), (5.0 * w).ceil()
    if not grouped:
        group = torch.zeros_like(group)
    given = group if grouped else None
    found = value_and_gradient(lambda s: top_loss(s, y, w, given, loss=loss, at=at), s)
    expected = value_and_gradient(lambda s: top_definition(s.double(), y, w, group, loss, at), s)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, TOLERANCE[dtype])


def test_top_loss_at_ties():
    s = torch.tensor([1.0, 1.0, 0.5, 2.0], dtype=torch.float64, device=DEVICE)
    y = torch.tensor([0, 0, 0, 1], device=DEVICE)
    value, gradient = value_and_gradient(lambda s: top_loss(s, y, loss="hinge", at=2), s - 0.5 * y)
    assert float(value) == 0.5
    assert gradient.tolist() == [0.5, 0.5, 0.0, -1.0]


# --- Pairs and points ---


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0])
def test_combined_loss(gamma, loss):
    s, y, w, group = rows(15, weighted=True, grouped=True)

    def definition(s):
        points = (w * margin_loss(loss, torch.where(y == 1, s, -s))).sum() / w.sum()
        pairs = pairwise_definition(s, y, w, group, loss=loss)
        return gamma * pairs + (1.0 - gamma) * points

    found = value_and_gradient(lambda s: combined_loss(s, y, w, group, gamma=gamma, loss=loss), s)
    for a, b in zip(found, value_and_gradient(definition, s), strict=True):
        assert_close(a, b, 1e-10)


def test_combined_loss_without_pairs_is_cross_entropy():
    s, y, _, _ = rows(16)
    found = combined_loss(s, y, gamma=0.0)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(s, y.double())
    assert_close(found, expected, 1e-12)


# --- Modules ---


def test_modules_are_the_functions():
    s, y, w, group = rows(17, weighted=True, grouped=True)
    rest = y, w, group
    pairs = PairwiseLoss("hinge", reduction="sum")
    top = TopLoss("logistic", at=0.2, reduction="sum")
    both = CombinedLoss(0.2, "squared")
    for module, expected in (
        (pairs, pairwise_loss(s, *rest, loss="hinge", reduction="sum")),
        (top, top_loss(s, *rest, loss="logistic", at=0.2, reduction="sum")),
        (both, combined_loss(s, *rest, gamma=0.2, loss="squared")),
    ):
        assert_close(module(s, *rest), expected, 1e-12)
        assert_close(module(s[:, None], *rest), expected, 1e-12)
    assert "hinge" in repr(pairs)
    assert "0.2" in repr(top)
    assert "gamma=0.2" in repr(both)


# PyTorch looks at an attribute of its own with the first warning, which it does not hide as an
# error; some versions use functions of their own that they call deprecated.
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_model(backend):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    model = model.to(DEVICE)
    X, y = torch.randn(400, 5, device=DEVICE), torch.arange(400, device=DEVICE) % 3 == 0

    def step(X, y):
        return PairwiseLoss("logistic")(model(X), y)

    gradients = []
    for function in (step, torch.compile(step, backend=backend)):
        model.zero_grad()
        function(X, y).backward()
        gradients.append([each.grad.clone() for each in model.parameters()])
    for a, b in zip(*gradients, strict=True):
        assert_close(b, a, 1e-6)
    torch._dynamo.reset()


# --- Bad input ---


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, y: PairwiseLoss("log"), "'log' is not known; choose one of 'exponential'"),
        (lambda s, y: PairwiseLoss(reduction="max"), "choose one of 'mean', 'sum' and 'none'"),
        (lambda s, y: TopLoss(at=0), "an integer from 1 on"),
        (lambda s, y: TopLoss(at=1.5), "strictly between 0 and 1; got 1.5"),
        (lambda s, y: CombinedLoss(2.0), "from 0 .* to 1 .*, not 2.0"),
        (lambda s, y: pairwise_loss(s, y[:-1]), r"y must have one number per row, 6; got .*\(5,\)"),
        (lambda s, y: pairwise_loss(s, y, s[:2]), "weight must have one number per row"),
        (lambda s, y: pairwise_loss(s.reshape(2, 3), y), r"shape \(n,\) or \(n, 1\); got \(2, 3\)"),
    ],
)
def test_bad_values(call, message):
    s, y, _, _ = rows(18, 6)
    with pytest.raises(ValueError, match=message):
        call(s, y)


def test_scores_of_another_type():
    y = torch.tensor([0, 1], device=DEVICE)
    with pytest.raises(TypeError, match=r"floating point numbers; got torch\.int64"):
        pairwise_loss(y, y)
    with pytest.raises(TypeError, match="floating point numbers; got list"):
        pairwise_loss([1.0, 2.0], y)


def test_labels_of_any_type():
    s, y, _, _ = rows(19)
    expected = pairwise_loss(s, y)
    for labels in (y.bool(), y.float(), 2 * y - 1, y.tolist(), y.cpu().numpy() + 0.5):
        assert_close(pairwise_loss(s, labels), expected, 1e-12)


def test_pairs_are_not_laid_out():
    """A hundred thousand rows have 2.5e9 pairs: a matrix of them would not fit."""
    s, y, _, _ = rows(20, 100_000)
    value, gradient = value_and_gradient(lambda s: pairwise_loss(s, y), s)
    chosen = torch.arange(0, 100_000, 1000, device=DEVICE)
    weight = (y[chosen, None] - y[None, :]).double() / pair_weight(y)
    slopes = -torch.sigmoid(-weight.sign() * (s[chosen, None] - s[None, :])) * weight
    assert_close(gradient[chosen], slopes.sum(1), 1e-10)
    assert 0.0 < float(value) < 2.0


def pair_weight(y):
    return float((y == 1).sum()) * float((y == 0).sum())


def test_pair_matrix_of_three_rows():
    y = torch.tensor([2, 0, 1], device=DEVICE)
    assert pair_matrix(y).tolist() == [[0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


@pytest.mark.parametrize("loss", [pairwise_loss, top_loss, combined_loss])
def test_invalid_labels_and_weights_give_nan(loss):
    s, y = torch.tensor([0.5, -0.5, 1.0]), torch.tensor([1.0, 0.0, 0.0])
    assert torch.isfinite(loss(s, y))
    assert torch.isnan(loss(s, torch.tensor([1.0, 0.0, torch.nan])))
    assert torch.isnan(loss(s, y, torch.tensor([1.0, 1.0, -0.5])))
