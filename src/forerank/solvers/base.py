"""Needs of the solvers, and the one place that checks a combination and chooses a solver.

A solver minimises F(X w) + alpha/2 ||w||^2 for an objective F and a design X. It is a function
``solve(objective, design, alpha, *, start, tol, max_iter, progress)`` that is declared with
`@solver`, in order of preference:

================  =========================================  ===================================
solver            needs of the objective                     needs of the design
================  =========================================  ===================================
newton            continuous gradient, curvature
ncg               continuous gradient
pointwise_dual    the hinge on single rows                   single rows, no intercept column
top_newton        threshold on the negatives                 (chosen for few columns or positives)
top_multipliers   thresholds, also within groups
accelerated_dual  threshold, conjugate with bounded slope
bundle            value and subgradient                      no intercept column
================  =========================================  ===================================

A solver refuses an objective or a design that lacks something, with an error that names objective,
solver, the missing property and alternatives. `minimise` uses the first solver whose needs are met.
Solvers with other inputs are called directly: boosting (binned columns), dual and sgd (lists of
pairs).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from inspect import signature
from typing import Any, ParamSpec

from forerank._typing import Vector
from forerank.design import Design
from forerank.solvers.result import SolverResult

__all__ = [
    "BOUNDED_CONJUGATE_SLOPE",
    "CONTINUOUS_GRADIENT",
    "CURVATURE",
    "EVERY_COLUMN_PENALISED",
    "POINTWISE_HINGE",
    "SINGLE_ROWS",
    "SUBGRADIENT",
    "THRESHOLD",
    "THRESHOLDS",
    "Need",
    "Solver",
    "choose_solver",
    "minimise",
    "solver",
]

P = ParamSpec("P")

_PREFERENCE = (
    "newton",
    "ncg",
    "pointwise_dual",
    "top_newton",
    "top_multipliers",
    "accelerated_dual",
    "bundle",
)


@dataclass(frozen=True)
class Need:
    """A property of the objective and the design that a solver needs.

    `name` completes "it needs", `remedy` completes "use".
    """

    name: str
    remedy: str
    is_met: Callable[[Any, Design], bool]


SUBGRADIENT = Need(
    "a value and a subgradient",
    "an objective of forerank.objectives",
    lambda objective, design: hasattr(objective, "at"),
)
CONTINUOUS_GRADIENT = Need(
    "a continuous gradient",
    "a smooth loss such as 'squared_hinge' or 'logistic'",
    lambda objective, design: bool(objective.smooth),
)
CURVATURE = Need(
    "products with the curvature",
    "a loss with a curvature such as 'squared_hinge' or 'logistic'",
    lambda objective, design: getattr(objective, "has_curvature", False),
)
POINTWISE_HINGE = Need(
    "the hinge on single rows",
    "Pointwise(positive, 'hinge')",
    lambda objective, design: not objective.smooth and hasattr(objective, "row_objective"),
)
THRESHOLDS = Need(
    "thresholds on the scores of the negatives",
    "forerank.objectives.top.Top or TopWithinGroups",
    lambda objective, design: hasattr(objective, "thresholds"),
)
THRESHOLD = Need(
    "one threshold on the scores of all negatives",
    "forerank.objectives.top.Top",
    lambda objective, design: hasattr(objective, "threshold"),
)
BOUNDED_CONJUGATE_SLOPE = Need(
    "a loss whose conjugate has a bounded slope",
    "the losses 'squared_hinge' or 'hinge'",
    lambda objective, design: objective.loss.name in ("hinge", "squared_hinge"),
)
SINGLE_ROWS = Need(
    "rows that can be read one by one",
    "an array in C order or a CSR matrix",
    lambda objective, design: design.has_single_rows,
)
EVERY_COLUMN_PENALISED = Need(
    "a penalty on every column",
    "a design without an intercept column",
    lambda objective, design: not design.has_intercept,
)


@dataclass(frozen=True)
class Solver:
    """A solver, what it needs, and for which sizes it is chosen (None: for all)."""

    name: str
    solve: Callable[..., SolverResult]
    needs: tuple[Need, ...]
    is_affordable: Callable[[Any, Design], bool] | None

    @cached_property
    def options(self) -> frozenset[str]:
        """Names of the arguments of `solve`."""
        return frozenset(signature(self.solve).parameters)

    def missing(self, objective: Any, design: Design) -> Need | None:
        """The first need that is not met, or None."""
        return next((need for need in self.needs if not need.is_met(objective, design)), None)

    def check(self, objective: Any, design: Design) -> None:
        """ValueError where objective or design lack what the solver needs."""
        need = self.missing(objective, design)
        if need is not None:
            others = _suitable(objective, design)
            other = f"the solver {' or '.join(s.name for s in others)}, or " if others else ""
            raise ValueError(
                f"{self.name} cannot minimise {objective!r}: it needs {need.name}. "
                f"Use {other}{need.remedy}."
            )


_SOLVERS: dict[str, Solver] = {}


def solver(
    name: str, *needs: Need, is_affordable: Callable[[Any, Design], bool] | None = None
) -> Callable[[Callable[P, SolverResult]], Callable[P, SolverResult]]:
    """Decorator: declares a solver, and checks its needs at every call."""

    def declare(solve: Callable[P, SolverResult]) -> Callable[P, SolverResult]:
        declared = Solver(name, solve, needs, is_affordable)
        _SOLVERS[name] = declared

        @wraps(solve)
        def checked(*arguments: P.args, **options: P.kwargs) -> SolverResult:
            objective, design = arguments[:2]
            declared.check(objective, design)  # type: ignore[arg-type]
            return solve(*arguments, **options)

        return checked

    return declare


def _suitable(objective: Any, design: Design) -> list[Solver]:
    """Solvers whose needs are met, in order of preference."""
    known = (_SOLVERS[name] for name in _PREFERENCE)
    return [each for each in known if each.missing(objective, design) is None]


def choose_solver(objective: Any, design: Design) -> str:
    """Name of the first solver whose needs are met and that is affordable for these sizes."""
    for name in _PREFERENCE:
        each = _SOLVERS[name]
        if each.missing(objective, design) is not None:
            continue
        if each.is_affordable is None or each.is_affordable(objective, design):
            return name
    raise ValueError(
        f"No solver can minimise {objective!r}; the last one tried, bundle, needs "
        f"{' and '.join(need.name for need in _SOLVERS['bundle'].needs)}."
    )


def minimise(
    objective: Any,
    design: Design,
    alpha: float,
    *,
    solver: str | None = None,
    start: Vector | None = None,
    start_dual: Vector | None = None,
    **limits: Any,
) -> SolverResult:
    """Minimise F(X w) + alpha/2 ||w||^2 by the named solver, or by the one of `choose_solver`.

    `start` and `start_dual` (`w` and `dual` of an earlier result) are passed to the solvers that
    take them. `limits` are tol, max_iter and progress.
    """
    chosen = _SOLVERS[solver or choose_solver(objective, design)]
    chosen.check(objective, design)
    starts = {"start": start, "start_dual": start_dual}
    given = {name: value for name, value in starts.items() if name in chosen.options}
    return chosen.solve(objective, design, alpha, **given, **limits)
