"""Structures of tensors: dicts, lists, tuples, named tuples, dataclasses, None, and registered classes.

The leaves are tensors, numbers, and arrays of any library (NumPy, JAX, PyTorch, CuPy, whatever has DLPack, `__array__`
or the buffer protocol); numbers and arrays become tensors. What is compared by its value and holds no arrays belongs to
the structure: strings, enumerators, functions, classes, dtypes, meshes, and hashable objects whose class defines `==`.
A field of a dataclass with `metadata={"static": True}` belongs to the structure whatever it holds. Anything else (a
set, an object of a class that is not registered) is a TypeError that names its path.
"""

import collections
from collections.abc import Callable, Iterable
from typing import Any

from . import _meshard

__all__ = ["broadcast_prefix", "flatten", "leaves", "map", "register", "structure", "unflatten"]

Tensor = _meshard.Tensor
TreeStructure = _meshard.TreeStructure


def register(node_type: type[Any], flatten: Callable[[Any], tuple[Any, Any]], unflatten: Callable[[Any, Any], Any],
             keys: Callable[[Any], Any] | None = None) -> None:
    """Makes instances of a class structures.

    `flatten(value)` returns `(children, auxiliary)`; `unflatten(auxiliary, children)` makes a value of them. The
    auxiliary data must be hashable. `keys(auxiliary)` returns the names of the children in paths, which are also those
    in checkpoints; by default these are their positions.
    """
    _meshard.register_pytree_node(node_type, flatten, unflatten, keys)


def flatten(tree: Any) -> tuple[list[Tensor], TreeStructure]:
    """The leaves of a structure, and what is around them.

    >>> leaves, structure = ms.tree.flatten({"a": 1, "b": [2, 3]})
    >>> [leaf.item() for leaf in leaves]
    [1, 2, 3]
    >>> [leaf.item() for leaf in ms.tree.leaves(ms.tree.unflatten(structure, [x * 2 for x in leaves]))]
    [2, 4, 6]
    """
    found, around = _meshard.tree_flatten(tree)
    return found, around


def unflatten(structure: TreeStructure, leaves: Iterable[Any]) -> Any:
    """The structure with these leaves.

    >>> leaves, structure = ms.tree.flatten({"a": 1, "b": 2})
    >>> ms.tree.unflatten(structure, [5, 6])
    {'a': 5, 'b': 6}
    """
    return structure.unflatten(list(leaves))


def leaves(tree: Any) -> list[Tensor]:
    """The leaves of a structure as tensors.

    >>> [leaf.item() for leaf in ms.tree.leaves({"a": 1, "b": [2, 3]})]
    [1, 2, 3]
    """
    return flatten(tree)[0]


def structure(tree: Any) -> TreeStructure:
    """What is around the leaves of a structure.

    >>> ms.tree.structure({"a": 1}) == ms.tree.structure({"a": 2})
    True
    >>> ms.tree.structure([1]) == ms.tree.structure({"a": 1})
    False
    """
    return flatten(tree)[1]


def _difference(one: TreeStructure, other: TreeStructure) -> str:
    """What two structures that are not equal have at different paths."""
    first, second = list(one.paths), list(other.paths)
    missing = [path or "the value itself" for path in first if path not in set(second)]
    unexpected = [path or "the value itself" for path in second if path not in set(first)]
    found = [f"{what} {', '.join(paths[:8])}{' ...' if len(paths) > 8 else ''}"
             for what, paths in (("only in the first:", missing), ("only in the other:", unexpected)) if paths]
    if found:
        return "; ".join(found)
    for (path, ours), (_, theirs) in zip(_meshard.tree_constants(one), _meshard.tree_constants(other)):
        if ours != theirs:
            return f"{path} is {ours!r} and {theirs!r}"
    return "their leaves have the same paths, but their classes, the order of their keys or their static fields differ"


def map(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Calls `function` with each leaf of `tree`, and with the leaves at the same place of the other structures.

        >>> ms.tree.map(lambda x, y: (x + y).item(), {"a": 1, "b": 2}, {"a": 10, "b": 20})
        {'a': 11, 'b': 22}

    Raises ValueError if the structures differ.
    """
    first, around = flatten(tree)
    columns = [first]
    for other in rest:
        values, other_around = flatten(other)
        if other_around != around:
            raise ValueError(f"the structures differ: {_difference(around, other_around)}")
        columns.append(values)
    return around.unflatten([function(*values) for values in zip(*columns, strict=True)])


def _keys(tree: dict[Any, Any]) -> list[Any]:
    """The keys of a dict in the order of its leaves."""
    if type(tree) is not dict:
        return list(tree)
    try:
        return sorted(tree)
    except TypeError:
        return list(tree)


def broadcast_prefix(prefix: Any, tree: Any, is_leaf: Callable[[Any], bool]) -> list[Any]:
    """One value for each leaf of `tree`, in order.

    `prefix` is a value (for which `is_leaf` is true), or a structure of values that follows `tree` from the top: a value
    stands for all leaves below its place.

    >>> ms.tree.broadcast_prefix([0, None], [{"a": 1, "b": 2}, 3], is_leaf=lambda x: x is None or x == 0)
    [0, 0, None]
    """
    found: list[Any] = []

    def visit(prefix: Any, tree: Any, path: str) -> None:
        if is_leaf(prefix):
            found.extend([prefix] * structure(tree).num_leaves)
        elif isinstance(prefix, dict) and isinstance(tree, dict):
            if prefix.keys() != tree.keys():
                raise ValueError(f"the keys at {path or 'the top'} differ: {_keys(prefix)} and {_keys(tree)}")
            for key in _keys(tree):
                visit(prefix[key], tree[key], f"{path}[{key!r}]")
        elif isinstance(prefix, (list, tuple)) and isinstance(tree, (list, tuple)):
            if len(prefix) != len(tree):
                raise ValueError(f"the lengths at {path or 'the top'} differ: {len(prefix)} and {len(tree)}")
            for i, (one, other) in enumerate(zip(prefix, tree)):
                visit(one, other, f"{path}[{i}]")
        elif hasattr(tree, "__dataclass_fields__") and type(prefix) is type(tree):
            for name, field in tree.__dataclass_fields__.items():
                if not field.metadata.get("static", False):
                    visit(getattr(prefix, name), getattr(tree, name), f"{path}.{name}")
        elif prefix is None and tree is None:
            pass
        else:
            raise ValueError(f"{prefix!r} at {path or 'the top'} is neither a value nor a structure like {type(tree)}")

    visit(prefix, tree, "")
    return found


register(collections.OrderedDict, lambda value: (list(value.values()), tuple(value)),
         lambda keys, children: collections.OrderedDict(zip(keys, children)), lambda keys: keys)
register(collections.defaultdict, lambda value: (list(value.values()), (value.default_factory, tuple(value))),
         lambda auxiliary, children: collections.defaultdict(auxiliary[0], zip(auxiliary[1], children)),
         lambda auxiliary: auxiliary[1])
register(collections.deque, lambda value: (list(value), value.maxlen),
         lambda maxlen, children: collections.deque(children, maxlen))
