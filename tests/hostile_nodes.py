"""Nodes of hostile estimators, as skops would write them, and `NODES`: those that must be refused.

A function of a directory makes a node. If the node contains a command, the command creates the file
`ran` in that directory.
"""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Node = dict[str, Any]
OURS = ("forerank.estimators.pairwise", "PairwiseRanker")
NUMBERS = itertools.count(1)


def node(loader: str, module: str = "builtins", name: str = "str", **fields: Any) -> Node:
    identity = {"__module__": module, "__class__": name, "__loader__": loader}
    return {**identity, "__id__": next(NUMBERS), **fields}


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
    return instance(*OURS, **attributes)


def method(obj: Node, function: str) -> Node:
    """An attribute of what another node makes, labelled with a class of ours."""
    return node("MethodNode", *OURS, content={"obj": obj, "func": function})


def called(function: Node, argument: str) -> Node:
    """A dictionary whose only key is made by a call: keys are made by what stands in the place of
    their types.
    """
    return mapping({argument: plain()}, key_types=listing(function))


def command(directory: Path) -> str:
    return f"touch {directory / 'ran'}"


def evaluated(directory: Path) -> str:
    return f"__import__('os').system({command(directory)!r})"


# --- Nodes that would run something ---


def by_methods(directory: Path) -> Node:
    """From an object of ours to `eval` by attributes alone, then a call by way of a key."""
    item = method(method(method(ours(), "fit"), "__builtins__"), "__getitem__")
    return mapping({evaluated(directory): plain()}, key_types=called(item, "eval"))


def by_partial(directory: Path) -> Node:
    item = method(method(method(ours(), "fit"), "__builtins__"), "__getitem__")
    content = {"func": item, "args": several(), "kwds": mapping(), "namespace": mapping()}
    partial = node("PartialNode", *OURS, content=content)
    return mapping({evaluated(directory): plain()}, key_types=called(partial, "eval"))


def by_operator(directory: Path) -> Node:
    attributes = several(plain("system"), plain("true"))
    return node("OperatorFuncNode", "operator", "methodcaller", attrs=attributes)


def by_function(directory: Path) -> Node:
    return called(node("FunctionNode", "posix", "system"), command(directory))


def by_module_of_ours(directory: Path) -> Node:
    os_of_ours = node("FunctionNode", "forerank.data.files", "os")
    content = {"func": "system", "obj": os_of_ours}
    system = node("MethodNode", "forerank.data.files", "os", content=content)
    return called(system, command(directory))


def by_type(directory: Path) -> Node:
    return called(node("TypeNode", "posix", "system"), command(directory))


def by_constructor(directory: Path) -> Node:
    words = listing(plain("touch"), plain(str(directory / "ran")))
    return node("ConstructorFromReduceNode", "subprocess", "Popen", content=several(words))


def by_constructor_of_ours(directory: Path) -> Node:
    return node("ConstructorFromReduceNode", *OURS, content=several())


def by_loss(directory: Path) -> Node:
    arguments = {"args": several(plain(command(directory)))}
    return node("LossNode", "posix", "system", __reduce__=arguments, content=mapping())


def by_reduce_of_ours(directory: Path) -> Node:
    return {**ours(), "__reduce__": {"args": several(plain(command(directory)))}}


def by_tree(directory: Path) -> Node:
    reduced = {"args": several()}
    return node("TreeNode", "sklearn.tree._tree", "Tree", __reduce__=reduced, content=mapping())


def by_default(directory: Path) -> Node:
    content = {"main": mapping(), "default_factory": node("TypeNode", "posix", "system")}
    return node("DefaultDictNode", "collections", "defaultdict", content=content)


def by_generator(directory: Path) -> Node:
    content = {"bit_generator": mapping({"bit_generator": plain("seed")}), "seed_seq": mapping()}
    return node("RandomGeneratorNode", "numpy.random._generator", "Generator", content=content)


def random_state(pos: Any) -> Node:
    state = mapping({"key": several(*[plain(0)] * 624), "pos": plain(pos)})
    gauss = {"has_gauss": plain(0), "gauss": plain(0.0)}
    content = mapping({"bit_generator": plain("MT19937"), "state": state, **gauss})
    return node("RandomStateNode", "numpy.random.mtrand", "RandomState", content=content)


