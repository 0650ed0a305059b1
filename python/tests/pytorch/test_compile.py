"""mt.compile and torch.compile(backend=...): values, gradients, buffers, structures, as PyTorch's own."""

import copy
import gc
import pickle
import weakref

import pytest

torch = pytest.importorskip("torch")

import meshard as ms  # noqa: E402
import meshard.torch as mt  # noqa: E402
from meshard import P  # noqa: E402


def close(got, wanted):
    torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)


def test_forward_and_backward(mlp, mesh):
    plain = copy.deepcopy(mlp)
    mt.mark_sharding(mlp.up.weight, mesh, P("model", None))
    mt.mark_sharding(mlp.down.weight, mesh, P(None, "model"))
    compiled, x = mt.compile(mlp), torch.randn(6, 8)
    y, wanted = compiled(x), plain(x)
    close(y, wanted)
    y.square().sum().backward()
    wanted.square().sum().backward()
    for one, other in zip(mlp.parameters(), plain.parameters(), strict=True):
        close(one.grad, other.grad)


def test_an_update_by_pytorch_is_seen(mlp):
    compiled, x = mt.compile(mlp), torch.randn(3, 8)
    before = compiled(x)
    optimizer = torch.optim.SGD(mlp.parameters(), lr=0.5)
    before.sum().backward()
    optimizer.step()
    close(compiled(x), mlp(x))
    assert not torch.equal(before, compiled(x))


def test_buffers_change_and_modes_are_other_programs():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6))
    plain, compiled = copy.deepcopy(module), mt.compile(module)
    for _ in range(3):
        x = torch.randn(5, 4)
        close(compiled(x), plain(x))
    close(module[1].running_mean, plain[1].running_mean)
    assert module[1].num_batches_tracked == 3
    module.eval()
    plain.eval()
    close(compiled(x), plain(x))


def test_structures_constants_and_none():
    def f(x, *, scale, flag=None):
        return {"y": x * scale, "n": 3, "rest": (flag, x.sum())}

    compiled = mt.compile(f)
    x = torch.arange(4.0)
    for scale in (2, 3.5):
        got = compiled(x, scale=scale)
        close(got["y"], x * scale)
        assert got["n"] == 3 and got["rest"][0] is None
        close(got["rest"][1], x.sum())


def test_tied_weights_are_one_gradient():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 4))
    module[2].weight = module[0].weight
    plain, x = copy.deepcopy(module), torch.randn(3, 4)
    mt.compile(module)(x).sum().backward()
    plain(x).sum().backward()
    close(module[0].weight.grad, plain[0].weight.grad)


def test_inputs_are_written():
    def f(x, total):
        total.add_(x.sum())
        return x + total

    x, total, wanted = torch.ones(3), torch.zeros(()), torch.zeros(())
    close(mt.compile(f)(x, total), f(x, wanted))
    close(total, wanted)


def test_a_compiled_module_acts_as_the_module(mlp):
    compiled = mt.compile(mlp).eval().requires_grad_(True)
    assert compiled is not mlp and not mlp.training
    compiled.up.weight = torch.nn.Parameter(torch.zeros(16, 8))
    compiled.scale = 2
    assert mlp.scale == 2
    x = torch.randn(3, 8)
    close(compiled(x), mlp(x))
    other = copy.deepcopy(compiled)
    with torch.no_grad():
        other.down.bias.add_(1)
    close(other(x), mlp(x) + 1)
    close(pickle.loads(pickle.dumps(compiled))(x), mlp(x))
    step = mt.train_step(compiled, torch.nn.functional.mse_loss, torch.optim.SGD(compiled.parameters(), 0.1))
    wanted = mlp(x).square().mean().item()
    close(step(x, torch.zeros(3, 4)).item(), wanted)


