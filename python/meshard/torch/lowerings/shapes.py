"""Creating, reshaping, joining and slicing."""

import math

import torch

import meshard as ms

from .._convert import to_meshard as to_meshard_tensor
from .._dtypes import promoted, to_meshard, to_torch
from .._table import lowers
from ._helpers import as_dtype, dimension, dimensions
from .dynamic import refuse


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
    if isinstance(start, ms.Tensor) or isinstance(end, ms.Tensor):
        refuse("a slice between numbers from tensors", "index_select with torch.arange")
    first, last, step = slice(start, end, step).indices(x.shape[dim])
    return x[(slice(None),) * dim + (slice(first, max(last, first), step),)]


@lowers("aten.select.int", "aten.select_copy.int")
def select(x, dim, index):
    dim = dimension(dim, x.ndim)
    if isinstance(index, ms.Tensor):
        index = ms.where(ms.less(index, 0), ms.add(index, x.shape[dim]), index)
        return ms.squeeze(ms.take(x, ms.reshape(index, (1,)), axis=dim), axis=dim)
    return x[(slice(None),) * dim + (index,)]


@lowers("aten.flip")
def flip(x, dims):
    return ms.flip(x, axis=dimensions(dims, x.ndim)) if len(dims) else x


@lowers("aten.arange.start_step")
def arange(start, end, step=1, dtype=None, **_):
    if dtype is None:
        dtype = torch.int64 if all(isinstance(v, int) for v in (start, end, step)) else torch.get_default_dtype()
    return ms.arange(start, end, step, dtype=to_meshard(dtype))


@lowers("aten.arange.default", "aten.arange.start")
def arange_from(*ends, dtype=None, **_):
    start, end = ends if len(ends) == 2 else (0, *ends)
    return arange(start, end, 1, dtype)


def _constant(name):
    def made(*args, dtype=None, **_):
        """PyTorch's own result, because all arguments are numbers."""
        return to_meshard_tensor(getattr(torch, name)(*args, dtype=dtype))

    return made


for _name, _overloads in {"range": ("default", "step"), "bartlett_window": ("default", "periodic"),
                          "blackman_window": ("default", "periodic"), "hann_window": ("default", "periodic"),
                          "hamming_window": ("default", "periodic", "periodic_alpha", "periodic_alpha_beta"),
                          "kaiser_window": ("default", "periodic", "beta")}.items():
    lowers(*(f"aten.{_name}.{each}" for each in _overloads))(_constant(_name))


def _space_dtype(dtype, start, end):
    if dtype is not None:
        return dtype
    is_complex = isinstance(start, complex) or isinstance(end, complex)
    return torch.promote_types(torch.get_default_dtype(), torch.complex64) if is_complex else torch.get_default_dtype()


