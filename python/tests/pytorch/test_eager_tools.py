"""What PyTorch's tools do with tensors on the device "meshard"."""

import copy
import io
import subprocess
import sys
import unittest

import pytest

torch = pytest.importorskip("torch")

import meshard as ms  # noqa: E402
import meshard.torch as mt  # noqa: E402
from meshard import P  # noqa: E402

DEVICE = mt.device()


def fail(*_):
    raise ValueError("of a hook")


@pytest.mark.parametrize("place", ("tensor", "node", "node before", "gradient"))
def test_an_exception_in_a_backward_pass_is_raised(place):
    x = torch.ones(2).to(DEVICE).requires_grad_()
    y = x * 2
    {"tensor": y.register_hook, "node": y.grad_fn.register_hook, "node before": y.grad_fn.register_prehook,
     "gradient": x.register_post_accumulate_grad_hook}[place](fail)
    with pytest.raises(ValueError, match="of a hook"):
        y.sum().backward()
    z = torch.ones(2).to(DEVICE).requires_grad_()
    (z * 3).sum().backward()
    assert z.grad.tolist() == [3, 3]


def test_a_backward_pass_may_come_before_the_device():
    program = ("import torch; torch.ones(1).requires_grad_().sum().backward(); import meshard.torch as mt; "
               "x = torch.ones(1).to(mt.device()).requires_grad_(); (3 * x).sum().backward(); print(x.grad.item())")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "3.0\n", done.stderr


def test_hooks_of_modules_see_what_they_see_on_the_cpu():
    def seen(device):
        torch.manual_seed(0)
        module, found = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)).to(device), []
        module[0].register_full_backward_hook(lambda _, given, made: found.extend([*given, *made]))
        module[1].register_full_backward_pre_hook(lambda _, made: (made[0] * 2,))
        module[0].weight.register_hook(lambda gradient: gradient + 1)
        x = torch.ones(3, 2).to(device).requires_grad_()
        module(x).sum().backward()
        return [each.cpu() for each in (*found, x.grad, module[0].weight.grad)]

    for x, y in zip(seen(DEVICE), seen("cpu"), strict=True):
        torch.testing.assert_close(x, y)


def test_functions_of_functions():
    x = torch.arange(3.0).to(DEVICE)
    assert torch.func.grad(lambda x: (x ** 3).sum())(x).tolist() == [0, 3, 12]
    assert torch.func.vmap(lambda row: row * row.sum())(x.expand(2, 3)).tolist() == [[0, 3, 6]] * 2
    assert torch.func.jacrev(lambda x: x ** 2)(x).tolist() == torch.diag(torch.tensor([0.0, 2, 4])).tolist()
    assert torch.func.jvp(lambda x: (x ** 2).sum(), (x,), (x,))[1].item() == 10


@pytest.mark.parametrize("how", (mt.compile, lambda module: torch.compile(module, backend="meshard",
                                                                                    fullgraph=True)),
                         ids=("mt.compile", "torch.compile"))
