"""Measures over batches equal those of all rows in `forerank.metrics`."""

import pytest

from forerank import metrics
from forerank.torch import RankingMetrics
from tensor_cases import DEVICE, rows, torch


def expected(s, y, w, k):
    s, y = s.cpu().numpy(), y.cpu().numpy()
    w = None if w is None else w.cpu().numpy()
    return {
        "auc": metrics.roc_auc(y, s, sample_weight=w),
        "ap": metrics.average_precision(y, s, sample_weight=w),
        "pos_at_top": metrics.pos_at_top(y, s, sample_weight=w),
        "recall_at_k": metrics.recall_at_k(y, s, k=k, sample_weight=w),
    }


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_batches_equal_the_whole(weighted, ties, seed):
    s, y, w, _ = rows(seed, 200, ties=ties, weighted=weighted)
    s = s + y
    measures = RankingMetrics(k=17)
    for part in torch.arange(200, device=DEVICE).split(33):
        measures(s[part, None], y[part], None if w is None else w[part])
    found = {name: float(value) for name, value in measures.compute().items()}
    assert found == pytest.approx(expected(s, y, w, 17), rel=1e-12)


def test_single_precision_and_reset():
    s, y, _, _ = rows(5)
    measures = RankingMetrics()
    measures.update(s.float().requires_grad_(), y)
    measures.reset()
    measures.update(s.float(), y.bool())
    assert float(measures.compute()["auc"]) == pytest.approx(
        metrics.roc_auc(y.cpu(), s.float().cpu())
    )
    assert measures.compute()["auc"].device.type == DEVICE.type


def test_one_class_and_no_rows():
    measures = RankingMetrics()
    with pytest.raises(ValueError, match="There are no rows: call update"):
        measures.compute()
    measures.update(torch.ones(3, device=DEVICE), [1, 1, 1])
    assert all(torch.isnan(value) for value in measures.compute().values())
    with pytest.raises(ValueError, match="from 1 on; got 0"):
        RankingMetrics(k=0)


def test_scores_that_are_nan_have_no_measures():
    metrics = RankingMetrics()
    metrics.update(torch.full((20,), torch.nan), torch.arange(20) % 2)
    assert all(torch.isnan(value) for value in metrics.compute().values())
