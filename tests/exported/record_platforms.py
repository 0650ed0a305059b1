#!/usr/bin/env python3
"""Records a program that JAX exports for three platforms, whose code for each has other collectives.

usage: record_platforms.py FILE

Writes tests/golden/exported/platforms_exported.bin. Needs jax and flatbuffers.
"""

import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"


def main(path):
    import jax
    import jax.numpy as jnp
    from jax import export
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def value(shape, *spec):
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, PartitionSpec(*spec)))

    @jax.jit
    def inner(x):  # a function of its own, which gets the platform's number as an argument
        return jax.lax.platform_dependent(x, cpu=lambda x: x.sum(1), tpu=lambda x: x[:, 0], cuda=lambda x: x.sum(1) * 2)

    def step(x, w):
        y = jax.lax.platform_dependent(x, w, cpu=lambda x, w: jnp.tanh(x @ w),  # a sum over model
                                       tpu=lambda x, w: jnp.sin(x)[:, :8],      # no sum
                                       cuda=lambda x, w: jnp.cos(x @ w) + (x * x).sum())
        return y, inner(x)

    exported = export.export(jax.jit(step), platforms=["tpu", "cpu", "cuda"])(
        value((16, 32), "data", "model"), value((32, 8), "model"))
    with open(path, "wb") as file:
        file.write(exported.serialize())


if __name__ == "__main__":
    main(sys.argv[1])
