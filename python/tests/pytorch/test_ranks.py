"""Programs that are written for ranks: values as in LocalTensorMode or on one device, collectives as written."""

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import meshard as ms  # noqa: E402
import meshard.torch as mt  # noqa: E402
from meshard import P  # noqa: E402
import rank_support  # noqa: E402
from rank_programs import Mlp, by_hand  # noqa: E402
from rank_support import (MESH, LocalTensorMode, assert_equals_local_tensors, collectives,  # noqa: E402
                          funcol, random_values, values)
from torch.distributed.device_mesh import DeviceMesh  # noqa: E402
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor  # noqa: E402
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel, SequenceParallel,  # noqa: E402
                                               parallelize_module)

R, S0, S1 = Replicate(), Shard(0), Shard(1)
device_mesh = rank_support.device_mesh


# Ranks.

def test_ranks_differ(device_mesh):
    def ranks(x):
        in_group = dist.get_rank(device_mesh.get_group("data")) + device_mesh.get_local_rank("model") * 3
        return (x + dist.get_rank(), x + in_group,
                x * device_mesh["model"].get_local_rank() + device_mesh.get_coordinate()[0])

    assert_equals_local_tensors(ranks, random_values(3))


def test_a_choice_by_the_rank(device_mesh):
    def chosen(x):
        return torch.where(torch.full((), dist.get_rank()) == 3, x, -x) + dist.get_rank() / 2

    assert mt.per_rank(chosen, MESH)(torch.ones(1)).flatten().tolist() == [-1, -0.5, 0, 2.5, 1, 1.5, 2, 2.5]


def test_ranks_of_a_mesh_in_another_order():
    mesh = ms.Mesh({"a": 2, "b": 4}, [5, 1, 7, 3, 0, 4, 2, 6])
    other = mt.simulated_device_mesh(mesh)

    def ranks(x):
        return (x + dist.get_rank(), x + other.get_local_rank("b"), funcol.all_reduce(x, "sum", (other, 0)),
                funcol.all_gather_single(x, 0, (other, 1)))

    x = torch.arange(8.).reshape(8, 1)
    f = mt.per_rank(ranks, mesh, in_specs=P(("a", "b")))
    ranks, places, sums, gathered = f(x)
    assert (ranks - x[:, None]).flatten().tolist() == [5, 1, 7, 3, 0, 4, 2, 6]  # results are in mesh order
    assert (places - x[:, None]).flatten().tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert sums.flatten().tolist() == [4, 6, 8, 10, 4, 6, 8, 10]
    assert gathered[1].flatten().tolist() == [0, 1, 2, 3] and gathered[6].flatten().tolist() == [4, 5, 6, 7]
    sorted_groups = DeviceMesh("cpu", torch.tensor(list(mesh.device_ids)).reshape(2, 4), mesh_dim_names=("a", "b"))
    with pytest.raises(ValueError, match="in another order: make the DeviceMesh with preserve_rank_order=True"):
        mt.per_rank(lambda x: funcol.all_gather_single(x, 0, (sorted_groups, 0)), mesh)(torch.zeros(1))


def test_places_that_differ_by_rank(device_mesh):
    def place(x):
        i, j = device_mesh.get_local_rank("model"), device_mesh.get_local_rank("data")
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            part = torch.narrow(x, 0, i, 3)
            gradient, = torch.autograd.grad((part * part).sum() + torch.select(x, 0, i + j).sum(), x)
        made = torch.zeros(8, 2)
        made[2 * j:2 * j + 2] += 1
        return gradient, made.narrow(0, i, 4), torch.select_scatter(made, x.detach()[0], 0, i)

    results = mt.per_rank(place, MESH)(x := torch.randn(8, 2))
    for rank in range(8):
        j, i = divmod(rank, 4)
        gradient, made = torch.zeros(8, 2), torch.zeros(8, 2)
        gradient[i:i + 3] = 2 * x[i:i + 3]
        gradient[i + j] += 1
        made[2 * j:2 * j + 2] = 1
        torch.testing.assert_close(results[0][rank], gradient)
        torch.testing.assert_close(results[1][rank], made[i:i + 4])
        made[i] = x[0]
        torch.testing.assert_close(results[2][rank], made)


