"""Optimizers, learning rate schedules, clipping, accumulation and loss scaling.

An optimizer is a value with two methods: init() makes its state, and update() takes a step.

    adam = optim.Adam(rate=2e-3)
    state = adam.init(params)

    @meshard.jit
    def step(params, state, batch):
        loss, gradients = meshard.value_and_grad(loss_of)(params, batch)
        params, state = adam.update(params, gradients, state)
        return params, state, loss
"""

import dataclasses
import functools
import typing

from ._meshard import Tensor
from ._meshard import optim as _optim
from ._meshard.optim import (
    Fsdp, Schedule, cast, chosen, clip_by_global_norm, cosine, global_norm, joined, linear, piecewise, warm_up,
    zero_layout)
from ._names import shown as _shown

__all__ = ["Adam", "AdamState", "AdamW", "Fsdp", "LossScale", "LossScaling", "Schedule", "Sgd", "SgdState",
           "accumulated", "cast", "chosen", "clip_by_global_norm", "cosine", "global_norm", "joined", "linear",
           "piecewise", "warm_up", "zero_layout"]
__getattr__, __dir__ = _shown(__name__)


for _class in (Fsdp, Schedule):
    _class.__module__ = __name__


def _option(default):
    return dataclasses.field(default=default, metadata={"static": True})


@dataclasses.dataclass(eq=False)
class AdamState:
    """Adam's running means of the gradients and of their squares, in the structure of the parameters."""

    mean: typing.Any
    square: typing.Any
    steps: Tensor
    """The number of steps taken so far, i32."""


def _adam_init(params, layout):
    return AdamState(*_optim.adam_init(params, params if layout is None else layout))


def _adam_update(adam, weight_decay, decay_rank, params, gradients, state):
    if adam.form not in ("corrected", "efficient"):
        raise ValueError(f"no form {adam.form!r} of Adam: corrected, efficient")
    params, parts = _optim.adam_update(
        adam.rate, adam.beta1, adam.beta2, adam.epsilon, weight_decay, decay_rank, adam.form == "efficient", params,
        gradients, state.mean, state.square, state.steps)
    return params, AdamState(*parts)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adam:
    """Adam (Kingma and Ba: Adam, a Method for Stochastic Optimization, 2015).

    `rate` is a number, a Schedule or a function of the number of steps taken. `form` says where epsilon is added, with
    hats for means that are corrected for their start at zero: `"corrected"` is rate * m^ / (sqrt(v^) + epsilon), the
    paper's Algorithm 1; `"efficient"` is rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon), the end of
    its section 2.
    """

    rate: float | Schedule | typing.Callable = _option(1e-3)
    beta1: float = _option(0.9)
    beta2: float = _option(0.999)
    epsilon: float = _option(1e-8)
    form: str = _option("corrected")

    def init(self, params, layout=None) -> AdamState:
        """The state before the first step: zeros created on the devices.

        Each is sharded as the corresponding tensor of `layout` (see zero_layout()), by default as its parameter. The
        means of 16-bit parameters are f32.
        """
        return _adam_init(params, layout)

    def update(self, params, gradients, state: AdamState) -> tuple[typing.Any, AdamState]:
        """One step: the pair (new parameters, new state).

        New tensors have the shardings of the old ones; the step of a parameter is computed in the sharding of its
        state. Call it inside jit.

        Raises InvalidArgumentError for gradients of another structure or shapes.
        """
        return _adam_update(self, 0.0, 0, params, gradients, state)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdamW:
    """Adam with decoupled weight decay: each step also subtracts rate * weight_decay * parameter.

    (Loshchilov and Hutter: Decoupled Weight Decay Regularization, 2019.) `decay_rank` exempts parameters with fewer
    dimensions from the decay: 2 exempts biases and the scales of norms. The other options are those of Adam.
    """

    rate: float | Schedule | typing.Callable = _option(1e-3)
    beta1: float = _option(0.9)
    beta2: float = _option(0.999)
    epsilon: float = _option(1e-8)
    weight_decay: float = _option(1e-2)
    decay_rank: int = _option(0)
    form: str = _option("corrected")

    def init(self, params, layout=None) -> AdamState:
        """The state before the first step, as by Adam.init()."""
        return _adam_init(params, layout)

    def update(self, params, gradients, state: AdamState) -> tuple[typing.Any, AdamState]:
        """One step: the pair (new parameters, new state), as by Adam.update()."""
        return _adam_update(self, self.weight_decay, self.decay_rank, params, gradients, state)


