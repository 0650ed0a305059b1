"""A step of SGD on a batch that is split: the gradients are summed over all devices."""

import jax
import jax.numpy as jnp

from .common import abstract, make_mesh


def loss(params, x, y):
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return jnp.mean((hidden @ params["w2"] - y) ** 2)


def step(params, x, y):
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value


def lower(devices):
    mesh = make_mesh(devices, data=8)
    params = {"w1": abstract(mesh, (32, 64)), "b1": abstract(mesh, (64,)), "w2": abstract(mesh, (64, 16))}
    x, y = abstract(mesh, (128, 32), "data"), abstract(mesh, (128, 16), "data")
    return jax.jit(step, donate_argnums=0).lower(params, x, y)
