"""Optimizers and chains of them, learning rate schedules, averages, clipping, accumulation and loss scaling.

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
    Fsdp, Schedule, cast, chosen, clip_by_global_norm, cosine, cosine_restarts, exponential, global_norm,
    interpolated, inverse_square_root, joined, linear, one_cycle, piecewise, polynomial, warm_up, zero_layout)
from ._names import shown as _shown
from ._optimizers import (
    Adafactor, Adagrad, Adam, AdamState, AdamW, ApplyIfFinite, Chain, ClipByBlock, ClipByGlobalNorm, ClipByValue, Decay,
    Freeze, Groups, Lamb, Lion, Momentum, MultiSteps, Muon, RmsProp, Scale, Sgd, SgdState, Shampoo, StochasticRounding,
    TransformState)

__all__ = ["Adafactor", "Adagrad", "Adam", "AdamState", "AdamW", "ApplyIfFinite", "Average", "AverageState", "Chain",
           "ClipByBlock", "ClipByGlobalNorm", "ClipByValue", "Decay", "Freeze", "Fsdp", "Groups", "Lamb", "Lion",
           "LossScale", "LossScaling", "Momentum", "MultiSteps", "Muon", "RmsProp", "Scale", "Schedule", "Sgd",
           "SgdState", "Shampoo", "StochasticRounding", "TransformState", "accumulated", "cast", "chosen",
           "clip_by_global_norm", "cosine", "cosine_restarts", "exponential", "global_norm", "interpolated",
           "inverse_square_root", "joined", "linear", "one_cycle", "piecewise", "polynomial", "warm_up", "zero_layout"]
__getattr__, __dir__ = _shown(__name__)


for _class in (Adafactor, Adagrad, Adam, AdamState, AdamW, ApplyIfFinite, Chain, ClipByBlock, ClipByGlobalNorm,
               ClipByValue, Decay, Freeze, Fsdp, Groups, Lamb, Lion, Momentum, MultiSteps, Muon, RmsProp, Scale,
               Schedule, Sgd, SgdState, Shampoo, StochasticRounding, TransformState):
    _class.__module__ = __name__


def _option(default):
    return dataclasses.field(default=default, metadata={"static": True})


@dataclasses.dataclass(eq=False)
class AverageState:
    """An average of parameters: in their structure and shardings, float32 for floats of 16 bits or less."""

    mean: typing.Any
    count: Tensor
    """The number of parameters in the average, i32."""
    steps: Tensor
    """The number of calls of update(), i32."""

    def averaged(self, params) -> typing.Any:
        """The average in the dtypes and shardings of `params`, to evaluate a model with.

        `params` themselves while nothing is in the average.
        """
        return _optim.averaged(self.mean, self.count, params)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Average:
    """How parameters are averaged over steps: exponentially (EMA) or equally (SWA).

    With `decay` d, the average becomes d * average + (1 - d) * parameters (Polyak and Juditsky, 1992, with exponential
    weights); without, all have the same weight (Izmailov et al.: Averaging Weights Leads to Wider Optima, 2018). The
    first ones are taken as they are. Of the calls of update(), it uses those with the numbers `start`, `start + every`,
    ..., counted from 0.

        ema = optim.Average(decay=0.999)
        average = ema.init(params)
        average = ema.update(params, average)  # after each step, inside jit
        model = average.averaged(params)

    >>> average = ms.optim.Average(decay=0.5)
    >>> state = average.init({"w": ms.zeros(2)})
    >>> state = average.update({"w": ms.ones(2)}, state)
    >>> state = average.update({"w": 3 * ms.ones(2)}, state)
    >>> state.averaged({"w": ms.zeros(2)})["w"].tolist()
    [2.0, 2.0]
    """

    decay: float | None = _option(None)
    start: int = _option(0)
    every: int = _option(1)

    def init(self, params, layout=None) -> AverageState:
        """The state before the first parameters, sharded as `layout`, by default as the parameters.

        Raises InvalidArgumentError for a decay outside [0, 1], `start` below 0 and `every` below 1.
        """
        return AverageState(*_optim.average_init(self.decay, self.start, self.every, params,
                                                 params if layout is None else layout))

    def update(self, params, state: AverageState) -> AverageState:
        """The average with the parameters after a step. Call it inside jit.

        Raises InvalidArgumentError for parameters of another structure or shapes.
        """
        return AverageState(*_optim.average_update(self.decay, self.start, self.every, params, state.mean, state.count,
                                                   state.steps))


def accumulated(function, parts: int):
    """A function of the same arguments that processes the batch in `parts` parts and averages the results.

    `function(params, batch)` returns a structure of tensors, such as the pair (loss, gradients) of value_and_grad().
    `batch` is a structure of tensors whose dimension 0 is the samples. If the loss is a mean over samples, the result
    is that of the whole batch, up to rounding, with the memory of one part. The parts are processed by a loop, so the
    size of the program does not depend on their number. Floats of less than 32 bits are summed in f32, and the mean has
    their dtype. Recording calls `function` twice.

    Raises InvalidArgumentError if `parts` does not divide a dimension 0.

    >>> halves = ms.optim.accumulated(ms.value_and_grad(lambda w, x: (w * x).mean()), 2)
    >>> loss, gradient = halves(ms.asarray(2.0), ms.asarray([1.0, 2.0, 3.0, 4.0]))
    >>> loss.item(), gradient.item()
    (5.0, 2.5)
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
