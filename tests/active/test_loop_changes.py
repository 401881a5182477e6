"""The labelling loop when people change their minds: retract, change, skip, grades, the record."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from forerank.active import LabellingLoop, PoolRanker, RecallBound
from labelling import small_pool, start

X, Y = small_pool(60)
EXACT = PoolRanker(tol=1e-10)


def seeded(**options):
    return start(X, Y, ranker=EXACT, **options)


def state(loop):
    """What labels determine: labels, order, what stopping rules see, and the next rows."""
    reading = loop.reading
    seen = (reading.n_records, reading.relevant.tolist(), reading.undecided.tolist())
    return loop.labels.tolist(), loop.order.tolist(), seen, loop.rank(5).tolist()


rows = st.integers(2, 59)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("tell"), st.lists(rows, min_size=1, max_size=4, unique=True)),
        st.tuples(st.just("skip"), st.lists(rows, min_size=1, max_size=3, unique=True)),
        st.tuples(st.just("ask"), st.just([])),
    ),
    max_size=12,
)


def play(loop, todo):
    for kind, numbers in todo:
        new = [row for row in numbers if not any(row in step.rows for step in loop.steps)]
        if kind == "tell":
            loop.tell(new, Y[new])
        elif kind == "skip":
            loop.skip(new)
        else:
            loop.ask()


@settings(max_examples=40, deadline=None)
@given(actions, st.integers(0, 12))
def test_undo_to_any_depth_equals_never_having_labelled(todo, depth):
    loop, plain = seeded(), seeded()
    play(loop, todo)
    play(plain, todo[: max(0, len(todo) - depth)])
    for step in reversed(loop.steps[len(plain.steps) :]):
        loop.retract(step.rows)
    loop.fit()
    plain.fit()
    assert state(loop) == state(plain)
    assert_allclose(loop.scores(), plain.scores(), atol=1e-6)


def test_retracting_all_labels_of_one_kind_leaves_no_ranker():
    loop = seeded()
    loop.ask()
    assert loop.ranker_ is not None
    loop.retract([row for row in range(60) if loop.labels[row] == 1])
    assert loop.fit() is None
    assert loop.scores() is None
    assert loop.ask().size == 1


def test_a_changed_label_retrains():
    loop = seeded()
    row = int(loop.ask()[0])
    loop.tell(row, 1)
    loop.fit()
    before = loop.scores()
    loop.tell(row, 0, change=True)
    loop.fit()
    other = seeded()
    other.tell(row, 0)
    other.fit()
    assert_allclose(loop.scores(), other.scores(), atol=1e-6)
    assert np.abs(loop.scores() - before).max() > 1e-3
    assert_array_equal(loop.order, other.order)
    with pytest.raises(ValueError, match="to replace a label, use change=True"):
        loop.tell(row, 1)


def test_a_skipped_row_is_asked_for_last_and_counts_as_unread_for_the_bound():
    loop = seeded(stopping=RecallBound(0.9, 0.9))
    row = int(loop.ask()[0])
    loop.skip(row)
    assert loop.labels[row] == -1
    assert row not in loop.order
    assert row == loop.rank()[-1]
    while (asked := loop.ask()).size and asked[0] != row:
        loop.tell(asked, Y[asked])
    if asked.size:
        assert_array_equal(np.flatnonzero(loop.labels == -1), [row])
        n_found = int(loop.reading.relevant.sum())
        assert RecallBound().lower_bound(loop.reading) == n_found / (n_found + 1)
        loop.tell(row, Y[row])
    assert not loop.reading.undecided[loop.reading.undecided.size - 1]
    with pytest.raises(ValueError, match="is labelled already; retract its label first"):
        loop.skip(int(loop.order[0]))


def test_a_skipped_row_keeps_its_place_when_it_is_labelled():
    loop = seeded()
    loop.skip([7, 9])
    loop.tell(11, 0)
    loop.tell(9, 1)
    assert_array_equal(loop.order, [9, 11])
    assert_array_equal(loop.reading.relevant, [False, True, False])
    assert_array_equal(loop.reading.undecided, [True, False, False])
    loop.retract([7, 9])
    assert_array_equal(loop.reading.undecided, [False])


def test_grades_are_relevant_from_a_threshold():
    loop = LabellingLoop(X, n_grades=4, relevant_from=2, random_state=0)
    loop.tell([0, 1, 2, 3], [0, 1, 2, 3])
    assert_array_equal(loop.reading.relevant, [False, False, True, True])
    for wrong in (0, 4, 1.5):
        with pytest.raises(ValueError, match="relevant_from must be a grade from 1 to 3"):
            LabellingLoop(X, n_grades=4, relevant_from=wrong)


def test_set_labels_gives_changes_and_retracts():
    loop = seeded()
    seeds = loop.labels.copy()
    wanted = seeds.copy()
    wanted[[10, 11, 12]] = [1, 0, 0]
    loop.set_labels(wanted)
    wanted[[10, 11, 13]] = [0, -1, 1]
    loop.set_labels(wanted)
    assert_array_equal(loop.labels, wanted)
    assert_array_equal(loop.order, [10, 12, 13])
    loop.set_labels(seeds)
    assert state(loop)[:3] == state(seeded())[:3]
    with pytest.raises(ValueError, match=r"labels have shape \(3,\); expected one of each of 60"):
        loop.set_labels(wanted[:3])


def test_a_record_resumes_with_retractions_changes_and_skips(tmp_path):
    path = tmp_path / "labels.jsonl"
    loop = seeded(record=path)
    loop.tell([10, 11, 12], [1, 0, 0])
    loop.skip([13, 14])
    loop.tell([11, 13], [1, 0], change=True)
    loop.retract([12, 14, int(loop.steps[0].rows[0])])
    again = LabellingLoop(X, ranker=EXACT, record=path)
    assert again.steps == loop.steps
    loop.fit()
    again.fit()
    assert state(again) == state(loop)
    assert again.reading.n_records == 59


def test_a_record_without_kinds_is_read_as_labels(tmp_path):
    """Records of earlier versions have no field "kind"; labels are still written in that form."""
    path = tmp_path / "labels.jsonl"
    loop = seeded(record=path)
    loop.tell(loop.ask(), [0])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    fields = {"rows", "labels", "seed", "seconds", "agreement"}
    assert set(lines[1]) == set(lines[-1]) == fields
    assert "relevant_from" not in lines[0]
    assert [step.kind for step in LabellingLoop(X, ranker=EXACT, record=path).steps] == [
        "label",
        "label",
    ]


def test_choosing_neither_fits_nor_writes(tmp_path):
    path = tmp_path / "labels.jsonl"
    loop = seeded(record=path)
    loop.fit()
    before, weights = path.read_bytes(), loop.ranker_.coef_.copy()
    ranked = loop.rank()
    assert sorted(ranked) == np.flatnonzero(loop.labels == -1).tolist()
    assert np.all(np.diff(loop.scores()[ranked]) <= 0)
    assert_array_equal(loop.rank(7), ranked[:7])
    assert path.read_bytes() == before
    assert_array_equal(loop.ranker_.coef_, weights)
