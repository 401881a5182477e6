"""Products of GPU kernels equal those of their plain twins."""

import numpy as np
import pytest

from forerank.torch.design import TensorDesign
from tensor_cases import DEVICE, torch

if DEVICE.type != "cuda":
    pytest.skip("the kernels need a GPU: FORERANK_DEVICE=cuda", allow_module_level=True)
pytest.importorskip("triton", reason="triton is not installed")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "shape", [(1, 1), (7, 3), (1000, 28), (70_001, 28), (3000, 100), (3000, 128)]
)
def test_products(shape, dtype):
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(*shape, generator=generator, dtype=torch.float64).to(DEVICE, dtype)
    g = torch.randn(shape[0], generator=generator, dtype=torch.float64).to(DEVICE)
    w = np.cos(np.arange(shape[1] + 1))
    mean, unit = np.sin(np.arange(shape[1])), 1.0 + np.arange(shape[1])
    design = TensorDesign(X, intercept=True, mean=mean, unit=unit)
    assert design._kernels is not None
    plain = TensorDesign(X.double(), intercept=True, mean=mean, unit=unit)
    plain._kernels = None
    np.testing.assert_allclose(design.scores(w).cpu(), plain.scores(w).cpu(), atol=1e-12)
    np.testing.assert_allclose(design.adjoint(g), plain.adjoint(g), rtol=1e-10, atol=1e-10)


def test_wide_matrices_use_the_twin():
    assert TensorDesign(torch.ones(10, 129, device=DEVICE))._kernels is None
