"""The recorded terminal session of docs/files.md: makes its files, runs its commands, compares or writes it anew.

FORERANK_DATA=... python tests/tour.py      # write the page anew
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from forerank import datasets
from forerank.demo import write_tables

PAGE = Path(__file__).parent.parent / "docs" / "files.md"
# As the archive of the UCI repository has them.
BANK = (
    "age job marital education default balance housing loan contact day month duration campaign pdays previous poutcome"
)


def write_files(directory: Path) -> None:
    """bank as the repository ships it, every fifth row apart as new clients; a9a and its test rows as svmlight."""
    bank = bank_table()
    new = np.arange(len(bank)) % 5 == 4
    for name, rows in (("bank.csv", ~new), ("new.csv", new)):
        bank[rows].to_csv(directory / name, index=False, sep=";", quoting=2)
    for name, file in (("a9a", "a9a.svm"), ("a9a_test", "a9a-test.svm")):
        data = datasets.load(name)
        dump_svmlight_file(sp.csr_matrix(data.X), data.y, str(directory / file), zero_based=False)


def bank_table() -> pd.DataFrame:
    """The table behind the archive's columns of ones and zeros: words where there were words."""
    with np.load(datasets.data_directory() / "bank.npz") as archive:
        X, y, names = archive["X"], archive["y"], [str(name) for name in archive["feature_names"]]
    columns = {}
    for column in BANK.split():
        mine = [k for k, name in enumerate(names) if name == column or name.startswith(f"{column}_")]
        if len(mine) == 1:
            columns[column] = X[:, mine[0]].astype(np.int64)
        else:
            words = np.array([names[k].removeprefix(f"{column}_") for k in mine])
            columns[column] = words[np.argmax(X[:, mine], axis=1)]
    return pd.DataFrame(columns).assign(y=np.where(y > 0, "yes", "no"))


def replayed(page: str, directory: Path) -> str:
    """The page with the output of its commands, run one after the other."""

    def run(block: re.Match) -> str:
        commands = [line for line in block[1].splitlines() if line.startswith("$ ")]
        return "```console\n" + "".join(f"{line}\n{output_of(line[2:], directory)}" for line in commands) + "```"

    return re.sub(r"```console\n(.*?)```", run, page, flags=re.DOTALL)


def output_of(command: str, directory: Path) -> str:
    bin_directory = Path(sys.executable).parent
    surroundings = {**os.environ, "COLUMNS": "110", "PATH": f"{bin_directory}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env=surroundings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def main() -> None:
    readme = PAGE.parent.parent / "README.md"
    with tempfile.TemporaryDirectory() as directory:
        write_files(Path(directory))
        PAGE.write_text(replayed(PAGE.read_text(), Path(directory)))
        write_tables(Path(directory))
        output_of("forerank fit tumours.csv --target diagnosis -o my.forerank", Path(directory))
        readme.write_text(replayed(readme.read_text(), Path(directory)))


if __name__ == "__main__":
    main()
