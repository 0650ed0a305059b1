"""mt.train_step: the losses and parameters of PyTorch's own loop, and where the state is."""

import contextlib
import copy
import gc
import weakref

import pytest

torch = pytest.importorskip("torch")

import meshard as ms  # noqa: E402
import meshard.torch as mt  # noqa: E402
from meshard import P  # noqa: E402

OPTIMIZERS = {
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, centered=True),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
}


def close(got, wanted):
    torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-6)


def plain_step(model, optimizer, loss, *batch):
    def closure():
        optimizer.zero_grad()
        value = loss(model(*batch[:-1]), batch[-1])
        value.backward()
        return value

    return optimizer.step(closure).item()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_equal_pytorchs(name, mlp, mesh):
    plain, make = copy.deepcopy(mlp), OPTIMIZERS[name]
    mt.mark_sharding(mlp.up.weight, mesh, P("model", None))
    optimizer, other = make(mlp.parameters()), make(plain.parameters())
    loss = torch.nn.functional.mse_loss
    step = mt.train_step(mlp, loss, optimizer)
    schedules = [torch.optim.lr_scheduler.StepLR(each, 2) for each in (optimizer, other)]
    torch.manual_seed(1)
    for _ in range(5):
        x, y = torch.randn(6, 8), torch.randn(6, 4)
        assert float(step(x, y)) == pytest.approx(plain_step(plain, other, loss, x, y), rel=1e-5)
        for schedule in schedules:
            schedule.step()
    for one, wanted in zip(mlp.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one.detach() + 0, wanted.detach(), rtol=1e-5, atol=1e-6)
    assert len(step._programs) == 1  # also of the first step and of other learning rates
    assert mlp.up.weight.value.sharding.spec == P("model", None)
    for value in optimizer.state[mlp.up.weight].values():
        assert value.value.sharding.spec == (P("model", None) if value.shape == mlp.up.weight.shape else P())


class Own(torch.optim.Optimizer):
    """An optimizer of a user: `update(parameter, gradient, state)` makes the state, too."""

    def __init__(self, parameters, update):
        super().__init__(parameters, {"lr": 0.1})
        self._update = update

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter -= group["lr"] * self._update(parameter, parameter.grad, self.state[parameter])


def averaged(parameter, gradient, state):
    if not state:
        state.update(sign=torch.ones_like(parameter), mean=torch.full_like(parameter, 0.25), kind="averaged")
    state["mean"].lerp_(gradient, 0.5)
    state["sign"].copy_(state["mean"].sign())
    return state["mean"] + 0.5 * state["sign"]


def summed(parameter, gradient, state):
    if not state:
        state["sum"] = gradient.clone()
    else:
        state["sum"].mul_(0.5).add_(gradient)
    return state["sum"]


def begins_with_twice_the_gradient(parameter, gradient, state):
    if not state:
        state["sum"] = 2 * gradient
    else:
        state["sum"].mul_(0.5).add_(gradient)
    return state["sum"]


def begins_with_the_parameter(parameter, gradient, state):
    if not state:
        state["average"] = parameter.clone()
    state["average"].lerp_(parameter, 0.5)
    return gradient + state["average"]


def has_another_first_update(parameter, gradient, state):
    if not state:
        state["mean"] = torch.zeros_like(parameter)
        return gradient
    state["mean"].lerp_(gradient, 0.5)
    return 2 * state["mean"]


def makes_states_one_after_the_other(parameter, gradient, state):
    if not state:
        state["first"] = torch.zeros_like(parameter)
    elif "second" not in state:
        state["second"] = torch.ones_like(parameter)
    for each in state.values():
        each.lerp_(gradient, 0.5)
    return gradient + sum(state.values())


@pytest.mark.parametrize("update, programs", [
    (averaged, 1), (summed, 1), (begins_with_twice_the_gradient, 2), (begins_with_the_parameter, 2),
    (has_another_first_update, 2), (makes_states_one_after_the_other, 3)])
