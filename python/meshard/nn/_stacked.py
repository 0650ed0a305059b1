"""The equal layers of a model, stacked; and layers one after the other."""

import dataclasses
import operator
import typing

from .._meshard import Tensor
from .._meshard import nn as _nn
from .._transforms import scan
from ._make import Maker

__all__ = ["Layers", "Sequential", "make_layers", "stack_layers"]


@dataclasses.dataclass(eq=False)
class Layers:
    """The equal layers of a model: a structure like one layer, with the layers along each tensor's first dimension.

    It is used like a list of layers:

        layers = nn.create(None, 1, lambda make: nn.make_layers(make, 12, lambda one: nn.make_linear(one, 4, 4)))
        layers.stacked.weight.shape  # (12, 4, 4)

        @meshard.jit
        def f(layers, x):
            for layer in layers:
                x = meshard.tanh(layer(x))
            return x

    A loop over the layers, recorded by jit, grad, vmap or a body of control flow, becomes one loop of the program: one
    layer is differentiated and compiled, regardless of their number. The layers must record the same operations, in the
    order of the layers or backward, and may pass on values to the next layer only. Otherwise they are compiled one by
    one; JitStats.unrolled and explain() report the reason.

    In checkpoints, layer i is saved as element i of a list would be: `blocks.3.weight`. Optimizers regard each layer's
    parameters as parameters: weight_decay applies by their rank, and zero_layout() and Fsdp do not split the dimension
    of the layers.
    """

    stacked: typing.Any

    __meshard_stacked__ = True  # the field is `[:]` in paths of tensors

    def __len__(self) -> int:
        """The number of layers.

        Raises InvalidArgumentError if the tensors have different numbers of layers, or if there are none.
        """
        return _nn.num_layers(self.stacked)

    def __getitem__(self, layer: int):
        """One layer: slices of the stacked tensors. Negative numbers count from the end.

        Raises OutOfRangeError, an IndexError, if there is no such layer.
        """
        layer = operator.index(layer)
        return _nn.layer_of(self.stacked, layer if layer >= 0 else layer + len(self))

    def __iter__(self) -> typing.Iterator[typing.Any]:
        for layer in range(len(self)):
            yield _nn.layer_of(self.stacked, layer)

    def __reversed__(self) -> typing.Iterator[typing.Any]:
        for layer in reversed(range(len(self))):
            yield _nn.layer_of(self.stacked, layer)

    def unstacked(self) -> list[typing.Any]:
        """The layers as a list of separate structures."""
        return list(self)

    def scan(self, function, x):
        """`x = function(layer, x)` for each layer, as one loop of the program also where loops are not rolled."""
        return scan(lambda state, layer: (function(layer, state), None), x, self.stacked)[0]


def stack_layers(layers) -> Layers:
    """Stacks a sequence of layers.

    Raises ValueError for layers of different structures, and InvalidArgumentError for no layers or for tensors that
    differ in type.
    """
    return Layers(_nn.stack_layers(list(layers)))


def make_layers(make: Maker, count: int, make_layer) -> Layers:
    """Creates `count` layers, as Layers.

    `make_layer(maker)` returns one layer; its parameters are created stacked, each by one program. They are equal to
    those of `count` calls of make_layer, one after the other. make_layer is called twice.

    Raises InvalidArgumentError if `count` is not positive.

    >>> def make_layer(make):
    ...     return ms.nn.make_linear(make, 4, 4)
    >>> layers = ms.nn.create(None, 1, lambda make: ms.nn.make_layers(make, 3, make_layer))
    >>> len(layers), layers.stacked.weight.shape
    (3, (3, 4, 4))
    """
    return Layers(_nn.make_layers(make, count, make_layer))


@dataclasses.dataclass(eq=False)
class Sequential:
    """Layers and functions that are applied one after the other: `Sequential([up, nn.gelu, down])(x)`."""

    layers: typing.Sequence[typing.Callable[..., Tensor]]

    def __call__(self, x) -> Tensor:
        """The result of the last layer."""
        for layer in self.layers:
            x = layer(x)
        return x
