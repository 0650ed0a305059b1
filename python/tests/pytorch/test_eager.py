"""Eager programs on the device "meshard" beside PyTorch's CPU."""

import copy
import inspect
import io
import pickle
import re
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import meshard as ms  # noqa: E402
import meshard.torch as mt  # noqa: E402
from meshard import P  # noqa: E402

DEVICE = mt.device()


def both(function, *tensors):
    """The results of a function on the device, as CPU tensors, and on the CPU."""
    ours = function(*(each.clone().to(DEVICE) for each in tensors))
    theirs = function(*(each.clone() for each in tensors))
    return [each.cpu() for each in ours], list(theirs)


def assert_same(function, *tensors):
    for x, y in zip(*both(function, *tensors), strict=True):
        torch.testing.assert_close(x, y)


def test_moves_and_computes():
    x = torch.randn(4, 8).to(DEVICE)
    assert isinstance(x, mt.DeviceTensor) and x.device == torch.device(DEVICE.type, 0) and x.is_contiguous()
    assert_same(lambda a, b: [a @ b, torch.relu(a), a.sum(0)], torch.randn(4, 8), torch.randn(8, 8))


def test_writes_through_views_are_seen():
    def written(x):
        x[0] = 1
        x[:, 1] += 2
        x.t()[2] = 7
        x.view(-1)[5:8].mul_(3)
        x.diagonal().zero_()
        part = x[1:, ::2]
        part.add_(torch.ones_like(part), alpha=4)
        last = x.unsqueeze(0).select(2, 3)
        x.sub_(1)
        return [x, part, last, x.narrow(1, 0, 2)]

    assert_same(written, torch.arange(12.0).reshape(3, 4))


def test_views_are_read_after_the_whole_was_written():
    def read(x):
        rows, flat = x.unbind(0), x.view(-1)
        parts = x.split(2, 1)
        x.add_(1)
        parts[1].zero_()
        return [*rows, flat, *parts]

    assert_same(read, torch.arange(12.0).reshape(3, 4))


def test_operations_that_change_strides_in_place():
    def changed(x):
        y = x.view(3, 4)
        y.t_().unsqueeze_(0)
        y.mul_(2)
        return [x, y]

    assert_same(changed, torch.arange(12.0))
    x = torch.zeros(2, 3).to(DEVICE)
    assert x.t_() is x and x.shape == (3, 2) and x.stride() == (1, 3)


def test_a_write_to_an_expanded_tensor_is_pytorchs_error():
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.zeros(1, 3).to(DEVICE).expand(2, 3).add_(1)


def test_gradients_through_writes_and_views():
    def gradients(x, w):
        x.requires_grad_(), w.requires_grad_()
        y = x * 2
        y[0] = w[0]
        y.t()[1].mul_(w[:, 1])
        (y ** 2).sum().backward()
        return [x.grad, w.grad]

    assert_same(gradients, torch.randn(3, 3), torch.randn(3, 3))


def test_results_of_another_type_are_not_written():
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.arange(3).to(DEVICE).add_(0.5)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.zeros(3).to(DEVICE).add_(torch.zeros(2, 3).to(DEVICE))


def test_tensors_of_two_devices_are_an_error():
    with pytest.raises(RuntimeError, match="same device.*cpu"):
        torch.zeros(3).to(DEVICE) + torch.zeros(3)
    assert (torch.ones(3).to(DEVICE) + torch.tensor(2.0)).tolist() == [3, 3, 3]


def test_a_tensor_like_a_view_is_made_on_the_device_that_is_asked_for():
    x = torch.ones(2, 3).to(DEVICE).t()
    assert torch.zeros_like(x, device="cpu").device.type == "cpu"
    assert torch.zeros_like(x).device == x.device and torch.zeros_like(x).stride() == x.stride()


def test_factories_and_seeds():
    assert torch.arange(4, device=DEVICE).tolist() == [0, 1, 2, 3]
    assert torch.full((2,), 3.5, device=DEVICE).tolist() == [3.5, 3.5]
    assert torch.tensor([[1, 2]], device=DEVICE).tolist() == [[1, 2]]
    torch.manual_seed(3)
    first = torch.randn(100, device=DEVICE)
    other = torch.randn(100, device=DEVICE)
    torch.manual_seed(3)
    assert torch.equal(first.cpu(), torch.randn(100, device=DEVICE).cpu())
    assert not torch.equal(first.cpu(), other.cpu())


