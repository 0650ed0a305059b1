"""Operations that replay what they recorded for arguments of the same types and numbers."""

import torch

import meshard as ms

from ..._meshard import RepeatedCalls
from . import _tensors
from ._tensors import DeviceTensor, Step

_CONSTANTS = (torch.dtype, torch.layout, torch.memory_format, torch.device, str)
"""Classes of arguments on which only the program of an operation depends."""


def repeating(function, with_views, returns_new=False):
    """A replaying form of `function(args, kwargs)`, which makes new tensors, of meshard or of the device.

    Recorded operations are replayed, as tensors of meshard, for arguments of the same types, shapes and numbers, except
    if they depend on elements that were read, on random numbers, or on tensors other than the arguments. `with_views`:
    the function takes tensors of the device, so that it also depends on what these are views of; otherwise only on
    their values. `returns_new`: a returned argument may be a copy.
    """
    calls = RepeatedCalls(DeviceTensor, Step, _CONSTANTS, with_views)
    find = calls.find

    def values(args, kwargs):
        found = find(args, kwargs, torch.get_default_dtype())
        if type(found) is ms.Tensor:
            return found
        if found is None:
            return function(args, kwargs)
        if type(found) is tuple:
            return _filled(*found)
        before = _tensors.num_reads[0]
        made = function(args, kwargs)
        tensors = []
        given = _device_tensors(args) + _device_tensors(list(kwargs.values()))
        form = _form(made, tensors, set() if returns_new else {id(each._storage) for each in given}, given)
        if form is False or not tensors or before != _tensors.num_reads[0]:
            found.refuse()
        else:
            found.keep(tensors, None if form == 0 and type(form) is int else form)
        return made

    return values


def _device_tensors(given):
    if isinstance(given, DeviceTensor):
        return [given]
    return [found for each in given for found in _device_tensors(each)] if isinstance(given, list | tuple) else []


def _form(made, tensors, storages, given):
    """Results with numbers in place of tensors, which are appended to `tensors`; False if a tensor is not new.

    A new tensor has none of these storages, and only marks of the `given` tensors.
    """
    if made is None:
        return None
    if type(made) is DeviceTensor:
        storage = made._storage
        is_given = any(each is made for each in given)
        if made._steps or id(storage) in storages or storage.sharding is not None and not is_given:
            return False
        storages.add(id(storage))
        made = storage.value
    if type(made) is ms.Tensor:
        tensors.append(made)
        return len(tensors) - 1
    if not isinstance(made, list | tuple):
        return False
    forms = [_form(each, tensors, storages, given) for each in made]
    return False if any(each is False for each in forms) else forms if isinstance(made, list) else tuple(forms)


def _filled(form, tensors):
    if type(form) is int:
        return tensors[form]
    return form if form is None else type(form)(_filled(each, tensors) for each in form)