def test_a_decision_by_elements_is_an_error():
    def f(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(ValueError, match=r"test_compile\.py:\d+: .* on the elements of a tensor: use torch.where"):
        mt.compile(f)(torch.ones(3))


def test_second_derivatives_are_right_or_an_error():
    def squared_slope(x):
        return torch.autograd.grad(x.exp().sin().sum(), x, create_graph=True)[0].square().sum()

    x, wanted = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    mt.compile(squared_slope)(x).backward()
    squared_slope(wanted).backward()
    close(x.grad, wanted.grad)
    for f in (lambda x: (x ** 3).sum(), lambda x: x.exp().sin().sum()):
        with pytest.raises((NotImplementedError, RuntimeError), match="create_graph|double backward"):
            slope, = torch.autograd.grad(mt.compile(f)(x), x, create_graph=True)
            slope.sum().backward()


def test_a_write_between_forward_and_backward_is_an_error():
    w = torch.ones(3, requires_grad=True)
    loss = mt.compile(lambda w: (w * w).sum())(w)
    with torch.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_missing_lowering_names_the_overload_and_the_line():
    with torch.library._scoped_library("meshard_test", "DEF") as library:
        library.define("unknown(Tensor x) -> Tensor")
        library.impl("unknown", lambda x: x.clone(), "CompositeExplicitAutograd")
        library.impl("unknown", lambda x: torch.empty_like(x), "Meta")

        def f(x):
            return torch.ops.meshard_test.unknown(x)

        place = r"test_compile\.py:\d+: \[torch\] meshard_test\.unknown\.default"
        with pytest.raises(NotImplementedError, match=place):
            mt.compile(f)(torch.ones(3))


def test_an_unknown_result_is_an_error():
    with pytest.raises(TypeError, match="list_iterator, whose tensors are not known"):
        mt.compile(lambda x: iter([x]))(torch.ones(3))


def test_random_numbers_follow_manual_seed():
    dropout = mt.compile(lambda x: torch.nn.functional.dropout(x, 0.5))
    x = torch.ones(4096)
    torch.manual_seed(3)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(3)
    assert torch.equal(first, dropout(x)) and not torch.equal(first, second)
    assert abs((first == 0).float().mean().item() - 0.5) < 0.05 and set(first.unique().tolist()) == {0.0, 2.0}


def test_backend_of_torch_compile(mlp, mesh):
    by_rows = P("data", None)

    def f(x):
        return mt.mark_sharding(mlp(x), mesh, by_rows) * 2

    compiled, x = torch.compile(f, backend="meshard", fullgraph=True), torch.randn(4, 8)
    close(compiled(x), mlp(x) * 2)


def test_graph_breaks_work(mlp):
    def f(x):
        y = mlp(x)
        print("between", end="")  # PyTorch's compiler stops here
        return torch.tanh(y)

    x = torch.randn(4, 8)
    close(torch.compile(f, backend="meshard")(x), torch.tanh(mlp(x)))


def test_other_sizes_by_torch_compile(mlp):
    def f(x):
        return mlp(x) + torch.arange(x.shape[0]).unsqueeze(1)

    compiled = torch.compile(f, backend="meshard", dynamic=True)
    for rows in (2, 3, 5):
        x = torch.randn(rows, 8)
        close(compiled(x), f(x))


def test_methods_of_a_module_call_its_programs():
    class Steps(torch.nn.Linear):
        def repeat(self, x, count):
            for _ in range(count):
                x = self(x)
            return x

    torch.manual_seed(0)
    module, x = Steps(4, 4), torch.randn(2, 4)
    compiled = mt.compile(module)
    close(compiled.repeat(x, 3), module.repeat(x, 3))
    assert len(compiled._forward._programs) == 2  # x has no gradient, what the first call makes of it has one
    assert "forward" not in vars(module) and compiled.out_features == 4


def test_autocast(mlp):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, wanted = mt.compile(mlp)(torch.ones(2, 8)), mlp(torch.ones(2, 8))
    assert y.dtype == wanted.dtype == torch.bfloat16
    torch.testing.assert_close(y, wanted, rtol=0.02, atol=0.02)


def test_results_share_memory_with_the_device():
    x = torch.arange(8.0)
    y = mt.compile(lambda t: t + 1)(x)
    assert type(y) is torch.Tensor
    y[0] = 5  # one's own memory: another call is not changed
    close(mt.compile(lambda t: t + 1)(x), x + 1)
    assert ms is not None


def test_operands_with_other_strides():
    x, y = torch.randn(3, 4).t(), torch.randn(4, 3)
    close(mt.compile(torch.lerp)(x, y, 0.3), torch.lerp(x, y, 0.3))


@pytest.mark.parametrize("layer", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_recurrent_layers(layer):
    torch.manual_seed(0)
    module, x = layer(4, 6, 2, batch_first=True, bidirectional=True), torch.randn(3, 5, 4)
    y, wanted = mt.compile(module)(x)[0], module(x)[0]
    close(y, wanted)
    gradients = [torch.autograd.grad(each.square().sum(), tuple(module.parameters())) for each in (y, wanted)]
    for got, want in zip(*gradients, strict=True):
        close(got, want)


def test_weight_norm():
    torch.manual_seed(0)
    module, x = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(4, 6)), torch.randn(3, 4)
    y, wanted = mt.compile(module)(x), module(x)
    close(y, wanted)
    gradients = [torch.autograd.grad(each.square().sum(), tuple(module.parameters())) for each in (y, wanted)]
    for got, want in zip(*gradients, strict=True):
        close(got, want)


@pytest.mark.parametrize("compiled", [mt.compile, lambda m: torch.compile(m, backend="meshard")])
def test_writes_through_data_are_seen(compiled):
    torch._dynamo.reset()
    module, x = torch.nn.Linear(2, 2), torch.ones(1, 2)
    run = compiled(module)
    run(x)
    kept = module.weight.data
    for write in (lambda: module.weight.data.fill_(3.0), lambda: kept.view(-1)[1:].add_(1), lambda: kept.mul_(2),
                  lambda: setattr(module.weight, "data", torch.full((2, 2), 9.0)), lambda: module.weight.data.neg_()):
        write()
        close(run(x), module(x))


def test_lazy_modules_get_their_parameters():
    module = torch.nn.LazyLinear(3)
    module(torch.ones(2, 4))
    assert module.weight.shape == (3, 4)


def test_quantized_tensors_are_errors():
    with pytest.raises(TypeError, match="quantized tensors are not supported: use dequantize"):
        mt.compile(torch.relu)(torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8))


