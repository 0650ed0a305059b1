"""Random numbers, from a key that a program takes as an extra input.

A program's key is drawn from PyTorch's default generator at each call, so `torch.manual_seed` makes runs repeatable.
Every random operation of a program takes its own key, derived from that one; values do not depend on the mesh.
The distributions are PyTorch's, the bits are not.
"""

import contextlib
import contextvars
import math

import torch

import meshard as ms

from .._convert import to_meshard as to_meshard_tensor
from .._dtypes import to_meshard, to_torch
from .._table import full_name, lowering_of, lowers
from ._helpers import as_dtype, cast

_RANDOM = set()
_KEYS = contextvars.ContextVar("keys of the program that is recorded", default=None)


class _Keys:
    def __init__(self, key):
        self._key, self._used = key, 0

    def next(self):
        self._used += 1
        return ms.random.fold_in(self._key, self._used)


def needs_key(module):
    """Whether the graph of a torch.fx.GraphModule, or of one that it calls, draws random numbers."""
    return any(str(node.target) in _RANDOM for each in module.modules() if isinstance(each, torch.fx.GraphModule)
               for node in each.graph.nodes)


def new_key(generator=None):
    """A key u32[2] drawn from a generator of PyTorch, by default its own, as a tensor of PyTorch."""
    return torch.randint(0, 2**32, (2,), dtype=torch.int64, device="cpu", generator=generator).to(torch.uint32)


@contextlib.contextmanager
def keys_from(key):
    """Random operations that are recorded inside take their keys from this one."""
    token = _KEYS.set(_Keys(key))
    try:
        yield
    finally:
        _KEYS.reset(token)


def _next_key(generator=None):
    keys = _KEYS.get()
    if keys is None:  # outside of programs, each operation has a key of its own
        return to_meshard_tensor(new_key(generator))
    if generator is not None:
        raise NotImplementedError("[torch] random numbers from a generator are not supported: seed with "
                                  "torch.manual_seed")
    return keys.next()


def _draws(*names):
    """Registers a function of a key as the lowering of random overloads."""

    def register(function):
        def lowered(*args, generator=None, **kwargs):
            return function(_next_key(generator), *args, **kwargs)

        lowers(*names)(lowered)
        _RANDOM.update(full_name(name) for name in names)
        return function

    return register


def _complex_normal(key, shape, dtype):
    # The variance 1 is that of the complex number: 1/2 for each part.
    real = to_meshard(dtype.to_real())
    parts = [ms.random.normal(each, shape, dtype=real) * math.sqrt(0.5) for each in ms.random.split(key)]
    return ms.complex(*parts)


def _normal(key, shape, dtype):
    shape = tuple(shape)
    if dtype.is_complex:
        return _complex_normal(key, shape, dtype)
    return ms.random.normal(key, shape, dtype=to_meshard(dtype))


def _uniform(key, shape, dtype):
    shape = tuple(shape)
    if dtype.is_complex:
        real = to_meshard(dtype.to_real())
        return ms.complex(*(ms.random.uniform(each, shape, dtype=real) for each in ms.random.split(key)))
    return ms.random.uniform(key, shape, dtype=to_meshard(dtype))


def _positive(key, shape, dtype):
    """Uniform in (0, 1]."""
    return ms.subtract(1, _uniform(key, shape, dtype))


@_draws("aten.rand")
def rand(key, size, dtype=None, **_):
    return _uniform(key, size, dtype or torch.get_default_dtype())


@_draws("aten.rand_like")
def rand_like(key, x, dtype=None, **_):
    return _uniform(key, x.shape, dtype or to_torch(x.dtype))


@_draws("aten.randn")
def randn(key, size, dtype=None, **_):
    return _normal(key, size, dtype or torch.get_default_dtype())


@_draws("aten.randn_like")
def randn_like(key, x, dtype=None, **_):
    return _normal(key, x.shape, dtype or to_torch(x.dtype))


def _integers(key, low, high, shape, dtype):
    made = ms.random.randint(key, tuple(shape), low, high, dtype=ms.int64)
    return cast(made, dtype)


@_draws("aten.randint", "aten.randint.generator")
def randint(key, high, size, dtype=None, **_):
    return _integers(key, 0, high, size, dtype or torch.int64)


