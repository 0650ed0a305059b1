"""Programs as they are written for ranks: parallelism by functional collectives, and by collectives in place."""

import math

import torch
import torch.distributed as dist
import torch.nn.functional as F
from rank_programs import (R, S0, Mlp, Program, gradients_of, in_local_tensors, inputs_and_outputs, program, squares,
                           step_of, tokens_and_targets, twins)
from torch.distributed import _functional_collectives as funcol
from torch.distributed.tensor import DTensor, Partial, distribute_tensor

from meshard import P

# Data parallelism.

@program
def fully_sharded_by_collectives(mesh):
    """Parameters split over all ranks: gathered for their use, gradients reduced and scattered, an SGD update."""
    torch.manual_seed(0)
    mlp = Mlp()
    world = dist.group.WORLD

    class Gather(torch.autograd.Function):
        @staticmethod
        def forward(ctx, part):
            return funcol.all_gather_single(part, 0, world)

        @staticmethod
        def backward(ctx, gradient):
            return funcol.reduce_scatter_single(gradient.contiguous(), "avg", 0, world)

    def step(parts, x, y):
        with torch.enable_grad():
            parts = {name: part.detach().requires_grad_() for name, part in parts.items()}
            whole = {name: Gather.apply(part) for name, part in parts.items()}
            loss = F.mse_loss(torch.func.functional_call(mlp, whole, x), y)
            gradients = torch.autograd.grad(loss, list(parts.values()))
        return [part.detach() - 0.1 * own for part, own in zip(parts.values(), gradients)]

    def whole(parameters, x, y):
        with torch.enable_grad():
            parameters = {name: each.detach().requires_grad_() for name, each in parameters.items()}
            loss = F.mse_loss(torch.func.functional_call(mlp, parameters, x), y)
            gradients = torch.autograd.grad(loss, list(parameters.values()))
        return [each.detach() - 0.1 * own for each, own in zip(parameters.values(), gradients)]

    state = {name: each.detach().clone() for name, each in mlp.named_parameters()}
    return Program(step, (state, *inputs_and_outputs(16)), P(("data", "model")), whole=whole)


def flat(tensors):
    return torch.cat([each.flatten() for each in tensors])


def parts_of(flat, tensors):
    return [each.view(own.shape) for each, own in zip(flat.split([own.numel() for own in tensors]), tensors)]


@program
def replicas_with_buckets(mesh):
    """Replicas: gradients are summed in two buckets, asynchronously and in place."""
    model, whole = twins(Mlp)

    def step(x, y):
        with torch.enable_grad():
            loss, *gradients = gradients_of(squares(model, x, y), model)
        buckets = [flat(gradients[:2]), flat(gradients[2:])]
        works = [dist.all_reduce(each, async_op=True) for each in buckets]
        for work in works:
            work.wait()
        means = [each / dist.get_world_size() for each in buckets]
        return [loss, *parts_of(means[0], gradients[:2]), *parts_of(means[1], gradients[2:])]

    return Program(step, inputs_and_outputs(), P(("data", "model")), model, step_of(whole, squares))


@program
def coalesced_parameters(mesh):
    """Parameters of a layer are gathered together, and their gradients scattered together, over one of two axes."""
    torch.manual_seed(0)
    mlp = Mlp()
    names = [name for name, _ in mlp.named_parameters()]
    shard, replica = mesh.get_group("model"), mesh.get_group("data")

    class Gather(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *parts):
            return tuple(each + 0 for each in funcol.all_gather_into_tensor_coalesced(list(parts), shard))

        @staticmethod
        def backward(ctx, *gradients):
            own = funcol.reduce_scatter_tensor_coalesced([each.contiguous() for each in gradients], "avg",
                                                         [0] * len(gradients), shard)
            return tuple(funcol.all_reduce_coalesced([each + 0 for each in own], "avg", replica))

    def step(parts, x, y):
        with torch.enable_grad():
            parts = [parts[name].detach().requires_grad_() for name in names]
            loss = F.mse_loss(torch.func.functional_call(mlp, dict(zip(names, Gather.apply(*parts))), x), y)
            return torch.autograd.grad(loss, parts)

    def whole(parameters, x, y):
        with torch.enable_grad():
            parameters = {name: each.detach().requires_grad_() for name, each in parameters.items()}
            loss = F.mse_loss(torch.func.functional_call(mlp, parameters, x), y)
            return torch.autograd.grad(loss, list(parameters.values()))

    state = {name: each.detach().clone() for name, each in mlp.named_parameters()}
    return Program(step, (state, *inputs_and_outputs()), (P("model"), P(("data", "model")), P(("data", "model"))),
                   whole=whole)


