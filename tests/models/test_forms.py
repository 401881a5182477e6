"""Models on other forms of the columns: files, scores of pyarrow tables, ranked lists."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from forerank import PointwiseRanker
from forerank.data.problem import read_problem
from forerank.models import Model, load_model, save_model
from forerank.models.explain import explain
from forerank.models.onnx import save_onnx
from forerank.models.ranked_list import rank_file, rank_frame
from forerank.models.scoring import linear_scorer, table_scores
from forerank.models.sklearn_export import to_sklearn
from tables import typed_table as table


def model_on(form):
    problem = read_problem(table(), "y")
    steps = problem.plan.transformer(form).fit(problem.rows)
    ranker = PointwiseRanker(alpha=1e-2)
    if form == "trees":  # something that takes missing values and has no weights by column
        ranker = make_pipeline(SimpleImputer(), StandardScaler(), ranker)
    ranker.fit(steps.transform(problem.rows), problem.y)
    pipeline = Pipeline([("columns", steps), ("ranker", ranker)])
    settings = problem.read_settings | {"rows": 300}
    return Model(pipeline, problem.column_kinds, problem.target, None, settings)


@pytest.fixture(scope="module")
def additive():
    return model_on("additive")


def test_a_file_scores_as_the_pipeline_does(additive, tmp_path):
    save_model(additive, tmp_path / "m.forerank")
    loaded = load_model(tmp_path / "m.forerank")
    new = table(80, seed=5)
    new.loc[:3, "job"] = "juggler"
    new.to_csv(tmp_path / "new.csv", index=False)
    new.to_parquet(tmp_path / "new.parquet")
    result = rank_frame(loaded, new)
    problem_rows = read_problem(new, "y").rows[list(additive.columns)]
    expected = additive.estimator.decision_function(problem_rows)
    assert_allclose(result["score"].sort_index(), expected)
    for name in ("new.csv", "new.parquet"):
        rank_file(loaded, tmp_path / name, tmp_path / f"{name}.ranked.csv")
        ranked = pd.read_csv(tmp_path / f"{name}.ranked.csv")
        assert_allclose(ranked["score"], np.sort(expected)[::-1])


def test_an_additive_model_is_scored_column_by_column(additive):
    scorer = linear_scorer(additive.estimator)
    rows = read_problem(table(80, seed=5), "y").rows
    scores = scorer(rows)
    assert_allclose(scores, additive.estimator.decision_function(rows))
    parts = scorer.contributions(rows)
    assert_allclose(sum(parts.values()) + scorer.intercept, scores)
    arrow = pa.table(
        {
            "age": pa.array(rows["age"]),
            "seen": pa.array(rows["seen"], pa.timestamp("us")),
            "job": pa.array(rows["job"], from_pandas=True).dictionary_encode(),
            "city": pa.array(rows["city"]).dictionary_encode(),
            "note": pa.array(rows["note"]),
        }
    )
    assert_allclose(scorer(arrow), scores)


def test_missing_columns_are_missing_values(additive, tmp_path):
    new = table(30, seed=5).drop(columns=["age", "seen", "job"])
    new.to_csv(tmp_path / "new.csv", index=False)
    new.to_parquet(tmp_path / "new.parquet")
    scores = rank_frame(additive, new, allow_missing=True)["score"]
    assert np.isfinite(scores).all()
    for name in ("new.csv", "new.parquet"):
        rank_file(additive, tmp_path / name, tmp_path / f"{name}.out.csv", allow_missing=True)
        assert_allclose(pd.read_csv(tmp_path / f"{name}.out.csv")["score"], scores)


def test_columns_for_trees_are_scored_through_the_matrix(tmp_path):
    model = model_on("trees")
    rows = read_problem(table(80, seed=5), "y").rows
    assert linear_scorer(model.estimator) is None
    assert_allclose(table_scores(model)(rows), model.estimator.decision_function(rows))
    table(80, seed=5).to_csv(tmp_path / "new.csv", index=False)
    rank_file(model, tmp_path / "new.csv", tmp_path / "out.csv")
    expected = np.sort(model.estimator.decision_function(rows))[::-1]
    assert_allclose(pd.read_csv(tmp_path / "out.csv")["score"], expected)


def test_steps_for_trees_are_kept_in_a_file(tmp_path):
    model = model_on("trees")
    save_model(model, tmp_path / "m.forerank")
    steps = load_model(tmp_path / "m.forerank").estimator[0]
    rows = read_problem(table(80, seed=5), "y").rows
    assert_allclose(steps.transform(rows), model.estimator[0].transform(rows))
    assert steps.categorical_ == model.estimator[0].categorical_


def test_explanations_of_an_additive_model_add_up(additive):
    new = table(20, seed=5)
    result = explain(additive, new, rows=[1, 2])
    for row in result.contributions:
        adds = sum(term["adds"] for term in row["columns"].values())
        assert_allclose(adds + row["constant"], row["score"])
    assert {each.column for each in result.weights} == set(additive.columns)


def test_curves_are_not_exported_to_scikit_learn(additive):
    model = Model(additive.estimator, {**additive.columns, "seen": "number"}, "y")
    with pytest.raises(ValueError, match=r"no transformer for the curves of age, seen"):
        to_sklearn(model)


def test_an_onnx_graph_of_curves_has_the_same_scores(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    n = 1500
    hours = rng.integers(-24 * 20_000, 24 * 20_000, n).astype("timedelta64[h]")
    frame = pd.DataFrame(
        {
            "age": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.normal(50, 9, n)),
            "amount": rng.lognormal(3, 2, n) - 2.0,
            "stars": rng.integers(0, 4, n),
            "seen": np.datetime64("2020-01-01T00", "us") + hours,
            "job": rng.choice(["clerk", "cook"], n),
        }
    )
    y = (np.sin(frame["age"].fillna(0)) + (frame["seen"].dt.month > 6) > 0.5).to_numpy()
    problem = read_problem(frame, y)
    steps, X = problem.prepare(np.arange(n), n, "additive")
    pipeline = Pipeline([("columns", steps), ("ranker", PointwiseRanker(alpha=1e-3).fit(X, y))])
    model = Model(pipeline, problem.column_kinds)
    assert save_onnx(model, tmp_path / "m.onnx") < 1e-6
    days = (frame["seen"] - pd.Timestamp(0)) / pd.Timedelta(days=1)
    given = {name: frame[[name]].to_numpy(np.float64) for name in ("age", "amount", "stars")}
    given |= {"seen": days.to_numpy()[:, None], "job": frame[["job"]].to_numpy(dtype=object)}
    found = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(["score"], given)[0][:, 0]
    assert_allclose(found, pipeline.decision_function(frame), atol=1e-6)


def test_a_model_of_word_counts(tmp_path):
    counts = sp.csr_matrix(np.random.default_rng(0).poisson(0.05, (120, 300)).astype(float))
    y = np.asarray(counts[:, :50].sum(axis=1)).ravel() > 2
    problem = read_problem(counts, y)
    steps, X = problem.prepare(np.arange(120), 120, "tf-idf")
    pipeline = Pipeline([("columns", steps), ("ranker", PointwiseRanker(alpha=1e-2).fit(X, y))])
    expected = pipeline.decision_function(counts)
    save_model(Model(pipeline, summary=problem.read_settings), tmp_path / "m.forerank")
    model = load_model(tmp_path / "m.forerank")
    assert_allclose(model.estimator.decision_function(counts), expected)
    assert_allclose(to_sklearn(model).decision_function(counts), expected)
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match="tf-idf of a matrix cannot be exported"):
        save_onnx(model, tmp_path / "m.onnx")
