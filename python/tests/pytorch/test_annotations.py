"""Marks by patterns, placements and plans."""

import copy

import pytest

torch = pytest.importorskip("torch")

from torch.distributed.device_mesh import DeviceMesh  # noqa: E402
from torch.distributed.tensor import Replicate, Shard  # noqa: E402
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel,  # noqa: E402
                                               SequenceParallel)

import meshard as ms  # noqa: E402
import meshard.torch as mt  # noqa: E402
from meshard import P  # noqa: E402


def test_patterns(mlp, mesh):
    mt.shard(mlp, mesh, {"*.weight": P("model", None), "down.*": P()})
    assert mt.sharding_of(mlp.up.weight).spec == P("model", None)
    assert mt.sharding_of(mlp.down.weight).is_fully_replicated
    assert mt.sharding_of(mlp.up.bias) is None


def test_copies_of_modules_are_marked(mlp, mesh):
    mt.shard(mlp, mesh, {"up.weight": P("model", None)})
    assert mt.sharding_of(copy.deepcopy(mlp).up.weight).spec == P("model", None)
    mt.train_step(mlp, torch.nn.functional.mse_loss, torch.optim.SGD(mlp.parameters(), 0.1))(torch.ones(2, 8),
                                                                                            torch.ones(2, 4))
    copied = copy.deepcopy(mlp)  # of parameters on the devices
    assert mt.sharding_of(copied.up.weight).spec == P("model", None) and mt.sharding_of(copied.up.bias) is None


def test_a_pattern_that_matches_nothing(mlp, mesh):
    with pytest.raises(ValueError, match=r"'up.weights' matches nothing; the nearest names are .*up\.weight"):
        mt.shard(mlp, mesh, {"up.weights": P("model")})


def test_a_spec_that_does_not_fit_names_the_parameter(mlp, mesh):
    with pytest.raises(ms.InvalidArgumentError) as found:
        mt.shard(mlp, mesh, {"up.bias": P("model", None)})
    assert any("up.bias" in note for note in found.value.__notes__)


def test_device_meshes():
    device_mesh = DeviceMesh("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]], mesh_dim_names=("dp", "tp"), _init_backend=False,
                             _rank=0)
    mesh = mt.mesh_of(device_mesh)
    assert mesh == ms.Mesh({"dp": 2, "tp": 4})
    irregular = DeviceMesh("cpu", [[5, 1], [0, 7]], mesh_dim_names=("a", "b"), _init_backend=False, _rank=0)
    back = mt.device_mesh_of(mt.mesh_of(irregular))
    assert torch.equal(back.mesh, irregular.mesh) and back.mesh_dim_names == ("a", "b")


def test_placements(mesh):
    x = mt.distribute_tensor(torch.zeros(8, 8), mesh, [Shard(0), Replicate()])
    assert mt.sharding_of(x).spec == P("data", None)
    both = mt.distribute_tensor(torch.zeros(8, 8), mesh, [Shard(-1), Shard(1)])
    assert mt.sharding_of(both).spec == P(None, ("data", "model"))
    with pytest.raises(ValueError, match="Partial"):
        mt.distribute_tensor(torch.zeros(8), mesh, [ms.Partial(), Replicate()])
    with pytest.raises(ValueError, match="1 placements for a mesh with 2 axes"):
        mt.distribute_tensor(torch.zeros(8), mesh, [Shard(0)])


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(16)
        self.up = torch.nn.Linear(16, 32)
        self.down = torch.nn.Linear(32, 16)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


@pytest.fixture
def blocks():
    torch.manual_seed(0)
    return torch.nn.Sequential(Block(), Block()).eval()


def kinds(report):
    return sorted((each.kind, *each.axes) for each in report.collectives)


def test_tensor_parallelism_is_one_all_reduce_per_block(blocks, mesh):
    x = mt.mark_sharding(torch.randn(4, 8, 16), mesh, P("data"))
    wanted = blocks(x)
    mt.parallelize_module(blocks, mesh, {"*.up": ColwiseParallel(), "*.down": RowwiseParallel()}, axis="model")
    assert mt.sharding_of(blocks[0].up.bias).spec == P("model")
    assert kinds(ms.explain(blocks, x, topology="cpu:8")) == [("all-reduce", "model")] * 2
    torch.testing.assert_close(mt.compile(blocks)(x), wanted, rtol=1e-5, atol=1e-5)


