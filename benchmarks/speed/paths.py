"""scripts/bench paths: ten penalties by alpha_path against single fits from zero, in the same
process.

Columns are scaled. Times are the best of three (one where a fit takes more than a second). The path
is compared with the fit at its smallest penalty, and with the mean of the ten fits that it
replaces. Products with X are counted for the path and for the ten fits together.
"""

import argparse
import warnings
from time import perf_counter

import numpy as np
import scipy.sparse as sp
from _products import counted_products
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from forerank import PairwiseRanker, PointwiseRanker, TopPush
from forerank.data import datasets
from forerank.solvers.path import check_alphas

DATA = "diabetes,spambase,letter,shuttle,bank,a9a,w8a_train,connect4,nslkdd"
RANKERS = [
    PointwiseRanker("logistic"),
    PairwiseRanker("logistic"),
    PairwiseRanker("squared_hinge"),
    TopPush(),
]


def seconds(action):
    best = np.inf
    for _ in range(3):
        begin = perf_counter()
        action()
        best = min(best, perf_counter() - begin)
        if best > 1.0:
            break
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=DATA)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    alphas = check_alphas(10)
    ratios = []
    for name in options.data.split(","):
        data = datasets.load(name)
        X = data.X if sp.issparse(data.X) else np.nan_to_num(data.X).astype(np.float64)
        X = (MaxAbsScaler() if sp.issparse(X) else StandardScaler()).fit_transform(X)
        y = data.y > 0
        for ranker in RANKERS:
            fits = [seconds(lambda a=a: ranker.set_params(alpha=a).fit(X, y)) for a in alphas]  # noqa: B023
            path = seconds(lambda: ranker.alpha_path(X, y, alphas))  # noqa: B023
            size = X.nnz if sp.issparse(X) else X.size
            with counted_products(size) as of_path:
                ranker.alpha_path(X, y, alphas)
            with counted_products(size) as of_fits:
                for alpha in alphas:
                    ranker.set_params(alpha=alpha).fit(X, y)
            ratios.append((path / fits[-1], path / np.mean(fits)))
            print(
                f"{name:12s} {type(ranker).__name__:16s} {ranker.loss:14s} path {path:7.3f}  last "
                f"fit {fits[-1]:7.3f} s  ratio {ratios[-1][0]:5.2f}  mean fit "
                f"{np.mean(fits):7.3f} s  ratio {ratios[-1][1]:5.2f}  products {of_path.total:.0f} "
                f"of {of_fits.total:.0f}",
                flush=True,
            )
    last, mean = np.exp(np.log(ratios).mean(axis=0))
    print(
        f"geometric means: {last:.2f} of the fit at the smallest penalty, {mean:.2f} of the mean "
        "fit (at most 3)"
    )


if __name__ == "__main__":
    main()
