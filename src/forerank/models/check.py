"""What a model file may hold, judged before any object is made of it.

skops has a list of trusted classes of its own. It is not relied on alone: its versions before 0.12
asked for the class that a node is labelled with and not for what the node does, so that a file
could run any command. Here every node of `schema.json` must be of a kind, and within its kind of a
class, that models of this package need; every field of a node must be what that kind of node has;
every array must be as long as it says and hold no Python objects. Archives are bounded in size
before they are unpacked.
"""

import json
import math
import re
import stat
import struct
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from graphlib import CycleError, TopologicalSorter
from io import BytesIO
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from forerank.exceptions import Refused

__all__ = [
    "INNER_NAMES",
    "MOST_BYTES",
    "SCHEMA",
    "Contents",
    "check_built",
    "check_estimator",
    "check_members",
    "found",
    "object_classes",
    "open_archive",
    "read_member",
]

# What is read of an archive at most, unpacked, since a few kilobytes can unpack to gigabytes. A
# word of a text takes about 0.9 kB (measured on 5,000 words), so a column of texts, with 100,000
# words at most, about 90 MB.
MOST_BYTES = 1 << 29
# The directory of an archive, in bytes: 65,535 members with names of twenty letters.
_MOST_DIRECTORY = 1 << 23
# Values in `schema.json`: parsed, each takes about 100 bytes of memory. A word of a text has 12 of
# them.
_MOST_VALUES = 1 << 24
# Levels of lists and dictionaries within each other; models have up to 30.
_MOST_LEVELS = 200
# How many problems are named.
_MOST_NAMED = 10
# The one protocol of skops that is known here: nodes of another might mean something else.
_PROTOCOL = 2
SCHEMA = "schema.json"
INNER_NAMES = re.compile(r"schema\.json|[0-9]{1,20}\.np[yz]")
_MATRIX_NAMES = re.compile(r"(indices|indptr|format|shape|data|_is_array)\.npy")

_NUMPY = "bool bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 str_"
_SCALARS = {f"numpy.{name}" for name in _NUMPY.split()}
# For each kind of node the fields that it has beside those of all nodes, and what stands in them.
_FIELDS: dict[str, dict[str, str]] = {
    "DTypeNode": {"content": "node"},
    "DictNode": {"content": "dictionary of nodes", "key_types": "ListNode of TypeNodes"},
    "JsonNode": {"content": "string", "is_json": "truth value"},
    "ListNode": {"content": "list of nodes"},
    "NdArrayNode": {
        "type": "string",
        "file": "string",
        "content": "list of nodes",
        "shape": "node",
    },
    "ObjectNode": {"content": "node"},
    "RandomStateNode": {"content": "node"},
    "SliceNode": {"content": "slice"},
    "SparseMatrixNode": {"type": "string", "file": "string"},
    "TupleNode": {"content": "list of nodes"},
    "TypeNode": {},
}
_OF_ALL = {
    "__module__": "string",
    "__class__": "string",
    "__loader__": "string",
    "__id__": "number",
}
_OF_ROOT = {"protocol": "number", "_skops_version": "string"}
_CLASSES: dict[str, set[str]] = {
    "DTypeNode": {"numpy.dtype"},
    "DictNode": {"builtins.dict"},
    "JsonNode": {"builtins.str"},
    "ListNode": {"builtins.list"},
    "NdArrayNode": {"numpy.ndarray", *_SCALARS},
    "RandomStateNode": {"numpy.random.mtrand.RandomState"},
    "SliceNode": {"builtins.slice"},
    "SparseMatrixNode": {"scipy.sparse._csr.csr_matrix", "scipy.sparse._csr.csr_array"},
    "TupleNode": {"builtins.tuple"},
    "TypeNode": {"builtins.str", "builtins.int", "builtins.float", "builtins.bool", *_SCALARS},
}
# Classes of scikit-learn, by the modules that define them: those of our own pipelines, and steps
# and linear models that people put beside them. Left out are those that call functions they are
# given (FunctionTransformer) and those whose compiled code trusts its numbers (SVC, trees).
_SKLEARN = {
    "sklearn.calibration": "CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration _TemperatureScaling",
    "sklearn.compose._column_transformer": "ColumnTransformer",
    "sklearn.decomposition._pca": "PCA",
    "sklearn.decomposition._truncated_svd": "TruncatedSVD",
    "sklearn.feature_extraction.text": "CountVectorizer TfidfTransformer TfidfVectorizer",
    "sklearn.feature_selection._variance_threshold": "VarianceThreshold",
    "sklearn.impute._base": "MissingIndicator SimpleImputer",
    "sklearn.isotonic": "IsotonicRegression",
    "sklearn.kernel_approximation": "Nystroem RBFSampler",
    "sklearn.linear_model._logistic": "LogisticRegression LogisticRegressionCV",
    "sklearn.linear_model._ridge": "RidgeClassifier",
    "sklearn.model_selection._split": "GroupKFold KFold ShuffleSplit StratifiedGroupKFold StratifiedKFold "
    "StratifiedShuffleSplit",
    "sklearn.pipeline": "FeatureUnion Pipeline",
    "sklearn.preprocessing._data": "Binarizer MaxAbsScaler MinMaxScaler Normalizer PowerTransformer "
    "QuantileTransformer RobustScaler StandardScaler",
    "sklearn.preprocessing._discretization": "KBinsDiscretizer",
    "sklearn.preprocessing._encoders": "OneHotEncoder OrdinalEncoder",
    "sklearn.preprocessing._polynomial": "PolynomialFeatures",
    "sklearn.svm._classes": "LinearSVC",
}


