import matplotlib.image
import numpy as np
from typer.testing import CliRunner

import forerank
from forerank.cli import app
from forerank.demo import compare_rankers, table_rows


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert forerank.__version__ in result.output


def test_no_arguments_print_help():
    assert "demo" in CliRunner().invoke(app, []).output


def test_demo_prints_a_table_and_saves_two_pictures(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "pictures")])
    assert result.exit_code == 0, result.output
    assert "RankSVM" in result.output
    for name in ("roc.png", "precision_recall.png"):
        picture = matplotlib.image.imread(tmp_path / "pictures" / name)
        assert picture.shape[0] > 400
        assert np.ptp(picture) > 0.5


def test_comparison_is_on_rows_held_out():
    results = list(compare_rankers(n_splits=3))
    assert len({tuple(np.concatenate(r.y)) for r in results}) == 1
    assert all(len(np.concatenate(r.scores)) == 1797 for r in results)
    for _, auc, ap, top, milliseconds in table_rows(results):
        assert 0.9 < float(auc) < 1.0
        assert 0.5 < float(ap) < 1.0
        assert 0.0 <= float(top) < 1.0
        assert float(milliseconds) > 0.0
