"""Safety of model files: an estimator is checked before any object is built from it.

skops has its own list of trusted classes. It is not relied on alone: versions before 0.12 checked
the class that a node is labelled with and not what the node does, so that a file could run any
command. Here every node of `schema.json` must be of a kind, and within its kind of a class, that
models of this package need; every field of a node must have the type that this kind of node has;
every array must be as long as its header says and hold no Python objects. Sizes are limited before
anything is decompressed (`forerank.models.archive`).
"""

import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from graphlib import CycleError, TopologicalSorter
from io import BytesIO
from typing import Any

import numpy as np

from forerank.exceptions import Refused
from forerank.models.archive import (
    MAX_BYTES,
    check_array,
    check_matrix,
    check_members,
    open_archive,
    read_member,
)

__all__ = [
    "ESTIMATOR_MEMBERS",
    "SCHEMA",
    "EstimatorCheck",
    "allowed_classes",
    "check_built",
    "check_estimator",
    "json_type",
]

Node = dict[str, Any]

# Values in `schema.json`: each takes about 100 bytes of memory once parsed. A word of a text column
# takes 12 values.
_MAX_VALUES = 1 << 24
# Levels of nested lists and dictionaries in `schema.json`; models have up to 30.
_MAX_LEVELS = 200
# Problems that an error message lists, and characters of each.
_MAX_PROBLEMS = 10
_MAX_PROBLEM_LENGTH = 200
# Protocol version of skops that is supported; nodes of others may have another meaning.
_PROTOCOL = 2
# Number of 32-bit words in the table of a RandomState (Mersenne Twister).
_RANDOM_STATE_WORDS = 624
SCHEMA = "schema.json"
# Names of the members that skops writes.
ESTIMATOR_MEMBERS = re.compile(r"schema\.json|[0-9]{1,20}\.np[yz]")

_NUMPY = "bool bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 str_"
_SCALARS = {f"numpy.{name}" for name in _NUMPY.split()}
# Types of the fields that every node has.
_NODE_FIELDS = dict.fromkeys(("__module__", "__class__", "__loader__"), "string")
_NODE_FIELDS["__id__"] = "number"
# Types of the additional fields of the root.
_ROOT_FIELDS = {"protocol": "number", "_skops_version": "string"}
# Types of the additional fields of each kind of node.
_FIELDS: dict[str, dict[str, str]] = {
    "DTypeNode": {"content": "node"},
    "DictNode": {"content": "dictionary of nodes", "key_types": "ListNode of TypeNodes"},
    "JsonNode": {"content": "string", "is_json": "boolean"},
    "ListNode": {"content": "list of nodes"},
    "NdArrayNode": dict.fromkeys(("type", "file"), "string")
    | {"content": "list of nodes", "shape": "node"},
    "ObjectNode": {"content": "node"},
    "RandomStateNode": {"content": "node"},
    "SliceNode": {"content": "slice"},
    "SparseMatrixNode": {"type": "string", "file": "string"},
    "TupleNode": {"content": "list of nodes"},
    "TypeNode": {},
}
# Classes that each kind of node may have; those of an ObjectNode are `allowed_classes`.
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
# Classes of scikit-learn by defining module: those of our pipelines, and transformers and linear
# models that users combine with them. Not allowed are classes that call functions they are given
# (FunctionTransformer) and classes whose compiled code does not check its arrays (SVC, trees).
_SKLEARN = {
    "sklearn.calibration": "CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration "
    "_TemperatureScaling",
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
    "sklearn.model_selection._split": "GroupKFold KFold ShuffleSplit StratifiedGroupKFold "
    "StratifiedKFold StratifiedShuffleSplit",
    "sklearn.pipeline": "FeatureUnion Pipeline",
    "sklearn.preprocessing._data": "Binarizer MaxAbsScaler MinMaxScaler Normalizer "
    "PowerTransformer QuantileTransformer RobustScaler StandardScaler",
    "sklearn.preprocessing._discretization": "KBinsDiscretizer",
    "sklearn.preprocessing._encoders": "OneHotEncoder OrdinalEncoder",
    "sklearn.preprocessing._polynomial": "PolynomialFeatures",
    "sklearn.svm._classes": "LinearSVC",
}


