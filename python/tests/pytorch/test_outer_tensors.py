"""Tensors that a function uses without taking them as arguments: of closures, globals, and modules that it calls."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import meshard as ms
import meshard.torch as mt
from meshard import P


def test_later_values_are_used():
    shift = torch.ones(3)
    f = mt.compile(lambda x: x + shift)
    assert torch.equal(f(torch.ones(3)), torch.full((3,), 2.0))
    shift.fill_(5)
    assert torch.equal(f(torch.ones(3)), torch.full((3,), 6.0))
    shift.resize_(1).fill_(1)  # another type: another program
    assert torch.equal(f(torch.ones(3)), torch.full((3,), 2.0))


def test_writes_reach_them():
    total = torch.zeros(3)

    def f(x):
        total.add_(x)
        return x * 2

    compiled = mt.compile(f)
    for _ in range(2):
        compiled(torch.ones(3))
    assert torch.equal(total, torch.full((3,), 2.0))


def test_a_module_in_a_closure_gets_gradients(mesh, mlp):
    mt.shard(mlp, mesh, {"up.*": P("model")})
    x = torch.ones(2, 8)
    mt.compile(lambda x: mlp(x).square().sum())(x).backward()
    got = [each.grad.clone() for each in mlp.parameters()]
    mlp.zero_grad()
    mlp(x).square().sum().backward()
    for each, parameter in zip(got, mlp.parameters(), strict=True):
        torch.testing.assert_close(each, parameter.grad)


def test_under_transforms():
    w = torch.arange(3.0)
    f = mt.compile(torch.func.vmap(torch.func.grad(lambda x: (x * w).sum())))
    for _ in range(2):
        assert torch.equal(f(torch.ones(2, 3)), w.expand(2, 3))
        w.add_(1)


def test_tensors_that_the_function_makes_are_constants():
    shift = torch.ones(3)

    def f(x):
        return x + torch.from_numpy(np.array([1, 2, 3], np.float32)) + torch.tensor([1.0, 2.0, 3.0]) + shift

    compiled = mt.compile(f)
    for _ in range(2):
        torch.testing.assert_close(compiled(torch.ones(3)), f(torch.ones(3)))
        shift.add_(1)


def test_the_state_of_the_module_is_one_input(mlp):
    """A penalty that reads the parameters, which the model has, is differentiated by them."""
    import copy

    plain, x, y = copy.deepcopy(mlp), torch.ones(2, 8), torch.zeros(2, 4)

    def loss_of(module):
        return lambda out, y: (out - y).square().mean() + sum(each.square().sum() for each in module.parameters())

    step = mt.train_step(mlp, loss_of(mlp), torch.optim.SGD(mlp.parameters(), 0.01))
    optimizer = torch.optim.SGD(plain.parameters(), 0.01)
    for _ in range(3):
        value = step(x, y)
        optimizer.zero_grad()
        wanted = loss_of(plain)(plain(x), y)
        wanted.backward()
        optimizer.step()
        torch.testing.assert_close(float(value), float(wanted), rtol=1e-5, atol=1e-6)
    for each, other in zip(mlp.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(each.detach().clone(), other.detach())


def test_a_loss_uses_weights_and_a_teacher(mlp):
    torch.manual_seed(0)
    teacher, weight, x = torch.nn.Linear(8, 4), torch.ones(4), torch.ones(2, 8)

    def loss(out, x):
        with torch.no_grad():
            wanted = teacher(x)
        return ((out - wanted).square() * weight).mean()

    step = mt.train_step(mlp, loss, torch.optim.SGD(mlp.parameters(), 0.0))
    for _ in range(2):
        torch.testing.assert_close(float(step(x, x)), float(loss(mlp(x), x)))
        weight.mul_(2)


def test_gradients_that_would_be_lost_are_errors(mlp):
    head, x = torch.nn.Linear(4, 4), torch.ones(2, 8)
    step = mt.train_step(mlp, lambda out, x: head(out).sum(), torch.optim.SGD(mlp.parameters(), 0.1))
    with pytest.raises(ValueError, match="gradients to tensors from outside"):
        step(x, x)
    with pytest.raises(ValueError, match="gradients to tensors from outside"):
        mt.compile(lambda x: mlp(x).sum().backward())(x)


def test_explained_by_the_names_of_variables(mesh):
    layer = torch.nn.Linear(8, 8)
    mt.shard(layer, mesh, {"weight": P(None, "model")})
    report = ms.explain(mt.compile(lambda x: layer(x)), torch.ones(2, 8), topology="cpu:8")
    assert [(group.kind, tuple(group.axes)) for group in report.groups] == [("all-reduce", ("model",))]
    assert "layer.weight" in [each.name for each in report.arguments]
