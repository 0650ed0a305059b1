"""The tensors inside arguments and results: in tuples, lists, dictionaries, and objects such as caches."""

import collections
import contextlib
import copyreg
import enum
import types

import torch
from torch.utils import _pytree as pytree

from ._held import Held

CONSTANTS = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size, torch.layout,
             torch.memory_format, enum.Enum)
_WITHOUT_STATE = (type, types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType,
                  torch.nn.Module, torch.Tensor, torch.Generator, tuple, list, dict, set, frozenset, range, *CONSTANTS)
_LISTS = (list, collections.deque)
_DICTS = (dict, collections.OrderedDict, collections.defaultdict)


def _slots(cls):
    return [name for name in copyreg._slotnames(cls) if name not in ("__dict__", "__weakref__")]


def _has_attributes(value):
    """Whether a value is an object with state in its attributes, and is not compared by its value."""
    cls = type(value)
    if isinstance(value, _WITHOUT_STATE) or not (hasattr(value, "__dict__") or _slots(cls)):
        return False
    by_identity = cls.__hash__ in (None, object.__hash__)
    return by_identity or any(isinstance(each, torch.Tensor) for each in getattr(value, "__dict__", {}).values())


def _content(value):
    """(kind, keys, members) of a list, dictionary or object; None for anything else."""
    cls = type(value)
    if cls in _LISTS:
        return cls, len(value), list(value)
    if cls in _DICTS:
        return cls, tuple(value), list(value.values())
    if _has_attributes(value):
        attributes = {name: getattr(value, name) for name in _slots(cls) if hasattr(value, name)}
        attributes |= getattr(value, "__dict__", {})
        return cls, tuple(attributes), list(attributes.values())
    return None


def _fill(value, keys, members):
    """Replaces the members of a list, dictionary or object."""
    cls = type(value)
    if cls in _LISTS:
        value.clear()
        value.extend(members)
    elif cls in _DICTS:
        value.clear()
        value.update(zip(keys, members, strict=True))
    else:
        slots = set(_slots(cls))
        for name in slots:
            if hasattr(value, name):
                object.__delattr__(value, name)
        members = dict(zip(keys, members, strict=True))
        for name in slots & set(members):
            object.__setattr__(value, name, members.pop(name))
        if hasattr(value, "__dict__"):
            value.__dict__.clear()
            value.__dict__.update(members)


def _text(cls):
    return f"{cls.__module__}.{cls.__qualname__}"


class _Walk:
    """Numbers tensors, and the lists, dictionaries and objects that they are in; each is found once.

    A value is described by a nested tuple that can be compared: ("tensor", number), ("state", number) for a mutable
    object, ("tuple", ...), ("registered", ...), or ("constant", type, value).
    """

    def __init__(self):
        self.tensors, self.paths = [], []
        self.in_objects = set()  # the tensors that were found as attributes
        self.owners, self.owner_paths = [], []  # lists, dictionaries and objects
        self.contents = []  # of each owner: (kind, keys, descriptions of the members)
        self.others = {}
        self._numbers = {}

    def known_tensor(self, tensor):
        self._numbers[id(tensor)] = "tensor", len(self.tensors)
        self.tensors.append(tensor)

    def known_owner(self, owner, path):
        self._numbers[id(owner)] = "state", len(self.owners)
        self.owners.append(owner)
        self.owner_paths.append(path)
        self.contents.append(None)

    def read(self, number):
        """Describes the members of an owner as they are now."""
        kind, keys, members = _content(self.owners[number])
        names = range(keys) if kind in _LISTS else keys
        template = "{}[{!r}]" if kind in _LISTS + _DICTS else "{}.{}"
        before = len(self.tensors)
        self.contents[number] = kind, keys, tuple(
            self.describe(each, template.format(self.owner_paths[number], name))
            for name, each in zip(names, members, strict=True))
        if kind not in _LISTS + _DICTS:
            self.in_objects.update(range(before, len(self.tensors)))

    def describe(self, value, path=""):
        found = self._numbers.get(id(value))
        if found is not None:
            return found
        if isinstance(value, torch.Tensor):
            self.known_tensor(value)
            self.paths.append(path)
            return self._numbers[id(value)]
        if isinstance(value, CONSTANTS):
            return "constant", type(value), value
        if type(value) is slice:
            return "slice", *(self.describe(each, path) for each in (value.start, value.stop, value.step))
        if type(value) is tuple:
            return "tuple", *(self.describe(each, f"{path}[{i}]") for i, each in enumerate(value))
        if type(value) not in _LISTS + _DICTS and pytree._get_node_type(value) in pytree.SUPPORTED_NODES:
            members, structure = pytree.tree_flatten_with_path(value, is_leaf=lambda each: each is not value)
            return "registered", structure, *(self.describe(each, path + pytree.keystr(at)) for at, each in members)
        if _content(value) is not None:
            self.known_owner(value, path)
            number = len(self.owners) - 1
            self.read(number)
            return "state", number
        return self.other(value, path)

    def other(self, value, path):
        """Describes a value without tensors that are known."""
        try:
            self.others[id(value)] = value
            hash(value)
        except TypeError:
            raise TypeError(f"[torch] {path} is a {_text(type(value))}, whose changes cannot be detected: pass "
                            "tensors, constants, or objects of Python classes") from None
        return "constant", type(value), value


