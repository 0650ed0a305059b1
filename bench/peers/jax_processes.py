#!/usr/bin/env python3
"""JAX in several processes with one CPU device each, which communicate by gloo.

usage: jax_processes.py COUNT WIDTH ROWS STEPS MEGABYTES

Prints what bench/peers/processes.cc prints for ours: one line of JSON.
"""

import json
import os
import socket
import subprocess
import sys
import time


def start(count, arguments):
    """Starts the processes. @return the output of the first"""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    children = [subprocess.Popen([sys.executable, __file__, str(count), *arguments, str(rank), address],
                                 stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL, text=True)
                for rank in range(count)]
    output = children[0].communicate()[0]
    if any([child.wait() for child in children]):
        sys.exit("a process of JAX has failed")
    return output


def work(count, width, rows, steps, megabytes, rank, address):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import jax
    import numpy as np
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 1)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(address, count, rank)
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    by_row = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())

    def place(array, sharding):
        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])

    x = place(np.full((rows, width), 0.5, np.float32), by_row)
    w = place(np.full((width, width), 0.01, np.float32), whole)

    def step(w, x):
        loss, gradient = jax.value_and_grad(lambda w: (jax.numpy.tanh(x @ w) ** 2).mean())(w)
        return w - 0.01 * gradient, loss

    step = jax.jit(step, donate_argnums=(0,), in_shardings=(whole, by_row), out_shardings=(whole, whole))
    begin = time.perf_counter()
    w, loss = step(w, x)
    facts = {"loss": float(loss), "first_launch": time.perf_counter() - begin}
    fastest = 1e9
    for _ in range(10):
        begin = time.perf_counter()
        for _ in range(steps):
            w, loss = step(w, x)
            loss.block_until_ready()
        fastest = min(fastest, (time.perf_counter() - begin) / steps)
    facts["step"] = fastest
    elements = megabytes * 1024 * 1024 // 4
    large = place(np.ones((count * elements,), np.float32), by_row)
    total = jax.jit(jax.shard_map(lambda each: jax.lax.psum(each, "data"), mesh=mesh,
                                  in_specs=jax.sharding.PartitionSpec("data"), out_specs=jax.sharding.PartitionSpec()))
    total(large).block_until_ready()
    fastest = 1e9
    for _ in range(5):
        begin = time.perf_counter()
        total(large).block_until_ready()
        fastest = min(fastest, time.perf_counter() - begin)
    facts["all_reduce"] = fastest
    if rank == 0:
        print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 6:
        print(start(int(sys.argv[1]), sys.argv[2:]), end="")
    else:
        work(*map(int, sys.argv[1:7]), sys.argv[7])
