"""Handlers of PyTorch's operations on the device: a lowering, a view, a write, or PyTorch's decomposition."""

import functools

import torch
from torch._prims_common import compute_elementwise_output_strides, make_contiguous_strides_for
from torch.utils._mode_utils import no_dispatch

import meshard as ms

from .._convert import to_meshard
from .._dtypes import to_meshard as to_meshard_dtype
from .._dtypes import to_torch
from .._marks import sharding_of
from .._table import NEED_NODE, decompositions, lowering_of
from ..lowerings.dynamic import DependsOnElements
from . import _tensors
from ._only_eager import ONLY_EAGER
from ._repeats import repeating
from ._tensors import DeviceTensor, Step, adopt, resize, value_of, view_at, view_of, wrap, wrap_strided
from ._views import REPLACED, shares_places
from ._writes import arguments_of, overloads, writing

_aten = torch.ops.aten


def results_of(made):
    """What a lowering returns, as tensors of the device."""
    if isinstance(made, ms.Tensor):
        return wrap(made)
    if type(made) in (list, tuple):
        return type(made)(map(results_of, made))
    return made


def with_strides(made, args, kwargs):
    """The result of an operation that keeps the order in memory of its arguments' dimensions."""
    if isinstance(made, ms.Tensor) and kwargs.get("memory_format") in (None, torch.preserve_format):
        tensors = [each for each in args if isinstance(each, torch.Tensor) and each.shape == made.shape]
        if not all(each.is_contiguous() for each in tensors):
            stride = compute_elementwise_output_strides(*map(_shape_only, tensors))
            if tuple(stride) != make_contiguous_strides_for(made.shape):  # as those of copies of expanded tensors are
                return wrap_strided(made, stride)
    return results_of(made)


def _elsewhere(kwargs):
    device = kwargs.get("device")
    if device is None:
        return False
    if torch.device(device).type != _tensors.DEVICE.type:
        return True
    _tensors.check_device(device)
    return False


def _recorded(func, lowering):
    """The handler of an operation that has a lowering."""
    index = func in _TAKES_HOST_INDICES
    if lowering in NEED_NODE:
        def lowering(*args, _plain=lowering, **kwargs):
            return _plain(*args, node=None, **kwargs)

    keeps_strides = str(func) in _KEEP_STRIDES or (
        torch.Tag.pointwise in func.tags and str(func) not in _MAKE_CONTIGUOUS)

    checks = not index and not {torch.Tag.pointwise, torch.Tag.nondeterministic_seeded} & set(func.tags) and \
        func.has_kernel_for_dispatch_key(torch._C.DispatchKey.Meta)

    def record(args, kwargs):
        values = [each.value if type(each) is DeviceTensor else value_of(func, each, index) for each in args]
        named = {name: value_of(func, each, index) for name, each in kwargs.items()} if kwargs else kwargs
        try:
            made = lowering(*values, **named)
        except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
            if checks and not isinstance(error, ms.Error) and not str(error).startswith("[torch]"):
                _check(func, args, kwargs)  # a lowering that does not expect such arguments
            raise
        if checks:
            _check(func, args, kwargs)
        return made

    values = repeating(record, with_views=False)

    def handler(args, kwargs):
        if kwargs and _elsewhere(kwargs):
            return func(*_on_host(args), **_on_host(kwargs))
        try:
            made = values(args, kwargs)
        except DependsOnElements:
            return _evaluated(func, args, kwargs)
        if keeps_strides and any(isinstance(each, DeviceTensor) and each._steps for each in args):
            return with_strides(made, args, kwargs)
        if func in _KEEP_ORDER and not args[0].is_contiguous():
            return wrap_strided(made, func(*_without_elements(args)).stride())
        return results_of(made)

    handler.values = values
    return handler


def _check(func, args, kwargs):
    """Raises PyTorch's errors for wrong arguments, which its kernels for tensors without elements check."""
    if _tensors.is_as_torch_xla[0]:
        return
    try:
        func(*_without_elements(args), **_without_elements(kwargs))
    except AssertionError as error:
        raise RuntimeError(*error.args) from error


def _without_elements(given):
    if isinstance(given, torch.Tensor):
        return _shape_only(given)
    if isinstance(given, list | tuple):
        return type(given)(map(_without_elements, given))
    if isinstance(given, dict):
        return {name: _meta if name == "device" else _without_elements(each) for name, each in given.items()}
    return given