def test_nested_tensors_are_errors():
    with pytest.raises(TypeError, match="nested tensors are not supported"):
        mt.compile(lambda x: x + 1)(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))


def test_sparse_tensors_are_errors():
    with pytest.raises(TypeError, match="layout torch.sparse_coo"):
        mt.compile(lambda x: x + 1)(torch.eye(3).to_sparse())


def test_a_changed_module_is_another_program(mlp):
    compiled, x = mt.compile(mlp), torch.randn(3, 8)
    close(compiled(x), mlp(x))
    mlp.up.weight = torch.nn.Parameter(torch.randn(16, 8))
    close(compiled(x), mlp(x))
    hook = mlp.up.register_forward_hook(lambda module, args, output: output * 2)
    close(compiled(x), mlp(x))
    hook.remove()
    close(compiled(x), mlp(x))
    mlp.up.weight.data = torch.randn(16, 8)
    close(compiled(x), mlp(x))
    mlp.up = torch.nn.Linear(8, 16, bias=False)
    mlp.down.weight.requires_grad_(False)
    y = compiled(x)
    y.sum().backward()
    assert mlp.down.weight.grad is None and mlp.up.weight.grad is not None
    close(y, mlp(x))


def test_attributes_are_part_of_a_program():
    class Counting(torch.nn.Module):
        calls, scale = 0, 2.0

        def forward(self, x):
            self.calls = self.calls + 1
            return x * self.scale

    module, x = Counting(), torch.ones(3)
    compiled = mt.compile(module)
    for _ in range(3):
        close(compiled(x), x * 2)
    assert module.calls == 2  # PyTorch runs a function twice to capture it
    module.scale = 5.0
    close(compiled(x), x * 5)


def test_tensors_of_closures_are_inputs(mlp):
    plain, x = copy.deepcopy(mlp), torch.randn(3, 8)
    total, drop = torch.zeros(()), torch.nn.Dropout(0.5).eval()

    def scaled(x):
        total.add_(1)
        return drop(mlp(x)) * total

    compiled = mt.compile(scaled)
    for count in (1, 2):
        y, wanted = compiled(x), plain(x) * count
        close(y, wanted)
        y.sum().backward()
        wanted.sum().backward()
        assert total == count
    close(mlp.up.weight.grad, plain.up.weight.grad)
    with torch.no_grad():
        mlp.down.bias.fill_(7.0)
    close(compiled(x), mlp(x) * 3)
    drop.train()
    assert (compiled(x) == 0).any()


def test_assigned_buffers_change():
    class Average(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x):
            self.mean = 0.9 * self.mean + x.mean(0)
            return x - self.mean

    module, plain = Average(), Average()
    compiled = mt.compile(module)
    for _ in range(3):
        x = torch.randn(3, 4)
        close(compiled(x), plain(x))
        close(module.mean, plain.mean)