@dataclasses.dataclass(eq=False)
class SgdState:
    """The velocities, in the structure of the parameters; None without momentum."""

    velocity: typing.Any
    steps: Tensor
    """The number of steps taken so far, i32."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sgd:
    """Stochastic gradient descent with momentum and weight decay.

    With g the gradient plus weight_decay times the parameter, the velocity v becomes momentum * v + g, and the
    parameter changes by -rate * v; with `nesterov` by -rate * (g + momentum * v) (Sutskever et al., 2013). `rate` is a
    number, a Schedule or a function of the number of steps taken. `decay_rank` exempts parameters with fewer dimensions
    from the decay.
    """

    rate: float | Schedule | typing.Callable = _option(1e-2)
    momentum: float = _option(0.0)
    nesterov: bool = _option(False)
    weight_decay: float = _option(0.0)
    decay_rank: int = _option(0)

    def init(self, params, layout=None) -> SgdState:
        """The state before the first step; velocities have the shardings of the tensors of `layout`."""
        return SgdState(*_optim.sgd_init(self.momentum, params, params if layout is None else layout))

    def update(self, params, gradients, state: SgdState) -> tuple[typing.Any, SgdState]:
        """One step: the pair (new parameters, new state). Call it inside jit.

        Raises InvalidArgumentError for gradients of another structure or shapes, and for a state that was created with
        or without momentum, unlike these options.
        """
        params, parts = _optim.sgd_update(self.rate, self.momentum, self.nesterov, self.weight_decay, self.decay_rank,
                                          params, gradients, state.velocity, state.steps)
        return params, SgdState(*parts)


def accumulated(function, parts: int):
    """A function of the same arguments that processes the batch in `parts` parts and averages the results.

    `function(params, batch)` returns a structure of tensors, such as the pair (loss, gradients) of value_and_grad().
    `batch` is a structure of tensors whose dimension 0 is the samples. If the loss is a mean over samples, the result
    is that of the whole batch, up to rounding, with the memory of one part. The parts are processed by a loop, so the
    size of the program does not depend on their number. Floats of less than 32 bits are summed in f32, and the mean has
    their dtype. Recording calls `function` twice.

    Raises InvalidArgumentError if `parts` does not divide a dimension 0.
    """

    @functools.wraps(function, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def in_parts(params, batch):
        return _optim.accumulated(function, parts, params, batch)

    return in_parts


@dataclasses.dataclass(eq=False)
class LossScale:
    """The current scale of the loss, f32, and the number of steps for which it has been held, i32."""

    scale: Tensor
    held: Tensor

    def scaled(self, loss) -> Tensor:
        """The loss to differentiate: multiplied by the scale, in f32.

        Raises InvalidArgumentError for a complex loss.
        """
        return _optim.scaled_loss(self.scale, loss)

    def unscaled(self, gradients) -> tuple[typing.Any, Tensor]:
        """The gradients divided by the scale, in f32, and whether all of them are finite (a bool of rank 0).

        Complex gradients keep their dtype.
        """
        return _optim.unscaled_gradients(self.scale, gradients)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LossScaling:
    """How the loss is scaled, so that small gradients do not underflow in f16 (Micikevicius et al., 2018).

    The scale starts as `first`. It is multiplied by `backoff` when a gradient is not finite, but is at least `least`,
    and by `growth` after `interval` consecutive steps with finite gradients. A larger scale that f32 cannot represent
    is not used. bf16 has the range of f32 and needs no scaling.

        loss, raw = value_and_grad(lambda p: scale.scaled(loss_of(p)))(params)
        gradients, finite = scale.unscaled(raw)
        new_params, new_state = adam.update(params, gradients, state)
        params, state = optim.chosen(finite, (new_params, new_state), (params, state))
        scale = scaling.update(scale, finite)
    """

    first: float = _option(65536.0)
    growth: float = _option(2.0)
    backoff: float = _option(0.5)
    least: float = _option(1.0)
    interval: int = _option(2000)

    def init(self) -> LossScale:
        """The scale before the first step."""
        return LossScale(*_optim.init_loss_scale(self.first))

    def update(self, state: LossScale, finite) -> LossScale:
        """The scale after a step; `finite` tells whether all gradients of the step were finite."""
        return LossScale(*_optim.update_loss_scale(self.growth, self.backoff, self.least, self.interval, state.scale,
                                                   state.held, finite))