def _on_host(given):
    if isinstance(given, DeviceTensor):
        return given.host()
    if isinstance(given, list | tuple):
        return type(given)(map(_on_host, given))
    return {name: _on_host(each) for name, each in given.items()} if isinstance(given, dict) else given


def _to_device(made):
    if isinstance(made, torch.Tensor):
        value = to_meshard(made)
        return wrap(value) if made.is_contiguous() else wrap_strided(value, made.stride())
    return type(made)(map(_to_device, made)) if isinstance(made, list | tuple) else made


def _evaluated(func, args, kwargs):
    """The results of an operation that the host computes, because their sizes, or Python code, depend on elements."""
    return _to_device(func(*_on_host(args), **_on_host(kwargs)))


_KEEP_STRIDES = {f"aten.{name}_like.default" for name in ("empty", "zeros", "ones", "full", "rand", "randn")} | {
    "aten.flip.default"}
_MAKE_CONTIGUOUS = {"aten.masked_fill.Scalar", "aten.masked_fill.Tensor"}
"""Operations of elements that keep the strides of arguments although PyTorch does not say so, and the reverse."""
_meta = torch.device("meta")


def _shape_only(tensor):
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=_meta)
    offset = tensor.storage_offset()
    return made.as_strided(tensor.shape, tensor.stride(), offset) if offset else made


def _view(func):
    """The handler of a view."""
    name = str(func)
    lowering, replaced = lowering_of(func), REPLACED.get(name)
    if name == "aten._reshape_alias.default":
        return lambda args, kwargs: _aten.as_strided.default(*args)
    if name == "aten.as_strided.default":
        return _strided_view(func, replaced)
    if lowering is None or replaced is None:
        return None

    kind = {"aten._conj.default": _tensors.Conjugation, "aten._neg_view.default": _tensors.Negation,
            "aten.view_as_real.default": _tensors.Parts}.get(name, Step)
    selects = name == "aten.select.int"

    places = _places_of(func)

    def handler(args, kwargs):
        tensor, rest = args[0], args[1:]
        made = _tensors.Negation if selects and _is_negative_part(tensor, *rest) else kind
        step = made(lambda whole: lowering(whole, *rest, **kwargs),
                    lambda whole, value: replaced(whole, value, *rest, **kwargs))
        return view_at(tensor, places(tensor, rest, kwargs), (*tensor._steps, step))

    return handler


def _is_negative_part(tensor, dim, index):
    """Whether an element of a tensor is the imaginary part of a conjugate."""
    steps = tensor._steps
    return bool(steps) and type(steps[-1]) is _tensors.Parts and dim % tensor.ndim == tensor.ndim - 1 and \
        index % 2 == 1 and _tensors.signs(steps[:-1])[0]


def _places_of(func):
    """A function that computes the sizes, strides, offset and dtype of each kind of view once, by PyTorch."""
    known = {}

    def places(tensor, rest, kwargs):
        key = (tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.dtype, repr(rest), repr(kwargs))
        found = known.get(key)
        if found is None:
            if len(known) >= _MOST_PLACES:
                known.clear()
            found = known[key] = _tensors.places_of(func(_shape_only(tensor), *rest, **kwargs))
        return found

    return places


_MOST_PLACES = 4096


def _strided_view(func, replaced):
    lowering = lowering_of(func)

    def handler(args, kwargs):
        tensor, size, stride, offset = (*args, *kwargs.values(), None)[:4]
        offset = tensor.storage_offset() if offset is None else offset
        like = torch.empty(0, dtype=tensor.dtype, device=_meta).as_strided(size, stride, offset)
        shares = torch._debug_has_internal_overlap(like) != 0
        # From the storage, whose elements are dense.
        step = Step(lambda whole: lowering(whole, size, stride, offset),
                    shares_places if shares else lambda whole, value: replaced(whole, value, size, stride, offset))
        return view_of(tensor, like, (*_as_dtype(tensor), step, *_signs_of(tensor)))

    return handler


def _signs_of(tensor):
    """The steps that give a view of the storage the signs of a tensor."""
    is_conj, is_neg = _tensors.signs(tensor._steps)
    if is_conj:
        yield _tensors.Conjugation(ms.conj, lambda whole, value: ms.conj(value))
    if is_neg:
        yield _tensors.Negation(ms.negative, lambda whole, value: ms.negative(value))