def test_sequence_parallelism_gathers_and_scatters(blocks, mesh):
    x = torch.randn(4, 8, 16)
    wanted = blocks(x)
    mt.parallelize_module(blocks, mesh, {
        "*.norm": SequenceParallel(), "*.up": ColwiseParallel(input_layouts=Shard(1)),
        "*.down": RowwiseParallel(output_layouts=Shard(1))}, axis="model")
    found = {kind for kind, *_ in kinds(ms.explain(blocks, x, topology="cpu:8"))}
    assert "all-gather" in found and found & {"reduce-scatter", "all-reduce"}
    torch.testing.assert_close(mt.compile(blocks)(x), wanted, rtol=1e-5, atol=1e-5)


def test_plans_that_match_nothing(blocks, mesh):
    with pytest.raises(ValueError, match=r"'\*\.upp' matches nothing"):
        mt.parallelize_module(blocks, mesh, {"*.upp": ColwiseParallel()}, axis="model")
    with pytest.raises(ValueError, match="which axis of"):
        mt.parallelize_module(blocks, mesh, {"*.up": ColwiseParallel()})
    with pytest.raises(NotImplementedError, match="LayerNorm"):
        mt.parallelize_module(blocks, mesh, {"*.norm": ColwiseParallel()}, axis="model")


def test_prepared_inputs(blocks, mesh):
    x = torch.randn(4, 8, 16)
    mt.parallelize_module(blocks, mesh, {"0": PrepareModuleInput(input_layouts=Replicate(),
                                                                desired_input_layouts=Shard(1))}, axis="model")
    torch.testing.assert_close(mt.compile(blocks)(x), blocks(x), rtol=1e-5, atol=1e-5)


def test_fully_shard(blocks, mesh):
    mt.parallelize_module(blocks, mesh, {"*.up": ColwiseParallel()}, axis="model")
    mt.fully_shard(blocks, mesh, axis="data")
    assert mt.sharding_of(blocks[0].up.weight).spec == P("model", "data")
    assert mt.sharding_of(blocks[0].down.weight).spec == P("data", None)
    x = torch.randn(4, 8, 16)
    torch.testing.assert_close(mt.compile(blocks)(x), blocks(x), rtol=1e-5, atol=1e-5)


def test_fully_shard_of_layers_and_of_the_whole(blocks):
    whole = DeviceMesh("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]], mesh_dim_names=("dp", "tp"), _init_backend=False, _rank=0)
    data, model = mt.mesh_of(whole)["dp"], mt.mesh_of(whole)["tp"]  # as two plans of PyTorch take them
    mt.parallelize_module(blocks, model, {"*.up": ColwiseParallel(), "*.down": RowwiseParallel()})
    for block in blocks:
        mt.fully_shard(block, data)
    mt.fully_shard(blocks, data)
    assert mt.sharding_of(blocks[0].up.weight).spec == P("tp", "dp")
    assert mt.sharding_of(blocks[1].down.weight).spec == P("dp", "tp")
    assert mt.sharding_of(blocks[1].norm.weight).spec == P("dp")


def test_tied_weights_have_one_mark(mesh):
    model = torch.nn.Sequential(torch.nn.Linear(8, 8, bias=False), torch.nn.Linear(8, 8, bias=False))
    model[1].weight = model[0].weight
    mt.parallelize_module(model, mesh, {"0": ColwiseParallel(), "1": ColwiseParallel()}, axis="model")
    assert mt.sharding_of(model[0].weight).spec == P("model", None)
    mt.fully_shard(model, ms.Mesh({"other": 8}))  # a mark on another mesh replaces it
    assert mt.sharding_of(model[0].weight).spec == P("other", None)


class Experts(torch.nn.Module):
    """Weights of four experts, of which transformers' plans name the parameters."""

    def __init__(self):
        super().__init__()
        self.up = torch.nn.Parameter(torch.randn(4, 32, 16))
        self.down = torch.nn.Parameter(torch.randn(4, 16, 32))

    def forward(self, x):
        return torch.einsum("eoi,bei->bo", self.down, torch.relu(torch.einsum("eoi,bi->beo", self.up, x)))


def test_paths_of_parameters(mesh):
    torch.manual_seed(0)
    model, x = torch.nn.Sequential(Experts()), torch.randn(4, 16)
    wanted = model(x)
    with pytest.raises(ValueError, match=r"'0\.upp' matches nothing"):
        mt.parallelize_module(model, mesh, {"0.upp": ColwiseParallel()}, axis="model")
    mt.parallelize_module(model, mesh, {"*.up": ColwiseParallel(), "*.down": RowwiseParallel()}, axis="model")
    assert mt.sharding_of(model[0].up).spec == P(None, "model", None)
    assert mt.sharding_of(model[0].down).spec == P(None, None, "model")
    torch.testing.assert_close(mt.compile(model)(x), wanted, rtol=1e-4, atol=1e-4)
