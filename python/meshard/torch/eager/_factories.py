"""Tensors that are made on the device."""

import functools

import torch
from torch.autograd import forward_ad

import meshard as ms

from .._dtypes import to_meshard as to_meshard_dtype
from .._table import decompositions, lowering_of
from . import _tensors
from ._operations import SPECIAL


def empty(size, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    _tensors.check_device(device)
    dtype = dtype or torch.get_default_dtype()
    return _tensors.wrap(ms.zeros(tuple(size), dtype=to_meshard_dtype(dtype)))


def empty_strided(size, stride, dtype=None, layout=None, device=None, pin_memory=None):
    made = empty(size, dtype, device=device)
    return made if made.stride() == tuple(stride) else _tensors.wrap_strided(made.value, stride)


def _made(lowering):
    def made(*args, **kwargs):
        _tensors.check_device(kwargs.pop("device"))
        return _tensors.wrap(lowering(*args, **kwargs))

    return made


_WITHOUT_RULES = ("_copy_from.default", "resize_.default", "_local_scalar_dense.default")
"""Operations that PyTorch also calls with the tensors' own rules turned off, such as in torch.tensor(x, device=...)."""


def _handled(name):
    return lambda *args, **kwargs: SPECIAL[name](args, kwargs)


def _register_linear(library, key):
    """Makes linear() one operation, and its derivatives another, as PyTorch does for devices with such a kernel.

    Otherwise it is six, or nine with the derivatives. PyTorch's derivative of the whole has no forward mode.
    """
    whole = torch.ops.aten.linear.default
    library.impl("linear", lambda *args: _tensors.handler_of(whole)(args, {}), key)
    differentiated = torch.library.get_kernel("aten::linear", f"Autograd{key}")

    def linear(keys, x, weight, bias=None):
        if forward_ad._current_level >= 0 or weight.ndim != 2:
            return whole.decompose(x, weight, bias)
        return differentiated.call_boxed(keys, x, weight, bias)

    library.impl("linear", linear, f"Autograd{key}", with_keyset=True)


def register(library, key):
    """Registers the operations that make tensors from numbers, for the dispatch key of a device type."""
    kernels = {"empty.memory_format": empty, "empty_strided": empty_strided,
               **{name.removesuffix(".default"): _handled(f"aten.{name}") for name in _WITHOUT_RULES}}
    for full in torch._C._dispatch_get_all_op_names():
        name = full.removeprefix("aten::")
        packet, _, overload = name.partition(".")
        if name == full or name in kernels or not _makes_tensors(found := _overload(packet, overload)):
            continue
        lowering = lowering_of(found)
        if lowering is not None:
            kernels[name] = _made(lowering)
        elif found in decompositions() and not _is_composite(found):
            kernels[name] = decompositions()[found]
    for name, kernel in kernels.items():
        library.impl(name, kernel, key)
    library.impl("resolve_conj", functools.partial(_tensors.resolved, _tensors.Conjugation), f"Autograd{key}")
    library.impl("resolve_neg", functools.partial(_tensors.resolved, _tensors.Negation), f"Autograd{key}")
    if key == "PrivateUse1":  # torch_xla takes it apart, as its programs show
        _register_linear(library, key)
    for out, plain in _OUT_OF.items():  # PyTorch's own out= does not write to tensors of Python
        library.impl(f"linalg_matrix_rank.{out}", _copied_to_out(getattr(torch.ops.aten.linalg_matrix_rank, plain)),
                     f"Autograd{key}")


_OUT_OF = {"out": "default", "out_tol_tensor": "tol_tensor", "atol_rtol_tensor_out": "atol_rtol_tensor",
           "atol_rtol_float_out": "atol_rtol_float"}


def _copied_to_out(operation):
    return lambda *args, out, **kwargs: out.copy_(operation(*args, **kwargs))


def _overload(packet, overload):
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def _makes_tensors(overload):
    """Whether an operation takes a device and no tensors."""
    types = {each.name: str(each.type) for each in overload._schema.arguments}
    return "device" in types and not any("Tensor" in each for each in types.values())


def _is_composite(overload):
    return any(overload.has_kernel_for_dispatch_key(key) for key in (
        torch._C.DispatchKey.CompositeExplicitAutograd, torch._C.DispatchKey.CompositeImplicitAutograd))
