"""What is done to a call: mapped over a batch, put into a loop or a branch, computed again on the way back."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from calls.answer import as_tuple
from calls.draw import is_inexact


def members(x, count, at, mappable, rng):
    """`count` operands beside each other along dimension `at`: x, and x in other orders."""
    parts = [x]
    for _ in range(count - 1):
        parts.append(rng.permutation(x.reshape(-1)).reshape(x.shape) if mappable else x)
    return np.stack(parts, at) if parts else x


def vmapped(d, call):
    count = d.integer(1, 3)
    axes = [d.integer(0, x.ndim) if d.chance(0.75) else None for x in call.inputs]
    if all(a is None for a in axes):
        axes[0] = 0
    out = 0
    inputs = [x if a is None else members(x, count, a, call.mappable, d.rng) for x, a in zip(call.inputs, axes)]
    return inputs, jax.vmap(call.f, axes, out), {"wrap": "vmap", "in_axes": axes}


def mapped(d, call):
    count = d.integer(1, 3)
    inputs = [members(x, count, 0, call.mappable, d.rng) for x in call.inputs]
    return inputs, lambda *x: lax.map(lambda slices: call.f(*slices), x), {"wrap": "map"}


def scanned(d, call):
    """The carry collects the sum of the first result."""
    count = d.integer(1, 3)
    inputs = [members(x, count, 0, call.mappable, d.rng) for x in call.inputs]
    reverse = d.chance(0.4)

    def f(*x):
        def step(carry, slices):
            ys = as_tuple(call.f(*slices))
            return carry * 0.5 + jnp.sum(ys[0]).astype(jnp.float32), ys
        total, ys = lax.scan(step, jnp.float32(1), x, reverse=reverse)
        return (total,) + ys
    return inputs, f, {"wrap": "scan", "reverse": reverse}


def branched(d, call):
    """The call, or the call of halves."""
    inputs = [np.asarray(d.chance(0.5))] + call.inputs

    def f(predicate, *x):
        return lax.cond(predicate, lambda *x: as_tuple(call.f(*x)),
                        lambda *x: as_tuple(call.f(*[v * jnp.asarray(0.5, v.dtype) if is_inexact(v) else v for v in x])), *x)
    return inputs, f, {"wrap": "cond"}


def checkpointed(d, call):
    return call.inputs, jax.checkpoint(call.f), {"wrap": "checkpoint"}


def repeated(d, call):
    """x + call(x) / 2, several times; for one operand that keeps its type."""
    count = d.integer(0, 3)

    def f(*x):
        return lax.fori_loop(0, count, lambda i, c: c * jnp.asarray(0.5, c.dtype) + as_tuple(call.f(c, *x[1:]))[0], x[0])
    return call.inputs, f, {"wrap": "fori_loop", "count": count}


def choose(d, call, result_types):
    """One of the above, of those that are possible here."""
    wraps = [vmapped, vmapped, vmapped, mapped, branched, checkpointed]
    first = result_types[0]
    if len(first[0]) >= 0 and np.dtype(first[1]).kind == "f" or np.dtype(first[1]).name == "bfloat16":
        wraps.append(scanned)
    x = call.inputs[0]
    if is_inexact(x) and len(result_types) == 1 and first == (x.shape, x.dtype):
        wraps += [repeated, repeated]
    return d.one_of(wraps)(d, call)
