"""Pipelines against the undivided model, and their schedules against formulas."""

import numpy as np
import pytest

import meshard
from meshard import Mesh, optim
from meshard.pipeline import (
    Pipeline, Schedule, Stage, gpipe, interleaved, one_forward_one_backward, timeline, zero_bubble)

MICROBATCHES = 4
WIDTH = 8


def numbers(*shape, first=1.0, scale=0.5):
    return (scale * np.sin(first + np.arange(np.prod(shape)))).reshape(shape).astype(np.float32)


def weights(stages):
    return [{"w": numbers(WIDTH, WIDTH, first=1.0 + s), "b": numbers(WIDTH, first=2.0 + s)} for s in range(stages)]


def layer(p, h):
    return meshard.tanh(h @ p["w"] + p["b"])


def loss_of(h, batch):
    return meshard.mean(meshard.square(h - batch["y"]))


def batch_of(step):
    return [{"x": numbers(6, WIDTH, first=step % 3 + m), "y": numbers(6, WIDTH, first=0.3 * m, scale=0.4)}
            for m in range(MICROBATCHES)]


def undivided(stages, optimizer, steps, tied=False):
    """Losses and parameters of the same model as one program."""
    params = weights(stages)
    if tied:
        params[-1] = {}

    def loss(params, batch):
        h = batch["x"]
        for s in range(stages):
            h = layer(params[0] if tied and s == stages - 1 else params[s], h)
        return loss_of(h, batch)

    @meshard.jit
    def step(params, state, batch):
        def mean_loss(params):
            return sum(loss(params, one) for one in batch) / MICROBATCHES

        value, gradients = meshard.value_and_grad(mean_loss)(params)
        return *optimizer.update(params, gradients, state), value

    state = optimizer.init(params)
    losses = []
    for i in range(steps):
        params, state, value = step(params, state, batch_of(i))
        losses.append(float(value))
    return losses, params


def divided(places, params):
    last = len(places) - 1

    def function(s):
        if s == 0:
            return lambda p, batch: layer(p, batch["x"])
        if s < last:
            return lambda p, h, batch: layer(p, h)
        return lambda p, h, batch: loss_of(layer(p, h), batch)

    return [Stage(place, params[s], function(s)) for s, place in enumerate(places)]


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6 * max(1.0, np.abs(expected).max()))


def meshes(stages):
    if stages == 3:  # uneven
        return [Mesh({"x": 1}, [0]), Mesh({"x": 3}, [1, 2, 3]), Mesh({"x": 4}, [4, 5, 6, 7])]
    size = 8 // stages
    return [Mesh({"x": size}, list(range(s * size, (s + 1) * size))) for s in range(stages)]


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("make", [gpipe, one_forward_one_backward, zero_bubble])
def test_equals_the_undivided_model(stages, make):
    adam = optim.Adam(rate=0.02)
    pipeline = Pipeline(divided(meshes(stages), weights(stages)), make(stages, MICROBATCHES), optimizer=adam)
    losses = [float(pipeline.step(batch_of(i))) for i in range(20)]
    expected, params = undivided(stages, adam, 20)
    close(losses, np.array(expected))
    assert losses[-1] < losses[0]
    for s in range(stages):
        found = pipeline.parameters(s)
        assert found.keys() == params[s].keys()
        for name, value in params[s].items():
            close(found[name].numpy(), value.numpy())
    assert pipeline.stats.peak_activations == pipeline.schedule.peak_activations


def test_interleaved_equals_the_undivided_model():
    sgd = optim.Sgd(rate=0.1, momentum=0.9)
    schedule = interleaved(2, 2, MICROBATCHES)
    assert [schedule.worker_of(s) for s in range(4)] == [0, 1, 0, 1]
    pipeline = Pipeline(divided(meshes(2) * 2, weights(4)), schedule, optimizer=sgd)
    losses = [float(pipeline.step(batch_of(i))) for i in range(20)]
    close(losses, np.array(undivided(4, sgd, 20)[0]))


