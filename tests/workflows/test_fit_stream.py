"""Fits on files that are read block by block: the method of a sample, the weights of all rows."""

import numpy as np
import pandas as pd
import pytest

from forerank.data.problem import read_problem
from forerank.data.row_stream import RowStream
from forerank.exceptions import DataFileError
from forerank.models import load_model, save_model
from forerank.models.scoring import table_scores
from forerank.models.tables import model_frame
from forerank.solvers.checkpoints import Checkpoint
from forerank.workflows.fit import fit

N = 9_000


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    words = ["red", "blue", "green", "cat", "dog", "house", "tree"]
    out = pd.DataFrame(
        {
            "age": rng.normal(40, 10, N),
            "job": rng.choice(["clerk", "cook", "driver"], N),
            "text": [" ".join(rng.choice(words, 6)) for _ in range(N)],
            "customer": np.sort(rng.integers(0, 100, N)),
        }
    )
    out.loc[::50, "age"] = np.nan
    z = out["age"].fillna(40) / 10 + (out["job"] == "cook") + rng.logistic(size=N)
    out["bought"] = np.where(z > 5.0, "yes", "no")
    return out


@pytest.fixture
def streamed(monkeypatch):
    """The number of fits on streams."""
    made = []
    original = RowStream.__init__

    def init(self, *args, **options):
        made.append(self)
        original(self, *args, **options)

    monkeypatch.setattr(RowStream, "__init__", init)
    return made


