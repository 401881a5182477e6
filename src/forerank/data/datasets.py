"""Data sets: named ones from files, and generated ones.

The named ones are archives NAME.npz in the directory of the environment variable FORERANK_DATA,
with y and either a dense X (float32, NaN = missing) or the parts of a CSR matrix; grouped sets have
a qid per row. None of them comes with the package. `make_bipartite`, `make_randnet` and
`make_randpoly` need no files.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from sklearn.utils import check_random_state

from forerank._typing import Index, Mask, Vector
from forerank._validation import check_choice

__all__ = [
    "BipartiteModel",
    "Dataset",
    "cut_into_grades",
    "data_directory",
    "load",
    "make_bipartite",
    "make_randnet",
    "make_randpoly",
]


@dataclass(frozen=True)
class Dataset:
    """Rows, labels and, where there are groups, the group of each row."""

    name: str
    X: NDArray | sp.csr_array
    y: NDArray
    qid: NDArray | None = None


def data_directory() -> Path:
    """The directory of the data sets."""
    value = os.environ.get("FORERANK_DATA")
    if not value:
        raise FileNotFoundError(
            "The environment variable FORERANK_DATA is not set. Set it to the directory that holds "
            "the NAME.npz files; the page docs/data-sets.md says where they come from."
        )
    path = Path(value)
    if not path.is_dir():
        raise FileNotFoundError(f"FORERANK_DATA is {value!r}, which is not a directory.")
    return path


def load(name: str) -> Dataset:
    """The data set of this name."""
    path = data_directory() / f"{name}.npz"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in path.parent.glob("*.npz"))) or "none"
        raise FileNotFoundError(f"There is no data set {name!r} in FORERANK_DATA; found: {known}.")
    with np.load(path, allow_pickle=False) as archive:
        if "X_data" in archive:
            # Some packages do not accept 64-bit indices, and few matrices need them.
            kind = np.int32 if archive["X_data"].size < 2**31 else np.int64
            indices, indptr = archive["X_indices"].astype(kind), archive["X_indptr"].astype(kind)
            X = sp.csr_array((archive["X_data"], indices, indptr), shape=tuple(archive["X_shape"]))
        else:
            X = archive["X"]
        return Dataset(name, X, archive["y"], archive.get("qid"))


def cut_into_grades(target: ArrayLike, n_grades: int, *, bins: str = "size") -> Index:
    """Grades 0 .. n_grades - 1 from a real-valued target: bins of about equal size, equal values in
    the same bin; or with bins="width" bins of equal width, of which some may be empty.

    Examples
    --------
    >>> cut_into_grades([3.0, 1.0, 2.0, 2.0, 9.0, 5.0], 3)
    array([1, 0, 0, 0, 2, 2])
    """
    values = np.asarray(target, dtype=float)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        expected = "expected a non-empty one-dimensional array of finite numbers"
        raise ValueError(f"target has shape {values.shape}; {expected}.")
    if n_grades < 2:
        raise ValueError(f"n_grades must be at least 2; got {n_grades!r}.")
    check_choice("bins", bins, ("size", "width"))
    if bins == "width":
        cuts = np.linspace(values.min(), values.max(), n_grades + 1)[1:-1]
        return np.searchsorted(cuts, values, side="right")
    cuts = np.quantile(values, np.arange(1, n_grades) / n_grades)
    return np.searchsorted(cuts, values, side="left")


def make_randnet(
    n_samples: int = 1000,
    n_features: int = 50,
    n_grades: int = 6,
    *,
    n_hidden: int = 10,
    random_state: Any = None,
) -> tuple[Vector, Index]:
    """RandNet: grades of the output of a random network (Burges et al. 2005; raykar2007, Table 1).

    Inputs are uniform in [-1, 1]^d. The target is v . tanh(W x + b) with `n_hidden` hidden units
    and all weights uniform in [-1, 1], binned into grades of equal size.

    Returns
    -------
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        Grades 0 .. n_grades - 1.
    """
    rng = check_random_state(random_state)
    X = rng.uniform(-1.0, 1.0, (n_samples, n_features))
    W, b, v = (
        rng.uniform(-1.0, 1.0, shape) for shape in ((n_features, n_hidden), n_hidden, n_hidden)
    )
    return X, cut_into_grades(np.tanh(X @ W + b) @ v, n_grades)


def make_randpoly(
    n_samples: int = 1000,
    n_features: int = 50,
    n_grades: int = 6,
    *,
    form: str = "cubic",
    bins: str = "size",
    random_state: Any = None,
) -> tuple[Vector, Index]:
    """RandPoly: grades of a random polynomial (Burges et al. 2005; raykar2007, Table 1).

    Inputs are uniform in [-1, 1]^d.

    Parameters
    ----------
    n_samples, n_features, n_grades : int
    form : {"cubic", "quadratic"}, default="cubic"
        "cubic", as Burges et al. describe it: the mean of three terms, each brought to mean zero
        and variance one: the inner product with a random vector (uniform in [-1, 1]^d), the sum of
        x_k x_{p(k)} over a random permutation p, and the sum of x_k x_{q(k)} x_{r(k)} over two
        more. "quadratic": all x_k and x_k x_l, k <= l, with coefficients uniform in [-1, 1]; with
        bins="width" rankings of it are as good as raykar2007 reports, those of the former are not.
    bins : {"size", "width"}, default="size"
        Grades are bins of equal size or of equal width.
    random_state : int, RandomState or None

    Returns
    -------
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        Grades 0 .. n_grades - 1.
    """
    if n_samples < 2:
        raise ValueError(f"n_samples must be at least 2, to have a variance; got {n_samples!r}.")
    check_choice("form", form, ("cubic", "quadratic"))
    rng = check_random_state(random_state)
    X = rng.uniform(-1.0, 1.0, (n_samples, n_features))
    linear = X @ rng.uniform(-1.0, 1.0, n_features)
    if form == "quadratic":
        products = np.triu(rng.uniform(-1.0, 1.0, (n_features, n_features)))
        return X, cut_into_grades(linear + ((X @ products) * X).sum(axis=1), n_grades, bins=bins)
    p, q, r = (rng.permutation(n_features) for _ in range(3))
    terms = np.stack([linear, (X * X[:, p]).sum(axis=1), (X * X[:, q] * X[:, r]).sum(axis=1)])
    terms = (terms - terms.mean(axis=1, keepdims=True)) / terms.std(axis=1, keepdims=True)
    return X, cut_into_grades(terms.mean(axis=0), n_grades, bins=bins)


# Number of rows from which the threshold of a model is estimated: its share is off by about 0.001.
_THRESHOLD_ROWS = 200_000


@dataclass(frozen=True)
class BipartiteModel:
    """A random target of section 5.1 of kotlowski2011, from which any number of samples can be
    drawn.

    Rows are uniform in the unit cube. y = 1 where a function f(x) is at least its threshold, -1
    elsewhere, and every label is then flipped with probability `noise`. So P(y = 1 | x) has two
    values, noise and 1 - noise, and the best ranking has the rows above the threshold first.
    `noise` and the threshold are such that the best ranking has the rank risk `bayes_risk` and the
    positive class about the requested share: a few rules have few distinct values, between which
    the threshold must lie, and `prior` is the share that results.

    Attributes
    ----------
    kind : {"linear", "rules"}
        f is a weighted sum of the columns, or of conjunctions of conditions on single columns
        (boxes).
    n_features : int
    weights : array
        Of columns or rules, standard normal.
    rules : list of (columns, bounds, above)
        The conditions of each rule: x[column] >= bound where `above`, x[column] <= bound elsewhere.
    threshold, noise, prior, bayes_risk : float
    """

    kind: str
    n_features: int
    weights: Vector
    rules: list[tuple[Index, Vector, Mask]]
    threshold: float
    noise: float
    prior: float
    bayes_risk: float

    @classmethod
    def draw(
        cls,
        kind: str = "linear",
        *,
        prior: float = 0.5,
        bayes_risk: float = 0.1,
        n_features: int = 50,
        random_state: Any = None,
    ) -> "BipartiteModel":
        """A random model; its threshold comes from 200,000 rows."""
        if kind not in ("linear", "rules"):
            raise ValueError(f"kind must be 'linear' or 'rules'; got {kind!r}.")
        if not 0.0 < prior < 1.0:
            raise ValueError(f"prior must lie between 0 and 1; got {prior!r}.")
        if not 0.0 <= bayes_risk <= 0.49:
            raise ValueError(f"bayes_risk must lie between 0 and 0.49; got {bayes_risk!r}.")
        if n_features < 1:
            raise ValueError(f"n_features must be at least 1; got {n_features!r}.")
        _, above = _noise_for_prior(prior, bayes_risk)
        rng = check_random_state(random_state)
        while True:
            weights = rng.standard_normal(n_features)
            rules = []
            for _ in range(n_features if kind == "rules" else 0):
                size = rng.geometric(0.5)
                columns, bounds = rng.randint(n_features, size=size), rng.uniform(size=size)
                rules.append((columns, bounds, rng.uniform(size=size) < 0.5))
            model = cls(kind, n_features, weights, rules, 0.0, 0.0, prior, bayes_risk)
            values = np.sort(model.target(rng.uniform(size=(_THRESHOLD_ROWS, n_features))))
            if values[0] < values[-1]:  # else all rules contradict themselves, and rows are equal
                break
        # With few distinct values, the one of the two thresholds that is nearer to the requested
        # share, and the noise that belongs to it.
        value = values[int((1.0 - above) * (values.size - 1))]
        ranks = [int(np.searchsorted(values, value, side=side)) for side in ("left", "right")]
        shares = {rank: 1.0 - rank / values.size for rank in ranks if 0 < rank < values.size}
        rank = min(shares, key=lambda rank: abs(shares[rank] - above))
        noise = _noise_for_share(shares[rank], bayes_risk)
        threshold, prior = float(values[rank]), _prior(shares[rank], noise)
        return replace(model, threshold=threshold, noise=noise, prior=prior)

    def target(self, X: Vector) -> Vector:
        """f(x) without its threshold."""
        if self.kind == "linear":
            return X @ self.weights
        total = np.zeros(X.shape[0])
        for weight, (columns, bounds, above) in zip(self.weights, self.rules, strict=True):
            met = np.ones(X.shape[0], dtype=bool)
            for k, bound, upwards in zip(columns, bounds, above, strict=True):
                met &= (X[:, k] >= bound) if upwards else (X[:, k] <= bound)
            total += weight * met
        return total

    def probability(self, X: Vector) -> Vector:
        """P(y = 1 | x), the scores of the best ranking."""
        return np.where(self.target(X) >= self.threshold, 1.0 - self.noise, self.noise)

    def sample(self, n_samples: int, random_state: Any = None) -> tuple[Vector, Index, Vector]:
        """Rows, labels (-1 or 1) and P(y = 1 | x)."""
        rng = check_random_state(random_state)
        X = rng.uniform(size=(n_samples, self.n_features))
        probability = self.probability(X)
        return X, np.where(rng.uniform(size=n_samples) < probability, 1, -1), probability


def _prior(above: float, noise: float) -> float:
    """The share of the positive class if a share `above` of the rows is above the threshold."""
    return above * (1.0 - noise) + (1.0 - above) * noise


def _bayes_risk(above: float, noise: float) -> float:
    """The rank risk of ranking by the two levels.

    A positive row lies below the threshold with probability u, a negative one above it with v: the
    ranking is wrong with probability u v and tied with u (1 - v) + (1 - u) v, so the risk is (u +
    v) / 2.
    """
    p = _prior(above, noise)
    return 0.5 * noise * ((1.0 - above) / p + above / (1.0 - p))


def _noise_for_prior(prior: float, bayes_risk: float) -> tuple[float, float]:
    """The noise, and the share of rows above the threshold, that give prior and risk."""

    def above(noise: float) -> float:
        return (prior - noise) / (1.0 - 2.0 * noise)

    highest = min(prior, 1.0 - prior) * (1.0 - 1e-9)
    noise = _root(lambda k: _bayes_risk(above(k), k) - bayes_risk, highest)
    return noise, above(noise)


def _noise_for_share(above: float, bayes_risk: float) -> float:
    """The noise that gives the risk, for a given share of rows above the threshold."""
    return _root(lambda k: _bayes_risk(above, k) - bayes_risk, 0.5)


def _root(excess: Callable[[float], float], high: float) -> float:
    return 0.0 if excess(0.0) >= 0.0 else float(brentq(excess, 0.0, high, xtol=1e-14))


def make_bipartite(
    n_samples: int = 1000,
    kind: str = "linear",
    *,
    prior: float = 0.5,
    bayes_risk: float = 0.1,
    n_features: int = 50,
    random_state: Any = None,
) -> tuple[Vector, Index, Vector]:
    """A sample of a random bipartite ranking problem whose best ranking is known (kotlowski2011,
    section 5.1).

    For several samples of the same problem, draw a `BipartiteModel` and sample from that.

    Parameters
    ----------
    n_samples : int, default=1000
    kind : {"linear", "rules"}, default="linear"
        Whether the target is a weighted sum of the columns or of conjunctions of conditions on
        them.
    prior : float, default=0.5
        The approximate share of the positive class: see `BipartiteModel`.
    bayes_risk : float, default=0.1
        The rank risk of the best ranking.
    n_features : int, default=50
    random_state : int, RandomState or None

    Returns
    -------
    X : array of shape (n_samples, n_features)
        Uniform in the unit cube.
    y : array of shape (n_samples,)
        -1 or 1.
    probability : array of shape (n_samples,)
        P(y = 1 | x): the scores of the best ranking, from which regrets follow exactly
        (`forerank.metrics.bounds`).

    Examples
    --------
    >>> from forerank.metrics.bounds import expected_rank_loss
    >>> X, y, probability = make_bipartite(20_000, prior=0.9, random_state=0)
    >>> round(float((y == 1).mean()), 1), round(expected_rank_loss(probability, probability), 2)
    (0.9, 0.1)
    """
    rng = check_random_state(random_state)
    model = BipartiteModel.draw(
        kind, prior=prior, bayes_risk=bayes_risk, n_features=n_features, random_state=rng
    )
    return model.sample(n_samples, rng)
