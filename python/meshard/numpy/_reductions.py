"""Sums, means, extremes and quantiles along dimensions, also without NaN; cumulative ones."""

import numpy

from .._array_api import statistical
from .._array_api.common import axes_of, ops
from .._array_api.creation import as_tensor
from .._array_api.data_types import result_type
from ._creation import floating

__all__ = ["all", "amax", "amin", "any", "argmax", "argmin", "average", "corrcoef", "count_nonzero", "cov", "cumprod",
           "cumsum", "cumulative_prod", "cumulative_sum", "max", "mean", "median", "min", "nanargmax", "nanargmin",
           "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod",
           "nanquantile", "nanstd", "nansum", "nanvar", "percentile", "prod", "ptp", "quantile", "std", "sum", "var"]


def _in_dtype(a, dtype):
    a = as_tensor(a)
    return a if dtype is None else ops.astype(a, dtype)


def _kept(a, where, neutral):
    """`a` with a neutral number where the mask is false."""
    return a if where is None else ops.where(as_tensor(where), a, as_tensor(neutral))


def sum(a, axis=None, dtype=None, keepdims=False, initial=None, where=None):
    """The sum along dimensions, by default of all elements."""
    made = ops.sum(_kept(_in_dtype(a, dtype), where, 0), axis, keepdims)
    made = made if dtype is None else ops.astype(made, dtype)
    return made if initial is None else made + initial


def prod(a, axis=None, dtype=None, keepdims=False, initial=None, where=None):
    """The product along dimensions, by default of all elements."""
    made = ops.prod(_kept(_in_dtype(a, dtype), where, 1), axis, keepdims)
    made = made if dtype is None else ops.astype(made, dtype)
    return made if initial is None else made * initial


def _extreme(op, pair, a, axis, keepdims, initial, where):
    a = as_tensor(a)
    if where is not None:
        if initial is None:
            raise ValueError("an extreme with where= needs initial=, which an empty selection gives")
        a = ops.where(as_tensor(where), a, as_tensor(initial))
    if initial is None:
        return op(a, axis, keepdims)
    if a.size == 0:
        return ops.broadcast_to(ops.astype(as_tensor(initial), a.dtype), ops.sum(a, axis, keepdims).shape)
    return pair(op(a, axis, keepdims), initial)


def max(a, axis=None, keepdims=False, initial=None, where=None):
    """The largest element along dimensions; NaN if any is NaN."""
    return _extreme(ops.max, ops.maximum, a, axis, keepdims, initial, where)


def min(a, axis=None, keepdims=False, initial=None, where=None):
    """The smallest element along dimensions; NaN if any is NaN."""
    return _extreme(ops.min, ops.minimum, a, axis, keepdims, initial, where)


amax, amin = max, min


def ptp(a, axis=None, keepdims=False):
    """The largest minus the smallest element."""
    return max(a, axis, keepdims) - min(a, axis, keepdims)


def all(a, axis=None, keepdims=False, where=None):
    """Whether all elements along dimensions are true, or not zero."""
    return ops.all(_kept(as_tensor(a), where, True), axis, keepdims)


def any(a, axis=None, keepdims=False, where=None):
    """Whether any element along dimensions is true, or not zero."""
    return ops.any(_kept(as_tensor(a), where, False), axis, keepdims)


def count_nonzero(a, axis=None, keepdims=False):
    """The number of elements along dimensions that are not zero."""
    return ops.count_nonzero(as_tensor(a), axis, keepdims)


def argmax(a, axis=None, keepdims=False):
    """The index of the largest element, of the first of equal ones; without a dimension in row-major order."""
    return ops.argmax(as_tensor(a), axis, keepdims)


def argmin(a, axis=None, keepdims=False):
    """The index of the smallest element, of the first of equal ones; without a dimension in row-major order."""
    return ops.argmin(as_tensor(a), axis, keepdims)


def mean(a, axis=None, dtype=None, keepdims=False, where=None):
    """The mean along dimensions, by default of all elements."""
    a = floating(a) if dtype is None else _in_dtype(a, dtype)
    if where is None:
        return ops.mean(a, axis, keepdims)
    count = sum(ops.broadcast_to(as_tensor(where), a.shape), axis, a.dtype, keepdims)
    return sum(a, axis, None, keepdims, where=where) / count


def var(a, axis=None, dtype=None, ddof=0, keepdims=False):
    """The variance: the mean square distance to the mean, divided by n - ddof."""
    return ops.var(floating(a) if dtype is None else _in_dtype(a, dtype), axis, ddof, keepdims)


def std(a, axis=None, dtype=None, ddof=0, keepdims=False):
    """The standard deviation: the square root of the variance."""
    return ops.std_dev(floating(a) if dtype is None else _in_dtype(a, dtype), axis, ddof, keepdims)


