"""Functions that only move elements."""

import builtins

import jax.numpy as jnp
from jax import lax

from calls.call import Call, operation

FAMILY = "movement"


def any_tensor(d, low=0, high=4, empty=0.04):
    return d.values(d.shape(low, high, empty=empty), d.dtype(1, 0.3, 0.1, 0.05))


def movement(draw):
    def exact(d):
        call = draw(d)
        call.exact = True
        return call
    operation(FAMILY, draw.__name__)(exact)
    return draw


@movement
def reshape(d):
    x = any_tensor(d)
    sizes, left = [], x.size
    while left > 1 and len(sizes) < 4:
        part = d.one_of([n for n in range(1, left + 1) if left % n == 0])
        sizes.append(part)
        left //= part
    shape = ([0, 2] if x.size == 0 else d.shuffled(sizes + [left]))
    return Call([x], lambda x: jnp.reshape(x, shape), {"shape": shape})


@movement
def permute_dims(d):
    x = any_tensor(d)
    at = {} if d.chance(0.2) else {"permutation": d.shuffled(range(x.ndim))}
    return Call([x], lambda x: jnp.transpose(x, at.get("permutation")), at)


@movement
def broadcast_to(d):
    shape = d.shape()
    return Call([d.values(d.broadcast_to(shape), d.dtype(1, 0.3, 0.1))], lambda x: jnp.broadcast_to(x, shape),
                {"shape": list(shape)})


@movement
def broadcast_in_dim(d):
    shape = d.shape(1)
    dims = sorted(d.shuffled(range(len(shape)))[:d.integer(0, len(shape))])
    sizes = tuple(1 if d.chance(0.3) else shape[k] for k in dims)
    return Call([d.values(sizes, d.dtype(1, 0.3))], lambda x: lax.broadcast_in_dim(x, shape, dims),
                {"shape": list(shape), "dimensions": dims})


@movement
def concat(d):
    shape, count = d.shape(1, 3, 12), d.integer(1, 3)
    dtype = d.dtype(1, 0.3, 0.1)
    at = d.dimension(len(shape))
    parts = []
    for _ in range(count):
        sizes = list(shape)
        sizes[at] = d.integer(0, 3)
        parts.append(d.values(tuple(sizes), d.dtype(1, 0.3) if d.chance(0.1) else dtype))
    return Call(parts, lambda *x: jnp.concatenate(x, at), {"dimension": at})


@movement
def stack(d):
    shape = d.shape(0, 3, 8)
    at = d.dimension(len(shape) + 1)
    dtype = d.dtype(1, 0.3)
    return Call([d.values(shape, dtype) for _ in range(d.integer(1, 3))], lambda *x: jnp.stack(x, at), {"dimension": at})


@movement
def split(d):
    shape, at, count = list(d.shape(1, 3, 8)), 0, d.integer(1, 3)
    at = d.dimension(len(shape))
    shape[at] *= count
    return Call([d.values(tuple(shape), d.dtype(1, 0.3))], lambda x: tuple(jnp.split(x, count, at)),
                {"count": count, "dimension": at})


@movement
def split_sizes(d):
    x = any_tensor(d, 1)
    at = d.dimension(x.ndim)
    cuts = sorted(d.integer(0, x.shape[at]) for _ in range(2))
    sizes = [cuts[0], cuts[1] - cuts[0], x.shape[at] - cuts[1]]
    return Call([x], lambda x: tuple(jnp.split(x, cuts, at)), {"sizes": sizes, "dimension": at})


@movement
def unstack(d):
    x = any_tensor(d, 1, empty=0)
    at = d.dimension(x.ndim)
    return Call([x], lambda x: tuple(jnp.unstack(x, axis=at)), {"dimension": at})


@movement
def slice(d):
    x = any_tensor(d, 0)
    start = [d.integer(0, n) for n in x.shape]
    stop = [d.integer(a, n) for a, n in zip(start, x.shape)]
    stride = [d.integer(1, 3) for _ in start]
    return Call([x], lambda x: lax.slice(x, start, stop, stride), {"start": start, "stop": stop, "stride": stride})


@movement
def index(d):
    x = any_tensor(d, 1, empty=0)
    items, parts = [], []
    for n in x.shape:
        if d.chance(0.25):
            k = d.integer(-n, n - 1)
            items.append(k)
            parts.append(k)
            continue
        a, b = (d.integer(-n - 1, n + 1) if d.chance(0.7) else None for _ in range(2))
        step = d.one_of((1, 1, 2, 3, -1, -2))
        items.append([a, b, step])
        parts.append(builtins.slice(a, b, step))
    if d.chance(0.2):
        at = d.integer(0, len(items))
        items.insert(at, "new")
        parts.insert(at, None)
    if d.chance(0.2):
        items, parts = items[:-1] + ["..."], parts[:-1] + [...]
    return Call([x], lambda x: x[tuple(parts)], {"items": items})


