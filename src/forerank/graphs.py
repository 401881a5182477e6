"""Preference graphs: which classes should be ranked above which.

An edge (a, b) over class labels means that every row of class a should be ranked above every row of
class b. Rankers and `forerank.metrics.wmw` take a list of edges, or a name:

- ``"order"``: every higher label above every lower one;
- ``"chain"``: every label above the next lower one only;
- ``"bipartite"``: two classes, the higher label above the other;
- ``"one-against-rest"``: the highest label above all others, and no order among those.

The functions of this module give the edges of such graphs for any labels. Edges (a, b) and (b, c)
do not imply (a, c). Cycles, and classes that the data lack, raise an error that names the edges.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "GRAPHS",
    "bipartite",
    "chain",
    "check_edges",
    "lowest_first",
    "numbered_edges",
    "one_against_rest",
    "order",
]

Labels = Sequence[Hashable]
Edges = list[tuple[Hashable, Hashable]]

GRAPHS = ("order", "chain", "bipartite", "one-against-rest")
_NOT_A_GRAPH = (
    f"graph must be one of {', '.join(map(repr, GRAPHS))}, or a list of edges; got {{!r}}."
)


def order(ascending: Labels) -> Edges:
    """Edges from every label to all labels before it.

    Examples
    --------
    >>> order(["bad", "fair", "good"])
    [('fair', 'bad'), ('good', 'bad'), ('good', 'fair')]
    """
    return [(b, a) for a, b in combinations(ascending, 2)]


def chain(ascending: Labels) -> Edges:
    """Edges from every label to the one before it.

    Examples
    --------
    >>> chain(["bad", "fair", "good"])
    [('fair', 'bad'), ('good', 'fair')]
    """
    return [(b, a) for a, b in pairwise(ascending)]


def bipartite(relevant: Labels, irrelevant: Labels) -> Edges:
    """Edges from every label of the first list to every label of the second.

    Examples
    --------
    >>> bipartite(["buys", "asks"], ["leaves"])
    [('buys', 'leaves'), ('asks', 'leaves')]
    """
    return list(product(relevant, irrelevant))


def one_against_rest(label: Hashable, classes: Labels) -> Edges:
    """Edges from one label to all others.

    Examples
    --------
    >>> one_against_rest("spam", ["ham", "news", "spam"])
    [('spam', 'ham'), ('spam', 'news')]
    """
    return [(label, other) for other in classes if other != label]


def numbered_edges(graph: Any, classes: NDArray) -> list[tuple[int, int]] | None:
    """Edges over class numbers, from a name or from edges over the labels in `classes` (sorted).

    None means the full order, whose list would have K (K - 1) / 2 edges.
    """
    if not isinstance(graph, str):
        return check_edges(graph, classes)
    if graph not in GRAPHS:
        raise ValueError(_NOT_A_GRAPH.format(graph))
    if graph == "bipartite" and classes.size != 2:
        raise ValueError(
            f'graph="bipartite" is for two classes, but y has {classes.size}. Use graph="order" '
            "for grades, or forerank.graphs.bipartite(relevant, irrelevant) for sets of classes."
        )
    numbers = range(classes.size)
    if graph == "chain":
        return [(b, a) for a, b in pairwise(numbers)]
    if graph == "one-against-rest":
        return [(numbers[-1], other) for other in numbers[:-1]]
    return None


def check_edges(
    edges: Iterable[tuple[Hashable, Hashable]], classes: Labels | NDArray
) -> list[tuple[int, int]]:
    """Edges (preferred label, other label) as class numbers; ValueError for unknown classes and
    cycles.
    """
    number = {label: k for k, label in enumerate(np.asarray(classes).tolist())}
    numbered: list[tuple[int, int]] = []
    if not isinstance(edges, Iterable) or isinstance(edges, Iterator):
        raise ValueError(_NOT_A_GRAPH.format(edges))  # an iterator would be empty at the next fit
    for edge in edges:
        if not isinstance(edge, Sequence | np.ndarray) or isinstance(edge, str) or len(edge) != 2:
            raise ValueError(
                f"An edge of the preference graph is a pair (preferred, other); got {edge!r}."
            )
        for label in edge:
            if not isinstance(label, Hashable) or label not in number:
                raise ValueError(
                    f"Edge {edge!r} of the preference graph names class {label!r}, which y does "
                    f"not contain; y has {list(number)}. Remove the edge or correct the label."
                )
        numbered.append((number[edge[0]], number[edge[1]]))
    if not numbered:
        raise ValueError("The preference graph has no edges; give at least one (preferred, other).")
    _refuse_cycles(numbered, list(number))
    return numbered


def lowest_first(edges: Iterable[tuple[int, int]], level: NDArray[np.float64]) -> NDArray[np.intp]:
    """Class numbers in topological order, every class after those below it, otherwise by level."""
    n_classes = level.size
    above: list[list[int]] = [[] for _ in range(n_classes)]
    n_below = [0] * n_classes
    for upper, lower in set(edges):
        above[lower].append(upper)
        n_below[upper] += 1
    ready = [(level[k], k) for k in range(n_classes) if n_below[k] == 0]
    heapify(ready)
    placed: list[int] = []
    while ready:
        placed.append(heappop(ready)[1])
        for upper in above[placed[-1]]:
            n_below[upper] -= 1
            if n_below[upper] == 0:
                heappush(ready, (level[upper], upper))
    return np.array(placed, dtype=np.intp)


def _refuse_cycles(edges: list[tuple[int, int]], labels: list[Hashable]) -> None:
    """Depth-first search from every class; ValueError where an edge leads back to the path."""
    below: dict[int, list[int]] = {}
    for upper, lower in edges:
        below.setdefault(upper, []).append(lower)
    finished: set[int] = set()
    for root in below:
        path, on_path, open_edges = [root], {root}, [iter(below[root])]
        while path and root not in finished:
            lower = next(open_edges[-1], -1)
            if lower < 0:
                finished.add(path[-1])
                on_path.discard(path.pop())
                open_edges.pop()
            elif lower in on_path:
                cycle = [*path[path.index(lower) :], lower]
                names = ", ".join(f"({labels[a]!r}, {labels[b]!r})" for a, b in pairwise(cycle))
                raise ValueError(
                    f"The preference graph has a cycle through the edges {names}: no ranking "
                    "satisfies them all. Remove one of them."
                )
            elif lower not in finished:
                path.append(lower)
                on_path.add(lower)
                open_edges.append(iter(below.get(lower, ())))