def average(a, axis=None, weights=None, returned=False, keepdims=False):
    """The mean with weights: of the shape of `a`, or a vector along `axis`. `returned`: also their sum."""
    a = floating(a)
    if weights is None:
        made = ops.mean(a, axis, keepdims)
        total = ops.full(made.shape, a.size / (made.size or 1), made.dtype)
    else:
        weights = as_tensor(weights)
        if weights.shape != a.shape:
            if weights.ndim != 1 or not isinstance(axis, int) or weights.shape[0] != a.shape[axis]:
                raise ValueError(f"weights of shape {weights.shape} fit neither {a.shape} nor its dimension {axis}")
            shape = [1] * a.ndim
            shape[axis] = -1
            weights = ops.broadcast_to(ops.reshape(weights, shape), a.shape)
        dtype = result_type(a, floating(weights))
        weights = ops.astype(weights, dtype)
        total = ops.sum(weights, axis, keepdims)
        made = ops.sum(a * weights, axis, keepdims) / total
    return (made, total) if returned else made


def _flat(a, axis):
    a = as_tensor(a)
    return (ops.flatten(a), 0) if axis is None else (a, axis)


def cumsum(a, axis=None, dtype=None):
    """The sums of the first elements along a dimension; without one in row-major order."""
    a, axis = _flat(_in_dtype(a, dtype), axis)
    return ops.cumulative_sum(a, axis)


def cumprod(a, axis=None, dtype=None):
    """The products of the first elements along a dimension; without one in row-major order."""
    a, axis = _flat(_in_dtype(a, dtype), axis)
    return ops.cumulative_prod(a, axis)


def cumulative_sum(x, axis=None, dtype=None, include_initial=False):
    """`cumsum`; with `include_initial` beginning with 0."""
    return statistical.cumulative_sum(x, axis=axis, dtype=dtype, include_initial=include_initial)


def cumulative_prod(x, axis=None, dtype=None, include_initial=False):
    """`cumprod`; with `include_initial` beginning with 1."""
    return statistical.cumulative_prod(x, axis=axis, dtype=dtype, include_initial=include_initial)


# --- without NaN -------------------------------------------------------------------------------


def _numbers(a):
    """A tensor and where it is not NaN; None for dtypes that have no NaN."""
    a = as_tensor(a)
    return a, None if a.dtype.kind in "biu" else ops.logical_not(ops.isnan(a))


def nansum(a, axis=None, dtype=None, keepdims=False):
    """`sum` without NaN."""
    a, is_number = _numbers(a)
    return sum(a, axis, dtype, keepdims, where=is_number)


def nanprod(a, axis=None, dtype=None, keepdims=False):
    """`prod` without NaN."""
    a, is_number = _numbers(a)
    return prod(a, axis, dtype, keepdims, where=is_number)


def nancumsum(a, axis=None, dtype=None):
    """`cumsum` with NaN as 0."""
    a, is_number = _numbers(a)
    return cumsum(_kept(a, is_number, 0), axis, dtype)


def nancumprod(a, axis=None, dtype=None):
    """`cumprod` with NaN as 1."""
    a, is_number = _numbers(a)
    return cumprod(_kept(a, is_number, 1), axis, dtype)


def nanmean(a, axis=None, dtype=None, keepdims=False):
    """`mean` without NaN; NaN where there is nothing else."""
    a, is_number = _numbers(a)
    return mean(a, axis, dtype, keepdims, where=is_number)


def nanvar(a, axis=None, dtype=None, ddof=0, keepdims=False):
    """`var` without NaN."""
    a, is_number = _numbers(a)
    if is_number is None:
        return var(a, axis, dtype, ddof, keepdims)
    count = sum(is_number, axis, result_type(a, "float32") if a.dtype.kind != "c" else "float32", True)
    distance = ops.where(is_number, a - nanmean(a, axis, dtype, True), ops.zeros((), a.dtype))
    squares = ops.square(ops.abs(distance)) if a.dtype.kind == "c" else ops.square(distance)
    made = ops.sum(squares, axis, True) / ops.astype(count - ddof, squares.dtype)
    made = ops.where(ops.greater(count, ddof), made, as_tensor(numpy.nan))
    return made if keepdims else ops.squeeze(made, axes_of(axis, a.ndim))


def nanstd(a, axis=None, dtype=None, ddof=0, keepdims=False):
    """`std` without NaN."""
    return ops.sqrt(nanvar(a, axis, dtype, ddof, keepdims))


def _nan_extreme(op, a, axis, keepdims, neutral):
    a, is_number = _numbers(a)
    if is_number is None:
        return op(a, axis, keepdims)
    made = op(ops.where(is_number, a, ops.full((), neutral, a.dtype)), axis, keepdims)
    return ops.where(ops.any(is_number, axis, keepdims), made, ops.full((), numpy.nan, a.dtype))


def nanmax(a, axis=None, keepdims=False):
    """`max` without NaN; NaN where there is nothing else."""
    return _nan_extreme(ops.max, a, axis, keepdims, -numpy.inf)


