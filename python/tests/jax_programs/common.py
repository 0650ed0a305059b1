"""Meshes and abstract arguments of the programs."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import numpy as np


def make_mesh(devices, **axes):
    """A mesh of these axes over the first devices, in their order."""
    count = int(np.prod(list(axes.values())))
    return Mesh(np.array(devices[:count]).reshape(tuple(axes.values())), tuple(axes),
                axis_types=(AxisType.Auto,) * len(axes))


def abstract(mesh, shape, *spec, dtype=jnp.float32):
    """An argument of a type and a sharding, without data."""
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))
