"""fit, rank and evaluate on RIS, BibTeX, XLSX and JSON lines."""

import json

import numpy as np
import pandas as pd
import pytest

from commands import fails, run
from forerank.data.ris import ris_lines


def records(n=120):
    rng = np.random.default_rng(0)
    relevant = rng.random(n) < 0.3
    common, words = ["study", "patients", "results", "method"], np.array(["trial", "placebo"])
    titles = [
        " ".join([*rng.permutation(common), *(words if each else ()), f"w{k % 7}"])
        for k, each in enumerate(relevant)
    ]
    years = rng.integers(1990, 2020, n)
    labels = np.where(relevant, "yes", "no")
    return pd.DataFrame({"TI": titles, "PY": years, "C1": labels})


def write(path, frame):
    rows = frame.astype(str).to_dict("records")
    if path.suffix == ".ris":
        path.write_text("\n".join("\n".join(ris_lines(row)) for row in rows))
    elif path.suffix == ".bib":
        entries = (
            ", ".join(f"{name} = {{{value}}}" for name, value in row.items()) for row in rows
        )
        path.write_text("\n".join(f"@misc{{key{k}, {entry}}}" for k, entry in enumerate(entries)))
    elif path.suffix == ".xlsx":
        frame.to_excel(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True)


@pytest.mark.parametrize("suffix", [".ris", ".bib", ".xlsx", ".jsonl"])
def test_fit_rank_and_evaluate(tmp_path, suffix):
    data, model, ranked = tmp_path / f"a{suffix}", tmp_path / "m.forerank", tmp_path / "ranked.csv"
    write(data, records())
    target = "c1" if suffix == ".bib" else "C1"
    ranker = "--ranker PairwiseRanker --alpha 0.01 -q --check 0 -o"
    run("fit", data, f"--target {target}", ranker, model)
    run("rank", model, data, "-q -o", ranked)
    table = pd.read_csv(ranked)
    assert sorted(table["TI" if suffix != ".bib" else "ti"]) == sorted(records()["TI"])
    assert set(table[target][: (table[target] == "yes").sum()]) == {"yes"}
    printed = json.loads(run("evaluate", model, data, "--json").stdout)
    assert printed["measures"][0]["value"] == 1.0


def test_a_broken_line_is_named(tmp_path):
    data = tmp_path / "a.jsonl"
    data.write_text('{"a": 1, "y": 0}\n{"a": 2, "y"\n')
    assert "a.jsonl, line 2: not JSON" in fails("fit", data, "--target y -o", tmp_path / "m")


def test_notes_on_skipped_entries_are_shown(tmp_path):
    data = tmp_path / "a.bib"
    write(data, records())
    data.write_text(data.read_text() + "\n@misc{bad, title {}}\n")
    fit = run("fit", data, "--target c1 --ranker PairwiseRanker -o", tmp_path / "m.forerank")
    assert "1 entry that cannot be read skipped: line 121" in " ".join(
        (fit.stdout + fit.stderr).split()
    )