def nanmin(a, axis=None, keepdims=False):
    """`min` without NaN; NaN where there is nothing else."""
    return _nan_extreme(ops.min, a, axis, keepdims, numpy.inf)


def nanargmax(a, axis=None, keepdims=False):
    """`argmax` without NaN; 0 where there is nothing else."""
    a, is_number = _numbers(a)
    return argmax(_kept(a, is_number, -numpy.inf), axis, keepdims)


def nanargmin(a, axis=None, keepdims=False):
    """`argmin` without NaN; 0 where there is nothing else."""
    a, is_number = _numbers(a)
    return argmin(_kept(a, is_number, numpy.inf), axis, keepdims)


# --- quantiles ---------------------------------------------------------------------------------

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(a, q, axis, keepdims, method, skip_nan):
    if method not in _METHODS:
        raise ValueError(f"unknown method {method!r} of a quantile: use one of {', '.join(_METHODS)}")
    a = floating(a)
    q = ops.astype(as_tensor(q), a.dtype)
    axes = axes_of(axis, a.ndim)
    kept = tuple(i for i in range(a.ndim) if i not in axes)
    rows = ops.reshape(ops.permute_dims(a, kept + axes), (*(a.shape[i] for i in kept), -1))
    length = rows.shape[-1]
    is_nan = ops.isnan(rows)
    rows = ops.sort(rows, -1)  # NaN is last
    if skip_nan:
        last = ops.astype(length - 1 - ops.count_nonzero(is_nan, -1, True), a.dtype)
        last = ops.maximum(last, 0)
    else:
        last = ops.full((*rows.shape[:-1], 1), length - 1, a.dtype)
    places = ops.reshape(q, (1,) * (rows.ndim - 1) + (-1,)) * last  # [..., number of q]
    low, high = ops.floor(places), ops.ceil(places)
    at = lambda place: ops.take_along_axis(rows, ops.astype(ops.clip(place, 0, length - 1), "int32"), -1)
    if method == "lower":
        made = at(low)
    elif method == "higher":
        made = at(high)
    elif method == "nearest":
        made = at(ops.round(places))
    else:
        weight = as_tensor(0.5) if method == "midpoint" else places - low
        weight = ops.astype(weight, a.dtype)
        first, second = at(low), at(high)
        made = ops.where(ops.equal(first, second), first, first * (1 - weight) + second * weight)
    if not skip_nan:
        made = ops.where(ops.any(is_nan, -1, True), ops.full((), numpy.nan, a.dtype), made)
    made = ops.moveaxis(made, (made.ndim - 1,), (0,))
    if keepdims:
        made = ops.reshape(made, (made.shape[0], *(1 if i in axes else n for i, n in enumerate(a.shape))))
    return ops.reshape(made, (*q.shape, *made.shape[1:]))


def quantile(a, q, axis=None, method="linear", keepdims=False):
    """The values that a part q, between 0 and 1, of the elements does not exceed; NaN if any is NaN."""
    return _quantile(a, q, axis, keepdims, method, False)


def percentile(a, q, axis=None, method="linear", keepdims=False):
    """`quantile` of q / 100."""
    return quantile(a, as_tensor(q) / 100, axis, method, keepdims)


def median(a, axis=None, keepdims=False):
    """The middle element, or the mean of both middle ones."""
    return quantile(a, 0.5, axis, keepdims=keepdims)


def nanquantile(a, q, axis=None, method="linear", keepdims=False):
    """`quantile` without NaN."""
    return _quantile(a, q, axis, keepdims, method, True)


def nanpercentile(a, q, axis=None, method="linear", keepdims=False):
    """`percentile` without NaN."""
    return nanquantile(a, as_tensor(q) / 100, axis, method, keepdims)


def nanmedian(a, axis=None, keepdims=False):
    """`median` without NaN."""
    return nanquantile(a, 0.5, axis, keepdims=keepdims)


# --- covariance --------------------------------------------------------------------------------


def cov(m, y=None, rowvar=True, bias=False, ddof=None):
    """The covariances of variables: the rows of m, and of y; the columns if not `rowvar`."""
    parts = [floating(each) for each in (m,) + (() if y is None else (y,))]
    parts = [ops.reshape(each, (1, -1)) if each.ndim < 2 else each if rowvar else ops.matrix_transpose(each)
             for each in parts]
    values = parts[0] if len(parts) == 1 else ops.concat(parts, 0)
    values = values - ops.mean(values, 1, True)
    ddof = (0 if bias else 1) if ddof is None else ddof
    made = ops.matmul(values, ops.conj(ops.matrix_transpose(values))) / (values.shape[1] - ddof)
    return ops.reshape(made, ()) if made.size == 1 else made


def corrcoef(x, y=None, rowvar=True):
    """The correlation coefficients of variables, as `cov`."""
    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return c / c
    deviation = ops.sqrt(ops.real(ops.diagonal(c, 0)))
    return c / ops.expand_dims(deviation, 1) / ops.expand_dims(deviation, 0)