def test_optimizers_of_users(update, programs, mlp, mesh):
    mlp.unused = torch.nn.Parameter(torch.ones(3))
    plain = copy.deepcopy(mlp)
    mt.shard(mlp, mesh, {"up.weight": P("model"), "*": P()})
    optimizer, other = (Own(each.parameters(), update) for each in (mlp, plain))
    step = mt.train_step(mlp, torch.nn.functional.mse_loss, optimizer)
    compiles = ms.runtime_counters().compiles
    for _ in range(4):
        x, y = torch.randn(6, 8), torch.randn(6, 4)
        other.zero_grad()
        torch.nn.functional.mse_loss(plain(x), y).backward()
        other.step()
        step(x, y)
        for one, wanted in zip(mlp.parameters(), plain.parameters(), strict=True):
            close(one.detach() + 0, wanted.detach())
        ours, theirs = (each.state_dict()["state"] for each in (optimizer, other))
        assert {i: list(own) for i, own in ours.items()} == {i: list(own) for i, own in theirs.items()}
    assert len(step._programs) == programs
    assert ms.runtime_counters().compiles - compiles <= programs


@pytest.mark.parametrize("name, options, programs", [
    ("Adadelta", {}, 1), ("Adagrad", {}, 1), ("Adam", {"foreach": True, "amsgrad": True}, 1), ("Adamax", {}, 1),
    ("ASGD", {}, 1), ("AdamW", {"fused": True}, 1), ("RAdam", {"foreach": True}, 1), ("Rprop", {}, 1),
    ("SGD", {"momentum": 0.9, "nesterov": True, "foreach": True}, 1), ("SGD", {"momentum": 0.9, "dampening": 0.1}, 2)])
def test_programs_of_optimizers(name, options, programs, mlp):
    optimizer = getattr(torch.optim, name)(mlp.parameters(), lr=0.01, **options)
    step = mt.train_step(mlp, torch.nn.functional.mse_loss, optimizer, accumulate=2)
    for _ in range(6):
        step(torch.ones(6, 8), torch.ones(6, 4))
    assert len(step._programs) == 2 * programs  # with and without an update


