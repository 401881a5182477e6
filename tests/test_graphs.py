import numpy as np
import pytest
from numpy.testing import assert_allclose

import oracles
from forerank import PairwiseRanker, graphs, metrics
from forerank.graphs import check_edges, lowest_first, numbered_edges
from forerank.pairsums import PairBlocks

CLASSES = np.array(["a", "b", "c", "d"])


def pairs_in(blocks: PairBlocks) -> list[tuple[int, int]]:
    """Every (upper row, lower row) of the blocks, written out."""
    found = []
    for k in range(blocks.n_blocks):
        lower, upper = (
            blocks.rows[blocks.start[k] : blocks.split[k]],
            blocks.rows[blocks.split[k] : blocks.start[k + 1]],
        )
        found += [(int(i), int(j)) for i in upper for j in lower]
    return found


class TestNamedGraphs:
    @pytest.mark.parametrize(
        ("name", "edges"),
        [
            ("order", graphs.order(CLASSES.tolist())),
            ("chain", graphs.chain(CLASSES.tolist())),
            ("one-against-rest", graphs.one_against_rest("d", CLASSES.tolist())),
        ],
    )
    def test_a_name_stands_for_its_edges(self, name, edges):
        written_out = check_edges(edges, CLASSES)
        named = numbered_edges(name, CLASSES)
        expected = (
            {(b, a) for a in range(4) for b in range(4) if b > a} if named is None else set(named)
        )
        assert set(written_out) == expected

    def test_bipartite(self):
        assert graphs.bipartite(["c", "d"], ["a"]) == [("c", "a"), ("d", "a")]
        assert numbered_edges("bipartite", CLASSES[:2]) is None
        with pytest.raises(ValueError, match=r'graph="bipartite" is for two classes, but y has 4'):
            numbered_edges("bipartite", CLASSES)

    @pytest.mark.parametrize(
        "graph", ["order", "chain", "one-against-rest", [("c", "a"), ("b", "a"), ("d", "b")]]
    )
    @pytest.mark.parametrize("grouped", [False, True])
    def test_blocks_hold_exactly_the_pairs_of_the_graph(self, graph, grouped):
        rng = np.random.default_rng(3)
        grade = rng.integers(0, 4, 60)
        group = rng.integers(0, 5, 60) if grouped else None
        weight = np.where(rng.random(60) < 0.2, 0.0, 1.0)
        edges = numbered_edges(graph, CLASSES)
        every = check_edges(graphs.order(CLASSES.tolist()), CLASSES) if edges is None else edges
        blocks = PairBlocks.build(grade, weight=weight, group=group, edges=edges)
        expected = oracles.pairs_of(grade, group, lambda a, b: (a, b) in every)
        assert sorted(pairs_in(blocks)) == sorted(
            (i, j) for i, j in expected if weight[i] * weight[j] > 0
        )

    def test_a_chain_of_many_grades_has_no_more_entries_than_two_per_row(self):
        blocks = PairBlocks.build(np.arange(3000), edges=numbered_edges("chain", np.arange(3000)))
        assert blocks.rows.size == 2 * 2999

    def test_the_metric_takes_the_same_names(self):
        y, s = [0, 1, 2, 2], [0.0, 2.0, 1.0, 3.0]
        assert metrics.wmw(y, s, graph="chain") == 2 / 3
        assert metrics.wmw(y, s, graph="one-against-rest") == 3 / 4
        assert metrics.wmw(y, s) == 4 / 5

    def test_the_chain_is_learnt(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((200, 3))
        y = np.digitize(X[:, 0] + 0.1 * rng.standard_normal(200), [-0.5, 0.5])
        named = PairwiseRanker("logistic", graph="chain", tol=1e-9).fit(X, y)
        edges = PairwiseRanker("logistic", graph=[(1, 0), (2, 1)], tol=1e-9).fit(X, y)
        assert_allclose(named.coef_, edges.coef_, rtol=1e-8)
        order = PairwiseRanker("logistic", graph="order", tol=1e-9).fit(X, y)
        assert np.abs(order.coef_ - named.coef_).max() > 1e-2


class TestRefusals:
    def test_labels_become_numbers(self):
        assert check_edges(
            [("good", "bad"), ("good", "fair")], np.array(["bad", "fair", "good"])
        ) == [(2, 0), (2, 1)]

    @pytest.mark.parametrize(
        ("edges", "message"),
        [
            ([("a", "b"), ("b", "a")], r"cycle through the edges \('a', 'b'\), \('b', 'a'\)"),
            ([("a", "a")], r"cycle through the edges \('a', 'a'\)"),
            (
                [("a", "b"), ("b", "c"), ("c", "a")],
                r"\('a', 'b'\), \('b', 'c'\), \('c', 'a'\): no ranking",
            ),
            (
                [("d", "a"), ("a", "b"), ("b", "c"), ("c", "b")],
                r"the edges \('b', 'c'\), \('c', 'b'\): no ranking",
            ),
            (
                [("a", "z")],
                r"Edge \('a', 'z'\) of the preference graph names class 'z', which y does not",
            ),
            ([("a", "b", "c")], r"is a pair \(preferred, other\); got"),
            (["ab"], r"is a pair \(preferred, other\); got 'ab'"),
            ([], "has no edges"),
            (7, "or a list of edges; got 7"),
            ((edge for edge in [("a", "b")]), "or a list of edges; got <generator"),
            ([(["a"], "b")], r"names class \['a'\], which y does not contain"),
        ],
    )
    def test_refusals_name_the_edge(self, edges, message):
        with pytest.raises(ValueError, match=message):
            check_edges(edges, CLASSES)

    def test_a_long_chain_does_not_exhaust_the_stack(self):
        n = 20_000
        assert len(check_edges(graphs.chain(range(n)), np.arange(n))) == n - 1

    def test_weights_that_leave_no_pair(self):
        X, y = np.ones((6, 1)), np.array([0, 1, 2, 0, 1, 2])
        with pytest.raises(
            ValueError, match=r"no two rows belong to classes .* \(classes with rows: \[0, 2\]\)"
        ):
            PairwiseRanker(graph="chain").fit(X, y, sample_weight=y != 1)
        with pytest.raises(ValueError, match="Only rows of class 2 have a positive sample_weight"):
            PairwiseRanker(graph="order").fit(X, y, sample_weight=y == 2)

    def test_unknown_names(self):
        with pytest.raises(
            ValueError, match=r"graph must be one of 'order', 'chain', .* got 'ladder'"
        ):
            numbered_edges("ladder", CLASSES)


class TestPlaces:
    def test_every_class_comes_after_those_below_it(self):
        assert lowest_first([(0, 3), (3, 1)], np.arange(4.0)).tolist() == [1, 2, 3, 0]
        assert lowest_first([], np.array([0.5, 2.0, 1.0])).tolist() == [0, 2, 1]
        assert lowest_first([(0, 1)], np.array([0.5, 0.6, 0.1])).tolist() == [2, 1, 0]

    def test_classes_outside_the_graph_stand_by_their_scores(self):
        rng = np.random.default_rng(1)
        X = rng.standard_normal((400, 2))
        y = np.array(list("dcba"))[np.digitize(X[:, 0], [-0.7, 0.0, 0.7])]  # d is lowest, a highest
        fitted = PairwiseRanker("logistic", graph=[("a", "b")], alpha=1e-6).fit(X, y)
        assert np.mean(fitted.predict(X) == y) > 0.9

    def test_predict_follows_a_graph_that_turns_the_labels_round(self):
        rng = np.random.default_rng(1)
        X = rng.standard_normal((300, 2))
        y = np.digitize(X[:, 0], [-0.5, 0.5])
        turned = PairwiseRanker(graph=[(0, 1), (1, 2)], alpha=1e-6).fit(X, y)
        assert np.mean(turned.predict(X) == y) > 0.97
        assert metrics.wmw(-y, turned.decision_function(X)) > 0.99
