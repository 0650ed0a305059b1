"""Products of matrices and vectors."""

import torch

import meshard as ms

from .._dtypes import to_torch
from .._table import lowering_of, lowers
from ._helpers import as_dtype, cast, is_number, wide


@lowers("aten.mm", "aten.bmm", "aten.mv", "aten.dot", "aten.matmul")
def matmul(a, b):
    return ms.matmul(a, b)


@lowers("aten.mm.dtype", "aten.bmm.dtype")
def matmul_in_dtype(a, b, out_dtype):
    return ms.matmul(cast(a, out_dtype), cast(b, out_dtype))


@lowers("aten.vdot")
def vdot(a, b):
    return ms.matmul(ms.conj(a) if to_torch(a.dtype).is_complex else a, b)


@lowers("aten._int_mm")
def int_mm(a, b):
    return ms.dot_general(a, b, lhs_contracting=(1,), rhs_contracting=(0,), result_dtype=ms.int32)


def _scaled(x, scale):
    """A matrix times one scale, or one for each row or column."""
    fits = scale.ndim == 2 and all(n in (1, m) for n, m in zip(scale.shape, x.shape))
    if not fits and scale.shape not in ((), (1,)):
        raise NotImplementedError(f"[torch] scaled_mm with scales {tuple(scale.shape)} of a matrix {tuple(x.shape)}")
    return cast(x, torch.float32) * cast(scale, torch.float32)


@lowers("aten._scaled_mm")
def scaled_mm(a, b, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False):
    if scale_result is not None:
        raise NotImplementedError("[torch] scale_result of _scaled_mm is not supported: scale the result")
    made = ms.matmul(_scaled(a, scale_a), _scaled(b, scale_b))
    made = made if bias is None else made + cast(bias, torch.float32)
    return cast(made, out_dtype or to_torch(a.dtype))


@lowers("aten._scaled_mm_v2")
def scaled_mm_with_recipes(a, b, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, out_dtype,
                           contraction_dim=(), use_fast_accum=False):
    """Recipes 0 and 1 are one scale, and one for each row of `a` or column of `b`."""
    if {*recipe_a, *recipe_b} - {0, 1} or any((*swizzle_a, *swizzle_b, *contraction_dim)) or len(scale_a) != 1 \
            or len(scale_b) != 1:
        raise NotImplementedError(f"[torch] scaled_mm with recipes {list(recipe_a)} and {list(recipe_b)}, swizzles "
                                  f"{list(swizzle_a)} and {list(swizzle_b)}, contraction_dim {list(contraction_dim)}")
    return scaled_mm(a, b, scale_a[0], scale_b[0], bias, out_dtype=out_dtype)


def _added(bias, product, beta, alpha):
    """`beta * bias + alpha * product`; the bias is not read if beta is 0, not even its NaN."""
    dtype = to_torch(product.dtype)
    if not is_number(alpha, 1):
        product = product * as_dtype(alpha, dtype)
    if is_number(beta, 0):
        return product
    return product + (bias if is_number(beta, 1) else bias * as_dtype(beta, dtype))


@lowers("aten.addmm", "aten.addmv")
def addmm(bias, a, b, beta=1, alpha=1):
    dtype = to_torch(a.dtype)
    if dtype not in (torch.float16, torch.bfloat16) or is_number(alpha, 1) and is_number(beta, 1):
        return _added(bias, ms.matmul(a, b), beta, alpha)
    # Rounded once, as in PyTorch. A layer's bias, above, keeps the narrow dtype for what devices exchange of products.
    product = ms.dot_general(a, b, lhs_contracting=(1,), rhs_contracting=(0,), result_dtype=ms.float32)
    return cast(_added(cast(bias, torch.float32), product, beta, alpha), dtype)


@lowers("aten.baddbmm")
def baddbmm(bias, a, b, beta=1, alpha=1):
    return wide(lambda bias, a, b: _added(bias, ms.matmul(a, b), beta, alpha))(bias, a, b)


@lowers("aten.addmm.dtype", "aten.baddbmm.dtype")
def addmm_in_dtype(bias, a, b, out_dtype, beta=1, alpha=1):
    return _added(cast(bias, out_dtype), matmul_in_dtype(a, b, out_dtype), beta, alpha)


@lowers("aten.addbmm")
def addbmm(bias, a, b, beta=1, alpha=1):
    def computed(bias, a, b):
        return _added(bias, ms.dot_general(a, b, lhs_contracting=(0, 2), rhs_contracting=(0, 1)), beta, alpha)

    return wide(computed)(bias, a, b)


@lowers("aten._addmm_activation")
def addmm_activation(bias, a, b, beta=1, alpha=1, use_gelu=False):
    from .elementwise import gelu, relu

    made = addmm(bias, a, b, beta, alpha)
    return gelu(made) if use_gelu else relu(made)


@lowers("aten.linear")
def linear(x, weight, bias=None):
    product = ms.dot_general(x, weight, lhs_contracting=(x.ndim - 1,), rhs_contracting=(weight.ndim - 1,))
    return product if bias is None else product + bias