def test_state_goes_to_plain_pytorch_and_back(mlp, tmp_path):
    optimizer = torch.optim.AdamW(mlp.parameters(), lr=0.01)
    step = mt.train_step(mlp, torch.nn.functional.mse_loss, optimizer)
    x, y = torch.randn(6, 8), torch.randn(6, 4)
    for _ in range(2):
        step(x, y)
    torch.save({"model": mlp.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "state.pt")
    saved = torch.load(tmp_path / "state.pt", weights_only=True)
    plain = type(mlp)()
    plain.load_state_dict(saved["model"])
    other = torch.optim.AdamW(plain.parameters(), lr=0.01)
    other.load_state_dict(saved["optimizer"])
    wanted = plain_step(plain, other, torch.nn.functional.mse_loss, x, y)
    assert float(step(x, y)) == pytest.approx(wanted, rel=1e-5)
    for one, expected in zip(mlp.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one.detach() + 0, expected.detach(), rtol=1e-5, atol=1e-6)
    mlp.load_state_dict(plain.state_dict())
    optimizer.load_state_dict(other.state_dict())
    assert float(step(x, y)) == pytest.approx(plain_step(plain, other, torch.nn.functional.mse_loss, x, y), rel=1e-5)


def test_what_pytorch_writes_is_seen(mlp):
    step = mt.train_step(mlp, torch.nn.functional.mse_loss, torch.optim.SGD(mlp.parameters(), lr=0.0))
    x, y = torch.ones(2, 8), torch.zeros(2, 4)
    step(x, y)
    with torch.no_grad():
        for parameter in mlp.parameters():
            parameter.zero_()
        mlp.down.bias[1:3] = 2.0  # through a view
    assert float(step(x, y)) == pytest.approx(2.0)


def test_clipping_before_the_update(mlp):
    plain = copy.deepcopy(mlp)
    optimizer, other = (torch.optim.SGD(each.parameters(), lr=1.0) for each in (mlp, plain))
    step = mt.train_step(mlp, torch.nn.functional.mse_loss, optimizer,
                         before_update=lambda parameters: torch.nn.utils.clip_grad_norm_(parameters, 0.01))
    x, y = torch.randn(6, 8), torch.randn(6, 4)
    step(x, y)
    torch.nn.functional.mse_loss(plain(x), y).backward()
    torch.nn.utils.clip_grad_norm_(plain.parameters(), 0.01)
    other.step()
    for one, wanted in zip(mlp.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one.detach() + 0, wanted.detach(), rtol=1e-5, atol=1e-6)


def test_a_loss_of_the_output_alone(mlp):
    step = mt.train_step(mlp, lambda output: output.square().mean(), torch.optim.SGD(mlp.parameters(), lr=0.1))
    x = torch.randn(6, 8)
    wanted = mlp(x).square().mean().item()
    assert float(step(x)) == pytest.approx(wanted, rel=1e-5)


def test_frozen_parameters_stay(mlp):
    mlp.up.weight.requires_grad_(False)
    before = mlp.up.weight.clone()
    step = mt.train_step(mlp, torch.nn.functional.mse_loss,
                         torch.optim.AdamW([p for p in mlp.parameters() if p.requires_grad]))
    for _ in range(2):
        step(torch.randn(6, 8), torch.randn(6, 4))
    assert torch.equal(mlp.up.weight + 0, before)


def test_what_was_copied_to_another_parameter_stays(mlp):
    step = mt.train_step(mlp, torch.nn.functional.mse_loss, torch.optim.SGD(mlp.parameters(), lr=0.1))
    x, y = torch.randn(6, 8), torch.randn(6, 4)
    step(x, y)
    average, wanted = copy.deepcopy(mlp), mlp.up.weight.tolist()
    with torch.no_grad():
        average.up.weight.copy_(mlp.up.weight)
    step(x, y)
    assert average.up.weight.tolist() == wanted != mlp.up.weight.tolist()


def test_hooks_on_gradients(mlp):
    before = [each.detach().clone() for each in mlp.parameters()]
    step = mt.train_step(mlp, torch.nn.functional.mse_loss, torch.optim.SGD(mlp.parameters(), lr=1.0))
    mlp.up.weight.register_hook(lambda gradient: gradient * 0)
    mlp.up.bias.register_post_accumulate_grad_hook(lambda parameter: setattr(parameter, "grad", None))
    for _ in range(2):  # the second one with parameters that are on the devices
        step(torch.randn(6, 8), torch.randn(6, 4))
    changed = [not torch.equal(each.detach() + 0, old) for each, old in zip(mlp.parameters(), before, strict=True)]
    assert changed == [False, False, True, True]
    mlp.down.bias.register_hook(lambda gradient: gradient * 0)
    kept = mlp.down.bias.detach().clone()
    step(torch.randn(6, 8), torch.randn(6, 4))
    assert torch.equal(mlp.down.bias.detach() + 0, kept)


def test_gradients_are_accumulated_over_calls(mlp, mesh):
    plain = copy.deepcopy(mlp)
    mt.mark_sharding(mlp.up.weight, mesh, P("model", None))
    optimizer, other = (torch.optim.SGD([{"params": [each.up.weight], "lr": 0.1, "weight_decay": 0.5},
                                         {"params": [each.up.bias, each.down.weight, each.down.bias]}], lr=0.01,
                                        momentum=0.9) for each in (mlp, plain))
    loss = torch.nn.functional.mse_loss
    step = mt.train_step(mlp, loss, optimizer, accumulate=3, before_update=lambda parameters:
                         torch.nn.utils.clip_grad_norm_(parameters, 0.5))
    for i in range(6):
        x, y = torch.randn(2 + i % 3, 8), torch.randn(2 + i % 3, 4)  # micro-batches of other sizes
        value = loss(plain(x), y)
        (value / 3).backward()
        assert float(step(x, y)) == pytest.approx(value.item(), rel=1e-5)
        if i % 3 == 1:
            close(mlp.up.weight.grad + 0, plain.up.weight.grad)
        if i % 3 == 2:
            torch.nn.utils.clip_grad_norm_(plain.parameters(), 0.5)
            other.step()
            other.zero_grad()
            assert mlp.up.weight.grad is None
        for one, wanted in zip(mlp.parameters(), plain.parameters(), strict=True):
            close(one.detach() + 0, wanted.detach())


def test_an_optimizer_that_evaluates_the_loss(mlp):
    plain = copy.deepcopy(mlp)
    optimizer, other = (torch.optim.LBFGS(each.parameters(), max_iter=4, line_search_fn="strong_wolfe")
                        for each in (mlp, plain))
    step = mt.train_step(mlp, torch.nn.functional.mse_loss, optimizer)
    x, y = torch.randn(6, 8), torch.randn(6, 4)
    for _ in range(2):
        assert float(step(x, y)) == pytest.approx(
            plain_step(plain, other, torch.nn.functional.mse_loss, x, y), rel=1e-3)
    with pytest.raises(ValueError, match="LBFGS evaluates the loss itself"):
        mt.train_step(mlp, torch.nn.functional.mse_loss, optimizer, accumulate=2)


def test_a_scaled_loss(mlp):
    plain = copy.deepcopy(mlp)
    optimizer, other = (torch.optim.AdamW(each.parameters(), lr=0.01) for each in (mlp, plain))
    ours, scaler = (torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2) for _ in range(2))
    loss = torch.nn.functional.mse_loss
    step = mt.train_step(mlp, loss, optimizer, scaler=ours)
    for i in range(5):
        x, y = torch.randn(6, 8), torch.randn(6, 4)
        if i == 1:
            x[0, 0] = float("inf")
        other.zero_grad()
        scaler.scale(loss(plain(x), y)).backward()
        scaler.step(other)
        scaler.update()
        step(x, y)
        assert ours.state_dict() == scaler.state_dict()
        for one, wanted in zip(mlp.parameters(), plain.parameters(), strict=True):
            close(one.detach() + 0, wanted.detach())


