"""Pipelines of modules: losses, gradients and parameters of the undivided model in plain PyTorch."""

import copy

import pytest

torch = pytest.importorskip("torch")

import meshard as ms  # noqa: E402
import meshard.torch as mt  # noqa: E402
from meshard import P, optim  # noqa: E402
from meshard.pipeline import one_forward_one_backward, zero_bubble  # noqa: E402


class Embedded(torch.nn.Module):
    """Returns two tensors, of which the next stage gets both."""

    def __init__(self):
        super().__init__()
        self.table, self.mix = torch.nn.Embedding(12, 16), torch.nn.Linear(16, 16)

    def forward(self, ids):
        x = torch.relu(self.mix(self.table(ids)))
        return x, ids != 0


class Head(torch.nn.Module):
    """Uses the table of the first stage again."""

    def __init__(self, table):
        super().__init__()
        self.norm, self.table = torch.nn.LayerNorm(16), table
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x, mask):
        return (self.norm(x) * self.scale * mask[..., None]) @ self.table.weight.T


def loss_of(logits, targets):
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


@pytest.fixture
def meshes():
    mesh = ms.Mesh({"stage": 2, "x": 4})
    return [mesh.submesh("x", 0), mesh.submesh("x", 4)]


@pytest.fixture
def stages(meshes):
    torch.manual_seed(0)
    first = Embedded()
    mt.shard(first, meshes[0], {"mix.*": P("x")})
    return [first, Head(first.table)]


def plain_loss(stages, ids, targets):
    return loss_of(stages[1](*stages[0](ids)), targets)


@pytest.mark.parametrize("schedule", [one_forward_one_backward(2, 2), zero_bubble(2, 2)])
def test_equals_the_undivided_model(stages, meshes, schedule):
    plain = copy.deepcopy(stages)
    ids, targets = torch.randint(0, 12, (8, 5)), torch.randint(0, 12, (8, 5))
    mt.mark_sharding(ids, meshes[0], P("x"))
    pipeline = mt.Pipeline(stages, meshes, schedule, loss_of, optimizer=optim.Sgd(rate=0.5))

    def parameters(modules):
        return list(torch.nn.ModuleList(modules).parameters())  # the tied one is there once

    assert float(pipeline.backward(ids, targets)) == pytest.approx(plain_loss(plain, ids, targets).item(), rel=1e-5)
    plain_loss(plain, ids, targets).backward()
    for got, wanted in zip(parameters(stages), parameters(plain), strict=True):
        torch.testing.assert_close(got.grad + 0, wanted.grad, rtol=1e-5, atol=1e-6)
    optimizer = torch.optim.SGD(parameters(plain), 0.5)
    for _ in range(3):
        loss = plain_loss(plain, ids, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert float(pipeline.step(ids, targets)) == pytest.approx(loss.item(), rel=1e-5)
    for got, wanted in zip(parameters(stages), parameters(plain), strict=True):
        torch.testing.assert_close(got.detach() + 0, wanted.detach(), rtol=1e-5, atol=1e-6)
    assert stages[0].mix.weight.value.sharding.spec == P("x", None)
    with torch.no_grad():
        stages[0].mix.bias.zero_()
    with pytest.raises(ValueError, match="mix.bias of stage 0 was changed"):
        pipeline.step(ids, targets)


def test_explained_for_absent_hardware():
    with torch.device("meta"):
        modules = [torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.Tanh()) for _ in range(2)]
        x, y = torch.empty(64, 512), torch.empty(64, 512)
    mesh = ms.Mesh({"stage": 2, "x": 4})
    pipeline = mt.Pipeline(modules, [mesh.submesh("x", 0), mesh.submesh("x", 4)], one_forward_one_backward(2, 4),
                           torch.nn.functional.mse_loss, optimizer=optim.Adam())
    report = pipeline.explain(x, y, topology="cpu:8")
    assert [stage.memory.parameters for stage in report.stages] == [(512 + 1) * 512 * 4] * 2
    assert report.stages[0].memory.kept_microbatches == 2


def test_what_a_pipeline_refuses(stages, meshes):
    schedule, loss = one_forward_one_backward(2, 2), torch.nn.functional.mse_loss
    with pytest.raises(ValueError, match="1 modules, 2 meshes and a schedule of 2 stages"):
        mt.Pipeline(stages[:1], meshes, schedule, loss)
    pipeline = mt.Pipeline(stages, meshes, schedule, loss_of)
    with pytest.raises(ValueError, match=r"sizes \[3\] in dimension 0 cannot be cut into 2"):
        pipeline.backward(torch.zeros(3, 5, dtype=torch.long), torch.zeros(3, 5, dtype=torch.long))
    normed = [torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)), torch.nn.Linear(4, 4)]
    with pytest.raises(NotImplementedError, match="writes to 1.running_mean"):
        mt.Pipeline(normed, meshes, schedule, loss).backward(torch.ones(4, 4), torch.ones(4, 4))
    normed[1].bias.requires_grad_(False)
    with pytest.raises(NotImplementedError, match="bias of stage 1 needs no gradient"):
        mt.Pipeline(normed, meshes, schedule, loss)


def test_dropout_follows_manual_seed(meshes):
    modules = [torch.nn.Dropout(0.5), torch.nn.Linear(64, 64)]
    torch.nn.init.eye_(modules[1].weight)
    torch.nn.init.zeros_(modules[1].bias)
    pipeline = mt.Pipeline(modules, meshes, one_forward_one_backward(2, 2), lambda output: output.mean())
    torch.manual_seed(0)
    first, second = (float(pipeline.backward(torch.ones(8, 64))) for _ in range(2))
    torch.manual_seed(0)
    assert float(pipeline.backward(torch.ones(8, 64))) == first != second
    assert abs(first - 1) < 0.25
