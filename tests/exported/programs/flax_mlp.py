"""Layers of flax with a loop over them in Python, and a step of plain gradient descent."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from .common import abstract, make_mesh

TOPOLOGY = "v5e:2x4"


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        hidden = nn.gelu(nn.Dense(4 * self.width, name="up")(x))
        return x + nn.Dense(self.width, name="down")(hidden)


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        for i in range(3):
            x = Block(128, name=f"b{i}")(x)
        return nn.LayerNorm()(x)


def spec(path, x):
    names = [key.key for key in path]
    if "up" in names:
        return P(None, "model") if x.ndim == 2 else P("model")
    return P("model") if "down" in names and x.ndim == 2 else P()


def lower(devices):
    mesh = make_mesh(devices, data=2, model=4)
    model = Model()
    shapes = jax.eval_shape(model.init, jax.random.key(0), jnp.zeros((1, 128)))
    params = jax.tree_util.tree_map_with_path(
        lambda path, x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(mesh, spec(path, x))), shapes)

    def step(params, x):
        gradients = jax.grad(lambda p: jnp.mean(model.apply(p, x) ** 2))(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

    return jax.jit(step, donate_argnums=0).lower(params, abstract(mesh, (64, 128), "data"))
