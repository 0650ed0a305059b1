"""Optax's lion with decay of the matrices only, a schedule and a limit on values; weights split over both axes of the mesh."""

import optax

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh

TOPOLOGY = "v5e:4x4"
LAYERS = {f"layer{i}": (f"['layer{i}']",) for i in range(3)}


def lower(devices):
    mesh = make_mesh(devices, fsdp=4, model=4)
    optimizer = optax.chain(optax.clip(1.0), optax.lion(optax.cosine_decay_schedule(1e-3, 100), weight_decay=0.1,
                                                        mask=lambda p: jax.tree.map(lambda x: len(x.shape) > 1, p)))

    def loss(params, x):
        for i in range(3):
            with jax.named_scope(f"layer{i}"):
                p = params[f"layer{i}"]
                x = constrain(mesh, x @ p["kernel"] + p["bias"], "fsdp", *(["model"] if i == 0 else []))
                x = jax.nn.gelu(x)
        return jnp.mean(x ** 2)

    def update(params, gradients, state):
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    params = {f"layer{i}": {"kernel": abstract(mesh, (SIZES[i], SIZES[i + 1]), "fsdp", "model"),
                            "bias": abstract(mesh, (SIZES[i + 1],), "model")} for i in range(3)}
    state = jax.eval_shape(optimizer.init, params)
    like = {p.shape: p.sharding for p in jax.tree.leaves(params)}
    state = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=like[s.shape]) if s.shape in like
                         else abstract(mesh, s.shape, dtype=s.dtype), state)
    return lower_step(loss, params, abstract(mesh, (BATCH, SIZES[0]), "fsdp"), update=update, state=state)