def test_compiled_modules_stay_on_the_device(how):
    module = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.BatchNorm1d(2)).to(DEVICE)
    plain = copy.deepcopy(module).cpu()
    x = torch.randn(6, 4)
    y = how(module)(x.to(DEVICE))
    y.square().sum().backward()
    plain(x).square().sum().backward()
    assert y.device == module[0].weight.grad.device == module[1].running_mean.device == torch.device("meshard:0")
    torch.testing.assert_close(module[0].weight.grad.cpu(), plain[0].weight.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(module[1].running_mean.cpu(), plain[1].running_mean)


def test_torch_compile_takes_tensors_of_the_device():
    def written(x, y):
        x.t()[1:].add_(y)
        return x.sum(0), torch.where(x > 3, x, y[0, 0])

    (x, y), (a, b) = ([each.to(device) for each in (torch.arange(6.0).reshape(3, 2), torch.ones(1, 3))]
                      for device in ("cpu", DEVICE))
    x, a = x[1:], a[1:]
    expected = written(x, y[:, 1:])
    made = torch.compile(written, backend="meshard", fullgraph=True)(a, b[:, 1:])
    assert not any(each.value.is_recorded for each in made)
    for each, other in zip((*expected, x), (*made, a), strict=True):
        torch.testing.assert_close(other.cpu(), each)


def test_torch_compile_runs_where_tensors_are():
    mesh, w = ms.Mesh({"a": 2}, device_ids=[3, 5]), torch.nn.Parameter(torch.ones(4, 2).to(DEVICE))
    mt.mark_sharding(w, mesh, P("a", None))
    made = torch.compile(lambda x: x @ w, backend=mt.backend, fullgraph=True)(torch.ones(3, 4).to(DEVICE))
    assert made.value.stored_sharding.mesh == mesh and made.tolist() == [[4, 4]] * 3
    made.sum().backward()
    assert w.grad.sharding == w.sharding and w.grad.tolist() == [[3, 3]] * 4


def test_a_training_step_of_a_module_on_the_device():
    module = torch.nn.Linear(4, 2).to(DEVICE)
    plain = copy.deepcopy(module).cpu()
    x = torch.randn(3, 4)
    step = mt.train_step(module, lambda y: y.square().sum(), torch.optim.SGD(module.parameters(), lr=0.01))
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.01)
    for _ in range(2):
        loss = plain(x).square().sum()
        optimizer.zero_grad(), loss.backward(), optimizer.step()
        assert float(step(x.to(DEVICE))) == pytest.approx(loss.item(), rel=1e-4)
    assert module.weight.device.type == "meshard"
    torch.testing.assert_close(module.weight.cpu(), plain.weight, rtol=1e-4, atol=1e-5)


def test_files_are_loaded_where_map_location_says(tmp_path):
    x = torch.nn.Parameter(torch.arange(3.0).to(DEVICE))
    torch.save({"x": x, "y": x.detach()[1:]}, tmp_path / "file")
    program = f"import torch; print(torch.load({str(tmp_path / 'file')!r}, map_location='cpu'))"
    text = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "Parameter containing:\ntensor([0., 1., 2.], requires_grad=True)" in text and "meshard" not in text
    loaded = torch.load(tmp_path / "file")
    assert loaded["x"].device.type == loaded["y"].device.type == "meshard" and loaded["y"].tolist() == [1, 2]


@pytest.mark.parametrize("place", ("meshard", DEVICE, {"cpu": "meshard:0"}), ids=str)
def test_files_of_the_cpu_are_loaded_on_the_device(place):
    layer, file = torch.nn.Linear(2, 3), io.BytesIO()
    torch.save({**layer.state_dict(), "view": layer.weight.detach().t()[:, 1:]}, file)
    file.seek(0)
    loaded = torch.load(file, map_location=place)
    assert {each.device.type for each in loaded.values()} == {"meshard"}
    assert torch.equal(loaded["weight"].cpu(), layer.weight)
    assert torch.equal(loaded["view"].cpu(), layer.weight.t()[:, 1:])


def test_copies():
    x = torch.arange(6.0).reshape(2, 3).to(DEVICE).t().requires_grad_()
    x.grad = torch.ones(3, 2).to(DEVICE)
    deep, shallow = copy.deepcopy(x), copy.copy(x)
    assert deep.stride() == (1, 3) and deep.grad.tolist() == x.grad.tolist() and deep.requires_grad
    with torch.no_grad():
        x.fill_(7)
    assert deep.tolist()[0] == [0, 3] and shallow.tolist()[0] == [7, 7]


TEXTS = (torch.tensor(3.5), torch.tensor(True), torch.empty(0), torch.empty(2, 0, dtype=torch.int64),
         torch.tensor([True, False]), torch.tensor([1 + 2j]), torch.arange(2000),
         torch.zeros(2, 2, dtype=torch.bfloat16), torch.tensor([float("nan"), 1e10]))


