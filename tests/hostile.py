"""Hostile model files, made anew by each run: `CORPUS` names them, and says what must be said about
each.

A maker gets a directory, writes a file there and returns its path. Where the file brings a command
to be run, that command makes the file `ran` in the directory: it must never be there.
"""

import hashlib
import io
import itertools
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import skops.io

from forerank import PairwiseRanker

Node = dict[str, Any]
_OURS = ("forerank.estimators.linear", "PairwiseRanker")
_numbers = itertools.count(1)


# --- Nodes ---


def node(loader: str, module: str = "builtins", name: str = "str", **fields: Any) -> Node:
    return {
        "__module__": module,
        "__class__": name,
        "__loader__": loader,
        "__id__": next(_numbers),
        **fields,
    }


def plain(value: Any = 1) -> Node:
    return node("JsonNode", content=json.dumps(value), is_json=True)


def listing(*nodes: Node) -> Node:
    return node("ListNode", name="list", content=list(nodes))


def several(*nodes: Node) -> Node:
    return node("TupleNode", name="tuple", content=list(nodes))


def mapping(content: dict[str, Node] | None = None, key_types: Node | None = None) -> Node:
    content = content or {}
    types = key_types or listing(*(node("TypeNode") for _ in content))
    return node("DictNode", name="dict", content=content, key_types=types)


def instance(module: str, name: str, **attributes: Node) -> Node:
    return node("ObjectNode", module, name, content=mapping(attributes))


def ours(**attributes: Node) -> Node:
    return instance(*_OURS, **attributes)


def method(obj: Node, function: str) -> Node:
    """An attribute of what another node makes, labelled with a class of ours."""
    return node("MethodNode", *_OURS, content={"obj": obj, "func": function})


def called(function: Node, argument: str) -> Node:
    """A dictionary whose only key is made by a call: keys are made by what stands in the place of
    their types.
    """
    return mapping({argument: plain()}, key_types=listing(function))


def command(directory: Path) -> str:
    return f"touch {directory / 'ran'}"


def evaluated(directory: Path) -> str:
    return f"__import__('os').system({command(directory)!r})"


# --- Files ---


