"""Simulations: their figures, seeds, measures and input."""

import numpy as np
import pytest

from forerank import PairwiseRanker, metrics
from forerank.active import LabellingLoop, LossMin, Simulation, simulate
from labelling import small_pool


def test_values_equal_their_definitions():
    run = Simulation(
        [5, 3, 8, 1, 9], [1, 0, 1, 0, 0], n_records=10, n_relevant=3, seeds=[0, 2], read=[0, 5]
    )
    assert run.recall_at(0) == 0.0
    assert run.recall_at(3) == pytest.approx(2 / 3)
    assert run.recall_at(100) == pytest.approx(2 / 3)
    assert run.records_to_recall(1 / 3) == 1
    assert run.records_to_recall(0.5) == 3
    assert run.records_to_recall(0.0) == 0
    with pytest.raises(ValueError, match="was not reached"):
        run.records_to_recall(0.95)
    assert run.work_saved(0.6) == pytest.approx(0.7 - 0.4)
    with pytest.raises(ValueError, match="recall must lie"):
        run.records_to_recall(95)


def test_work_saved_is_that_of_the_metric():
    X, y = small_pool()
    run = simulate(X, y, batch=10, random_state=0)
    position = -np.arange(len(run.order))
    for recall in (0.5, 0.95, 1.0):
        assert run.work_saved(recall) == pytest.approx(
            metrics.work_saved(run.relevant, position, recall=recall)
        )


def test_all_strategies_begin_with_the_same_seeds_and_the_same_seed_gives_the_same_order():
    X, y = small_pool()
    runs = [
        simulate(X, y, strategy=s, batch=10, rounds=3, random_state=7)
        for s in ("greedy", "lossmin", "random")
    ]
    assert len({tuple(run.seeds) for run in runs}) == 1
    assert sum(y[runs[0].seeds]) == 1
    for strategy in ("random", "diverse", "lossmin"):
        a, b = (
            simulate(X, y, strategy=strategy, batch=10, rounds=3, random_state=7) for _ in range(2)
        )
        assert a.order == b.order
    assert simulate(X, y, random_state=8, rounds=1).seeds != runs[0].seeds
    named = simulate(X, y, seeds=np.array([4, 5, int(np.argmax(y))]), rounds=1)
    assert named.seeds[:2] == [4, 5]


def test_labels_of_any_two_classes():
    X, y = small_pool()
    plain = simulate(X, y, batch=10, random_state=0)
    words = simulate(X, np.where(y == 1, "yes", "no"), batch=10, random_state=0)
    signs = simulate(X, np.where(y == 1, 1, -1), batch=10, random_state=0)
    assert plain.order == words.order == signs.order


def test_curves_on_test_rows_are_the_metrics_of_the_ranker():
    X, y = small_pool(200)
    test = (X[100:], y[100:])
    for strategy in ("greedy", "random"):
        options = {"batch": 98, "rounds": 1, "test": test, "ranker": PairwiseRanker(alpha=1e-2)}
        run = simulate(X[:100], y[:100], strategy=strategy, random_state=0, **options)
        final = PairwiseRanker(alpha=1e-2).fit(X[:100], y[:100])
        assert run.read == [0, 98]
        assert run.curves["auc"][-1] == pytest.approx(
            metrics.roc_auc(y[100:], final.decision_function(X[100:]))
        )
        assert len(run.curves["map"]) == 2
    with pytest.raises(ValueError, match="metric must be one of"):
        simulate(X, y, test=test, measures=["f1"])


def test_until_recall_ends_a_simulation():
    X, y = small_pool()
    run = simulate(X, y, until_recall=0.8, random_state=0)
    assert run.records_to_recall(0.8) == len(run.order)
    assert run.stopped == "the target recall is reached"


def test_random_states_of_all_kinds():
    X, y = small_pool(60)

    def seeds(random_state):
        return simulate(X, y, rounds=1, random_state=random_state).seeds

    assert seeds(np.int64(3)) == seeds(3)
    assert seeds(np.random.default_rng(3)) == seeds(np.random.default_rng(3))
    assert seeds(np.random.RandomState(3)) == seeds(np.random.RandomState(3))
    assert len({tuple(seeds(None)) for _ in range(8)}) > 1
    for wrong in (-1, "abc"):
        with pytest.raises(ValueError, match=r"negative|cannot be used to seed"):
            seeds(wrong)