def test_a_tensor_that_is_distributed_inside(device_mesh):
    def split(x):
        return distribute_tensor(x, device_mesh, [S1, S0], src_data_rank=None).to_local()

    x = torch.arange(32.).reshape(8, 4)
    torch.testing.assert_close(mt.per_rank(split, MESH, out_specs=P("model", "data"))(x), x)


def test_constants(device_mesh):
    assert_equals_local_tensors(lambda x: x + torch.tensor([1., 2., 3.]), random_values(3))
    assert_equals_local_tensors(lambda x: (x + torch.arange(4.), F.max_pool2d(x[None], 2)), random_values(4, 4))
    f = mt.per_rank(lambda x: torch.arange(3.)[:, None] * torch.arange(2.), MESH)
    assert torch.equal(f(torch.zeros(1)), (torch.arange(3.)[:, None] * torch.arange(2.)).expand(8, 3, 2))


# DTensor.

@pytest.mark.parametrize("before, after", [
    ([R, R], [S0, S1]), ([Partial(), S1], [S0, S0]), ([S0, S0], [S1, R]), ([S0, S1], [R, R]),
    ([Partial(), Partial()], [R, S0]), ([S0, S1], [S0, S0]), ([R, S1], [S1, S0])], ids=str)
def test_redistributions(device_mesh, before, after):
    def change(x):
        return DTensor.from_local(x, device_mesh, before, run_check=False).redistribute(placements=after).to_local()

    assert_equals_local_tensors(change, random_values(16, 16))


@pytest.fixture
def mlp():
    torch.manual_seed(0)
    return Mlp()


def copy_of(module):
    made = type(module)()
    made.load_state_dict(module.state_dict())
    return made


def test_a_distributed_module(device_mesh, mlp):
    x = torch.randn(4, 8)
    with LocalTensorMode(8):
        distributed = by_hand(copy_of(mlp), device_mesh)
    f = mt.per_rank(distributed, MESH, in_specs=P("data"))
    torch.testing.assert_close(f(x), mlp(x).detach())  # a DTensor results in the whole tensor
    assert collectives(f, x) == {"all_reduce": 1}


