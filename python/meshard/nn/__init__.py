"""Layers, activations, attention, norms, losses.

A layer is a dataclass of its parameters that is called with an input; a `make_` function creates it. The functions of
tensors (gelu, softmax, layer_norm, ...) are those of C++, with the same names and arguments.

    mlp = nn.create(None, 1, lambda make: nn.make_mlp(make, 64, 256))
    y = mlp(x)

Names of parameters, their values for a seed and their shardings are those of the C++ layers, so that checkpoints can be
exchanged.
"""

from . import init
from ._channel_norms import *  # noqa: F403
from ._conv import *  # noqa: F403
from ._functions import *  # noqa: F403
from ._layers import *  # noqa: F403
from ._lora import *  # noqa: F403
from ._losses import *  # noqa: F403
from ._make import *  # noqa: F403
from ._recurrent import *  # noqa: F403
from ._stacked import *  # noqa: F403
from . import (
    _channel_norms, _conv, _functions, _layers, _lora, _losses, _make, _recurrent, _stacked)
from .._names import shown as _shown

__all__ = ["init", *_channel_norms.__all__, *_conv.__all__, *_functions.__all__, *_layers.__all__, *_lora.__all__,
           *_losses.__all__, *_make.__all__, *_recurrent.__all__, *_stacked.__all__]
__getattr__, __dir__ = _shown(__name__)

for _name in __all__:
    _value = globals()[_name]
    if isinstance(_value, type) or getattr(_value, "__module__", "").startswith(f"{__name__}."):
        _value.__module__ = __name__
