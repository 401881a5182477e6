"""From a file to a model and to a ranked list: time and memory of whole commands, against pyarrow
and scikit-learn.

scripts/bench files [--rows 1000000] [--gigabytes 5] [--only fit|wide|rank]

`fit`: `forerank fit` on a CSV file of a million rows, start to end, against a process that reads
the same file with pyarrow and prepares the same columns with scikit-learn. `wide`: the same command
on 30 columns whose curves matter, so that additive models and trees are fitted. `rank`: `forerank
rank` on a CSV file of five gigabytes (the whole list, and its best thousand), against a process
that reads the file with pyarrow, block by block. Memory is the largest resident set of each
process.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
from pyarrow import csv

JOBS = [
    "admin.",
    "blue-collar",
    "housemaid",
    "management",
    "retired",
    "services",
    "student",
    "technician",
    "unknown",
]
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
NUMBERS = ["age", "balance", "day", "duration", "campaign", "pdays", "previous"]
CATEGORIES = [
    "job",
    "marital",
    "education",
    "default",
    "housing",
    "loan",
    "contact",
    "month",
    "poutcome",
]

READ_AND_PREPARE = f"""
import sys
from pyarrow import csv
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
frame = csv.read_csv(sys.argv[1]).to_pandas()
numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
words = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=0.001, max_categories=200)
ColumnTransformer([("n", numbers, {NUMBERS}), ("c", words, {CATEGORIES})]).fit_transform(frame)
"""
READ = """
import sys
from pyarrow import csv
print(sum(batch.num_rows for batch in csv.open_csv(sys.argv[1])))
"""
READ_LARGE_BLOCKS = """import sys from pyarrow import csv print(sum(batch.num_rows for batch in
csv.open_csv(sys.argv[1], csv.ReadOptions(block_size=1 << 24))))"""


def write_calls(path: Path, n_rows: int, seed: int = 0) -> None:
    """Made-up telephone calls of a bank: an id, seven numbers, nine categories, and whether the
    client agreed.
    """
    rng = np.random.default_rng(seed)

    def words(*choices: str) -> np.ndarray:
        return np.array(choices)[rng.integers(0, len(choices), size)]

    with path.open("wb") as file:
        for begin in range(0, n_rows, 200_000):
            size = min(200_000, n_rows - begin)
            age, balance = rng.integers(18, 95, size), np.round(rng.normal(1300, 3000, size), 2)
            duration, job = (
                np.round(rng.exponential(250, size), 1),
                rng.integers(0, len(JOBS), size),
            )
            housing = rng.integers(0, 2, size)
            signal = 0.01 * age + balance / 5000 + duration / 250 + 0.3 * (job % 4) - 0.5 * housing
            table = pa.table(
                {
                    "client": np.arange(begin, begin + size),
                    "age": age,
                    "job": np.array(JOBS)[job],
                    "marital": words("married", "single", "divorced"),
                    "education": words("primary", "secondary", "tertiary", "unknown"),
                    "default": np.where(rng.uniform(size=size) < 0.02, "yes", "no"),
                    "balance": balance,
                    "housing": np.array(["no", "yes"])[housing],
                    "loan": words("yes", "no"),
                    "contact": words("cellular", "telephone", "unknown"),
                    "day": rng.integers(1, 31, size),
                    "month": words(*MONTHS),
                    "duration": duration,
                    "campaign": rng.integers(1, 30, size),
                    "pdays": rng.integers(-1, 800, size),
                    "previous": rng.integers(0, 9, size),
                    "poutcome": words("unknown", "failure", "other", "success"),
                    "y": np.where(signal + 1.5 * rng.logistic(size=size) > 3.5, "yes", "no"),
                }
            )
            csv.write_csv(
                table, file, csv.WriteOptions(include_header=begin == 0, quoting_style="none")
            )


def write_wide(path: Path, n_rows: int, seed: int = 0) -> None:
    """Twenty numbers, some skewed and some missing, eight categories, a date, and a label that
    depends on curves of some of them.
    """
    rng = np.random.default_rng(seed)
    colours = np.array(["red", "green", "blue", "black", "white", "yellow", "brown", "grey"])
    cities = np.array([f"city-{k}" for k in range(300)])
    with path.open("wb") as file:
        for begin in range(0, n_rows, 200_000):
            size = min(200_000, n_rows - begin)
            X = rng.standard_normal((size, 20))
            X[:, 10:] = np.exp(X[:, 10:])
            colour, city = rng.integers(0, 8, (size, 6)), rng.integers(0, 300, (size, 2))
            days = np.datetime64("2019-01-01") + rng.integers(0, 1500, size)
            signal = X[:, 0] + 0.5 * np.sin(2.5 * X[:, 1]) + 0.5 * np.log(X[:, 10])
            signal += 0.3 * colour[:, 0] + 0.02 * (city[:, 0] % 20)
            missing = rng.uniform(size=(size, 20)) < 0.02
            missing[:, np.arange(20) % 4 > 0] = False
            columns = {
                f"x{j}": pa.array(np.round(100 * X[:, j], 5), mask=missing[:, j]) for j in range(20)
            }
            columns |= {f"colour{j}": colours[colour[:, j]] for j in range(6)}
            columns |= {f"city{j}": cities[city[:, j]] for j in range(2)}
            noisy = signal + 1.5 * rng.logistic(size=size)
            columns |= {"day": days, "y": np.where(noisy > 4.5, "yes", "no")}
            options = csv.WriteOptions(include_header=begin == 0, quoting_style="none")
            csv.write_csv(pa.table(columns), file, options)


def run(*command: object) -> tuple[float, float]:
    """Seconds and megabytes of a process."""
    begin = perf_counter()
    child = subprocess.Popen([sys.executable, *map(str, command)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{command} failed")
    return perf_counter() - begin, usage.ru_maxrss * 1024 / 1e6


def forerank(*words: object) -> tuple[float, float]:
    return run("-m", "forerank", *words, "--quiet")


def fit(directory: Path, n_rows: int, repeats: int) -> None:
    path, small, model = directory / "calls.csv", directory / "few.csv", directory / "m.forerank"
    write_calls(path, n_rows)
    write_calls(small, 2000)
    size = path.stat().st_size / 1e6
    print(f"fit on {n_rows:,} rows, {size:.0f} MB; medians of {repeats}")
    forerank("fit", small, "-t", "y", "-o", model, "--force")  # compiles
    _, base = forerank("fit", small, "-t", "y", "-o", model, "--force")
    ours = [forerank("fit", path, "-t", "y", "-o", model, "--force") for _ in range(repeats)]
    peer = [run("-c", READ_AND_PREPARE, path) for _ in range(repeats)]
    (our_time, our_memory), (peer_time, peer_memory) = (
        np.median(ours, axis=0),
        np.median(peer, axis=0),
    )
    print(f"  forerank fit                        {our_time:7.1f} s {our_memory:7.0f} MB")
    print(f"  pyarrow and scikit-learn's steps    {peer_time:7.1f} s {peer_memory:7.0f} MB")
    print(f"  time: {our_time / peer_time:.2f} of the peer (at most 2)")
    grown = our_memory - base
    print(
        f"  memory: {our_memory / size:.1f} times the file, of which {base:.0f} MB are there for a "
        f"file of 2,000 rows; beyond them {grown:.0f} MB, {grown / size:.1f} times the file (at "
        "most 4)"
    )


def wide(directory: Path, n_rows: int) -> None:
    path, small, model = directory / "wide.csv", directory / "few.csv", directory / "m.forerank"
    write_wide(path, n_rows)
    write_wide(small, 3000)
    size = path.stat().st_size / 1e6
    forerank("fit", small, "-t", "y", "-o", model, "--force")  # compiles
    _, base = forerank("fit", small, "-t", "y", "-o", model, "--force")
    seconds, memory = forerank("fit", path, "-t", "y", "-o", model, "--force")
    print(f"fit on {n_rows:,} rows of 30 columns, {size:.0f} MB: {seconds:.0f} s (at most 240)")
    print(
        f"  {memory:.0f} MB, {memory / size:.1f} times the file (at most 4); "
        f"{base:.0f} MB for a file of 3,000 rows"
    )


def rank(directory: Path, gigabytes: float) -> None:
    path, small = directory / "calls.csv", directory / "few.csv"
    model, out = directory / "m.forerank", directory / "ranked.csv"
    write_calls(small, 50_000)
    forerank("fit", small, "-t", "y", "-o", model, "--force")
    forerank("rank", model, small, "-o", out, "--force")  # compiles
    n_rows = int(gigabytes * 1e9 / (small.stat().st_size / 50_000))
    write_calls(path, n_rows)
    size = path.stat().st_size / 1e6
    print(f"rank {size / 1e3:.1f} GB, {n_rows:,} rows")
    read, _ = run("-c", READ, path)
    read_large, _ = run("-c", READ_LARGE_BLOCKS, path)
    print(f"  pyarrow reads it               {read:7.1f} s {size / read:6.0f} MB/s")
    print(f"  ... in blocks of 16 MB         {read_large:7.1f} s {size / read_large:6.0f} MB/s")
    for name, words in (("the whole list", ()), ("the best thousand", ("--top", 1000))):
        seconds, memory = forerank("rank", model, path, "-o", out, "--force", *words)
        fastest = min(read, read_large)
        print(
            f"  forerank rank, {name:17s} {seconds:6.1f} s {size / seconds:6.0f} MB/s, "
            f"{memory:.0f} MB of memory; {fastest / seconds:.2f} of the faster reading (at least "
            "0.5)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the file to fit")
    parser.add_argument("--gigabytes", type=float, default=5.0, help="of the file to rank")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=["fit", "wide", "rank"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        if args.only in (None, "fit"):
            fit(Path(directory), args.rows, args.repeats)
        if args.only in (None, "wide"):
            wide(Path(directory), args.rows)
        if args.only in (None, "rank"):
            rank(Path(directory), args.gigabytes)


if __name__ == "__main__":
    main()
