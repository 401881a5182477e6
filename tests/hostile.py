"""Hostile model files, written again by each run: `CORPUS` names them, with a part of the message
that each is refused with.

A maker gets a directory, writes a file there and returns its path. If the file contains a command,
the command creates the file `ran` in the directory: it must never exist.
"""

import hashlib
import io
import json
import struct
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import skops.io

from forerank import PairwiseRanker
from hostile_nodes import NODES, NUMBERS, OURS, Node, by_methods, instance, node, ours

# --- Files ---


def zipped(
    members: Sequence[tuple[Any, bytes | str]], compression: int = zipfile.ZIP_STORED
) -> bytes:
    """An archive of these members, in this order, also where two have one name."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


def card_of(estimator: bytes, **changes: Any) -> dict[str, Any]:
    empty = {"columns": {}, "target": None, "group": None, "summary": {}, "notes": []}
    card = {"format": 1, "sha256": hashlib.sha256(estimator).hexdigest(), "versions": {}}
    return {**card, **empty, **changes}


def good_members(estimator: bytes, **changes: Any) -> list[tuple[Any, bytes | str]]:
    card = json.dumps(card_of(estimator, **changes))
    return [("card.json", card), ("model.skops", estimator)]


def written(directory: Path, *members: tuple[Any, bytes | str], compression: int = 0) -> Path:
    path = directory / "hostile.forerank"
    path.write_bytes(zipped(members, compression))
    return path


def model_file(directory: Path, estimator: bytes, **changes: Any) -> Path:
    members = good_members(estimator, **changes)
    return written(directory, *members, compression=zipfile.ZIP_DEFLATED)


def at_root(schema: Node) -> Node:
    return {**schema, "protocol": 2, "_skops_version": skops.__version__}


def of_schema(schema: Node, members: Sequence[tuple[Any, bytes]] = (), **changes: Any) -> bytes:
    return zipped([*members, ("schema.json", json.dumps({**at_root(schema), **changes}))])


def of_nodes(make: Callable[[Path], Node]) -> Callable[[Path], Path]:
    """The maker of a file whose estimator is one of ours with what `make` gives as an attribute."""
    return lambda directory: model_file(directory, of_schema(ours(coef_=make(directory))))


def of_class(module: str, name: str) -> Callable[[Path], Path]:
    return of_nodes(lambda directory: instance(module, name))


def _of_member(held: Node, suffix: str, data: Callable[[], bytes]) -> Callable[[Path], Path]:
    """The maker of a file with an array or matrix of these bytes."""

    def make(directory: Path) -> Path:
        numbered = {**held, "__id__": (number := next(NUMBERS)), "file": f"{number}.{suffix}"}
        return model_file(directory, of_schema(ours(coef_=numbered), [(numbered["file"], data())]))

    return make


def array(data: Callable[[], bytes], name: str = "ndarray") -> Callable[[Path], Path]:
    return _of_member(node("NdArrayNode", "numpy", name, type="numpy"), "npy", data)


def matrix(data: Callable[[], bytes]) -> Callable[[Path], Path]:
    held = node("SparseMatrixNode", "scipy.sparse._csr", "csr_matrix", type="scipy")
    return _of_member(held, "npz", data)


def fitted() -> bytes:
    return skops.io.dumps(PairwiseRanker().fit([[0.0], [1.0]], [0, 1]))


def hidden_in_version(directory: Path) -> Path:
    return model_file(directory, of_schema(ours(), _skops_version=by_methods(directory)))


def deeper_than_parsers_go(directory: Path) -> Path:
    return model_file(directory, zipped([("schema.json", "[" * 200_000 + "]" * 200_000)]))


def said_twice(directory: Path) -> Path:
    """Two values for one key: the last one counts for whoever parses it."""
    text = json.dumps(at_root(ours(coef_=by_methods(directory))))
    once = '"__loader__": "MethodNode"'
    twice = text.replace(once, f'"__loader__": "ObjectNode", {once}')
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


def npy_that_claims(dtype: str, length: int) -> bytes:
    """The header of an array without its data."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({length},), }}"
    words = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(words)) + words


def npz(**arrays: Any) -> bytes:
    data = {name: npy(array, allow_pickle=True) for name, array in arrays.items()}
    return zipped([(f"{name}.npy", content) for name, content in data.items()])


def csr(**changes: Any) -> bytes:
    """A matrix of one number, with some of its arrays replaced."""
    index = {"indices": np.array([0]), "indptr": np.array([0, 1]), "shape": np.array([1, 1])}
    parts = {**index, "format": np.array(b"csr"), "data": np.array([1.0])}
    return npz(**{**parts, **changes})


# --- Archives ---


def with_members(*more: tuple[Any, bytes | str]) -> Callable[[Path], Path]:
    """The maker of a file of a good model and these members beside it."""
    return lambda directory: written(directory, *good_members(fitted()), *more)


def two_cards(directory: Path) -> Path:
    members = good_members(fitted())
    return written(directory, *members, members[0])


def two_schemas(directory: Path) -> Path:
    schemas = ours(coef_=by_methods(directory)), ours()
    members: list[tuple[Any, str]] = [("schema.json", json.dumps(at_root(s))) for s in schemas]
    return model_file(directory, zipped(members))


def member(name: str, **attributes: Any) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    for attribute, value in attributes.items():
        setattr(info, attribute, value)
    return info


