"""Axes whose shardings are part of the types; reshards are written in the program."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh

TOPOLOGY = "v5e:2x4"


def lower(devices):
    mesh = make_mesh(devices, kind=AxisType.Explicit, data=2, model=4)

    def layer(x, up, down):
        hidden = jnp.sin(x @ up)  # P("data", "model")
        hidden = jax.sharding.reshard(hidden, P("data", None))
        out = jnp.einsum("bf,fd->bd", hidden, jax.sharding.reshard(down, P(None, "model")))
        return jax.sharding.reshard(out, P(("data", "model"), None))

    with jax.set_mesh(mesh):
        return jax.jit(layer).lower(abstract(mesh, (64, 128), "data", None), abstract(mesh, (128, 512), None, "model"),
                                    abstract(mesh, (512, 128), "model", None))
