#!/usr/bin/env python3
"""The works of JAX.

usage: jax_peer.py PLUGIN [DEVICES]
"""

import sys
import time

import jax_gpt
import jax_layers
import jax_setup
import jax_transfers
import protocol


def parameters(count, devices, donate=False, chained=False, calls=24):
    """`count` parameters of 8 x 8, sharded by rows; each call halves them and adds 1. The seconds of one call."""
    jax = jax_setup.jax()
    import numpy as np
    place = jax.sharding.NamedSharding(jax_setup.mesh(tp=devices), jax.sharding.PartitionSpec("tp"))
    state = [jax.device_put(np.ones((8, 8), np.float32), place) for _ in range(count)]
    step = jax.jit(lambda all: [each * 0.5 + 1.0 for each in all], donate_argnums=(0,) if donate else ())
    state = step(state)
    state[-1].block_until_ready()
    return {}, protocol.repeated(step, state, calls, chained)


def softmax_regression(inputs, classes, batch, jitted, began):
    """From initialization to the first loss of softmax regression with Adam; `began` is when the process did."""
    jax = jax_setup.jax()
    import jax.numpy as jnp
    import numpy as np
    ready = time.monotonic()

    def create():
        weights = {"weight": 0.01 * jax.random.normal(jax.random.key(1), (inputs, classes)), "bias": jnp.zeros((classes,))}
        zeros = jax.tree.map(jnp.zeros_like, weights)
        return weights, zeros, jax.tree.map(jnp.zeros_like, weights), jnp.int32(0)

    def loss_of(weights, x, y):
        logits = x @ weights["weight"] + weights["bias"]
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()

    def step(state, x, y):
        weights, means, squares, steps = state
        loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
        means = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, means, gradients)
        squares = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, squares, gradients)
        steps = steps + 1
        first, second = 1 - 0.9 ** steps.astype(jnp.float32), 1 - 0.999 ** steps.astype(jnp.float32)
        weights = jax.tree.map(lambda w, m, v: w - 1e-3 * (m / first) / (jnp.sqrt(v / second) + 1e-8), weights, means, squares)
        return (weights, means, squares, steps), loss

    x = np.full((batch, inputs), 0.5, np.float32)
    y = np.arange(batch, dtype=np.int32) % classes
    state = jax.jit(create)() if jitted else create()
    state, loss = jax.jit(step, donate_argnums=(0,))(state, x, y)
    loss = float(loss)
    done = time.monotonic()
    return {"first_step": done - ready, "since_start": done - began, "loss": loss}, lambda: None


def record(ops, number=False):
    """Traces `ops` additions in a chain: of an array, or of a number. The seconds of one."""
    jax = jax_setup.jax()
    import jax.numpy as jnp
    x = jnp.ones((64, 64))

    def chain(x):
        other, y = 1.0 if number else x, x
        for _ in range(ops):
            y = y + other
        return y

    def run():
        begin = time.perf_counter()
        jax.make_jaxpr(lambda x: chain(x))(x)
        return (time.perf_counter() - begin) / ops

    return {}, run


def loop(steps, devices):
    """`steps` steps of three operations of an 8 x 8 array, sharded by rows, without jit and without waiting. The seconds
    of all."""
    jax = jax_setup.jax()
    import jax.numpy as jnp
    import numpy as np
    x = np.ones((8, 8), np.float32)
    if devices > 1:
        place = jax.sharding.NamedSharding(jax_setup.mesh(tp=devices), jax.sharding.PartitionSpec("tp"))
        x = jax.device_put(x, place)
    else:
        x = jax.device_put(x)

    def run():
        y = x
        begin = time.perf_counter()
        for _ in range(steps):
            y = jnp.tanh(y + 1) * 0.5
        y.block_until_ready()
        return time.perf_counter() - begin

    return {}, run


def first_result(began):
    """Seconds from `began`, before the process started, to the first result of a jitted product on all devices."""
    jax = jax_setup.jax()
    import jax.numpy as jnp
    imported = time.monotonic()
    place = jax.sharding.NamedSharding(jax_setup.mesh(dp=len(jax.devices())), jax.sharding.PartitionSpec("dp"))
    x = jax.device_put(jnp.ones((64, 64)), place)
    value = float(jax.jit(lambda x: (x @ x).sum())(x))
    return {"since_start": time.monotonic() - began, "imported": imported - began, "value": value}, lambda: None


WORKS = {
    "record": record,
    "loop": loop,
    "first_result": first_result,
    "trace_layers": jax_layers.trace_layers,
    "hello": jax_setup.hello,
    "parameters": parameters,
    "softmax_regression": softmax_regression,
    "transfer": jax_transfers.transfer,
    "training": jax_gpt.training,
    "decode": jax_gpt.decode,
    "layers": jax_layers.layers,
    "layers_start": jax_layers.start,
}

if __name__ == "__main__":
    jax_setup.use(sys.argv[1] if len(sys.argv) > 1 else "", int(sys.argv[2]) if len(sys.argv) > 2 else 8)
    protocol.serve(WORKS)