def test_parts_of_one_rank_are_explained(device_mesh, mlp):
    x = torch.randn(4, 8)
    f = mt.per_rank(by_hand(mlp, device_mesh), MESH, in_specs=P("data"))
    (only,) = ms.explain(f, x, topology="cpu:8").collectives
    assert only.kind == "all-reduce" and tuple(only.axes) == ("model",)
    with pytest.raises(ValueError, match=r"up\.weight: only the part of rank 0 exists.*LocalTensorMode"):
        f(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.q, self.k, self.v, self.o = (nn.Linear(16, 16) for _ in range(4))
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        h = self.norm1(x)
        q, k, v = (each(h).unflatten(-1, (-1, 4)).transpose(1, 2) for each in (self.q, self.k, self.v))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.block = Block()
        self.head = nn.Linear(16, 32, bias=False)

    def forward(self, tokens):
        return self.head(self.block(self.embedding(tokens)))


@pytest.fixture
def transformer():
    torch.manual_seed(1)
    return Transformer()


def parallel(model, mesh, sequence):
    """The model with its layers split over "model"; between them, the sequence is split, too, or all ranks have all."""
    between = S1 if sequence else R
    plan = {"embedding": RowwiseParallel(input_layouts=R, output_layouts=between),
            **{f"block.{name}": ColwiseParallel(input_layouts=between) for name in ("q", "k", "v", "up")},
            **{f"block.{name}": RowwiseParallel(output_layouts=between) for name in ("o", "down")},
            "head": ColwiseParallel(input_layouts=between, output_layouts=R)}
    if sequence:
        plan |= {f"block.{name}": SequenceParallel(use_local_output=True) for name in ("norm1", "norm2")}
    with LocalTensorMode(8):
        return parallelize_module(copy_of(model), mesh["model"], plan)


def test_a_transformer_with_a_split_sequence(device_mesh, transformer):
    tokens = torch.randint(0, 32, (4, 8))
    f = mt.per_rank(parallel(transformer, device_mesh, True), MESH, in_specs=P("data"), out_specs=P("data"))
    torch.testing.assert_close(f(tokens), transformer(tokens).detach())
    # Of the embedding, of o and of down; of the input of q, k, v and up, and of both ends of the head.
    assert collectives(f, tokens) == {"reduce_scatter": 3, "all_gather": 6}


def test_as_written_beside_as_marked(device_mesh):
    """The same plan, applied by PyTorch to each rank's part and by marks to whole tensors, on no device at all."""
    plan = {**dict.fromkeys(("q", "k", "v", "up"), ColwiseParallel()),
            **dict.fromkeys(("o", "down"), RowwiseParallel())}
    with torch.device("meta"):
        x, written, marked = torch.empty(4, 8, 16), Block(), Block()
    f = mt.per_rank(parallelize_module(written, device_mesh["model"], plan), MESH, in_specs=P("data"))
    mt.parallelize_module(marked, MESH, plan, axis="model")
    reports = [ms.explain(f, x, topology="cpu:8"),
               ms.explain(marked, mt.mark_sharding(x, MESH, P("data")), topology="cpu:8")]
    for report in reports:
        assert [(each.kind, *each.axes) for each in report.collectives] == [("all-reduce", "model")] * 2
    assert "collectives: 2, " in str(reports[0].diff(reports[1]))


def test_types_of_spmd_types(device_mesh):
    types = pytest.importorskip("spmd_types")
    checker = pytest.importorskip("spmd_types.checker")
    model, data = device_mesh.get_group("model"), device_mesh.get_group("data")

    def mlp(x, up, down):
        with checker.typecheck():
            types.assert_type(x, {model: types.I, data: types.V})
            for weight in (up, down):
                types.assert_type(weight, {model: types.V, data: types.R})
            x = types.convert(x, model, src=types.I, dst=types.R)
            return types.all_reduce(torch.relu(x @ up) @ down, model, src=types.P, dst=types.I)

    x, up, down = torch.randn(4, 8), torch.randn(8, 16), torch.randn(16, 8)
    f = mt.per_rank(mlp, MESH, (P("data"), P(None, "model"), P("model")), P("data"))
    torch.testing.assert_close(f(x, up, down), torch.relu(x @ up) @ down)
    assert collectives(f, x, up, down) == {"all_reduce": 1}


def test_training_a_transformer(device_mesh, transformer):
    tokens, targets = torch.randint(0, 32, (2, 4, 8))
    model = parallel(transformer, device_mesh, False)

    def mean(gradient):  # over the parts of the batch, which are on "data"
        if not isinstance(gradient, DTensor):
            return funcol.all_reduce(gradient, "avg", (device_mesh, 0))
        return DTensor.from_local(mean(gradient.to_local()), gradient.device_mesh, gradient.placements, run_check=False)

    def step(tokens, targets):
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        loss.backward()
        return mean(loss.detach()), [mean(each.grad) for each in model.parameters()]

    f = mt.per_rank(step, MESH, in_specs=P("data"), module=model)
    losses, gradients = f(tokens, targets)
    wanted = F.cross_entropy(transformer(tokens).flatten(0, 1), targets.flatten())
    wanted.backward()
    torch.testing.assert_close(losses, wanted.detach().expand(8))
    for (name, parameter), got in zip(transformer.named_parameters(), gradients, strict=True):
        got = got[0] if "norm" in name else got  # the norms are plain tensors: a value of each rank
        torch.testing.assert_close(got, parameter.grad)
    # Forward: the embedding, o, down, and the head's logits. Backward: the inputs of q, k, v, up and the head. And the
    # means of 18 gradients and of the loss.
    assert len(gradients) == 18 and collectives(f, tokens, targets) == {"all_reduce": 3 + 5 + 19, "all_gather": 1}


# Fully sharded data parallelism.

class Gather(torch.autograd.Function):
    """Gathers a parameter before its use, and scatters the mean of its gradients."""

    @staticmethod
    def forward(ctx, part, group):
        ctx.group = group
        return funcol.all_gather_single(part, 0, group)

    @staticmethod
    def backward(ctx, gradient):
        return funcol.reduce_scatter_single(gradient.contiguous(), "avg", 0, ctx.group), None


def test_fully_sharded_by_collectives(device_mesh, mlp):
    def step(parts, x, y):
        with torch.enable_grad():
            parts = {name: part.detach().requires_grad_() for name, part in parts.items()}
            whole = {name: Gather.apply(part, dist.group.WORLD) for name, part in parts.items()}
            loss = F.mse_loss(torch.func.functional_call(mlp, whole, x), y)
            gradients = torch.autograd.grad(loss, list(parts.values()))
        return {name: part.detach() - 0.1 * own for (name, part), own in zip(parts.items(), gradients)}

    f = mt.per_rank(step, MESH, in_specs=P(("data", "model")), out_specs=P(("data", "model")))
    reference = copy_of(mlp)
    optimizer = torch.optim.SGD(reference.parameters(), lr=0.1)
    state = {name: each.detach().clone() for name, each in mlp.named_parameters()}
    for i in range(3):
        x, y = torch.randn(2, 16, 8)
        state = f(state, x, y)
        optimizer.zero_grad()
        F.mse_loss(reference(x), y).backward()
        optimizer.step()
    for name, each in reference.named_parameters():
        torch.testing.assert_close(state[name], each.detach())
    assert collectives(f, state, x, y) == {"all_gather": 4, "reduce_scatter": 4}
    axes = {(each.kind, tuple(each.axes)) for each in ms.explain(f, state, x, y, topology="cpu:8").collectives}
    assert all(own == ("data", "model") for _, own in axes)


class Whole(nn.Module):
    def forward(self, part):
        return part.redistribute(placements=[R]).to_local(grad_placements=[Partial("avg")])


def test_fully_sharded_parameters_that_are_dtensors(mlp):
    mesh = ms.Mesh({"fsdp": 8})
    device_mesh = mt.simulated_device_mesh(mesh)
    with LocalTensorMode(8):
        sharded = copy_of(mlp)
        for each in (sharded.up, sharded.down):
            for name, parameter in list(each.named_parameters(recurse=False)):
                each.register_parameter(name, nn.Parameter(distribute_tensor(parameter, device_mesh, [S0])))
                nn.utils.parametrize.register_parametrization(each, name, Whole(), unsafe=True)

    def step(x, y):
        F.mse_loss(sharded(x), y).backward()
        with torch.no_grad():
            for each in sharded.parameters():
                each.sub_(0.1 * each.grad)

    x, y = torch.randn(2, 16, 8)
    f = mt.per_rank(step, mesh, in_specs=P("fsdp"), module=sharded)
    assert f(x, y) is None
    F.mse_loss(mlp(x), y).backward()
    for part, each in zip(sharded.parameters(), mlp.parameters(), strict=True):
        got = torch.cat([part.to_local()._local_tensors[rank] for rank in range(8)])
        torch.testing.assert_close(got, (each - 0.1 * each.grad).detach())
    assert collectives(f, x, y) == {"all_gather": 4, "reduce_scatter": 4}


# Tensors from outside.

def test_tensors_from_outside_are_inputs(device_mesh):
    shift, own = torch.ones(2), values(lambda rank: torch.full((2,), float(rank)))
    with LocalTensorMode(8):
        part = distribute_tensor(torch.arange(8.), device_mesh["model"], [S0])
    f = mt.per_rank(lambda x: (x + shift, x + own, x + part.to_local()), MESH)
    for _ in range(2):
        shifted, owned, parts = f(torch.zeros(2))
        assert torch.equal(shifted, shift.expand(8, 2)) and owned[:, 0].tolist() == list(range(8))
        assert parts.flatten().tolist() == [*range(8)] * 2
        shift.add_(1)


def test_tensors_from_outside_that_are_written(device_mesh):
    count, made = torch.zeros(2), torch.tensor([3., 4.])

    def program(x):
        made = torch.tensor([1., 2.])
        made.add_(count)
        count.add_(1)
        dist.all_reduce(count, dist.ReduceOp.MAX)
        return x + made

    f = mt.per_rank(program, MESH)
    for i in range(2):
        assert f(torch.zeros(2))[5].tolist() == [1 + i, 2 + i]
        assert count.tolist() == [i + 1, i + 1]
    assert made.tolist() == [3, 4]


def test_a_step_with_an_optimizer(device_mesh, mlp):
    reference, x = copy_of(mlp), torch.randn(16, 8)
    optimizer, other = (torch.optim.SGD(each.parameters(), lr=0.1) for each in (mlp, reference))

    def step(x):
        with torch.enable_grad():
            mlp(x).square().mean().backward()
        works = [dist.all_reduce(each.grad, dist.ReduceOp.AVG, async_op=True) for each in mlp.parameters()]
        [work.wait() for work in works]
        optimizer.step()
        optimizer.zero_grad()

    f = mt.per_rank(step, MESH, in_specs=P(("data", "model")), module=mlp)
    for _ in range(2):
        f(x)
        other.zero_grad()
        reference(x).square().mean().backward()
        other.step()
    for got, each in zip(mlp.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(got, each)


def test_wrappers_whose_hooks_communicate(device_mesh, mlp):
    from torch.distributed.fsdp import fully_shard

    replicas = nn.parallel.DistributedDataParallel(Mlp())
    sharded = fully_shard(Mlp(), mesh=device_mesh["data"])
    for module, name in ((replicas, "DistributedDataParallel"), (sharded, r"fully_shard\(\)")):
        with pytest.raises(NotImplementedError, match=rf"test_ranks\.py:\d+: \[torch\] {name} is not supported"):
            mt.per_rank(lambda x, module=module: module(x), MESH)(torch.zeros(2, 8))


# What is not supported.

def test_a_decision_by_the_rank(device_mesh):
    def program(x):
        if dist.get_rank() == 0:
            return x
        return x + 1

    with pytest.raises(ValueError, match=r"test_ranks\.py:\d+: .*depends on the rank"):
        mt.per_rank(program, MESH)(torch.zeros(1))


def test_uneven_parts(device_mesh):
    def split(x):
        return DTensor.from_local(x, device_mesh, [R, R], run_check=False).redistribute(placements=[R, S0]).to_local()

    with pytest.raises(ValueError, match="differs by rank"):
        mt.per_rank(split, MESH)(torch.zeros(6))
    with pytest.raises(ValueError, match="do not divide dimension 0"):
        mt.per_rank(split, MESH, in_specs=P("model"))(torch.zeros(6))
    with pytest.raises(NotImplementedError, match="parts of different sizes"):
        mt.per_rank(lambda x: funcol.all_to_all_single(x, [1, 3, 2, 2], [1, 3, 2, 2], (device_mesh, 1)),
                    MESH)(torch.zeros(8))


def test_ranks_that_disagree(device_mesh):
    with pytest.raises(ValueError, match="the ranks 0 and 1 have different values"):
        mt.per_rank(lambda x: x + device_mesh.get_local_rank("model"), MESH, out_specs=P("data"))(torch.zeros(2))
