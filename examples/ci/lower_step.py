"""Writes the training step as a module, with the lines of its source. No device is needed: the mesh has only a shape.

usage: lower_step.py FILE

Replace `loss`, `parameters` and `batch` by those of your program.
"""

import sys

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def abstract(shape, *spec, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


parameters = {"up": abstract((256, 1024), None, "model"), "down": abstract((1024, 256), "model")}
batch = abstract((64, 256), "data")


def loss(params, x):
    hidden = jax.nn.relu(x @ params["up"])
    return jnp.mean((hidden @ params["down"] - x) ** 2)


def step(params, x):
    value, gradients = jax.value_and_grad(loss)(params, x)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value


shardings = jax.tree.map(lambda x: x.sharding, parameters)
jitted = jax.jit(step, donate_argnums=0, out_shardings=(shardings, None))
lowered = jitted.trace(parameters, batch).lower(lowering_platforms=("tpu",))
with open(sys.argv[1], "w", encoding="utf-8") as file:
    file.write(lowered.as_text(debug_info=True))