@program
def optimizer_state_in_parts(mesh):
    """ZeRO-1: replicated parameters, an AdamW whose moments are DTensors that are split over "data"."""
    data = mesh["data"]

    def make():
        module = Mlp()
        for i, each in enumerate(list(module.parameters())):
            module.register_buffer(f"first{i}", torch.randn_like(each) / 100)
            module.register_buffer(f"second{i}", torch.rand_like(each) / 100)
        return module

    def split(module):
        for name, each in list(module.named_buffers()):
            module.register_buffer(name, distribute_tensor(each, data, [S0]))

    model, whole = twins(make)
    in_local_tensors(split, model)

    def update(parameter, gradient, one, two):
        one, two = 0.9 * one + 0.1 * gradient, 0.99 * two + 0.01 * gradient * gradient
        return parameter * 0.999 - 0.1 * one / (two.sqrt() + 1e-8), one, two

    def step(x, y):
        with torch.enable_grad():
            _, *gradients = gradients_of(squares(model, x, y), model)
        results = []
        for i, (parameter, gradient) in enumerate(zip(model.parameters(), gradients)):
            mine = DTensor.from_local(gradient, data, [Partial("avg")], run_check=False).redistribute(placements=[S0])
            own = DTensor.from_local(parameter.detach(), data, [R], run_check=False).redistribute(placements=[S0])
            new, one, two = update(own, mine, getattr(model, f"first{i}"), getattr(model, f"second{i}"))
            results += [new.full_tensor(), one, two]
        return results

    def whole_step(x, y):
        with torch.enable_grad():
            _, *gradients = gradients_of(squares(whole, x, y), whole)
        return [each for i, (parameter, gradient) in enumerate(zip(whole.parameters(), gradients))
                for each in update(parameter.detach(), gradient, getattr(whole, f"first{i}"),
                                   getattr(whole, f"second{i}"))]

    return Program(step, inputs_and_outputs(), P("data"), model, whole_step)


# Parallelism inside layers.

