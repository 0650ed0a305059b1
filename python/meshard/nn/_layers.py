"""Layers: a dataclass of the parameters, a `make_` function that creates them, and a call that applies them."""

import dataclasses
import typing

from .._meshard import Tensor
from .._meshard import nn as _nn
from . import init
from ._functions import gelu, silu
from ._make import AxisRules, Initializer, Maker

__all__ = ["Attention", "Embedding", "GatedMlp", "KeyValueCache", "LayerNorm", "Linear", "Mixture", "MixtureResult",
           "Mlp", "RmsNorm", "Rotary", "make_attention", "make_cache", "make_embedding", "make_gated_mlp",
           "make_layer_norm", "make_linear", "make_mixture", "make_mlp", "make_rms_norm"]

Activation = typing.Callable[[Tensor], Tensor]
InitializerLike = Initializer | typing.Callable[..., Tensor]
_NO_RULES = AxisRules()


@dataclasses.dataclass(eq=False)
class Linear:
    """A linear layer: weight [inputs, outputs], and bias [outputs] or None."""

    weight: Tensor
    bias: Tensor | None = None

    def __call__(self, x) -> Tensor:
        """x weight + bias over the last dimension: [..., inputs] to [..., outputs], in the dtype of x."""
        return _nn.linear(self, x)


def make_linear(make: Maker, inputs: int, outputs: int, *, names: tuple[str, str] = ("embed", "hidden"),
                bias: bool = True, weight: InitializerLike = init.lecun_normal()) -> Linear:
    """Creates a Linear. `names` are those of the weight's dimensions, for AxisRules; the bias starts as zeros.

    >>> layer = ms.nn.create(None, 1, lambda make: ms.nn.make_linear(make, 4, 8))
    >>> layer(ms.ones((2, 3, 4))).shape
    (2, 3, 8)
    """
    first, second = names
    return Linear(*_nn.make_linear(make, inputs, outputs, first, second, bias, weight))


@dataclasses.dataclass(eq=False)
class Embedding:
    """An embedding: table [words, width]."""

    table: Tensor

    def __call__(self, tokens) -> Tensor:
        """Looks up rows of the table: integers [...] to [..., width]."""
        return _nn.embedding(self, tokens)

    def unembed(self, x) -> Tensor:
        """The products of x with every row of the table: [..., width] to [..., words].

        The output layer of a model that shares its weights with the embedding (Press and Wolf, 2017).
        """
        return _nn.unembed(self, x)


def make_embedding(make: Maker, words: int, width: int, table: InitializerLike = init.normal(0.02)) -> Embedding:
    """Creates an Embedding. The dimension names are "vocabulary" and "embed".

    >>> embedding = ms.nn.create(None, 1, lambda make: ms.nn.make_embedding(make, 100, 16))
    >>> embedding(ms.asarray([[3, 1, 4]])).shape
    (1, 3, 16)
    """
    return Embedding(*_nn.make_embedding(make, words, width, table))


@dataclasses.dataclass(eq=False)
class LayerNorm:
    """Layer normalization: scale and bias [width]."""

    scale: Tensor
    bias: Tensor

    def __call__(self, x, epsilon: float = 1e-5) -> Tensor:
        """(x - mean) / sqrt(variance + epsilon) * scale + bias, computed in f32 (Ba, Kiros and Hinton, 2016)."""
        return _nn.layer_norm(self, x, epsilon)


def make_layer_norm(make: Maker, width: int) -> LayerNorm:
    """Creates a LayerNorm of ones and zeros. The dimension name is "embed".

    >>> norm = ms.nn.create(None, 1, lambda make: ms.nn.make_layer_norm(make, 2))
    >>> norm(ms.asarray([[0.0, 2.0]])).round().tolist()
    [[-1.0, 1.0]]
    """
    return LayerNorm(*_nn.make_layer_norm(make, width))


@dataclasses.dataclass(eq=False)
class RmsNorm:
    """RMS normalization: scale [width]."""

    scale: Tensor

    def __call__(self, x, epsilon: float = 1e-6) -> Tensor:
        """x / sqrt(mean(x^2) + epsilon) * scale, computed in f32 (Zhang and Sennrich, 2019)."""
        return _nn.rms_norm(self, x, epsilon)


def make_rms_norm(make: Maker, width: int) -> RmsNorm:
    """Creates an RmsNorm of ones. The dimension name is "embed".

    >>> norm = ms.nn.create(None, 1, lambda make: ms.nn.make_rms_norm(make, 4))
    >>> [round(each, 4) for each in norm(ms.asarray([2.0, -2.0, 2.0, 2.0])).tolist()]
    [1.0, -1.0, 1.0, 1.0]
    """
    return RmsNorm(*_nn.make_rms_norm(make, width))


@dataclasses.dataclass(eq=False)
class Mlp:
    """A two-layer MLP, the feed-forward part of a transformer: down(activation(up(x)))."""

    up: Linear
    down: Linear

    def __call__(self, x, activation: Activation = gelu) -> Tensor:
        """Applies the MLP over the last dimension. `activation` is any element-wise function."""
        return _nn.mlp(self, x, activation)


