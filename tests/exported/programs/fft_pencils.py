"""A transform of three dimensions over pencils: what is transformed is whole on a device, so two transposes move data."""

import jax
import jax.numpy as jnp

from .common import abstract, constrain, make_mesh

TOPOLOGY = "v5e:2x4"


def lower(devices):
    mesh = make_mesh(devices, a=2, b=4)

    def spectrum(x):
        x = jnp.fft.fft(x, axis=2)
        x = jnp.fft.fft(constrain(mesh, x, "a", None, "b"), axis=1)
        x = jnp.fft.fft(constrain(mesh, x, None, "a", "b"), axis=0)
        return jnp.abs(x) ** 2

    return jax.jit(spectrum).lower(abstract(mesh, (32, 32, 32), "a", "b", dtype=jnp.complex64))