@pytest.mark.parametrize("dampening", [0.0, 0.5])
def test_a_first_step_that_is_skipped(dampening, mlp):
    plain = copy.deepcopy(mlp)
    optimizer, other = (torch.optim.SGD(each.parameters(), lr=0.01, momentum=0.9, dampening=dampening)
                        for each in (mlp, plain))
    ours, scaler = (torch.amp.GradScaler("cpu", init_scale=1024.0) for _ in range(2))
    step = mt.train_step(mlp, torch.nn.functional.mse_loss, optimizer, scaler=ours)
    for i in range(4):
        x, y = torch.randn(6, 8), torch.randn(6, 4)
        if i < 2:
            x[0, 0] = float("inf")
        other.zero_grad()
        scaler.scale(torch.nn.functional.mse_loss(plain(x), y)).backward()
        scaler.step(other)
        scaler.update()
        step(x, y)
        for one, wanted in zip(mlp.parameters(), plain.parameters(), strict=True):
            close(one.detach() + 0, wanted.detach())


def test_states_are_sharded_further(mlp, mesh):
    plain = copy.deepcopy(mlp)
    mt.mark_sharding(mlp.up.weight, mesh, P("model", None))
    optimizer, other = (torch.optim.AdamW(each.parameters(), lr=0.01) for each in (mlp, plain))
    mt.shard_state(optimizer, mesh, axis="data")
    step = mt.train_step(mlp, torch.nn.functional.mse_loss, optimizer)
    for _ in range(3):
        x, y = torch.randn(6, 8), torch.randn(6, 4)
        assert float(step(x, y)) == pytest.approx(
            plain_step(plain, other, torch.nn.functional.mse_loss, x, y), rel=1e-5)
    assert optimizer.state[mlp.up.weight]["exp_avg"].value.sharding.spec == P("model", "data")
    assert optimizer.state[mlp.down.bias]["exp_avg_sq"].value.sharding.spec == P("data")
    assert mlp.up.weight.value.sharding.spec == P("model", None)


