"""Pipelines: a model divided into stages, each on its own submesh.

    mesh = Mesh({"stage": 2, "x": 4})
    stages = [Stage(mesh.submesh("x", 0), w0, lambda w, x: tanh(x @ w)),
              Stage(mesh.submesh("x", 4), w1, lambda w, h, x: mean(square(h @ w - x)))]
    pipeline = Pipeline(stages, one_forward_one_backward(2, 4), optimizer=optim.Adam())
    loss = pipeline.step(microbatches)
"""

import inspect
import typing
from collections.abc import Callable, Sequence

from . import optim as _optim
from ._mesh import Mesh
from ._meshard import Tensor
from ._meshard import pipeline as _pipeline
from ._meshard.pipeline import (
    Action, Schedule, Stats, TimedAction, Timeline, gpipe, interleaved, one_forward_one_backward, zero_bubble)

__all__ = ["Action", "Pipeline", "Schedule", "Stage", "Stats", "TimedAction", "Timeline", "gpipe", "interleaved",
           "one_forward_one_backward", "timeline", "zero_bubble"]

for _class in (Action, Schedule, Stats, TimedAction, Timeline):
    _class.__module__ = __name__


def timeline(schedule: Schedule, *, forward: float | Sequence[float] = 1.0,
             input_gradient: float | Sequence[float] = 1.0, weight_gradient: float | Sequence[float] = 1.0,
             update: float | Sequence[float] = 0.0, send_forward: float | Sequence[float] = 0.0,
             send_backward: float | Sequence[float] = 0.0) -> Timeline:
    """The schedule with each action as early as its worker's order and what it needs allow.

    Each time is a number, or one for each stage, in any unit. A backward pass takes input_gradient + weight_gradient.
    """
    rows = []
    for stage in range(schedule.stages):
        row = []
        for given in (forward, input_gradient, weight_gradient, update, send_forward, send_backward):
            if isinstance(given, Sequence) and len(given) != schedule.stages:
                raise ValueError(f"{len(given)} times for {schedule.stages} stages")
            row.append(float(given[stage] if isinstance(given, Sequence) else given))
        rows.append(row)
    return _pipeline.timeline(schedule, rows)


def _positional(function: Callable[..., typing.Any]) -> int:
    """How many arguments a function must or may take by position."""
    parameters = inspect.signature(function).parameters.values()
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters)


class Stage(_pipeline.StageBase):
    """A stage: a function with its parameters, any structure of tensors, and the mesh on which it runs.

    The first stage is a function of (parameters, batch), the others of (parameters, what the previous stage returned,
    batch). `batch` is one microbatch. The last stage returns the loss, a float of rank 0. With `checkpoint`, the stage
    keeps only its inputs for the backward pass.
    """

    def __init__(self, mesh: Mesh, parameters: typing.Any, function: Callable[..., typing.Any], *, name: str = "",
                 checkpoint: bool = False) -> None:
        count = _positional(function)
        if count not in (2, 3):
            raise TypeError("a stage is a function of (parameters, batch), or of (parameters, result of the previous "
                            f"stage, batch), not of {count} arguments")
        super().__init__(mesh, parameters, function, count == 3, name, checkpoint)


def _bound(optimizer):
    if optimizer is None:
        return None
    if isinstance(optimizer, _optim.Sgd):
        return _pipeline.sgd(optimizer.rate, optimizer.momentum, optimizer.nesterov, optimizer.weight_decay,
                             optimizer.decay_rank)
    if isinstance(optimizer, (_optim.Adam, _optim.AdamW)):
        if optimizer.form not in ("corrected", "efficient"):
            raise ValueError(f"no form {optimizer.form!r} of Adam: corrected, efficient")
        return _pipeline.adam(optimizer.rate, optimizer.beta1, optimizer.beta2, optimizer.epsilon,
                              getattr(optimizer, "weight_decay", 0.0), getattr(optimizer, "decay_rank", 0),
                              optimizer.form == "efficient")
    raise TypeError(f"the optimizer of a pipeline is optim.Sgd, optim.Adam or optim.AdamW, not {optimizer!r}")


class Pipeline(_pipeline.PipelineBase):
    """A model that is divided into stages, which work at the same time.

    The loss is the mean over the microbatches; losses and gradients equal those of the undivided model. A tensor that
    is a parameter of several stages is one parameter (tied weights). `clip_norm` limits the norm of the gradients of
    all stages together; 0 (the default): not limited.
    """

    def __init__(self, stages: Sequence[Stage], schedule: Schedule, *,
                 optimizer: "_optim.Sgd | _optim.Adam | _optim.AdamW | None" = None, clip_norm: float = 0.0) -> None:
        stages = list(stages)
        for stage in stages:
            if not isinstance(stage, Stage):
                raise TypeError(f"the stages of a pipeline are objects of class Stage, not {stage!r}")
        super().__init__(stages, schedule, _bound(optimizer), clip_norm)

    if typing.TYPE_CHECKING:
        def step(self, microbatches: Sequence[typing.Any]) -> Tensor: ...
        def backward(self, microbatches: Sequence[typing.Any]) -> Tensor: ...