def test_sizes_that_depend_on_elements_come_from_the_host():
    x = torch.tensor([0.0, 2.0, 0.0, 3.0]).to(DEVICE)
    assert x.nonzero().tolist() == [[1], [3]] and x[x > 0].tolist() == [2, 3]
    assert x.nonzero().device == x.device


def test_modules_and_optimizers():
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(8, 16, bias=False), torch.nn.BatchNorm1d(16), torch.nn.ReLU(),
                                torch.nn.Linear(16, 4))
    moved = copy.deepcopy(plain).to(DEVICE)
    assert isinstance(moved[0].weight, torch.nn.Parameter) and isinstance(moved[0].weight, mt.DeviceTensor)
    x = torch.randn(16, 8)
    for module, given in ((plain, x), (moved, x.to(DEVICE))):
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
        for _ in range(3):
            optimizer.zero_grad()
            module(given).square().mean().backward()
            optimizer.step()
    for (name, x), y in zip(moved.state_dict().items(), plain.state_dict().values(), strict=True):
        torch.testing.assert_close(x.cpu(), y, msg=name, rtol=1e-4, atol=1e-5)


def test_marks_stay_and_gradients_have_them():
    mesh = ms.Mesh({"data": 2, "model": 4})
    layer = torch.nn.Linear(8, 16).to(DEVICE)
    mt.mark_sharding(layer.weight, mesh, P("model", None))
    wanted = ms.Sharding(mesh, P("model", None), 2)
    layer(torch.ones(4, 8).to(DEVICE)).sum().backward()
    assert mt.sharding_of(layer.weight.grad) == wanted
    with torch.no_grad():
        layer.weight.add_(1)
        layer.weight[0] = 0
        layer.weight.data.mul_(2)
    mt.sync()
    assert mt.sharding_of(layer.weight) == wanted and layer.weight.value.sharding == wanted


def test_marks_of_copies_and_aliases():
    mesh = ms.Mesh({"x": 8})
    wanted = ms.Sharding(mesh, P("x"), 2)
    for made in (torch.ones((), device=DEVICE).expand(8, 8).clone(), torch.ones(8, 8, device=DEVICE).t().clone()):
        mt.mark_sharding(made, mesh, P("x"))
        assert [mt.sharding_of(each) for each in (made.detach(), made.data)] == [wanted] * 2
        assert made.detach().value.sharding == wanted


def test_saved_and_copied():
    x = torch.nn.Parameter(torch.arange(3.0).to(DEVICE))
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    loaded = torch.load(file)["x"]
    assert loaded.device == x.device and isinstance(loaded, torch.nn.Parameter) and loaded.tolist() == [0, 1, 2]
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        with torch.no_grad():
            other.add_(1)
        assert other.tolist() == [1, 2, 3] and x.tolist() == [0, 1, 2]


def test_loads_where_asked():
    file = io.BytesIO()
    torch.save([torch.ones(2).to(DEVICE), torch.ones(2)], file)
    file.seek(0)
    assert [each.device.type for each in torch.load(file, map_location="cpu")] == ["cpu", "cpu"]
    file.seek(0)
    assert [each.device for each in torch.load(file, map_location=DEVICE.type)] == [torch.device(DEVICE.type, 0)] * 2


@pytest.mark.parametrize("make", [lambda to: torch.ones(2).to(to), lambda to: torch.ones(2, device=to),
                                  lambda to: torch.randn(2, device=to), lambda to: torch.ones(2).to(DEVICE).to(to)])
def test_there_is_one_device(make):
    with pytest.raises(RuntimeError, match=f"there is no device {DEVICE.type}:1"):
        make(f"{DEVICE.type}:1")


def test_in_place_with_defaults():
    # PyTorch leaves out arguments that are equal to their defaults; the functional twin may need them.
    drawn = torch.ones(1000, device=DEVICE).bernoulli_(0.5)
    assert set(drawn.tolist()) == {0, 1} and 300 < drawn.sum().item() < 700
    x = torch.ones(64, device=DEVICE, requires_grad=True)
    y = torch.nn.Dropout(0.5)(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad.cpu(), y.detach().cpu())