@movement
def flip(d):
    x = any_tensor(d)
    at = {} if d.chance(0.2) else {"dimensions": d.dimensions(x.ndim)}
    return Call([x], lambda x: jnp.flip(x, tuple(at["dimensions"]) if at else None), at)


@movement
def pad(d):
    x = any_tensor(d, 0, 3)
    value = d.integer(0, 3)
    interior = [d.one_of((0, 0, 1, 2)) for _ in x.shape]
    low, high = ([d.integer(-1, 2) if n > 2 else d.integer(0, 2) for n in x.shape] for _ in range(2))
    return Call([x], lambda x: lax.pad(x, jnp.asarray(value, x.dtype), list(zip(low, high, interior))),
                {"value": value, "low": low, "high": high, "interior": interior})


@movement
def squeeze(d):
    shape = d.shape(0, 3)
    for _ in range(d.integer(0, 2)):
        at = d.integer(0, len(shape))
        shape = shape[:at] + (1,) + shape[at:]
    ones = [k for k, n in enumerate(shape) if n == 1]
    at = {} if d.chance(0.3) else {"dimensions": d.shuffled(ones)[:d.integer(0, len(ones))]}
    return Call([d.values(shape, d.dtype(1, 0.3))], lambda x: jnp.squeeze(x, tuple(at["dimensions"]) if at else None), at)


@movement
def expand_dims(d):
    x = any_tensor(d, 0, 3)
    at = d.dimension(x.ndim + 1)
    return Call([x], lambda x: jnp.expand_dims(x, at), {"dimension": at})


@movement
def swapaxes(d):
    x = any_tensor(d, 1)
    a, b = d.dimension(x.ndim), d.dimension(x.ndim)
    return Call([x], lambda x: jnp.swapaxes(x, a, b), {"a": a, "b": b})


@movement
def moveaxis(d):
    x = any_tensor(d, 1)
    count = d.integer(1, x.ndim)
    a, b = d.shuffled(range(x.ndim))[:count], d.shuffled(range(x.ndim))[:count]
    return Call([x], lambda x: jnp.moveaxis(x, a, b), {"source": a, "destination": b})


@movement
def repeat(d):
    x = any_tensor(d)
    count = d.integer(0, 3)
    at = {"repeats": count}
    if x.ndim and d.chance(0.8):
        at["dimension"] = d.dimension(x.ndim)
    return Call([x], lambda x: jnp.repeat(x, count, at.get("dimension")), at)


@movement
def tile(d):
    x = any_tensor(d, 0, 3)
    counts = [d.integer(0 if d.chance(0.1) else 1, 3) for _ in range(d.integer(0, 3))]
    return Call([x], lambda x: jnp.tile(x, counts), {"repetitions": counts})


@movement
def roll(d):
    x = any_tensor(d)
    if x.ndim and d.chance(0.7):
        dims = d.shuffled(range(x.ndim))[:d.integer(1, x.ndim)]
        shifts = [d.integer(-5, 5) for _ in dims]
        return Call([x], lambda x: jnp.roll(x, shifts, dims), {"shifts": shifts, "dimensions": dims})
    shift = d.integer(-9, 9)
    return Call([x], lambda x: jnp.roll(x, shift), {"shift": shift})


@movement
def tril(d):
    x, k = any_tensor(d, 2), d.integer(-3, 3)
    return Call([x], lambda x: jnp.tril(x, k), {"k": k})


@movement
def triu(d):
    x, k = any_tensor(d, 2), d.integer(-3, 3)
    return Call([x], lambda x: jnp.triu(x, k), {"k": k})


@movement
def diagonal(d):
    x = any_tensor(d, 2)
    k = d.integer(-min(2, x.shape[-2]), min(2, x.shape[-1]))
    return Call([x], lambda x: jnp.diagonal(x, k, -2, -1), {"offset": k})


@movement
def one_hot(d):
    from calls.draw import DTYPES
    import jax
    x, classes, dtype = d.values(d.shape(0, 3), "i32", -2, 6), d.integer(1, 6), d.one_of(("f32", "i32", "bf16"))
    return Call([x], lambda x: jax.nn.one_hot(x, classes, dtype=DTYPES[dtype]), {"classes": classes, "dtype": dtype},
                derivative=False)