def make_mlp(make: Maker, width: int, hidden: int, *, bias: bool = True, up: InitializerLike = init.lecun_normal(),
             down: InitializerLike = init.lecun_normal()) -> Mlp:
    """Creates an Mlp; `up` and `down` are the initializers of the weights.

    The dimension names are "embed" and "hidden". With a rule for "hidden" the first weight is split by columns and the
    second by rows, so that one all-reduce combines the parts.

    >>> mlp = ms.nn.create(None, 1, lambda make: ms.nn.make_mlp(make, 4, 16))
    >>> mlp.up.weight.shape, mlp.down.weight.shape
    ((4, 16), (16, 4))
    """
    return Mlp(*(Linear(*each) for each in _nn.make_mlp(make, width, hidden, bias, up, down)))


@dataclasses.dataclass(eq=False)
class GatedMlp:
    """A gated MLP: down(activation(gate(x)) * up(x)) (Shazeer: GLU Variants Improve Transformer, 2020)."""

    gate: Linear
    up: Linear
    down: Linear

    def __call__(self, x, activation: Activation = silu) -> Tensor:
        """Applies the MLP over the last dimension. `activation` is any element-wise function."""
        return _nn.gated_mlp(self, x, activation)


def make_gated_mlp(make: Maker, width: int, hidden: int, *, bias: bool = False,
                   up: InitializerLike = init.lecun_normal(), down: InitializerLike = init.lecun_normal()) -> GatedMlp:
    """Creates a GatedMlp; `up` is the initializer of two weights. The dimension names are those of make_mlp().

    >>> mlp = ms.nn.create(None, 1, lambda make: ms.nn.make_gated_mlp(make, 8, 32))
    >>> mlp(ms.ones((2, 8))).shape
    (2, 8)
    """
    return GatedMlp(*(Linear(*each) for each in _nn.make_gated_mlp(make, width, hidden, bias, up, down)))


@dataclasses.dataclass(frozen=True)
class Rotary:
    """Rotary position embedding (Su et al.: RoFormer, 2021).

    In each head the elements i and i + size / 2 are rotated as a pair by the angle position * theta^(-2 i / size).
    """

    theta: float = dataclasses.field(default=10000.0, metadata={"static": True})

    def __call__(self, x, positions) -> Tensor:
        """Applies it to x [batch, time, heads, size], with integers [time] or [batch, time]. Computed in f32.

        Raises InvalidArgumentError if the size is odd or the positions do not fit.
        """
        return _nn.rotated(self.theta, x, positions)


@dataclasses.dataclass(eq=False)
class KeyValueCache:
    """Keys and values of earlier positions: [batch, key_heads, length, size] each.

    A head's positions are contiguous when they are read. `length` is the maximum number of positions.
    """

    key: Tensor
    value: Tensor


@dataclasses.dataclass(eq=False)
class Attention:
    """Multi-head attention over a sequence.

    query is [width, heads, size], key and value [width, key_heads, size], out [heads, size, width]. The biases, if any,
    are [heads, size], twice [key_heads, size], and [width]. With fewer key heads than heads, groups of query heads
    share one (Ainslie et al.: GQA, 2023). key and value of cross-attention are [memory_width, key_heads, size]. The
    scales of normalized queries and keys, if any, are [size].
    """

    query: Tensor
    key: Tensor
    value: Tensor
    out: Tensor
    query_bias: Tensor | None = None
    key_bias: Tensor | None = None
    value_bias: Tensor | None = None
    out_bias: Tensor | None = None
    query_scale: Tensor | None = None
    key_scale: Tensor | None = None

    def __call__(self, x, *, causal: bool = True, rotary: Rotary | None = None, qk_norm: str = "layer",
                 scale: float | None = None, left_window: int | None = None, right_window: int | None = None, mask=None,
                 bias=None, soft_cap: float | None = None) -> Tensor:
        """Attention from x [batch, time, width] to the same shape.

        With `causal`, a position attends only to itself and earlier positions. `rotary` is a Rotary or None. Scores are
        scaled by `scale`, by default 1 / sqrt(size), and their softmax is computed in f32 (Vaswani et al., 2017).

        `qk_norm` is how queries and keys are normalized if there are scales for them: "layer" or "rms". Windows,
        `mask` and `bias` are those of dot_product_attention(). `soft_cap` limits the scaled products before bias and
        mask: soft_cap * tanh(product / soft_cap).

        Raises InvalidArgumentError as dot_product_attention().
        """
        return _nn.attention(self, x, (causal, rotary and rotary.theta, qk_norm, scale, left_window, right_window, mask,
                                       bias, soft_cap, 0))

    def cross(self, x, memory, *, causal: bool = False, rotary: Rotary | None = None, qk_norm: str = "layer",
              scale: float | None = None, left_window: int | None = None, right_window: int | None = None, mask=None,
              bias=None, soft_cap: float | None = None) -> Tensor:
        """Cross-attention from x [batch, time, width] to memory [batch, keys, memory width].

        The result has the shape of x; options as for a call. Raises InvalidArgumentError for another width of the
        memory.
        """
        return _nn.cross_attention(self, x, memory, (causal, rotary and rotary.theta, qk_norm, scale, left_window,
                                                     right_window, mask, bias, soft_cap, 0))

    def with_cache(self, x, cache: KeyValueCache, start, *, causal: bool = True, rotary: Rotary | None = None,
                   read: int = 0, qk_norm: str = "layer", scale: float | None = None, left_window: int | None = None,
                   right_window: int | None = None, mask=None, bias=None,
                   soft_cap: float | None = None) -> tuple[Tensor, KeyValueCache]:
        """Attention of new positions to themselves and to those in the cache: (result, new cache).

        Row b of x, [batch, time, width], contains the positions start[b], start[b] + 1, ... of its sequence; `start` is
        i32 [batch], so that rows may have different lengths. If the cache is donated, only the new positions are
        written. `read` is the number of the cache's positions, from the first one, that are read; 0: all. The time of a
        step grows with this number, not with the cache's length. Each number is another program, so round it up, for
        example to powers of two. The other options are those of a call.

        Positions beyond the cache's length are lost, and positions beyond `read` are not attended to.

        Raises InvalidArgumentError if start does not have one integer per row, or if the cache does not have `read`
        positions.
        """
        result, parts = _nn.attention_with_cache(self, x, cache, start, (
            causal, rotary and rotary.theta, qk_norm, scale, left_window, right_window, mask, bias, soft_cap, read))
        return result, KeyValueCache(*parts)


