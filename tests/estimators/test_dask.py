"""Fits on Dask collections against the same fits in memory, and the same bits however they run."""

import pickle
import warnings
from functools import partial
from itertools import pairwise

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import forerank
from forerank import PairwiseRanker, PointwiseRanker, estimators, metrics
from forerank.dask.partitions import array_bytes
from forerank.data.problem import read_problem
from forerank.design import make_design
from forerank.estimators import dask_fits
from forerank.objectives import AllPairs, Pointwise
from forerank.objectives.parts import (
    PairParts,
    Point,
    PointParts,
    Rows,
    evaluate,
    part_sums,
    part_tables,
    slope_functions,
)

N, D = 800, 5
# Partitions: empty ones, of few rows, and of whole groups of ten.
SIZES = (300, 0, 190, 10, 300)
PAIR_LOSSES = ["squared_hinge", "logistic", "exponential", "squared"]


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    """A sample that is smaller than the data, without a second process or thread."""
    monkeypatch.setattr(dask_fits, "_MOST_ROWS", 200)
    with dask.config.set(scheduler="synchronous"):
        yield


def make_rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) * [1.0, 20.0, 0.1, 3.0, 1.0] + [0.0, 100.0, 2.0, 0.0, -5.0]
    s = X @ [0.5, 0.02, 4.0, 0.0, 0.3] + rng.standard_normal(N)
    y = (s > np.quantile(s, 0.7)).astype(int)
    grades = np.digitize(s, np.quantile(s, [0.5, 0.8]))
    weight = rng.integers(0, 4, N).astype(float)
    y[300:490] = 0  # a partition of one class
    return X, y, grades, weight, np.repeat(np.arange(N // 10), 10)


def divided(values, sizes=SIZES):
    chunks = (sizes, values.shape[1]) if values.ndim == 2 else (sizes,)
    return da.from_array(values, chunks=chunks)


def frame_of(X, **columns):
    """A Dask DataFrame with the partitions of `divided`, of which Dask does not know the sizes."""
    frame = pd.DataFrame(X, columns=list("abcde")[: X.shape[1]]).assign(**columns)
    bounds = np.cumsum((0, *SIZES))
    parts = [frame.iloc[a:b] for a, b in pairwise(bounds)]
    return dd.from_map(lambda part: part, parts, meta=frame.iloc[:0])


def fit_both(ranker, X, y, **rows):
    """The ranker fitted in memory, and on partitions."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*qid groups have no pair")
        memory = clone(ranker).fit(X, y, **rows)
        given = {name: divided(values) for name, values in rows.items()}
        return memory, clone(ranker).fit(divided(X), divided(y), **given)


def assert_equal_fits(memory, parts, X):
    np.testing.assert_allclose(parts.coef_, memory.coef_, atol=1e-8)
    np.testing.assert_allclose(parts.intercept_, memory.intercept_, atol=1e-7)
    assert parts.objective_ == pytest.approx(memory.objective_, rel=1e-10)
    assert parts.optimality_ <= parts.tol
    np.testing.assert_array_equal(parts.predict(divided(X)).compute(), memory.predict(X))


@pytest.mark.parametrize("loss", PAIR_LOSSES)
@pytest.mark.parametrize("case", ["plain", "weights and grades", "weights and groups", "all"])
def test_pairs_equal_those_in_memory(loss, case):
    X, y, grades, weight, qid = make_rows()
    graded = case in ("weights and grades", "all")
    rows = {} if case == "plain" else {"sample_weight": weight}
    if case in ("weights and groups", "all"):
        rows["qid"] = qid
    ranker = PairwiseRanker(loss, alpha=1e-3, tol=1e-10, graph="order" if graded else None)
    memory, parts = fit_both(ranker, X, grades if graded else y, **rows)
    assert_equal_fits(memory, parts, X)
    np.testing.assert_allclose(parts.thresholds_, memory.thresholds_, atol=1e-7)
    assert parts.wmw_bound_ == pytest.approx(memory.wmw_bound_, abs=1e-10)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "exponential", "squared"])
@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced", "fit_intercept": False}])
def test_points_equal_those_in_memory(loss, options):
    X, y, _, weight, _ = make_rows(1)
    ranker = PointwiseRanker(loss, alpha=1e-3, tol=1e-10, **options)
    assert_equal_fits(*fit_both(ranker, X, y, sample_weight=weight), X)


def test_graph_of_edges_and_class_weights_by_label():
    X, y, grades, weight, _ = make_rows(2)
    ranker = PairwiseRanker("logistic", alpha=1e-3, tol=1e-10, graph=[(2, 0), (0, 1)])
    memory, parts = fit_both(ranker, X, grades, sample_weight=weight)
    assert_equal_fits(memory, parts, X)
    ranker = PointwiseRanker(alpha=1e-3, tol=1e-10, class_weight={0: 1.0, 1: 7.0})
    assert_equal_fits(*fit_both(ranker, X, y), X)


@pytest.mark.parametrize("loss", PAIR_LOSSES)
@pytest.mark.parametrize("lattice", [False, True])
def test_value_and_gradient_of_random_weights(loss, lattice):
    X, y, _, weight, _ = make_rows(3)
    w = np.random.default_rng(4).standard_normal(D) / X.std(axis=0)
    if lattice:  # scores with many ties, at the kinks of the hinges
        X, w = np.round(X / X.std(axis=0)), np.array([0.5, 1.0, 0.25, 0.5, 1.0])
    rows = dask_fits._read(PairwiseRanker(), divided(X), divided(y), divided(weight), None)
    point = Point(w, np.zeros(D), np.ones(D))
    found = evaluate(PairParts(loss), point, rows.over_parts)
    expected = AllPairs(y, loss, weight=weight).at(X @ w)
    assert found.value == pytest.approx(expected.value, rel=1e-10)
    gradient = X.T @ expected.gradient
    np.testing.assert_allclose(found.gradient, gradient, atol=1e-10 * np.abs(gradient).max())
    if loss == "exponential":
        return
    found = evaluate(PointParts(loss), point, rows.over_parts)
    here = Pointwise(y == 1, loss, weight=weight).at(make_design(X).scores(w))
    assert found.value == pytest.approx(here.value, rel=1e-10)
    np.testing.assert_allclose(found.gradient, X.T @ here.gradient, rtol=1e-9)


def bits(ranker):
    return [*ranker.coef_[0].tolist(), *ranker.intercept_.tolist(), ranker.objective_]


def test_same_bits_for_every_scheduler_and_kind_of_collection():
    X, y, _, weight, qid = make_rows(5)
    frame = frame_of(X, y=y, weight=weight, qid=qid)
    for rows in ({}, {"qid": "qid"}):
        ranker = PairwiseRanker("logistic", tol=1e-9)
        names = {"sample_weight": "weight", **rows}
        arrays = {name: divided({"weight": weight, "qid": qid}[c]) for name, c in names.items()}
        series = {name: frame[column] for name, column in names.items()}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*qid groups have no pair")
            expected = bits(clone(ranker).fit(divided(X), divided(y), **arrays))
            unknown = divided(X).map_blocks(np.copy, chunks=((np.nan,) * len(SIZES), (D,)))
            assert bits(clone(ranker).fit(unknown, frame["y"], **series)) == expected
            # Blocks of frames are stored by column, and sums over them have other rounding errors.
            by_column = bits(clone(ranker).fit(frame[list("abcde")], frame["y"], **series))
            np.testing.assert_allclose(by_column, expected, rtol=1e-6)
            copied = frame.map_partitions(pd.DataFrame.copy)
            assert bits(clone(ranker).fit(copied[list("abcde")], frame["y"], **series)) == by_column
            for workers in (1, 2, 4):
                with dask.config.set(scheduler="threads", num_workers=workers):
                    assert bits(clone(ranker).fit(divided(X), divided(y), **arrays)) == expected


def test_columns_in_several_blocks_and_labels_in_memory():
    X, y, _, weight, _ = make_rows(6)
    ranker = PairwiseRanker(tol=1e-6)
    expected = bits(clone(ranker).fit(divided(X), divided(y), sample_weight=divided(weight)))
    narrow = da.from_array(X, chunks=(SIZES, (2, 3)))
    assert bits(clone(ranker).fit(narrow, y.tolist(), sample_weight=pd.Series(weight))) == expected
    other = da.from_array(y, chunks=500)
    assert bits(clone(ranker).fit(divided(X), other, sample_weight=weight)) == expected


def test_sparse_blocks_and_single_precision():
    X, y, *_ = make_rows(7)
    X = np.where(np.abs(X) > np.quantile(np.abs(X), 0.6, axis=0), X, 0.0)
    blocks = divided(X).map_blocks(sp.csr_matrix, dtype=float)
    ranker = PairwiseRanker("logistic", alpha=1e-3, tol=1e-10)
    memory = clone(ranker).fit(sp.csr_matrix(X), y)
    parts = clone(ranker).fit(blocks, divided(y))
    np.testing.assert_allclose(parts.coef_, memory.coef_, atol=1e-8)
    np.testing.assert_array_equal(
        parts.decision_function(blocks).compute(), parts.decision_function(sp.csr_matrix(X))
    )
    single = X.astype(np.float32)
    memory, parts = clone(ranker).fit(single, y), clone(ranker).fit(divided(single), divided(y))
    np.testing.assert_allclose(parts.coef_, memory.coef_, atol=1e-8)


def test_frames_keep_names_labels_and_partitions():
    X, y, *_ = make_rows(8)
    labels = np.where(y == 1, "yes", "no")
    frame = frame_of(X, label=labels)
    frame["a"] = frame["a"].astype("Float64")  # of pandas, with its own missing values
    X_frame = frame[list("abcde")]
    ranker = PairwiseRanker(tol=1e-6).fit(X_frame, frame["label"])
    assert ranker.classes_.tolist() == ["no", "yes"]
    assert ranker.feature_names_in_.tolist() == list("abcde")
    scores = ranker.decision_function(X_frame)
    assert scores.npartitions == len(SIZES)
    expected = ranker.decision_function(X_frame.compute())
    np.testing.assert_array_equal(scores.compute(), expected)
    np.testing.assert_array_equal(ranker.predict(X_frame).compute() == "yes", expected > 0.0)
    with pytest.raises(ValueError, match="other columns than in fit, or in another order"):
        ranker.decision_function(frame[list("bacde")])
    with pytest.raises(ValueError, match="X has 4 features, but PairwiseRanker is expecting 5"):
        ranker.decision_function(divided(X)[:, :4])


def test_parquet_files_that_dask_would_read_together(tmp_path):
    """For few columns Dask reads several files as one partition; labels and X must still agree."""
    X, y, _, _, qid = make_rows(14)
    wide = np.column_stack([X, np.random.default_rng(0).standard_normal((N, 15))])
    names = [f"c{k}" for k in range(20)]
    for k in range(8):
        rows = slice(100 * k, 100 * (k + 1))
        table = pd.DataFrame(wide[rows], columns=names).assign(y=y[rows], qid=qid[rows])
        table.to_parquet(tmp_path / f"{k}.parquet")
    frame = dd.read_parquet(tmp_path)
    assert len(frame["y"].to_delayed()) < 8 == len(frame[names].to_delayed())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*qid groups have no pair")
        memory = PairwiseRanker(tol=1e-8).fit(wide, y, qid=qid)
        parts = PairwiseRanker(tol=1e-8).fit(frame[names], frame["y"], qid=frame["qid"])
        np.testing.assert_allclose(parts.coef_, memory.coef_, atol=1e-6)
        few = PairwiseRanker().fit(frame[["c0", "c1"]], frame["y"])
        scores = few.decision_function(frame[["c0", "c1"]])
        assert metrics.roc_auc(frame["y"], scores) == pytest.approx(
            metrics.roc_auc(y, few.decision_function(pd.DataFrame(X[:, :2], columns=["c0", "c1"])))
        )


def shuffled(frame):
    return frame.shuffle(on="qid")


def merged(frame):
    """Columns of two DataFrames, of which one has its rows in another order."""
    other = frame[["row", "y", "qid", "weight"]].compute().iloc[::-1]
    other = dd.from_pandas(other, npartitions=3, sort=False)
    return frame[[*"abcde", "row"]].merge(other, on="row").shuffle(on="qid")


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
@pytest.mark.parametrize("make", [shuffled, merged])
def test_rows_that_a_shuffle_has_in_another_order_each_time(make, scheduler):
    """Labels, groups and weights of a row stay with it, although each pass shuffles anew."""
    X, y, _, weight, qid = make_rows(16)
    order = np.random.default_rng(0).permutation(N)  # groups are in all partitions
    columns = {"y": y[order], "qid": qid[order], "weight": weight[order], "row": np.arange(N)}
    frame = make(frame_of(X[order], **columns))
    ranker, features = PairwiseRanker(tol=1e-9), frame[list("abcde")]
    with warnings.catch_warnings(), dask.config.set(scheduler=scheduler):
        warnings.filterwarnings("ignore", message=".* groups (have no pair|excluded)")
        rows = {"sample_weight": frame["weight"], "qid": frame["qid"]}
        found = clone(ranker).fit(features, frame["y"], **rows)
        ranker.fit(X, y, sample_weight=weight, qid=qid)
        np.testing.assert_allclose(found.coef_, ranker.coef_, atol=1e-7)
        scores = X @ ranker.coef_[0]
        auc = metrics.roc_auc(frame["y"], found.decision_function(features), **rows)
        expected = metrics.roc_auc(y, scores, sample_weight=weight, qid=qid)
        assert auc == pytest.approx(expected, abs=1e-9)
        ap = metrics.average_precision(frame["y"], found.decision_function(features))
        assert ap == pytest.approx(metrics.average_precision(y, scores), abs=1e-6)


@pytest.mark.parametrize("apart", ["values", "persisted"])
def test_columns_of_two_shuffles_are_refused(apart):
    X, y, _, _, qid = make_rows(17)
    frame = shuffled(frame_of(X, y=y, qid=qid))
    X, y = frame[list("abcde")], frame["y"]
    X, y = (X.values, y.values) if apart == "values" else (X.persist(), y)
    with pytest.raises(ValueError, match=r"X and y come from a shuffle.* df = df.persist\(\)"):
        PairwiseRanker().fit(X, y)
    kept = frame.persist()
    PairwiseRanker().fit(kept[list("abcde")].values, kept["y"].values)
    with pytest.raises(ValueError, match="y_score and y_true come from a shuffle"):
        metrics.roc_auc(frame["y"].values, frame["a"].values)


def test_sizes_that_dask_is_told_are_those_of_pickles():
    X, y, *_ = make_rows(15)
    point = Point(np.ones(D) / X.std(axis=0), np.zeros(D), np.ones(D))
    for loss in ("squared_hinge", "logistic"):
        parts, rows = PairParts(loss), Rows(X, y)
        tables = part_tables(rows, point, parts)
        functions = slope_functions(parts, tables).by_class
        task = partial(part_sums, point=point, parts=parts, functions=functions)
        for value in (tables, task):
            assert array_bytes(value) == pytest.approx(len(pickle.dumps(value, 5)), rel=0.1)


def test_nothing_becomes_one_array_and_scores_are_lazy(monkeypatch):
    X, y, *_ = make_rows(9)
    X_parts, y_parts = divided(X), divided(y)

    def refuse(*args, **options):
        raise AssertionError("computed")

    monkeypatch.setattr(da.Array, "__array__", refuse)
    ranker = PairwiseRanker().fit(X_parts, y_parts)
    with dask.config.set(scheduler=refuse):
        ranker.predict(X_parts)
        scores = ranker.decision_function(X_parts)
        with pytest.raises(AssertionError, match="computed"):
            scores.compute()
    np.testing.assert_array_equal(scores.compute(), ranker.decision_function(X))


def test_warm_start_and_paths():
    X, y, *_ = make_rows(10)
    ranker = PairwiseRanker(tol=1e-9, warm_start=True).fit(divided(X), divided(y))
    coef = ranker.coef_
    assert ranker.fit(divided(X), divided(y)).n_iter_ == 0
    np.testing.assert_array_equal(ranker.coef_, coef)
    with pytest.raises(ValueError, match="warm_start=True continues from 5 columns"):
        ranker.fit(divided(X)[:, :3], divided(y))
    alphas = [1e-1, 1e-3]
    memory = PairwiseRanker(tol=1e-8).alpha_path(X, y, alphas)
    parts = PairwiseRanker(tol=1e-8).alpha_path(divided(X), divided(y), alphas)
    np.testing.assert_allclose(parts.coef, memory.coef, atol=1e-7)


def test_weights_of_any_size_and_rows_of_weight_zero():
    X, y, _, weight, _ = make_rows(11)
    ranker = PairwiseRanker("logistic", alpha=1e-3, tol=1e-10)
    expected = clone(ranker).fit(X[weight > 0], y[weight > 0], weight[weight > 0]).coef_
    for factor in (1.0, 1e-180, 1e180):
        found = clone(ranker).fit(divided(X), divided(y), divided(factor * weight)).coef_
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_groups_without_pairs_are_counted():
    X, y, _, weight, qid = make_rows(12)
    memory, parts = [], []
    for found, form in ((memory, np.asarray), (parts, divided)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            PairwiseRanker().fit(form(X), form(y), qid=form(qid), sample_weight=form(weight))
        found += [(str(each.message), each.filename) for each in caught]
    assert len(memory) == 1
    assert parts == memory


X_, Y_, _, W_, Q_ = make_rows(13)


def in_two_types(values):
    """Partitions of which the first has strings in place of numbers."""
    return divided(np.where(np.arange(N) < SIZES[0], values.astype(str).astype(object), values))


def with_value(values, at, value):
    out = values.astype(float if values.dtype.kind != "O" else object)
    out[at] = value
    return out


@pytest.mark.parametrize(
    ("X", "y", "rows", "message"),
    [
        (divided(X_), divided(Y_), {"qid": divided(Q_ // 7)}, r"groups of qid have rows in several "
         r"partitions .*df.shuffle"),
        (divided(with_value(X_, (310, 2), np.nan)), divided(Y_), {}, "partition 2 of 5: X has NaN"),
        (divided(X_), divided(with_value(Y_, 5, np.nan)), {}, "partition 0 of 5: y has missing"),
        (divided(X_), divided(np.zeros(N)), {}, "y has one class only"),
        (divided(X_), divided(np.arange(N) % 3), {}, 'set graph="order"'),
        (divided(X_), divided(Y_), {"sample_weight": divided(with_value(W_, 700, -1.0))},
         "partition 4 of 5: sample_weight must be finite"),
        (divided(X_), divided(Y_), {"sample_weight": divided(0.0 * W_)}, "zero for every row"),
        (divided(X_), divided(Y_), {"sample_weight": divided(np.full(N, "heavy"))},
         "partition 0 of 5: sample_weight has values that are not numbers"),
        (divided(X_), divided(Y_),
         {"sample_weight": divided(with_value(W_.astype(object), 5, pd.NA))},
         "partition 0 of 5: sample_weight must be finite"),
        (divided(X_), divided(with_value(Y_.astype(object), 305, pd.NA)), {},
         "partition 2 of 5: y has missing"),
        (divided(X_), divided(with_value(Y_.astype(object), 305, "1")), {},
         "partition 2 of 5: y has strings and other values"),
        (divided(X_), in_two_types(Y_), {}, "y has strings in partition 0 and other values in"),
        (divided(X_), divided(Y_), {"qid": in_two_types(np.arange(N) // 10)},
         "qid has strings in partition 0 and other values in partition 2"),
        (divided(X_), divided(Y_), {"sample_weight": divided(W_ * (Y_ == 1))},
         "All rows of class 0 have sample_weight zero"),
        (divided(X_), divided(Y_), {"qid": divided(np.arange(N))}, "There are no pairs"),
        (divided(X_), divided(Y_[:-1], (300, 0, 190, 10, 299)), {}, "y has 799 values"),
        (divided(X_), Y_[:-1], {}, "y has 799 values for 800 rows"),
        (frame_of(X_), Y_, {}, "y is in memory, but the partitions of X have unknown sizes"),
        (frame_of(X_), divided(np.append(Y_, 0), (300, 0, 190, 10, 301)), {},
         "partition 4 of 5: X has 300 rows and y has 301"),
        (frame_of(X_), frame_of(X_, y=Y_)["y"].repartition(npartitions=2), {},
         "y has 2 partitions and X has 5"),
        (frame_of(X_, word="a"), divided(Y_), {}, "Column 'word' of X is not numeric"),
        (divided(X_)[:, 0], divided(Y_), {}, "rows and columns are expected"),
        (divided(X_[:0], (0,)), divided(Y_[:0], (0,)), {}, "X has no rows"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_fitted(X, y, rows, message):
    with pytest.raises(ValueError, match=message):
        PairwiseRanker().fit(X, y, **rows)


def test_delayed_objects_and_missing_labels_are_refused():
    X, y = divided(X_), divided(Y_)
    with pytest.raises(ValueError, match="y is None"):
        PairwiseRanker().fit(X)
    with pytest.raises(TypeError, match="y is a Dask Delayed"):
        PairwiseRanker().fit(frame_of(X_), dask.delayed(Y_))
    with pytest.raises(TypeError, match="X is a Dask Delayed"):
        PairwiseRanker().fit(dask.delayed(X_), Y_)
    with pytest.raises(TypeError, match="rank does not take Dask"):
        PairwiseRanker().fit(X, y).rank(X)


OTHERS = [name for name in [*estimators.__all__, "Ranker"] if name not in (
    "PairwiseRanker", "PointwiseRanker", "AdditiveFeatures", "QuadraticFeatures"
)]  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_rankers_say_what_to_do(name):
    with pytest.raises(TypeError, match=rf"{name} does not take Dask .*sample in memory"):
        getattr(forerank, name)().fit(divided(X_), divided(Y_))


def test_scores_of_other_rankers_and_other_functions():
    ranker = forerank.PNormPush().fit(X_, Y_)
    np.testing.assert_array_equal(
        ranker.decision_function(divided(X_)).compute(), ranker.decision_function(X_)
    )
    boosted = forerank.RankBoost().fit(X_[:300], Y_[:300])
    with pytest.raises(TypeError, match=r"X\.map_partitions"):
        boosted.decision_function(divided(X_))
    with pytest.raises(TypeError, match="Give it a sample in memory"):
        read_problem(frame_of(X_, y=Y_), "y")
    for name in ("AdditiveFeatures", "QuadraticFeatures"):
        with pytest.raises(TypeError, match=f"{name} does not take Dask"):
            getattr(forerank, name)().fit(divided(X_))
