"""Writes the modules of tests/golden/plan: programs of kinds used in practice, as JAX lowers them for TPUs, with shardings that a
user might choose. usage: lower_programs.py FOLDER, in an environment with jax 0.10.2"""

import functools
import os
import pathlib
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import numpy as np


def mesh_of(**axes):
    devices = np.array(jax.devices()[:8]).reshape(tuple(axes.values()))
    return Mesh(devices, tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


def value(mesh, shape, *spec, dtype=jnp.bfloat16):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


def norm(x):
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x.astype(jnp.float32)), -1, keepdims=True) + 1e-6).astype(x.dtype)


def lower(function, *arguments, **options):
    return jax.jit(function, **options).trace(*arguments).lower(lowering_platforms=("tpu",))


def embedding():
    mesh = mesh_of(data=2, vocab=4)

    def loss(table, tokens):
        x = jnp.take(table, tokens, axis=0)
        return jnp.mean(jax.nn.logsumexp(jnp.einsum("bsd,vd->bsv", x, table).astype(jnp.float32), -1))

    def step(table, tokens):
        value, gradient = jax.value_and_grad(loss)(table, tokens)
        return table - 0.1 * gradient, value

    return lower(step, value(mesh, (2048, 256), "vocab"), value(mesh, (16, 32), "data", dtype=jnp.int32),
                 out_shardings=(NamedSharding(mesh, P("vocab")), None), donate_argnums=0)


def moe_all_to_all():
    mesh = mesh_of(expert=8)

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("expert"), P("expert"), P()), out_specs=P("expert"))
    def experts(tokens, weights, router):
        count, width = tokens.shape
        gate = jax.nn.softmax(tokens @ router)
        order = jnp.argsort(jnp.argmax(gate, -1))
        grouped = tokens[order].reshape(8, count // 8, width)
        arrived = jax.lax.all_to_all(grouped, "expert", 0, 0)
        done = jnp.einsum("esd,df->esf", arrived, weights[0])
        returned = jax.lax.all_to_all(done, "expert", 0, 0)
        return returned.reshape(count, width)[jnp.argsort(order)]

    return lower(experts, value(mesh, (8192, 256)), value(mesh, (8, 256, 256), "expert"), value(mesh, (256, 8)))


def fsdp_scan_remat():
    mesh = mesh_of(fsdp=8)
    batch = NamedSharding(mesh, P("fsdp"))

    @jax.checkpoint
    def layer(x, p):
        x = jax.lax.with_sharding_constraint(x, batch)
        return jax.lax.with_sharding_constraint(x + jax.nn.relu(x @ p["up"]) @ p["down"], batch), None

    def loss(params, x):
        return jnp.sum(jnp.square(jax.lax.scan(layer, x, params)[0].astype(jnp.float32)))

    def step(params, x):
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, jax.grad(loss)(params, x))

    params = {"up": value(mesh, (4, 256, 512), None, "fsdp"), "down": value(mesh, (4, 512, 256), None, "fsdp")}
    return lower(step, params, value(mesh, (512, 256), "fsdp"), donate_argnums=0)


def tensor_parallel_mlp():
    mesh = mesh_of(data=2, model=4)

    def mlp(w1, w2, x):
        return jax.nn.gelu(x @ w1) @ w2

    return lower(mlp, value(mesh, (256, 1024), "model"), value(mesh, (1024, 256), "model"),
                 value(mesh, (512, 256), "data"), out_shardings=NamedSharding(mesh, P("data")))


def attention():
    mesh = mesh_of(data=2, model=4)

    def layer(p, x):
        q, k, v = (jnp.einsum("bsd,dhk->bhsk", x, p[name]) for name in ("wq", "wk", "wv"))
        scores = jax.nn.softmax(jnp.einsum("bhqk,bhsk->bhqs", q, k).astype(jnp.float32) / 8, axis=-1)
        return x + jnp.einsum("bhsk,hkd->bsd", jnp.einsum("bhqs,bhsk->bhqk", scores.astype(x.dtype), v), p["wo"])

    p = {name: value(mesh, (256, 8, 32), None, "model") for name in ("wq", "wk", "wv")}
    p["wo"] = value(mesh, (8, 32, 256), "model")
    return lower(layer, p, value(mesh, (8, 64, 256), "data"))


