#!/usr/bin/env python3
"""The rows of rows_step.cc in JAX, on one device of the same platform.

usage: jax_rows.py PLATFORM PLUGIN WIDTH

Prints a JSON object for each row: name, value, unit. On CPUs, JAX loads PLUGIN if it can; on other platforms it uses
its own installed plugin, and prints no rows if it has none.
"""

import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers"))
NAMES = {"cuda": ("cuda", "gpu"), "rocm": ("rocm", "gpu"), "oneapi": ("oneapi", "sycl", "xpu", "gpu"), "tpu": ("tpu",)}


def row(name, value, unit="s"):
    print(json.dumps({"name": name, "status": "measured", "value": value, "unit": unit}), flush=True)


def least_seconds(run, budget=1):
    """As in check.h."""
    run()
    least, begin, count = 1e300, time.perf_counter(), 0
    while count < 3 or (count < 1000 and time.perf_counter() - begin < budget):
        start = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - start)
        count += 1
    return least


def start(platform, plugin):
    """JAX with a device of the platform, and its title."""
    if platform == "cpu":
        import jax_setup
        jax_setup.use(plugin, 1)
        jax = jax_setup.jax()
        title, _ = jax_setup.hello()
        return jax, f"{title['project']} on {title['client']}"
    import jax
    device = jax.devices()[0]
    if device.platform not in NAMES.get(platform, (platform,)):
        raise RuntimeError(f"JAX has devices of {device.platform}, not of {platform}")
    return jax, f"JAX {jax.__version__} on {device.device_kind}, its own plugin"


def calls(jax, count):
    import numpy as np
    step = jax.jit(lambda state: [each * 0.5 + 1.0 for each in state])
    state = step([jax.device_put(np.ones((8, 8), np.float32)) for _ in range(count)])

    def run():
        nonlocal state
        for _ in range(10):
            state = step(state)
        jax.block_until_ready(state)

    row(f"call.{count}", least_seconds(run) / 10)


def training(jax, batch, width):
    import jax.numpy as jnp

    def weight(rows, columns):
        i, j = jnp.arange(rows, dtype=jnp.float32)[:, None], jnp.arange(columns, dtype=jnp.float32)
        return jnp.sin(i * 3 + j * 7) * jnp.float32(rows ** -0.5)

    def loss_of(w, x, y):
        h = jnp.tanh(jnp.tanh(x @ w[0]) @ w[1])
        return jnp.mean(jnp.square(h @ w[2] - y))

    def update(w, x, y):
        loss, gradients = jax.value_and_grad(loss_of)(w, x, y)
        return [each - 0.1 * gradient for each, gradient in zip(w, gradients)], loss

    step = jax.jit(update, donate_argnums=0)
    w, x, y = jax.jit(lambda: ([weight(width, width), weight(width, width), weight(width, 10)], weight(batch, width),
                               weight(batch, 10)))()
    jax.block_until_ready((w, x, y))
    begin = time.perf_counter()
    w, loss = step(w, x, y)
    jax.block_until_ready((w, loss))
    row("training.compile", time.perf_counter() - begin)
    for _ in range(19):
        w, loss = step(w, x, y)
    row("training.loss", float(loss), "")

    def run():
        nonlocal w, loss
        w, loss = step(w, x, y)
        jax.block_until_ready((w, loss))

    row("training.step", least_seconds(run))


def main():
    platform, plugin, width = sys.argv[1], sys.argv[2], int(sys.argv[3])
    try:
        jax, title = start(platform, plugin)
    except Exception as error:  # whatever JAX throws without such a device
        print(json.dumps({"name": "jax", "status": "unsupported", "text": f"not compared: {error}"[:500]}))
        return 0
    print(json.dumps({"name": "jax", "status": "passed", "text": title}), flush=True)
    for count in (2, 20, 200):
        calls(jax, count)
    training(jax, width // 2, width)
    return 0


if __name__ == "__main__":
    sys.exit(main())
