"""Collectives of torch.distributed in programs for ranks: values as in LocalTensorMode, collectives as written."""

import pathlib

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import meshard as ms  # noqa: E402
import meshard.torch as mt  # noqa: E402
from meshard import P  # noqa: E402
import rank_support  # noqa: E402
from rank_support import (MESH, LocalTensorMode, assert_equals_local_tensors, collectives,  # noqa: E402
                          funcol, random_values, values)
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor  # noqa: E402

R, S0 = Replicate(), Shard(0)
LINE = r"test_rank_collectives\.py:\d+: \[torch\]"
device_mesh = rank_support.device_mesh


def test_mlp_with_functional_collectives(device_mesh):
    def mlp(x, up, down):
        return funcol.all_reduce(torch.relu(x @ up) @ down, "sum", (device_mesh, 1))

    torch.manual_seed(0)
    x, up, down = torch.randn(4, 8), torch.randn(8, 16), torch.randn(16, 8)
    f = mt.per_rank(mlp, MESH, in_specs=(P("data"), P(None, "model"), P("model")), out_specs=P("data"))
    torch.testing.assert_close(f(x, up, down), torch.relu(x @ up) @ down)
    report = ms.explain(f, x, up, down, topology="cpu:8")
    (only,) = report.collectives
    assert only.kind == "all-reduce" and tuple(only.axes) == ("model",)
    source = pathlib.Path(__file__).read_text().splitlines()
    line = next(i for i, each in enumerate(source, 1) if "return funcol.all_reduce(torch.relu" in each)
    assert f"test_rank_collectives.py:{line}" in str(report)
    assert {each.name for each in report.arguments} == {"args[0]", "args[1]", "args[2]"}


def test_marks_and_stacked_results(device_mesh):
    x = mt.mark_sharding(torch.arange(8.), MESH, P(("data", "model")))
    f = mt.per_rank(lambda x: funcol.all_reduce(x, "max", (device_mesh, 0)), MESH)
    assert f(x)[:, 0].tolist() == [4, 5, 6, 7, 4, 5, 6, 7]


def test_every_collective(device_mesh):
    group, whole = (device_mesh, 1), dist.group.WORLD

    def all_of_them(x):
        return (*(funcol.all_reduce(x, op, group) for op in ("sum", "avg", "min", "max", "product")),
                funcol.all_reduce(x, "sum", whole),
                funcol.all_gather_single(x, 1, (device_mesh, 0)), funcol.all_gather_single(x, 0, whole),
                *(funcol.reduce_scatter_single(x, op, 0, group) for op in ("sum", "avg", "max")),
                funcol.all_to_all_single(x, None, None, group), funcol.broadcast(x, 2, group))

    assert_equals_local_tensors(all_of_them, random_values(8, 4))


def test_integers_and_bools(device_mesh):
    def exact(x):
        return (funcol.all_reduce(x, "sum", (device_mesh, 1)), funcol.all_reduce(x > 0, "max", (device_mesh, 0)),
                funcol.broadcast(x, 3, (device_mesh, 1)))

    assert_equals_local_tensors(exact, values(lambda rank: torch.arange(4) * (-1) ** rank + rank))


def test_collectives_of_torch_distributed(device_mesh):
    data, model = device_mesh.get_group("data"), device_mesh.get_group("model")

    def legacy(x):
        total = x * 2
        dist.all_reduce(total, group=data)
        gathered = torch.empty(4 * x.shape[0])
        dist.all_gather_into_tensor(gathered, x, group=model)
        scattered = torch.empty_like(x)
        dist.reduce_scatter_tensor(scattered, gathered, group=model)
        exchanged = torch.empty_like(gathered)
        dist.all_to_all_single(exchanged, gathered, group=model)
        dist.broadcast(exchanged, src=2, group=model)
        dist.barrier()
        return total, gathered, scattered, exchanged

    assert_equals_local_tensors(legacy, random_values(4))


@pytest.mark.parametrize("op", ["SUM", "AVG", "MIN", "MAX", "PRODUCT"])
def test_reductions_in_place_and_asynchronously(device_mesh, op):
    group, op = device_mesh.get_group("model"), getattr(dist.ReduceOp, op)

    def reduced(x):
        total, part, chosen = x.clone(), x.new_empty(2, 3), x.clone()
        works = [dist.all_reduce(total, op, group, async_op=True),
                 dist.reduce_scatter_tensor(part, x, op, group, async_op=True)]
        for work in works:
            work.wait()
        listed = torch.empty_like(part)
        dist.reduce_scatter(listed, list(x.chunk(4)), op, group)
        dist.reduce(chosen, group_dst=2, op=op, group=group)
        return total, part, listed, chosen

    x = random_values(8, 3)
    with LocalTensorMode(8):
        total, part = reduce_by_hand(x, op, group)
    results = mt.per_rank(reduced, MESH)(x)
    for rank in range(8):
        torch.testing.assert_close(results[0][rank], total._local_tensors[rank])
        for result in results[1:3]:
            torch.testing.assert_close(result[rank], part._local_tensors[rank])
        # Ranks 2 and 6 have the place 2 in their groups.
        torch.testing.assert_close(results[3][rank], (total if rank % 4 == 2 else x)._local_tensors[rank])


