"""Elements at computed indices, indices of elements, and sorting."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from calls.call import Call, operation

FAMILY = "indexing"


def _tensor(d, low=1, high=3, **more):
    return d.values(d.shape(low, high, empty=0, **more), d.dtype(1, 0.3))


@operation(FAMILY)
def take(d):
    x = _tensor(d)
    at = d.dimension(x.ndim)
    i = d.values(d.shape(0, 2, 6), "i32", 0, x.shape[at] - 1 + (2 if d.chance(0.2) else 0))
    return Call([x, i], lambda x, i: jnp.take(x, i, at, mode="clip"), {"dimension": at}, exact=True)


@operation(FAMILY)
def take_along_axis(d):
    x = _tensor(d)
    at = d.dimension(x.ndim)
    shape = list(x.shape)
    shape[at] = d.integer(1, 4)
    i = d.values(tuple(shape), "i32", 0, x.shape[at] - 1)
    return Call([x, i], lambda x, i: jnp.take_along_axis(x, i, at, mode="clip"), {"dimension": at}, exact=True)


@operation(FAMILY)
def dynamic_slice(d):
    x = _tensor(d)
    sizes = [d.integer(1, n) for n in x.shape]
    starts = [d.values((), "i32", 0, n + 1) for n in x.shape]
    return Call([x] + starts, lambda x, *s: lax.dynamic_slice(x, s, sizes), {"sizes": sizes}, exact=True)


@operation(FAMILY)
def dynamic_update_slice(d):
    x = _tensor(d)
    from calls.draw import name_of
    update = d.values(tuple(d.integer(1, n) for n in x.shape), name_of(x.dtype))
    starts = [d.values((), "i32", 0, n + 1) for n in x.shape]
    return Call([x, update] + starts, lambda x, u, *s: lax.dynamic_update_slice(x, u, s), exact=True)


def _scatter(name, method, exact):
    """Scatters rows of updates at indices along dimension 0."""
    def draw(d):
        from calls.draw import name_of
        d.manner = d.one_of(("plain", "ties"))
        x = _tensor(d, 1, 2)
        count = d.integer(0, 4)
        rows = d.integer(0, min(count, len(x))) if method == "set" else count
        if method == "set":  # for two updates of one element, it is undefined which one remains
            i = np.asarray(d.shuffled(range(len(x)))[:rows], np.int32)
        else:
            i = d.values((rows,), "i32", 0, len(x) - 1 + (2 if d.chance(0.2) else 0))
        updates = d.values((rows,) + x.shape[1:], name_of(x.dtype))
        return Call([x, i, updates], lambda x, i, u: getattr(x.at[i], method)(u, mode="drop"), exact=exact,
                    derivative=method != "multiply", mappable=False)
    operation(FAMILY, name)(draw)


_scatter("scatter_add", "add", False)
_scatter("scatter_set", "set", True)
_scatter("scatter_multiply", "multiply", False)
_scatter("scatter_min", "min", True)
_scatter("scatter_max", "max", True)


@operation(FAMILY)
def gather(d):
    """Slices with given sizes, at start indices of two dimensions."""
    x = d.values(d.shape(2, 2, empty=0), d.dtype(1, 0.3))
    sizes = [d.integer(1, n) for n in x.shape]
    i = d.values((d.integer(1, 3), 2), "i32", 0, 4)
    numbers = lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0, 1))
    return Call([x, i], lambda x, i: lax.gather(x, i, numbers, sizes, mode="clip"), {"slice_sizes": sizes}, exact=True)


for _name, _f in (("sum", jax.ops.segment_sum), ("prod", jax.ops.segment_prod), ("max", jax.ops.segment_max),
                  ("min", jax.ops.segment_min)):
    def _draw(d, f=_f, name=_name):
        d.manner = d.one_of(("plain", "ties"))
        x, count = _tensor(d, 1, 2), d.integer(1, 4)
        s = d.values((len(x),), "i32", 0, count - 1 + (1 if d.chance(0.2) else 0))
        # JAX has no derivative for products of segments.
        return Call([x, s], lambda x, s: f(x, s, count), {"count": count}, derivative=name != "prod")
    operation(FAMILY, f"segment_{_name}")(_draw)


@operation(FAMILY)
def sort(d):
    x = d.values(d.shape(1, empty=0), d.dtype(1, 0.3, 0, 0.05))
    at, down = d.dimension(x.ndim), d.chance(0.3)
    # In descending order, jnp.sort reverses equal elements, which affects only derivatives;
    # jnp.argsort does not.
    return Call([x], lambda x: jnp.take_along_axis(x, jnp.argsort(x, axis=at, stable=True, descending=down), at),
                {"dimension": at, "descending": down}, exact=True)


@operation(FAMILY)
def sort_by_keys(d):
    shape, keys = d.shape(1, 2, empty=0), d.integer(1, 2)
    at = d.dimension(len(shape))
    d.manner = "ties"
    x = [d.values(shape, d.dtype(1, 0.5)) for _ in range(3)]
    return Call(x, lambda *x: tuple(lax.sort(x, dimension=at % len(shape), num_keys=keys, is_stable=True)),
                {"dimension": at, "keys": keys}, exact=True)


@operation(FAMILY)
def argsort(d):
    x = d.values(d.shape(1, empty=0), d.dtype(1, 0.3))
    at, down = d.dimension(x.ndim), d.chance(0.3)
    return Call([x], lambda x: jnp.argsort(x, axis=at, stable=True, descending=down),
                {"dimension": at, "descending": down}, derivative=False, positions=True)


@operation(FAMILY)
def top_k(d):
    x = d.values(d.shape(1, 3, empty=0), d.dtype(1, 0.2))
    k = d.integer(0, x.shape[-1])
    return Call([x], lambda x: tuple(lax.top_k(x, k)), {"k": k}, exact=True, positions=True)


@operation(FAMILY)
def searchsorted(d):
    d.manner = d.one_of(("plain", "ties"))
    dtype = d.dtype(1, 0.3)
    side = d.one_of(("left", "right"))
    a = np.sort(d.values((d.integer(0, 6),), dtype))
    return Call([a, d.values(d.shape(0, 2), dtype)], lambda a, x: jnp.searchsorted(a, x, side=side), {"side": side},
                derivative=False, positions=True, mappable=False)


@operation(FAMILY)
def isin(d):
    d.manner = "ties"
    dtype, invert = d.dtype(1, 1), d.chance(0.4)
    return Call([d.values(d.shape(), dtype), d.values(d.shape(0, 2, 6), dtype)],
                lambda x, e: jnp.isin(x, e, invert=invert), {"invert": invert}, derivative=False)


@operation(FAMILY)
def unique_counts(d):
    d.manner = "ties"
    x = d.values(d.shape(0, 2, empty=0), d.dtype(1, 1))
    size = d.integer(1, 8)
    return Call([x], lambda x: tuple(jnp.unique(x, return_counts=True, size=size, fill_value=jnp.max(x))), {"size": size},
                derivative=False, positions=True)


@operation(FAMILY)
def diff(d):
    x = d.values(d.shape(1), d.dtype(1, 0.3, 0.1))
    at, n = d.dimension(x.ndim), d.integer(0, 2)
    return Call([x], lambda x: jnp.diff(x, n, at), {"dimension": at, "n": n})
