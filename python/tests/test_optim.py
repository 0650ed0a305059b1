"""Optimizers against NumPy in 64 bits and against optax; schedules, clipping, accumulation, scaling, layouts."""

import dataclasses
import inspect

import numpy as np
import pytest

import meshard
from meshard import Mesh, P, nn, optim, tree

MESH = Mesh({"data": 2, "model": 4})


def parameters():
    random = np.random.default_rng(1)
    return {"weight": random.normal(size=(4, 2)).astype(np.float32), "bias": random.normal(size=2).astype(np.float32)}


def gradients_of(step):
    """Fixed numbers of both signs, and a zero."""
    number = ((np.arange(10) * 7 + step * 3) % 11 - 5).astype(np.float32) * np.float32(0.125)
    return {"weight": number[:8].reshape(4, 2), "bias": number[8:]}


def trained(optimizer, steps, params=None):
    """The parameters and the state after some steps, by one jitted function."""
    params = parameters() if params is None else params
    state = optimizer.init(params)
    step = meshard.jit(lambda params, gradients, state: optimizer.update(params, gradients, state))
    for i in range(steps):
        params, state = step(params, gradients_of(i), state)
    assert step.stats.traces == 1
    assert int(state.steps) == steps
    return params, state


def close(actual, expected, tolerance=1e-6):
    for name in expected:
        np.testing.assert_allclose(actual[name].numpy(), expected[name], rtol=tolerance, atol=tolerance)


def adam_by_definition(steps, rate=1e-3, b1=0.9, b2=0.999, epsilon=1e-8, decay=0.0, decay_rank=0, efficient=False):
    params = {name: value.astype(np.float64) for name, value in parameters().items()}
    m, v = ({name: 0.0 for name in params} for _ in range(2))
    for t in range(1, steps + 1):
        for name, g in gradients_of(t - 1).items():
            g = g.astype(np.float64)
            m[name] = b1 * m[name] + (1 - b1) * g
            v[name] = b2 * v[name] + (1 - b2) * g * g
            first, second = 1 - b1**t, np.sqrt(1 - b2**t)
            change = (rate * second / first * m[name] / (np.sqrt(v[name]) + epsilon) if efficient else
                      rate * (m[name] / first) / (np.sqrt(v[name]) / second + epsilon))
            if params[name].ndim >= decay_rank:
                change = change + rate * decay * params[name]
            params[name] = params[name] - change
    return params


@pytest.mark.parametrize("form", ["corrected", "efficient"])
def test_adam(form):
    params, state = trained(optim.Adam(rate=0.01, epsilon=1e-6, form=form), 4)
    close(params, adam_by_definition(4, 0.01, epsilon=1e-6, efficient=form == "efficient"))
    assert isinstance(state, optim.AdamState) and state.mean["bias"].shape == (2,)


def test_adamw_exempts_parameters_of_low_rank():
    params, _ = trained(optim.AdamW(rate=0.01, beta1=0.8, beta2=0.95, weight_decay=0.1, decay_rank=2), 4)
    close(params, adam_by_definition(4, 0.01, 0.8, 0.95, decay=0.1, decay_rank=2))


@pytest.mark.parametrize("momentum, nesterov", [(0.0, False), (0.9, False), (0.9, True)])
def test_sgd(momentum, nesterov):
    params, state = trained(optim.Sgd(rate=0.1, momentum=momentum, nesterov=nesterov, weight_decay=0.01), 3)
    expected = {name: value.astype(np.float64) for name, value in parameters().items()}
    velocity = {name: 0.0 for name in expected}
    for i in range(3):
        for name, g in gradients_of(i).items():
            g = g + 0.01 * expected[name]
            velocity[name] = momentum * velocity[name] + g
            expected[name] = expected[name] - 0.1 * (g + momentum * velocity[name] if nesterov else velocity[name])
    close(params, expected)
    assert (state.velocity is None) == (momentum == 0)