@lowers("aten.linear_backward")
def linear_backward(x, gradient, weight, output_mask):
    """The gradients of linear() with a matrix, for eager programs; None for gradients that the mask excludes."""
    leading = tuple(range(gradient.ndim - 1))
    of_x = of_weight = of_bias = None
    if output_mask[0]:
        of_x = ms.dot_general(gradient, weight, lhs_contracting=(gradient.ndim - 1,), rhs_contracting=(0,))
    if output_mask[1]:
        of_weight = ms.dot_general(gradient, x, lhs_contracting=leading, rhs_contracting=leading)
    if output_mask[2]:
        of_bias = lowering_of("aten.sum.dim_IntList")(gradient, leading) if leading else gradient
    return of_x, of_weight, of_bias


@lowers("aten._trilinear")
def trilinear(a, b, c, expand1, expand2, expand3, sumdim, unroll_dim=1):
    """The sum over `sumdim` of the product of three tensors, each with dimensions of size 1 inserted at `expand`."""
    product = None
    for each, expanded in ((a, expand1), (b, expand2), (c, expand3)):
        for dim in sorted(expanded):
            each = ms.expand_dims(each, axis=dim)
        product = each if product is None else product * each
    return ms.sum(product, axis=tuple(sumdim)) if len(sumdim) else product


@lowers("aten._cdist_forward")
def cdist_forward(a, b, p, compute_mode=None):
    """Distances [..., n, m] between the rows of a [..., n, d] and of b [..., m, d]."""
    difference = ms.abs(ms.expand_dims(a, axis=-2) - ms.expand_dims(b, axis=-3))
    return _norm_of_last(difference, p)


def _norm_of_last(x, p):
    """The p-norm of non-negative elements along the last dimension; 0 if it is empty."""
    if not x.shape[-1]:
        return ms.zeros(x.shape[:-1], dtype=x.dtype)
    if p == 0:
        return ms.sum(cast(ms.not_equal(x, ms.zeros_like(x)), to_torch(x.dtype)), axis=-1)
    if p == 1:
        return ms.sum(x, axis=-1)
    if p == 2:
        return ms.sqrt(ms.sum(x * x, axis=-1))
    if p == float("inf"):
        return ms.max(x, axis=-1)
    exponent = as_dtype(p, to_torch(x.dtype))
    return ms.pow(ms.sum(ms.pow(x, exponent), axis=-1), as_dtype(1 / p, to_torch(x.dtype)))


@lowers("aten._cdist_backward")
def cdist_backward(grad, a, b, p, distances):
    """The gradient of the first operand of cdist; 0 where a distance is 0."""
    difference = ms.expand_dims(a, axis=-2) - ms.expand_dims(b, axis=-3)
    grad, distances = ms.expand_dims(grad, axis=-1), ms.expand_dims(distances, axis=-1)
    return ms.sum(_norm_slope(difference, distances, p) * grad, axis=-2)


def _norm_slope(difference, norm, p):
    """The derivative of a p-norm with respect to each element; 0 where the norm is 0."""
    dtype = to_torch(difference.dtype)
    zero = ms.zeros_like(difference)
    if p == 0:
        return zero
    sign = ms.sign(difference)
    if p == 1:
        return sign + ms.zeros_like(norm)
    if p == float("inf"):
        largest = ms.equal(ms.abs(difference), norm)
        return ms.where(largest, sign, zero)
    inside = ms.not_equal(norm, ms.zeros_like(norm))
    safe = ms.where(inside, norm, ms.ones_like(norm))
    if p == 2:
        slope = difference / safe
    else:
        nonzero = ms.not_equal(difference, zero)
        size = ms.where(nonzero, ms.abs(difference), ms.ones_like(difference))
        powers = ms.pow(size / safe, as_dtype(p - 1, dtype))
        slope = ms.where(nonzero, sign * powers, zero)
    return ms.where(inside, slope, zero)


@lowers("aten._pdist_forward")
def pdist_forward(x, p=2.0):
    """Distances between all pairs of rows of x [n, d], as a vector of n (n - 1) / 2."""
    first, second = _pairs(x.shape[0])
    if not len(first):
        return ms.zeros((0,), dtype=x.dtype)
    return _norm_of_last(ms.abs(ms.take(x, first, axis=0) - ms.take(x, second, axis=0)), p)


def _pairs(n):
    pairs = torch.triu_indices(n, n, 1)
    return pairs[0].numpy(), pairs[1].numpy()


@lowers("aten._pdist_backward")
def pdist_backward(grad, x, p, distances):
    first, second = _pairs(x.shape[0])
    if not len(first):
        return ms.zeros_like(x)
    difference = ms.take(x, first, axis=0) - ms.take(x, second, axis=0)
    each = _norm_slope(difference, ms.expand_dims(distances, axis=-1), p) * ms.expand_dims(grad, axis=-1)
    _, pullback = ms.vjp(lambda y: ms.take(y, first, axis=0) - ms.take(y, second, axis=0), x)
    return pullback(each)[0]