@cache
def object_classes() -> frozenset[str]:
    """The classes that objects may have, by their whole names.

    Whole, since the modules of this package hold other modules, and a name such as
    forerank.models.file.platform.os would otherwise reach anything.
    """
    from forerank import estimators
    from forerank.data import columns
    from forerank.estimators.active_sampling import Round
    from forerank.selection import Ranker
    from forerank.solvers.boosting import Stump
    from forerank.solvers.result import Iteration

    ours: list[type] = [getattr(estimators, name) for name in estimators.__all__]
    ours += [Ranker, Round, Stump, Iteration, columns.TableColumns]
    ours += [columns.NumberColumns, columns.CategoryColumns, columns.TextColumn]
    theirs = {f"{module}.{name}" for module, names in _SKLEARN.items() for name in names.split()}
    return frozenset({f"{each.__module__}.{each.__qualname__}" for each in ours} | theirs)


# --- Archives ---


def open_archive(file: BinaryIO) -> zipfile.ZipFile:
    """The archive in a file, whose directory is not too long to be read."""
    size = file.seek(0, 2)
    file.seek(max(size - 42, 0))
    tail = file.read(42).rjust(42, b"\0")
    # Archives are written without a comment at the end, and without the records of those of more
    # than 65,535 members.
    if tail[20:24] != b"PK\5\6" or tail[40:] != b"\0\0":
        raise Refused("not a forerank model file, or it is damaged")
    (directory,) = struct.unpack("<I", tail[32:36])
    if tail[:4] == b"PK\6\7" or directory > _MOST_DIRECTORY:
        raise Refused("it has more than 65,535 members, which no model has")
    return zipfile.ZipFile(file)


def check_members(archive: zipfile.ZipFile, names: re.Pattern[str], room: int) -> int:
    """The size of all members, unpacked, after a look at each: none is read."""
    seen: set[str] = set()
    for member in archive.infolist():
        if member.filename in seen:
            raise Refused(f"two members have the name {member.filename!r}")
        seen.add(member.filename)
        if not names.fullmatch(member.filename):
            raise Refused(f"it has the member {member.filename!r}, which no model has")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise Refused(f"{member.filename}: a link in place of a member")
        _check_packing(member)
    size = sum(member.file_size for member in archive.infolist())
    if size > room:
        raise Refused(f"it unpacks to more than {MOST_BYTES >> 20} MB, which no model does")
    return size


def _check_packing(member: zipfile.ZipInfo) -> None:
    """Refuse what cannot be unpacked bit by bit: Python unpacks bzip2 and lzma in one piece,
    whatever the size.
    """
    if member.flag_bits & 1:
        raise Refused(f"{member.filename}: encrypted, which no model is")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Refused(
            f"{member.filename}: packed by another method than deflate, which no model is"
        )


def read_member(archive: zipfile.ZipFile, name: str, most: int = MOST_BYTES) -> bytes | None:
    """A member, or None where it has more bytes than `most`; no more than these are unpacked."""
    member = archive.getinfo(name)
    _check_packing(member)
    with archive.open(member) as file:
        data = file.read(most + 1)
    return None if len(data) > most else data


# --- Nodes ---


