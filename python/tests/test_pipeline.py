"""Pipelines against the undivided model, and their schedules against formulas."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import meshard
from meshard import Mesh, optim
from meshard.pipeline import (
    Action, Pipeline, Schedule, Stage, gpipe, interleaved, one_forward_one_backward, timeline, zero_bubble)

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
    expected, params = undivided(4, sgd, 20)
    close(losses, np.array(expected))
    for s in range(4):
        for name, value in params[s].items():
            close(pipeline.parameters(s)[name].numpy(), value.numpy())


def test_a_parsed_schedule_equals_the_undivided_model():
    sgd = optim.Sgd(rate=0.1)
    schedule = Schedule.parse("0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3\n1F0 1B0 1F1 1F2 1B2 1B1 1F3 1I3 1W3", name="mine")
    assert schedule.peak_activations == [3, 2]
    pipeline = Pipeline(divided(meshes(2), weights(2)), schedule, optimizer=sgd)
    losses = [float(pipeline.step(batch_of(i))) for i in range(20)]
    expected, params = undivided(2, sgd, 20)
    close(losses, np.array(expected))
    for s in range(2):
        for name, value in params[s].items():
            close(pipeline.parameters(s)[name].numpy(), value.numpy())


def test_the_norm_of_all_stages_is_clipped():
    sgd = optim.Sgd(rate=1.0)
    pipeline = Pipeline(divided(meshes(2), weights(2)), gpipe(2, MICROBATCHES), optimizer=sgd, clip_norm=0.01)
    pipeline.step(batch_of(0))
    moved = sum(float(meshard.sum(meshard.square(pipeline.parameters(s)[name] - value)))
                for s, params in enumerate(weights(2)) for name, value in params.items())
    assert moved ** 0.5 == pytest.approx(0.01, rel=1e-4)


def test_checkpoint_keeps_only_inputs():
    def peak(checkpoint):
        def first(p, batch):
            return meshard.tanh(meshard.tanh(batch["x"] @ p["w"]) @ p["w"])

        places = meshes(2)
        stages = [Stage(places[0], {"w": numbers(WIDTH, WIDTH)}, first, checkpoint=checkpoint),
                  Stage(places[1], weights(1)[0], lambda p, h, batch: loss_of(layer(p, h), batch))]
        pipeline = Pipeline(stages, gpipe(2, MICROBATCHES))
        return float(pipeline.backward(batch_of(0))), pipeline.stats.peak_activation_bytes[0]

    (loss, kept), (same, inputs) = peak(False), peak(True)
    assert loss == pytest.approx(same, abs=1e-6)
    assert inputs == MICROBATCHES * 6 * WIDTH * 4 < kept


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


def scaled_stages():
    places = meshes(2)

    def last(p, h, batch):
        return meshard.mean(meshard.square(h * p) if batch["loss"] == "square" else meshard.abs(h * p))

    return [Stage(places[0], numbers(WIDTH), lambda p, batch: batch["x"] * p * batch["scale"], name="scaled"),
            Stage(places[1], numbers(WIDTH, first=2.0), last)]


def test_what_is_no_tensor_is_part_of_the_programs():
    pipeline = Pipeline(scaled_stages(), gpipe(2, 2))
    x = numbers(6, WIDTH)
    h = x * numbers(WIDTH) * numbers(WIDTH, first=2.0)
    for scales, loss in [((1.0, 2.0), "square"), ((1.0, 2.0), "absolute"), ((3.0, 0.5), "square")]:
        batch = [{"x": x, "scale": scale, "loss": loss} for scale in scales]
        values = [np.square(scale * h) if loss == "square" else np.abs(scale * h) for scale in scales]
        close(float(pipeline.backward(batch)), np.mean(values))
    with pytest.raises(TypeError, match="unhashable"):
        pipeline.backward([{"x": x, "scale": 1.0, "loss": {1}}] * 2)


@pytest.mark.parametrize("other", [{"x": 1, "scale": 1.0, "loss": "absolute"}, {"x": 1, "scale": 1.0, "other": "square"},
                                   {"x": (1,), "scale": 1.0, "loss": "square"}, {"x": 1, "scale": None, "loss": "square"}])
def test_microbatches_have_one_structure(other):
    x = numbers(6, WIDTH)
    wrong = {key: x if value == 1 and key == "x" else (x,) if value == (1,) else value for key, value in other.items()}
    pipeline = Pipeline(scaled_stages(), gpipe(2, 2))
    with pytest.raises(meshard.InvalidArgumentError, match="microbatch 1 has another structure than microbatch 0"):
        pipeline.backward([{"x": x, "scale": 1.0, "loss": "square"}, wrong])


def test_errors_name_the_line_of_the_stage():
    def last(p, h, batch):
        return meshard.mean(h @ p["w"] - meshard.ones((3,)))

    places = meshes(2)
    stages = [Stage(places[0], weights(1)[0], lambda p, batch: layer(p, batch["x"])),
              Stage(places[1], weights(2)[1], last)]
    pipeline = Pipeline(stages, gpipe(2, MICROBATCHES), optimizer=optim.Sgd(rate=0.1))
    line = inspect.getsourcelines(last)[1] + 1
    with pytest.raises(meshard.InvalidArgumentError, match=rf"test_pipeline\.py:{line}: .*\[6, 8\] and \[3\]"):
        pipeline.step(batch_of(0))
    np.testing.assert_array_equal(pipeline.parameters(0)["w"].numpy(), weights(1)[0]["w"])


def test_actions_and_their_times():
    action = Action("2F5")
    assert (action.work, action.stage, action.microbatch, str(action)) == ("forward", 2, 5, "2F5")
    assert action == Action("2F5") != Action("2B5") and hash(action) == hash(Action("2F5"))
    one = one_forward_one_backward(2, 2)
    assert [str(each) for each in one.order(0)] == ["0F0", "0F1", "0B0", "0B1", "0U"]
    orders = [one.order(worker) for worker in range(one.workers)]
    assert Schedule.of(orders, name="same") == one
    assert Schedule.of([["0F0", Action("0B0")]]).peak_activations == [1]
    times = timeline(one, forward=2.0, input_gradient=1.0, weight_gradient=1.5)
    assert [(str(each.action), each.start, each.end) for each in times.workers[1][:2]] == [
        ("1F0", 2.0, 4.0), ("1B0", 4.0, 6.5)]


def test_schedules_are_values():
    one = zero_bubble(3, 4)
    for same in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        assert same == one and hash(same) == hash(one) and same.name == one.name
    assert pickle.loads(pickle.dumps(Action("1W2"))) == Action("1W2")
    assert one._repr_html_() == timeline(one).svg() == timeline(one)._repr_html_()


def test_texts():
    pipeline = Pipeline(scaled_stages(), gpipe(2, 2))
    stage = scaled_stages()[0]
    assert repr(pipeline) == "<meshard.pipeline.Pipeline of 2 stages, GPipe with 2 microbatches>"
    assert repr(stage).startswith("<meshard.pipeline.Stage scaled on ") and not stage.checkpoint
    np.testing.assert_array_equal(stage.parameters.numpy(), numbers(WIDTH))
    assert "peak_activations=[0, 0]" in repr(pipeline.stats)


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
    (lambda: gpipe(2, 2).order(-1), IndexError, "no worker -1 of 2"),
    (lambda: Action("F2"), meshard.InvalidArgumentError, '"F2" is not an action'),
    (lambda: Schedule.of([["0F0", "0B0", 3]]), TypeError, "not 3"),
    (lambda: Schedule.of([["0F0"]]), meshard.InvalidArgumentError, "0B0"),
    (lambda: Pipeline(["0F0"], gpipe(2, 2)), TypeError, "objects of class Stage, not '0F0'"),
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
