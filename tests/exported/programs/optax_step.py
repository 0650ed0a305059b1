"""A step of adamw with a schedule and a limit on the gradient's norm, with the states split like the weights."""

import jax
import jax.numpy as jnp
import optax

from .common import abstract, make_mesh, shardings_of

TOPOLOGY = "v5e:2x4"


def lower(devices):
    mesh = make_mesh(devices, data=2, model=4)
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-3, 100, 1000)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=0.1))

    def loss(params, x):
        return jnp.mean((jax.nn.silu(x @ params["up"]) @ params["down"] - x) ** 2)

    def step(params, state, x):
        value, gradients = jax.value_and_grad(loss)(params, x)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    params = {"up": abstract(mesh, (128, 512), "data", "model"), "down": abstract(mesh, (512, 128), "model", "data")}
    like = {x.shape: x.sharding for x in params.values()}
    state = jax.tree.map(lambda s: abstract(mesh, s.shape, *(like[s.shape].spec if s.shape else ()), dtype=s.dtype),
                         jax.eval_shape(optimizer.init, params))
    return jax.jit(step, donate_argnums=(0, 1), out_shardings=(shardings_of(params), shardings_of(state), None)).lower(
        params, state, abstract(mesh, (64, 128), "data"))