class ToCopies(torch.autograd.Function):
    """The same value on all ranks of a group, whose gradients are summed."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient, group=ctx.group)
        return gradient, None


class Summed(torch.autograd.Function):
    """The sum over a group, whose gradient is the same on all its ranks."""

    @staticmethod
    def forward(ctx, x, group):
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def gathered_by(dim):
    class Gather(torch.autograd.Function):
        """Parts of a dimension, gathered; gradients are summed and scattered."""

        @staticmethod
        def forward(ctx, x, group):
            ctx.group = group
            return funcol.all_gather_single(x, dim, group)

        @staticmethod
        def backward(ctx, gradient):
            return funcol.reduce_scatter_single(gradient.contiguous(), "sum", dim, ctx.group), None

    class Scatter(torch.autograd.Function):
        """The sum over a group, of which each rank has its part of a dimension."""

        @staticmethod
        def forward(ctx, x, group):
            ctx.group = group
            return funcol.reduce_scatter_single(x.contiguous(), "sum", dim, group)

        @staticmethod
        def backward(ctx, gradient):
            return funcol.all_gather_single(gradient.contiguous(), dim, ctx.group), None

    return Gather, Scatter


@program
def vocabulary_parallel(mesh):
    """An embedding and a cross entropy of words that are split over "model": no rank has all logits."""
    torch.manual_seed(3)
    table, head = torch.randn(32, 8), torch.randn(32, 8)
    group = mesh.get_group("model")

    def step(tokens, targets, table, head):
        with torch.enable_grad():
            table, head = (each.detach().requires_grad_() for each in (table, head))
            first = dist.get_rank(group) * table.shape[0]

            def own(words):
                inside = (words >= first) & (words < first + table.shape[0])
                return inside, torch.where(inside, words - first, 0)

            inside, words = own(tokens)
            x = Summed.apply(F.embedding(words, table) * inside[..., None], group)
            logits = ToCopies.apply(x, group) @ head.T
            largest = logits.detach().amax(-1)
            dist.all_reduce(largest, dist.ReduceOp.MAX, group)
            logits = logits - largest[..., None]
            inside, words = own(targets)
            wanted = Summed.apply(torch.where(inside, logits.gather(-1, words[..., None])[..., 0], 0.), group)
            total = Summed.apply(logits.exp().sum(-1), group)
            loss = (total.log() - wanted).mean()
            gradients = torch.autograd.grad(loss, (table, head))
        return [loss.detach(), *(funcol.all_reduce(each, "avg", (mesh, 0)) for each in gradients)]

    def whole(tokens, targets, table, head):
        with torch.enable_grad():
            table, head = (each.detach().requires_grad_() for each in (table, head))
            loss = F.cross_entropy((F.embedding(tokens, table) @ head.T).flatten(0, 1), targets.flatten())
            return loss.detach(), *torch.autograd.grad(loss, (table, head))

    return Program(step, (*tokens_and_targets(), table, head), (P("data"), P("data"), P("model"), P("model")),
                   whole=whole)


@program
def sequence_parallel_norm(mesh):
    """A norm of a split sequence between products of split matrices, in the manner of Megatron."""
    torch.manual_seed(4)
    x, scale, up, down = torch.randn(4, 8, 8), torch.rand(8), torch.randn(8, 16), torch.randn(16, 8)
    group = mesh.get_group("model")
    gather, scatter = gathered_by(1)

    def step(x, scale, up, down):
        with torch.enable_grad():
            scale, up, down = (each.detach().requires_grad_() for each in (scale, up, down))
            h = gather.apply(F.rms_norm(x, (8,)) * scale, group)
            out = x + scatter.apply(F.gelu(h @ up) @ down, group)
            loss = out.square().sum()
            gradients = list(torch.autograd.grad(loss, (scale, up, down)))
        gradients[0] = funcol.all_reduce(gradients[0], "sum", group)  # each rank has it of its part of the sequence
        total = funcol.all_reduce(loss.detach(), "sum", dist.group.WORLD)
        return [total, *(funcol.all_reduce(each, "sum", (mesh, 0)) for each in gradients)]

    def whole(x, scale, up, down):
        with torch.enable_grad():
            scale, up, down = (each.detach().requires_grad_() for each in (scale, up, down))
            loss = (x + F.gelu((F.rms_norm(x, (8,)) * scale) @ up) @ down).square().sum()
            return loss.detach(), *torch.autograd.grad(loss, (scale, up, down))

    return Program(step, (x, scale, up, down), (P("data", "model"), P(), P(None, "model"), P("model")), whole=whole)


@program
def expert_parallel(mesh):
    """Experts on the ranks of "model": all-to-alls send tokens to the experts that they chose, and back."""
    torch.manual_seed(5)
    experts, width, capacity = 4, 8, 4
    x, router = torch.randn(32, width), torch.randn(width, experts)
    up, down = torch.randn(experts, width, 16), torch.randn(experts, 16, width)
    group = mesh.get_group("model")

    def routed(x, router):
        """For each place of each expert, which token it has: [experts, capacity, tokens]; and the tokens' weights."""
        weights, chosen = (x @ router).softmax(-1).max(-1)
        one = (chosen[:, None] == torch.arange(experts)).float()
        place = ((one.cumsum(0) - 1) * one).sum(-1)
        return torch.einsum("ne,nc->ecn", one, (place[:, None] == torch.arange(capacity)).float()), weights

    def exchanged(x):
        return funcol.all_to_all_single_autograd(x, None, None, group)

    def step(x, router, up, down):
        with torch.enable_grad():
            router, up, down = (each.detach().requires_grad_() for each in (router, up, down))
            places, weights = routed(x, router)
            mine = exchanged(torch.einsum("ecn,nd->ecd", places, x))  # [ranks, capacity, width] for my expert
            out = exchanged(F.gelu(mine @ up[0]) @ down[0])
            y = torch.einsum("ecn,ecd->nd", places, out) * weights[:, None]
            loss = y.square().sum()
            gradients = torch.autograd.grad(loss, (router, up, down))
        return [y.detach(), funcol.all_reduce(gradients[0], "sum", dist.group.WORLD),
                *(funcol.all_reduce(each, "sum", (mesh, 0)) for each in gradients[1:])]

    def whole(x, router, up, down):
        with torch.enable_grad():
            router, up, down = (each.detach().requires_grad_() for each in (router, up, down))
            places, weights = routed(x, router)
            out = F.gelu(torch.einsum("ecn,nd->ecd", places, x) @ up) @ down
            y = torch.einsum("ecn,ecd->nd", places, out) * weights[:, None]
            return y.detach(), *torch.autograd.grad(y.square().sum(), (router, up, down))

    return Program(step, (x, router, up, down), (P(("data", "model")), P(), P("model"), P("model")), whole=whole)


