"""A chain of shardings of one value: gathers, exchanges, splits, and a transposed mesh order."""

import jax
import jax.numpy as jnp

from .common import abstract, constrain, make_mesh

TOPOLOGY = "v5e:2x4"


def lower(devices):
    mesh = make_mesh(devices, x=2, y=4)

    def chain(a):
        a = jnp.exp(constrain(mesh, a, "x", "y"))
        a = jnp.sin(constrain(mesh, a, "y", "x"))
        a = jnp.cos(constrain(mesh, a, ("x", "y")))
        a = jnp.tanh(constrain(mesh, a, ("y", "x")))
        a = jnp.sqrt(constrain(mesh, a, None, ("x", "y")))
        a = jnp.log(constrain(mesh, a, "x"))
        return constrain(mesh, a * 2)

    return jax.jit(chain).lower(abstract(mesh, (64, 64), "y"))
