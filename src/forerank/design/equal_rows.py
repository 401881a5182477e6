"""Sets of equal rows, found by hashing in one pass.

An objective with sample weights does not change if equal rows with the same label and group are
replaced by one row with the sum of their weights. One-hot, integer and grouped data often have few
different rows.

A random sample of the rows tells first whether there can be many equal ones. If a share f of the
rows repeats one other row each, a sample of size c sqrt(n) has about f c^2 equal pairs, whatever n
is. Then the rows are hashed, in the precision they are stored in; -0.0 equals 0.0. Rows with the
same hash are compared, so that only equal rows are merged. Rows of a CSR matrix are equal if their
stored entries are, in the same order.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from forerank._kernels import compiled
from forerank._typing import Index, Matrix, Vector

__all__ = ["EqualRows", "find_equal_rows", "merge_equal_rows"]

# Size of the sample in square roots of the number of rows, and the fewest of its rows that repeat
# another one for which all rows are hashed: with a fifth of the rows repeated once, 13 are expected
# and fewer than 5 have a probability of 0.4 %.
_SAMPLE_ROOTS = 8.0
_FEWEST_REPEATED = 5
# Largest share of different rows with which merging pays: it costs about three products with X.
_LARGEST_SHARE = 0.8
# Largest copy of the different rows, in bytes; beyond it nothing is merged.
_LARGEST_COPY = 2**30


@dataclass(frozen=True)
class EqualRows:
    """Sets of equal rows: the number of the first row of each set, and the set of each row."""

    first: Index
    set_of: Index

    def total(self, weight: Vector | None) -> Vector:
        """The sum of the weights of each set; its number of rows without weights."""
        return np.bincount(self.set_of, weights=weight, minlength=self.first.size).astype(float)


def merge_equal_rows(
    X: Matrix,
    codes: NDArray[np.integer],
    weight: Vector | None,
    group: NDArray[np.integer] | None = None,
) -> tuple[Matrix, NDArray[np.integer], Vector | None, NDArray[np.integer] | None]:
    """The same arguments, with one row for equal rows of the same class and group, whose weights
    are added; unchanged where equal rows are too few to pay.
    """
    key = codes if group is None else codes + (int(codes.max()) + 1) * group.astype(np.int64)
    equal = find_equal_rows(X, key)
    if equal is None:
        return X, codes, weight, group
    first = equal.first
    return X[first], codes[first], equal.total(weight), None if group is None else group[first]


def find_equal_rows(X: Matrix, key: NDArray[np.integer]) -> EqualRows | None:
    """Sets of rows with equal entries and an equal key; None where they are too few to pay.

    Cost: one pass over X and a comparison of the repeated rows, or a pass over 8 sqrt(n) rows if
    next to none of these are equal.
    """
    n = X.shape[0]
    if _SAMPLE_ROOTS * np.sqrt(n) < n:
        sample = _sample_of(n)
        repeated = sample.size - int(_sets(_hashes(X, key, sample)).max()) - 1
        if repeated < _FEWEST_REPEATED:
            return None
    n_bytes = X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes
    if n_bytes * _LARGEST_SHARE > _LARGEST_COPY:
        return None
    X = X if sp.issparse(X) else np.ascontiguousarray(X)
    set_of = _sets(_hashes(X, key, np.empty(0, np.intp)))
    first = np.empty(int(set_of.max()) + 1, np.intp)
    first[set_of[::-1]] = np.arange(n)[::-1]  # the last assignment is that of the first row
    if first.size > _LARGEST_SHARE * n or not _is_confirmed(X, key, first[set_of]):
        return None
    return EqualRows(first, set_of)


@lru_cache(maxsize=16)  # folds have the same number of rows
def _sample_of(n_rows: int) -> Index:
    """Row numbers, ascending, drawn with replacement; each one once."""
    size = int(_SAMPLE_ROOTS * np.sqrt(n_rows))
    return np.unique(np.random.default_rng(0).integers(n_rows, size=size))


def _hashes(X: Any, key: NDArray[np.integer], rows: Index) -> NDArray[np.uint64]:
    """A hash of the key and the entries of each of the rows; of all where `rows` is empty."""
    hashes = np.empty(rows.size or key.size, np.uint64)
    if sp.issparse(X):
        _hash_csr(_bits(X.data), X.indices, X.indptr, key, rows, hashes)
    else:
        _hash_dense(_bits(X), key, rows, hashes)
    return hashes


def _bits(values: NDArray) -> NDArray[np.unsignedinteger]:
    return values.view(np.dtype(f"u{values.dtype.itemsize}"))


def _is_confirmed(X: Any, key: NDArray[np.integer], other: Index) -> bool:
    """Whether each row i equals the row other[i]. Two rows with the same hash that differ are so
    improbable that nothing is merged then.
    """
    if not np.array_equal(key, key[other]):
        return False
    if sp.issparse(X):
        return bool(_is_equal_csr(X.data, X.indices, X.indptr, other))
    return bool(_is_equal_dense(X, other))


@compiled
def _mixed(hash, value):  # type: ignore[no-untyped-def]
    """A hash extended by a 64-bit value: a multiplication by an odd constant and a shift."""
    hash = (hash ^ value) * np.uint64(0x9E3779B97F4A7C15)
    return hash ^ (hash >> np.uint64(29))


@compiled
def _entry(bits, size):  # type: ignore[no-untyped-def]
    """The bits of an entry of `size` bytes; for -0.0, whose highest bit is set, those of 0.0."""
    value = np.uint64(bits)
    return np.uint64(0) if value == np.uint64(1) << np.uint64(8 * size - 1) else value


@compiled
def _hash_dense(bits, key, rows, hashes):  # type: ignore[no-untyped-def]
    for i in range(hashes.size):
        row = rows[i] if rows.size else i
        hash = _mixed(np.uint64(0), np.uint64(key[row]))
        x = bits[row]
        for k in range(x.size):
            hash = _mixed(hash, _entry(x[k], bits.itemsize))
        hashes[i] = hash


@compiled
def _hash_csr(bits, indices, indptr, key, rows, hashes):  # type: ignore[no-untyped-def]
    for i in range(hashes.size):
        row = rows[i] if rows.size else i
        hash = _mixed(np.uint64(0), np.uint64(key[row]))
        for k in range(indptr[row], indptr[row + 1]):
            hash = _mixed(hash, np.uint64(indices[k]))
            hash = _mixed(hash, _entry(bits[k], bits.itemsize))
        hashes[i] = hash


@compiled
def _sets(hashes):  # type: ignore[no-untyped-def]
    """Sets of equal hashes, numbered in the order of their first rows: a hash table with linear
    probing, at most half full, that holds the first row of each set.
    """
    places = 16
    while places < 2 * hashes.size:
        places *= 2
    table, mask = np.full(places, -1, np.int64), np.uint64(places - 1)
    set_of, count = np.empty(hashes.size, np.intp), 0
    for i in range(hashes.size):
        place = hashes[i] & mask
        while table[place] >= 0 and hashes[table[place]] != hashes[i]:
            place = (place + np.uint64(1)) & mask
        if table[place] < 0:
            table[place] = i
            set_of[i] = count
            count += 1
        else:
            set_of[i] = set_of[table[place]]
    return set_of


@compiled
def _is_equal_dense(X, other):  # type: ignore[no-untyped-def]
    for i in range(other.size):
        if other[i] != i:
            a, b = X[i], X[other[i]]
            for k in range(a.size):
                if a[k] != b[k]:
                    return False
    return True


@compiled
def _is_equal_csr(data, indices, indptr, other):  # type: ignore[no-untyped-def]
    for i in range(other.size):
        a, b = indptr[i], indptr[other[i]]
        length = indptr[i + 1] - a
        if length != indptr[other[i] + 1] - b:
            return False
        for k in range(length):
            if indices[a + k] != indices[b + k] or data[a + k] != data[b + k]:
                return False
    return True