@cache
def allowed_classes() -> frozenset[str]:
    """Full names of the classes that objects in a model file may have.

    Full names, since the modules of this package import other modules, and a name such as
    forerank.models.file.zipfile.os would otherwise reach everything.
    """
    from forerank import estimators
    from forerank.data import (
        additive_columns,
        forms,
        splines,
        transformers,
        tree_columns,
        word_counts,
    )
    from forerank.estimators.sampled import Round
    from forerank.selection import Ranker
    from forerank.selection.average import ScoreAverage
    from forerank.solvers.boosting import Stump
    from forerank.solvers.result import Iteration
    from forerank.trees import TreeEnsemble

    ours: list[type] = [getattr(estimators, name) for name in estimators.__all__]
    ours += [Ranker, Round, Stump, TreeEnsemble, Iteration, transformers.TableColumns]
    ours += [transformers.NumberColumns, transformers.CategoryColumns, transformers.TextColumn]
    ours += [additive_columns.AdditiveColumns, splines.ColumnSpline, word_counts.WordCounts]
    ours += [getattr(tree_columns, name) for name in tree_columns.__all__]
    ours += [forms.FormColumns, ScoreAverage]
    theirs = {f"{module}.{name}" for module, names in _SKLEARN.items() for name in names.split()}
    return frozenset({f"{each.__module__}.{each.__qualname__}" for each in ours} | theirs)


@dataclass
class EstimatorCheck:
    """Result of the check of an estimator.

    Attributes
    ----------
    types : set of str
        Full names of the classes in it.
    foreign : set of str
        Those of them that are not allowed in a model file.
    """

    types: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    _foreign_nodes: dict[str, None] = field(default_factory=dict)  # used as an ordered set
    _faults: dict[str, None] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        """Reasons not to load the estimator, foreign classes first; a count of those not listed."""
        problems = [*self._foreign_nodes, *self._faults]
        more = len(problems) - _MAX_PROBLEMS
        return problems[:_MAX_PROBLEMS] + ([f"{more:,} more"] if more > 0 else [])

    def add(self, fault: str) -> None:
        """Note a malformed node or array."""
        self._faults[_shortened(fault)] = None

    def add_foreign(self, loader: str, name: str) -> None:
        """Note a node of a kind or class that is not allowed in a model file."""
        self.foreign.add(_shortened(name))
        self._foreign_nodes[_shortened(f"{_with_article(loader)} of {name}")] = None

    def check_fields(self, node: Node, fields: dict[str, str], owner: str) -> bool:
        """Whether the fields have their types; each that has not is noted."""
        wrong = [name for name, kind in fields.items() if not _TYPES[kind](node.get(name))]
        for name in wrong:
            expected = f"which should be a {fields[name]}, found {json_type(node.get(name))}"
            self.add(f"the field {name!r} of {owner}, {expected}")
        return not wrong


def check_estimator(data: bytes) -> EstimatorCheck:
    """Check of an estimator as skops wrote it; nothing is built from it.

    Raises
    ------
    Refused
        If its archive cannot be read or is too large.
    """
    with open_archive(BytesIO(data)) as archive:
        left = MAX_BYTES - check_members(archive, ESTIMATOR_MEMBERS, MAX_BYTES)
        root = _parse(read_member(archive, SCHEMA) or b"")
        result = EstimatorCheck()
        arrays = _check_nodes(root, result)
        _check_arrays(archive, arrays, left, result)
    return result


def _parse(schema: bytes) -> Any:
    values = sum(schema.count(mark) for mark in (b",", b"[", b"{"))
    if values > _MAX_VALUES:
        raise Refused(f"the schema has {values:,} values, more than the limit of {_MAX_VALUES:,}")
    try:
        return json.loads(schema)  # skops parses the same bytes with the same parser
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> Refused:
    return Refused(f"the schema is nested more than {_MAX_LEVELS} levels deep, which is the limit")


# --- Nodes ---


