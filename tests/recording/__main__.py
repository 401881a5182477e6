"""Recording of what forerank computes and prints, to check that a change of the code changes no
result.

    python tests/recording write before.json                  # with the code before the change
    python tests/recording compare before.json                # with the code after it
    python tests/recording compare before.json --only 'command/*'
    python tests/recording list

An item is a fit, a simulation, a measure or a command, on small synthetic data with fixed seeds.
It has fields:

- numbers and arrays with all their bits (coefficients, scores, objectives, histories, curves);
- texts (printed output, JSON, ranked lists, pages) and, in their order, the figures in them: where
  a sentence is reworded, its figures must stay the same;
- names of methods and measures, which may be renamed;
- digests of bytes (pictures, exported models).

Durations, dates, versions, digests and directories in texts are masked. An item that raises is
recorded as its exception. `compare` prints the fields that differ and exits with 1 where a figure
differs or a field is missing.

A recording is valid for one machine and one set of installed packages: others round differently.
"""
# ruff: noqa: E402

import argparse
import os
import sys
from fnmatch import fnmatch
from pathlib import Path

# Set before NumPy is imported, and inherited by the commands. With one thread, sums are rounded in
# the same way in every run; pages and tables have the same width on every terminal.
ENVIRONMENT = {
    "COLUMNS": "100",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "MPLBACKEND": "agg",
}
os.environ.update(ENVIRONMENT)
os.environ.pop("FORERANK_DATA", None)
# The modules are imported as `recording.fits`: `data` and others are folders of tests, too.
sys.path[0] = str(Path(__file__).resolve().parents[1])

# The order of these modules is the order of the items.
from recording import (  # isort: skip
    fits,  # noqa: F401
    selection,  # noqa: F401
    measures,  # noqa: F401
    active,  # noqa: F401
    comparisons,  # noqa: F401
    commands,  # noqa: F401
    pages,  # noqa: F401
)
from recording.files import compare, write
from recording.items import ITEMS


def main() -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="tests/recording", description=__doc__, formatter_class=raw
    )
    parser.add_argument("action", choices=("write", "compare", "list"))
    parser.add_argument("file", type=Path, nargs="?", help="file of the recording, JSON")
    only = "items whose name matches, such as 'fit/*'"
    parser.add_argument("--only", default="*", metavar="PATTERN", help=only)
    given = parser.parse_args()
    names = [name for name in ITEMS if fnmatch(name, given.only)]
    if given.action == "list":
        print("\n".join(names))
        return 0
    if given.file is None:
        parser.error("give the file of the recording.")
    if not names:
        parser.error(f"no item matches {given.only!r}; see 'list'.")
    return write(given.file, names) if given.action == "write" else compare(given.file, given.only)


if __name__ == "__main__":
    sys.exit(main())
