"""Pipelines: a model divided into stages, each on its own submesh.

    mesh = Mesh({"stage": 2, "x": 4})
    stages = [Stage(mesh.submesh("x", 0), w0, lambda w, x: tanh(x @ w)),
              Stage(mesh.submesh("x", 4), w1, lambda w, h, x: mean(square(h @ w - x)))]
    pipeline = Pipeline(stages, one_forward_one_backward(2, 4), optimizer=optim.Adam())
    loss = pipeline.step(microbatches)
"""

import functools
import inspect
import os
import typing
from collections.abc import Callable, Mapping, Sequence

from . import optim as _optim
from ._mesh import Mesh
from ._meshard import Tensor
from ._meshard import pipeline as _pipeline
from ._meshard.pipeline import (
    Action, Candidate, Plan, PlannedCandidate, Report, Schedule, StageMemory, StageProgram, StageReport, Stats, TimedAction,
    Timeline, Transfer, gpipe, interleaved, one_forward_one_backward, zero_bubble)
from ._progress import progress_of as _progress_of
from ._reports import Target
from ._reports import compile_options as _compile_options
from ._reports import target_of as _target_of

__all__ = ["Action", "Candidate", "Layers", "Pipeline", "Plan", "PlannedCandidate", "Report", "Schedule", "Stage", "StageMemory",
           "StageProgram", "StageReport", "Stats", "TimedAction", "Timeline", "Transfer", "explain", "gpipe", "interleaved",
           "one_forward_one_backward", "plan", "timeline", "zero_bubble"]

for _class in (Action, Candidate, Plan, PlannedCandidate, Report, Schedule, StageMemory, StageProgram, StageReport, Stats,
               TimedAction, Timeline, Transfer):
    _class.__module__ = __name__

_TIMES = ("forward", "input_gradient", "weight_gradient", "update", "send_forward", "send_backward")


def timeline(schedule: Schedule, *, forward: float | Sequence[float] = 1.0,
             input_gradient: float | Sequence[float] = 1.0, weight_gradient: float | Sequence[float] = 1.0,
             update: float | Sequence[float] = 0.0, send_forward: float | Sequence[float] = 0.0,
             send_backward: float | Sequence[float] = 0.0) -> Timeline:
    """The schedule with each action as early as its worker's order and what it needs allow.

    Each time is a number, or one for each stage, in any unit. A backward pass takes input_gradient + weight_gradient.

    >>> schedule = ms.pipeline.gpipe(2, 2)
    >>> line = ms.pipeline.timeline(schedule)
    >>> line.length, round(line.bubble, 3)
    (9.0, 0.333)
    """
    given = (forward, input_gradient, weight_gradient, update, send_forward, send_backward)
    return _pipeline.timeline(schedule, _rows_of_times(dict(zip(_TIMES, given, strict=True)), schedule.stages))


def _rows_of_times(times: Mapping[str, float | Sequence[float]], stages: int) -> list[list[float]]:
    """For each stage, its times in the order of _TIMES."""
    for name in times:
        if name not in _TIMES:
            raise ValueError(f"unknown time {name!r} of a stage: use one of {', '.join(_TIMES)}")
    rows = []
    for stage in range(stages):
        row = []
        for name in _TIMES:
            given = times.get(name, 0.0)
            if isinstance(given, Sequence) and len(given) != stages:
                raise ValueError(f"{len(given)} times for {stages} stages")
            row.append(float(given[stage] if isinstance(given, Sequence) else given))
        rows.append(row)
    return rows


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
            raise ValueError(f"unknown form {optimizer.form!r} of Adam: use 'corrected' or 'efficient'")
        return _pipeline.adam(optimizer.rate, optimizer.beta1, optimizer.beta2, optimizer.epsilon,
                              getattr(optimizer, "weight_decay", 0.0), getattr(optimizer, "decay_rank", 0),
                              optimizer.form == "efficient")
    raise TypeError(f"the optimizer of a pipeline is optim.Sgd, optim.Adam or optim.AdamW, not {optimizer!r}")


def _checked(stages):
    stages = list(stages)
    for stage in stages:
        if not isinstance(stage, _pipeline.StageBase):
            raise TypeError(f"the stages of a pipeline are objects of class Stage, not {stage!r}")
    return stages


class Pipeline(_pipeline.PipelineBase):
    """A model that is divided into stages, which work at the same time.

    The loss is the mean over the microbatches; losses and gradients equal those of the undivided model. A tensor that
    is a parameter of several stages is one parameter (tied weights). `clip_norm` limits the norm of the gradients of
    all stages together; 0 (the default): not limited.
    """

    def __init__(self, stages: Sequence[_pipeline.StageBase], schedule: Schedule, *,
                 optimizer: "_optim.Sgd | _optim.Adam | _optim.AdamW | None" = None, clip_norm: float = 0.0) -> None:
        super().__init__(_checked(stages), schedule, _bound(optimizer), clip_norm)

    if typing.TYPE_CHECKING:
        def step(self, microbatches: Sequence[typing.Any]) -> Tensor: ...
        def backward(self, microbatches: Sequence[typing.Any]) -> Tensor: ...


def _judging(optimizer, clip_norm, times, memory, stages):
    rows = [] if times is None else _rows_of_times(times, stages)
    return _pipeline.Judging(_bound(optimizer), clip_norm, rows, memory)


