"""Structures: flatten, unflatten, map, registered classes, dataclasses, named tuples."""

import collections
import dataclasses
import typing

import numpy as np
import pytest

import meshard
from meshard import tree


class Pair(typing.NamedTuple):
    first: typing.Any
    second: typing.Any


@dataclasses.dataclass
class Layer:
    weight: typing.Any
    bias: typing.Any
    activation: str = dataclasses.field(default="tanh", metadata={"static": True})


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: typing.Any


def values(found):
    return [leaf.numpy().tolist() for leaf in found]


def test_leaves_are_in_the_order_of_the_structure_and_dicts_by_key():
    structure = {"b": [1.0, (2.0, 3.0)], "a": 4.0, "c": None}
    leaves, around = tree.flatten(structure)
    assert values(leaves) == [4.0, 1.0, 2.0, 3.0]
    assert around.num_leaves == 4
    assert around.paths == ['["a"]', '["b"][0]', '["b"][1][0]', '["b"][1][1]']


def test_unflatten_gives_back_the_classes():
    structure = {"pair": Pair(1, [2]), "layer": Layer(3, 4, "relu"), "frozen": Frozen((5,)), "none": None}
    leaves, around = tree.flatten(structure)
    back = tree.unflatten(around, leaves)
    assert type(back["pair"]) is Pair and isinstance(back["pair"].second, list)
    assert isinstance(back["layer"], Layer) and back["layer"].activation == "relu"
    assert isinstance(back["frozen"], Frozen) and isinstance(back["frozen"].value, tuple)
    assert back["none"] is None
    assert values(tree.leaves(back)) == values(leaves) == [5, 3, 4, 1, 2]


def test_numbers_get_the_default_dtypes():
    true, integer, number, complex_number = tree.leaves([True, 1, 1.0, 1j])
    assert [str(leaf.numpy().dtype) for leaf in (true, integer, number, complex_number)] == [
        "bool", "int32", "float32", "complex64"]


def test_strings_and_functions_belong_to_the_structure():
    one, two, three = (tree.structure(given) for given in ({"f": len, "x": 1.0}, {"f": len, "x": 5.0}, {"f": max, "x": 1.0}))
    assert one == two and hash(one) == hash(two)
    assert one != three
    assert one.unflatten([2.0])["f"] is len


@pytest.mark.parametrize("one, other", [
    ([1, 2], (1, 2)), ([1, 2], [1, [2]]), ({"a": 1}, {"b": 1}), (Pair(1, 2), (1, 2)), ([1, None], [1, 2]),
    (Layer(1, 2, "tanh"), Layer(1, 2, "relu"))])
def test_different_structures_are_not_equal(one, other):
    assert tree.structure(one) != tree.structure(other)


def test_map_calls_the_function_with_leaves_at_the_same_place():
    got = tree.map(lambda a, b: a - b, {"x": [3.0, 4.0]}, {"x": [1.0, 1.5]})
    assert values(got["x"]) == [2.0, 2.5]
    with pytest.raises(ValueError, match="structures differ"):
        tree.map(lambda a, b: a, [1.0], [1.0, 2.0])


def test_unflatten_needs_one_value_per_leaf():
    around = tree.structure([1.0, 2.0])
    with pytest.raises((ValueError, TypeError)):
        around.unflatten([1.0])


def test_registered_classes():
    class Box:
        def __init__(self, content, label):
            self.content, self.label = content, label

    tree.register(Box, lambda box: ([box.content], box.label), lambda label, children: Box(children[0], label))
    doubled = tree.map(lambda x: x * 2, Box((1.0, 2.0), "here"))
    assert doubled.label == "here" and values(doubled.content) == [2.0, 4.0]
    assert tree.structure(Box(1, "a")) != tree.structure(Box(1, "b"))
    got = meshard.jit(lambda box: Box(box.content + 1, box.label + "!"))(Box(np.float32(1), "x"))
    assert got.label == "x!" and got.content.item() == 2.0


def test_errors_of_registered_functions_reach_the_caller():
    class Broken:
        pass

    def fail(_):
        raise KeyError("broken flatten")

    tree.register(Broken, fail, lambda _, children: Broken())
    with pytest.raises(KeyError, match="broken flatten"):
        tree.flatten([Broken()])


def test_dicts_of_collections_keep_their_class_and_order():
    ordered = collections.OrderedDict([("z", 1.0), ("a", 2.0)])
    leaves, around = tree.flatten(ordered)
    assert values(leaves) == [1.0, 2.0]
    assert list(around.unflatten(leaves)) == ["z", "a"]
    default = collections.defaultdict(list, {"x": 1.0})
    back = tree.map(lambda x: x, default)
    assert type(back) is collections.defaultdict and back.default_factory is list
    limited = tree.map(lambda x: x, collections.deque([1.0, 2.0], 5))
    assert limited.maxlen == 5 and values(limited) == [1.0, 2.0]


def test_broadcast_prefix():
    def is_axis(value):
        return value is None or isinstance(value, int)

    assert tree.broadcast_prefix(0, {"a": [1, 2], "b": 3}, is_axis) == [0, 0, 0]
    assert tree.broadcast_prefix({"a": 1, "b": None}, {"a": [1, 2], "b": 3}, is_axis) == [1, 1, None]
    assert tree.broadcast_prefix((0, [1, None]), (1, [2, 3]), is_axis) == [0, 1, None]
    with pytest.raises(ValueError, match="lengths at \\[0\\] differ: 2 and 1"):
        tree.broadcast_prefix(([0, 1],), ([1],), is_axis)
    with pytest.raises(ValueError, match="keys"):
        tree.broadcast_prefix({"a": 0}, {"b": 0}, is_axis)


def test_deep_structures():
    deep = 1.0
    for _ in range(200):
        deep = [deep]
    leaves, around = tree.flatten(deep)
    assert len(leaves) == 1 and around.paths[0] == "[0]" * 200
