"""PyTorch tensors whose elements are on meshard's devices."""

import torch
from torch.utils import _pytree as pytree

import meshard as ms

from ._convert import to_host, to_meshard
from ._dtypes import to_torch

_SAME_ELEMENTS = ("aten.detach.default", "aten.alias.default")


class Held(torch.Tensor):
    """A CPU tensor of PyTorch that reads its elements from meshard's devices when PyTorch needs them.

    Compiled programs take and return the value on the devices. Any operation of PyTorch reads the elements into host
    memory, once; what it writes there, also through a view, is placed again, as it was sharded, before the next program.
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
        return self._sides.on_devices()

    @value.setter
    def value(self, value):
        self._sides.place(value)

    def __repr__(self):
        return repr(self._sides.on_host())

    def __tensor_flatten__(self):
        raise TypeError("[torch] a tensor on meshard's devices cannot be taken apart")

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if str(func) in _SAME_ELEMENTS:
            return args[0]._shared()
        args, kwargs = pytree.tree_map_only(cls, lambda held: held._sides.on_host(), (args, kwargs or {}))
        return func(*args, **kwargs)

    def _shared(self):
        other = Held(self._sides.any_value())
        other._sides = self._sides
        return other


class _Sides:
    """The elements on the devices and in host memory; at least one of them is up to date."""

    def __init__(self, value):
        self._value, self._host, self._version = value, None, 0

    def any_value(self):
        return self._value

    def on_devices(self):
        if self._host is not None and self._host._version != self._version:
            self._value = to_meshard(self._host, like=self._value)
            self._version = self._host._version
        return self._value

    def on_host(self):
        if self._host is None:
            self._host = to_host(self._value)
            self._version = self._host._version
        return self._host

    def place(self, value):
        # Views of the old host memory keep the old elements, as PyTorch's `.data =` does.
        self._value, self._host = value, None
