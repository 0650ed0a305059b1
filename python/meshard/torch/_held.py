"""PyTorch tensors whose elements are on meshard's devices."""

import copy

import torch
from torch.utils import _pytree as pytree

import meshard as ms

from ._convert import to_host, to_meshard
from ._dtypes import to_torch

_SAME_ELEMENTS = ("aten.detach.default", "aten.alias.default")


class Held(torch.Tensor):
    """A CPU tensor of PyTorch that reads its elements from meshard's devices when PyTorch needs them.

    Compiled programs take and return the value on the devices. Any operation of PyTorch reads the elements into host
    memory, once; what it writes there, also through a view, is placed again, sharded as before, for the next program.
    """

    @staticmethod
    def __new__(cls, value, requires_grad=False):
        return torch.Tensor._make_wrapper_subclass(cls, tuple(value.shape), dtype=to_torch(value.dtype), device="cpu",
                                                   requires_grad=requires_grad)

    def __init__(self, value, requires_grad=False):
        self._sides = _Sides(value)

    @property
    def value(self):
        """The tensor of meshard."""
        sides = self._sides
        return sides._value if sides._host is None else sides.on_devices()  # at once where PyTorch has not read it

    @value.setter
    def value(self, value):
        sides = self._sides
        if sides._host is None:
            sides._value = value
        else:
            sides.place(value)

    @property
    def data(self):
        """The same elements without a derivative, as for any tensor. Setting it replaces the elements."""
        return self._shared()

    @data.setter
    def data(self, other):
        if other.shape != self.shape or other.dtype != self.dtype:
            raise RuntimeError(f"[torch] .data of a tensor on meshard's devices, {tuple(self.shape)} {self.dtype}, "
                               f"cannot be set to {tuple(other.shape)} {other.dtype}: make another parameter")
        value = other.value if isinstance(other, Held) else to_meshard(other)
        sharding = self._sides.any_value().sharding
        self._sides = _Sides(value if sharding is None else ms.device_put(value, sharding))

    @property
    def memory(self):
        """An identifier of the elements, which tensors that share them have in common."""
        return id(self._sides)

    def __repr__(self):
        return repr(self._sides.on_host())

    def __reduce_ex__(self, protocol):
        return self._sides.on_host().__reduce_ex__(protocol)  # saved as a plain tensor

    def __deepcopy__(self, memo):
        made = Held(copy.deepcopy(self.value), requires_grad=self.requires_grad)  # ours may be donated to a program
        memo[id(self)] = torch.nn.Parameter(made, self.requires_grad) if isinstance(self, torch.nn.Parameter) else made
        return memo[id(self)]

    def __tensor_flatten__(self):
        raise TypeError("[torch] a tensor on meshard's devices has no plain inner tensors: pass a clone()")

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if str(func) in _SAME_ELEMENTS:
            return args[0]._shared()
        if str(func) == "aten.copy_.default" and all(isinstance(each, cls) for each in args[:2]) \
                and args[0].memory == args[1].memory:
            return args[0]
        kwargs = kwargs or {}
        held = [each for each in pytree.tree_leaves((args, kwargs)) if isinstance(each, cls)]
        for each in held:
            each._sides.used_by(func)
        args, kwargs = pytree.tree_map_only(cls, lambda each: each._sides.on_host(), (args, kwargs))
        return func(*args, **kwargs)

    def _shared(self):
        other = Held(self._sides.any_value())
        other._sides = self._sides
        return other

    def assign(self, value):
        """Changes the elements in place, also for tensors that share them in host memory."""
        if self._sides.is_lent:
            self._sides.on_host().copy_(to_host(value))
        else:
            self.value = value

    def numpy(self, *, force=False):
        """The elements as a NumPy array."""
        return self._sides.lent().numpy()

    def __array__(self, *args, **kwargs):
        return self._sides.lent().__array__(*args, **kwargs)

    def tolist(self):
        """The elements as nested lists of Python numbers."""
        return self._sides.on_host().tolist()

    def __dlpack__(self, **kwargs):
        return self._sides.lent().__dlpack__(**kwargs)


class _Sides:
    """The elements on the devices and in host memory; at least one of them is up to date."""

    def __init__(self, value):
        self._value, self._host = value, None
        self._is_written = False  # the host memory, since it was last placed
        self.is_lent = False  # others have views of the host memory, through which they may write at any time

    def any_value(self):
        return self._value

    def on_devices(self):
        if self._is_written or self.is_lent:
            self._value = to_meshard(self._host, like=self._value)
            self._is_written = False
        return self._value

    def on_host(self):
        if self._host is None:
            self._host = to_host(self._value)
        return self._host

    def lent(self):
        self.is_lent = True
        return self.on_host()

    def used_by(self, operation):
        self._is_written = self._is_written or operation._schema.is_mutable
        self.is_lent = self.is_lent or operation.is_view

    def place(self, value):
        # Views of the old host memory keep the old elements, as PyTorch's `.data =` does.
        self._value, self._host = value, None
        self._is_written = self.is_lent = False