def zipped(members: list[tuple[Any, bytes | str]], packing: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of these members, in this order, also where two have one name."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packing) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


def card_of(estimator: bytes, **changes: Any) -> dict[str, Any]:
    card = {
        "format": 1,
        "sha256": hashlib.sha256(estimator).hexdigest(),
        "columns": {},
        "target": None,
        "group": None,
    }
    return {**card, "summary": {}, "notes": [], "versions": {}, **changes}


def model_file(
    directory: Path, estimator: bytes, packing: int = zipfile.ZIP_DEFLATED, **changes: Any
) -> Path:
    path = directory / "hostile.forerank"
    card = json.dumps(card_of(estimator, **changes))
    path.write_bytes(zipped([("card.json", card), ("model.skops", estimator)], packing))
    return path


def of_schema(
    schema: Node, members: list[tuple[Any, bytes]] | None = None, **changes: Any
) -> bytes:
    schema = {**schema, "protocol": 2, "_skops_version": skops.__version__, **changes}
    return zipped([*(members or []), ("schema.json", json.dumps(schema))])


def of_nodes(make: Callable[[Path], Node]) -> Callable[[Path], Path]:
    """The maker of a file whose estimator is one of ours with what `make` gives as an attribute."""
    return lambda directory: model_file(directory, of_schema(ours(coef_=make(directory))))


def of_member(
    loader: str, module: str, name: str, suffix: str, kind: str, data: Callable[[], bytes]
) -> Any:
    """The maker of a file with an array or matrix of these bytes."""

    def make(directory: Path) -> Path:
        held = node(loader, module, name, type=kind)
        held["file"] = f"{held['__id__']}.{suffix}"
        return model_file(directory, of_schema(ours(coef_=held), [(held["file"], data())]))

    return make


def fitted() -> bytes:
    return skops.io.dumps(PairwiseRanker().fit([[0.0], [1.0]], [0, 1]))


# --- Nodes that would run something ---


def by_methods(directory: Path) -> Node:
    """From an object of ours to `eval` by attributes alone, then a call by way of a key."""
    item = method(method(method(ours(), "fit"), "__builtins__"), "__getitem__")
    return mapping({evaluated(directory): plain()}, key_types=called(item, "eval"))


def by_partial(directory: Path) -> Node:
    item = method(method(method(ours(), "fit"), "__builtins__"), "__getitem__")
    content = {"func": item, "args": several(), "kwds": mapping(), "namespace": mapping()}
    partial = node("PartialNode", *_OURS, content=content)
    return mapping({evaluated(directory): plain()}, key_types=called(partial, "eval"))


def by_operator(directory: Path) -> Node:
    return node(
        "OperatorFuncNode",
        "operator",
        "methodcaller",
        attrs=several(plain("system"), plain("true")),
    )


def by_function(directory: Path) -> Node:
    return called(node("FunctionNode", "posix", "system"), command(directory))


def by_module_of_ours(directory: Path) -> Node:
    os_of_ours = node("FunctionNode", "forerank.data.files", "os")
    system = node(
        "MethodNode", "forerank.data.files", "os", content={"func": "system", "obj": os_of_ours}
    )
    return called(system, command(directory))


def by_type(directory: Path) -> Node:
    return called(node("TypeNode", "posix", "system"), command(directory))


def by_constructor(directory: Path) -> Node:
    words = listing(plain("touch"), plain(str(directory / "ran")))
    return node("ConstructorFromReduceNode", "subprocess", "Popen", content=several(words))


def by_constructor_of_ours(directory: Path) -> Node:
    return node("ConstructorFromReduceNode", *_OURS, content=several())


def by_loss(directory: Path) -> Node:
    arguments = {"args": several(plain(command(directory)))}
    return node("LossNode", "posix", "system", __reduce__=arguments, content=mapping())


def by_reduce_of_ours(directory: Path) -> Node:
    return {**ours(), "__reduce__": {"args": several(plain(command(directory)))}}


def by_tree(directory: Path) -> Node:
    return node(
        "TreeNode", "sklearn.tree._tree", "Tree", __reduce__={"args": several()}, content=mapping()
    )


def by_default(directory: Path) -> Node:
    content = {"main": mapping(), "default_factory": node("TypeNode", "posix", "system")}
    return node("DefaultDictNode", "collections", "defaultdict", content=content)


def by_generator(directory: Path) -> Node:
    content = {"bit_generator": mapping({"bit_generator": plain("seed")}), "seed_seq": mapping()}
    return node("RandomGeneratorNode", "numpy.random._generator", "Generator", content=content)


def random_state(pos: Any) -> Node:
    state = mapping({"key": several(*[plain(0)] * 624), "pos": plain(pos)})
    content = {
        "bit_generator": plain("MT19937"),
        "state": state,
        "has_gauss": plain(0),
        "gauss": plain(0.0),
    }
    return node("RandomStateNode", "numpy.random.mtrand", "RandomState", content=mapping(content))


def hidden_in_version(directory: Path) -> Path:
    return model_file(directory, of_schema(ours(), _skops_version=by_methods(directory)))


def hidden_in_slice(directory: Path) -> Node:
    content = {"start": by_methods(directory), "stop": None, "step": None}
    return node("SliceNode", name="slice", content=content)


def hidden_in_json(directory: Path) -> Node:
    return node("JsonNode", content=by_methods(directory), is_json=True)


def hidden_in_shape(directory: Path) -> Node:
    return node(
        "NdArrayNode", "numpy", "ndarray", type="json", content=[], shape=by_methods(directory)
    )


def hidden_beside(directory: Path) -> Node:
    return {**ours(), "more": [{"deep": by_methods(directory)}]}


def another_node_of_the_same_id(directory: Path) -> Node:
    """Judged as a list of types, and yet the node that is built is the one that had the number
    first.
    """
    first = listing(ours())
    second = {**listing(node("TypeNode")), "__id__": first["__id__"]}
    return several(first, mapping({"a": plain()}, key_types=second))


def inside_itself(directory: Path) -> Node:
    outer, inner = ours(), ours()
    inner["__id__"] = outer["__id__"]
    outer["content"] = mapping({"coef_": inner})
    return outer


def cached(directory: Path) -> Node:
    held = ours()
    return several(held, {**node("CachedNode", *_OURS), "__id__": held["__id__"]})


def nested(directory: Path) -> Node:
    held = plain()
    for _ in range(300):
        held = listing(held)
    return held


def deeper_than_parsers_go(directory: Path) -> Path:
    return model_file(directory, zipped([("schema.json", "[" * 200_000 + "]" * 200_000)]))


def said_twice(directory: Path) -> Path:
    """Two values for one key: the last one counts for whoever parses it."""
    text = json.dumps(
        {**ours(coef_=by_methods(directory)), "protocol": 2, "_skops_version": skops.__version__}
    )
    twice = text.replace(
        '"__loader__": "MethodNode"', '"__loader__": "ObjectNode", "__loader__": "MethodNode"'
    )
    return model_file(directory, zipped([("schema.json", twice)]))


def millions_of_values(directory: Path) -> Path:
    return model_file(directory, zipped([("schema.json", "[" + "[]," * (1 << 24) + "[]]")]))


# --- Arrays ---


def npy(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


class Pickled:
    def __reduce__(self) -> Any:
        return print, ("a pickle was loaded",)


def pickled() -> bytes:
    return npy(np.array([Pickled()], dtype=object), allow_pickle=True)


def npy_that_claims(header: str, data: bytes = b"") -> bytes:
    words = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(words)) + words + data


def npz(**arrays: Any) -> bytes:
    return zipped(
        [(f"{name}.npy", npy(array, allow_pickle=True)) for name, array in arrays.items()]
    )


def csr(**changes: Any) -> bytes:
    parts = {
        "indices": np.array([0]),
        "indptr": np.array([0, 1]),
        "format": np.array(b"csr"),
        "shape": np.array([1, 1]),
    }
    return npz(**{**parts, "data": np.array([1.0]), **changes})


# --- Archives ---


def with_members(*more: tuple[Any, bytes | str]) -> Callable[[Path], Path]:
    """The maker of a file of a good model and these members beside it."""

    def make(directory: Path) -> Path:
        path, estimator = directory / "hostile.forerank", fitted()
        good = [("card.json", json.dumps(card_of(estimator))), ("model.skops", estimator)]
        path.write_bytes(zipped([*good, *more]))
        return path

    return make


def two_cards(directory: Path) -> Path:
    path, estimator = directory / "hostile.forerank", fitted()
    card = json.dumps(card_of(estimator))
    path.write_bytes(zipped([("card.json", card), ("model.skops", estimator), ("card.json", card)]))
    return path


def two_schemas(directory: Path) -> Path:
    schemas = [
        json.dumps({**schema, "protocol": 2, "_skops_version": skops.__version__})
        for schema in (ours(coef_=by_methods(directory)), ours())
    ]
    return model_file(directory, zipped([("schema.json", schema) for schema in schemas]))


def member(name: str, **attributes: Any) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    for attribute, value in attributes.items():
        setattr(info, attribute, value)
    return info


def inside(*more: tuple[Any, bytes]) -> Callable[[Path], Path]:
    """The maker of a file whose estimator has these members as well."""
    return lambda directory: model_file(directory, of_schema(ours(), list(more)))


def encrypted(directory: Path) -> Path:
    path = model_file(directory, fitted())
    data = bytearray(path.read_bytes())
    place = data.rfind(b"PK\x01\x02")
    data[place + 8] |= 1
    path.write_bytes(data)
    return path


def padded_card(directory: Path) -> Path:
    """500 MB of blanks within the card: half a megabyte on disk."""
    path, estimator = directory / "hostile.forerank", fitted()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("card.json", "w") as file:
            for _ in range(500):
                file.write(b" " * (1 << 20))
            file.write(json.dumps(card_of(estimator)).encode())
        archive.writestr("model.skops", estimator)
    return path


def padded_card_that_lies(directory: Path) -> Path:
    """As above, with a directory that says the card has 1,000 bytes."""
    path = padded_card(directory)
    data = bytearray(path.read_bytes())
    place = data.find(b"PK\x01\x02")
    data[place + 24 : place + 28] = struct.pack("<I", 1000)
    path.write_bytes(data)
    return path


def bomb_of_lzma(directory: Path) -> Path:
    """What is packed so is unpacked by Python in one piece, whatever part of it is asked for."""
    path, estimator = directory / "hostile.forerank", fitted()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("card.json", " " * (1 << 22) + json.dumps(card_of(estimator)))
        archive.writestr("model.skops", estimator)
    return path


def many_members(directory: Path) -> Path:
    return model_file(directory, of_schema(ours(), [(f"{k}.npy", b"") for k in range(66_000)]))


def deep_card(directory: Path) -> Path:
    path = directory / "hostile.forerank"
    path.write_bytes(zipped([("card.json", "[" * 200_000), ("model.skops", fitted())]))
    return path


def protocol(number: Any) -> Callable[[Path], Path]:
    return lambda directory: model_file(directory, of_schema(ours(), protocol=number))


class Hostile(NamedTuple):
    make: Callable[[Path], Path]
    said: str  # a part of what is said about it


def _array(data: Callable[[], bytes], name: str = "ndarray") -> Any:
    return of_member("NdArrayNode", "numpy", name, "npy", "numpy", data)


def _matrix(data: Callable[[], bytes], kind: str = "csr_matrix") -> Any:
    return of_member("SparseMatrixNode", "scipy.sparse._csr", kind, "npz", "scipy", data)


def _object(module: str, name: str) -> Any:
    return of_nodes(lambda directory: instance(module, name))


CORPUS: dict[str, Hostile] = {
    "methods of our classes": Hostile(of_nodes(by_methods), "a MethodNode"),
    "a method at the root": Hostile(
        lambda d: model_file(d, of_schema(by_methods(d))), "a MethodNode"
    ),
    "a partial function": Hostile(of_nodes(by_partial), "a PartialNode"),
    "an operator": Hostile(of_nodes(by_operator), "an OperatorFuncNode"),
    "a function": Hostile(of_nodes(by_function), "a FunctionNode of posix.system"),
    "a module within ours": Hostile(
        of_nodes(by_module_of_ours), "a FunctionNode of forerank.data.files.os"
    ),
    "a function of numpy": Hostile(
        of_nodes(lambda d: node("FunctionNode", "numpy", "log")), "a FunctionNode"
    ),
    "a type that is a function": Hostile(of_nodes(by_type), "a TypeNode of posix.system"),
    "eval as a type": Hostile(
        of_nodes(lambda d: called(node("TypeNode", name="eval"), "1")), "TypeNode of builtins.eval"
    ),
    "map as a type": Hostile(
        of_nodes(lambda d: node("TypeNode", name="map")), "a TypeNode of builtins.map"
    ),
    "a constructor": Hostile(
        of_nodes(by_constructor), "a ConstructorFromReduceNode of subprocess.Popen"
    ),
    "a constructor of ours": Hostile(
        of_nodes(by_constructor_of_ours), "a ConstructorFromReduceNode"
    ),
    "a loss": Hostile(of_nodes(by_loss), "a LossNode of posix.system"),
    "a reduce of ours": Hostile(of_nodes(by_reduce_of_ours), "the field '__reduce__'"),
    "a tree": Hostile(of_nodes(by_tree), "a TreeNode"),
    "a default": Hostile(of_nodes(by_default), "a DefaultDictNode"),
    "a generator": Hostile(of_nodes(by_generator), "a RandomGeneratorNode"),
    "a state beyond its table": Hostile(
        of_nodes(lambda d: random_state(10**6)), "a RandomState of another form"
    ),
    "a state before its table": Hostile(
        of_nodes(lambda d: random_state(-1)), "a RandomState of another form"
    ),
    "a state that is a program": Hostile(
        of_nodes(lambda d: node("RandomStateNode", "subprocess", "Popen", content=mapping())),
        "a RandomStateNode of subprocess.Popen",
    ),
    "an unknown kind": Hostile(of_nodes(lambda d: node("EvalNode", *_OURS)), "an EvalNode"),
    "a kind that is a number": Hostile(
        of_nodes(lambda d: {**ours(), "__loader__": 7}), "should be a string, found a number"
    ),
    "a program": Hostile(_object("subprocess", "Popen"), "an ObjectNode of subprocess.Popen"),
    "a function transformer": Hostile(
        _object("sklearn.preprocessing._function_transformer", "FunctionTransformer"),
        "FunctionTransformer",
    ),
    "a support vector machine": Hostile(
        _object("sklearn.svm._classes", "SVC"), "an ObjectNode of sklearn.svm._classes.SVC"
    ),
    "a dotted class": Hostile(
        _object(_OURS[0], "PairwiseRanker.fit.__globals__"), "PairwiseRanker.fit.__globals__"
    ),
    "a dotted module": Hostile(
        _object("forerank.models.platform", "os"), "forerank.models.platform.os"
    ),
    "a class in another module": Hostile(
        _object("forerank.estimators", "PairwiseRanker"), "forerank.estimators.PairwiseRanker"
    ),
    "a class with blanks": Hostile(_object(_OURS[0], "PairwiseRanker "), "PairwiseRanker "),
    "a dictionary of another class": Hostile(
        of_nodes(lambda d: {**mapping(), "__module__": "os", "__class__": "_Environ"}),
        "a DictNode of os._Environ",
    ),
    "a list of another class": Hostile(
        of_nodes(
            lambda d: {**listing(plain("touch")), "__module__": "subprocess", "__class__": "Popen"}
        ),
        "a ListNode of subprocess.Popen",
    ),
    "keys made by objects": Hostile(
        of_nodes(lambda d: called(ours(), "a")),
        "'key_types' of a DictNode, which should be a ListNode of TypeNodes",
    ),
    "hidden in the version": Hostile(hidden_in_version, "the field '_skops_version'"),
    "hidden in a slice": Hostile(of_nodes(hidden_in_slice), "'content' of a SliceNode"),
    "hidden in plain values": Hostile(
        of_nodes(hidden_in_json), "the field 'content' of a JsonNode"
    ),
    "hidden in a shape": Hostile(of_nodes(hidden_in_shape), "a MethodNode"),
    "hidden beside": Hostile(of_nodes(hidden_beside), "the field 'more'"),
    "one number, two nodes": Hostile(
        of_nodes(another_node_of_the_same_id), "two nodes with the number"
    ),
    "inside itself": Hostile(of_nodes(inside_itself), "a node within itself"),
    "a cached node": Hostile(of_nodes(cached), "a CachedNode"),
    "nested": Hostile(of_nodes(nested), "nested more than"),
    "nested beyond parsers": Hostile(deeper_than_parsers_go, "nested more than"),
    "a key said twice": Hostile(said_twice, "a MethodNode"),
    "millions of values": Hostile(millions_of_values, "values, more than"),
    "no node": Hostile(
        lambda d: model_file(d, zipped([("schema.json", "[]")])), "should be a node, found a list"
    ),
    "protocol of the future": Hostile(protocol(3), "protocol 3"),
    "protocol of the past": Hostile(protocol(0), "protocol 0"),
    "protocol that is true": Hostile(protocol(True), "protocol True"),
    "a pickled array": Hostile(_array(pickled), "an array of Python objects"),
    "a pickle": Hostile(_array(lambda: b"\x80\x04cposix\nsystem\n."), ".npy: "),
    "an array from a file": Hostile(
        _array(lambda: npy(np.array("/etc/passwd")), "memmap"), "a NdArrayNode of numpy.memmap"
    ),
    "an array of a terabyte": Hostile(
        _array(
            lambda: npy_that_claims(
                "{'descr': '<f8', 'fortran_order': False, 'shape': (125000000000,), }"
            )
        ),
        ".npy: ",
    ),
    "an array of nothing": Hostile(
        _array(
            lambda: npy_that_claims(
                "{'descr': '<U0', 'fortran_order': False, 'shape': (9223372036854775807,), }"
            )
        ),
        ".npy: ",
    ),
    "an array of records": Hostile(_array(lambda: npy(np.zeros(1, dtype=[("a", "f8")]))), ".npy: "),
    "an array that is a matrix": Hostile(
        of_nodes(
            lambda d: node("NdArrayNode", "numpy", "ndarray", type="numpy", file="schema.json")
        ),
        "'schema.json'",
    ),
    "an array from elsewhere": Hostile(
        of_nodes(
            lambda d: node("NdArrayNode", "numpy", "ndarray", type="numpy", file="/etc/passwd")
        ),
        "'/etc/passwd'",
    ),
    "one array for many nodes": Hostile(
        of_nodes(lambda d: node("NdArrayNode", "numpy", "ndarray", type="numpy", file="1.npy")),
        "'1.npy', which should",
    ),
    "a pickled matrix": Hostile(
        _matrix(lambda: csr(data=np.array([Pickled()], dtype=object))), "an array of Python objects"
    ),
    "a matrix beyond its columns": Hostile(
        _matrix(lambda: csr(indices=np.array([10**9]))), ".npz: "
    ),
    "a matrix before its columns": Hostile(_matrix(lambda: csr(indices=np.array([-5]))), ".npz: "),
    "a matrix with rows elsewhere": Hostile(
        _matrix(lambda: csr(indptr=np.array([0, 10**9]))), ".npz: "
    ),
    "a matrix of a terabyte": Hostile(
        _matrix(lambda: zipped([("data.npy", bytes(1 << 22))], zipfile.ZIP_LZMA)),
        "data.npy: packed by another method",
    ),
    "a matrix of another format": Hostile(_matrix(lambda: csr(format=np.array(b"dia"))), ".npz: "),
    "two cards": Hostile(two_cards, "two members have the name 'card.json'"),
    "two schemas": Hostile(two_schemas, "two members have the name 'schema.json'"),
    "a third member": Hostile(with_members(("run.py", b"")), "the member 'run.py'"),
    "a member above": Hostile(with_members(("../../up.py", b"")), "the member '../../up.py'"),
    "a member from the root": Hostile(with_members(("/etc/up", b"")), "the member '/etc/up'"),
    "an inner member above": Hostile(inside(("../1.npy", npy([1.0]))), "the member '../1.npy'"),
    "an inner program": Hostile(inside(("run.py", b"")), "the member 'run.py'"),
    "a link": Hostile(
        inside((member("1.npy", external_attr=0o120777 << 16), b"/etc/passwd")), "1.npy: a link"
    ),
    "encrypted": Hostile(encrypted, "encrypted"),
    "a card of 500 MB": Hostile(padded_card, "the card has more than 16 MB"),
    "a card of 500 MB that says 1 kB": Hostile(padded_card_that_lies, "not a forerank model file"),
    "a card packed otherwise": Hostile(bomb_of_lzma, "packed by another method"),
    "many members": Hostile(many_members, "more than 65,535 members"),
    "a deep card": Hostile(deep_card, "not a forerank model file"),
}
