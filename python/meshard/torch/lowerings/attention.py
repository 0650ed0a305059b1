"""Scaled dot-product attention in the forms that PyTorch chooses from: one computation for all of them."""

import math

import torch

import meshard as ms

from .._dtypes import to_torch
from .._table import lowers
from ._helpers import cast


def _no_dropout(dropout_p):
    if dropout_p:
        raise NotImplementedError("[torch] dropout_p of fused attention is not supported: use "
                                  "torch.nn.attention.SDPBackend.MATH")


class _Attention:
    """Attention of query [batch, heads, queries, size] over key and value [batch, key heads, keys, size].

    Computed in float32 for narrower dtypes. Adjacent heads share a key head.
    """

    def __init__(self, query, key, value, mask, is_causal, scale):
        self.dtype = to_torch(query.dtype)
        self.compute = torch.float64 if self.dtype == torch.float64 else torch.float32
        self.scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
        self.shared = query.shape[1] // key.shape[1]
        self.query, self.key, self.value = (self._grouped(query), self._keys(key), self._keys(value))
        self.mask, self.is_causal = mask, is_causal

    def _grouped(self, x):
        batch, heads, *rest = x.shape
        return ms.reshape(cast(x, self.compute), (batch, heads // self.shared, self.shared, *rest))

    def _keys(self, x):
        return cast(x, self.compute)

    def _whole(self, x):
        batch, heads, shared, *rest = x.shape
        return ms.reshape(x, (batch, heads * shared, *rest))

    def scores(self):
        """[batch, key heads, shared, queries, keys]"""
        scores = ms.einsum("bhgqd,bhkd->bhgqk", self.query * self.scale, self.key)
        lowest = ms.full_like(scores, -math.inf)
        if self.is_causal:
            queries, keys = scores.shape[-2:]
            scores = ms.where(ms.tril(ms.ones((queries, keys), dtype=ms.bool)), scores, lowest)
        if self.mask is not None:
            batch, heads, shared, *rest = scores.shape
            mask = ms.broadcast_to(self.mask, (batch, heads * shared, *rest))
            mask = ms.reshape(mask, scores.shape)
            if to_torch(mask.dtype) == torch.bool:
                scores = ms.where(mask, scores, lowest)
            else:
                scores = scores + cast(mask, self.compute)
        return scores

    def forward(self):
        """The result, and the logarithms of the sums of exponentials [batch, heads, queries]."""
        scores = self.scores()
        largest = ms.max(scores, axis=-1, keepdims=True)
        # A query without keys has the result 0.
        largest = ms.where(ms.equal(largest, ms.full_like(largest, -math.inf)), ms.zeros_like(largest), largest)
        exponentials = ms.exp(scores - largest)
        total = ms.sum(exponentials, axis=-1, keepdims=True)
        empty = ms.equal(total, ms.zeros_like(total))
        weights = exponentials / ms.where(empty, ms.ones_like(total), total)
        made = ms.einsum("bhgqk,bhkd->bhgqd", weights, self.value)
        sums = (largest + ms.log(total))[..., 0]
        return cast(self._whole(made), self.dtype), self._whole(sums)

    def backward(self, grad, result, sums):
        """The gradients of query, key, value and scores."""
        grad, result = self._grouped(grad), self._grouped(result)
        sums = ms.expand_dims(self._grouped(sums), axis=-1)
        # A query without keys has a sum of -inf, and no gradient.
        finite = ms.isfinite(sums)
        weights = ms.where(finite, ms.exp(self.scores() - ms.where(finite, sums, ms.zeros_like(sums))), 0.0)
        of_weights = ms.einsum("bhgqd,bhkd->bhgqk", grad, self.value)
        of_scores = weights * (of_weights - ms.sum(grad * result, axis=-1, keepdims=True))
        of_query = ms.einsum("bhgqk,bhkd->bhgqd", of_scores, self.key) * self.scale
        of_key = ms.einsum("bhgqk,bhgqd->bhkd", of_scores, self.query) * self.scale
        of_value = ms.einsum("bhgqk,bhgqd->bhkd", weights, grad)
        return (cast(self._whole(of_query), self.dtype), cast(of_key, self.dtype), cast(of_value, self.dtype),
                self._whole(of_scores))


@lowers("aten._scaled_dot_product_flash_attention_for_cpu")
def flash_attention_for_cpu(query, key, value, dropout_p=0.0, is_causal=False, attn_mask=None, scale=None):
    _no_dropout(dropout_p)
    return _Attention(query, key, value, attn_mask, is_causal, scale).forward()


@lowers("aten._scaled_dot_product_flash_attention_for_cpu_backward")
def flash_attention_for_cpu_backward(grad, query, key, value, result, sums, dropout_p, is_causal, attn_mask=None,
                                     scale=None):
    _no_dropout(dropout_p)
    return _Attention(query, key, value, attn_mask, is_causal, scale).backward(grad, result, sums)[:3]


def _seeds():
    return ms.zeros((), dtype=ms.int64), ms.zeros((), dtype=ms.int64)


@lowers("aten._scaled_dot_product_efficient_attention")
def efficient_attention(query, key, value, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, scale=None):
    _no_dropout(dropout_p)
    made, sums = _Attention(query, key, value, attn_bias, is_causal, scale).forward()
    if not compute_log_sumexp:
        sums = ms.zeros((*query.shape[:2], 0), dtype=sums.dtype)
    return (made, sums, *_seeds())


@lowers("aten._scaled_dot_product_efficient_attention_backward")
def efficient_attention_backward(grad, query, key, value, attn_bias, result, sums, philox_seed, philox_offset,
                                 dropout_p, grad_input_mask, is_causal=False, scale=None):
    _no_dropout(dropout_p)
    *made, of_scores = _Attention(query, key, value, attn_bias, is_causal, scale).backward(
        grad, result, sums[..., :query.shape[2]])
    of_bias = None
    if grad_input_mask[3] and attn_bias is not None:
        added = of_scores.ndim - attn_bias.ndim
        axes = tuple(range(added)) + tuple(
            added + d for d, n in enumerate(attn_bias.shape) if n == 1 and of_scores.shape[added + d] != 1)
        of_bias = cast(ms.reshape(ms.sum(of_scores, axis=axes), attn_bias.shape), to_torch(attn_bias.dtype))
    return (*(each if wanted else None for each, wanted in zip(made, grad_input_mask)), of_bias)


@lowers("aten._scaled_dot_product_flash_attention")
def flash_attention(query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, scale=None):
    _no_dropout(dropout_p)
    if return_debug_mask:
        raise NotImplementedError("[torch] return_debug_mask of _scaled_dot_product_flash_attention is not supported")
    made, sums = _Attention(query, key, value, None, is_causal, scale).forward()
    return (made, sums, None, None, query.shape[2], key.shape[2], *_seeds(), ms.zeros((0,), dtype=query.dtype))


@lowers("aten._scaled_dot_product_flash_attention_backward")
def flash_attention_backward(grad, query, key, value, result, sums, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p,
                             is_causal, philox_seed, philox_offset, scale=None):
    _no_dropout(dropout_p)
    return _Attention(query, key, value, None, is_causal, scale).backward(grad, result, sums)[:3]