def _check_nodes(root: Any, result: EstimatorCheck) -> dict[str, str]:
    """Members that hold arrays, each with the kind of its node; all nodes are checked."""
    if not isinstance(root, dict):
        raise Refused(f"the schema should be a node, found {json_type(root)}")
    if type(protocol := root.get("protocol")) is not int or protocol != _PROTOCOL:
        raise Refused(
            f"it was written in protocol {protocol!r} of skops; "
            f"this version of forerank reads protocol {_PROTOCOL}"
        )
    result.check_fields(root, _ROOT_FIELDS, "its schema")
    root = {name: value for name, value in root.items() if name not in _ROOT_FIELDS}
    signatures: dict[int, tuple[Any, ...]] = {}
    children_of: dict[int, set[int]] = {}
    arrays: dict[str, str] = {}
    # Values to check, each with its level and whether it must be a node.
    stack: list[tuple[Any, int, bool]] = [(root, 0, True)]
    while stack:
        value, level, must_be_node = stack.pop()
        if level > _MAX_LEVELS:
            raise _too_deep()
        looks_like_node = isinstance(value, dict) and not _NODE_FIELDS.keys().isdisjoint(value)
        if not (must_be_node or looks_like_node) or not _is_allowed(value, result):
            # Below a refused node too: foreign classes there are reported.
            stack.extend((item, level + 1, False) for item in _values(value))
            continue
        number, children = value["__id__"], list(_children(value))
        # skops builds one object for all nodes of a number, from the first of them.
        signature = _signature(value)
        if signatures.setdefault(number, signature) != signature:
            result.add(f"two nodes with the number {number} that differ")
        numbers = {child["__id__"] for child in children if _has_number(child)}
        children_of.setdefault(number, set()).update(numbers)
        _check_member(value, arrays, result)
        stack.extend((child, level + 1, True) for child in children)
    try:
        TopologicalSorter(children_of).prepare()
    except CycleError:
        result.add("a node that contains itself")
    return arrays


def _signature(node: Node) -> tuple[Any, ...]:
    """Properties that are equal for all nodes of one number: one object has one set of values.

    Nodes of other kinds contain objects that skops makes again for each of them.
    """
    content: Any = node.get("content")
    if node["__loader__"] == "DictNode":
        content = [(key, _has_number(value) and value["__id__"]) for key, value in content.items()]
    elif node["__loader__"] in ("ListNode", "TupleNode"):
        content = [_has_number(value) and value["__id__"] for value in content]
    elif node["__loader__"] != "JsonNode":
        content = None
    return node["__loader__"], node["__module__"], node["__class__"], content


def _has_number(node: Any) -> bool:
    return isinstance(node, dict) and type(node.get("__id__")) is int


def _check_member(node: Node, arrays: dict[str, str], result: EstimatorCheck) -> None:
    """Add the member that holds the node's array; it has the node's number, so it is read once."""
    if "file" in node:
        expected = f"{node['__id__']}.{'npy' if node['__loader__'] == 'NdArrayNode' else 'npz'}"
        if node["file"] != expected:
            result.add(f"an array in {node['file']!r}, which should be in {expected!r}")
        arrays[expected] = node["__loader__"]
    if node["__loader__"] == "RandomStateNode" and not _is_random_state(node):
        result.add("a RandomState of another form than numpy's")


def _values(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _is_allowed(node: Any, result: EstimatorCheck) -> bool:
    """Whether a node is of a kind, a class and a form that models have; problems are noted."""
    if not isinstance(node, dict):
        result.add(f"{json_type(node)} where a node should be")
        return False
    if not result.check_fields(node, _NODE_FIELDS, "a node"):
        return False
    loader, name = node["__loader__"], f"{node['__module__']}.{node['__class__']}"
    result.types.add(_shortened(name))
    classes = allowed_classes() if loader == "ObjectNode" else _CLASSES.get(loader, ())
    if name not in classes:
        result.add_foreign(loader, name)
        return False
    return _has_its_fields(node, loader, result)


def _has_its_fields(node: Node, loader: str, result: EstimatorCheck) -> bool:
    fields, owner = _FIELDS[loader], _with_article(loader)
    unknown = [name for name in node if name not in _NODE_FIELDS and name not in fields]
    for name in unknown:
        result.add(f"the field {name!r} of {owner}, which such a node does not have")
    present = {name: kind for name, kind in fields.items() if name in node}
    are_right = result.check_fields(node, present, owner)
    required = set(fields) - {"content"} if loader == "ObjectNode" else set(fields)
    if loader == "NdArrayNode":
        required = {"type", "file"} if node.get("type") == "numpy" else {"type", "content", "shape"}
    if missing := sorted(required - set(node)):
        result.add(f"{owner} without {', '.join(missing)}")
    return are_right and not unknown and not missing


def _is_slice(value: Any) -> bool:
    ends = value.values() if isinstance(value, dict) else ()
    return len(ends) == 3 and all(end is None or type(end) is int for end in ends)


def _is_list_of_types(node: Any) -> bool:
    """Whether a node is a list of types; skops calls them, with the keys of a dictionary."""
    if not isinstance(node, dict) or node.get("__loader__") != "ListNode":
        return False
    items = node.get("content")
    return isinstance(items, list) and all(
        isinstance(item, dict) and item.get("__loader__") == "TypeNode" for item in items
    )


_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: type(value) is int,
    "boolean": lambda value: isinstance(value, bool),
    "node": lambda value: isinstance(value, dict),
    "list of nodes": lambda value: isinstance(value, list),
    "dictionary of nodes": lambda value: isinstance(value, dict),
    "slice": _is_slice,
    "ListNode of TypeNodes": _is_list_of_types,
}


