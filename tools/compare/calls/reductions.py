"""Sums and extremes along dimensions."""

import jax
import jax.numpy as jnp
from jax.scipy import special

from calls.call import Call, operation

FAMILY = "reductions"


def reduction(name, f, floats=1.0, integers=0.3, complexes=0.0, bools=0.0, exact=False, derivative=True, empty=True,
              positions=False):
    def draw(d):
        shape = d.shape(0, 4, empty=0.06 if empty else 0)
        x = d.values(shape, d.dtype(floats, integers, complexes, bools))
        at = {"keepdims": d.chance(0.4)}
        if d.chance(0.8):
            at["dimensions"] = d.dimensions(x.ndim, least=0 if d.chance(0.1) else 1)
        axis = tuple(at["dimensions"]) if "dimensions" in at else None
        return Call([x], lambda x: f(x, axis=axis, keepdims=at["keepdims"]), at, exact=exact, derivative=derivative,
                    positions=positions)
    operation(FAMILY, name)(draw)


reduction("sum", jnp.sum, complexes=0.15, bools=0.1)
reduction("prod", jnp.prod, complexes=0.1)
reduction("max", jnp.max, empty=False)
reduction("min", jnp.min, empty=False)
reduction("any", jnp.any, 0, 0, bools=1, derivative=False)
reduction("all", jnp.all, 0, 0, bools=1, derivative=False)
reduction("mean", jnp.mean, integers=0.1, complexes=0.1)
reduction("logsumexp", special.logsumexp, integers=0.05)
reduction("count_nonzero", jnp.count_nonzero, integers=1, bools=0.5, derivative=False, positions=True)


def _spread(name, f):
    def draw(d):
        x = d.values(d.shape(), d.dtype(1, 0.05, 0.05))
        at = {"keepdims": d.chance(0.4), "correction": d.one_of((0, 0, 1, 0.5))}
        if d.chance(0.8):
            at["dimensions"] = d.dimensions(x.ndim, least=1)
        axis = tuple(at["dimensions"]) if "dimensions" in at else None
        return Call([x], lambda x: f(x, axis=axis, correction=at["correction"], keepdims=at["keepdims"]), at)
    operation(FAMILY, name)(draw)


_spread("var", jnp.var)
_spread("std_dev", jnp.std)


def along(name, f, floats=1.0, integers=0.0, complexes=0.0, bools=0.0, exact=False, derivative=True, positions=False,
          reverse=False, keeps=False, empty=0.04):
    """A function along one dimension."""
    def draw(d):
        x = d.values(d.shape(1, empty=empty), d.dtype(floats, integers, complexes, bools))
        at = {"dimension": d.dimension(x.ndim)}
        axis = at["dimension"]
        if reverse:
            at["reverse"] = d.chance(0.4)
            def g(x):
                return jnp.flip(f(jnp.flip(x, axis), axis=axis), axis) if at["reverse"] else f(x, axis=axis)
            return Call([x], g, at, exact=exact, derivative=derivative)
        options = {}
        if keeps:
            options["keepdims"] = at["keepdims"] = d.chance(0.4)
        return Call([x], lambda x: f(x, axis=axis, **options), at, exact=exact, derivative=derivative,
                    positions=positions)
    operation(FAMILY, name)(draw)


along("argmax", jnp.argmax, integers=0.4, derivative=False, positions=True, keeps=True, empty=0)
along("argmin", jnp.argmin, integers=0.4, derivative=False, positions=True, keeps=True, empty=0)
along("softmax", jax.nn.softmax)
along("log_softmax", jax.nn.log_softmax)
along("cumulative_sum", jnp.cumsum, integers=0.3, complexes=0.1, bools=0.1, reverse=True)
along("cumulative_prod", jnp.cumprod, integers=0.3, complexes=0.1, reverse=True)
along("cumulative_max", lambda x, axis: jax.lax.cummax(x, axis % x.ndim), integers=0.3, reverse=True)
along("cumulative_min", lambda x, axis: jax.lax.cummin(x, axis % x.ndim), integers=0.3, reverse=True)
along("cumulative_logsumexp", lambda x, axis: jax.lax.cumlogsumexp(x, axis % x.ndim), reverse=True)


@operation(FAMILY)
def vector_norm(d):
    x = d.values(d.shape(1), d.dtype(1, 0, 0.1))
    at = {"keepdims": d.chance(0.4), "order": d.one_of((2, 1, 3, "inf", "-inf", 0)), "dimensions": [d.dimension(x.ndim)]}
    return Call([x], lambda x: jnp.linalg.norm(x, float(at["order"]), at["dimensions"][0], at["keepdims"]), at)