def attention(q, k, v):
    return F.scaled_dot_product_attention(*(each.transpose(0, 1) for each in (q, k, v)), is_causal=True).transpose(0, 1)


def whole_attention(q, k, v):
    with torch.enable_grad():
        q, k, v = (each.detach().requires_grad_() for each in (q, k, v))
        out = attention(q, k, v)
        return out.detach(), *torch.autograd.grad(out.square().sum(), (q, k, v))


def queries_keys_values():
    torch.manual_seed(6)
    return tuple(torch.randn(3, 16, 4, 8))


@program
def ring_attention(mesh):
    """Causal attention over a split sequence: keys and values go around the ranks of "model"."""
    ring, count = (mesh, 1), 4

    def around(x):
        return funcol.permute_tensor(x, [(i + 1) % count for i in range(count)], ring)

    def step(q, k, v):
        with torch.enable_grad():
            q, k, v = (each.detach().requires_grad_() for each in (q, k, v))
            rank, size = mesh.get_local_rank("model"), q.shape[0]
            places = torch.arange(size)
            largest = q.new_full((q.shape[1], size, 1), -math.inf)
            total, weighted = q.new_zeros(q.shape[1], size, 1), torch.zeros_like(q).transpose(0, 1)
            keys, values = k, v
            for i in range(count):
                owner = (rank - i) % count
                scores = torch.einsum("qhd,khd->hqk", q, keys) / math.sqrt(q.shape[-1])
                seen = (rank * size + places)[:, None] >= owner * size + places
                scores = scores.masked_fill(~seen, -math.inf)
                most = torch.maximum(largest, scores.amax(-1, keepdim=True))
                factor, weights = torch.exp(largest - most), torch.exp(scores - most)
                total = total * factor + weights.sum(-1, keepdim=True)
                weighted = weighted * factor + torch.einsum("hqk,khd->hqd", weights, values)
                largest = most
                if i < count - 1:
                    keys, values = around(keys), around(values)
            out = (weighted / total).transpose(0, 1)
            gradients = torch.autograd.grad(out.square().sum(), (q, k, v))
        return [out.detach(), *gradients]

    return Program(step, queries_keys_values(), P("model"), whole=whole_attention)


@program
def head_parallel_attention(mesh):
    """Causal attention over a split sequence: all-to-alls give each rank the whole sequence of some heads."""
    group = (mesh, 1)

    def to_heads(x):
        parts = x.unflatten(1, (4, -1)).movedim(1, 0).contiguous()
        return funcol.all_to_all_single_autograd(parts, None, None, group).flatten(0, 1)

    def to_sequence(x):
        return funcol.all_to_all_single_autograd(x.unflatten(0, (4, -1)).contiguous(), None, None, group).movedim(
            0, 1).flatten(1, 2)

    def step(q, k, v):
        with torch.enable_grad():
            q, k, v = (each.detach().requires_grad_() for each in (q, k, v))
            out = to_sequence(attention(*(to_heads(each) for each in (q, k, v))))
            gradients = torch.autograd.grad(out.square().sum(), (q, k, v))
        return [out.detach(), *gradients]

    return Program(step, queries_keys_values(), P("model"), whole=whole_attention)


@program
def typed_mlp(mesh):
    """An MLP with the types of spmd_types: invariant, replicated, varying and partial values."""
    import spmd_types as types
    from spmd_types.checker import typecheck

    torch.manual_seed(8)
    x, up, down = torch.randn(4, 8), torch.randn(8, 16), torch.randn(16, 8)
    model, data = mesh.get_group("model"), mesh.get_group("data")

    def step(x, up, down):
        with typecheck(), torch.enable_grad():
            up, down = (each.detach().requires_grad_() for each in (up, down))
            types.assert_type(x, {model: types.I, data: types.V})
            for weight in (up, down):
                types.assert_type(weight, {model: types.V, data: types.R})
            h = types.convert(x, model, src=types.I, dst=types.R)
            out = types.all_reduce(torch.relu(h @ up) @ down, model, src=types.P, dst=types.I)
            loss = out.square().sum()
        return [out.detach(), *torch.autograd.grad(loss, (up, down))]

    def whole(x, up, down):
        with torch.enable_grad():
            up, down = (each.detach().requires_grad_() for each in (up, down))
            out = torch.relu(x @ up) @ down
            return out.detach(), *torch.autograd.grad(out.square().sum(), (up, down))

    return Program(step, (x, up, down), (P("data"), P(None, "model"), P("model")), whole=whole)