def test_tied_weights_are_one_parameter():
    sgd = optim.Sgd(rate=0.1)
    shared = {name: meshard.asarray(value) for name, value in weights(1)[0].items()}
    params = [shared, weights(2)[1], shared]
    pipeline = Pipeline(divided(meshes(3), params), one_forward_one_backward(3, MICROBATCHES), optimizer=sgd)
    losses = [float(pipeline.step(batch_of(i))) for i in range(20)]
    expected, undivided_params = undivided(3, sgd, 20, tied=True)
    close(losses, np.array(expected))
    for name in shared:
        close(pipeline.parameters(0)[name].numpy(), undivided_params[0][name].numpy())
        close(pipeline.parameters(2)[name].numpy(), undivided_params[0][name].numpy())


def test_backward_returns_gradients():
    pipeline = Pipeline(divided(meshes(2), weights(2)), gpipe(2, MICROBATCHES))
    pipeline.backward(batch_of(0))

    def mean_loss(params):
        return sum(loss_of(layer(params[1], layer(params[0], one["x"])), one) for one in batch_of(0)) / MICROBATCHES

    expected = meshard.grad(mean_loss)(weights(2))
    for s in range(2):
        for name, value in expected[s].items():
            close(pipeline.gradients(s)[name].numpy(), value.numpy())
    with pytest.raises(meshard.FailedPreconditionError, match="needs PipelineOptions::optimizer"):
        pipeline.step(batch_of(0))


def test_schedules():
    one = one_forward_one_backward(3, 4)
    assert (one.name, one.stages, one.workers, one.microbatches) == ("1F1B", 3, 3, 4)
    assert one.peak_activations == [3, 2, 1]
    assert timeline(one).bubble == pytest.approx(2 / 6)
    assert timeline(gpipe(2, 4), forward=[1, 3], input_gradient=[1, 3], weight_gradient=[1, 3]).slowest == 1
    assert zero_bubble(3, 4).splits_gradients and not one.splits_gradients
    assert Schedule.parse(str(one)) == one != gpipe(3, 4)
    assert one != "1F1B"
    assert timeline(one).svg().startswith("<svg") and "worker 2" in str(timeline(one))
    assert timeline(one).busy(0) == 12 and timeline(one).length == 18


@pytest.mark.parametrize("wrong, error, match", [
    (lambda: Schedule.parse("0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1"), meshard.InvalidArgumentError, "never ends"),
    (lambda: timeline(gpipe(2, 2), forward=[1, 2, 3]), ValueError, "3 times for 2 stages"),
    (lambda: gpipe(0, 2), meshard.InvalidArgumentError, "stages"),
    (lambda: gpipe(2, 2).worker_of(2), IndexError, "no stage 2 of 2"),
    (lambda: Stage(Mesh({"x": 1}), {}, lambda p: p), TypeError, "not of 1 arguments"),
    (lambda: Pipeline([], gpipe(2, 2)), meshard.InvalidArgumentError, "0 stages for a schedule of 2"),
    (lambda: Pipeline([], gpipe(2, 2), optimizer=3), TypeError, "optim.Sgd, optim.Adam or optim.AdamW"),
])
def test_errors(wrong, error, match):
    with pytest.raises(error, match=match):
        wrong()


def test_what_a_stage_raises_reaches_the_caller():
    def fails(p, h, batch):
        raise KeyError("no such layer")

    places = meshes(2)
    stages = [Stage(places[0], weights(1)[0], lambda p, batch: layer(p, batch["x"])),
              Stage(places[1], weights(2)[1], fails)]
    pipeline = Pipeline(stages, gpipe(2, MICROBATCHES), optimizer=optim.Sgd())
    with pytest.raises(KeyError, match="no such layer"):
        pipeline.step(batch_of(0))