def test_an_average_of_the_parameters(mlp):
    plain = copy.deepcopy(mlp)
    averages = [torch.optim.swa_utils.AveragedModel(each, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
                for each in (mlp, plain)]
    optimizer, other = (torch.optim.SGD(each.parameters(), lr=0.1) for each in (mlp, plain))
    step = mt.train_step(mlp, torch.nn.functional.mse_loss, optimizer)
    for _ in range(3):
        x, y = torch.randn(6, 8), torch.randn(6, 4)
        step(x, y)
        plain_step(plain, other, torch.nn.functional.mse_loss, x, y)
        averages[0].update_parameters(mlp)
        averages[1].update_parameters(plain)
    for one, wanted in zip(averages[0].parameters(), averages[1].parameters(), strict=True):
        close(one.detach() + 0, wanted.detach())


def test_numbers_that_an_optimizer_counts_are_an_error(mlp):
    class Counting(torch.optim.SGD):
        def step(self, closure=None):
            super().step()
            for group in self.param_groups:
                group["steps"] = group.get("steps", 0) + 1

    optimizer = Counting(mlp.parameters(), lr=0.1)
    step = mt.train_step(mlp, torch.nn.functional.mse_loss, optimizer)
    with pytest.raises(NotImplementedError, match="Counting keeps 'steps' as a number"):
        step(torch.ones(2, 8), torch.ones(2, 4))
    assert "steps" not in optimizer.param_groups[0]


def test_data_of_a_parameter_on_the_devices(mlp, mesh):
    mt.mark_sharding(mlp.up.weight, mesh, P("model", None))
    step = mt.train_step(mlp, torch.nn.functional.mse_loss, torch.optim.SGD(mlp.parameters(), lr=0.0))
    x, y = torch.ones(2, 8), torch.zeros(2, 4)
    step(x, y)
    mlp.up.weight.data = torch.zeros(16, 8)
    mlp.up.bias.data.zero_()
    mlp.down.bias.data.fill_(3.0)
    assert float(step(x, y)) == pytest.approx(9.0)
    assert mlp.up.weight.value.sharding.spec == P("model", None)
    with pytest.raises(RuntimeError, match="cannot be set"):
        mlp.up.weight.data = torch.zeros(3)


def test_a_loss_with_weights_sees_them_change(mlp):
    weights = torch.ones(4)
    step = mt.train_step(mlp, lambda output, target: (weights * (output - target) ** 2).mean(),
                         torch.optim.SGD(mlp.parameters(), lr=0.0))
    x, y = torch.randn(6, 8), torch.randn(6, 4)
    first = float(step(x, y))
    weights.mul_(2.0)
    assert float(step(x, y)) == pytest.approx(2 * first, rel=1e-5)
    assert len(step._programs) == 1


def test_arguments_of_a_step_are_not_kept(mlp):
    step = mt.train_step(mlp, torch.nn.functional.mse_loss, torch.optim.SGD(mlp.parameters(), lr=0.1))
    x, y = torch.randn(6, 8), torch.randn(6, 4)
    step(x, y)
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("options", [{}, {"foreach": True}])
@pytest.mark.parametrize("name", ["AdamW", "NAdam", "RAdam", "Adamax"])
def test_corrections_of_averages_are_as_exact_as_pytorchs(name, options):
    def parameters():
        return torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(3)), torch.nn.Parameter(torch.zeros(()))])

    def loss(output):
        return (output[0] * torch.tensor([1.0, -2.0, 0.5])).sum() + 3 * output[1]

    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.own = parameters()

        def forward(self):
            return [each * 1 for each in self.own]

    plain, compiled = Own(), Own()
    of_plain, of_compiled = (getattr(torch.optim, name)(each.parameters(), lr=1.0, **options)
                             for each in (plain, compiled))
    step = mt.train_step(compiled, loss, of_compiled)
    for _ in range(7):
        of_plain.zero_grad()
        loss(plain()).backward()
        of_plain.step()
        step()
    for got, wanted in zip(compiled.parameters(), plain.parameters(), strict=True):
        assert got.dtype == wanted.dtype
        torch.testing.assert_close(got.detach().clone(), wanted.detach(), rtol=2e-6, atol=2e-6)