@dataclass
class Contents:
    """What the nodes of an estimator are: the names of their classes, those that no model has, and
    other faults.
    """

    types: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    _nodes: dict[str, None] = field(default_factory=dict)  # in the place of an ordered set
    _faults: dict[str, None] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        """Why the estimator is not loaded, nodes of other kinds and classes first; not more than a
        reader wants.
        """
        named = [*self._nodes, *self._faults]
        more = len(named) - _MOST_NAMED
        return named[:_MOST_NAMED] + ([f"{more:,} more"] if more > 0 else [])

    def add(self, fault: str) -> None:
        """Keep what is wrong with the form of a node or an array."""
        self._faults[_short(fault)] = None

    def add_node(self, loader: str, name: str) -> None:
        """Keep a node of a kind or class that no model has."""
        self.foreign.add(_short(name))
        self._nodes[_short(f"{_with_article(loader)} of {name}")] = None


def check_estimator(data: bytes) -> Contents:
    """What is in a file that skops wrote; nothing is built of it.

    Raises
    ------
    Refused
        Where its archive cannot be read, or is too large.
    """
    with open_archive(BytesIO(data)) as archive:
        room = MOST_BYTES - check_members(archive, INNER_NAMES, MOST_BYTES)
        schema = read_member(archive, SCHEMA)
        root = _parsed(schema or b"")
        contents = Contents()
        arrays = _check_nodes(root, contents)
        _check_arrays(archive, arrays, room, contents)
    return contents


def _parsed(schema: bytes) -> Any:
    values = sum(schema.count(mark) for mark in (b",", b"[", b"{"))
    if values > _MOST_VALUES:
        raise Refused(
            f"its schema has {values:,} values, more than {_MOST_VALUES:,}, which no model has"
        )
    try:
        return json.loads(
            schema
        )  # the same bytes by the same parser as skops: what is judged is what is built
    except RecursionError:
        raise Refused(
            f"its schema is nested more than {_MOST_LEVELS} levels deep, which no model is"
        ) from None


def _check_nodes(root: Any, contents: Contents) -> dict[str, str]:
    """Check every node; returns the members that hold arrays, each with the kind of its node."""
    if not isinstance(root, dict):
        raise Refused(f"its schema should be a node, found {found(root)}")
    if type(protocol := root.get("protocol")) is not int or protocol != _PROTOCOL:
        raise Refused(
            f"it was written in protocol {protocol!r} of skops; this version of forerank reads {_PROTOCOL}"
        )
    _check_root(root, contents)
    root = {name: value for name, value in root.items() if name not in _OF_ROOT}
    numbers: dict[int, tuple[Any, ...]] = {}
    below: dict[int, set[int]] = {}
    arrays: dict[str, str] = {}
    # What is still to be looked at, at which level, and whether it stands where a node should.
    stack: list[tuple[Any, int, bool]] = [(root, 0, True)]
    while stack:
        value, level, is_due = stack.pop()
        if level > _MOST_LEVELS:
            raise Refused(
                f"its schema is nested more than {_MOST_LEVELS} levels deep, which no model is"
            )
        if not is_due and not (isinstance(value, dict) and not _OF_ALL.keys().isdisjoint(value)):
            stack.extend((each, level + 1, False) for each in _values(value))
            continue
        if not _is_known(value, contents):
            stack.extend(
                (each, level + 1, False) for each in _values(value)
            )  # to name what hides below it
            continue
        number, children = value["__id__"], list(_children(value))
        # skops builds one object for all nodes of a number, whichever of them comes first.
        if numbers.setdefault(number, signature := _signature(value)) != signature:
            contents.add(f"two nodes with the number {number} that differ")
        below.setdefault(number, set()).update(
            child["__id__"] for child in children if _has_number(child)
        )
        _check_numbers(value, arrays, contents)
        stack.extend((child, level + 1, True) for child in children)
    try:
        TopologicalSorter(below).prepare()
    except CycleError:
        contents.add("a node within itself")
    return arrays


def _signature(node: dict[str, Any]) -> tuple[Any, ...]:
    """What nodes of one number have in common: one object, twice, has the same values within it.

    Below other kinds of nodes stand objects that are made for the file alone, and anew each time.
    """
    content: Any = node.get("content")
    if node["__loader__"] == "DictNode":
        content = [
            (name, _has_number(value) and value["__id__"]) for name, value in content.items()
        ]
    elif node["__loader__"] in ("ListNode", "TupleNode"):
        content = [_has_number(value) and value["__id__"] for value in content]
    elif node["__loader__"] != "JsonNode":
        content = None
    return node["__loader__"], node["__module__"], node["__class__"], content


