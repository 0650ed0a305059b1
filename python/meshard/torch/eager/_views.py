"""Views: how to read them, and how to apply a write to them to their base."""

import meshard as ms

from .._dtypes import to_torch
from .._table import lowering_of


class SharesPlaces(Exception):
    """Several elements of a view are one element of its base."""


def _reshaped(whole, value, *args, **kwargs):
    return ms.reshape(value, whole.shape)


def _scatter(name):
    lowering = lowering_of(name)
    return lambda whole, value, *args, **kwargs: lowering(whole, value, *args, **kwargs)


def _permuted(whole, value, dims):
    order = [d % whole.ndim for d in dims]
    return ms.permute_dims(value, tuple(order.index(d) for d in range(len(order)))) if order else value


def _transposed(whole, value, *dims):
    return ms.swapaxes(value, *(d % value.ndim for d in dims or (0, 1))) if value.ndim > 1 else value


def _expanded(whole, value, *args, **kwargs):
    if tuple(whole.shape) == tuple(value.shape)[-whole.ndim or len(value.shape):] and whole.size == value.size:
        return ms.reshape(value, whole.shape)
    raise SharesPlaces


def _bits(whole, value, *args, **kwargs):
    return lowering_of("aten.view.dtype")(value, to_torch(whole.dtype))


def _complex(whole, value):
    return lowering_of("aten.view_as_complex.default")(value)


def _real(whole, value):
    return lowering_of("aten.view_as_real.default")(value)


def _conjugated(whole, value):
    return ms.conj(value)


def _negated(whole, value):
    return ms.negative(value)


def shares_places(whole, value, *args):
    raise SharesPlaces


REPLACED = {
    "aten.view.default": _reshaped, "aten._unsafe_view.default": _reshaped, "aten._reshape_alias.default": _reshaped,
    "aten.unsqueeze.default": _reshaped, "aten.squeeze.default": _reshaped, "aten.squeeze.dim": _reshaped,
    "aten.squeeze.dims": _reshaped,
    "aten.permute.default": _permuted, "aten.transpose.int": _transposed, "aten.t.default": _transposed,
    "aten.expand.default": _expanded,
    "aten.slice.Tensor": _scatter("aten.slice_scatter.default"),
    "aten.select.int": _scatter("aten.select_scatter.default"),
    "aten.diagonal.default": _scatter("aten.diagonal_scatter.default"),
    "aten.as_strided.default": _scatter("aten.as_strided_scatter.default"),
    "aten.view.dtype": _bits, "aten.view_as_real.default": _complex, "aten.view_as_complex.default": _real,
    "aten._conj.default": _conjugated, "aten._neg_view.default": _negated, "aten.unfold.default": shares_places,
}
"""From the name of a view to a function of the whole value, the value that its view shall have, and the arguments."""