@pytest.mark.parametrize("tensor", TEXTS, ids=str)
def test_text(tensor):
    assert repr(tensor.to(DEVICE)).replace(", device='meshard:0'", "") == repr(tensor)


def test_formats():
    assert f"{torch.tensor(3.14159).to(DEVICE):.2f}" == "3.14" and f"{torch.tensor(2).to(DEVICE)}" == "2"


def test_contexts_of_devices():
    with torch.device("meshard"):
        made = [torch.zeros(3), torch.tensor([1]), torch.randn(2), torch.arange(3), torch.nn.Linear(2, 2).weight]
    torch.set_default_device("meshard")
    try:
        made.append(torch.ones(2))
    finally:
        torch.set_default_device(None)
    assert {each.device.type for each in made} == {"meshard"} and torch.ones(2).device.type == "cpu"


def test_generators():
    generator = torch.Generator("meshard").manual_seed(3)
    first, second = (torch.randn(4, generator=generator, device=DEVICE) for _ in range(2))
    generator.manual_seed(3)
    assert torch.equal(first, torch.randn(4, generator=generator, device=DEVICE)) and not torch.equal(first, second)
    assert isinstance(generator, torch.Generator) and isinstance(torch.default_generator, torch.Generator)


def test_pinned_memory_is_a_copy():
    x = torch.arange(3.0)
    x.pin_memory()[0] = 5
    assert x.tolist() == [0, 1, 2]
    data = torch.utils.data.TensorDataset(torch.arange(10.0))
    assert len([x.to(DEVICE, non_blocking=True) for x, in torch.utils.data.DataLoader(data, 4, pin_memory=True)]) == 3


def test_modules_move():
    mesh = ms.Mesh({"data": 2, "model": 4})
    layer = torch.nn.Linear(4, 4).to(DEVICE)
    mt.mark_sharding(layer.weight, mesh, P("model", None))
    weight = layer.weight
    layer.half()
    assert layer.weight is weight and weight.dtype == torch.float16
    assert mt.sharding_of(weight) == ms.Sharding(mesh, P("model", None), 2)
    layer.float().cpu()
    assert type(layer.weight) is torch.nn.Parameter and layer.weight.device.type == "cpu"


def test_shared_parameters_stay_shared():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = torch.nn.Embedding(4, 3), torch.nn.Linear(3, 4, bias=False)
            self.head.weight = self.table.weight

    module = Tied().to(DEVICE)
    assert module.head.weight is module.table.weight and len(list(module.parameters())) == 1
    assert copy.deepcopy(module).head.weight.device.type == "meshard"
    module.cpu()
    assert module.head.weight is module.table.weight and module.head.weight.device.type == "cpu"


def test_vectors_of_parameters():
    layer = torch.nn.Linear(3, 2).to(DEVICE)
    vector = torch.nn.utils.parameters_to_vector(layer.parameters())
    torch.nn.utils.vector_to_parameters(vector * 2, layer.parameters())
    assert torch.equal(torch.nn.utils.parameters_to_vector(layer.parameters()), vector * 2)


@pytest.mark.parametrize("name, options", (("SGD", {"momentum": 0.9, "foreach": True}), ("Adam", {"foreach": True}),
                                           ("AdamW", {"fused": True}), ("Adagrad", {})))
def test_optimizers(name, options):
    def trained(device):
        torch.manual_seed(0)
        layer = torch.nn.Linear(4, 3).to(device)
        optimizer = getattr(torch.optim, name)(layer.parameters(), lr=0.05, **options)
        x = torch.linspace(-1, 1, 8).reshape(2, 4).to(device)

        def loss():
            optimizer.zero_grad()
            made = layer(x).square().sum()
            made.backward()
            torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
            return made

        for _ in range(2):
            optimizer.step(loss)
        return layer.weight.detach().cpu()

    torch.testing.assert_close(trained(DEVICE), trained("cpu"), rtol=1e-4, atol=1e-4)