def explain(stages: Sequence[_pipeline.StageBase], schedule: Schedule, microbatch: typing.Any, *, topology: str | Target,
            optimizer: "_optim.Sgd | _optim.Adam | _optim.AdamW | None" = None, clip_norm: float = 0.0,
            times: Mapping[str, float | Sequence[float]] | None = None, memory: int | None = None,
            progress: Callable[[str], typing.Any] | bool | None = None,
            overrides: Mapping[str, str | bool | int | float] | None = None, processes: int | None = None,
            links: Mapping[str, str] | None = None, time_limit: float | None = None, use_cache: bool = True,
            cache: str | os.PathLike[str] = "", plugin: str | os.PathLike[str] = "") -> Report:
    """How a pipeline would run on hardware that may be absent: its step, what waits, and the memory of each stage.

    The first arguments are those of a Pipeline, with one microbatch. The programs of each stage are compiled for the
    stage's submesh; nothing runs and no data is moved, so tensors may be abstract.

    `times` has measured times in seconds in place of the estimates, by the names of timeline()'s arguments:
    `{"forward": 1e-3, "input_gradient": [1e-3, 2e-3]}`. A transfer whose time is 0 keeps its estimate. `memory` is that
    of a device in bytes; default: the published figure. The others are those of meshard.explain().
    """
    stages = _checked(stages)
    options = _compile_options(overrides=overrides, processes=processes, links=links, time_limit=time_limit,
                               use_cache=use_cache, cache=cache, plugin=plugin)
    judging = _judging(optimizer, clip_norm, times, memory, len(stages))
    with _progress_of(progress) as show:
        options.progress = show
        return _pipeline.explain(stages, schedule, microbatch, _target_of(topology), options, judging)


class Layers(_pipeline.LayersBase):
    """A model as a sequence of layers, of which any range can be a stage.

    `parameters` has those of each layer. `enter(batch)` gives what the first layer gets, `apply(parameters of a layer,
    value)` what a layer passes on, of the same types as the value, and `loss(value of the last layer, batch)` a float of
    rank 0. The parameters of a stage are the list of those of its layers.
    """

    def __init__(self, parameters: Sequence[typing.Any], enter: Callable[[typing.Any], typing.Any],
                 apply: Callable[[typing.Any, typing.Any], typing.Any],
                 loss: Callable[[typing.Any, typing.Any], Tensor], *, checkpoint: bool = False) -> None:
        layers = list(parameters)
        self._make_stage = functools.partial(_stage_of, layers, enter, apply, loss, checkpoint)
        super().__init__(len(layers), self._make_stage)

    def stage(self, begin: int, end: int, mesh: Mesh) -> Stage:
        """The stage of the layers from `begin` up to `end`, which is not one of them."""
        return self._make_stage(begin, end, mesh)


def _stage_of(parameters, enter, apply, loss, checkpoint, begin, end, mesh):
    def run(own, value, batch):
        for one in own:
            value = apply(one, value)
        return loss(value, batch) if end == len(parameters) else value

    def first(own, batch):
        return run(own, enter(batch), batch)

    return Stage(mesh, parameters[begin:end], run if begin else first, checkpoint=checkpoint)


def plan(layers: Layers, batch: typing.Any, *, topology: str | Target, axes: Sequence[str] = ("x",),
         pinned: Mapping[str, int] | None = None, workers: Sequence[int] = (), microbatches: Sequence[int] = (),
         chunks: Sequence[int] = (1, 2), schedules: Sequence[str] = ("GPipe", "1F1B", "ZB-H1"), most: int = 12, moves: int = 6,
         given: Candidate | None = None, optimizer: "_optim.Sgd | _optim.Adam | _optim.AdamW | None" = None,
         clip_norm: float = 0.0, memory: int | None = None, progress: Callable[[str], typing.Any] | bool | None = None,
         overrides: Mapping[str, str | bool | int | float] | None = None, processes: int | None = None,
         links: Mapping[str, str] | None = None, time_limit: float | None = None, use_cache: bool = True,
         cache: str | os.PathLike[str] = "", plugin: str | os.PathLike[str] = "") -> Plan:
    """Searches for the way to run a model as a pipeline on all devices of a target.

    It divides the layers into stages of equal time, and tries numbers of `workers` (default: all that divide the devices),
    shapes of their submeshes over `axes` (`pinned` fixes sizes), `schedules`, numbers of `microbatches` (default: as many
    as workers, two and four times as many) and of `chunks` (stages of a worker, for 1F1B). The `most` promising candidates
    are explained, and the best is changed by single layers up to `moves` times. `batch` is the whole batch; microbatches
    are equal parts of the first dimension of each of its tensors. `given` is what runs now. The others are those of
    explain().
    """
    options = _compile_options(overrides=overrides, processes=processes, links=links, time_limit=time_limit,
                               use_cache=use_cache, cache=cache, plugin=plugin)
    judging = _judging(optimizer, clip_norm, None, memory, 0)
    with _progress_of(progress) as show:
        options.progress = show
        return _pipeline.plan(layers, batch, _target_of(topology), options, judging, list(schedules), list(axes),
                              dict(pinned or {}), list(workers), list(microbatches), list(chunks), most, moves, given)