_WITHOUT_TENSORS = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)


class _ResultWalk(_Walk):
    def __init__(self, known):
        super().__init__()
        self.others = known

    def other(self, value, path):
        if id(value) in self.others or isinstance(value, _WITHOUT_TENSORS):
            return "constant", type(value), value
        raise TypeError(f"[torch] {path} is a {_text(type(value))}, whose tensors are not known: return "
                        "tensors, or register its class with torch.utils._pytree.register_pytree_node")


def _build(description, tensors, owners):
    kind, *rest = description
    if kind == "tensor":
        return tensors[rest[0]]
    if kind == "state":
        return owners[rest[0]]
    if kind == "constant":
        return rest[1]
    if kind == "registered":
        return pytree.tree_unflatten([_build(each, tensors, owners) for each in rest[1:]], rest[0])
    members = [_build(each, tensors, owners) for each in rest]
    return slice(*members) if kind == "slice" else tuple(members)


class Arguments:
    """The arguments of one call: their tensors, each once, and a description of everything else.

    Lists, dictionaries and objects are described by their members and attributes, and may change in the call.
    """

    def __init__(self, args, kwargs):
        self._walk = walk = _Walk()
        self._args = tuple(walk.describe(each, f"args[{i}]") for i, each in enumerate(args))
        self._kwargs = tuple((name, walk.describe(each, name)) for name, each in kwargs.items())
        self.tensors = walk.tensors
        self.names = walk.paths

    def is_in_object(self, number):
        """Whether a tensor was found in an attribute of an object, which owns it."""
        return number in self._walk.in_objects

    @property
    def description(self):
        """What a program depends on in the arguments, except the types of their tensors; hashable."""
        return self._args, self._kwargs, tuple(self._walk.contents)

    @contextlib.contextmanager
    def with_tensors(self, tensors):
        """(args, kwargs) with other tensors. While it is active, the lists, dictionaries and objects hold these."""
        owners = self._walk.owners
        before = [_content(each)[1:] for each in owners]
        try:
            for owner, (_, keys, members) in zip(owners, self._walk.contents, strict=True):
                _fill(owner, keys, [_build(each, tensors, owners) for each in members])
            yield (tuple(_build(each, tensors, owners) for each in self._args),
                   {name: _build(each, tensors, owners) for name, each in self._kwargs})
        finally:
            for owner, (keys, members) in zip(owners, before, strict=True):
                _fill(owner, keys, members)

    def results(self, result, tensors):
        """The Results of a call with these tensors, taken while with_tensors() is active."""
        return Results(result, tensors, self._walk)


