"""Convolution layers."""

import dataclasses
import typing

from .._meshard import Tensor
from .._meshard import nn as _nn
from . import init
from ._layers import InitializerLike
from ._make import Maker

__all__ = ["Conv", "make_conv"]

Sizes = int | typing.Sequence[int]
WindowPadding = str | int | typing.Sequence[int | tuple[int, int]]


@dataclasses.dataclass(eq=False)
class Conv:
    """A convolution: kernel [window..., inputs / groups, outputs], and bias [outputs] or None.

    The window has one size for each of 1, 2 or 3 spatial dimensions.
    """

    kernel: Tensor
    bias: Tensor | None = None

    def __call__(self, x, *, strides: Sizes = (), padding: WindowPadding = "valid", input_dilation: Sizes = (),
                 kernel_dilation: Sizes = (), feature_groups: int = 1) -> Tensor:
        """The convolution of x [batch..., spatial..., inputs], plus the bias: [batch..., spatial..., outputs].

        Any number of batch dimensions comes first, also none. Computed in the dtype of x; options as of conv2d().

        Raises InvalidArgumentError for too few dimensions, and as convolution().
        """
        return _nn.conv(self, x, strides, padding, input_dilation, kernel_dilation, feature_groups)

    def transpose(self, x, *, strides: Sizes = (), padding: WindowPadding = "valid", kernel_dilation: Sizes = (),
                  feature_groups: int = 1) -> Tensor:
        """The transposed convolution, plus the bias: strides are the factors by which spatial dimensions grow.

        Shapes as for a call; padding as of conv_transpose().
        """
        return _nn.conv_transpose(self, x, strides, padding, (), kernel_dilation, feature_groups)


def make_conv(make: Maker, window: Sizes, inputs: int, outputs: int, *, groups: int = 1,
              names: tuple[str, str] = ("channels", "filters"), bias: bool = True,
              kernel: InitializerLike = init.lecun_normal()) -> Conv:
    """Creates a Conv, also for transposed convolutions.

    >>> conv = ms.nn.create(None, 1, lambda make: ms.nn.make_conv(make, (3, 3), 3, 16))
    >>> conv(ms.ones((8, 32, 32, 3)), strides=2, padding="same").shape
    (8, 16, 16, 16)

    `names` are those of the kernel's last dimensions, for AxisRules. With `groups`, pass the same number as
    `feature_groups` to a call. `kernel` is an initializer; the bias starts as zeros.

    Raises InvalidArgumentError for a window of no sizes or more than three, sizes that are not positive, and groups
    that do not divide inputs and outputs.
    """
    first, second = names
    window = (window,) if isinstance(window, int) else window
    return Conv(*_nn.make_conv(make, window, inputs, outputs, groups, first, second, bias, kernel))