def convolution():
    mesh = mesh_of(data=2, height=4)

    def convolve(x, first, second):
        for kernel in (first, second):
            x = jax.nn.relu(jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME",
                                                         dimension_numbers=("NHWC", "HWIO", "NHWC")))
        return x

    return lower(convolve, value(mesh, (8, 32, 32, 16), None, "height"), value(mesh, (3, 3, 16, 32)),
                 value(mesh, (3, 3, 32, 16)))


def data_parallel():
    mesh = mesh_of(data=8)

    def loss(params, x, y):
        return jnp.mean(jnp.square((jnp.tanh(x @ params["w1"] + params["b1"]) @ params["w2"] - y).astype(jnp.float32)))

    def step(params, x, y):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    params = {"w1": value(mesh, (256, 512)), "b1": value(mesh, (512,)), "w2": value(mesh, (512, 128))}
    return lower(step, params, value(mesh, (1024, 256), "data"), value(mesh, (1024, 128), "data"), donate_argnums=0)


def matmul_2d():
    mesh = mesh_of(row=2, column=4)
    return lower(lambda a, b: a @ b, value(mesh, (512, 1024), "row", "column"),
                 value(mesh, (1024, 512), "row", "column"), out_shardings=NamedSharding(mesh, P("row", "column")))


def sequence_parallel():
    mesh = mesh_of(data=2, model=4)

    def constrain(x, *spec):
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))

    def block(up, down, x):
        hidden = jax.nn.silu(constrain(norm(x), "data", None, None) @ up)
        return x + constrain(hidden @ down, "data", "model", None)

    return lower(block, value(mesh, (256, 1024)), value(mesh, (1024, 256)), value(mesh, (8, 128, 256), "data", "model"))


def gemma_block():
    mesh = mesh_of(data=2, model=4)

    def block(p, x):
        h = norm(x) * p["norm1"]
        q = jnp.einsum("bsd,dhk->bshk", h, p["wq"]).reshape(*x.shape[:2], 4, 2, 32)
        k, v = (jnp.einsum("bsd,dgk->bsgk", h, p[name]) for name in ("wk", "wv"))
        scores = jnp.einsum("bsgrk,btgk->bgrst", q, k).astype(jnp.float32) / 8
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e30)
        heads = jnp.einsum("bgrst,btgk->bsgrk", jax.nn.softmax(scores, -1).astype(x.dtype), v)
        x = x + jnp.einsum("bshk,hkd->bsd", heads.reshape(*x.shape[:2], 8, 32), p["wo"])
        h = norm(x) * p["norm2"]
        return x + (jax.nn.gelu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]

    p = {"wq": value(mesh, (256, 8, 32), "data", "model"), "wk": value(mesh, (256, 4, 32), "data", "model"),
         "wv": value(mesh, (256, 4, 32), "data", "model"), "wo": value(mesh, (8, 32, 256), "model", None, "data"),
         "gate": value(mesh, (256, 512), "data", "model"), "up": value(mesh, (256, 512), "data", "model"),
         "down": value(mesh, (512, 256), "model", "data"), "norm1": value(mesh, (256,)), "norm2": value(mesh, (256,))}
    return lower(block, p, value(mesh, (8, 64, 256), "data"))


PROGRAMS = (moe_all_to_all, fsdp_scan_remat, data_parallel, matmul_2d, tensor_parallel_mlp, embedding, sequence_parallel,
            convolution, attention, gemma_block)

if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    for program in PROGRAMS:
        text = program().as_text(debug_info=True).replace(os.path.dirname(os.path.abspath(__file__)) + os.sep, "")
        (folder / f"{program.__name__}.mlir").write_text(text)
        print(program.__name__, len(text))
