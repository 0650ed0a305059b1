"""Low-rank adapters of weights."""

import dataclasses

from .._meshard import Tensor
from .._meshard import nn as _nn
from . import init
from ._layers import InitializerLike
from ._make import Maker

__all__ = ["Lora", "make_lora", "with_lora"]


@dataclasses.dataclass(eq=False)
class Lora:
    """A low-rank adapter of a weight: down [inputs, rank], up [rank, outputs] (Hu et al.: LoRA, 2022).

    Only these are trained; the weight stays as it is.
    """

    down: Tensor
    up: Tensor

    def __call__(self, x, scale: float = 1.0) -> Tensor:
        """What the adapter adds to the layer's result: scale * (x down) up, [..., inputs] to [..., outputs].

        The scale of the paper is alpha / rank.
        """
        return _nn.lora(self, x, scale)


def make_lora(make: Maker, inputs: int, outputs: int, rank: int, *, names: tuple[str, str] = ("embed", "hidden"),
              down: InitializerLike = init.he_uniform(), up: InitializerLike = init.zeros()) -> Lora:
    """Creates a Lora. By default `up` is zeros, so that training begins with the weight's own results.

    `names` are those of the weight's dimensions, for AxisRules; "rank" is between them.

    Raises InvalidArgumentError unless all sizes are positive.

    >>> adapter = ms.nn.create(None, 1, lambda make: ms.nn.make_lora(make, 8, 4, rank=2))
    >>> weight = ms.ones((8, 4))
    >>> ms.nn.with_lora(weight, adapter).tolist() == weight.tolist()
    True
    """
    first, second = names
    return Lora(*_nn.make_lora(make, inputs, outputs, rank, first, second, down, up))


def with_lora(weight, adapter: Lora, scale: float = 1.0) -> Tensor:
    """The weight with the adapter: weight + scale * down up, in the dtype of the weight.

    The weight may have any dimensions, the inputs before the outputs: [width, heads, size] has heads * size outputs.
    Use it to adapt any layer in training, and to merge an adapter once after it.

        layer, adapter = nn.create(None, 1, lambda make: (nn.make_linear(make, 8, 16), nn.make_lora(make, 8, 16, 2)))

        def loss(adapter, layer, x):
            return meshard.mean(nn.Linear(nn.with_lora(layer.weight, adapter), layer.bias)(x) ** 2)

        meshard.grad(loss)(adapter, layer, meshard.ones((4, 8)))

    Raises InvalidArgumentError if the first dimensions of the weight do not make up the inputs, or the others the
    outputs.
    """
    return _nn.with_lora(weight, adapter, scale)
