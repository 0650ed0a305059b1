"""Recorded operations as text in the format of HLO.

Operations are noted only if the variable XLA_HLO_DEBUG or XLA_IR_DEBUG is 1 when the names are installed, because a
note takes as long as an operation. The text shows the program before meshard lowers it: operations that are not one
operation of HLO have PyTorch's names.
"""

import collections
import functools
import os
import weakref

from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

import meshard as ms

from ..eager._tensors import DeviceTensor

_TYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int64": "s64", "int32": "s32",
          "int16": "s16", "int8": "s8", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
          "bool": "pred", "complex64": "c64", "complex128": "c128"}

_ELEMENTWISE = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "neg": "negate", "tanh": "tanh",
                "exp": "exponential", "log": "log", "sin": "sine", "cos": "cosine", "sqrt": "sqrt", "rsqrt": "rsqrt",
                "sigmoid": "logistic", "abs": "abs", "maximum": "maximum", "minimum": "minimum", "pow": "power"}
_NAMES = {"mm": "dot", "bmm": "dot", "matmul": "dot", "view": "reshape", "_unsafe_view": "reshape", "t": "transpose",
          "transpose": "transpose", "permute": "transpose", "expand": "broadcast", "clone": "copy",
          "_to_copy": "convert", "sum": "reduce", "cat": "concatenate"}


def shape_text(value):
    """A dtype and sizes, as in `f32[2,4]`."""
    return f"{_TYPES.get(str(value.dtype), value.dtype)}[{','.join(map(str, value.shape))}]"


def _typed(value, layout=None):
    """A type as in `f32[2,4]{1,0}`. `layout`: the dimensions from the one whose elements are adjacent."""
    layout = reversed(range(value.ndim)) if layout is None else layout
    return f"{shape_text(value)}{{{','.join(map(str, layout))}}}" if value.ndim else shape_text(value)


class _Node:
    """An operation: its name, operands, the text of its type, and attributes.

    `is_part`: it and the operation that takes it are one operation of PyTorch.
    """

    __slots__ = ("opcode", "operands", "type", "attributes", "is_part")

    def __init__(self, opcode, operands, type, attributes="", is_part=False):
        self.opcode, self.operands, self.type, self.attributes = opcode, operands, type, attributes
        self.is_part = is_part

    def given(self):
        """The operands of the operation of PyTorch."""
        for each in self.operands:
            yield from each.given() if each.is_part else (each,)


_is_on = False
_of_storage = weakref.WeakKeyDictionary()
"""From the storage of a tensor to its version and the node of its value then."""


def _entry(t):
    return _of_storage.get(t._storage) if not t._steps else getattr(t, "_noted", None)


def _set(t, node):
    entry = (t._storage.version, node)
    if t._steps:
        t._noted = entry
    else:
        _of_storage[t._storage] = entry


def _node_of(t):
    entry, value = _entry(t), t.value
    if entry is not None and entry[0] == t._storage.version and (value.is_recorded or entry[1].opcode == "parameter"):
        return entry[1]
    made = _Node("parameter", (), _typed(value), _sharding_attribute(value.stored_sharding))
    _set(t, made)
    return made


def _sharding_attribute(sharding):
    if sharding is None:
        return ""
    tiles = ms.tile_assignment(sharding).with_device_ids(sharding.mesh)
    return f", sharding={tiles.canonical() if tiles.kind == 'tiled' else tiles}"


def operands(*tensors):
    """The current operations of tensors, before they change."""
    return [_node_of(each) for each in tensors] if _is_on else []


def note_call(t, target, before, sharding):
    """Notes that a tensor was made by a custom call, with the text of a sharding.

    `before`: its operands, which are tensors, or what operands() returned.
    """
    if _is_on:
        nodes = [each if isinstance(each, _Node) else _node_of(each) for each in before]
        _set(t, _Node("custom-call", nodes, _typed(t.value), f', custom_call_target="{target}", sharding={sharding}'))