# --- Nodes that hide or repeat others ---


def hidden_in_slice(directory: Path) -> Node:
    content = {"start": by_methods(directory), "stop": None, "step": None}
    return node("SliceNode", name="slice", content=content)


def hidden_in_json(directory: Path) -> Node:
    return node("JsonNode", content=by_methods(directory), is_json=True)


def hidden_in_shape(directory: Path) -> Node:
    shape = by_methods(directory)
    return node("NdArrayNode", "numpy", "ndarray", type="json", content=[], shape=shape)


def array_in(file: str) -> Node:
    return node("NdArrayNode", "numpy", "ndarray", type="numpy", file=file)


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
    return several(held, {**node("CachedNode", *OURS), "__id__": held["__id__"]})


def nested(directory: Path) -> Node:
    held = plain()
    for _ in range(300):
        held = listing(held)
    return held


# Attributes of an estimator, each with a part of the message.
NODES: dict[str, tuple[Callable[[Path], Node], str]] = {
    "methods of our classes": (by_methods, "a MethodNode"),
    "a partial function": (by_partial, "a PartialNode"),
    "an operator": (by_operator, "an OperatorFuncNode"),
    "a function": (by_function, "a FunctionNode of posix.system"),
    "a module within ours": (by_module_of_ours, "a FunctionNode of forerank.data.files.os"),
    "a function of numpy": (lambda d: node("FunctionNode", "numpy", "log"), "a FunctionNode"),
    "a type that is a function": (by_type, "a TypeNode of posix.system"),
    "eval as a type": (
        lambda d: called(node("TypeNode", name="eval"), "1"),
        "TypeNode of builtins.eval",
    ),
    "map as a type": (lambda d: node("TypeNode", name="map"), "a TypeNode of builtins.map"),
    "a constructor": (by_constructor, "a ConstructorFromReduceNode of subprocess.Popen"),
    "a constructor of ours": (by_constructor_of_ours, "a ConstructorFromReduceNode"),
    "a loss": (by_loss, "a LossNode of posix.system"),
    "a reduce of ours": (by_reduce_of_ours, "the field '__reduce__'"),
    "a tree": (by_tree, "a TreeNode"),
    "a default": (by_default, "a DefaultDictNode"),
    "a generator": (by_generator, "a RandomGeneratorNode"),
    "a state beyond its table": (lambda d: random_state(10**6), "a RandomState of another form"),
    "a state before its table": (lambda d: random_state(-1), "a RandomState of another form"),
    "a state that is a program": (
        lambda d: node("RandomStateNode", "subprocess", "Popen", content=mapping()),
        "a RandomStateNode of subprocess.Popen",
    ),
    "an unknown kind": (lambda d: node("EvalNode", *OURS), "an EvalNode"),
    "a kind that is a number": (
        lambda d: {**ours(), "__loader__": 7},
        "should be a string, found a number",
    ),
    "a dictionary of another class": (
        lambda d: {**mapping(), "__module__": "os", "__class__": "_Environ"},
        "a DictNode of os._Environ",
    ),
    "a list of another class": (
        lambda d: {**listing(plain("touch")), "__module__": "subprocess", "__class__": "Popen"},
        "a ListNode of subprocess.Popen",
    ),
    "keys made by objects": (
        lambda d: called(ours(), "a"),
        "'key_types' of a DictNode, which should be a ListNode of TypeNodes",
    ),
    "hidden in a slice": (hidden_in_slice, "'content' of a SliceNode"),
    "hidden in plain values": (hidden_in_json, "the field 'content' of a JsonNode"),
    "hidden in a shape": (hidden_in_shape, "a MethodNode"),
    "hidden beside": (hidden_beside, "the field 'more'"),
    "one number, two nodes": (another_node_of_the_same_id, "two nodes with the number"),
    "inside itself": (inside_itself, "a node that contains itself"),
    "a cached node": (cached, "a CachedNode"),
    "nested": (nested, "nested more than"),
    "an array that is a matrix": (lambda d: array_in("schema.json"), "'schema.json'"),
    "an array from elsewhere": (lambda d: array_in("/etc/passwd"), "'/etc/passwd'"),
    "one array for many nodes": (lambda d: array_in("1.npy"), "'1.npy', which should"),
}
