"""The operation `meshard::sharding_constraint` of PyTorch: how a value inside a program is sharded."""

import torch

import meshard as ms

from ._table import lowers

_SHARDINGS = []
"""The shardings by their numbers, which operations of PyTorch can take."""


def number_of(sharding):
    """The number of a sharding in graphs; equal shardings have the same number."""
    if sharding not in _SHARDINGS:
        _SHARDINGS.append(sharding)
    return _SHARDINGS.index(sharding)


@torch.library.custom_op("meshard::sharding_constraint", mutates_args=())
def sharding_constraint(x: torch.Tensor, sharding: int) -> torch.Tensor:
    return x.clone()


@sharding_constraint.register_fake
def _(x, sharding):
    return torch.empty_like(x)


def _keep_sharding(ctx, inputs, output):
    ctx.sharding = inputs[1]


def _backward(ctx, cotangent):
    return sharding_constraint(cotangent, ctx.sharding), None


sharding_constraint.register_autograd(_backward, setup_context=_keep_sharding)


@lowers("meshard.sharding_constraint")
def _lowered(x, sharding):
    return ms.sharding_constraint(x, _SHARDINGS[sharding])
