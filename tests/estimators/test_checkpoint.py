"""Checkpoints of fits on rows in parts: a fit that continues has the iterates of one that was never
interrupted, and no file is lost.
"""

import errno
import os
import signal
import subprocess
import sys
import tempfile

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import forerank
from forerank import PairwiseRanker, PointwiseRanker
from forerank.estimators import dask_fits
from forerank.models import Model, load_model, save_model
from forerank.solvers.checkpoints import Checkpoint

N, D = 2_000, 30


def rare_columns(n=N, d=D, seed=0):
    """Columns of zeros and ones, most of them rare, and labels that depend on them: a sample says
    little of them, so that a fit takes several evaluations.
    """
    rng = np.random.default_rng(seed)
    X = (rng.uniform(size=(n, d)) < 0.5 * rng.uniform(size=d) ** 4 + 2.0 / n).astype(np.float32)
    z = X @ rng.standard_normal(d) + rng.logistic(size=n)
    return X, np.digitize(z, np.quantile(z, [0.5, 0.8]))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Paths of X and of labels, grades and groups."""
    folder = tmp_path_factory.mktemp("rows")
    X, grade = rare_columns()
    np.save(folder / "X.npy", X)
    np.save(folder / "grades.npy", grade)
    np.save(folder / "y.npy", (grade > 1).astype(int))
    np.save(folder / "groups.npy", np.arange(N) // 40)
    return folder


def open_rows(files, target="y", memory="2MB", **options):
    return forerank.open_rows(files / "X.npy", files / f"{target}.npy", memory=memory, **options)


class Interrupted:
    """Rows whose pass number `last` + 1 is interrupted by Ctrl-C."""

    def __init__(self, rows, last):
        self.passes, self.last, self.sum = 0, last, rows.over_parts
        rows.over_parts = self

    def __call__(self, function):
        self.passes += 1
        if self.passes > self.last:
            raise KeyboardInterrupt
        return self.sum(function)


def assert_same_fit(ranker, expected):
    np.testing.assert_array_equal(ranker.coef_, expected.coef_)
    np.testing.assert_array_equal(ranker.intercept_, expected.intercept_)
    assert ranker.n_iter_ == expected.n_iter_
    assert ranker.objective_ == expected.objective_
    # From the point of the checkpoint on, the iterates are the same.
    tail = [(step.objective, step.optimality) for step in ranker.history_]
    whole = [(step.objective, step.optimality) for step in expected.history_]
    assert tail == whole[-len(tail) :]


CASES = {
    "squared hinge": (PairwiseRanker(), "y", {}),
    "logistic": (PairwiseRanker("logistic"), "y", {}),
    "grades": (PairwiseRanker(graph="order"), "grades", {}),
    "groups": (PairwiseRanker("logistic"), "y", {"group": "groups"}),
    "points": (PointwiseRanker(), "y", {}),
    "hinge": (PairwiseRanker("hinge"), "y", {}),
    "hinge, groups": (PairwiseRanker("hinge"), "y", {"group": "groups"}),
    "hinge, points": (PointwiseRanker("hinge"), "y", {}),
    "balanced": (PointwiseRanker("squared_hinge", class_weight="balanced"), "y", {}),
    "no intercept": (PointwiseRanker(fit_intercept=False), "y", {}),
}


@pytest.mark.parametrize("case", CASES)
def test_an_interrupted_fit_continues_with_the_same_iterates(case, files, tmp_path):
    ranker, target, options = CASES[case]
    options = {name: np.load(files / f"{value}.npy") for name, value in options.items()}
    hinge = ranker.loss == "hinge"
    ranker = clone(ranker).set_params(alpha=1e-4 if hinge else 1e-5, tol=1e-4 if hinge else 1e-9)
    path = tmp_path / "fit.checkpoint"
    with open_rows(files, target, **options) as rows:
        expected = clone(ranker).fit(rows)
        n_passes = rows.n_passes
    assert expected.n_iter_ > 4
    with open_rows(files, target, **options) as rows:
        Interrupted(rows, n_passes // 2)
        with pytest.raises(KeyboardInterrupt):
            clone(ranker).set_params(checkpoint=path).fit(rows)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["fit.checkpoint"]
    with open_rows(files, target, **options) as rows:
        continued = clone(ranker).set_params(checkpoint=path).fit(rows)
        # Beside the rest: the evaluation at the stored point, and what the interrupted evaluation
        # had done, each up to three passes.
        assert rows.n_passes <= n_passes - n_passes // 2 + 6
        assert rows.n_passes < n_passes
    assert_same_fit(continued, expected)
    assert list(tmp_path.iterdir()) == []


def test_every_interruption_continues(files, tmp_path):
    """Fits that are interrupted again and again, after three passes more each time."""
    ranker = PointwiseRanker(alpha=1e-5, tol=1e-9)
    path = str(tmp_path / "fit.checkpoint")
    with open_rows(files) as rows:
        expected = clone(ranker).fit(rows)
    n_fits, n_done = 0, False
    while not n_done:
        with open_rows(files) as rows:
            Interrupted(rows, 3)
            try:
                continued = clone(ranker).set_params(checkpoint=path).fit(rows)
                n_done = True
            except KeyboardInterrupt:
                n_fits += 1
    assert n_fits >= 2
    assert_same_fit(continued, expected)


def test_many_columns_have_their_metric_from_the_sample(tmp_path):
    X, grade = rare_columns(1_500, 1_050, seed=3)
    np.save(tmp_path / "X.npy", X)
    ranker = PairwiseRanker("logistic", alpha=1e-3, tol=1e-5)
    path = tmp_path / "fit.checkpoint"

    def rows():
        return forerank.open_rows(tmp_path / "X.npy", grade > 1, memory="30MB")

    with rows() as opened:
        assert opened.scan.sample.n_rows < 1_500
        expected = clone(ranker).fit(opened)
        n_passes = opened.n_passes
    with rows() as opened:
        Interrupted(opened, n_passes // 2)
        with pytest.raises(KeyboardInterrupt):
            clone(ranker).set_params(checkpoint=path).fit(opened)
    with np.load(path, allow_pickle=False) as archive:
        assert "hessian" not in archive
        assert len(archive["steps"]) > 1
    with rows() as opened:
        assert_same_fit(clone(ranker).set_params(checkpoint=path).fit(opened), expected)
        assert opened.n_passes < n_passes
    assert not path.exists()


def interrupted(files, path, last=12, ranker=None, **options):
    """A checkpoint at `path`."""
    ranker = PairwiseRanker("logistic", alpha=1e-5, tol=1e-9) if ranker is None else ranker
    with open_rows(files, **options) as rows:
        Interrupted(rows, last)
        with pytest.raises(KeyboardInterrupt):
            clone(ranker).set_params(checkpoint=path).fit(rows)
    return ranker


def test_another_tolerance_and_other_blocks_continue(files, tmp_path):
    path = tmp_path / "fit.checkpoint"
    ranker = interrupted(files, path)
    with open_rows(files, memory="50MB") as rows:
        expected = clone(ranker).fit(rows)
        continued = ranker.set_params(checkpoint=path, tol=1e-8, warm_start=True).fit(rows)
    assert len(continued.history_) <= continued.n_iter_  # iterations before the checkpoint count
    scale = np.abs(expected.coef_).max()
    np.testing.assert_allclose(continued.coef_, expected.coef_, atol=1e-4 * scale)
    assert continued.optimality_ <= 1e-8
    assert not path.exists()


def test_most_iterations_count_those_before(files, tmp_path):
    path = tmp_path / "fit.checkpoint"
    ranker = interrupted(files, path).set_params(checkpoint=path, max_iter=1)
    with open_rows(files) as rows, pytest.warns(ConvergenceWarning, match="max_iter=1"):
        ranker.fit(rows)
    assert ranker.n_iter_ == 1
    assert not path.exists()


def test_the_intercept_is_part_of_the_fit(files, tmp_path):
    """An interruption of the last pass, which sets the intercept, leaves the checkpoint."""
    path = tmp_path / "fit.checkpoint"
    ranker = PairwiseRanker("logistic", alpha=1e-3, checkpoint=path)
    with open_rows(files) as rows:
        expected = clone(ranker).fit(rows)
        n_passes = rows.n_passes
    interrupted(files, path, last=n_passes - 1, ranker=ranker)
    with open_rows(files) as rows:
        assert_same_fit(ranker.fit(rows), expected)
        assert rows.n_passes <= 4


@pytest.mark.parametrize(
    ("changes", "target", "what"),
    [
        ({"alpha": 1e-3}, "y", r"alpha = 1e-05; this fit has alpha = 0.001"),
        ({"loss": "squared_hinge"}, "y", r"loss = 'logistic'; this fit has loss = 'squared_hinge'"),
        ({"graph": "order"}, "grades", r"classes = \['0', '1'\]"),
        ({"graph": [(0, 1)]}, "y", r"edges = \[\[1, 0\]\]; this fit has edges = \[\[0, 1\]\]"),
    ],
)
def test_a_checkpoint_of_another_problem_is_refused(files, tmp_path, changes, target, what):
    path = tmp_path / "fit.checkpoint"
    ranker = interrupted(files, path).set_params(checkpoint=path, **changes)
    before = path.read_bytes()
    with open_rows(files, target) as rows:
        with pytest.raises(ValueError, match=f"another problem: it has .*{what}.*remove the file"):
            ranker.fit(rows)
        assert rows.n_passes == 0
    assert path.read_bytes() == before


def test_a_checkpoint_of_other_rows_is_refused(files, tmp_path):
    path = tmp_path / "fit.checkpoint"
    ranker = interrupted(files, path).set_params(checkpoint=path)
    before = path.read_bytes()
    X, y = np.load(files / "X.npy"), np.load(files / "y.npy")
    one_changed = X.copy()
    one_changed[0, 0] += 1e-3
    swapped = y.copy()
    swapped[[np.argmax(y), np.argmin(y)]] = 0, 1
    for rows, labels, what in (
        (one_changed, y, "columns of other moments"),
        (X, swapped, "columns of other moments"),
        (X[:-1], y[:-1], f"number of rows = {N}; this fit has number of rows = {N - 1}"),
        (X[:, :-1], y, "number of columns = 30; this fit has number of columns = 29"),
    ):
        np.save(tmp_path / "other.npy", rows)
        refused = pytest.raises(ValueError, match=f"belongs to another problem: it has {what}")
        with forerank.open_rows(tmp_path / "other.npy", labels) as opened, refused:
            ranker.fit(opened)
    point = PointwiseRanker(alpha=1e-5, checkpoint=path)
    with open_rows(files) as opened, pytest.raises(ValueError, match="ranker = 'PairwiseRanker'"):
        point.fit(opened)
    assert path.read_bytes() == before


def not_checkpoints(checkpoint):
    """Contents of files that are no checkpoints."""
    with np.load(checkpoint) as archive:
        members = dict(archive)

    def archive_with(folder, **changes):
        path = folder / "made.npz"
        changed = members | changes
        np.savez(path, **{name: value for name, value in changed.items() if value is not None})
        return path.read_bytes()

    def array(folder):
        np.save(folder / "made.npy", np.zeros(3))
        return (folder / "made.npy").read_bytes()

    whole = checkpoint.read_bytes()
    return {
        "empty": lambda folder: b"",
        "text": lambda folder: b"my notes\n",
        "half": lambda folder: whole[: len(whole) // 2],
        "array": array,
        "damaged": lambda folder: whole[:500] + bytes(200) + whole[700:],
        "another archive": lambda folder: archive_with(folder, forerank_checkpoint=None),
        "without weights": lambda folder: archive_with(folder, w=None),
        "of other shapes": lambda folder: archive_with(folder, steps=np.zeros((2, 3))),
        "of objects": lambda folder: archive_with(folder, w=np.array([{}], dtype=object)),
    }


def test_files_that_are_no_checkpoints_are_refused(files, tmp_path):
    path = tmp_path / "fit.checkpoint"
    ranker = interrupted(files, path).set_params(checkpoint=path)
    for make in not_checkpoints(path).values():
        content = make(tmp_path)
        path.write_bytes(content)
        with open_rows(files) as rows:
            with pytest.raises(ValueError, match=r"is not a checkpoint of a fit\. Give the path"):
                ranker.fit(rows)
            assert "scan" not in vars(rows)  # refused before any row is read
        assert path.read_bytes() == content
    ranker.set_params(checkpoint=tmp_path)
    with open_rows(files) as rows, pytest.raises(ValueError, match="is not a checkpoint"):
        ranker.fit(rows)


def test_a_checkpoint_of_another_format_is_refused(files, tmp_path):
    path = tmp_path / "fit.npz"
    ranker = interrupted(files, path).set_params(checkpoint=path)
    with np.load(path) as archive:
        members = dict(archive) | {"forerank_checkpoint": np.array(7)}
    np.savez(path, **members)
    with open_rows(files) as rows, pytest.raises(ValueError, match="format 7; format 1 was"):
        ranker.fit(rows)


def test_rows_in_memory_and_paths_are_refused(files, tmp_path):
    path = tmp_path / "fit.checkpoint"
    X, y = np.load(files / "X.npy"), np.load(files / "y.npy")
    for ranker in (PairwiseRanker(checkpoint=path), PointwiseRanker(checkpoint=path)):
        with pytest.raises(ValueError, match=r"X is in memory. Set checkpoint=None, or open"):
            ranker.fit(X, y)
        with open_rows(files) as rows, pytest.raises(ValueError, match="not for a path of alphas"):
            ranker.alpha_path(rows, None, alphas=3)
    for wrong in (3, True, "", b"fit"):
        with open_rows(files) as rows, pytest.raises(ValueError, match="must be the path of"):
            PairwiseRanker(checkpoint=wrong).fit(rows)
    missing = tmp_path / "none" / "fit.checkpoint"
    with open_rows(files) as rows, pytest.raises(ValueError, match=r"there is no folder .*none"):
        PairwiseRanker(checkpoint=missing).fit(rows)
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_is_cut_off_leaves_the_checkpoint_before(files, tmp_path, monkeypatch):
    path = tmp_path / "fit.checkpoint"
    ranker = interrupted(files, path).set_params(checkpoint=path)
    before, savez = path.read_bytes(), np.savez

    def cut_off(file, **members):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", cut_off)
    with open_rows(files) as rows, pytest.raises(KeyboardInterrupt):
        ranker.fit(rows)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["fit.checkpoint"]
    monkeypatch.setattr(np, "savez", savez)
    with open_rows(files) as rows:
        assert ranker.fit(rows).optimality_ <= 1e-9


def test_a_full_disk_is_named_and_leaves_the_checkpoint_before(files, tmp_path, monkeypatch):
    path, savez, n_written = tmp_path / "fit.checkpoint", np.savez, []

    def full(file, **members):
        n_written.append(1)
        if len(n_written) > n_before:
            file.write(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        savez(file, **members)

    monkeypatch.setattr(np, "savez", full)
    ranker, kept = PairwiseRanker(tol=1e-9, alpha=1e-4, checkpoint=path), []
    for n_before in (0, 2):
        n_written.clear()
        with open_rows(files) as rows, pytest.raises(OSError, match="No space left") as caught:
            ranker.fit(rows)
        assert caught.value.errno == errno.ENOSPC
        assert caught.value.filename == str(path)
        assert "the checkpoint was not written" in str(caught.value)
        assert ("earlier state" in str(caught.value)) == (n_before > 0)
        kept.append([each.name for each in tmp_path.iterdir()])
    assert kept == [[], ["fit.checkpoint"]]
    monkeypatch.setattr(np, "savez", savez)
    with open_rows(files) as rows:
        assert ranker.fit(rows).optimality_ <= 1e-9
    assert list(tmp_path.iterdir()) == []


def test_models_are_saved_with_a_path_and_without_one(files, tmp_path):
    path = tmp_path / "fit.checkpoint"
    ranker = PointwiseRanker(checkpoint=path)
    assert clone(ranker).checkpoint == path
    with open_rows(files) as rows:
        ranker.fit(rows)
    save_model(Model(ranker, columns={}), tmp_path / "saved.forerank")
    loaded = load_model(tmp_path / "saved.forerank").estimator
    assert loaded.checkpoint == str(path)
    assert ranker.checkpoint == path
    np.testing.assert_array_equal(loaded.coef_, ranker.coef_)
    del loaded.__dict__["checkpoint"]  # as in files of earlier versions
    assert clone(loaded).checkpoint is None


@pytest.mark.parametrize("ranker", [PairwiseRanker("logistic"), PointwiseRanker()])
def test_dask_collections(ranker, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_fits, "_MOST_ROWS", 300)
    X, grade = rare_columns()
    rows = da.from_array(X, chunks=(700, D)), da.from_array(grade > 1, chunks=700)
    ranker = clone(ranker).set_params(alpha=1e-5, tol=1e-9)
    path = tmp_path / "fit.checkpoint"
    passes, original, most = [], dask_fits.Partitions.sum, [10**9]

    def counted_sum(self, task):
        passes.append(1)
        if len(passes) > most[0]:
            raise KeyboardInterrupt
        return original(self, task)

    monkeypatch.setattr(dask_fits.Partitions, "sum", counted_sum)
    with dask.config.set(scheduler="synchronous"):
        expected = clone(ranker).fit(*rows)
        n_passes = len(passes)
        ranker.set_params(checkpoint=path)
        del passes[:]
        most[0] = n_passes // 2
        with pytest.raises(KeyboardInterrupt):
            clone(ranker).fit(*rows)
        del passes[:]
        most[0] = 10**9
        other = da.from_array(X[::-1].copy(), chunks=(700, D)), rows[1]
        with pytest.raises(ValueError, match="belongs to another problem"):
            clone(ranker).fit(*other)
        assert passes == []
        continued = clone(ranker).fit(*rows)
    assert len(passes) < n_passes
    assert_same_fit(continued, expected)
    assert not path.exists()


def test_the_hinge_of_streamed_rows_continues_on_dask(files, tmp_path, monkeypatch):
    """From a state whose width needed no pass of its own: streams sum the rows on nodes, partitions
    do not.
    """
    ranker = PairwiseRanker("hinge", alpha=1e-4, tol=1e-4)
    path, save = tmp_path / "fit.checkpoint", Checkpoint.save

    def save_until_narrower(self, state):
        save(self, state)
        width, width_of_pass = state.stage["numbers"][:2]
        if width < width_of_pass:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, open_rows(files) as rows:
        patch.setattr(Checkpoint, "save", save_until_narrower)
        with pytest.raises(KeyboardInterrupt):
            clone(ranker).set_params(checkpoint=path).fit(rows)
    X, y = np.load(files / "X.npy"), np.load(files / "y.npy")
    rows = da.from_array(X, chunks=(700, D)), da.from_array(y, chunks=700)
    with dask.config.set(scheduler="synchronous"):
        continued = clone(ranker).set_params(checkpoint=path, tol=3e-5).fit(*rows)
    assert continued.optimality_ <= 3e-5
    expected = clone(ranker).fit(X, y)
    low = continued.objective_ - continued.gap_, expected.objective_ - expected.gap_
    assert max(low) <= min(continued.objective_, expected.objective_)


FIT_UNTIL_KILLED = """
import sys, time
import numpy as np
import forerank
from forerank.solvers.checkpoints import Checkpoint
folder, path = sys.argv[1:]
save, saved = Checkpoint.save, []

def save_and_wait(self, state):
    save(self, state)
    saved.append(1)
    if len(saved) == 4:
        print("saved", flush=True)
        time.sleep(600)

Checkpoint.save = save_and_wait
rows = forerank.open_rows(folder + "/X.npy", folder + "/y.npy", memory="2MB")
forerank.PairwiseRanker("logistic", alpha=1e-5, tol=1e-9, checkpoint=path).fit(rows)
"""


def test_a_killed_process_continues(files, tmp_path):
    path = tmp_path / "fit.checkpoint"
    process = subprocess.Popen(
        [sys.executable, "-c", FIT_UNTIL_KILLED, str(files), str(path)],
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(tempfile.mkdtemp(dir=tmp_path))},
    )
    assert process.stdout.readline().strip() == b"saved"
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    process.stdout.close()
    ranker = PairwiseRanker("logistic", alpha=1e-5, tol=1e-9)
    with open_rows(files) as rows:
        expected = clone(ranker).fit(rows)
        n_passes = rows.n_passes
        continued = clone(ranker).set_params(checkpoint=path).fit(rows)
        assert rows.n_passes - n_passes < n_passes
    assert_same_fit(continued, expected)
    assert len(continued.history_) == len(expected.history_) - 3
    assert not path.exists()
