"""Pickling and copying tensors."""

import copyreg

from . import _meshard

__all__ = []


def _unpickled(array, sharding):
    tensor = _meshard.from_numpy(array, False, True)
    if sharding is not None:
        tensor.saved_sharding = sharding
    return tensor


def _reduce(x):
    """The host value of a tensor; the sharding of one that is on a mesh becomes the attribute `saved_sharding`."""
    return _unpickled, (x.numpy(), x.sharding)


def _copied(self):
    """The same value: tensors are immutable."""
    return _meshard.same_tensor(self)


def _deep_copied(self, memo):
    """A value with bytes of its own, where the tensor is, which survives its donation."""
    return _meshard.copy_tensor(self)


copyreg.pickle(_meshard.Tensor, _reduce)
_meshard.Tensor.__copy__ = _copied
_meshard.Tensor.__deepcopy__ = _deep_copied
