#!/usr/bin/env python3
"""The works of meshard's Python package.

usage: python_peer.py PLUGIN [DEVICES]
"""

import sys
import time

import protocol

OPTIONS = {"plugin": "", "devices": 8}


def meshard():
    """The module, on the plugin of the command line."""
    import meshard as module
    if not OPTIONS.get("configured"):
        OPTIONS["configured"] = True
        module.configure_runtime(plugin=OPTIONS["plugin"], cpu_devices=OPTIONS["devices"])
    return module


def hello():
    """A work that only imports the package."""
    return {"project": f"meshard for Python {sys.version_info[0]}.{sys.version_info[1]}", "client": "the same plugin"}, \
        lambda: None


def parameters(count, devices, donate=False, chained=False, calls=24):
    """`count` parameters of 8 x 8, sharded by rows; each call halves them and adds 1. The seconds of one call."""
    ms = meshard()
    import numpy as np
    mesh = ms.Mesh({"tp": devices})
    state = [ms.mark_sharding(ms.asarray(np.ones((8, 8), np.float32)), mesh, ms.P("tp")) for _ in range(count)]
    step = ms.jit(lambda all: [each * 0.5 + 1.0 for each in all], donate_argnums=(0,) if donate else ())
    state = step(state)
    ms.sync(state)
    return {}, protocol.repeated(step, state, calls, chained)


def record(ops, number=False):
    """`ops` additions in chains of 100: of a tensor, or of a number. The seconds of one. Longer chains run in parts."""
    ms = meshard()
    x = ms.ones((64, 64))
    other = 1.0 if number else x

    def run():
        seconds = 0
        for _ in range(ops // 100):
            y = x
            begin = time.perf_counter()
            for _ in range(100):
                y = y + other
            seconds += time.perf_counter() - begin
        return seconds / ops

    return {}, run


def loop(steps, devices):
    """`steps` steps of three operations of an 8 x 8 tensor, sharded by rows, without jit and without a sync. The seconds
    of all."""
    ms = meshard()
    import numpy as np
    x = ms.asarray(np.ones((8, 8), np.float32))
    if devices > 1:
        x = ms.mark_sharding(x, ms.Mesh({"tp": devices}), ms.P("tp"))

    def run():
        y = x
        begin = time.perf_counter()
        for _ in range(steps):
            y = ms.tanh(y + 1) * 0.5
        ms.sync(y)
        return time.perf_counter() - begin

    return {}, run


def trace_layers(layers, batch, length):
    """Traces and lowers the training step of the layers of jax_layers.py, a plain loop."""
    import python_layers
    step, arguments = python_layers.step_and_arguments(meshard(), layers, batch, length)

    def run():
        begin = time.perf_counter()
        text = step.text(*arguments)
        taken = time.perf_counter() - begin
        if "sdy.mesh" not in text:
            raise RuntimeError("the module has no mesh")
        return taken

    return {}, run


def first_result(began):
    """Seconds from `began`, before the process started, to the first result of a jitted product on all devices."""
    ms = meshard()
    imported = time.monotonic()
    mesh = ms.Mesh({"dp": OPTIONS["devices"]})
    x = ms.mark_sharding(ms.ones((64, 64)), mesh, ms.P("dp"))
    value = float(ms.jit(lambda x: ms.sum(x @ x))(x))
    return {"since_start": time.monotonic() - began, "imported": imported - began, "value": value}, lambda: None


WORKS = {"hello": hello, "parameters": parameters, "record": record, "loop": loop, "trace_layers": trace_layers,
         "first_result": first_result}

if __name__ == "__main__":
    OPTIONS.update(plugin=sys.argv[1] if len(sys.argv) > 1 else "", devices=int(sys.argv[2]) if len(sys.argv) > 2 else 8)
    protocol.serve(WORKS)
