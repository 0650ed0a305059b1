"""Creating, reshaping, joining and slicing."""

import torch

import meshard as ms

from .._dtypes import promoted, to_meshard, to_torch
from .._table import lowers
from ._helpers import as_dtype, dimension, dimensions


@lowers("aten.full")
def full(size, value, dtype=None, **_):
    if dtype is None:
        dtype = promoted((value,))
    return ms.full(tuple(size), value, dtype=to_meshard(dtype))


@lowers("aten.full_like")
def full_like(x, value, dtype=None, **_):
    return ms.full(x.shape, value, dtype=x.dtype if dtype is None else to_meshard(dtype))


@lowers("aten.zeros", "aten.empty.memory_format", "aten.new_zeros", "aten.new_empty")
def zeros(*args, dtype=None, **_):
    size = args[-1]
    like = args[0].dtype if len(args) == 2 else to_meshard(torch.get_default_dtype())
    return ms.zeros(tuple(size), dtype=like if dtype is None else to_meshard(dtype))


@lowers("aten.ones", "aten.new_ones")
def ones(*args, dtype=None, **_):
    like = args[0].dtype if len(args) == 2 else to_meshard(torch.get_default_dtype())
    return ms.ones(tuple(args[-1]), dtype=like if dtype is None else to_meshard(dtype))


@lowers("aten.zeros_like", "aten.empty_like")
def zeros_like(x, dtype=None, **_):
    return full_like(x, 0, dtype)


@lowers("aten.ones_like")
def ones_like(x, dtype=None, **_):
    return full_like(x, 1, dtype)


@lowers("aten.scalar_tensor")
def scalar_tensor(value, dtype=None, **_):
    return full((), value, dtype or torch.get_default_dtype())


@lowers("aten.view", "aten._unsafe_view", "aten.reshape", "aten._reshape_copy", "aten.view_copy")
def view(x, size):
    return ms.reshape(x, tuple(size))


@lowers("aten.permute", "aten.permute_copy")
def permute(x, dims):
    return ms.permute_dims(x, tuple(dimension(d, x.ndim) for d in dims)) if x.ndim else x


@lowers("aten.t", "aten.t_copy")
def t(x):
    return ms.permute_dims(x, (1, 0)) if x.ndim == 2 else x


@lowers("aten.transpose.int", "aten.transpose_copy.int")
def transpose(x, dim0, dim1):
    return ms.swapaxes(x, dimension(dim0, x.ndim), dimension(dim1, x.ndim)) if x.ndim else x


@lowers("aten.expand", "aten.expand_copy")
def expand(x, size, implicit=False):
    added = len(size) - x.ndim
    shape = tuple(x.shape[d - added] if n == -1 else n for d, n in enumerate(size))
    return ms.broadcast_to(x, shape)


@lowers("aten.unsqueeze", "aten.unsqueeze_copy")
def unsqueeze(x, dim):
    return ms.expand_dims(x, axis=dim % (x.ndim + 1))


@lowers("aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.squeeze_copy.default",
        "aten.squeeze_copy.dim", "aten.squeeze_copy.dims")
def squeeze(x, dim=None):
    if not x.ndim:
        return x
    dims = range(x.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = {dimension(d, x.ndim) for d in dims}
    return ms.reshape(x, tuple(n for d, n in enumerate(x.shape) if d not in gone or n != 1))


@lowers("aten.cat")
def cat(tensors, dim=0):
    # An empty tensor of one dimension is ignored, whatever the shape of the others is.
    dtype = promoted(tensors)
    used = [each for each in tensors if each.shape != (0,)] or tensors[:1]
    return ms.concat([as_dtype(each, dtype) for each in used], axis=dimension(dim, used[0].ndim))


@lowers("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_of(x, dim=0, start=None, end=None, step=1):
    dim = dimension(dim, x.ndim)
    first, last, step = slice(start, end, step).indices(x.shape[dim])
    return x[(slice(None),) * dim + (slice(first, max(last, first), step),)]


@lowers("aten.select.int", "aten.select_copy.int")
def select(x, dim, index):
    dim = dimension(dim, x.ndim)
    return x[(slice(None),) * dim + (index,)]


@lowers("aten.flip")
def flip(x, dims):
    return ms.flip(x, axis=dimensions(dims, x.ndim)) if len(dims) else x


@lowers("aten.arange.start_step")
def arange(start, end, step=1, dtype=None, **_):
    if dtype is None:
        dtype = torch.int64 if all(isinstance(v, int) for v in (start, end, step)) else torch.get_default_dtype()
    return ms.arange(start, end, step, dtype=to_meshard(dtype))
