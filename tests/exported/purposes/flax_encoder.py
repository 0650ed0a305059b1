"""Blocks of flax's linen with layer norms and biases, split over all devices, and optax's adamw."""

import flax.linen as nn
import optax

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh

TOPOLOGY = "v5e:2x4"
D = SIZES[0]
LAYERS = {f"Encoder/b{i}/{part}": (f"['b{i}']['{part}']",) for i in range(2) for part in ("norm", "up", "mid", "down")}
LAYERS["Encoder/embed"] = ("['embed']",)


class Block(nn.Module):
    up: int
    mid: int

    @nn.compact
    def __call__(self, x):
        h = nn.gelu(nn.Dense(self.up, name="up")(nn.LayerNorm(name="norm")(x)))
        return x + nn.Dense(D, name="down")(nn.gelu(nn.Dense(self.mid, name="mid")(h)))


class Encoder(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(D, name="embed")(x)
        for i in range(2):
            x = Block(SIZES[2 + 2 * i], SIZES[3 + 2 * i], name=f"b{i}")(x)
        return x


def lower(devices):
    mesh = make_mesh(devices, data=8)
    model, optimizer = Encoder(), optax.adamw(1e-3)

    def loss(params, x):
        return jnp.mean(constrain(mesh, model.apply(params, x), "data") ** 2)

    def update(params, gradients, state):
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    def placed(tree):
        return jax.tree.map(lambda s: abstract(mesh, s.shape, *(["data"] if s.shape else []), dtype=s.dtype), tree)

    params = placed(jax.eval_shape(model.init, jax.random.key(0), jnp.zeros((1, SIZES[1]))))
    return lower_step(loss, params, abstract(mesh, (BATCH, SIZES[1]), "data"), update=update,
                      state=placed(jax.eval_shape(optimizer.init, params)))
