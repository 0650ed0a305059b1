"""torch.load(map_location="meshard"), and modules that move to the device."""

import collections
import contextvars
import functools

import torch


class _HostStorage(torch.UntypedStorage):
    """Elements on the host, from which torch.load makes tensors of the device."""

    place = None

    @property
    def device(self):
        return self.place


def _loaded(place, storage, location):
    if not location.startswith(place.type):
        return None
    made = _HostStorage(storage.nbytes()).copy_(storage)
    made.place = place
    return made


_is_moving = contextvars.ContextVar("a module that contains this one is moved", default=False)


def _shared(module):
    """For each parameter that several modules or names share, all its places as (module, name)."""
    places = collections.defaultdict(list)
    for each in module.modules():
        for name, parameter in each._parameters.items():
            if parameter is not None:
                places[id(parameter)].append((each, name))
    return [each for each in places.values() if len(each) > 1]


def _keeping_shared(apply):
    """Module._apply() that keeps shared parameters shared, where PyTorch makes one for each place."""

    @functools.wraps(apply)
    def applied(module, *args, **kwargs):
        if _is_moving.get():
            return apply(module, *args, **kwargs)
        shared, token = _shared(module), _is_moving.set(True)
        try:
            return apply(module, *args, **kwargs)
        finally:
            _is_moving.reset(token)
            for (first, name), *others in shared:
                for each, other in others:
                    each._parameters[other] = first._parameters[name]

    return applied


def register(place):
    """Registers how torch.load turns CPU tensors of a file into tensors of the device, and how modules move."""
    torch.nn.Module._apply = _keeping_shared(torch.nn.Module._apply)
    torch.serialization.register_package(9, lambda storage: None, lambda storage, location: _loaded(
        place, storage, location))
