"""Operations that write to their arguments: they write the results of the functional overload."""

import torch

import meshard as ms

from .._decompositions import NUMBERS_TO_BOUNDS, OF_ONE, WITH_VALUE, of_lists, with_value
from .._dtypes import to_torch
from .._table import NEED_NODE, decompositions, lowering_of
from . import _tensors
from ._repeats import repeating
from ._tensors import DeviceTensor, handler_of, resize, value_of


def _checked_result(func, target, made):
    """The value that an operation would write to a tensor, in that tensor's dtype."""
    if not target._steps:
        value = target._storage.value
        if made.dtype is value.dtype and made.shape == value.shape:
            return made
    if tuple(made.shape) != tuple(target.shape):
        raise RuntimeError(f"output with shape {list(target.shape)} doesn't match the broadcast shape "
                           f"{list(made.shape)} ({func})")
    dtype = to_torch(made.dtype)
    if dtype == target.dtype:
        return made
    if not torch.can_cast(dtype, target.dtype):
        raise RuntimeError(f"result type {_type_name(dtype)} can't be cast to the desired output type "
                           f"{_type_name(target.dtype)} ({func})")
    return lowering_of("aten._to_copy.default")(made, dtype=target.dtype)


def _type_name(dtype):
    names = {torch.float32: "Float", torch.float64: "Double", torch.int64: "Long", torch.int32: "Int",
             torch.bool: "Bool", torch.complex64: "ComplexFloat", torch.complex128: "ComplexDouble"}
    return names.get(dtype, str(dtype))


def _functional(func):
    """The overload that returns the values that this one writes, and the names of the arguments that are written."""
    schema = func._schema
    written = [each.name for each in schema.arguments if each.alias_info is not None and each.alias_info.is_write]
    out = all(each.is_out for each in schema.arguments if each.name in written)
    base = schema.name.removeprefix("aten::")
    wanted = [each for each in arguments_of(func) if not (out and each[0] in written)]
    names = [base] if out else [base.rstrip("_"), base]
    if base.startswith("__i"):
        names = ["__" + base[3:]]  # __iand__ writes what __and__ returns
    for name in [*names, *(f"{each}_functional" for each in names)]:
        for found in overloads(schema.name.partition("::")[0], name):
            if not found._schema.is_mutable and not found.is_view and wanted in (
                    arguments_of(found), arguments_of(found, _OF_FACTORIES) if out else None):
                return found, written, out
    return None, written, out


_OF_FACTORIES = ("dtype", "layout", "device", "pin_memory")
"""Arguments of operations that make tensors from numbers; with out=, they are those of the tensor."""


def overloads(namespace, name):
    packet = getattr(getattr(torch.ops, namespace), name, None)
    return [getattr(packet, each) for each in packet.overloads()] if packet is not None else []


def arguments_of(func, without=()):
    return sorted((each.name, str(each.type)) for each in func._schema.arguments if each.name not in without)