def _has_number(node: Any) -> bool:
    return isinstance(node, dict) and _is(node.get("__id__"), "number")


def _check_numbers(node: dict[str, Any], arrays: dict[str, str], contents: Contents) -> None:
    """Note the member in which a node has its numbers; its name is that of the node, so that it is
    read only once.
    """
    if "file" in node:
        expected = f"{node['__id__']}.{'npy' if node['__loader__'] == 'NdArrayNode' else 'npz'}"
        if node["file"] != expected:
            contents.add(f"an array in {node['file']!r}, which should be in {expected!r}")
        arrays[expected] = node["__loader__"]
    if node["__loader__"] == "RandomStateNode" and not _is_random_state(node):
        contents.add("a RandomState of another form than numpy's")


def _values(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _check_root(root: dict[str, Any], contents: Contents) -> None:
    for name, kind in _OF_ROOT.items():
        if not _is(root.get(name), kind):
            contents.add(
                f"the field {name!r} of its schema, which should be a {kind}, found {found(root.get(name))}"
            )


def _is_known(node: Any, contents: Contents) -> bool:
    """Whether a node is of a kind, a class and a form that models have."""
    if not isinstance(node, dict):
        contents.add(f"{found(node)} in place of a node")
        return False
    for name, kind in _OF_ALL.items():
        if not _is(node.get(name), kind):
            contents.add(
                f"the field {name!r} of a node, which should be a {kind}, found {found(node.get(name))}"
            )
            return False
    loader, name = node["__loader__"], f"{node['__module__']}.{node['__class__']}"
    contents.types.add(_short(name))
    classes = object_classes() if loader == "ObjectNode" else _CLASSES.get(loader, ())
    if name not in classes:
        contents.add_node(loader, name)
        return False
    return _has_its_fields(node, loader, contents)


def _has_its_fields(node: dict[str, Any], loader: str, contents: Contents) -> bool:
    fields = _FIELDS[loader]
    whole = True
    for name in node:
        if name in _OF_ALL:
            continue
        if name not in fields:
            contents.add(
                f"the field {name!r} of {_with_article(loader)}, which such a node does not have"
            )
            whole = False
        elif not _is(node[name], fields[name]):
            place = f"the field {name!r} of {_with_article(loader)}"
            contents.add(f"{place}, which should be a {fields[name]}, found {found(node[name])}")
            whole = False
    needed = set(fields) - {"content"} if loader == "ObjectNode" else set(fields)
    if loader == "NdArrayNode":
        needed = {"type", "file"} if node.get("type") == "numpy" else {"type", "content", "shape"}
    if missing := sorted(needed - set(node)):
        contents.add(f"{_with_article(loader)} without {', '.join(missing)}")
        whole = False
    return whole


def _is(value: Any, kind: str) -> bool:
    """Whether a value is what a field should hold."""
    if kind == "string":
        return isinstance(value, str)
    if kind == "number":
        return type(value) is int
    if kind == "truth value":
        return isinstance(value, bool)
    if kind == "node":
        return isinstance(value, dict)
    if kind == "list of nodes":
        return isinstance(value, list)
    if kind == "dictionary of nodes":
        return isinstance(value, dict)
    if kind == "slice":
        ends = value.values() if isinstance(value, dict) else ()
        return len(ends) == 3 and all(end is None or type(end) is int for end in ends)
    # What stands here is called, with the keys of the dictionary.
    return isinstance(value, dict) and _are_types(value)


def _are_types(node: dict[str, Any]) -> bool:
    items = node.get("content")
    return (
        node.get("__loader__") == "ListNode"
        and isinstance(items, list)
        and all(isinstance(item, dict) and item.get("__loader__") == "TypeNode" for item in items)
    )


def _children(node: dict[str, Any]) -> Iterator[Any]:
    for name, kind in _FIELDS[node["__loader__"]].items():
        if name not in node:
            continue
        if kind in ("node", "ListNode of TypeNodes"):
            yield node[name]
        elif kind == "list of nodes":
            yield from node[name]
        elif kind == "dictionary of nodes":
            yield from node[name].values()


def _is_random_state(node: dict[str, Any]) -> bool:
    """Whether its place lies within its table of 624 numbers: numpy reads there without looking."""
    try:
        state = node["content"]["content"]["state"]["content"]
        place = json.loads(state["pos"]["content"])
    except (KeyError, TypeError, ValueError):
        return False
    return type(place) is int and 0 <= place <= 624


# --- Arrays ---


def _check_arrays(
    archive: zipfile.ZipFile, arrays: dict[str, str], room: int, contents: Contents
) -> None:
    names = set(archive.namelist())
    for name, loader in arrays.items():
        if name not in names:
            contents.add(f"an array in {name!r}, which is not there")
            continue
        data = read_member(archive, name) or b""
        try:
            if loader == "NdArrayNode":
                _check_array(data)
            else:
                room -= _check_matrix(data, room)
        except Refused as problem:
            contents.add(f"{name}: {problem}")
        except Exception as error:  # whatever wrong numbers lead to
            contents.add(f"{name}: not an array ({type(error).__name__})")


def _check_array(data: bytes) -> None:
    """Refuse an array in numpy's format that holds objects, or that is not as long as its header
    says.
    """
    file = BytesIO(data)
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise Refused("an array in a version of numpy's format that is not known")
    shape, _, dtype = readers[version](file)
    if dtype.hasobject:
        raise Refused("an array of Python objects, which could run code")
    if dtype.kind not in "biufUSmM" or min(shape, default=0) < 0:
        raise Refused(f"an array of {dtype}, which no model has")
    size = math.prod(shape)
    if size * dtype.itemsize != len(data) - file.tell() or (size and not dtype.itemsize):
        raise Refused("an array that is not as long as its header says")


def _check_matrix(data: bytes, room: int) -> int:
    """Refuse a sparse matrix with places outside of it, where compiled code would read; returns its
    size unpacked.
    """
    with open_archive(BytesIO(data)) as archive:
        size = check_members(archive, _MATRIX_NAMES, room)
        for name in archive.namelist():
            _check_array(read_member(archive, name) or b"")
    matrix = sp.load_npz(BytesIO(data))
    if matrix.format != "csr":
        raise Refused("a sparse matrix of another format than csr")
    matrix.check_format(full_check=True)
    return size


# --- What was built ---


def check_built(estimator: Any) -> None:
    """Refuse an estimator with numbers of columns outside of its matrix.

    scikit-learn makes sparse matrices of them and trusts that they lie within, as they do after a
    fit: compiled code would write elsewhere.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import OneHotEncoder

    stack, seen = [estimator], set()
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, CountVectorizer) and not _has_columns_of_words(value):
            raise Refused(f"a {type(value).__name__} with words in columns that it does not have")
        if isinstance(value, OneHotEncoder) and not _has_columns_of_values(value):
            raise Refused("a OneHotEncoder with values in columns that it does not have")
        if isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list | tuple) or (
            isinstance(value, np.ndarray) and value.dtype == object
        ):
            stack.extend(value)
        elif hasattr(value, "__dict__"):
            stack.extend(vars(value).values())


def _has_columns_of_words(vectorizer: Any) -> bool:
    words = getattr(vectorizer, "vocabulary_", {})
    return sorted(words.values()) == list(range(len(words)))


def _has_columns_of_values(encoder: Any) -> bool:
    """Whether each column of values has as many columns of ones and zeros as its values, grouped
    and dropped, need.
    """
    if not hasattr(encoder, "categories_"):
        return True
    for k, values in enumerate(encoder.categories_):
        places = list(range(len(values)))
        if encoder._infrequent_enabled:
            rare, groups = (
                encoder._infrequent_indices[k],
                encoder._default_to_infrequent_mappings[k],
            )
            places = (places if groups is None else [int(each) for each in groups]) + (
                [] if rare is None or groups is not None else [int(rare[0])]
            )
        width = 1 + max(places, default=-1)
        if (
            encoder._drop_idx_after_grouping is not None
            and encoder._drop_idx_after_grouping[k] is not None
        ):
            if not 0 <= encoder._drop_idx_after_grouping[k] < width:
                return False
            width -= 1
        if (
            min(places, default=0) < 0
            or width > len(values)
            or encoder._n_features_outs[k] != width
        ):
            return False
    return len(encoder._n_features_outs) == len(encoder.categories_)


# --- Words ---


def found(value: Any) -> str:
    """What a value of JSON is, in words."""
    kinds: Iterable[tuple[Any, str]] = [
        (bool, "a truth value"),
        (str, "a string"),
        ((int, float), "a number"),
        (list, "a list"),
        (dict, "a dictionary"),
    ]
    return next((words for kind, words in kinds if isinstance(value, kind)), "nothing")


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:197]}..."


def _with_article(kind: str) -> str:
    return f"an {kind}" if kind[:1] in "AEIOU" else f"a {kind}"
