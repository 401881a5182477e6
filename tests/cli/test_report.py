"""The command report."""

import html
import json

from commands import fails, run


def test_page_has_the_printed_sentences(tmp_path, work):
    data, out = work / "train.csv", tmp_path / "r.html"
    report = ["report", data, "-t y --metric ap --folds 3 -o", out]
    printed = json.loads(run(*report, "--against pointwise-logistic --json").stdout)
    page = html.unescape(out.read_text()).replace("\N{NO-BREAK SPACE}", " ")
    assert all(sentence in page for sentence in printed["sentences"])
    assert "pointwise-logistic" in page
    assert printed["measures"][0]["name"] == "average precision"
    assert "exists already" in fails(*report)
    assert "choose another output file" in fails("report", data, "-t y --force -o", data)
