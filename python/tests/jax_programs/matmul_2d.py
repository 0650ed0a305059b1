"""A product of matrices that are both split in two dimensions."""

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh


def lower(devices):
    mesh = make_mesh(devices, row=2, column=4)
    split = NamedSharding(mesh, P("row", "column"))

    def product(a, b):
        return a @ b

    return jax.jit(product, out_shardings=split).lower(abstract(mesh, (64, 128), "row", "column"),
                                                       abstract(mesh, (128, 256), "row", "column"))
