#!/usr/bin/env python3
"""Records what JAX makes of programs whose compile depends on more than their module.

usage: record_compiled.py FOLDER

Writes the modules and compiled.json into FOLDER (tests/golden/exported). Needs jax and flatbuffers, and libtpu:
TPU_LIBRARY_PATH names its file, TPU_SKIP_MDS_QUERY=1 lets it run without a TPU. Nothing runs: JAX compiles for the
devices of a topology description. The programs for the older partitioner are recorded in a process of their own.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

os.environ["JAX_PLATFORMS"] = ""
TOPOLOGY = "v5e:2x4"
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")


class Programs:
    """The programs, over a mesh of 2 x 4 devices, which are given in its shape."""

    def __init__(self, devices):
        import jax

        self.jax = jax
        self.mesh = jax.sharding.Mesh(devices, ("data", "model"))

    def value(self, shape, *spec, sharded=True):
        jax = self.jax
        sharding = jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec(*spec)) if sharded else None
        return jax.ShapeDtypeStruct(shape, "float32", sharding=sharding)

    def results(self):
        """Nobody shards the results, nor one argument."""
        def layer(x, up, down):
            hidden = self.jax.numpy.tanh(x @ up)
            return hidden @ down, hidden.T, (hidden * hidden).sum()
        arguments = (self.value((256, 512), "data"), self.value((512, 1024), None, "model"),
                     self.value((1024, 512), sharded=False))
        return self.jax.jit(layer).lower(*arguments)

    def donated(self):
        """A donated argument, whose result is not sharded: the compiler decides whether its memory can be reused."""
        def step(w, x):
            return w - 0.1 * (x.T @ (x @ w)), (x @ w).sum(0)
        return self.jax.jit(step, donate_argnums=0).lower(self.value((512, 512), "data", "model"),
                                                          self.value((256, 512), "data"))

    def loop_sum(self):
        """A sum in a loop, whose results are collected: libtpu would move it behind the loop by itself."""
        jax, P = self.jax, self.jax.sharding.PartitionSpec

        def local(x, ws):
            def layer(x, w):
                x = jax.numpy.tanh(x @ w)
                return x, jax.lax.psum(x.sum(), "data")
            return jax.lax.scan(layer, x, ws)
        function = jax.shard_map(local, mesh=self.mesh, in_specs=(P("data"), P()), out_specs=(P("data"), P()),
                                 check_vma=False)
        return jax.jit(function).lower(self.value((64, 32), "data"), self.value((3, 32, 32)))

    def exported(self, platforms):
        """The function, its arguments and its export."""
        jax = self.jax

        def layer(p, x, unused):
            hidden = jax.numpy.tanh(x @ p["up"])
            return {"y": hidden @ p["down"], "square": (hidden * hidden).sum()}
        arguments = ({"up": self.value((64, 128), None, "model"), "down": self.value((128, 64), "model")},
                     self.value((32, 64), "data"), self.value((7,)))
        return layer, arguments, jax.export.export(jax.jit(layer), platforms=platforms)(*arguments)


def groups(text):
    counts = {}
    for kind in COLLECTIVES:
        found = len(re.findall(rf"[\]}})] {kind}(?:-start)?\(", text))
        if found:
            counts[kind] = found
    return counts


def shards(shardings, avals, jax):
    """One device's part of each value."""
    leaves = jax.tree_util.tree_leaves(shardings)
    return [f"f32[{','.join(map(str, sharding.shard_shape(aval.shape)))}]" for sharding, aval in zip(leaves, avals, strict=True)]


def left_open(lowered):
    """Whether the compiler chooses the shardings of the arguments and of the results."""
    made = lowered._lowering.compile_args
    return {f"chosen_{role}": [type(one).__name__ == "UnspecifiedValue" for one in made[key]]
            for role, key in (("arguments", "in_shardings"), ("results", "out_shardings"))}


def truth(name, file, lowered, jax, **more):
    compiled = lowered.compile()
    memory, text = compiled.memory_analysis(), compiled.as_text()
    arguments = jax.tree_util.tree_leaves(lowered.args_info)
    kept = sorted(lowered._lowering.compile_args["kept_var_idx"])
    results = jax.tree_util.tree_leaves(lowered.out_info)
    given = shards(compiled.input_shardings, [arguments[i] for i in kept], jax)
    names = ("argument", "output", "alias", "temp", "generated_code")
    bytes_per_device = {part: getattr(memory, f"{part}_size_in_bytes") for part in names}
    bytes_per_device["peak_memory"] = memory.peak_memory_in_bytes
    return {"name": name, "module": file, "topology": TOPOLOGY, "devices": 8, "mesh": {"data": 2, "model": 4},
            "bytes_per_device": bytes_per_device, "collectives": groups(text), "while_loops": text.count(" while("),
            "quick": True, "arguments": given, "results": shards(compiled.output_shardings, results, jax),
            **left_open(lowered), **more}


def record(partitioner, folder):
    import jax
    import jax.export
    import numpy as np
    from jax.experimental import mesh_utils, topologies

    jax.config.update("jax_use_shardy_partitioner", partitioner == "shardy")
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")  # no folders of this machine
    devices = list(topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGY).devices)
    programs = Programs(mesh_utils.create_device_mesh((2, 4), devices=devices))
    cases = []

    def add(name, lowered, **more):
        name, file = f"{partitioner}_{name}", f"{partitioner}_{name}.mlir"
        (folder / file).write_text(lowered.as_text(), encoding="utf-8")
        cases.append(truth(name, file, lowered, jax, **more))

    add("results", programs.results())
    add("donated", programs.donated())
    if partitioner == "shardy":
        add("loop_sum", programs.loop_sum())
        order = [3, 6, 0, 5, 1, 7, 2, 4]
        chosen = np.array([devices[i] for i in order]).reshape(2, 4)
        add("device_order", Programs(chosen).results(),
            options=["--device-ids", ",".join(str(device.id) for device in chosen.flat)])
    if partitioner == "shardy":
        size, = jax.export.symbolic_shape("b")
        exported = jax.export.export(jax.jit(lambda x: x + 1), platforms=["tpu", "cpu"],
                                     disabled_checks=[jax.export.DisabledSafetyCheck.platform()])
        unfinished = exported(jax.ShapeDtypeStruct((size, 4), "float32"))
        (folder / "symbolic_exported.bin").write_bytes(unfinished.serialize())
    function, arguments, exported = programs.exported(["tpu"])
    file = f"{partitioner}_exported.bin"
    (folder / file).write_bytes(exported.serialize())
    # JAX 0.10.2 cannot call what it exported for the older partitioner. A call passes the unused argument, too, which
    # the exported module does not have.
    called = exported.call if partitioner == "shardy" else function
    lowered = jax.jit(lambda p, x: called(p, x, jax.numpy.zeros(7, "float32"))).lower(*arguments[:2])
    cases.append(truth(f"{partitioner}_exported", file, lowered, jax))
    print(json.dumps(cases))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--partitioner", choices=("shardy", "gspmd"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.partitioner:
        record(arguments.partitioner, arguments.folder)
        return
    import jax
    cases = []
    for partitioner in ("shardy", "gspmd"):
        done = subprocess.run([sys.executable, __file__, arguments.folder, "--partitioner", partitioner], check=True,
                              stdout=subprocess.PIPE, encoding="utf-8")
        cases += json.loads(done.stdout.strip().splitlines()[-1])
    written = {"jax": jax.__version__, "libtpu": "0.0.51", "cases": cases}
    (arguments.folder / "compiled.json").write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