@_draws("aten.randint.low", "aten.randint.low_generator")
def randint_low(key, low, high, size, dtype=None, **_):
    return _integers(key, low, high, size, dtype or torch.int64)


@_draws("aten.randint_like")
def randint_like(key, x, high, dtype=None, **_):
    return _integers(key, 0, high, x.shape, dtype or to_torch(x.dtype))


@_draws("aten.randint_like.low_dtype")
def randint_like_low(key, x, low, high, dtype=None, **_):
    return _integers(key, low, high, x.shape, dtype or to_torch(x.dtype))


@_draws("aten.random")
def random(key, x):
    """Integers from 0 to the largest one that the dtype represents exactly."""
    dtype = to_torch(x.dtype)
    exact = {torch.bool: 2, torch.float16: 2**11 + 1, torch.bfloat16: 2**8 + 1, torch.float32: 2**24 + 1,
             torch.float64: 2**53 + 1}
    return _integers(key, 0, exact[dtype] if dtype in exact else min(torch.iinfo(dtype).max + 1, 2**63 - 1), x.shape,
                     dtype)


@_draws("aten.random.to")
def random_to(key, x, high):
    return _integers(key, 0, high, x.shape, to_torch(x.dtype))


@_draws("aten.randperm", "aten.randperm.generator")
def randperm(key, n, dtype=None, **_):
    made = ms.random.permutation(key, ms.arange(0, n, 1, dtype=ms.int64)) if n else ms.zeros((0,), dtype=ms.int64)
    return cast(made, dtype or torch.int64)


def _scaled(made, mean, std):
    dtype = to_torch(made.dtype)
    return ms.add(ms.multiply(made, as_dtype(std, dtype)), as_dtype(mean, dtype))


@_draws("aten.normal_functional")
def normal_functional(key, x, mean=0.0, std=1.0):
    return _scaled(_normal(key, x.shape, to_torch(x.dtype)), mean, std)


@_draws("aten.normal.Tensor_float", "aten.normal.float_Tensor", "aten.normal.Tensor_Tensor")
def normal(key, mean, std=1.0):
    tensors = [each for each in (mean, std) if isinstance(each, ms.Tensor)]
    shape = torch.broadcast_shapes(*(each.shape for each in tensors))
    return _scaled(_normal(key, shape, to_torch(tensors[0].dtype)), mean, std)


@_draws("aten.normal.float_float")
def normal_of_size(key, mean, std, size, dtype=None, **_):
    return _scaled(_normal(key, size, dtype or torch.get_default_dtype()), mean, std)


@_draws("prims.normal")
def prims_normal(key, shape, *, mean, std, dtype, **_):
    return _scaled(_normal(key, shape, dtype), mean, std)


@_draws("aten.uniform")
def uniform(key, x, low=0.0, high=1.0):
    return _scaled(_uniform(key, x.shape, to_torch(x.dtype)), low, high - low)


@_draws("prims.uniform", "prims._uniform_helper")
def prims_uniform(key, shape, *, low, high, dtype, **_):
    return _scaled(_uniform(key, shape, dtype), low, high - low)


def _true_with(key, probability, shape):
    if isinstance(probability, ms.Tensor):
        probability = cast(probability, torch.float32)
    return ms.random.bernoulli(key, probability, tuple(shape))


@_draws("aten.bernoulli.default")
def bernoulli(key, x):
    return cast(_true_with(key, x, x.shape), to_torch(x.dtype))


@_draws("aten.bernoulli.p", "aten.bernoulli.Tensor")
def bernoulli_with(key, x, p=0.5):
    return cast(_true_with(key, p, x.shape), to_torch(x.dtype))


@_draws("aten.exponential")
def exponential(key, x, lambd=1.0):
    return ms.divide(ms.negative(ms.log(_positive(key, x.shape, to_torch(x.dtype)))),
                     as_dtype(lambd, to_torch(x.dtype)))


@_draws("aten.geometric")
def geometric(key, x, p):
    drawn = ms.log(_positive(key, x.shape, torch.float32))
    trials = ms.ceil(ms.divide(drawn, math.log1p(-p))) if p < 1 else ms.ones_like(drawn)
    return cast(ms.maximum(trials, ms.ones_like(trials)), to_torch(x.dtype))


