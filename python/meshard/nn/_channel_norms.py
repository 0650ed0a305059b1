"""Normalization of channels: over the batch with running statistics, by groups, by instance."""

import dataclasses

from .._meshard import Tensor
from .._meshard import nn as _nn
from ._make import Maker

__all__ = ["BatchNorm", "BatchStatistics", "GroupNorm", "InstanceNorm", "make_batch_norm", "make_batch_statistics",
           "make_group_norm", "make_instance_norm"]


@dataclasses.dataclass(eq=False)
class BatchStatistics:
    """The state of batch normalization: the running mean and variance [channels].

    It is not a parameter: optimizers do not update it. jit, shardings and checkpoints carry it.
    """

    mean: Tensor
    variance: Tensor


@dataclasses.dataclass(eq=False)
class BatchNorm:
    """Batch normalization: scale and bias [channels]."""

    scale: Tensor
    bias: Tensor

    def __call__(self, x, state: BatchStatistics, *, training: bool, momentum: float = 0.99, epsilon: float = 1e-5,
                 mask=None, channel_axis: int = -1) -> tuple[Tensor, BatchStatistics]:
        """(x - mean) / sqrt(variance + epsilon) * scale + bias for each channel, and the new state.

        In training, mean and (biased) variance are those of the whole batch, on all devices, over all dimensions but
        the channels; the new state is momentum * old + (1 - momentum) * batch, without derivative. Otherwise they are
        the running ones, and the state is unchanged. `mask` has bools that broadcast to x: False where an element
        does not count in the statistics of a training step. Computed in f32 (Ioffe and Szegedy, 2015).

            norm, state = nn.create(None, 1, lambda make: (nn.make_batch_norm(make, 3),
                                                           nn.make_batch_statistics(make, 3)))
            y, state = norm(meshard.ones((8, 4, 4, 3)), state, training=True)

        Raises InvalidArgumentError for parameters or a state that do not have one number per channel, a mask that is
        not of bools or does not broadcast to x, and a momentum outside 0 to 1.
        """
        result, parts = _nn.batch_norm(self, state, x, training, momentum, epsilon, mask, channel_axis)
        return result, BatchStatistics(*parts) if training else state


def make_batch_norm(make: Maker, channels: int, *, name: str = "filters") -> BatchNorm:
    """Creates a BatchNorm of ones and zeros.

    `name` is that of the dimension, for AxisRules; the default is that of the results of make_conv().
    """
    return BatchNorm(*_nn.make_batch_norm(make, channels, name))


def make_batch_statistics(make: Maker, channels: int, *, name: str = "filters") -> BatchStatistics:
    """Creates a BatchStatistics: means of zero and variances of one."""
    return BatchStatistics(*_nn.make_batch_statistics(make, channels, name))


@dataclasses.dataclass(eq=False)
class GroupNorm:
    """Group normalization: scale and bias [channels]."""

    scale: Tensor
    bias: Tensor

    def __call__(self, x, groups: int, *, epsilon: float = 1e-5, channel_axis: int = -1) -> Tensor:
        """Normalizes each sample's groups of adjacent channels by their own mean and variance (Wu and He, 2018).

        Samples are dimension 0. Raises InvalidArgumentError as group_norm().
        """
        return _nn.group_norm(self, x, groups, epsilon, channel_axis)


def make_group_norm(make: Maker, channels: int, *, name: str = "filters") -> GroupNorm:
    """Creates a GroupNorm of ones and zeros, as make_batch_norm()."""
    return GroupNorm(*_nn.make_group_norm(make, channels, name))


@dataclasses.dataclass(eq=False)
class InstanceNorm:
    """Instance normalization: scale and bias [channels]."""

    scale: Tensor
    bias: Tensor

    def __call__(self, x, *, epsilon: float = 1e-5, channel_axis: int = -1) -> Tensor:
        """Normalizes each channel of each sample by its own mean and variance (Ulyanov et al., 2016).

        Samples are dimension 0. Raises InvalidArgumentError as group_norm().
        """
        return _nn.instance_norm(self, x, epsilon, channel_axis)


def make_instance_norm(make: Maker, channels: int, *, name: str = "filters") -> InstanceNorm:
    """Creates an InstanceNorm of ones and zeros, as make_batch_norm()."""
    return InstanceNorm(*_nn.make_instance_norm(make, channels, name))
