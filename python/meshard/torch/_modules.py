"""What a program depends on in the modules that it was captured from, cheap to compare at each call."""

import operator
from itertools import chain

import torch
from torch.utils.hooks import RemovableHandle

from ._arguments import CONSTANTS
from ._held import Held

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_requires_grad = operator.attrgetter("requires_grad")


def _is_simple(value):
    return isinstance(value, CONSTANTS) or type(value) is tuple and all(map(_is_simple, value))


def tensor_type(tensor):
    """What a program depends on in a tensor.

    Strides, which only operations such as as_strided read, count as one case for all contiguous tensors.
    """
    if tensor.is_nested:
        raise TypeError("[torch] nested tensors are not supported: pad them (to_padded_tensor)")
    if tensor.layout != torch.strided:
        raise TypeError(f"[torch] tensors of layout {tensor.layout} are not supported: use to_dense()")
    if tensor.is_quantized:
        raise TypeError("[torch] quantized tensors are not supported: use dequantize()")
    return tensor.dtype, tuple(tensor.shape), tensor.requires_grad, None if tensor.is_contiguous() else tensor.stride()


def gradient_hooks(parameter):
    """The functions that PyTorch calls with a parameter's gradient, and after it has a gradient."""
    return tuple(tuple(each.values()) if each else () for each in
                 (parameter._backward_hooks, parameter._post_accumulate_grad_hooks))


class ModuleState:
    """The parameters and buffers of a module, and a number for everything else in it that programs depend on.

    That is: which tensors it has and of which types, hooks, whether each module trains, and attributes that are
    numbers, strings and the like.
    """

    def __init__(self, module):
        self._module = module
        self._numbers = {}
        self._read()

    def number(self):
        """Reads the module again if it has changed. Equal numbers mean equal programs."""
        if not self._is_current():
            self._read()
        return self._number

    def by_name(self):
        """The parameters and buffers, by name."""
        return {**self.parameters, **self.buffers}

    def add_alias(self, number):
        """What was captured for an earlier number also applies to the attributes after capturing."""
        self._read()
        self._numbers[self._key] = self._number = number

    def _is_current(self):
        if (sum(map(len, self._sized)) != self._size or RemovableHandle.next_id != self._next_hook
                or [*map(id, chain.from_iterable(map(dict.values, self._owned)))] != self._ids
                or [*map(_requires_grad, self.tensors)] != self._differentiable
                or [*map(torch.Tensor.data_ptr, self._plain)] != self._memory):
            return False
        try:
            return [get(attributes) for get, attributes in self._attributes] == self._values
        except KeyError:
            return False

    def _read(self):
        modules = list(self._module.modules())
        self.parameters = dict(self._module.named_parameters())
        self.buffers = dict(self._module.named_buffers())
        self.names = [*self.parameters, *self.buffers]
        self.tensors = [*self.parameters.values(), *self.buffers.values()]
        owned = [each for module in modules for each in (module._parameters, module._buffers, module._modules)]
        hooks = [getattr(module, name) for module in modules for name in _HOOKS]
        self._owned = [each for each in owned if each]
        of_gradients = [hooks for each in self.tensors for hooks in (each._backward_hooks,
                                                                     each._post_accumulate_grad_hooks) if hooks]
        self._sized = [*owned, *hooks, *of_gradients, *(module.__dict__ for module in modules)]
        self._size = sum(map(len, self._sized))
        self._next_hook = RemovableHandle.next_id
        self._kept = list(chain.from_iterable(map(dict.values, self._owned)))  # so that no other object has their ids
        self._ids = list(map(id, self._kept))
        self._differentiable = list(map(_requires_grad, self.tensors))
        self._plain = [each for each in self.tensors if type(each) is not Held]
        self._memory = list(map(torch.Tensor.data_ptr, self._plain))
        self._attributes = [(operator.itemgetter(*(name for name, value in module.__dict__.items()
                                                   if _is_simple(value))), module.__dict__) for module in modules]
        self._values = [get(attributes) for get, attributes in self._attributes]
        self._hooks = [tuple(each.values()) for each in hooks]
        attributes = tuple(tuple((name, type(value), value if _is_simple(value) else id(value))
                                 for name, value in module.__dict__.items()
                                 if _is_simple(value) or isinstance(value, torch.Tensor)) for module in modules)
        places = {id(each): i for i, each in enumerate(self.tensors)}
        tied = tuple(places.get(id(each)) for each in self._kept if isinstance(each, torch.Tensor))
        self._key = (tuple(map(type, modules)), tuple(self.names), tuple(map(tensor_type, self.tensors)), tied,
                     attributes, tuple(self._hooks), tuple(map(gradient_hooks, self.parameters.values())))
        self._number = self._numbers.setdefault(self._key, len(self._numbers))
