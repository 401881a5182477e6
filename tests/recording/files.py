"""Recordings written to a file, and compared with one."""

import json
import sys
import time
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

from recording.differences import DIFFERENT, EQUAL, NEW, REWORDED, compare_fields
from recording.items import ITEMS, fields_of

FORMAT = 1


def write(path: Path, names: list[str]) -> int:
    """Recording of the items in a new file; the exit code."""
    items = {name: timed_fields(name) for name in names}
    path.write_text(json.dumps({"format": FORMAT, "items": items}, indent=0, ensure_ascii=False))
    raised = [name for name, fields in items.items() if "exception" in fields]
    n_fields = sum(map(len, items.values()))
    print(f"{len(items)} items, {n_fields} fields written to {path}; raised: {raised or 'none'}")
    return 0


def timed_fields(name: str) -> dict[str, dict]:
    """Fields of an item, whose duration is printed."""
    begin = time.perf_counter()
    found = fields_of(name)
    print(f"{time.perf_counter() - begin:6.1f} s  {name}", file=sys.stderr, flush=True)
    return found


def compare(path: Path, pattern: str) -> int:
    """Comparison of the items that match `pattern` with a file, printed; the exit code."""
    recording = json.loads(path.read_text())
    if recording["format"] != FORMAT:
        found = f"{path} has format {recording['format']}, expected {FORMAT}"
        raise SystemExit(f"{found}: write the recording anew.")
    items = recording["items"]
    names = [name for name in {**items, **ITEMS} if fnmatch(name, pattern)]
    counts: Counter[str] = Counter()
    for name in names:
        counts += compare_item(name, items.get(name, {}))
    print(
        f"{len(names)} items: {counts[EQUAL]} fields equal, {counts[REWORDED]} texts differ with "
        f"equal figures, {counts[DIFFERENT]} DIFFERENT, {counts[NEW]} new"
    )
    return 1 if counts[DIFFERENT] else 0


def compare_item(name: str, old: dict[str, dict]) -> Counter[str]:
    """Number of fields of an item in each state; the fields that differ are printed."""
    new = timed_fields(name) if name in ITEMS else {}
    results = {path: compare_fields(old.get(path), new.get(path)) for path in {**old, **new}}
    counts = Counter(state for state, _ in results.values())
    print(f"{name}:", ", ".join(f"{n} {state}" for state, n in counts.items()), flush=True)
    for path, (state, lines) in results.items():
        if state != EQUAL:
            print(f"  {state}: {path}")
            print("".join(f"      {line}\n" for line in lines), end="")
    return counts
