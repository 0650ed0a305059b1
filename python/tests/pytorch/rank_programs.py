"""Programs as they are written for ranks: parallel plans of whole models, and DTensor."""

import dataclasses
import typing

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed import _functional_collectives as funcol
from torch.distributed._local_tensor import LocalTensorMode
from torch.distributed.tensor import (DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor)
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               loss_parallel, parallelize_module)

from meshard import P

R, S0, S1 = Replicate(), Shard(0), Shard(1)


@dataclasses.dataclass
class Program:
    """A training step of one rank, and the same step of whole tensors."""

    step: typing.Callable
    """From each rank's parts of the arguments to its results."""
    arguments: tuple
    """Whole tensors."""
    specs: typing.Any
    """What of the arguments each rank has: in_specs of per_rank()."""
    module: nn.Module | None = None
    """Whose parameters the step uses, as DTensors or as values of each rank."""
    whole: typing.Callable | None = None
    """The step of whole tensors, of one device."""


PROGRAMS = {}


def program(make):
    PROGRAMS[make.__name__] = make
    return make


def gradients_of(loss, module):
    """The loss and the gradients of all parameters."""
    parameters = list(module.parameters())
    return (loss.detach(), *torch.autograd.grad(loss, parameters))


def step_of(module, loss_of):
    """A step of whole tensors."""
    def step(*arguments):
        with torch.enable_grad():
            return gradients_of(loss_of(module, *arguments), module)

    return step


def in_local_tensors(function, *args):
    with LocalTensorMode(8):
        return function(*args)


def twins(make, seed=0):
    """Two modules with the same parameters."""
    torch.manual_seed(seed)
    one, other = make(), make()
    other.load_state_dict(one.state_dict())
    return one, other


# A decoder in the manner of Llama.

