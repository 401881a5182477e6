"""Products with X, counted: the cost of a fit that does not depend on the machine."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import process_time
from typing import Any

from forerank.design import CSRDesign
from forerank.design.base import StoredDesign
from forerank.objectives import AllPairs, Pointwise
from forerank.pairsums.factored import EqualScorePairs

__all__ = ["Products", "counted_products"]


@dataclass
class Products:
    """Stored entries of X that were read, by kind of product, and seconds of processor time.

    The counts are divided by the entries of X: `scores` = 3.5 stands for three products X w over
    all rows and one over half of them.
    """

    n_entries: int
    scores: float = 0.0
    adjoints: float = 0.0
    moments: float = 0.0
    seconds: float = 0.0
    hessian_seconds: float = 0.0

    @property
    def hessians(self) -> float:
        """Hessians X^T C X, as the number of products X w or X^T g that take the same time."""
        products = self.scores + self.adjoints
        return self.hessian_seconds * products / self.seconds if self.seconds else 0.0

    @property
    def total(self) -> float:
        """All of them."""
        return self.scores + self.adjoints + self.moments + self.hessians

    def __str__(self) -> str:
        return (
            f"{self.total:.1f} products: {self.scores:.1f} X w, {self.adjoints:.1f} X^T g, "
            f"{self.moments:.1f} moments, Hessians as {self.hessians:.1f}"
        )


@contextmanager
def counted_products(n_entries: int) -> Iterator[Products]:
    """Counts of the products of all designs inside the context; not for several threads.

    `n_entries` is the number of stored entries of X.
    """
    count = Products(n_entries)
    inside: list[bool] = []

    def wrap(method: Callable, kind: str) -> Callable:
        def wrapped(design: Any, *arguments: Any, **options: Any) -> Any:
            if inside:  # a part of the product that is counted already
                return method(design, *arguments, **options)
            inside.append(True)
            begin = process_time()
            try:
                return method(design, *arguments, **options)
            finally:
                inside.pop()
                taken = process_time() - begin
                if kind == "hessian":
                    count.hessian_seconds += taken
                else:
                    read = design.n_entries / count.n_entries
                    setattr(count, kind, getattr(count, kind) + read)
                    count.seconds += taken if kind != "moments" else 0.0

        return wrapped

    replaced = [
        (StoredDesign, "scores", "scores"),
        (StoredDesign, "adjoints", "adjoints"),
        (StoredDesign, "moments", "moments"),
        (CSRDesign, "moments", "moments"),
        (AllPairs, "hessian", "hessian"),
        (Pointwise, "hessian", "hessian"),
        (EqualScorePairs, "hessian", "hessian"),
    ]
    before = [(owner, name, vars(owner)[name]) for owner, name, _ in replaced]
    try:
        for owner, name, kind in replaced:
            setattr(owner, name, wrap(vars(owner)[name], kind))
        yield count
    finally:
        for owner, name, method in before:
            setattr(owner, name, method)
