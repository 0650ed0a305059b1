"""Batch normalization beside PyTorch: values, gradients and averages."""

import copy
import re

import pytest

torch = pytest.importorskip("torch")

import meshard as ms  # noqa: E402
import meshard.torch as mt  # noqa: E402
from meshard import P  # noqa: E402

NORMS = {2: torch.nn.BatchNorm1d, 3: torch.nn.BatchNorm1d, 4: torch.nn.BatchNorm2d, 5: torch.nn.BatchNorm3d}


def made(rank, training, options):
    torch.manual_seed(0)
    norm = NORMS[rank](6, **options)
    for each in (*norm.parameters(), *norm.buffers()):
        if each.is_floating_point():
            torch.nn.init.uniform_(each, 0.5, 2.0)
    return norm.train(training), torch.randn(8, 6, 4, 3, 2)[(...,) + (0,) * (5 - rank)]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("rank, options", [
    (2, {}), (3, {"affine": False}), (4, {"momentum": 0.3, "eps": 0.1}), (4, {"track_running_stats": False}),
    (4, {"dtype": torch.float64}), (4, {"dtype": torch.bfloat16}), (5, {})])
def test_batch_norm(rank, options, training):
    norm, x = made(rank, training, options)
    x = x.to(options.get("dtype", torch.float32))
    weight = torch.linspace(-1, 1, x.numel()).reshape(x.shape).to(x.dtype)
    found = []
    for module, run in ((plain := copy.deepcopy(norm), plain), (norm, mt.compile(norm))):
        given = x.clone().requires_grad_()
        y = run(given)
        (y * weight).sum().backward()
        found.append([y.detach(), given.grad, *(each.grad for each in module.parameters()),
                      *(each + 0 for each in module.buffers())])
    tolerance = {torch.float64: 1e-12, torch.bfloat16: 2e-2}.get(x.dtype, 1e-5)
    for wanted, got in zip(*found, strict=True):
        assert got.dtype == wanted.dtype
        torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_on_a_mesh(training, mesh):
    norm, x = made(4, training, {})
    wanted = copy.deepcopy(norm)(x)
    mt.shard(norm, mesh, {"*": P()})
    got = mt.compile(norm)(mt.mark_sharding(x, mesh, P("data", None, "model")))
    torch.testing.assert_close(got.detach(), wanted.detach(), rtol=1e-5, atol=1e-5)


def test_batch_norm_of_mixed_types():
    norm, x = made(4, False, {})
    for module in (norm, copy.deepcopy(norm).train()):
        wanted = copy.deepcopy(module)(x.bfloat16())
        got = mt.compile(module)(x.bfloat16())
        assert got.dtype == wanted.dtype == torch.bfloat16
        torch.testing.assert_close(got.detach(), wanted.detach(), rtol=2e-2, atol=2e-2)


def test_a_product_and_a_sum_of_each_element():
    norm, x = made(4, False, {})
    found = re.findall(r"stablehlo\.(\w+) [^\n]*tensor<8x6x4x3xf32>", ms.module_text(norm, x))
    assert [each for each in found if each != "broadcast_in_dim"] == ["multiply", "add"]