def reduce_by_hand(x, op, group):
    total, part = x.clone(), x.new_empty(2, 3)
    dist.all_reduce(total, op, group)
    dist.reduce_scatter_tensor(part, x, op, group)
    return total, part


def test_lists_and_stacks_of_parts(device_mesh):
    group = device_mesh.get_group("model")

    def parts(x):
        gathered = [torch.empty_like(x) for _ in range(4)]
        dist.all_gather(gathered, x, group)
        stacked = torch.empty(4, *x.shape)
        dist.all_gather_into_tensor(stacked, x, group)
        row = torch.empty(2)
        dist.reduce_scatter_tensor(row, x[:, :2], group=group)  # whose rows are the parts
        swapped = [torch.empty(1, 3) for _ in range(4)]
        dist.all_to_all(swapped, list(x.chunk(4)), group)
        scalars = torch.empty(4)
        dist.all_gather_into_tensor(scalars, x[0, 0], group)
        return torch.stack(gathered), stacked, row, torch.stack(swapped), scalars

    x = random_values(4, 3)
    results = mt.per_rank(parts, MESH)(x)
    for rank in range(8):
        own = [x._local_tensors[each] for each in range(rank // 4 * 4, rank // 4 * 4 + 4)]
        place = rank % 4
        wanted = (torch.stack(own), torch.stack(own), sum(own)[place, :2],
                  torch.stack([each[place:place + 1] for each in own]), torch.stack([each[0, 0] for each in own]))
        for got, want in zip(results, wanted, strict=True):
            torch.testing.assert_close(got[rank], want)


def test_coalesced_collectives(device_mesh):
    group = device_mesh.get_group("model")

    def coalesced(x):
        a, b = x.clone(), x * 2
        with dist._coalescing_manager(group):
            dist.all_reduce(a, group=group)
            dist.all_reduce(b, group=group)
        c, d = torch.empty(16, 3), torch.empty(8, 3)
        with dist._coalescing_manager(group, async_ops=True) as works:
            dist.all_gather_into_tensor(c, x, group)
            dist.all_gather_into_tensor(d, x[:2], group)
        works.wait()
        return (a, b, c, d, *funcol.all_gather_into_tensor_coalesced([x, x[:2]], group),
                *funcol.reduce_scatter_tensor_coalesced([x, c], "sum", [0, 0], group),
                *funcol.all_reduce_coalesced([x, a], "max", group))

    assert_equals_local_tensors(coalesced, random_values(4, 3))


def test_gradients_do_not_pass_collectives_in_place(device_mesh):
    def gradient(x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = x * 2
            dist.all_reduce(y, group=device_mesh.get_group("model"))
            return torch.autograd.grad((y * torch.arange(3.)).sum(), x)[0]

    assert_equals_local_tensors(gradient, random_values(4, 3))


@pytest.mark.parametrize("name", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "all_to_all_single"])
def test_gradients_of_torch_distributed_nn(device_mesh, name):
    from torch.distributed.nn import functional

    group = device_mesh.get_group("model")
    call = {"all_reduce": lambda x: functional.all_reduce(x, group=group),
            "all_gather": lambda x: torch.stack(functional.all_gather(x, group)),
            "reduce_scatter": lambda x: functional.reduce_scatter(x.new_empty(1, 3), list(x.chunk(4)), group=group),
            "all_to_all": lambda x: torch.stack(functional.all_to_all([torch.empty(1, 3) for _ in range(4)],
                                                                      list(x.chunk(4)), group)),
            "all_to_all_single": lambda x: functional.all_to_all_single(torch.empty(4, 3), x, group=group)}[name]
    same = {"all_reduce": lambda x: funcol.all_reduce(x, "sum", group),
            "all_gather": lambda x: funcol.all_gather_single(x, 0, group).unflatten(0, (4, 4)),
            "reduce_scatter": lambda x: funcol.reduce_scatter_single(x, "sum", 0, group),
            "all_to_all": lambda x: funcol.all_to_all_single(x, None, None, group).unflatten(0, (4, 1)),
            "all_to_all_single": lambda x: funcol.all_to_all_single(x, None, None, group)}[name]

    def gradient(apply, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            out = apply(x * x)
            return out.detach(), torch.autograd.grad((out * torch.arange(out.numel()).view(out.shape)).sum(), x)[0]

    assert_equals_local_tensors(lambda x: gradient(call, x), random_values(4, 3),
                                reference=lambda x: gradient(same, x))


def test_sends_of_every_rank(device_mesh):
    """Sends around a ring, both ways, over groups and over all ranks: permutations."""
    group = device_mesh.get_group("model")

    def around(x):
        place, count = dist.get_rank(group), dist.get_world_size(group)
        a, b, c, d = (torch.empty_like(x) for _ in range(4))
        for work in dist.batch_isend_irecv([  # a receive is matched by the ranks, not by its place
                dist.P2POp(dist.isend, x, group=group, group_peer=(place + 1) % count),
                dist.P2POp(dist.isend, 2 * x, group=group, group_peer=(place - 1) % count),
                dist.P2POp(dist.irecv, a, group=group, group_peer=(place + 1) % count),
                dist.P2POp(dist.irecv, b, group=group, group_peer=(place - 1) % count)]):
            work.wait()
        received = dist.irecv(c, dist.get_global_rank(group, (place + 2) % count), group)
        dist.isend(x, dist.get_global_rank(group, (place - 2) % count), group).wait()
        received.wait()
        works = [dist.isend(x, (dist.get_rank() + 3) % 8), dist.irecv(d, (dist.get_rank() - 3) % 8)]
        [work.wait() for work in works]
        return a, b, c, d

    x = random_values(3)
    own = x._local_tensors
    f = mt.per_rank(around, MESH)
    for rank, (a, b, c, d) in enumerate(zip(*f(x), strict=True)):
        first = rank // 4 * 4
        assert a.equal(2 * own[first + (rank + 1) % 4]) and b.equal(own[first + (rank - 1) % 4])
        assert c.equal(own[first + (rank + 2) % 4]) and d.equal(own[(rank - 3) % 8])
    assert collectives(f, x) == {"collective_permute": 4}


def test_functions_that_were_imported_by_their_names(device_mesh):
    from torch.distributed import all_reduce, broadcast

    def both(x):
        y, z = x.clone(), x.clone()
        all_reduce(y, group=device_mesh.get_group("data"))
        broadcast(z, group=device_mesh.get_group("model"), group_src=1)
        return y, z

    assert_equals_local_tensors(both, random_values(3))


def test_flattened_and_sliced_meshes():
    mesh = ms.Mesh({"a": 2, "b": 2, "c": 2})
    cube = mt.simulated_device_mesh(mesh)
    pairs, outer, ends = cube["a", "b"], cube["b", "c"]._flatten("bc"), cube["a", "c"]._flatten("ac")

    def program(x):
        return (funcol.all_gather_single(x, 0, outer), funcol.reduce_scatter_single(x, "sum", 0, ends),
                funcol.all_reduce(x, "max", (pairs, 1)) + pairs.get_local_rank("b"), x + outer.get_local_rank(),
                DTensor.from_local(x, pairs, [Partial(), S0], run_check=False).full_tensor())

    assert_equals_local_tensors(program, random_values(4, 2), mesh=mesh)
    assert {tuple(each.axes) for each in ms.explain(mt.per_rank(program, mesh), random_values(4, 2),
                                                    topology="cpu:8").collectives} >= {("b", "c"), ("a", "c"), ("b",)}


def test_inputs_that_are_written(device_mesh):
    def write(x):
        x.mul_(2)
        dist.all_reduce(x, group=device_mesh.get_group("data"))
        return x.sum()

    x, same = random_values(4), random_values(4)
    with LocalTensorMode(8):
        write(x)
    mt.per_rank(write, MESH)(same)
    for rank in range(8):
        torch.testing.assert_close(same._local_tensors[rank], x._local_tensors[rank])


def test_the_gradient_of_a_function_with_collectives(device_mesh):
    def gradient(x, w):
        with torch.enable_grad():
            w = w.detach().requires_grad_()
            whole = funcol.all_gather_single_autograd(w, 0, (device_mesh, 1))
            loss = funcol.reduce_scatter_single_autograd(x @ whole, "sum", 0, (device_mesh, 0)).square().sum()
            return torch.autograd.grad(loss, w)[0]

    assert_equals_local_tensors(gradient, random_values(6, 8), random_values(2, 3))


def test_a_ring(device_mesh):
    """A product with a matrix whose parts go around: each rank has the rows of one part of the result."""
    def ring(rows, part):
        total = torch.zeros(rows.shape[0], part.shape[1])
        for i in range(4):
            owner = (device_mesh.get_local_rank("model") - i) % 4
            total = total + torch.narrow(rows, 1, owner * 2, 2) @ part
            part = funcol.permute_tensor(part, [1, 2, 3, 0], (device_mesh, 1))
        return total

    torch.manual_seed(0)
    rows, columns = torch.randn(8, 8), torch.randn(8, 3)
    f = mt.per_rank(ring, MESH, in_specs=P("model"), out_specs=P("model"))
    torch.testing.assert_close(f(rows, columns), rows @ columns)
    assert collectives(f, rows, columns) == {"collective_permute": 3}  # what the last one receives is not used


def test_sequences_are_exchanged_for_heads(device_mesh):
    """Attention over a sharded sequence: all-to-alls give each rank the whole sequence of some of the heads."""
    def to_heads(x):  # [t / n, heads, d] -> [t, heads / n, d]
        parts = x.unflatten(1, (4, -1)).movedim(1, 0).contiguous()
        return funcol.all_to_all_single(parts, None, None, (device_mesh, 1)).flatten(0, 1)

    def attention(q, k, v):
        out = F.scaled_dot_product_attention(*(to_heads(each).transpose(0, 1) for each in (q, k, v)), is_causal=True)
        parts = out.transpose(0, 1).unflatten(0, (4, -1)).contiguous()  # [n, t / n, heads / n, d]
        return funcol.all_to_all_single(parts, None, None, (device_mesh, 1)).movedim(0, 1).flatten(1, 2)

    torch.manual_seed(0)
    q, k, v = (torch.randn(16, 8, 4) for _ in range(3))
    f = mt.per_rank(attention, MESH, in_specs=P("model"), out_specs=P("model"))
    wanted = F.scaled_dot_product_attention(*(each.transpose(0, 1) for each in (q, k, v)), is_causal=True)
    torch.testing.assert_close(f(q, k, v), wanted.transpose(0, 1))
    assert collectives(f, q, k, v) == {"all_to_all": 4}
    assert {(each.kind, *each.axes) for each in ms.explain(f, q, k, v, topology="cpu:8").collectives} == {
        ("all-to-all", "model")}


# What is not supported.

def test_sends_between_two_ranks(device_mesh):
    group = device_mesh.get_group("model")

    def to_one(x):  # 1 for every rank
        works = [dist.isend(x, 1, group), dist.irecv(y := torch.empty_like(x), 3, group)]
        [work.wait() for work in works]
        return y

    for program, message in [
            (lambda x: dist.isend(x, 1).wait(), "1 isend and 0 irecv were called before wait"),
            (lambda x: (dist.isend(x, 1), x)[1], r"ends without wait\(\) for this isend"),
            (to_one, r"receive torch.float32\[1\] from \[3, 3, 3, 3\] .* send torch.float32\[1\] to \[1, 1, 1, 1\]"),
            (lambda x: dist.send(x, 1), r"send\(\) is not supported: .* cannot send between two of them")]:
        with pytest.raises((ValueError, NotImplementedError), match=rf"{LINE} .*{message}"):
            mt.per_rank(program, MESH)(torch.zeros(1))


def test_what_one_rank_has(device_mesh):
    group = device_mesh.get_group("model")
    for program, message in [
            (lambda x: dist.gather(x, [x] * 4, group=group, group_dst=0), r"gather.* only one rank"),
            (lambda x: dist.scatter(x, [x] * 4, group=group, group_src=0), r"scatter.* only one rank"),
            (lambda x: dist.broadcast(x, 5, group), "src=5 is not one of the ranks .* use group_src"),
            (lambda x: dist.all_gather_object([None] * 4, {}, group), "Python objects are not values of a program"),
            (lambda x: dist.broadcast_object_list([x.shape], 0), "Python objects are not values of a program"),
            (lambda x: dist.all_reduce(x, group=group, async_op=True).get_future(), "get_future of an asynchronous"),
            (lambda x: dist.all_reduce(x, dist.ReduceOp.BAND, group), "the all-reduce band of torch.float32|band"),
            (lambda x: distribute_tensor(x, device_mesh, [S0, R]), "src_data_rank=None")]:
        with pytest.raises((ValueError, NotImplementedError), match=rf"{LINE} .*{message}"):
            mt.per_rank(program, MESH)(torch.zeros(8))


def test_a_group_that_is_not_axes():
    group = dist.new_group([0, 3])
    with pytest.raises(ValueError, match=r"test_rank_collectives\.py:\d+: .*ranks \[0, 3\] is not a set of axes"):
        mt.per_rank(lambda x: funcol.all_reduce(x, "sum", group), MESH)(torch.zeros(1))
