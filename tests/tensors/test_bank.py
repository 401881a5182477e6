"""The memory bank: the last rows of each class are partners of a batch."""

import pytest

from forerank.torch import MemoryBankLoss, pairwise_loss
from tensor_cases import DEVICE, LOSSES, assert_close, margin_loss, torch


def batches(seed, sizes, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    for n in sizes:
        s = torch.randn(n, generator=generator, dtype=torch.float64).to(dtype)
        y = (torch.rand(n, generator=generator) < 0.3).to(torch.int64)
        w = torch.rand(n, generator=generator, dtype=torch.float64) + 0.1
        yield s.to(DEVICE), y.to(DEVICE), w.to(DEVICE)


def definition(loss, batch, past, size):
    """Pairs of a row of the batch with one of the batch or of the last `size` rows of its class."""
    s, y, w = batch
    partners = []
    for label in (0, 1):
        old = [(a[b == label], c[b == label]) for a, b, c in past]
        scores, weights = (
            torch.cat([each[k] for each in old]) if old else s[:0].detach() for k in (0, 1)
        )
        partners.append((scores[-size:].detach(), weights[-size:]))
    positive, negative = (s[y == 1], w[y == 1]), (s[y == 0], w[y == 0])
    value = total = 0.0
    for (si, wi), (sj, wj) in (
        (positive, negative),
        (positive, partners[0]),
        (partners[1], negative),
    ):
        weight = wi[:, None] * wj
        value = value + (weight * margin_loss(loss, si[:, None] - sj)).sum()
        total = total + weight.sum()
    return value / total if float(total.detach()) > 0.0 else 0.0 * s.sum()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("size", [5, 40, 1000])
def test_bank_is_the_definition(size, loss):
    bank, past = MemoryBankLoss(loss, size=size), []
    for s, y, w in batches(0, [3, 20, 1, 60, 31, 20]):
        s.requires_grad_()
        found, expected = bank(s, y, w), definition(loss, (s, y, w), past, size)
        assert_close(found.detach(), expected.detach(), 1e-10)
        gradients = [torch.autograd.grad(value, s)[0] for value in (found, expected)]
        assert_close(*gradients, 1e-10)
        past.append((s.detach(), y, w))


def test_large_batches_and_banks():
    """Enough pairs for sums on a grid."""
    bank, past = MemoryBankLoss("logistic", size=3000), []
    for s, y, w in batches(1, [4000, 2000, 900]):
        s.requires_grad_()
        found, expected = bank(s, y, w), definition("logistic", (s, y, w), past, 3000)
        gradients = [torch.autograd.grad(value, s)[0] for value in (found, expected)]
        assert_close(found.detach(), expected.detach(), 1e-10)
        assert_close(*gradients, 1e-10)
        past.append((s.detach(), y, w))


def test_an_empty_bank_is_the_loss_of_the_batch():
    (s, y, w), *_ = batches(2, [50])
    assert_close(MemoryBankLoss("hinge")(s, y, w), pairwise_loss(s, y, w, loss="hinge"), 1e-12)


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
    assert bank(*second) == other(*second)


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
