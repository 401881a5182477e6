"""Results of comparisons: tests of differences against their definitions, and sentences."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from comparisons import made
from forerank.workflows.compare import corrected_t_test, holm


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (10, 3.164)])
def test_the_critical_difference_has_the_table_of_demsar(k, q):
    rng = np.random.default_rng(0)
    found = made({f"m{j}": rng.random(15) for j in range(k)})
    assert found.cd == pytest.approx(q * np.sqrt(k * (k + 1) / (6 * 15)), abs=1e-3)


def test_ranks_friedman_and_groups():
    rng = np.random.default_rng(1)
    base = rng.random(20)
    values = {"worst": base - 2, "a": base + 0.01 * rng.standard_normal(20), "b": base, "tie": base}
    found = made(values)
    matrix = np.array(list(values.values()))
    expected = np.mean(
        [[1 + np.sum(m > x) + (np.sum(m == x) - 1) / 2 for x in m] for m in matrix.T], axis=0
    )
    assert found.ranks() == pytest.approx(dict(zip(values, expected, strict=True)))
    assert list(found.ranks())[-1] == "worst"
    assert found.friedman()["p"] == pytest.approx(stats.friedmanchisquare(*matrix).pvalue)
    assert [sorted(group) for group in found.groups()] == [["a", "b", "tie"]]
    assert made({"a": base, "b": base}).friedman() is None
    assert made(dict.fromkeys("abc", base)).friedman() == {"chi2": 0.0, "p": 1.0}
    assert np.isnan(made({"a": base}).cd)


def test_differences_are_paired_and_corrected():
    rng = np.random.default_rng(0)
    base = rng.random(10)
    values = {
        "a": base,
        "best": base + 0.1 + 0.01 * rng.random(10),
        "b": base + 0.1 + 0.02 * rng.standard_normal(10),
    }
    found = made(values)
    assert found.best == "best"
    by_name = {each["method"]: each for each in found.differences()}
    for name in "ab":
        alone = corrected_t_test(values[name] - values["best"], 0.25)
        assert_allclose(by_name[name]["p_single"], alone["p_single"])
    assert_allclose([by_name[n]["p"] for n in "ab"], holm(by_name[n]["p_single"] for n in "ab"))
    assert by_name["a"]["high"] < 0
    assert [row["method"] for row in found.table()] == ["best", "b", "a"]
    assert (
        found.table()[0] | {"p": None, "difference": None, "n": 10, "failed": 0} == found.table()[0]
    )
    assert found.table("ap")[0]["mean"] == pytest.approx(values["best"].mean() / 2)
    assert found.table()[0]["seconds"] == 5.5
    with pytest.raises(ValueError, match="no measure 'f1'"):
        found.table("f1")
    with pytest.raises(ValueError, match="confidence=2"):
        found.differences(confidence=2)


def test_the_result_in_words():
    rng = np.random.default_rng(0)
    base = 0.9 + 0.01 * rng.standard_normal(10)
    near = base - 0.001 + 0.01 * rng.standard_normal(10)
    found = made({"far": base - 0.03 - 0.001 * rng.random(10), "near": near, "best": base})
    p = found.table()[1]["p"]
    assert found.sentence() == (
        f"best has the highest AUC, {base.mean():.3f}; "
        f"near is not significantly different (p = {p:.2g}); far is lower by 0.031 (p < 0.001)."
    )
    assert str(found).splitlines()[-1] == found.sentence()
    three = made({"best": base, "near": near, "nearer": near + 1e-5})
    assert "nearer and near are not significantly different (p = " in three.sentence()
    assert "; 10 folds show large" not in found.sentence()
    few = made({"a": base[:3], '"b, c"': near[:3]})
    assert few.sentence().endswith(
        "; 3 folds show only large differences, more seeds smaller ones."
    )
    assert (
        "one fold cannot show which differences are significant"
        in made({"a": [0.5], "b": [0.6]}).sentence()
    )
    assert made({"a": [0.5, 0.75]}).sentence() == "a has a mean AUC of 0.625."
    assert (
        made({"a": [None, None]}).sentence()
        == "Every fit failed; the first because a (seed 0, fold 1): no."
    )


def test_a_method_that_failed_somewhere_is_not_the_best():
    found = made(
        {
            "lucky": [0.99, None, 0.99, 0.99, 0.99],
            "steady": [0.9, 0.5, 0.9, 0.91, 0.9],
            "none": [None] * 5,
        }
    )
    assert found.best == "steady"
    assert [row["method"] for row in found.table()] == ["steady", "lucky", "none"]
    assert [row["failed"] for row in found.table()] == [0, 1, 5]
    assert found.differences()[0]["n"] == 4
    assert found.ranks() == {"lucky": 1.0, "steady": 2.0}
    assert "none failed in every fold" in found.sentence()
    assert "6 fits failed" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)
