"""Transfers of a large matrix in JAX: to the devices, back to the host, and from rows to columns."""

import time

import jax_setup


def transfer(side, kind):
    """f32[side, side] on all devices. Returns the seconds of one transfer.

    `kind`: place (from the host, split by rows), gather (split by rows, to the host), reshard (split by rows, to columns), or
    reshard_jit (the same in a jitted function).
    """
    jax = jax_setup.jax()
    import numpy as np
    mesh = jax_setup.mesh(x=len(jax.devices()))
    rows, columns = (jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec)) for spec in (("x",), (None, "x")))
    host = (np.arange(side * side, dtype=np.int64) & 1023).astype(np.float32).reshape(side, side)
    placed = jax.device_put(host, rows).block_until_ready()
    to_columns = jax.jit(lambda x: x, out_shardings=columns)
    copied = jax.jit(lambda x: x.copy(), out_shardings=rows)  # an array keeps the host array that it was read to

    def run():
        given = copied(placed).block_until_ready() if kind == "gather" else placed
        begin = time.perf_counter()
        if kind == "place":
            done = jax.device_put(host, rows).block_until_ready()
        elif kind == "gather":
            done = np.asarray(given)
        elif kind == "reshard":
            done = jax.device_put(given, columns).block_until_ready()
        else:
            done = to_columns(given).block_until_ready()
        taken = time.perf_counter() - begin
        del done
        return taken

    return {}, run