def test_autocast():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv1d(3, 4, 1), torch.nn.LayerNorm(5), torch.nn.Linear(5, 2))
    x = torch.randn(2, 3, 5)

    def run(model, x, device):
        with torch.autocast(device, dtype=torch.bfloat16):
            low = model(x)
            results = [low, low.softmax(-1), low @ low.mT, torch.nn.functional.mse_loss(low, low.float() * 2),
                       torch.cat([low, low.float()])]
        results[0].float().sum().backward()
        return [*results, model[2].weight.grad]

    ours = run(copy.deepcopy(model).to(DEVICE), x.to(DEVICE), DEVICE.type)
    # GPUs keep these in float32, as tables of PyTorch say; the CPU's rules are others.
    assert [each.dtype for each in ours] == [torch.bfloat16, torch.float32, torch.bfloat16, *[torch.float32] * 3]
    for ours_of, theirs in zip(ours, run(model, x, "cpu"), strict=True):
        torch.testing.assert_close(ours_of.detach().cpu().float(), theirs.detach().float(), rtol=0.03, atol=0.03)
    with torch.autocast(DEVICE.type, dtype=torch.bfloat16), pytest.raises(RuntimeError, match="unsafe to autocast"):
        torch.nn.functional.binary_cross_entropy(ours[1], ours[1])


def test_text():
    x = torch.arange(3.0).to(DEVICE)
    assert repr(x) == f"tensor([0., 1., 2.], device='{DEVICE.type}:0')"
    assert repr(x.requires_grad_()) == f"tensor([0., 1., 2.], device='{DEVICE.type}:0', requires_grad=True)"
    assert np.array_equal(x.detach().cpu().numpy(), [0, 1, 2])
    with pytest.raises(TypeError, match="cpu"):
        x.detach().numpy()


def test_resize_is_refused():
    with pytest.raises(NotImplementedError, match="resize_"):
        torch.zeros(3).to(DEVICE).resize_(6)


def test_errors_have_the_users_line():
    layer = torch.nn.Linear(3, 4).to(DEVICE)
    line = inspect.currentframe().f_lineno + 2
    with pytest.raises(ms.Error, match=rf"test_eager.py:{line}: "):
        layer(torch.zeros(2, 5).to(DEVICE))


def test_loops_compile_a_few_programs():
    x, w = torch.randn(8, 8).to(DEVICE), (torch.eye(8) * 0.5).to(DEVICE)
    mt.sync()
    before = ms.runtime_counters()
    for step in range(1000):
        x = torch.tanh(x @ w) * (1 + 0.001 * step)
        x[0] += 0.1
    mt.sync()
    assert (ms.runtime_counters() - before).compiles <= 6
    assert torch.isfinite(x.cpu()).all()


def test_integers_beside_floats_are_not_compiled():
    host = torch.randn(4, 4)
    x = host.to(DEVICE)
    counts = []
    for number in range(2, 8):
        before = ms.runtime_counters().compiles
        made = torch.where(x * number > 3 - x / number, torch.add(x, x, alpha=number), x ** 2)
        torch.testing.assert_close(made.cpu(), torch.where(host * number > 3 - host / number, host + host * number,
                                                           host ** 2))
        counts.append(ms.runtime_counters().compiles - before)
    assert sum(counts[1:]) == 0, counts


def test_elements_by_indices_keep_the_order_of_dimensions():
    x, i = torch.arange(64).reshape(2, 8, 4).permute(1, 2, 0), torch.tensor([1, 0])
    for index in ((i,), (slice(None), i), (i, slice(None), i), (slice(None), slice(None), i), (i[:, None], i), (3, i)):
        made = x.to(DEVICE)[tuple(each.to(DEVICE) if isinstance(each, torch.Tensor) else each for each in index)]
        assert made.tolist() == x[index].tolist(), index
        if DEVICE.type != "xla":  # whose tensors may have plain strides
            assert made.stride() == x[index].stride(), index