def writing(func):
    """The handler of an operation that writes the results of its functional overload to its arguments."""
    twin, written, out = _functional(func)
    if twin is None:
        return None
    order = [each.name for each in func._schema.arguments]
    needed = {each.name for each in twin._schema.arguments if not each.has_default_value()}
    defaults = {each.name: each.default_value for each in func._schema.arguments
                if each.has_default_value() and each.name in needed}
    makes_tensors = out and "device" in {each.name for each in twin._schema.arguments} - set(order)
    if makes_tensors and lowering_of(twin) is None and twin not in decompositions():
        return None  # PyTorch's own twin calls this operation
    sets = {each.name: next(iter(each.alias_info.before_set), None) for each in func._schema.arguments
            if each.name in written}
    # For each result, the argument that it is, or None for a new one.
    results = [each.alias_info and next(name for name, kind in sets.items() if kind in each.alias_info.before_set)
               for each in func._schema.returns]
    in_order = not out and written == order[:1] and order == [each.name for each in twin._schema.arguments]
    if in_order and len(results) == 1:
        return _write_one(func, handler_of(twin))
    lists = [each.name for each in func._schema.arguments if str(each.type).startswith("List[")] \
        if func._schema.name.startswith("aten::_foreach") else []
    list_values = _values_of_lists(func, twin) if lists and in_order else None

    def handler(args, kwargs):
        if list_values is not None and args and all(type(each) is DeviceTensor for each in args[0]) \
                and not _share_elements(written, zip(order, args)):
            for target, made in zip(args[0], list_values(args, kwargs), strict=True):
                target.write(_checked_result(func, target, made if type(made) is ms.Tensor else made.value))
            torch.autograd.graph.increment_version(args[0])
            return None
        given = {**defaults, **dict(zip(order, args)), **kwargs}
        if lists and _share_elements(written, given.items()):
            for i in range(len(given[written[0]])):  # as PyTorch does: each sees what those before it wrote
                handler((), {name: each[i:i + 1] if name in lists and isinstance(each, list) else each
                             for name, each in given.items()})
            return None
        targets = {name: given.get(name) for name in written}
        if out:
            given = {name: each for name, each in given.items() if name not in targets}
        if makes_tensors:
            given.update(dtype=targets[written[0]].dtype, device=_tensors.DEVICE)
        made = _called(twin, given)
        made = iter(made if isinstance(made, tuple | list) and len(twin._schema.returns) != 1 else (made,))
        fresh = [next(made) for each in results if each is None]
        for name in written:
            if targets[name] is not None:
                _assign(func, targets[name], next(made), out)
        if lists:
            torch.autograd.graph.increment_version(targets[written[0]])  # which PyTorch leaves to the operations inside
        fresh = iter(fresh)
        returned = tuple(next(fresh) if name is None else targets[name] for name in results)
        return returned[0] if len(returned) == 1 else returned or None

    return handler


def _write_one(func, twin):
    """The handler of an operation that writes the result of `twin`, another handler, to its first argument."""
    values = getattr(twin, "values", twin)

    def handler(args, kwargs):
        target = args[0]
        if type(target) is DeviceTensor and not kwargs.get("device"):
            made = values(args, kwargs)
            target.write(_checked_result(func, target, made if type(made) is ms.Tensor else made.value))
        else:
            _assign(func, target, twin(args, kwargs), False)
        return target

    return handler


def _lowering_of_one(schema):
    """The lowering, on one tensor, of an operation whose schema takes lists; None if the table has none."""
    name = schema.name.removeprefix("aten::_foreach_").removesuffix("_")
    if name in WITH_VALUE:
        lowering = lowering_of(f"aten.{name}.default")
        return None if schema.overload_name == "Tensor" else with_value(lowering)
    if name in OF_ONE or name in NUMBERS_TO_BOUNDS:
        return None
    lowering = lowering_of(f"aten.{name}.Tensor") or lowering_of(f"aten.{name}.default")
    return None if lowering in NEED_NODE else lowering


def _values_of_lists(func, twin):
    """The function `(args, kwargs) -> values` of an operation that writes to the tensors of a list."""
    lowering = _lowering_of_one(func._schema)
    if lowering is None:
        found = handler_of(twin)
        return getattr(found, "values", found)
    of_each = of_lists(func._schema, lowering)
    return repeating(lambda args, kwargs: of_each(*(value_of(func, each) for each in args), **kwargs),
                     with_views=False)


def _called(func, given):
    """The results of an operation with named arguments; all without a default must be passed."""
    names = [(each.name, each.kwarg_only) for each in func._schema.arguments if each.name in given]
    leading = [(name, only) for (name, only), each in zip(names, func._schema.arguments) if name == each.name]
    if len(leading) != len(names):
        return func(**given)
    return handler_of(func)(tuple(given[name] for name, only in names if not only),
                            {name: given[name] for name, only in names if only})


def _share_elements(written, given):
    """Whether a tensor of a written list with more than one has the storage of another tensor of lists."""
    targets, others = [], []
    for name, group in given:
        if isinstance(group, list) and len(group) > 1:
            (targets if name in written else others).extend(
                [id(each._storage) for each in group if type(each) is DeviceTensor])
    return len(set(targets)) != len(targets) or not set(targets).isdisjoint(others)


def _assign(func, target, made, out):
    if isinstance(target, list):
        for each, value in zip(target, made, strict=True):
            _assign(func, each, value, out)
    elif isinstance(target, DeviceTensor):
        if out and made.shape != target.shape and not target.numel():
            resize(target, made.shape)
        target.write(_checked_result(func, target, made.value))
    else:
        target.copy_(made.host())