@pytest.mark.parametrize("mine, name, options", [
    (optim.Adam(rate=0.01), "adam", {"learning_rate": 0.01}),
    (optim.AdamW(rate=0.01, weight_decay=0.2), "adamw", {"learning_rate": 0.01, "weight_decay": 0.2}),
    (optim.Sgd(rate=0.1, momentum=0.9), "sgd", {"learning_rate": 0.1, "momentum": 0.9}),
    (optim.Sgd(rate=0.1, momentum=0.9, nesterov=True), "sgd",
     {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
])
def test_steps_are_those_of_optax(mine, name, options):
    optax = pytest.importorskip("optax")
    theirs = getattr(optax, name)(**options)
    params = parameters()
    state = theirs.init(params)
    for i in range(5):
        updates, state = theirs.update(gradients_of(i), state, params)
        params = optax.apply_updates(params, updates)
    close(trained(mine, 5)[0], {name: np.asarray(value) for name, value in params.items()}, 2e-6)


def test_narrow_parameters_have_wide_states():
    params = optim.cast(parameters(), "bfloat16")
    assert params["weight"].dtype == meshard.bfloat16
    after, state = trained(optim.Adam(rate=0.01), 2, params)
    assert state.mean["weight"].dtype == state.square["bias"].dtype == np.float32
    assert after["weight"].dtype == meshard.bfloat16


def test_optimizers_are_values():
    adam = optim.Adam(rate=0.1)
    assert adam == optim.Adam(rate=0.1) and hash(adam) == hash(optim.Adam(rate=0.1)) and adam != optim.Adam(rate=0.2)
    step = meshard.jit(lambda adam, params, state: adam.update(params, gradients_of(0), state))
    params, state = parameters(), adam.init(parameters())
    step(adam, params, state)
    step(optim.Adam(rate=0.1), params, state)
    step(dataclasses.replace(adam, rate=0.3), params, state)
    assert step.stats.traces == 2
    with pytest.raises(ValueError, match="no form 'fast'"):
        optim.Adam(form="fast").update(params, gradients_of(0), state)
    with pytest.raises(TypeError):
        optim.Adam(0.1)


def test_errors_of_updates():
    adam, params = optim.Adam(), parameters()
    state = adam.init(params)
    with pytest.raises(meshard.InvalidArgumentError, match="2 parameters and 1 gradients"):
        adam.update(params, {"bias": gradients_of(0)["bias"]}, state)
    with pytest.raises(meshard.InvalidArgumentError, match="its gradient is"):
        adam.update(params, {"weight": np.zeros((2, 4), np.float32), "bias": np.zeros(2, np.float32)}, state)
    with pytest.raises(meshard.InvalidArgumentError, match="only floats can be trained"):
        adam.init({"n": np.zeros(3, np.int32)})
    with pytest.raises(meshard.InvalidArgumentError, match="the momentum is 0.9"):
        optim.Sgd(momentum=0.9).update(params, gradients_of(0), optim.Sgd().init(params))
    with pytest.raises(TypeError, match="a number, a Schedule or a function"):
        optim.Adam(rate="fast").update(params, gradients_of(0), state)


# --- schedules --------------------------------------------------------------------------------------------------------


def rates(schedule, steps):
    return [float(schedule(step)) for step in steps]


def test_schedules():
    assert rates(optim.linear(1.0, 0.0, 10), [0, 5, 10, 20]) == pytest.approx([1, 0.5, 0, 0])
    assert rates(optim.cosine(2.0, 10, 1.0), [0, 5, 10, 20]) == pytest.approx([2, 1.5, 1, 1])
    warm = optim.warm_up(1.0, 4, optim.linear(1.0, 0.0, 4))
    assert rates(warm, range(9)) == pytest.approx([0.25, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25, 0])
    assert rates(optim.joined(0.5, 2, lambda step: step), [0, 1, 2, 5]) == pytest.approx([0.5, 0.5, 0, 3])
    assert rates(optim.piecewise([(0, 1.0), (3, 0.5)]), [0, 2, 3, 9]) == [1, 1, 0.5, 0.5]
    assert rates(optim.Schedule(0.25), [0, 7]) == [0.25, 0.25]
    assert rates(optim.Schedule(lambda step: 1 / (step + 1)), [0, 1, 3]) == [1, 0.5, 0.25]
    with pytest.raises(meshard.InvalidArgumentError, match="1 step or more"):
        optim.linear(1.0, 0.0, 0)
    with pytest.raises(meshard.InvalidArgumentError, match="not after step"):
        optim.piecewise([(0, 1.0), (0, 2.0)])
    with pytest.raises(meshard.InvalidArgumentError, match="rank 0"):
        optim.linear(1.0, 0.0, 5)(np.zeros(2, np.int32))


@pytest.mark.parametrize("schedule", [optim.linear(0.1, 0.0, 4), lambda step: 0.1 * (1 - step / 4)])
def test_a_schedule_is_part_of_the_program(schedule):
    params, _ = trained(optim.Sgd(rate=schedule), 3)
    expected = {name: value.astype(np.float64) for name, value in parameters().items()}
    for i in range(3):
        for name, g in gradients_of(i).items():
            expected[name] = expected[name] - 0.1 * (1 - i / 4) * g
    close(params, expected)


# --- gradients --------------------------------------------------------------------------------------------------------


def test_clipping():
    gradients = gradients_of(1)
    norm = np.sqrt(sum((g.astype(np.float64)**2).sum() for g in gradients.values()))
    assert float(optim.global_norm(gradients)) == pytest.approx(norm, rel=1e-6)
    clipped, before = optim.clip_by_global_norm(gradients, 0.5)
    assert float(before) == pytest.approx(norm, rel=1e-6)
    close(clipped, {name: g * 0.5 / norm for name, g in gradients.items()})
    close(optim.clip_by_global_norm(gradients, 100.0)[0], gradients)
    with pytest.raises(meshard.InvalidArgumentError, match="above 0"):
        optim.clip_by_global_norm(gradients, 0)


def loss_of(params, batch):
    x, y = batch
    return meshard.mean(meshard.square(
        meshard.matmul(x, params["weight"]) + params["bias"] - y))


def test_accumulation_is_the_whole_batch():
    random = np.random.default_rng(2)
    batch = random.normal(size=(12, 4)).astype(np.float32), random.normal(size=(12, 2)).astype(np.float32)
    params, calls = parameters(), []

    def counted(params, batch):
        calls.append(batch[0].shape)
        return meshard.value_and_grad(loss_of)(params, batch)

    loss, gradients = meshard.jit(optim.accumulated(counted, 3))(params, batch)
    whole_loss, whole = meshard.value_and_grad(loss_of)(params, batch)
    assert float(loss) == pytest.approx(float(whole_loss), rel=1e-6)
    close(gradients, {name: g.numpy() for name, g in whole.items()})
    assert calls == [(4, 4)] * 2
    with pytest.raises(meshard.InvalidArgumentError, match="cannot be cut into 5 parts"):
        optim.accumulated(counted, 5)(params, batch)


def test_loss_scaling():
    scaling = optim.LossScaling(first=8, interval=2, least=4)
    scale = scaling.init()
    assert isinstance(scale, optim.LossScale) and float(scale.scale) == 8 and int(scale.held) == 0
    assert float(scale.scaled(meshard.asarray(0.5, dtype="float16"))) == 4
    gradients, finite = scale.unscaled({"w": np.array([8, 16], np.float16)})
    assert gradients["w"].dtype == np.float32 and gradients["w"].numpy().tolist() == [1, 2] and bool(finite)
    assert not bool(scale.unscaled([np.array([np.inf], np.float16)])[1])
    update = meshard.jit(scaling.update)
    scales = []
    for finite in [True, True, True, False, False, False]:
        scale = update(scale, finite)
        scales.append(float(scale.scale))
    assert scales == [8, 16, 16, 8, 4, 4]
    params, other = parameters(), gradients_of(0)
    close(optim.chosen(np.bool_(True), params, other), params)
    close(optim.chosen(np.bool_(False), params, other), other)
    with pytest.raises(ValueError, match="differ"):
        optim.chosen(np.bool_(True), params, {"weight": other["weight"]})


def test_cast_leaves_integers():
    made = optim.cast({"w": np.ones(2, np.float32), "n": np.ones(2, np.int32)}, "bfloat16")
    assert made["w"].dtype == meshard.bfloat16 and made["n"].dtype == np.int32


# --- layouts ----------------------------------------------------------------------------------------------------------


def placed(layers=3):
    rules = nn.AxisRules(MESH, {"hidden": "model"})
    return nn.create(rules, 1, lambda make: {
        "blocks": nn.make_layers(make, layers, lambda one: nn.make_linear(one, 8, 16)),
        "norm": nn.make_rms_norm(make, 7)})


def specs(params):
    return [tensor.sharding.spec for tensor in tree.leaves(params)]


def test_states_are_laid_out_as_parameters():
    params = placed()
    state = optim.Adam().init(params)
    assert specs(state.mean) == specs(params) == [P(None, None, "model"), P(None, "model"), P(None)]
    assert state.steps.sharding.spec == P()


def test_zero_layout():
    params = placed()
    layout = optim.zero_layout(params)
    # Not the dimension of the layers; 7 is not a multiple of 2.
    assert specs(layout) == [P(None, "data", "model"), P(None, "model"), P(None)]
    state = optim.Adam().init(params, layout)
    assert specs(state.square) == specs(layout)
    with pytest.raises(meshard.NotFoundError):
        optim.zero_layout(params, "nowhere")
    with pytest.raises(meshard.InvalidArgumentError, match="no sharding"):
        optim.zero_layout(parameters())


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_fsdp_trains_alike(stage):
    params = placed()
    batch = np.random.default_rng(3).normal(size=(4, 8)).astype(np.float32)

    def loss_of(params, x):
        for layer in params["blocks"]:
            x = nn.relu(layer(x))[:, :8]
        return meshard.sum(x)

    adam = optim.AdamW(rate=0.1, decay_rank=2)
    step = meshard.jit(lambda params, state, x: adam.update(params, meshard.grad(loss_of)(params, x), state))
    expected, _ = step(params, adam.init(params), batch)

    fsdp = optim.Fsdp(params, stage=stage)
    assert (fsdp.axis, fsdp.stage, fsdp.smallest) == ("data", stage, 0)
    split = [P(None, "data", "model"), P(None, "model"), P(None)]
    assert specs(fsdp.state_layout) == split
    placed_params = fsdp.place(params)
    assert specs(placed_params) == (split if stage == 3 else specs(params))
    state = adam.init(placed_params, fsdp.state_layout)

    @meshard.jit
    def fsdp_step(params, state, x):
        return adam.update(params, fsdp.mark_gradients(meshard.grad(loss_of)(params, x)), state)

    after, state = fsdp_step(placed_params, state, batch)
    assert specs(after) == specs(placed_params) and specs(state.mean) == split
    for one, other in zip(tree.leaves(after), tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)


def test_fsdp_leaves_small_parameters_whole():
    assert specs(optim.Fsdp(placed(), smallest=129).state_layout) == specs(placed())
    assert specs(optim.Fsdp(placed(), smallest=128).state_layout)[0] == P(None, "data", "model")
    with pytest.raises(ValueError, match="1, 2 or 3"):
        optim.Fsdp(placed(), stage=4)


def test_weight_decay_counts_the_dimensions_of_a_layer():
    layers = nn.Layers(nn.Linear(np.ones((2, 3, 3), np.float32), np.ones((2, 3), np.float32)))
    sgd = optim.Sgd(rate=1.0, weight_decay=0.5, decay_rank=2)
    zeros = tree.map(lambda x: np.zeros(x.shape, np.float32), layers)
    after, _ = sgd.update(layers, zeros, sgd.init(layers))
    np.testing.assert_array_equal(after.stacked.weight.numpy(), np.full((2, 3, 3), 0.5))
    np.testing.assert_array_equal(after.stacked.bias.numpy(), np.ones((2, 3)))


def test_every_name_has_a_page():
    for name in optim.__all__:
        assert len(inspect.getdoc(getattr(optim, name)) or "") > 40, name