def test_a_simulation_resumes_from_its_record(tmp_path):
    X, y = small_pool(60)
    path = tmp_path / "labels.jsonl"
    simulate(X, y, rounds=3, random_state=0, record=path)
    both = simulate(X, y, rounds=6, random_state=0, record=path)
    assert len(both.order) == 6
    assert both.order[:3] == simulate(X, y, rounds=3, random_state=0).order
    assert both.stopped == "the number of rounds is reached"
    with pytest.raises(ValueError, match="random_state = 0 in the file, 1 now"):
        simulate(X, y, random_state=1, record=path)
    with pytest.raises(ValueError, match="another label than y for row"):
        simulate(X, 1 - y, random_state=0, record=path)
    with pytest.raises(ValueError, match="does not hold measures"):
        simulate(X, y, random_state=0, record=path, test=(X, y))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": [3, 3]}, "holds a row number twice"),
        ({"seeds": [60]}, "there are 60 rows"),
        ({"rounds": -1}, "rounds must be"),
        ({"rounds": 2.5}, "rounds must be"),
        ({"until_recall": 95}, "until_recall must lie"),
        ({"test": (1,)}, r"test must be a tuple .* got a tuple of another form"),
        ({"test": (np.eye(2), ["a", "b"])}, "other labels than y"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    X, y = small_pool(60)
    with pytest.raises(ValueError, match=message):
        simulate(X, y, **options)


def graded_pool(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    merit = X @ np.arange(1.0, 6.0) + rng.normal(size=n)
    return X, np.searchsorted(np.quantile(merit, [0.6, 0.85]), merit)


def test_grades_are_simulated():
    X, y = graded_pool(250)
    test = (X[150:], y[150:])
    options = {"batch": 5, "rounds": 3, "grades": True, "random_state": 0, "test": test}
    options["measures"] = ["wmw", "auc", "ndcg@10"]
    for strategy in (LossMin(thresholds=2), "diverse", "random"):
        run = simulate(X[:150], y[:150], strategy=strategy, seeds=(2, 3), **options)
        assert np.sum(y[run.seeds] > 0) == 2
        assert run.relevant == (y[run.order] > 0).astype(int).tolist()
        assert run.n_relevant == np.sum(y[:150] > 0) - 2
        labelled = [*run.seeds, *run.order]
        ranker = PairwiseRanker(alpha=1e-2, graph="order").fit(X[labelled], y[labelled])
        scores = ranker.decision_function(X[150:])
        assert run.curves["wmw"][-1] == pytest.approx(metrics.wmw(test[1], scores), abs=2e-3)
        auc = metrics.roc_auc(test[1] > 0, scores)
        assert run.curves["auc"][-1] == pytest.approx(auc, abs=2e-3)


def test_two_grades_are_two_classes():
    X, y = small_pool()
    options = {"batch": 10, "rounds": 3, "random_state": 0}
    assert simulate(X, y, **options).order == simulate(X, y, grades=True, **options).order


def test_grades_within_groups_and_from_a_record(tmp_path):
    X, y = graded_pool()
    qid = np.arange(y.size) % 6
    options = {"grades": True, "qid": qid, "batch": 2, "random_state": 0, "seeds": (1, 2)}
    whole = simulate(X, y, rounds=4, record=tmp_path / "whole", **options)
    simulate(X, y, rounds=2, record=tmp_path / "part", **options)
    resumed = simulate(X, y, rounds=4, record=tmp_path / "part", **options)
    assert resumed.order[: 2 * 12] == whole.order[: 2 * 12]
    ranker = PairwiseRanker(alpha=1e-2, graph="order")
    with pytest.raises(ValueError, match="The label of row 69 is 2; expected 1"):
        simulate(X, y > 0, ranker=ranker, record=tmp_path / "part", **{**options, "grades": False})


def test_wrong_grades_are_named():
    X, y = graded_pool()
    with pytest.raises(ValueError, match="y has 3 classes; expected two"):
        simulate(X, y)
    with pytest.raises(ValueError, match="y has 1 classes; expected at least two grades"):
        simulate(X, y * 0, grades=True)
    loop = LabellingLoop(X, n_grades=3)
    for wrong in (3, -1, 0.5, float("nan"), "a"):
        with pytest.raises(ValueError, match="expected a grade from 0 to 2"):
            loop.tell(0, wrong)
    with pytest.raises(ValueError, match="n_grades must be an integer >= 2"):
        LabellingLoop(X, n_grades=1)