def _spaced(start, end, steps, computed):
    """`steps` numbers from start to end; each half is counted from its end, so that both ends are exact."""
    step = ms.divide(ms.subtract(end, start), ms.full((), max(steps - 1, 1), dtype=start.dtype))
    number = ms.arange(0, steps, 1, dtype=ms.int64)
    from_start = ms.add(start, ms.multiply(step, as_dtype(number, computed)))
    from_end = ms.subtract(end, ms.multiply(step, as_dtype(ms.subtract(steps - 1, number), computed)))
    return ms.where(ms.less(number, max(steps // 2, 1)), from_start, from_end)


@lowers("aten.linspace.default", "aten.linspace.Tensor_Tensor", "aten.linspace.Tensor_Scalar",
        "aten.linspace.Scalar_Tensor")
def linspace(start, end, steps, dtype=None, **_):
    dtype = _space_dtype(dtype, start, end)
    is_float = dtype.is_floating_point or dtype.is_complex
    computed = (torch.float32 if dtype.itemsize == 2 else dtype) if is_float else torch.float64
    ends = (as_dtype(as_dtype(each, dtype), computed) for each in (start, end))
    return as_dtype(_spaced(*ends, steps, computed), dtype)


@lowers("aten.logspace.default", "aten.logspace.Tensor_Tensor", "aten.logspace.Tensor_Scalar",
        "aten.logspace.Scalar_Tensor")
def logspace(start, end, steps, base=10.0, dtype=None, **_):
    dtype = _space_dtype(dtype, start, end)
    computed = dtype if dtype.is_complex else torch.float64
    # As in PyTorch, a single power is that of the number, not of the number as `dtype`.
    ends = (as_dtype(each if steps == 1 else as_dtype(each, dtype), computed) for each in (start, end))
    powers = _spaced(*ends, steps, computed)
    return as_dtype(ms.pow(as_dtype(base, computed), powers), dtype)


# Parts.


def _part(x, dim, start, size):
    return x[(slice(None),) * dim + (slice(start, start + size),)]


@lowers("aten.split.Tensor", "aten.split_copy.Tensor", "aten.unsafe_split.Tensor")
def split(x, size, dim=0):
    dim = dimension(dim, x.ndim)
    total = x.shape[dim]
    if not total:
        return [x]
    return [_part(x, dim, start, min(size, total - start)) for start in range(0, total, size)]


@lowers("aten.split_with_sizes", "aten.split_with_sizes_copy", "aten.unsafe_split_with_sizes")
def split_with_sizes(x, sizes, dim=0):
    dim = dimension(dim, x.ndim)
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [_part(x, dim, start, size) for start, size in zip(starts, sizes)]


@lowers("aten.unbind.int", "aten.unbind_copy.int")
def unbind(x, dim=0):
    dim = dimension(dim, x.ndim)
    return [select(x, dim, i) for i in range(x.shape[dim])]


@lowers("aten.stack")
def stack(tensors, dim=0):
    dtype = promoted(tensors)
    return ms.stack([as_dtype(each, dtype) for each in tensors], axis=dim % (tensors[0].ndim + 1))


@lowers("aten.roll")
def roll(x, shifts, dims=()):
    shifts, dims = ([each] if isinstance(each, int) else list(each) for each in (shifts, dims))
    if 0 in x.shape or not x.ndim:
        return x
    if not dims:
        return ms.reshape(ms.roll(ms.reshape(x, (-1,)), shifts[0], axis=0), x.shape)
    for shift, dim in zip(shifts, dims):
        x = ms.roll(x, shift, axis=dimension(dim, x.ndim))
    return x


@lowers("aten.repeat")
def repeat(x, repeats):
    return ms.tile(x, tuple(repeats)) if len(repeats) else x


@lowers("aten.tile")
def tile(x, dims):
    return ms.tile(x, tuple(dims)) if len(dims) else x


@lowers("aten.tril")
def tril(x, diagonal=0):
    return _triangle(x, lambda distance: ms.less_equal(distance, diagonal))


@lowers("aten.triu")
def triu(x, diagonal=0):
    return _triangle(x, lambda distance: ms.greater_equal(distance, diagonal))


def _triangle(x, kept):
    shape = tuple(x.shape[-2:])
    distance = ms.subtract(ms.iota(ms.int32, shape, 1), ms.iota(ms.int32, shape, 0))
    return ms.where(kept(distance), x, ms.zeros_like(x))


@lowers("aten.eye.default", "aten.eye.m")
def eye(rows, columns=None, dtype=None, **_):
    return ms.eye(rows, rows if columns is None else columns, dtype=to_meshard(dtype or torch.get_default_dtype()))


@lowers("aten.constant_pad_nd")
def constant_pad_nd(x, pad, value=0):
    low, high = [0] * x.ndim, [0] * x.ndim
    for i in range(len(pad) // 2):
        low[-1 - i], high[-1 - i] = pad[2 * i], pad[2 * i + 1]
    shape = tuple(n + l + h for n, l, h in zip(x.shape, low, high))
    if 0 in shape or 0 in x.shape:
        return ms.full(shape, as_dtype(value, to_torch(x.dtype)), dtype=x.dtype)
    if 0 in (n + min(l, 0) + min(h, 0) for n, l, h in zip(x.shape, low, high)):
        return ms.full(shape, as_dtype(value, to_torch(x.dtype)), dtype=x.dtype)
    # Elements are removed before others are added: with both in one dimension, the order matters.
    x = x[tuple(slice(max(-l, 0), n - max(-h, 0)) for n, l, h in zip(x.shape, low, high))] if x.ndim else x
    return ms.pad(x, as_dtype(value, to_torch(x.dtype)), [max(l, 0) for l in low], [max(h, 0) for h in high])


# Values and dtypes.


@lowers("aten.lift", "aten.lift_fresh")
def lift(x):
    """A constant in the graph; PyTorch's decomposition would turn it into a copy."""
    return x


@lowers("aten.copy")
def copy(x, source, non_blocking=False):
    return ms.broadcast_to(as_dtype(source, to_torch(x.dtype)), x.shape)


@lowers("aten.fill.Scalar", "aten.fill.Tensor")
def fill(x, value):
    return ms.broadcast_to(as_dtype(value, to_torch(x.dtype)), x.shape)


@lowers("aten.zero")
def zero(x):
    return ms.zeros_like(x)


@lowers("aten.new_full")
def new_full(x, size, value, dtype=None, **_):
    return ms.full(tuple(size), value, dtype=x.dtype if dtype is None else to_meshard(dtype))


@lowers("aten.new_empty_strided")
def new_empty_strided(x, size, stride, dtype=None, **_):
    return ms.zeros(tuple(size), dtype=x.dtype if dtype is None else to_meshard(dtype))


@lowers("aten.empty_strided", "aten.empty_permuted", "prims.empty_strided", "prims.empty_permuted")
def empty_strided(size, stride, dtype=None, **_):
    return ms.zeros(tuple(size), dtype=to_meshard(dtype or torch.get_default_dtype()))


@lowers("aten.resize", "prims.resize", with_node=True)
def resize(x, size, memory_format=None, node=None):
    """The leading elements of the storage; elements that are added are zero."""
    known = None if node is None else node.args[0].meta.get("val")
    if known is not None and not known.is_contiguous() or memory_format not in (None, torch.contiguous_format,
                                                                                torch.preserve_format):
        raise NotImplementedError("[torch] resize of a tensor that is not contiguous is not supported: call "
                                  "contiguous() first")
    count = math.prod(size)
    flat = ms.reshape(x, (-1,))[:count]
    if flat.shape[0] < count:
        flat = ms.concat([flat, ms.zeros((count - flat.shape[0],), dtype=x.dtype)], axis=0)
    return ms.reshape(flat, tuple(size))


@lowers("aten.view_as_real", "aten.view_as_real_copy")
def view_as_real(x):
    return ms.stack([ms.real(x), ms.imag(x)], axis=x.ndim)


@lowers("aten.view_as_complex", "aten.view_as_complex_copy")
def view_as_complex(x):
    return ms.complex(x[..., 0], x[..., 1])


def _to_bits(x):
    """Elements as unsigned integers of 8 bits along a new last dimension, lowest first."""
    if to_torch(x.dtype) == torch.bool:
        x = ms.astype(x, ms.uint8)
    if to_torch(x.dtype).is_complex:
        parts = [_to_bits(ms.real(x)), _to_bits(ms.imag(x))]
        return ms.concat(parts, axis=x.ndim)
    if to_torch(x.dtype).itemsize == 1:
        return ms.expand_dims(ms.bitcast_convert(x, ms.uint8), axis=x.ndim)
    return ms.bitcast_convert(x, ms.uint8)


def _from_bits(x, dtype):
    """The inverse of _to_bits."""
    if dtype == torch.bool:
        return ms.not_equal(x[..., 0], 0)
    if dtype.is_complex:
        half, real = dtype.itemsize // 2, dtype.to_real()
        return ms.complex(_from_bits(x[..., :half], real), _from_bits(x[..., half:], real))
    if dtype.itemsize == 1:
        return ms.bitcast_convert(x[..., 0], to_meshard(dtype))
    return ms.bitcast_convert(x, to_meshard(dtype))


@lowers("aten.view.dtype", "aten.view_copy.dtype", "prims.view_element_type")
def view_dtype(x, dtype):
    present = to_torch(x.dtype)
    if present == dtype:
        return x
    if present.itemsize == dtype.itemsize and torch.bool not in (present, dtype) and not (
            present.is_complex or dtype.is_complex):
        return ms.bitcast_convert(x, to_meshard(dtype))
    shape = list(x.shape)
    if present.itemsize != dtype.itemsize:
        shape[-1] = shape[-1] * present.itemsize // dtype.itemsize
    if 0 in shape:
        return ms.zeros(tuple(shape), dtype=to_meshard(dtype))
    return _from_bits(ms.reshape(_to_bits(x), tuple(shape) + (dtype.itemsize,)), dtype)


# Prims that decompositions end in.


@lowers("prims.broadcast_in_dim")
def broadcast_in_dim(x, shape, dims):
    return ms.broadcast_in_dim(x, tuple(shape), tuple(dims))


@lowers("prims.transpose")
def prims_transpose(x, permutation):
    return ms.permute_dims(x, tuple(permutation))


@lowers("prims.iota")
def iota(length, *, start, step, dtype, **_):
    made = ms.arange(0, length, 1, dtype=ms.int64)
    return ms.astype(ms.add(ms.multiply(made, step), start), to_meshard(dtype))


@lowers("prims.collapse_view")
def collapse_view(x, start, end):
    return ms.reshape(x, x.shape[:start] + (-1,) + x.shape[end + 1:])


@lowers("prims.device_put")
def device_put(x, *_):
    return x