def normalized(checkpoints):
    class Normalized(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.norm, self.down = torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 4)

        def inner(self, x):
            return torch.tanh(self.up(x))

        def forward(self, x):
            x = x * torch.ones((), requires_grad=True)  # a reentrant checkpoint needs an input with a gradient
            inner = self.inner(x) if not checkpoints else \
                torch.utils.checkpoint.checkpoint(self.inner, x, use_reentrant=checkpoints == "reentrant")
            return self.down(torch.relu(self.norm(inner)))

    torch.manual_seed(0)
    return Normalized()


def train_both(model, plain, mesh, tolerance=1e-5, context=contextlib.nullcontext):
    """Trains both, the first one sharded, and compares losses, parameters and buffers."""
    mt.mark_sharding(model.up.weight, mesh, P("model", None))
    optimizer, other = (torch.optim.SGD(each.parameters(), lr=0.1) for each in (model, plain))
    loss = torch.nn.functional.mse_loss
    step = mt.train_step(model, loss, optimizer)
    for _ in range(2):
        x, y = mt.mark_sharding(torch.randn(8, 8), mesh, P("data")), torch.randn(8, 4)
        with context():
            value, wanted = step(x, y), loss(plain(x), y)
        other.zero_grad()
        wanted.backward()
        other.step()
        assert float(value) == pytest.approx(wanted.item(), rel=tolerance * 10)
    states = ([*each.parameters(), *each.buffers()] for each in (model, plain))
    for one, wanted in zip(*states, strict=True):
        torch.testing.assert_close(one.detach() + 0, wanted.detach(), rtol=tolerance * 10, atol=tolerance)


@pytest.mark.parametrize("checkpoints", [None, "reentrant", "not reentrant"])
def test_batch_norm_and_checkpoints(checkpoints, mesh):
    model = normalized(checkpoints)
    train_both(model, copy.deepcopy(model), mesh)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_compute_again(reentrant):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 4))

    def forward(x, checkpoints):
        run = (lambda f, x: torch.utils.checkpoint.checkpoint(f, x, use_reentrant=reentrant)) if checkpoints else \
            (lambda f, x: f(x))
        return run(model, run(model, x)).sum()

    x = torch.ones(2, 4, requires_grad=True)
    counts = []
    for checkpoints in (False, True):
        def value_and_gradient(x):
            value = forward(x, checkpoints)  # noqa: B023  (called in this turn)
            return value, torch.autograd.grad(value, x)[0]

        counts.append(ms.module_text(mt.compile(value_and_gradient), x).count("stablehlo.tanh"))
    assert counts == [2, 4]


def test_checkpoints_draw_once():
    """The backward pass has the random values of the forward pass."""
    dropped = mt.compile(lambda w: torch.utils.checkpoint.checkpoint(
        lambda w: torch.nn.functional.dropout(torch.tanh(w), 0.5), w, use_reentrant=False))
    w = torch.full((1000,), 0.5, requires_grad=True)
    y = dropped(w)
    y.sum().backward()
    assert torch.equal(y != 0, w.grad != 0) and 400 < (y != 0).sum() < 600


def test_autocast_in_training(mesh):
    model = normalized(None)
    train_both(model, copy.deepcopy(model), mesh, 2e-3, lambda: torch.autocast("cpu", dtype=torch.bfloat16))


def test_hooks_of_modules_in_training(mesh):
    model = normalized(None)
    plain = copy.deepcopy(model)
    for each in (model, plain):
        each.up.register_forward_hook(lambda module, args, output: output * 1.5)
        each.down.register_full_backward_hook(lambda module, gradients, outputs: tuple(g * 2 for g in gradients))
    train_both(model, plain, mesh)


def test_an_exported_module_is_trained(mesh):
    model = normalized(None)
    plain = copy.deepcopy(model)
    exported = torch.export.export(model, (torch.randn(8, 8),)).module()
    with pytest.raises(RuntimeError, match="others have weak references"):
        train_both(exported, plain, mesh)
    train_both(copy.deepcopy(exported), plain, mesh)