def test_a_value_kept_as_an_attribute_is_an_error():
    class Keeping(torch.nn.Module):
        def forward(self, x):
            self.kept = x * 2
            return self.kept

    with pytest.raises(TypeError, match="Keeping keeps a value of the program as its attribute kept"):
        mt.compile(Keeping())(torch.ones(3))


@pytest.mark.parametrize("decides", [False, True])
def test_capturing_leaves_attributes_as_they_were(decides):
    class Keeping(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.sizes, self.table, self.last = [torch.ones(3)], {"a": torch.ones(3)}, None

        def forward(self, x):
            self.sizes = [each * 2 for each in self.sizes]
            self.table["a"], self.last = x * 2, x
            return x if decides and x.sum() > 0 else x * self.sizes[0] + self.table["a"]

    model, x = torch.nn.Sequential(Keeping()), torch.ones(3)
    kept = dict(model[0].__dict__)
    with pytest.raises(ValueError if decides else TypeError, match="depends on the elements" if decides else "sizes"):
        mt.compile(model)(x)
    assert model[0].sizes is kept["sizes"] and model[0].table is kept["table"] and model[0].last is None
    assert type(model[0].sizes[0]) is type(model[0].table["a"]) is torch.Tensor
    close(model(x), x if decides else 4 * x)


def test_arguments_are_not_kept(mlp):
    compiled, x = mt.compile(mlp), torch.randn(3, 8, requires_grad=True)
    compiled(x).sum().backward()
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("dynamic", [True, None])
def test_each_size_is_a_program_of_torch_compile(dynamic, mlp):
    torch._dynamo.reset()

    def f(x):
        return mlp(x).reshape(-1).view(4, -1) * x.shape[0]

    compiled = torch.compile(f, backend="meshard", dynamic=dynamic)
    for size in (2, 3, 5):
        x = torch.randn(size, 8)
        y, wanted = compiled(x), f(x)
        close(y, wanted)
        gradients = [torch.autograd.grad(each.square().sum(), mlp.up.weight)[0] for each in (y, wanted)]
        close(*gradients)


def test_torch_compile_of_parameters_on_the_devices(mlp):
    torch._dynamo.reset()
    step = mt.train_step(mlp, torch.nn.functional.mse_loss, torch.optim.SGD(mlp.parameters(), lr=0.1))
    compiled, x = torch.compile(mlp, backend="meshard"), torch.randn(3, 8)
    for _ in range(2):
        close(compiled(x), mlp(x))
        close(mt.compile(mlp)(x), mlp(x))
        step(x, torch.zeros(3, 4))


def test_exported_programs(mlp, mesh, tmp_path):
    module = torch.nn.Sequential(mlp, torch.nn.BatchNorm1d(4))
    mt.shard(module, mesh, {"0.up.weight": P("model", None)})
    x = torch.randn(6, 8)
    torch.export.save(torch.export.export(module, (x,)), tmp_path / "module.pt2")
    wanted = copy.deepcopy(module)(x).square().sum()
    for program in (torch.export.export(module, (x,)), torch.export.load(tmp_path / "module.pt2")):
        own = program.module()
        mean = own.get_buffer("1.running_mean")
        before = mean.clone()
        loss = mt.compile(program)(x).square().sum()
        close(loss, wanted)
        loss.backward()
        weight = own.get_parameter("0.up.weight")
        close(weight.grad, torch.autograd.grad(torch.func.functional_call(
            copy.deepcopy(module), {"0.up.weight": weight}, x).square().sum(), weight)[0])
        assert not torch.equal(mean, before)
        weight.grad = None


def test_an_exported_program_has_the_sizes_it_was_exported_for(mlp):
    program = torch.export.export(mlp, (torch.randn(6, 8),))
    with pytest.raises(Exception, match="6"):
        mt.compile(program)(torch.randn(5, 8))


def test_conversions_of_exported_programs():
    class Converting(torch.nn.Module):
        def forward(self, x, mask):
            return x.to(torch.float64) * mask.to(x.dtype)

    module, args = Converting(), (torch.randn(3), torch.tensor([1, 0, 2]))
    close(mt.compile(torch.export.export(module, args))(*args), module(*args))
