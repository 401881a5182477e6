"""Fits on files larger than memory: memory, time, and bytes that are read, against a bare read of
the file, a fit in memory, and SGDClassifier.partial_fit.

scripts/bench streaming [--rows 1000000 10000000] [--columns 50] [--kinds npy parquet]
                        [--tols 1e-3 1e-6] [--real] [--memory 4GB] [--in-memory] [--sgd]

Files are made below TMPDIR and removed. Every measurement is a process of its own, which starts
with the files out of the page cache; memory is its largest resident set, `read` what was read after
the scan, in sizes of the files. `made`: Gaussian columns, 4 % positives. `--real`: the rows of
covtype_binary (needs FORERANK_DATA), repeated with noise of a tenth of each column's deviation.
`--in-memory` and `--sgd` add the two comparisons for .npy files.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

BLOCK = 100_000
ALPHA = 1e-4


def made_blocks(n: int, d: int):
    rng = np.random.default_rng(0)
    w = rng.standard_normal(d) / np.sqrt(d)
    for begin in range(0, n, BLOCK):
        X = rng.standard_normal((min(BLOCK, n - begin), d), dtype=np.float32)
        yield X, (X @ w + rng.logistic(size=len(X)) > 3.5).astype(np.int8)


def real_blocks(n: int):
    from forerank.data.datasets import load

    rng = np.random.default_rng(0)
    data = load("covtype_binary")
    X = np.asarray(data.X.todense() if hasattr(data.X, "todense") else data.X, dtype=np.float32)
    y = np.asarray(data.y)
    positive = (y == np.unique(y)[-1]).astype(np.int8)
    scale = 0.1 * X.std(axis=0)
    for begin in range(0, n, BLOCK):
        rows = rng.integers(0, len(X), min(BLOCK, n - begin))
        noise = rng.standard_normal((rows.size, X.shape[1]), dtype=np.float32) * scale
        yield X[rows] + noise, positive[rows]


def write_files(folder: Path, kind: str, n: int, blocks) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer, file, labels = None, None, []
    for X, y in blocks:
        if kind == "npy":
            if file is None:
                file = (folder / "X.npy").open("wb")
                np.lib.format.write_array_header_1_0(
                    file, {"descr": "<f4", "fortran_order": False, "shape": (n, X.shape[1])}
                )
            file.write(np.ascontiguousarray(X).data)
            labels.append(y)
        else:
            table = pa.table({**{f"c{k}": X[:, k] for k in range(X.shape[1])}, "y": y})
            if writer is None:
                writer = pq.ParquetWriter(folder / "X.parquet", table.schema)
            writer.write_table(table)
    if writer is not None:
        writer.close()
    if file is not None:
        file.close()
        np.save(folder / "y.npy", np.concatenate(labels))


def drop_from_cache(folder: Path) -> None:
    os.sync()
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def open_files(folder: Path, memory: str):
    import forerank

    if (folder / "X.npy").exists():
        return forerank.open_rows(folder / "X.npy", folder / "y.npy", memory=memory)
    return forerank.open_rows(folder / "X.parquet", "y", memory=memory)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def auc_of_first(rows, ranker) -> float:
    from forerank.metrics import roc_auc

    scores, labels, n = [], [], 0
    for block in rows.blocks():
        scores.append(block.X @ ranker.coef_[0])
        labels.append(block.codes)
        n += block.n_rows
        if n >= 1_000_000:
            break
    return float(roc_auc(np.concatenate(labels), np.concatenate(scores)))


def job_fit(folder: Path, options) -> dict:
    from forerank import PairwiseRanker

    begin = perf_counter()
    rows = open_files(folder, options.memory)
    n = rows.n_rows
    scanned = perf_counter()
    ranker = PairwiseRanker(options.loss, alpha=ALPHA, tol=options.tol).fit(rows)
    fitted = perf_counter()
    found = {"rows": n, "scan": scanned - begin, "fit": fitted - scanned,
             "passes": rows.n_passes, "iterations": ranker.n_iter_,
             "read": rows.bytes_read / size_of(folder),
             "optimality": ranker.optimality_}  # fmt: skip
    found["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    found["auc"] = auc_of_first(rows, ranker)
    begin = perf_counter()
    for _ in rows.blocks():
        pass
    found["bare read of the stream"] = perf_counter() - begin
    rows.close()
    return found


def job_read(folder: Path, options) -> dict:
    """A bare read of the file, twice: cold, and from the page cache where it fits."""
    buffer, seconds = bytearray(2**23), []
    for _ in range(2):
        begin = perf_counter()
        with (folder / "X.npy").open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
        seconds.append(perf_counter() - begin)
    return {"cold": seconds[0], "again": seconds[1]}


def job_evaluate(folder: Path, options) -> dict:
    """Value and gradient over all rows, in one pass as in a fit at tol 1e-3 and in two, each of
    which starts with the file out of the page cache.
    """
    from forerank.objectives.parts import PairParts, Point, evaluate

    rows = open_files(folder, options.memory)
    d = rows.scan.moments.about.size
    mean, unit = rows.scan.moments.units(PairParts(options.loss), False)
    point = Point(np.full(d, 0.1), mean, unit)
    found = {}
    for name, enough in (("one pass", lambda gradient: np.inf), ("two passes", None)):
        for _ in range(2):  # the first compiles
            drop_from_cache(folder)
            begin = perf_counter()
            evaluate(PairParts(options.loss), point, rows.over_parts, accuracy=3e-4, enough=enough,
                     second_moment=float(d))  # fmt: skip
            found[name] = perf_counter() - begin
    return found


def job_memory(folder: Path, options) -> dict:
    from forerank import PairwiseRanker

    begin = perf_counter()
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    loaded = perf_counter()
    PairwiseRanker(options.loss, alpha=ALPHA, tol=options.tol).fit(X, y)
    found = {"load": loaded - begin, "fit": perf_counter() - loaded}
    return found | {"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def job_sgd(folder: Path, options) -> dict:
    """SGDClassifier over blocks until its AUC is that of the fit less 1e-4, at most ten epochs."""
    from sklearn.linear_model import SGDClassifier

    begin = perf_counter()
    rows = open_files(folder, options.memory)
    mean, unit = rows.scan.moments.units(_point_parts(), True)
    model = SGDClassifier(loss="log_loss", alpha=ALPHA, average=True, random_state=0)
    auc, epochs = 0.0, 0
    while auc < options.goal - 1e-4 and epochs < 10:
        for block in rows.blocks():
            model.partial_fit((block.X - mean[:-1]) / unit[:-1], block.codes, classes=[0, 1])
        epochs += 1
        seconds = perf_counter() - begin
        shown = type("Scaled", (), {"coef_": model.coef_ / unit[:-1]})
        auc = auc_of_first(rows, shown)
    return {"seconds": seconds, "epochs": epochs, "auc": auc}


def _point_parts():
    from forerank.objectives.parts import PointParts

    return PointParts("logistic")


JOBS = {"fit": job_fit, "read": job_read, "evaluate": job_evaluate, "memory": job_memory,
        "sgd": job_sgd}  # fmt: skip


def measured(job: str, folder: Path, options, **changes) -> dict:
    drop_from_cache(folder)
    given = {"memory": options.memory, "loss": options.loss, **changes}
    command = [sys.executable, __file__, "--job", job, "--folder", str(folder)]
    for name, value in given.items():
        command += [f"--{name}", str(value)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout)


def shown(title: str, found: dict) -> None:
    values = (f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v:,}" for k, v in found.items())
    print(f"  {title}: " + ", ".join(values), flush=True)


def benchmark(options) -> None:
    seconds: dict[tuple, float] = {}
    sets = ["made", "real"] if options.real else ["made"]
    for name in sets:
        for kind in options.kinds:
            for n in options.rows:
                with tempfile.TemporaryDirectory(prefix="forerank-bench-") as folder:
                    path = Path(folder)
                    blocks = made_blocks(n, options.columns) if name == "made" else real_blocks(n)
                    write_files(path, kind, n, blocks)
                    print(f"{name}, {kind}, {n:,} rows, {size_of(path) / 1e9:.2f} GB")
                    for tol in options.tols:
                        found = measured("fit", path, options, tol=tol)
                        seconds[name, kind, tol, n] = found["scan"] + found["fit"]
                        auc = found["auc"]
                        shown(f"fit, tol {tol:g}", found)
                    if kind == "npy":
                        read = measured("read", path, options)
                        shown("bare read", read)
                        found = measured("evaluate", path, options)
                        shown("evaluation", found)
                        share = read["cold"] / found["one pass"]
                        print(f"  speed of an evaluation, relative to a bare read: {share:.2f}")
                    if kind == "npy" and options.in_memory:
                        shown("in memory", measured("memory", path, options, tol=options.tols[0]))
                    if kind == "npy" and options.sgd:
                        goal = auc
                        shown("partial_fit", measured("sgd", path, options, goal=goal))
    for (name, kind, tol, n), time in seconds.items():
        for m in options.rows:
            if m > n:
                ratio = seconds[name, kind, tol, m] / time
                print(f"{name}, {kind}, tol {tol:g}: time({m:,}) / time({n:,}) = {ratio:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6])
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--kinds", nargs="+", default=["npy", "parquet"])
    parser.add_argument("--tols", type=float, nargs="+", default=[1e-3, 1e-6])
    parser.add_argument("--loss", default="squared_hinge")
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--in-memory", action="store_true")
    parser.add_argument("--sgd", action="store_true")
    for name, kind in (("--job", str), ("--folder", Path), ("--tol", float), ("--goal", float)):
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.rows = [int(n) for n in options.rows]
    if options.job:
        print(json.dumps(JOBS[options.job](options.folder, options)))
    else:
        benchmark(options)


if __name__ == "__main__":
    main()
