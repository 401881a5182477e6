"""The memory bank: the last rows of each class are partners of a batch."""

import pytest

from forerank.torch import MemoryBankLoss, pairwise_loss
from tensor_cases import DEVICE, LOSSES, assert_close, margin_loss, torch, value_and_gradient


def batches(seed, sizes, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    for n in sizes:
        s = torch.randn(n, generator=generator, dtype=torch.float64).to(dtype)
        y = (torch.rand(n, generator=generator) < 0.3).to(torch.int64)
        w = torch.rand(n, generator=generator, dtype=torch.float64) + 0.1
        yield s.to(DEVICE), y.to(DEVICE), w.to(DEVICE)


def definition(loss, batch, past, size):
    """The value, with a matrix of pairs, and the gradient with partners that count as fixed."""
    s, y, w = batch
    partners, share = [], []
    for label in (0, 1):
        old = [(a[b == label], c[b == label]) for a, b, c in past]
        scores, weights = (torch.cat([s[:0].detach(), *(each[k] for each in old)]) for k in (0, 1))
        share.append(float(weights.sum() + w[y == label].sum()))
        scores, weights = scores[-size:], weights[-size:]
        own = s.detach()[y == label], w[y == label]
        partners.append((torch.cat([own[0], scores]), torch.cat([own[1], weights])))
    value = 0.0 * s.sum()
    for label, sign in ((1, 1.0), (0, -1.0)):
        other, weight = partners[1 - label]
        if weight.numel() and (y == label).any():
            losses = margin_loss(loss, sign * (s[y == label][:, None] - other))
            by_row = (losses * weight).sum(1) / weight.sum()
            value = value + (w[y == label] * by_row).sum() / (
                float(w.sum()) * share[label] / sum(share)
            )
    return 0.5 * value.detach(), torch.autograd.grad(value, s)[0]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("size", [5, 40, 1000])
def test_bank_is_the_definition(size, loss):
    bank, past = MemoryBankLoss(loss, size=size), []
    for s, y, w in batches(0, [3, 20, 1, 60, 31, 20]):
        s.requires_grad_()
        found, expected = bank(s, y, w), definition(loss, (s, y, w), past, size)
        assert_close(found.detach(), expected[0], 1e-10)
        assert_close(torch.autograd.grad(found, s)[0], expected[1], 1e-10)
        past.append((s.detach(), y, w))


def test_large_batches_and_banks():
    """Enough pairs for sums on a grid."""
    bank, past = MemoryBankLoss("logistic", size=3000), []
    for s, y, w in batches(1, [4000, 2000, 900]):
        s.requires_grad_()
        found, expected = bank(s, y, w), definition("logistic", (s, y, w), past, 3000)
        assert_close(found.detach(), expected[0], 1e-10)
        assert_close(torch.autograd.grad(found, s)[0], expected[1], 1e-10)
        past.append((s.detach(), y, w))


@pytest.mark.parametrize("loss", LOSSES)
def test_an_empty_bank_is_the_loss_of_the_batch(loss):
    (s, y, w), *_ = batches(2, [50])
    found = value_and_gradient(lambda s: MemoryBankLoss(loss)(s, y, w), s)
    expected = value_and_gradient(lambda s: pairwise_loss(s, y, w, loss=loss), s)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, 1e-12)


def test_gradients_of_batches_add_up_to_that_of_all_rows():
    """With scores that do not change and a bank that holds all rows, the mean gradient of the
    batches of an epoch is the gradient over all pairs.
    """
    (s, y, _), *_ = batches(6, [2000])
    bank = MemoryBankLoss(size=2000)
    bank(s, y)
    bank.eval()
    parts = []
    for rows in torch.arange(2000, device=DEVICE).split(16):
        # The batch is in the bank already: it counts once more among 2,000.
        parts.append(value_and_gradient(lambda s, rows=rows: bank(s, y[rows]), s[rows])[1])
    expected = value_and_gradient(lambda s: pairwise_loss(s, y), s)[1]
    assert_close(torch.cat(parts) / len(parts), expected, 0.05)


def test_evaluation_leaves_the_bank_alone_and_reset_empties_it():
    bank = MemoryBankLoss(size=10)
    first, second = batches(3, [50, 50])
    bank(*first)
    kept = bank.positive_scores.clone()
    bank.eval()
    bank(*second)
    assert torch.equal(bank.positive_scores, kept)
    bank.reset()
    assert_close(bank(*second), pairwise_loss(*second), 1e-12)
    assert "size=10" in repr(bank)


def test_contents_are_saved_and_loaded():
    bank, other = MemoryBankLoss(size=10), MemoryBankLoss(size=10)
    first, second = batches(4, [50, 50])
    bank(*first)
    other.load_state_dict(bank.state_dict())
    assert_close(other(*second), bank(*second), 1e-12)


def test_precision_and_detached_rows():
    bank = MemoryBankLoss(size=10)
    for s, y, w in batches(5, [50, 50], torch.float32):
        s.requires_grad_()
        value = bank(s, y, w)
        assert value.dtype == torch.float32
        value.backward()
        assert s.grad.dtype == torch.float32
    assert not bank.positive_scores.requires_grad


def test_bad_size():
    with pytest.raises(ValueError, match="from 1 on; got 0"):
        MemoryBankLoss(size=0)


def test_scores_that_are_not_finite_are_not_kept():
    clean, spoilt = MemoryBankLoss(size=8), MemoryBankLoss(size=8)
    batch = torch.tensor([0.3, -0.2, 1.0]), torch.tensor([1, 0, 0])
    value = spoilt(torch.tensor([torch.nan, 0.0]), torch.tensor([1, 0]))
    assert torch.isnan(value)
    clean(torch.tensor([0.0]), torch.tensor([0]))
    assert spoilt(*batch) == clean(*batch)
