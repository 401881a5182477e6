"""The command demo."""

import matplotlib.image
import numpy as np

from commands import run
from forerank.label.importing import read_records
from forerank.workflows.demo import compare_rankers, table_rows


def test_missing_matplotlib_is_named_with_its_extra(tmp_path, monkeypatch):
    def missing(results, out):
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")

    monkeypatch.setattr("forerank.workflows.demo.draw", missing)
    monkeypatch.setattr("forerank.workflows.demo.compare_rankers", lambda seed: iter(()))
    monkeypatch.setattr("forerank.cli.app.app", lambda words, standalone_mode: 0)
    result = run("demo", "-o", tmp_path, "-q", code=2)
    install = "pip install 'forerank[plots]'"
    assert result.stderr == f"forerank: matplotlib is needed for this: {install}\n"


def test_the_labelling_page_on_the_documentation(tmp_path, monkeypatch):
    called = []
    monkeypatch.setattr("forerank.cli.app.app", lambda words, standalone_mode: called.append(words))
    run("demo", "--label", "-o", tmp_path)
    ((command, file),) = called
    assert command == "label"
    found = read_records(file)
    assert len(found.fields) > 300
    assert {"title", "abstract", "url"} <= found.roles.keys()
    assert len({record["title"] for record in found.fields}) > 300


def test_commands_and_plots(tmp_path):
    result = run("demo", "--out", tmp_path / "demo")
    for part in ("fit", "rank", "evaluate", "explain"):
        assert f"$ forerank {part} " in result.stdout
    assert "RankSVM" in result.stdout
    assert len((tmp_path / "demo" / "ranked.csv").read_text().splitlines()) == 11
    for name in ("roc.png", "precision_recall.png"):
        image = matplotlib.image.imread(tmp_path / "demo" / name)
        assert image.shape[0] > 400
        assert np.ptp(image) > 0.5


def test_comparison_is_on_held_out_rows():
    results = list(compare_rankers(n_splits=3))
    assert len({tuple(np.concatenate(r.y)) for r in results}) == 1
    assert all(len(np.concatenate(r.scores)) == 1797 for r in results)
    for _, auc, ap, top, milliseconds in table_rows(results):
        assert 0.9 < float(auc) < 1.0
        assert 0.5 < float(ap) < 1.0
        assert 0.0 <= float(top) < 1.0
        assert float(milliseconds) > 0.0