def test_pytorchs_own_device_tests(monkeypatch):
    pytest.importorskip("expecttest")
    from torch.testing._internal import common_device_type, common_utils

    class TestSmall(common_utils.TestCase):
        @common_device_type.dtypes(torch.float32, torch.int64)
        def test_add(self, device, dtype):
            x = common_utils.torch.testing.make_tensor((3, 4), device=device, dtype=dtype)
            self.assertEqual(x.device.type, "meshard")
            self.assertEqual(x + x, 2 * x)
            self.assertEqual((x + x).cpu(), 2 * x.cpu())

    # PyTorch lists the devices when it imports this module, which may be before the device was registered.
    monkeypatch.setattr(common_device_type, "device_type_test_bases", common_device_type.get_device_type_test_bases())
    made = {"TestSmall": TestSmall}
    common_device_type.instantiate_device_type_tests(TestSmall, made, only_for="privateuse1")
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(each) for each in made.values())
    result = suite.run(unittest.TestResult())
    assert result.testsRun == 2 and not result.failures and not result.errors, (result.failures, result.errors)


@pytest.mark.parametrize("make", (lambda: torch.nn.LSTM(3, 4, 2, batch_first=True), lambda: torch.nn.GRU(3, 4),
                                  lambda: torch.nn.GRU(3, 4, bias=False), lambda: torch.nn.LSTM(3, 4, bias=False),
                                  lambda: torch.nn.TransformerEncoderLayer(3, 1, 4, dropout=0.0, batch_first=True)),
                         ids=("LSTM", "GRU", "GRU without bias", "LSTM without bias", "transformer"))
@pytest.mark.parametrize("train", (True, False), ids=("training", "inference"))
def test_layers_that_pytorch_computes_otherwise_on_the_cpu(make, train):
    torch.manual_seed(0)
    plain = make().train(train)
    module, x = copy.deepcopy(plain).to(DEVICE), torch.randn(2, 5, 3)
    with torch.set_grad_enabled(train):
        ours, theirs = (each[0] if isinstance(each, tuple) else each for each in (module(x.to(DEVICE)), plain(x)))
    torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-4, atol=1e-5)
    if train:
        ours.square().sum().backward(), theirs.square().sum().backward()
        for (name, x), y in zip(module.named_parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(x.grad.cpu(), y.grad, rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.parametrize("draw", (lambda g: torch.randint(9, (20,), generator=g, device=DEVICE),
                                  lambda g: torch.randint(2, 9, (20,), generator=g, device=DEVICE),
                                  lambda g: torch.randperm(20, generator=g, device=DEVICE)), ids=range(3))
def test_integers_of_a_generator(draw):
    first, second, again = draw(g := torch.Generator(DEVICE).manual_seed(1)), draw(g), draw(g.manual_seed(1))
    assert torch.equal(first, again) and not torch.equal(first, second)


@pytest.mark.parametrize("reduction", ("none", "mean", "sum"))
@pytest.mark.parametrize("loss", (lambda x, r: torch.nn.functional.multi_margin_loss(
    x, torch.tensor([1, 0, 3], device=x.device), p=2, margin=0.5, reduction=r),
    lambda x, r: torch.nn.functional.multilabel_margin_loss(
        x, torch.tensor([[3, 0, -1, 1], [2, -1, 0, 1], [1, 1, 2, -1]], device=x.device), reduction=r),
    lambda x, r: torch.nn.functional.softshrink(x), lambda x, r: torch.nn.functional.hardshrink(x)),
    ids=("multi_margin", "multilabel_margin", "softshrink", "hardshrink"))
def test_gradients_that_only_eager_programs_ask_for(loss, reduction):
    x = torch.randn(3, 4)
    ours, theirs = x.to(DEVICE).requires_grad_(), x.clone().requires_grad_()
    for each in (ours, theirs):
        loss(each, reduction).square().sum().backward()
    torch.testing.assert_close(ours.grad.cpu(), theirs.grad)
