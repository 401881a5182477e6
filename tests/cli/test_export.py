"""The command export."""

import json

from commands import fails, run


def test_onnx_file_gives_the_same_scores(tmp_path, work):
    model, out = tmp_path / "m.forerank", tmp_path / "m.onnx"
    assert "cannot be exported" in fails("export", work / "m.forerank", "-o", out)
    run("fit", work / "train.csv", "-t y --drop note -q -o", model)
    assert "scores agree" in run("export", model, "-o", out).stdout
    printed = json.loads(run("export", model, "--force --json -o", out).stdout)
    assert printed["largest_difference"] < 1e-6