@_draws("aten.cauchy")
def cauchy(key, x, median=0.0, sigma=1.0):
    return _scaled(ms.random.cauchy(key, x.shape, dtype=x.dtype), median, sigma)


@_draws("aten.log_normal")
def log_normal(key, x, mean=1.0, std=2.0):
    return ms.exp(_scaled(_normal(key, x.shape, to_torch(x.dtype)), mean, std))


@_draws("aten.poisson")
def poisson(key, x):
    return cast(ms.random.poisson(key, cast(x, torch.float32), x.shape, dtype=ms.int32), to_torch(x.dtype))


@_draws("aten._standard_gamma")
def standard_gamma(key, x):
    return ms.random.gamma(key, x, x.shape, dtype=x.dtype)


@_draws("aten._sample_dirichlet")
def sample_dirichlet(key, x):
    return ms.random.dirichlet(key, x, x.shape[:-1], dtype=x.dtype)


@_draws("aten.multinomial")
def multinomial(key, x, num_samples, replacement=False):
    if x.ndim not in (1, 2):
        raise RuntimeError(f"[torch] multinomial: probabilities are a vector or a matrix, not {tuple(x.shape)}")
    if not to_torch(x.dtype).is_floating_point:
        raise RuntimeError(f"[torch] multinomial only supports floating-point dtypes for input, got: {x.dtype}")
    if not 0 < num_samples <= (num_samples if replacement else x.shape[-1]):
        raise RuntimeError(f"[torch] multinomial: cannot draw {num_samples} samples of {x.shape[-1]} categories "
                           f"{'with' if replacement else 'without'} replacement")
    logits = ms.log(cast(x, torch.float32) if to_torch(x.dtype).itemsize < 4 else x)
    if replacement:
        drawn = ms.random.categorical(key, ms.expand_dims(logits, axis=x.ndim - 1), axis=-1,
                                      shape=x.shape[:-1] + (num_samples,))
        return cast(drawn, torch.int64)
    # The largest of the logarithms with Gumbel noise are a sample without replacement.
    noisy = ms.add(logits, ms.random.gumbel(key, logits.shape, dtype=logits.dtype))
    return cast(ms.argsort(noisy, axis=-1, descending=True)[..., :num_samples], torch.int64)


@_draws("aten.native_dropout")
def native_dropout(key, x, p, train):
    if train is False:
        return x, ms.ones(x.shape, dtype=ms.bool)
    if p == 1:
        return ms.zeros_like(x), ms.zeros(x.shape, dtype=ms.bool)
    kept = ms.random.bernoulli(key, 1 - p, x.shape)
    return ms.multiply(ms.multiply(x, cast(kept, to_torch(x.dtype))), as_dtype(1 / (1 - p), to_torch(x.dtype))), kept


@lowers("aten._masked_scale")
def masked_scale(x, mask, scale):
    return ms.multiply(ms.multiply(x, cast(mask, to_torch(x.dtype))), as_dtype(scale, to_torch(x.dtype)))


@_draws("aten.rrelu_with_noise_functional")
def rrelu_with_noise(key, x, noise, lower=0.125, upper=1 / 3, training=False):
    """Negative elements times a number between the bounds, a random one in training; and the factors."""
    if not training:
        return ms.where(ms.less_equal(x, 0), ms.multiply(x, (lower + upper) / 2), x), noise
    factors = _scaled(_uniform(key, x.shape, to_torch(x.dtype)), lower, upper - lower)
    factors = ms.where(ms.less_equal(x, 0), factors, ms.ones_like(factors))
    return ms.multiply(x, factors), factors


# Operations that are drawn again: what a checkpointed region draws in the forward pass is drawn again in the backward.


def _lowering(operation):
    found = lowering_of(operation)
    if found is None:
        raise NotImplementedError(f"[torch] {operation} has no lowering to meshard")
    return found


@_draws("run_and_save_rng_state")
def run_and_save_rng_state(key, operation, *args, **kwargs):
    """The key, which serves as the state, and the result."""
    with keys_from(key):
        return key, _lowering(operation)(*args, **kwargs)


@lowers("run_with_rng_state")
def run_with_rng_state(key, operation, *args, **kwargs):
    with keys_from(key):
        return _lowering(operation)(*args, **kwargs)
