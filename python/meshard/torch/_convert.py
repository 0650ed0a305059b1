"""Tensors of PyTorch as tensors of meshard, and back."""

import torch

import meshard as ms


def to_meshard(tensor, like=None):
    """A tensor of meshard with the elements that a PyTorch tensor has now; sharded as `like` is."""
    value = ms.asarray(tensor.detach().resolve_conj().resolve_neg())
    sharding = None if like is None else like.sharding
    return value if sharding is None else ms.device_put(value, sharding)


def to_host(value):
    """A new PyTorch tensor with a copy of the elements of a tensor of meshard."""
    return torch.from_dlpack(value).clone()


def to_torch(value):
    """A PyTorch tensor with the elements of a tensor of meshard; no copy if they are on one CPU device."""
    return torch.from_dlpack(value)
