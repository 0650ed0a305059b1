"""Meshes and abstract arguments of the programs."""

import jax
import jax.numpy as jnp
from jax.experimental import mesh_utils
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def make_mesh(devices, kind=AxisType.Auto, **axes):
    """A mesh of these axes over all devices, in the order that JAX chooses for them."""
    grid = mesh_utils.create_device_mesh(tuple(axes.values()), devices=devices, allow_split_physical_axes=True)
    return Mesh(grid, tuple(axes), axis_types=(kind,) * len(axes))


def make_mesh_over_slices(devices, slices, **axes):
    """A mesh whose first axis, `dcn`, is the slice."""
    shape = tuple(axes.values())
    grid = mesh_utils.create_hybrid_device_mesh((1, *shape), (slices, *(1 for _ in shape)), devices=devices,
                                                allow_split_physical_axes=True)
    return Mesh(grid, ("dcn", *axes), axis_types=(AxisType.Auto,) * (1 + len(axes)))


def abstract(mesh, shape, *spec, dtype=jnp.float32, **options):
    """An argument of a type and a sharding, without data."""
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec), **options))


def constrain(mesh, x, *spec):
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))


def shardings_of(tree):
    """The shardings of abstract arguments."""
    return jax.tree.map(lambda x: x.sharding, tree)