def write(frame, folder, kind="parquet"):
    for k in range(3):
        part = frame.iloc[k * N // 3 : (k + 1) * N // 3]
        if kind == "parquet":
            part.to_parquet(folder / f"part{k}.parquet")
        else:
            part.to_csv(folder / f"part{k}.csv", index=False)
    return str(folder / f"part*.{kind}")


def scores(model, frame):
    return table_scores(model)(model_frame(model, frame, "the table"))


@pytest.mark.parametrize("n_labels", [3, 13])
def test_classes_are_counted_in_all_rows(frame, tmp_path, streamed, n_labels):
    labels = [f"l{k % n_labels}" for k in range(N)]
    rows = frame.drop(columns="customer").assign(bought=labels)
    params = {"tol": 0.1}
    model = fit(
        write(rows, tmp_path, "csv"), "bought", positive="l1", memory="1MiB",
        ranker="PairwiseRanker", params=params, check=0,
    )  # fmt: skip
    assert len(streamed) == 1
    assert model.summary["sample_rows"] < N
    assert model.summary["classes"] == read_problem(rows, "bought", positive="l1").labels.classes


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("ranker", ["PairwiseRanker", "PointwiseRanker"])
def test_weights_are_those_of_all_rows(frame, tmp_path, streamed, kind, ranker):
    rows = frame.drop(columns="customer")
    options = {"ranker": ranker, "params": {"tol": 1e-8, "alpha": 1e-3}}
    model = fit(write(rows, tmp_path, kind), "bought", memory="1MiB", **options)
    assert len(streamed) == 1
    assert model.summary["rows"] == N
    assert model.summary["sample_rows"] < N
    assert model.summary["classes"] == rows["bought"].value_counts().to_dict()
    assert any("the weights are fitted on all rows" in note for note in model.notes)
    # The gradient is zero over all rows, with the columns of the model.
    X = model.estimator[0].transform(model_frame(model, rows, "the table"))
    fitted = model.estimator[-1]
    again = type(fitted)(**fitted.get_params()).fit(X, rows["bought"] == "yes")
    difference = np.abs(again.coef_ - fitted.coef_).max() / np.abs(again.coef_).max()
    assert difference < 1e-5
    path = tmp_path / "model.forerank"
    save_model(model, path)
    np.testing.assert_allclose(scores(load_model(path), rows), scores(model, rows))


def test_groups_are_ranked_within(frame, tmp_path, streamed):
    model = fit(
        write(frame, tmp_path), "bought", group="customer", memory="1MiB",
        ranker="PairwiseRanker", params={"alpha": 1e-2},
    )  # fmt: skip
    assert len(streamed) == 1
    assert streamed[0].grouped
    assert model.group == "customer"
    assert "customer" not in model.columns


def test_groups_that_a_file_has_as_doubles(frame, tmp_path, streamed):
    models = []
    for kind in (int, float):
        path = write(frame, tmp_path)
        frame.iloc[N // 3 :].astype({"customer": kind}).to_parquet(tmp_path / "part1.parquet")
        (tmp_path / "part2.parquet").unlink()
        models.append(
            fit(path, "bought", group="customer", memory="1MiB", ranker="PairwiseRanker", check=0.0)
        )
        assert streamed[-1].scan.n_groups == 100
        streamed[-1].close()
    np.testing.assert_array_equal(*(scores(model, frame) for model in models))


def test_a_row_without_a_group_is_an_error_as_in_memory(frame, tmp_path):
    rows = frame.astype({"customer": "string"}).drop(columns="text")
    rows.loc[N - 300 :, "customer"] = None  # in one piece, as a group would be
    path = write(rows, tmp_path)
    for data, first in ((path, N - 299), (tmp_path / "part2.parquet", N // 3 - 299)):
        with pytest.raises(DataFileError, match=rf"row {first:,}: .*'customer' is empty here"):
            fit(data, "bought", group="customer", ranker="PairwiseRanker", memory="1MiB")


def test_ranker_chooses_a_linear_model_on_the_sample(frame, tmp_path, streamed):
    rows = frame.drop(columns="customer")
    lines = []
    model = fit(write(rows, tmp_path), "bought", memory="1MiB", say=lines.append)
    assert model.summary["choice"]["family"] == "linear"
    assert len(streamed) == 1
    assert "reading a sample of the rows" in lines
    ranker = model.estimator[-1]
    np.testing.assert_array_equal(ranker.coef_, ranker.best_estimator_[-1].coef_)
    expected = ranker.decision_function(
        model.estimator[0].transform(model_frame(model, rows, "the table"))
    )
    np.testing.assert_allclose(scores(model, rows), expected, rtol=1e-9, atol=1e-9)


def test_an_interrupted_fit_continues_from_its_checkpoint(frame, tmp_path, monkeypatch):
    path, file = write(frame, tmp_path), tmp_path / "fit.checkpoint"
    options = {"ranker": "PairwiseRanker", "memory": "1MiB", "drop": ["customer"], "check": 0.0}

    def fitted(**params):
        return fit(path, "bought", params={"tol": 1e-8, **params}, **options)

    expected, save, iterations = fitted(), Checkpoint.save, []

    def save_and_stop(self, state):
        save(self, state)
        iterations.append(state.iteration)
        if iterations == [0, 1]:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", save_and_stop)
    with pytest.raises(KeyboardInterrupt):
        fitted(checkpoint=str(file))
    assert file.exists()
    found = fitted(checkpoint=str(file))
    assert iterations[:3] == [0, 1, 1]
    assert not file.exists()
    np.testing.assert_array_equal(scores(found, frame), scores(expected, frame))
    with pytest.raises(ValueError, match="Ranker has no parameter 'checkpoint'"):
        fit(path, "bought", params={"checkpoint": str(file)}, memory="1MiB")
    with pytest.raises(ValueError, match="is not a checkpoint of a fit"):
        fitted(checkpoint=str(tmp_path / "part0.parquet"))


def test_a_method_that_needs_rows_in_memory_stays_that_of_the_sample(frame, tmp_path, streamed):
    rows = frame.drop(columns="customer")
    model = fit(write(rows, tmp_path), "bought", memory="1MiB", ranker="RankNCG", check=0.0)
    assert streamed == []
    assert any("and so is the fit" in note for note in model.notes)


def test_files_that_fit_into_memory_are_fitted_together(frame, tmp_path, streamed):
    rows = frame.drop(columns="customer")
    options = {"ranker": "PairwiseRanker", "check": 0.0}
    together = fit(write(rows, tmp_path), "bought", **options)
    alone = fit(rows.reset_index(drop=True), "bought", **options)
    assert streamed == []
    assert together.summary["rows"] == N
    np.testing.assert_allclose(together.estimator[-1].coef_, alone.estimator[-1].coef_, rtol=1e-9)


def test_one_file_is_streamed_when_it_passes_its_share_of_memory(frame, tmp_path, streamed):
    rows = frame.drop(columns="customer")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    fit(tmp_path / "rows.csv", "bought", ranker="PairwiseRanker", check=0.0)
    assert streamed == []
    fit(tmp_path / "rows.csv", "bought", ranker="PairwiseRanker", check=0.0, memory="1MiB")
    assert len(streamed) == 1


def test_files_that_cannot_be_streamed(frame, tmp_path):
    path = write(frame.drop(columns="customer"), tmp_path)
    with pytest.raises(DataFileError, match="no target was given"):
        fit(path)
    with pytest.raises(DataFileError, match="there is no column 'buys'"):
        fit(path, "buys")
    frame.to_csv(tmp_path / "part9.csv", index=False)
    with pytest.raises(DataFileError, match="cannot be read together"):
        fit(str(tmp_path / "part*"), "bought")
    with pytest.raises(DataFileError, match="no file matches"):
        fit(str(tmp_path / "none*.csv"), "bought")
    with pytest.raises(ValueError, match="size in bytes"):
        fit(path, "bought", memory="much")


def test_a_label_that_the_sample_lacks_is_an_error(frame, tmp_path):
    rows = frame.drop(columns="customer")
    rows["grade"] = (rows["bought"] == "yes") + 2 * (rows["job"] == "cook")
    rows = rows.drop(columns="bought")
    rows.loc[N - 1, "grade"] = 9
    path = write(rows, tmp_path)
    with pytest.raises(DataFileError, match=r"label '9' is not in the sample"):
        fit(path, "grade", memory="1MiB", ranker="PairwiseRanker", check=0.0, seed=1)


def test_amounts_and_an_empty_file_among_csv_files(frame, tmp_path, streamed):
    rows = frame.drop(columns=["customer", "text"])
    amounts = np.random.default_rng(1).uniform(1, 5_000, N)
    rows["price"] = [f"${value:,.2f}" for value in amounts]
    path = write(rows, tmp_path, "csv")
    rows.head(0).to_csv(tmp_path / "part.csv", index=False)
    model = fit(path, "bought", memory="1MiB", ranker="PairwiseRanker", check=0.0)
    assert len(streamed) == 1
    assert model.summary["rows"] == N
    assert model.columns["price"] == "number"
    numbers = rows.assign(price=amounts.round(2))
    np.testing.assert_allclose(scores(model, rows), scores(model, numbers))
