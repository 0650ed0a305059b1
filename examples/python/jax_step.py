"""Explains a training step of JAX for 16 TPUs that are not here: what XLA's partitioner makes of a transformer block
whose weights are split over both axes of a 4x4 mesh (FSDP and tensor parallelism).

usage: jax_step.py [PAGE.html]

Needs JAX, and the TPU compiler (`python -m meshard fetch tpu`). PAGE.html is written; docs/sample-report.html is such a page.
"""

import sys

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import meshard as ms

mesh = AbstractMesh((4, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
BATCH, LENGTH, WIDTH, HEADS = 32, 512, 1024, 16


def abstract(shape, *spec, dtype=jnp.bfloat16):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


parameters = {
    "qkv": abstract((WIDTH, 3, HEADS, WIDTH // HEADS), "data", None, "model"),
    "out": abstract((HEADS, WIDTH // HEADS, WIDTH), "model", None, "data"),
    "up": abstract((WIDTH, 4 * WIDTH), "data", "model"),
    "down": abstract((4 * WIDTH, WIDTH), "model", "data"),
}
batch = abstract((BATCH, LENGTH, WIDTH), "data")


def norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def block(params, x):
    query, key, value = jnp.einsum("btd,dchk->cbthk", norm(x), params["qkv"])
    scores = jax.nn.softmax(jnp.einsum("bqhk,bthk->bhqt", query, key) / jnp.sqrt(jnp.bfloat16(WIDTH // HEADS)))
    x = x + jnp.einsum("bhqt,bthk,hkd->bqd", scores, value, params["out"])
    return x + jax.nn.gelu(norm(x) @ params["up"]) @ params["down"]


def loss(params, x):
    return jnp.mean(jnp.square(block(params, x) - x).astype(jnp.float32))


def step(params, x):
    value, gradients = jax.value_and_grad(loss)(params, x)
    return jax.tree.map(lambda p, g: p - jnp.bfloat16(0.1) * g, params, gradients), value


shardings = jax.tree.map(lambda x: x.sharding, parameters)
lowered = jax.jit(step, donate_argnums=0, out_shardings=(shardings, None)).trace(parameters, batch).lower(lowering_platforms=("tpu",))
report = ms.explain(lowered, topology="v5e:4x4")
print(report)
if len(sys.argv) > 1:
    report.save_html(sys.argv[1])