def _children(node: Node) -> Iterator[Any]:
    for name, kind in _FIELDS[node["__loader__"]].items():
        if name not in node:
            continue
        if kind in ("node", "ListNode of TypeNodes"):
            yield node[name]
        elif kind.endswith("of nodes"):
            yield from _values(node[name])


def _is_random_state(node: Node) -> bool:
    """Whether its position is within its table; numpy reads there without a check."""
    try:
        state = node["content"]["content"]["state"]["content"]
        position = json.loads(state["pos"]["content"])
    except (KeyError, TypeError, ValueError):
        return False
    return type(position) is int and 0 <= position <= _RANDOM_STATE_WORDS


def _check_arrays(
    archive: zipfile.ZipFile, arrays: dict[str, str], max_bytes: int, result: EstimatorCheck
) -> None:
    """Check the members that hold arrays; matrices decompress to `max_bytes` at most."""
    names = set(archive.namelist())
    for name, loader in arrays.items():
        if name not in names:
            result.add(f"an array in {name!r}, which is missing")
            continue
        data = read_member(archive, name) or b""
        try:
            if loader == "NdArrayNode":
                check_array(data)
            else:
                max_bytes -= check_matrix(data, max_bytes)
        except Refused as problem:
            result.add(f"{name}: {problem}")
        except Exception as error:  # malformed bytes make numpy and scipy raise many types
            result.add(f"{name}: not an array ({type(error).__name__})")


# --- Objects ---


def check_built(estimator: Any) -> None:
    """Refuse a built estimator with column numbers outside of its matrix, or trees of which nodes
    point outside.

    scikit-learn makes sparse matrices from column numbers without a check, since they are valid
    after a fit; compiled code would write elsewhere.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import OneHotEncoder

    from forerank.trees import TreeEnsemble

    stack, seen = [estimator], set()
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, CountVectorizer) and not _has_valid_vocabulary(value):
            name = type(value).__name__
            raise Refused(f"a {name} whose words have wrong column numbers")
        if isinstance(value, OneHotEncoder) and not _has_valid_widths(value):
            raise Refused("a OneHotEncoder whose values have wrong column numbers")
        if isinstance(value, TreeEnsemble) and (problem := value.problem()) is not None:
            raise Refused(problem)
        is_array = isinstance(value, np.ndarray) and value.dtype == object
        if isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list | tuple) or is_array:
            stack.extend(value)
        elif hasattr(value, "__dict__"):
            stack.extend(vars(value).values())


def _has_valid_vocabulary(vectorizer: Any) -> bool:
    words = getattr(vectorizer, "vocabulary_", {})
    return sorted(words.values()) == list(range(len(words)))


def _has_valid_widths(encoder: Any) -> bool:
    """Whether each category column has as many one-hot columns as its values need.

    Infrequent values share a column, and a dropped one has none.
    """
    if not hasattr(encoder, "categories_"):
        return True
    dropped = encoder._drop_idx_after_grouping
    for k, values in enumerate(encoder.categories_):
        positions = list(range(len(values)))
        if encoder._infrequent_enabled:
            infrequent = encoder._infrequent_indices[k]
            groups = encoder._default_to_infrequent_mappings[k]
            if groups is not None:
                positions = [int(group) for group in groups]
            elif infrequent is not None:
                positions.append(int(infrequent[0]))
        width = 1 + max(positions, default=-1)
        if dropped is not None and dropped[k] is not None:
            if not 0 <= dropped[k] < width:
                return False
            width -= 1
        is_inside = min(positions, default=0) >= 0 and width <= len(values)
        if not is_inside or encoder._n_features_outs[k] != width:
            return False
    return len(encoder._n_features_outs) == len(encoder.categories_)


# --- Wording of problems ---

_JSON_TYPES: dict[type, str] = dict.fromkeys((int, float), "a number")
_JSON_TYPES |= {bool: "a boolean", str: "a string", list: "a list", dict: "a dictionary"}


def json_type(value: Any) -> str:
    """The type of a JSON value, with its article."""
    return _JSON_TYPES.get(type(value), "nothing")


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_PROBLEM_LENGTH else f"{text[: _MAX_PROBLEM_LENGTH - 3]}..."


def _with_article(kind: str) -> str:
    return f"an {kind}" if kind[:1] in "AEIOU" else f"a {kind}"