def note_mark(t, before, sharding):
    """Notes a mark of a value that is only recorded; the mark of an existing value is the sharding of a parameter."""
    if _is_on and t.value.is_recorded:
        note_call(t, "Sharding", before, _sharding_attribute(sharding).removeprefix(", sharding="))
    elif _is_on:
        _of_storage.pop(t._storage, None)


def note_barrier(tensors, before):
    """Notes that tensors passed an optimization barrier together."""
    if not _is_on:
        return
    type = f"({', '.join(each.type for each in before)})"
    barrier = _Node("opt-barrier", [_Node("tuple", before, type)], type)
    for i, each in enumerate(tensors):
        _set(each, _Node("get-tuple-element", [barrier], _typed(each.value), f", index={i}"))


class _Notes(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        before = {id(each): _node_of(each) for each in _tensors((args, kwargs))}
        made = func(*args, **kwargs)
        results = _tensors(made)
        if results:
            _note_operation(func, pytree.tree_map(_unwrapped, args), kwargs, before, results)
        return made


def _unwrapped(x):
    return getattr(x, "global_tensor", x)


def _tensors(structure):
    return [each for each in map(_unwrapped, pytree.tree_leaves(structure)) if isinstance(each, DeviceTensor)]


def _note_operation(func, args, kwargs, before, results):
    name = func._schema.name.rpartition("::")[2]
    name = name if name.startswith("__") else name.rstrip("_")
    if name in ("detach", "alias", "lift_fresh", "aot_mark_sharding"):
        if name != "aot_mark_sharding":
            _set(results[0], next(iter(before.values())))
        return
    opcode = _ELEMENTWISE.get(name) or _NAMES.get(name) or name.strip("_").replace("_", "-")
    type, extra = _typed(results[0].value), ""
    if name in ("t", "transpose", "permute"):
        type, extra = _permuted(name, before[id(args[0])], results[0].value, args[1:])
    leaves = [leaf for each in args for leaf in pytree.tree_leaves(each)]
    operands = [before[id(each)] if id(each) in before else _number(each, type) for each in leaves
                if id(each) in before or name in _ELEMENTWISE and isinstance(each, int | float | bool | complex)]
    if name in ("add", "sub"):
        operands[1] = _product(operands[1], kwargs.get("alpha", 1))
        kwargs = {key: each for key, each in kwargs.items() if key != "alpha"}
    if name in _ELEMENTWISE:
        operands = [_broadcast(each, type) for each in operands]
    extra += "".join(f", {key}={each}" for key, each in kwargs.items()
                     if isinstance(each, int | float | bool | str | list))
    if len(results) == 1 or func._schema.is_mutable:
        _note_result(results[0], _Node(opcode, operands, type, extra), func._schema.is_mutable and
                     before.get(id(results[0])))
        return
    whole = _Node(opcode, operands, f"({', '.join(_typed(each.value) for each in results)})", extra)
    for i, each in enumerate(results):
        _set(each, _Node("get-tuple-element", [whole], _typed(each.value), f", index={i}"))


def _note_result(t, node, before):
    """Notes the operation that made a tensor. `before`: the earlier one of a written tensor, which keeps its mark."""
    _set(t, node)
    if not before or t.sharding is None:
        return
    sharding = _sharding_attribute(t.sharding)
    if 'custom_call_target="Sharding"' in before.attributes and before.attributes.endswith(sharding):
        node.attributes += sharding  # the program has the call that says it already
    else:
        note_mark(t, [node], t.sharding)


def _dtype(type):
    return type.partition("[")[0]


def _sizes(type):
    return type[type.index("[") + 1:type.index("]")].split(",") if "[]" not in type else []


def _permuted(name, node, value, dims):
    """The type and the attribute of a transpose: as in XLA, its layout is that of the operand's elements."""
    rank = value.ndim
    order = list(range(rank))
    if name == "permute":
        order = [each % rank for each in dims[0]]
    elif rank > 1:
        i, j = (each % rank for each in dims or (0, 1))
        order[i], order[j] = order[j], order[i]
    layout = [order.index(int(each)) for each in node.type.partition("{")[2].rstrip("}").split(",") if each]
    return _typed(value, layout), f", dimensions={{{','.join(map(str, order))}}}"


def _number(number, type):
    """A number combined with floats is a parameter, so that one program serves all values; 0 and 1 are constants."""
    dtype = _dtype(type)
    if number in (0, 1) or dtype[0] not in "fb":
        return _Node(f"constant({number})", (), f"{dtype}[]")
    return _parameter(float(number), dtype)


@functools.cache
def _parameter(number, dtype):
    return _Node("parameter", (), f"{dtype}[]")


def _product(node, alpha):
    """`alpha` times the second operand, as add() and sub() of PyTorch, and of torch_xla, are defined."""
    factor = _broadcast(_number(alpha, node.type), node.type)
    return _Node("multiply", [node, factor], node.type, is_part=True)


def _broadcast(node, type):
    if _sizes(node.type) == _sizes(type):
        return node
    first = len(_sizes(type)) - len(_sizes(node.type))
    dims = range(first, len(_sizes(type)))
    return _Node("broadcast", [node], _dtype(node.type) + type[type.index("["):],
                 f", dimensions={{{','.join(map(str, dims))}}}", is_part=True)


def start():
    """Notes operations from now on, if a variable requests it."""
    global _is_on
    if not _is_on and any(os.environ.get(each) == "1" for each in ("XLA_HLO_DEBUG", "XLA_IR_DEBUG")):
        _is_on = True
        _Notes().__enter__()


def text(tensors):
    """The program that computes tensors."""
    if not _is_on:
        raise RuntimeError("HLO text needs notes of the operations: start the program with XLA_HLO_DEBUG=1; "
                           "meshard.explain() and meshard.module_text() show modules as they are compiled")
    roots = [_node_of(each) for each in tensors]
    nodes = _in_order(roots)
    types = ", ".join(each.type for each in roots)
    nodes.append(_Node("tuple", roots, f"({types})"))
    names = _names(nodes)
    lines, parameters = [], []
    for node in nodes:
        call = node.opcode
        if call == "parameter":
            call = f"parameter({len(parameters)})"
            parameters.append(f"{names[id(node)]}: {node.type}")
        elif "(" not in call:
            call += f"({', '.join(f'{each.type} %{names[id(each)]}' for each in node.operands)})"
        lines.append(f"  %{names[id(node)]} = {node.type} {call}{node.attributes}")
    lines[-1] = "  ROOT" + lines[-1][1:]
    return "\n".join(["HloModule recorded\n", f"ENTRY %main ({', '.join(parameters)}) -> ({types}) {{", *lines, "}\n"])


def _in_order(roots):
    """The operations that roots need, each after its operands, whose last one comes first, as in torch_xla."""
    order, seen = [], set()

    def add(node):
        for each in node.operands:
            if each.is_part:
                add(each)
        seen.add(id(node))
        order.append(node)

    for root in roots:
        left = [root]
        while left:
            missing = [each for each in left[-1].given() if id(each) not in seen]
            left.extend(missing)
            if not missing:
                node = left.pop()
                if id(node) not in seen:
                    add(node)
    return order


def _names(nodes):
    """Names as XLA makes them: two passes of one counter, for the computation and for the module, so that names of the
    first pass are taken in the second."""
    bases = [each.opcode.partition("(")[0] for each in nodes]
    parameters = iter(range(len(bases)))
    bases = [f"p{next(parameters)}" if each == "parameter" else each for each in bases]
    counts, made = collections.Counter(bases), collections.Counter()
    names = {}
    for node, base in zip(nodes, bases, strict=True):
        names[id(node)] = f"{base}.{counts[base] + made[base]}"
        made[base] += 1
    return names
