"""Compares whole models, compiled by meshard.torch on one device and on a mesh, with PyTorch's CPU in float32."""

import collections.abc
import copy
import dataclasses
import functools
import warnings

import torch
from torch.utils import _pytree as pytree

import meshard as ms
import meshard.torch as mt
from meshard import P

warnings.filterwarnings("ignore")

TOLERANCE = 1e-4
"""Of outputs, losses, buffers and gradients; see Errors."""

TRAINED_TOLERANCE = 1e-3
"""Of losses, buffers and parameters after steps of an optimizer."""

STEPS = 20

CHECKS = ("logits", "gradients", "train", "generate")


def _loss_of_output(output):
    return output.loss


@dataclasses.dataclass(frozen=True)
class Model:
    """A model of the catalog: random weights, a small configuration without dropout, float32.

    It is compared in training mode, so that batch normalization computes statistics; generation is in eval mode.
    """

    name: str

    build: collections.abc.Callable
    """() -> the module. The seed of PyTorch is set before, so that each call makes the same one."""

    inputs: collections.abc.Callable
    """() -> the arguments of its forward pass, by name; with labels if the model computes its loss."""

    plan: collections.abc.Callable
    """(module, mesh) marks the parameters for a mesh of {"data": 2, "model": 4}."""

    loss: collections.abc.Callable = _loss_of_output
    """(output) -> the scalar that is differentiated."""

    generate: dict | None = None
    """The arguments of `generate`, for a model that generates."""

    split: tuple | None = None
    """The names of the inputs that are split along dimension 0 over "data"; None for all of them."""


def plan_of(*, axis="model", **own):
    """A plan for Model: the model's own tp_plan along an axis."""
    return lambda module, mesh: mt.parallelize_module(module, mesh, axis=axis, **own)


def patterns(specs):
    """A plan for Model: specs by patterns over parameter names."""
    return lambda module, mesh: mt.shard(module, mesh, specs)


def tokens(*shape, vocabulary=128, seed=1):
    """Random token ids."""
    return torch.randint(0, vocabulary, shape, generator=torch.Generator().manual_seed(seed))


