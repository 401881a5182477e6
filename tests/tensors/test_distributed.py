"""A loss over the rows of several processes is that of one process with all of them."""

import multiprocessing
import socket

import pytest

from forerank.torch import AcrossProcesses, PairwiseLoss, RankingMetrics, TopLoss
from tensor_cases import assert_close, rows, torch

needs_processes = pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(),
    reason="torch has no gloo backend",
)


LOSSES = {"pairs": PairwiseLoss(), "top": TopLoss(at=0.2)}


def all_rows():
    return [each.cpu() for each in rows(0, 90, classes=3, weighted=True, grouped=True)]


def bounds(n_ranks):
    """Processes with different numbers of rows, one of them without any."""
    return [0, 0, 90] if n_ranks == 2 else [0, 40, 40, 41, 90]


def own_results(rank, n_ranks, group_of_ranks=None):
    """Losses, gradients of the scores and measures on one process."""
    own = slice(*bounds(n_ranks)[rank : rank + 2])
    out = {}
    for name, loss in LOSSES.items():
        for averaged in (False, True):
            s, y, w, group = (each[own].clone() for each in all_rows())
            s = s.float().requires_grad_()
            across = AcrossProcesses(loss, averaged=averaged, process_group=group_of_ranks)
            value = across(s, y, w, group)
            value.backward()
            out[name, averaged] = float(value.detach()), s.grad
    if group_of_ranks is None:
        s, y, w, _ = (each[own] for each in all_rows())
        measures = RankingMetrics(across_processes=True)
        measures.update(s, y, w)
        out["measures"] = {name: float(value) for name, value in measures.compute().items()}
    return out


def process(rank, port, folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=4
    )
    torch.save(own_results(rank, 4), f"{folder}/4-{rank}.pt")
    first_two = torch.distributed.new_group([0, 1])
    if rank < 2:
        torch.save(own_results(rank, 2, first_two), f"{folder}/2-{rank}.pt")
    torch.distributed.destroy_process_group()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What each of 4 processes found, and each of the first 2 as a group."""
    folder = tmp_path_factory.mktemp("processes")
    # Processes of a server that has imported PyTorch, where there are such: it takes seconds.
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    multiprocessing.set_forkserver_preload(["forerank.torch"])
    arguments = free_port(), str(folder)
    torch.multiprocessing.start_processes(process, arguments, nprocs=4, start_method=method)
    return {n: [torch.load(folder / f"{n}-{rank}.pt") for rank in range(n)] for n in (2, 4)}


@needs_processes
@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("n_ranks", [2, 4])
def test_processes_equal_one_process(results, n_ranks, name, averaged):
    s, y, w, group = all_rows()
    s = s.float().requires_grad_()
    expected = LOSSES[name](s, y, w, group)
    expected.backward()
    found = [result[name, averaged] for result in results[n_ranks]]
    for value, _ in found:
        assert value == pytest.approx(float(expected.detach()), rel=1e-6)
    gradient = torch.cat([each for _, each in found])
    assert_close(gradient / (n_ranks if averaged else 1), s.grad, 1e-6)


@needs_processes
def test_measures_of_all_processes(results):
    s, y, w, _ = all_rows()
    measures = RankingMetrics()
    measures.update(s, y, w)
    whole = {name: float(value) for name, value in measures.compute().items()}
    for result in results[4]:
        assert result["measures"] == pytest.approx(whole, rel=1e-12)