class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.head = width // heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x, angles):
        q, k, v = (own(x).unflatten(-1, (-1, self.head)).transpose(1, 2) for own in (self.wq, self.wk, self.wv))
        q, k = (rotated(each, angles) for each in (q, k))
        return self.wo(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


def rotated(x, angles):
    a, b = x.chunk(2, -1)
    return torch.cat((a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), -1)


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w1, self.w3 = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.w2 = nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention, self.feed_forward = Attention(width, heads), FeedForward(width)
        self.attention_norm, self.ffn_norm = nn.RMSNorm(width), nn.RMSNorm(width)

    def forward(self, x, angles):
        x = x + self.attention(self.attention_norm(x), angles)
        return x + self.feed_forward(self.ffn_norm(x))


class Llama(nn.Module):
    def __init__(self, words=32, width=16, heads=4, layers=2):
        super().__init__()
        self.tok_embeddings = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.output = nn.Linear(width, words, bias=False)
        places = torch.arange(8.)[:, None] / 10000 ** (torch.arange(0, width // heads, 2) / (width // heads))
        self.register_buffer("angles", places, persistent=False)

    def forward(self, tokens):
        x = self.tok_embeddings(tokens)
        for layer in self.layers:
            x = layer(x, self.angles)
        return self.output(self.norm(x))


def cross_entropy(model, tokens, targets):
    return F.cross_entropy(model(tokens).flatten(0, 1).float(), targets.flatten())


def tokens_and_targets(batch=4):
    torch.manual_seed(1)
    return tuple(torch.randint(0, 32, (2, batch, 8)))


def tensor_parallel(model, mesh):
    """torchtitan's plan of Llama: between the layers, the sequence is split; logits stay split for the loss."""
    plan = {"tok_embeddings": RowwiseParallel(input_layouts=R, output_layouts=S1), "norm": SequenceParallel(),
            "output": ColwiseParallel(input_layouts=S1, output_layouts=Shard(-1), use_local_output=False)}
    for i in range(len(model.layers)):
        plan |= {f"layers.{i}.{name}": style for name, style in {
            "attention_norm": SequenceParallel(), "ffn_norm": SequenceParallel(),
            "attention": PrepareModuleInput(input_layouts=(S1, None), desired_input_layouts=(R, None)),
            "attention.wq": ColwiseParallel(), "attention.wk": ColwiseParallel(), "attention.wv": ColwiseParallel(),
            "attention.wo": RowwiseParallel(output_layouts=S1),
            "feed_forward": PrepareModuleInput(input_layouts=(S1,), desired_input_layouts=(R,)),
            "feed_forward.w1": ColwiseParallel(), "feed_forward.w3": ColwiseParallel(),
            "feed_forward.w2": RowwiseParallel(output_layouts=S1)}.items()}
    return in_local_tensors(parallelize_module, model, mesh, plan)


def mean_over(group):
    """The mean of each rank's gradients; those of DTensors are on another dimension."""
    def mean(gradient):
        if not isinstance(gradient, DTensor):
            return funcol.all_reduce(gradient, "avg", group)
        return DTensor.from_local(mean(gradient.to_local()), gradient.device_mesh, gradient.placements, run_check=False)

    return mean


@program
def llama_tensor_parallel(mesh):
    """Tensor, sequence and loss parallelism on "model", replicas on "data"."""
    model, whole = twins(Llama)
    tensor_parallel(model, mesh["model"])
    mean = mean_over((mesh, 0))

    def step(tokens, targets):
        with torch.enable_grad(), loss_parallel():
            logits = model(tokens)
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
            results = gradients_of(loss, model)
        return [mean(each.full_tensor() if each.ndim == 0 else each) for each in results]

    return Program(step, tokens_and_targets(), P("data"), model, step_of(whole, cross_entropy))


class Gathered(nn.Module):
    """A parameter that is split over "data", in whole: its gradient is the mean of the ranks'."""

    def __init__(self, mesh, rest):
        super().__init__()
        self.mesh, self.rest = mesh, rest

    def forward(self, part):
        whole = part.redistribute(placements=[R, *self.rest])
        local = whole.to_local(grad_placements=[Partial("avg"), *self.rest])
        if not self.rest:
            return local
        return DTensor.from_local(local, self.mesh["model"], self.rest, run_check=False)


def fully_sharded(model, mesh):
    """Splits parameters over "data", and gathers each for its use."""
    for module in list(model.modules()):
        for name, parameter in list(module.named_parameters(recurse=False)):
            two = isinstance(parameter, DTensor)
            rest = list(parameter.placements) if two else []
            local, own = (parameter.to_local(), mesh) if two else (parameter.detach(), mesh["data"])
            dim = 1 if two and rest[0].is_shard(0) else 0  # another dimension than the other axis splits
            whole = DTensor.from_local(local, own, [R, *rest], run_check=False)
            part = whole.redistribute(placements=[Shard(dim), *rest])
            module.register_parameter(name, nn.Parameter(part.detach()))
            nn.utils.parametrize.register_parametrization(module, name, Gathered(mesh, rest), unsafe=True)
    return model


@program
def llama_fully_sharded_tensor_parallel(mesh):
    """torchtitan's two dimensions: parameters split over "data" and gathered for their use, tensors over "model"."""
    model, whole = twins(Llama)
    tensor_parallel(model, mesh["model"])
    in_local_tensors(fully_sharded, model, mesh)

    def step(tokens, targets):
        with torch.enable_grad(), loss_parallel():
            loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
            results = gradients_of(loss, model)
        return [funcol.all_reduce(results[0].full_tensor(), "avg", (mesh, 0)), *results[1:]]

    return Program(step, tokens_and_targets(), P("data"), model, step_of(whole, cross_entropy))


# DTensor.

class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


def squares(model, x, y):
    return F.mse_loss(model(x), y)


def inputs_and_outputs(batch=8):
    torch.manual_seed(2)
    return tuple(torch.randn(2, batch, 8))


def by_hand(mlp, mesh):
    """The Mlp with its parameters distributed by columns and by rows."""
    def split(name, module, mesh):
        dims = {"up": {"weight": S0, "bias": S0}, "down": {"weight": S1, "bias": R}}.get(name, {})
        for own, placement in dims.items():
            placed = distribute_tensor(getattr(module, own), mesh, [R, placement])
            module.register_parameter(own, nn.Parameter(placed))

    def whole_input(module, inputs, mesh):
        return DTensor.from_local(inputs[0], mesh, [S0, R], run_check=False)

    def whole_output(module, output, mesh):
        return output.redistribute(placements=[S0, R])

    return distribute_module(mlp, mesh, split, whole_input, whole_output)


@program
def dtensor_mlp(mesh):
    """An MLP whose parameters are DTensors of both dimensions, distributed by hand."""
    model, whole = twins(Mlp)
    in_local_tensors(by_hand, model, mesh)

    def step(x, y):
        with torch.enable_grad():
            y = DTensor.from_local(y, mesh, [S0, R], run_check=False)
            loss, *gradients = gradients_of(F.mse_loss(model(x), y), model)
        placed = [each.redistribute(placements=own.placements) for each, own in zip(gradients, model.parameters())]
        return [loss.full_tensor(), *placed]

    return Program(step, inputs_and_outputs(), P("data"), model, step_of(whole, squares))


@program
def dtensor_transformer(mesh):
    """The transformer of PyTorch's own tests, with its plan."""
    from torch.testing._internal.distributed._tensor.common_dtensor import ModelArgs, Transformer

    def make():
        return Transformer(ModelArgs(n_layers=1, vocab_size=32, max_seq_len=8, dim=16, n_heads=4, dropout_p=0.0,
                                     weight_tying=False))

    model, whole = twins(make)
    model = in_local_tensors(Transformer.parallelize, model, mesh["model"], True, True)

    def step(tokens, targets):
        with torch.enable_grad():
            return gradients_of(cross_entropy(model, tokens, targets), model)

    return Program(step, tokens_and_targets(), P(), model, step_of(whole, cross_entropy))
