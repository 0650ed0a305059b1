"""Wrappers of a call: mapped over a batch, in a loop or a branch, or recomputed in the backward pass."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from calls.answer import as_tuple, result_types
from calls.call import Call
from calls.draw import is_inexact


KEEP = ("vmap", "map", "cond", "checkpoint", "switch")  # the results are those of the call


def members(x, count, at, mappable, rng):
    """Stacks `count` operands along dimension `at`: x, and permutations of x."""
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
    """A scan whose carry accumulates the sum of the first result."""
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
    """The call, or the call of halved operands."""
    inputs = [np.asarray(d.chance(0.5))] + call.inputs

    def f(predicate, *x):
        return lax.cond(predicate, lambda *x: as_tuple(call.f(*x)),
                        lambda *x: as_tuple(call.f(*[v * jnp.asarray(0.5, v.dtype) if is_inexact(v) else v for v in x])), *x)
    return inputs, f, {"wrap": "cond"}


def checkpointed(d, call):
    return call.inputs, jax.checkpoint(call.f), {"wrap": "checkpoint"}


def repeated(d, call):
    """x + call(x) / 2, several times; for calls that keep the type of their first operand."""
    count = d.integer(0, 3)

    def f(*x):
        return lax.fori_loop(0, count, lambda i, c: c * jnp.asarray(0.5, c.dtype) + as_tuple(call.f(c, *x[1:]))[0], x[0])
    return call.inputs, f, {"wrap": "fori_loop", "count": count}


def switched(d, call):
    """The call, the call of halved operands, or the call of negated operands."""
    inputs = [np.asarray(d.integer(-1, 3), np.int32)] + call.inputs

    def scaled(factor):
        return lambda *x: as_tuple(call.f(*[v * jnp.asarray(factor, v.dtype) if is_inexact(v) else v for v in x]))
    return inputs, lambda i, *x: lax.switch(i, [scaled(1), scaled(0.5), scaled(-1)], *x), {"wrap": "switch"}


def while_small(d, call):
    """The same as repeated, with a loop that has no derivative."""
    count = d.integer(0, 3)

    def f(*x):
        def body(state):
            i, c = state
            return i + 1, c * jnp.asarray(0.5, c.dtype) + as_tuple(call.f(c, *x[1:]))[0]
        return lax.while_loop(lambda state: state[0] < count, body, (jnp.int32(0), x[0]))[1]
    return call.inputs, f, {"wrap": "while_loop", "count": count}


def graded(d, call):
    """The gradients of the sum of the results, with respect to the inexact operands."""
    chosen = tuple(i for i, x in enumerate(call.inputs) if is_inexact(x))

    def total(*x):
        return sum(jnp.sum(r.astype(jnp.promote_types(r.dtype, jnp.float32))) for r in as_tuple(call.f(*x))
                   if is_inexact(r))
    return call.inputs, jax.grad(total, chosen), {"wrap": "grad"}


def is_real_float(dtype):
    return np.dtype(dtype).kind == "f" or np.dtype(dtype).name == "bfloat16"


def choose(d, call, types):
    """One of these wrappers that is possible for the call."""
    wraps = [vmapped, vmapped, vmapped, mapped, branched, checkpointed, switched]
    first = types[0]
    if is_real_float(first[1]):
        wraps.append(scanned)
    x = call.inputs[0]
    if is_inexact(x) and len(types) == 1 and first == (x.shape, x.dtype):
        wraps += [repeated, repeated, while_small]
    real = [is_real_float(dtype) for _, dtype in types]
    if call.derivative and any(real) and any(is_inexact(x) for x in call.inputs) \
            and not any(np.dtype(dtype).kind == "c" for _, dtype in types) \
            and not any(np.dtype(x.dtype).kind == "c" for x in call.inputs):
        wraps += [graded, graded]
    return d.one_of(wraps)(d, call)


def wrapped(d, call, types):
    """The call in one of these wrappers, rarely in two. Also returns the value of `in`."""
    inside = None
    for _ in range(2 if d.chance(0.15) else 1):
        inputs, f, how = choose(d, call, types)
        if inside:
            how["in"] = inside
        inside = how
        exact = call.exact and how["wrap"] in KEEP
        derivative = call.derivative and how["wrap"] != "while_loop"
        call = Call(inputs, f, call.at, exact, derivative, call.mappable, call.positions, call.matrix,
                    by_operand=how["wrap"] == "grad" or call.by_operand and how["wrap"] in KEEP)
        types = result_types(f, inputs)
    return call, inside
