from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import threadpool_info

from forerank import PairwiseRanker
from forerank._kernels import serial_blas


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_overlapping_users_leave_blas_as_it_was():
    before = blas_threads()
    first, second = serial_blas(), serial_blas()
    first.__enter__()
    second.__enter__()
    assert set(blas_threads()) == {1}
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before


def test_fits_in_threads_agree_with_fits_in_turn():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60_000, 3)), rng.integers(0, 3, 60_000)
    alone = PairwiseRanker("logistic", graph="order").fit(X, y).coef_
    with ThreadPoolExecutor(6) as pool:
        together = list(
            pool.map(lambda _: PairwiseRanker("logistic", graph="order").fit(X, y).coef_, range(12))
        )
    for coef in together:
        np.testing.assert_array_equal(coef, alone)