def inside(*more: tuple[Any, bytes]) -> Callable[[Path], Path]:
    """The maker of a file whose estimator has these members as well."""
    return lambda directory: model_file(directory, of_schema(ours(), more))


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
    """Python decompresses lzma in one piece, regardless of how many bytes are requested."""
    (name, card), estimator = good_members(fitted())
    padded = (name, " " * (1 << 22) + str(card))
    return written(directory, padded, estimator, compression=zipfile.ZIP_LZMA)


def many_members(directory: Path) -> Path:
    return model_file(directory, of_schema(ours(), [(f"{k}.npy", b"") for k in range(66_000)]))


def deep_card(directory: Path) -> Path:
    return written(directory, ("card.json", "[" * 200_000), ("model.skops", fitted()))


def protocol(number: Any) -> Callable[[Path], Path]:
    return lambda directory: model_file(directory, of_schema(ours(), protocol=number))


class Hostile(NamedTuple):
    """A hostile file: the function that writes it, and a part of the message it is refused with."""

    make: Callable[[Path], Path]
    message: str


# Objects of these classes (module, name), each with a part of the message.
_OBJECTS = {
    "a program": ("subprocess", "Popen", "an ObjectNode of subprocess.Popen"),
    "a function transformer": (
        "sklearn.preprocessing._function_transformer",
        "FunctionTransformer",
        "FunctionTransformer",
    ),
    "a support vector machine": (
        "sklearn.svm._classes",
        "SVC",
        "an ObjectNode of sklearn.svm._classes.SVC",
    ),
    "a dotted class": (
        OURS[0],
        "PairwiseRanker.fit.__globals__",
        "PairwiseRanker.fit.__globals__",
    ),
    "a dotted module": ("forerank.models.platform", "os", "forerank.models.platform.os"),
    "a class in another module": (
        "forerank.estimators",
        "PairwiseRanker",
        "forerank.estimators.PairwiseRanker",
    ),
    "a class with blanks": (OURS[0], "PairwiseRanker ", "PairwiseRanker "),
}
_CORPUS = {
    "a method at the root": (lambda d: model_file(d, of_schema(by_methods(d))), "a MethodNode"),
    "hidden in the version": (hidden_in_version, "the field '_skops_version'"),
    "nested beyond parsers": (deeper_than_parsers_go, "nested more than"),
    "a key said twice": (said_twice, "a MethodNode"),
    "millions of values": (millions_of_values, "values, more than"),
    "no node": (
        lambda d: model_file(d, zipped([("schema.json", "[]")])),
        "should be a node, found a list",
    ),
    "protocol of the future": (protocol(3), "protocol 3"),
    "protocol of the past": (protocol(0), "protocol 0"),
    "protocol that is true": (protocol(True), "protocol True"),
    "a pickled array": (array(pickled), "an array of Python objects"),
    "a pickle": (array(lambda: b"\x80\x04cposix\nsystem\n."), ".npy: "),
    "an array from a file": (
        array(lambda: npy(np.array("/etc/passwd")), "memmap"),
        "a NdArrayNode of numpy.memmap",
    ),
    "an array of a terabyte": (array(lambda: npy_that_claims("<f8", 125_000_000_000)), ".npy: "),
    "an array of nothing": (array(lambda: npy_that_claims("<U0", 2**63 - 1)), ".npy: "),
    "an array of records": (array(lambda: npy(np.zeros(1, dtype=[("a", "f8")]))), ".npy: "),
    "a pickled matrix": (
        matrix(lambda: csr(data=np.array([Pickled()], dtype=object))),
        "an array of Python objects",
    ),
    "a matrix beyond its columns": (matrix(lambda: csr(indices=np.array([10**9]))), ".npz: "),
    "a matrix before its columns": (matrix(lambda: csr(indices=np.array([-5]))), ".npz: "),
    "a matrix with rows elsewhere": (matrix(lambda: csr(indptr=np.array([0, 10**9]))), ".npz: "),
    "a matrix of a terabyte": (
        matrix(lambda: zipped([("data.npy", bytes(1 << 22))], zipfile.ZIP_LZMA)),
        "the member 'data.npy' is compressed by another method",
    ),
    "a matrix of another format": (matrix(lambda: csr(format=np.array(b"dia"))), ".npz: "),
    "two cards": (two_cards, "two members with the name 'card.json'"),
    "two schemas": (two_schemas, "two members with the name 'schema.json'"),
    "a third member": (with_members(("run.py", b"")), "the member 'run.py'"),
    "a member above": (with_members(("../../up.py", b"")), "the member '../../up.py'"),
    "a member from the root": (with_members(("/etc/up", b"")), "the member '/etc/up'"),
    "an inner member above": (inside(("../1.npy", npy([1.0]))), "the member '../1.npy'"),
    "an inner program": (inside(("run.py", b"")), "the member 'run.py'"),
    "a link": (
        inside((member("1.npy", external_attr=0o120777 << 16), b"/etc/passwd")),
        "the member '1.npy' is a link",
    ),
    "encrypted": (encrypted, "encrypted"),
    "a card of 500 MB": (padded_card, "the card has more than 16 MB"),
    "a card of 500 MB that says 1 kB": (padded_card_that_lies, "not a forerank model file"),
    "a card packed otherwise": (bomb_of_lzma, "compressed by another method"),
    "many members": (many_members, "more than 65,535 members"),
    "a deep card": (deep_card, "not a forerank model file"),
}
CORPUS = {
    **{name: Hostile(of_nodes(make), message) for name, (make, message) in NODES.items()},
    **{name: Hostile(of_class(*names), message) for name, (*names, message) in _OBJECTS.items()},
    **{name: Hostile(*case) for name, case in _CORPUS.items()},
}