def _as_dtype(tensor):
    """The steps from the elements of a storage to the elements of a view with another dtype."""
    own, dtype = to_torch(tensor._storage.value.dtype), tensor.dtype
    if own == dtype:
        return ()
    if own.is_complex:
        return (Step(lowering_of("aten.view_as_real.default"),
                     lambda whole, value: lowering_of("aten.view_as_complex.default")(value)),)
    view = lowering_of("aten.view.dtype")
    return (Step(lambda whole: view(ms.reshape(whole, (-1,)), dtype),
                 lambda whole, value: ms.reshape(view(value, own), whole.shape)),)


def _same(args, kwargs):
    return _tensors.same_elements(args[0])


def _parts(func):
    """The handler of a view that makes several tensors, each of which is a slice."""
    name = func._schema.name.removeprefix("aten::")

    def handler(args, kwargs):
        tensor = args[0]
        shapes = func(_shape_only(tensor), *args[1:], **kwargs)
        dim = kwargs.get("dim", args[-1] if len(args) > (1 if name == "unbind" else 2) else 0)
        if name == "unbind":
            return [_aten.select.int(tensor, dim, i) for i in range(len(shapes))]
        made, start = [], 0
        for each in shapes:
            made.append(_aten.slice.Tensor(tensor, dim, start, start + each.shape[dim]))
            start += each.shape[dim]
        return made

    return handler


def _strides_in_place(func):
    """The handler of an operation that changes the sizes and strides of a tensor in place."""
    name = func._schema.name.removeprefix("aten::").removesuffix("_")
    view = find_handler(next(each for each in overloads("aten", name) if arguments_of(each) == arguments_of(func)))

    def handler(args, kwargs):
        tensor = args[0]
        steps = view(args, kwargs)._steps
        with no_dispatch():
            func(*args, **kwargs)
        tensor._steps, tensor._seen = steps, -1
        return tensor

    return handler


def _composite(function, returns_new=False):
    """The handler of an operation that a function decomposes into others on tensors of the device."""
    values = repeating(lambda args, kwargs: function(*args, **kwargs), with_views=True, returns_new=returns_new)

    def handler(args, kwargs):
        return results_of(values(args, kwargs))

    handler.values = values
    return handler


def find_handler(func):
    """The handler `(args, kwargs) -> results` of an overload."""
    special = SPECIAL.get(str(func))
    if special is not None:
        return special
    schema = func._schema
    if torch.Tag.inplace_view in func.tags:
        return _strides_in_place(func)
    if schema.is_mutable:
        handler = writing(func)
        if handler is not None:
            return handler
    elif func.is_view or str(func) in REPLACED:  # _unsafe_view is a view that its schema does not know
        handler = _view(func)
        if handler is not None:
            return handler
    else:
        lowering = lowering_of(func)
        if lowering is not None:
            return _recorded(func, lowering)
        decomposition = decompositions().get(func)
        if decomposition is not None:
            return _composite(decomposition, returns_new=True)
    makes_new = not schema.is_mutable and not func.is_view
    if func.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd):
        return _composite(func.decompose) if makes_new else lambda args, kwargs: func.decompose(*args, **kwargs)
    if makes_new and func.has_kernel_for_dispatch_key(_COMPOSITE):
        return lambda args, kwargs: func._op_dk(_COMPOSITE, *args, **kwargs)  # also of torch.library.custom_op
    raise NotImplementedError(f"[torch] {func} has no lowering to meshard")


_COMPOSITE = torch._C.DispatchKey.CompositeExplicitAutograd

# Operations with rules of their own.


def _to_copy(args, kwargs):
    tensor = args[0]
    if not isinstance(tensor, DeviceTensor):
        return wrap(to_meshard(_aten._to_copy.default(tensor, **{**kwargs, "device": "cpu"})))
    if _elsewhere(kwargs):
        return _aten._to_copy.default(tensor.host(), **kwargs)
    dtype = kwargs.get("dtype")
    value = tensor.value
    # Values are replaced, not changed: a copy is the same value.
    if dtype is not None:
        value = lowering_of("aten._to_copy.default")(value, dtype=dtype)
    return with_strides(value, args, kwargs) if tensor._steps else wrap(value)


def _clone(args, kwargs):
    if args[0]._steps:
        return with_strides(args[0].value, args, kwargs)
    return wrap(args[0].value, args[0].sharding)


def _has_elements_of(source, target):
    """Whether both are all elements of one storage, which PyTorch cannot see for tensors that it reshaped for out=."""
    return isinstance(source, DeviceTensor) and source._storage is target._storage \
        and source.numel() == target.numel() and source.is_contiguous() and target.is_contiguous()