class Results:
    """The result of a call and what it changed in its arguments, to be repeated with other tensors.

    `tensors` has the tensors of the result and, from index `state_begin` on, those that became part of an argument;
    `names` has their paths. Tensors of the arguments are not among them.
    """

    def __init__(self, result, given, arguments):
        walk = _ResultWalk(arguments.others)
        for each in given:
            walk.known_tensor(each)
        for each, path in zip(arguments.owners, arguments.owner_paths, strict=True):
            walk.known_owner(each, path)
        self._given, self._known = len(given), len(arguments.owners)
        # An input that is returned is a result of its own: PyTorch's runtime returns an alias.
        self._leaves = walk.describe(result, "result")
        self.state_begin = len(walk.tensors) - self._given
        for number in range(self._known):
            walk.read(number)
        self._contents = walk.contents
        self._owners = walk.owners
        self._share_constant_objects()
        self._changed = [i for i in range(self._known) if walk.contents[i] != arguments.contents[i]]
        self.tensors, self.names = walk.tensors[self._given:], walk.paths

    def _share_constant_objects(self):
        """New objects without tensors are shared by all calls; each call makes the others anew."""
        reaching, before = {number for number in range(self._known)}, -1
        while len(reaching) != before:
            before = len(reaching)
            reaching |= {number for number in range(len(self._owners))
                         if any(_reaches(each, reaching) for each in self._contents[number][2])}
        self._new = [i for i in range(self._known, len(self._owners)) if i in reaching]
        for number in self._new:
            cls = type(self._owners[number])
            if cls not in _LISTS + _DICTS and cls.__new__ is not object.__new__:
                raise TypeError(f"[torch] a result has a {_text(cls)}, which cannot be copied for each call: "
                                "return tensors, or register its class with torch.utils._pytree.register_pytree_node")

    def repeat(self, arguments, tensors):
        """Applies the recorded changes to the arguments of another call, and returns its result."""
        tensors = [*arguments.tensors, *tensors]
        owners = [*arguments._walk.owners, *self._owners[self._known:]]
        for number in self._new:
            cls = type(owners[number])
            owners[number] = cls() if cls in _LISTS + _DICTS else object.__new__(cls)
        for number in (*self._changed, *self._new):
            _, keys, members = self._contents[number]
            _fill(owners[number], keys, [_build(each, tensors, owners) for each in members])
        return _build(self._leaves, tensors, owners)


def _reaches(description, owners):
    kind, *rest = description
    if kind == "state":
        return rest[0] in owners
    return kind == "tensor" or kind in ("tuple", "registered") and any(
        _reaches(each, owners) for each in (rest[1:] if kind == "registered" else rest))


def _memory(tensor):
    """(memory, begin, end) of the elements of a tensor."""
    if isinstance(tensor, Held):
        return tensor.memory, 0, 1
    extent = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())) + 1
    begin = tensor.storage_offset() * tensor.element_size()
    return tensor.untyped_storage()._cdata, begin, begin + extent * tensor.element_size() if tensor.numel() else begin


def check_overlaps(written, tensors, names):
    """Raises ValueError for a tensor that a program writes to and that shares elements with another one.

    `names()` returns the names of the tensors.
    """
    if all(type(tensors[number]) is Held for number in written):
        held = [each.memory for each in tensors if type(each) is Held]
        if len(set(held)) == len(held):  # quicker for the state of a module
            return
    memories = {}
    for number, tensor in enumerate(tensors):
        memory, begin, end = _memory(tensor)
        memories.setdefault(memory, []).append((begin, end, number))
    for number in written:
        memory, begin, end = _memory(tensors[number])
        for other_begin, other_end, other in memories[memory]:
            if other != number and begin < other_end and other_begin < end:
                raise ValueError(f"[torch] the function writes to {names()[number]}, which shares memory with "
                                 f"{names()[other]}: pass a clone() of one")