def test_conjugates_and_negatives_alias_as_on_the_cpu():
    functions = (lambda x: x.conj().as_strided((2,), (1,), 1), lambda x: x.conj().imag.as_strided((1,), (1,), 3),
                 lambda x: x.conj().imag.as_strided((2,), (2,), 1).resolve_neg(), lambda x: x.conj().imag.resolve_neg(),
                 lambda x: x.conj().real.resolve_conj(), lambda x: x.conj().imag.resolve_conj(),
                 lambda x: x.conj().conj().imag.resolve_neg(), lambda x: x.conj().real.resolve_neg(),
                 lambda x: torch._neg_view(x.conj().imag).resolve_neg(), lambda x: x.conj()[1:].imag.resolve_neg(),
                 lambda x: x.conj()[1:].resolve_conj(), lambda x: x.conj().imag[1:].resolve_neg())
    for i, function in enumerate(functions):
        seen = []
        for device in ("cpu", DEVICE):
            x = torch.tensor([1 + 2j, 3 - 4j, 5 + 6j, 7 - 8j]).to(device)
            made = function(x)
            before = made.cpu().resolve_conj().resolve_neg().clone()
            x.mul_(2)
            made.add_(1)
            seen.append([before.tolist(), made.cpu().tolist(), x.cpu().tolist()])
        assert seen[0] == seen[1], (i, seen)
    x = torch.tensor([1 + 2j, 3 - 4j, 5 + 6j, 7 - 8j])
    y = x.to(DEVICE)
    for each in (x, y):
        each.conj().as_strided((2, 1, 1), (2, 2, 2), 1).add_(1j)
    assert y.tolist() == x.tolist()


def test_errors_are_of_the_classes_that_pytorch_raises():
    x = torch.ones(2, 3).to(DEVICE)
    for call in (lambda: x + torch.ones(4).to(DEVICE), lambda: x @ x, lambda: torch.cat([x, x[0]]),
                 lambda: x.reshape(4), lambda: x.gather(0, torch.full((1, 4), 1).to(DEVICE)).cpu()):
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(ms.InvalidArgumentError) as caught:
        x + torch.ones(4).to(DEVICE)
    assert isinstance(caught.value, RuntimeError) and caught.value.filename.endswith("test_eager.py")
    for call in (lambda: x.sum(2), lambda: x[5], lambda: x.softmax(-3)):
        with pytest.raises(IndexError):
            call()


@pytest.mark.skipif(DEVICE.type == "xla", reason="torch_xla takes some of it")
def test_what_pytorch_refuses_is_an_error():
    pool, image = torch.nn.functional, torch.ones(1, 1, 4, 4)
    calls = (lambda to: pool.max_pool2d(to(image), 2, padding=2), lambda to: pool.avg_pool2d(to(image), 2, padding=-1),
             lambda to: pool.avg_pool2d(to(image), 2, divisor_override=0), lambda to: to(torch.arange(4)).mean(),
             lambda to: pool.embedding(to(torch.tensor([0])), to(torch.ones(2, 2, 2))),
             lambda to: to(torch.ones(3)).roll((1, 2), 0), lambda to: to(torch.ones(3)).tril(),
             lambda to: to(torch.ones(3)).kthvalue(4), lambda to: pool.max_pool2d(to(torch.ones(2, 1, 10, 0)), 2),
             lambda to: torch.cat([to(torch.ones(())), to(torch.ones(2))]), lambda to: to(torch.ones(2, 0)).amax(1),
             lambda to: to(torch.ones(0)).amin(), lambda to: torch.aminmax(to(torch.ones(2, 0)), dim=1),
             lambda to: to(torch.ones(3)).multinomial(4), lambda to: to(torch.arange(3)).multinomial(1),
             lambda to: to(torch.ones(1, 2, 3)).multinomial(1), lambda to: pool.gelu(to(image), approximate="tan"))
    for i, call in enumerate(calls):
        with pytest.raises((RuntimeError, IndexError)) as expected:
            call(lambda x: x)
        with pytest.raises(RuntimeError if issubclass(expected.type, RuntimeError) else expected.type):
            call(lambda x: x.to(DEVICE))
            pytest.fail(str(i))


def test_steps_that_are_read_compile_a_few_programs():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    x = torch.randn(16, 8).to(DEVICE)
    counts, losses = [], []
    for _ in range(8):
        before = ms.runtime_counters().compiles
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        counts.append(ms.runtime_counters().compiles - before)
    assert sum(counts) <= 2 and losses[-1] < losses[0]


def test_a_line_that_compiles_each_time_is_reported():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for size in range(2, 24):
            (torch.ones(size).to(DEVICE) + 1).cpu()
    found = [str(each.message) for each in caught if "lazy" in str(each.message)]
    assert len(found) == 1 and "test_eager.py" in found[0] and re.search(r"is f32\[\d+\], was f32", found[0])