def _copied(args, kwargs):
    target, source = args[:2]
    if not isinstance(target, DeviceTensor):
        target.copy_(source.host())
        return target
    if not isinstance(source, torch.Tensor):
        return _filled(args, kwargs)
    value = source.value if isinstance(source, DeviceTensor) else to_meshard(source)
    if to_torch(value.dtype) != target.dtype:
        value = lowering_of("aten._to_copy.default")(value, dtype=target.dtype)
    if tuple(value.shape) != tuple(target.shape):
        if _has_elements_of(source, target):
            return target
        value = ms.broadcast_to(value, tuple(target.shape))
    target.write(value)
    sharding = sharding_of(source)
    if sharding is not None and target.sharding is None and not target._steps and target.shape == source.shape:
        target.mark(sharding)  # a marked tensor of the host comes to the device as it is marked
    return target


def _item(args, kwargs):
    return args[0].host().item()


def _filled(args, kwargs):
    target, number = args[0], args[1] if len(args) > 1 else 0
    if isinstance(number, torch.Tensor):
        number = lowering_of("aten._to_copy.default")(value_of("aten.fill_", number), dtype=target.dtype)
        target.write(ms.broadcast_to(number, tuple(target.shape)), is_uniform=True)
    else:
        target.write(ms.full(tuple(target.shape), number, dtype=to_meshard_dtype(target.dtype)), is_uniform=True)
    return target


def _resized(args, kwargs):
    tensor, size = args[:2]
    if not tensor.numel():
        resize(tensor, size)
    elif tuple(tensor.shape) != tuple(size):
        raise NotImplementedError(f"[torch] resize_ of a tensor {tuple(tensor.shape)} to {tuple(size)}: values of a "
                                  "program have fixed shapes; make another tensor")
    return tensor


def _pinned(args, kwargs):
    raise RuntimeError(f"cannot pin a tensor on the device \"{_tensors.DEVICE.type}\": only dense CPU tensors can be "
                       "pinned")


def _set(args, kwargs):
    """Gives a tensor the elements of another one, or of a host storage at some places, as torch.load does."""
    tensor, source, *places = args
    if isinstance(source, torch.UntypedStorage):
        offset, size, stride = places if places else (0, (source.nbytes() // tensor.element_size(),), (1,))
        source = torch.empty(0, dtype=tensor.dtype).set_(source, offset, size, stride).to(_tensors.DEVICE)
    adopt(tensor, source)
    return tensor


_KEEP_ORDER = {_aten.index.Tensor, _aten._unsafe_index.Tensor}
_TAKES_HOST_INDICES = {_aten.index.Tensor, _aten.index_put.default, _aten._unsafe_index.Tensor}


def _batch_norm(args, kwargs):
    """native_batch_norm writes to its statistics, although its schema does not say so."""
    return _aten._native_batch_norm_legit.default(*args, **kwargs) if args[3] is not None else \
        _aten._native_batch_norm_legit.no_stats(*args[:3], *args[5:], **kwargs)


SPECIAL = {
    **ONLY_EAGER,
    "aten.native_batch_norm.default": _batch_norm,
    "aten._to_copy.default": _to_copy,
    "aten.clone.default": _clone,
    "aten.copy_.default": _copied, "aten._copy_from.default": lambda args, kwargs: _copied(args[1::-1], kwargs),
    "aten._local_scalar_dense.default": _item,
    "aten.detach.default": _same, "aten.alias.default": _same, "aten.lift_fresh.default": _same,
    "aten.fill_.Scalar": _filled, "aten.fill_.Tensor": _filled, "aten.zero_.default": _filled,
    "aten.resize_.default": _resized,
    "aten.resolve_conj.default": lambda args, kwargs: _tensors.resolved(_tensors.Conjugation, *args),
    "aten.resolve_neg.default": lambda args, kwargs: _tensors.resolved(_tensors.Negation, *args),
    "aten.set_.source_Tensor": _set, "aten.set_.source_Storage": _set,
    "aten.set_.source_Storage_storage_offset": _set,
    "aten._pin_memory.default": _pinned,
    "aten.is_pinned.default": lambda args, kwargs: False,
    "aten._fused_sdp_choice.default": lambda args, kwargs: 0,
}
for _func in (_aten.equal.default, _aten.allclose.default, _aten.repeat_interleave.Tensor):
    SPECIAL[str(_func)] = functools.partial(_evaluated, _func)
for _name in ("split.Tensor", "split_with_sizes.default", "unbind.int"):
    SPECIAL[f"aten.{_name}"] = _parts(getattr(getattr(_aten, _name.partition(".")[0]), _name.partition(".")[2]))

_tensors._find_handler.append(find_handler)