def noise(*shape, seed=1):
    """Random normal numbers."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


class Errors:
    """The errors of named tensors.

    The error of a tensor is max|got - wanted| / max(max|wanted|, floor): relative to the tensor's largest element. The
    floor, 1e-2 of the largest element of all tensors of its group (all gradients, all parameters), is for tensors that
    are zero in exact arithmetic, such as the gradients of biases of keys or of those before a batch normalization: both
    sides have rounding errors there. With a floor of 1e-3, PyTorch's own float32 is up to 1.7e-4 from its float64.
    """

    def __init__(self):
        self._found = []

    def compare(self, group, wanted, got):
        """Adds the errors of a dictionary of tensors."""
        if list(wanted) != list(got):
            self._found.append((float("inf"), f"{group}: {list(got)} for {list(wanted)}"))
            return
        largest = max((each.detach()[each.isfinite()].abs().max().item() for each in wanted.values()
                       if each.is_floating_point() and each.isfinite().any()), default=0.0)
        for name, want in wanted.items():
            self._found.append((self._error(want.detach(), got[name].detach(), largest), f"{group} {name}"))

    @staticmethod
    def _error(want, got, largest):
        if want.dtype != got.dtype or want.shape != got.shape:
            return float("inf")
        if not want.numel():
            return 0.0
        if not want.dtype.is_floating_point:
            return 0.0 if torch.equal(want, got) else float("inf")
        # Infinities, as in masks, and NaNs have to be the same ones.
        finite = want.isfinite()
        if not torch.equal(finite, got.isfinite()) or \
                not torch.equal(want[~finite].nan_to_num(0), got[~finite].nan_to_num(0)):
            return float("inf")
        off = (torch.where(finite, got, 0).double() - torch.where(finite, want, 0)).abs().max().item()
        return off / max(torch.where(finite, want, 0).abs().max().item(), 1e-2 * largest, 1e-30)

    def worst(self):
        """(error, name) of the tensor with the largest error."""
        return max(self._found, default=(0.0, "nothing"))


def _tensors(result):
    return {pytree.keystr(path): each for path, each in pytree.tree_flatten_with_path(result)[0]
            if isinstance(each, torch.Tensor)}


def _gradients(module):
    return {name: torch.zeros_like(each) if each.grad is None else each.grad
            for name, each in module.named_parameters()}


@functools.cache
def mesh():
    return ms.Mesh({"data": 2, "model": 4})


class Comparison:
    """One model, built once, on PyTorch's CPU and compiled."""

    def __init__(self, model):
        self.model = model
        torch.manual_seed(0)
        self._module = model.build().train()
        self._inputs = model.inputs()
        self._plain = {}

    def module(self, on_mesh):
        """A copy of the module, marked by its plan if it is for the mesh."""
        own = copy.deepcopy(self._module)
        if on_mesh:
            self.model.plan(own, mesh())
        return own

    def inputs(self, on_mesh, given=None):
        """Copies of the inputs, marked if they are for the mesh."""
        inputs = pytree.tree_map_only(torch.Tensor, torch.clone, self._inputs if given is None else given)
        names = inputs if self.model.split is None else self.model.split
        for name in (names if on_mesh else ()):
            if isinstance(inputs.get(name), torch.Tensor):
                mt.mark_sharding(inputs[name], mesh(), P("data"))
        return inputs

    def _once(self, name, compute):
        if name not in self._plain:
            self._plain[name] = compute()
        return self._plain[name]

    def check(self, what, on_mesh):
        """(error, name of the tensor, tolerance) of the worst tensor."""
        return getattr(self, f"_check_{what}")(on_mesh)

    def _check_logits(self, on_mesh):
        def forward(module, call, inputs):
            with torch.no_grad():
                output = call(**inputs)
            return {**_tensors(output), "loss": self.model.loss(output)}, dict(module.named_buffers())

        def plain():
            module = self.module(False)
            return forward(module, module, self.inputs(False))

        wanted, module = self._once("logits", plain), self.module(on_mesh)
        got, errors = forward(module, mt.compile(module), self.inputs(on_mesh)), Errors()
        errors.compare("output", wanted[0], got[0])
        errors.compare("buffer", wanted[1], got[1])
        return *errors.worst(), TOLERANCE

    def _check_gradients(self, on_mesh):
        def backward(module, call, inputs):
            loss = self.model.loss(call(**inputs))
            loss.backward()
            return {"loss": loss}, _gradients(module), dict(module.named_buffers())

        def plain():
            module = self.module(False)
            return backward(module, module, self.inputs(False))

        wanted, module = self._once("gradients", plain), self.module(on_mesh)
        got, errors = backward(module, mt.compile(module), self.inputs(on_mesh)), Errors()
        for group, want, have in zip(("output", "gradient", "buffer"), wanted, got, strict=True):
            errors.compare(group, want, have)
        return *errors.worst(), TOLERANCE

    @staticmethod
    def _optimizer(module):
        # AdamW divides a gradient by its own size: with the default eps of 1e-8, rounding errors of gradients that are
        # zero in exact arithmetic become whole steps. An eps above these errors (1e-8 and less) keeps steps comparable.
        return torch.optim.AdamW(module.parameters(), lr=1e-3, eps=1e-5)

    def _trained(self, dtype=None):
        """The losses, parameters and buffers of plain PyTorch after the steps, in a dtype of floats if one is given."""
        def converted(value):
            return value.to(dtype) if dtype is not None and value.is_floating_point() else value

        module, losses = self.module(False), []
        module = module if dtype is None else module.to(dtype)
        inputs = pytree.tree_map_only(torch.Tensor, converted, self.inputs(False))
        optimizer = self._optimizer(module)
        for _ in range(STEPS):
            optimizer.zero_grad()
            losses.append(self.model.loss(module(**inputs)))
            losses[-1].backward()
            optimizer.step()
        return self._results(module, losses)

    @staticmethod
    def _results(module, losses):
        return ({str(i): each for i, each in enumerate(losses)}, dict(module.named_parameters()),
                dict(module.named_buffers()))

    def _check_train(self, on_mesh):
        def worst(wanted, got):
            errors = Errors()
            for group, want, have in zip(("loss of step", "parameter", "buffer"), wanted, got, strict=True):
                errors.compare(group, want, {name: each.to(want[name].dtype) for name, each in have.items()})
            return errors.worst()

        wanted, module, inputs = self._once("train", self._trained), self.module(on_mesh), self.inputs(on_mesh)
        step = mt.train_step(module, self.model.loss, self._optimizer(module))
        got = self._results(module, [step(**inputs) for _ in range(STEPS)])
        error, name = worst(wanted, got)
        if error <= TRAINED_TOLERANCE:
            return error, name, TRAINED_TOLERANCE
        # Steps amplify rounding errors. Where PyTorch's own are near the tolerance, by its float64, the bound is three
        # times its own distance.
        exact = self._once("train in float64", lambda: self._trained(torch.float64))
        error, name = worst(exact, got)
        return error, f"{name}, beside float64", max(TRAINED_TOLERANCE, 3 * worst(exact, wanted)[0])

    def _check_generate(self, on_mesh):
        arguments = self.model.generate

        def plain():
            return self.module(False).eval().generate(**self.inputs(False, arguments))

        wanted, module = self._once("generate", plain), self.module(on_mesh).eval()
        module.forward = mt.compile(module.forward)
        # A static cache takes a program for the prompt and one for each further token, other caches one per length.
        for cache in ({"cache_implementation": "static"}, {}):
            got = module.generate(**self.inputs(on_mesh, arguments), **cache)
            if not torch.equal(wanted, got):
                return float("inf"), f"tokens {got.tolist()} for {wanted.tolist()} with {cache}", 0.0
        return 0.0, "tokens", 0.0
