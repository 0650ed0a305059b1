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


def test_random_settings_have_the_numbers_of_optax():
    pytest.importorskip("optax")
    import compare_optax
    assert compare_optax.compare(1, seed=3) == []


# --- chains, groups, wrappers -----------------------------------------------------------------------------------------


def test_chains_are_values():
    chain = optim.Chain(optim.ClipByValue(0.25), optim.Lion(rate=0.1))
    assert chain == optim.Chain(optim.ClipByValue(0.25), optim.Lion(rate=0.1)) != optim.Chain(optim.Lion(rate=0.1))
    assert "ClipByValue(limit=0.25)" in repr(chain)
    params, state = trained(chain, 3)
    assert isinstance(state, optim.TransformState) and list(state.slots) == ["1.mean"] and state.numbers == {}
    step = meshard.jit(lambda chain, params, state: chain.update(params, gradients_of(0), state))
    step(chain, params, state)
    step(optim.Chain(optim.ClipByValue(0.25), optim.Lion(rate=0.1)), params, state)
    step(optim.Chain(optim.ClipByValue(0.5), optim.Lion(rate=0.1)), params, state)
    assert step.stats.traces == 2
    with pytest.raises(TypeError, match="not an optimizer or a part of one: 3"):
        optim.Chain(3)
    with pytest.raises(meshard.InvalidArgumentError, match='the state has no "0.mean"'):
        optim.Chain(optim.Lion()).update(params, gradients_of(0), state)
    with pytest.raises(meshard.InvalidArgumentError, match="only floats can be trained"):
        chain.init({"n": np.zeros(3, np.int32)})


def test_groups_by_name():
    layers = nn.Layers(nn.Linear(np.ones((2, 3, 3), np.float32), np.ones((2, 3), np.float32)))
    model = {"blocks": layers, "head": np.ones(2, np.float32)}
    groups = optim.Groups({"blocks.*.weight": optim.Sgd(rate=1.0), "*.bias": optim.Freeze(),
                           "head": optim.Chain(optim.Scale(2.0), optim.Sgd(rate=lambda step: 1.0))})
    ones = tree.map(lambda x: np.ones(x.shape, np.float32), model)
    after, state = meshard.jit(groups.update)(model, ones, groups.init(model))
    assert after["blocks"].stacked.weight.numpy().max() == 0 and after["blocks"].stacked.bias.numpy().min() == 1
    assert after["head"].tolist() == [-1, -1]
    with pytest.raises(meshard.NotFoundError, match=r"block\..*nearest names are \"blocks\.\*\.weight"):
        optim.Groups({"block.*.weight": optim.Sgd(), "*": optim.Sgd()}).init(model)
    with pytest.raises(meshard.InvalidArgumentError, match='no pattern matches "head"'):
        optim.Groups({"blocks.*": optim.Sgd()}).init(model)


def test_skipped_and_gathered_steps():
    bad = {"weight": gradients_of(0)["weight"], "bias": np.array([np.nan, 1], np.float32)}
    careful = optim.ApplyIfFinite(optim.Adam(rate=0.1), most=3)
    state = careful.init(parameters())
    params, state = careful.update(parameters(), bad, state)
    close(params, parameters())
    assert int(state.numbers["total"]) == int(state.numbers["in_a_row"]) == int(state.steps) == 1
    params, state = careful.update(params, gradients_of(0), state)
    close(params, {name: value.numpy() for name, value in trained(optim.Adam(rate=0.1), 1)[0].items()})

    parts = optim.MultiSteps(optim.Sgd(rate=1.0), every=3, mean=False)
    after, state = trained(parts, 3)
    expected = parameters()
    for i in range(3):
        for name, g in gradients_of(i).items():
            expected[name] = expected[name] - g
    close(after, expected)


def test_averages():
    params, ema = parameters(), optim.Average(decay=0.75)
    state = ema.init(params)
    update = meshard.jit(ema.update)
    expected = None
    for i in range(4):
        moved = {name: value + i for name, value in params.items()}
        state = update(moved, state)
        expected = moved if i == 0 else {name: 0.75 * expected[name] + 0.25 * moved[name] for name in moved}
    close(state.averaged(params), expected)
    assert int(state.count) == int(state.steps) == 4 and update.stats.traces == 1
    swa = optim.Average(start=1)
    state = swa.init(params)
    for i in range(4):
        state = swa.update({name: value + i for name, value in params.items()}, state)
    close(state.averaged(params), {name: value + 2 for name, value in params.items()})
    with pytest.raises(meshard.InvalidArgumentError, match="not 2"):
        optim.Average(decay=2.0).init(params)


def test_rounding_at_random():
    params = {"w": meshard.ones(2048, dtype="bfloat16")}
    gradients = {"w": np.full(2048, -2.0**-10, np.float32)}
    chain = optim.Chain(optim.Sgd(rate=1.0), optim.StochasticRounding(1))
    step, state = meshard.jit(chain.update), chain.init(params)
    for _ in range(4):
        params, state = step(params, gradients, state)
    assert params["w"].dtype == meshard.bfloat16
    deviation = 2.0**-7 * np.sqrt(4 * 7 / 64 / 2048)
    assert abs(params["w"].numpy().astype(np.float64).mean() - 1 - 2.0**-8) < 5 * deviation


def test_states_of_transforms_are_saved(tmp_path):
    params = placed()
    chain = optim.Chain(optim.ClipByGlobalNorm(1.0), optim.Muon(rate=0.1))
    state = chain.init(params, optim.zero_layout(params))
    assert specs(state.slots["1.mean"]) == [P(None, "data", "model"), P(None, "model"), P(None)]
    meshard.io.save(tmp_path / "state", state)
    back = meshard.io.restore(tmp_path / "state", state)
    assert specs(back.slots["1.mean"]) == specs(state.slots["1.mean"]) and int(back.steps) == 0


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
    with pytest.raises(ValueError, match="unknown form 'fast'"):
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


def test_decays():
    assert rates(optim.exponential(1.0, 2, 0.25), [0, 1, 4]) == pytest.approx([1, 0.5, 0.0625])
    assert rates(optim.exponential(1.0, 2, 0.25, staircase=True, last=0.5), [1, 2]) == pytest.approx([1, 0.5])
    assert rates(optim.inverse_square_root(3.0, 4), [0, 12, 32]) == pytest.approx([3, 1.5, 1])
    assert rates(optim.polynomial(2.0, 1.0, 2.0, 4), [0, 2, 9]) == pytest.approx([2, 1.25, 1])
    assert rates(optim.cosine_restarts(1.0, 2, longer=2, lower=0.5), [0, 1, 2, 4]) == pytest.approx([1, 0.5, 0.5, 0.25])
    assert rates(optim.interpolated([(0, 0.0), (4, 2.0)], by="cosine"), [0, 2, 9]) == pytest.approx([0, 1, 2])
    assert rates(optim.one_cycle(1.0, 10), [0, 3, 10]) == pytest.approx([0.04, 1, 4e-6])
    with pytest.raises(ValueError, match="'linear' or 'cosine'"):
        optim.interpolated([(0, 1.0)], by="steps")
    with pytest.raises(meshard.InvalidArgumentError, match="at least 1, not 0"):
        optim.cosine_restarts(1.0, 5, longer=0)


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