def make_attention(make: Maker, width: int, *, heads: int = 1, key_heads: int = 0, size: int = 0, bias: bool = False,
                   memory_width: int = 0, qk_norm: bool = False, weight: InitializerLike = init.lecun_normal(),
                   out: InitializerLike = init.lecun_normal()) -> Attention:
    """Creates an Attention. By default there are as many key heads as heads, and a head's size is width / heads.

    The dimension names are "embed", "heads", "key_heads", and "head" for a head's elements. Give "key_heads" the same
    rule as "heads" unless the mesh axis is larger than the number of key heads. `weight` and `out` are initializers.
    `memory_width` is that of cross-attention, by default the width; with `qk_norm` there are scales of queries and
    keys, which start as ones.

    Raises InvalidArgumentError if the heads do not divide the width, or key heads the heads.

    >>> attention = ms.nn.create(None, 1, lambda make: ms.nn.make_attention(make, 8, heads=2))
    >>> attention.query.shape, attention(ms.ones((1, 5, 8))).shape
    ((8, 2, 4), (1, 5, 8))
    """
    return Attention(*_nn.make_attention(make, width, heads, key_heads, size, bias, memory_width,
                                         qk_norm, weight, out))


def make_cache(rules: AxisRules | None, params: Attention, batch: int, length: int) -> KeyValueCache:
    """An empty KeyValueCache for an Attention, on its devices.

    Batch and heads are sharded by the rules (AxisRules or None) for "batch" and "key_heads".
    """
    return KeyValueCache(*_nn.make_cache(_NO_RULES if rules is None else rules, params, batch, length))


class MixtureResult(typing.NamedTuple):
    """The result of a mixture, and a loss that balances the experts, to be added to the model's."""

    value: Tensor
    balance_loss: Tensor


@dataclasses.dataclass(eq=False)
class Mixture:
    """A mixture of experts, MLPs of which each token uses a few.

    router is [width, experts], up [experts, width, hidden], down [experts, hidden, width].
    """

    router: Tensor
    up: Tensor
    down: Tensor

    def __call__(self, x, *, used: int = 2, capacity: float = 1.25, activation: Activation = gelu,
                 rules: AxisRules | None = None) -> MixtureResult:
        """Applies the mixture to x [batch, time, width], giving a MixtureResult whose value has the same shape.

        Each token uses `used` experts. The value is the sum of their outputs, weighted by the router's probabilities;
        these are normalized to sum to 1 if several experts are used (GShard), and unchanged for one (Switch). The
        balance loss is 1 if all experts are used equally and larger if not (Fedus, Zoph and Shazeer: Switch
        Transformers, 2022, equations 2 and 4).

        Each row of the batch is a group: its tokens take an expert's places in time order, all first choices before the
        second ones. An expert has capacity * time * used / experts places in a row, rounded up; further tokens skip it.
        Tokens are dispatched and combined by products with [batch, time, experts, places] (Lepikhin et al.: GShard,
        2021). With `rules`, the inputs and outputs of the experts are marked, so that tokens move to the experts'
        devices.

        Raises InvalidArgumentError unless 1 <= used <= experts.
        """
        return MixtureResult(*_nn.mixture(self, x, used, capacity, activation, _NO_RULES if rules is None else rules))


def make_mixture(make: Maker, width: int, hidden: int, experts: int,
                 weight: InitializerLike = init.lecun_normal()) -> Mixture:
    """Creates a Mixture. The dimension names are "embed", "expert", "hidden".

    With a rule for "expert" each device holds some of the experts.
    """
    return Mixture(*_nn.make_mixture(make, width, hidden, experts, weight))
