#!/usr/bin/env python3
"""Lowers the programs of programs/ with JAX, compiles them with JAX, and writes the modules and what JAX says of them.

usage: record_programs.py FOLDER [--libtpu FILE] [NAME...]

For each program, NAME.mlir.gz (or NAME.bin, of jax.export) is the module that JAX hands to the compiler, with its
source lines, and NAME.json is what JAX itself got when it compiled it: memory, collectives, arguments, results.
It needs JAX, flax and optax, and a libtpu, but no TPU. Without --libtpu, that of `meshard fetch tpu` is used.
"""

import argparse
import glob
import gzip
import importlib
import json
import os
import pathlib
import pkgutil
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
OTHERS = ("common", "attention_block")
MEMORY = {"arguments": "argument_size", "outputs": "output_size", "aliased": "alias_size", "temporaries": "temp_size",
          "code": "generated_code_size", "peak": "peak_memory"}
HOST_MEMORY = {"arguments": "host_argument_size", "outputs": "host_output_size", "aliased": "host_alias_size",
               "temporaries": "host_temp_size"}


def newest_libtpu():
    cache = os.environ.get("MESHARD_CACHE") or os.path.expanduser("~/.cache/meshard")
    found = sorted(glob.glob(os.path.join(cache, "plugins", "libtpu-*", "libtpu.so")))
    if not found:
        sys.exit("no libtpu: run `meshard fetch tpu`, or use --libtpu")
    return found[-1]


def program_names():
    return [one.name for one in pkgutil.iter_modules([str(HERE / "programs")]) if one.name not in OTHERS]


def devices_of(program):
    from jax.experimental import topologies

    slices = getattr(program, "SLICES", 1)
    options = {"num_slices": slices} if slices > 1 else {}
    return topologies.get_topology_desc(platform="tpu", topology_name=program.TOPOLOGY, **options).devices


def spec_of(sharding, rank):
    """For each dimension, the axes that split it; None if it has no names."""
    spec = getattr(sharding, "spec", None)
    if spec is None:
        return None
    dimensions = [[] if one is None else [one] if isinstance(one, str) else list(one) for one in spec]
    return dimensions + [[]] * (rank - len(dimensions))


def values(avals, shardings, shards):
    found = []
    for aval, sharding, shard in zip(avals, shardings, shards, strict=True):
        kind = getattr(sharding, "memory_kind", None)
        found.append({"shape": list(aval.shape), "shard": shard, "spec": spec_of(sharding, len(aval.shape)),
                      "memory": kind if kind not in (None, "device") else "device"})
    return found


def mesh_of(executable, program):
    """The mesh of the program, found in its shardings."""
    meshes = {one.mesh.shape_tuple: one.mesh for one in executable._in_shardings if hasattr(one, "mesh")}
    if len(meshes) != 1:
        raise SystemExit(f"{program.__name__}: {len(meshes)} meshes in the arguments")
    return next(iter(meshes.values()))


def record(name, folder):
    import jax

    import compiled_text

    program = importlib.import_module(f"programs.{name}")
    shardy = getattr(program, "SHARDY", True)
    jax.config.update("jax_use_shardy_partitioner", shardy)
    serialized = None
    lowered = program.lower(devices_of(program))
    if getattr(program, "SERIALIZED", False):
        exported, lowered = lowered
        serialized = bytes(exported.serialize())
    compiled = lowered.compile()
    text, memory, inside = compiled.as_text(), compiled.memory_analysis(), compiled._executable
    mesh, slices = mesh_of(inside, program), getattr(program, "SLICES", 1)
    axes = dict(mesh.shape)

    module = f"{name}.{'bin' if serialized else 'mlir.gz'}"
    if serialized is None:
        serialized = gzip.compress(lowered.as_text(debug_info=True).encode(), mtime=0)
    (folder / module).write_bytes(serialized)

    arguments, results = compiled_text.entry_types(text)
    kept = sorted(inside._kept_var_idx) if hasattr(inside, "_kept_var_idx") else range(len(arguments))
    avals, shardings = list(inside.in_avals), list(inside._in_shardings)
    if len(avals) != len(arguments):
        avals, shardings = [avals[i] for i in kept], [shardings[i] for i in kept]
    options = [] if shardy else ["--mesh", ",".join(f"{axis}={size}" for axis, size in axes.items())]
    if hasattr(program, "DEVICE_IDS"):
        options += ["--device-ids", ",".join(map(str, program.DEVICE_IDS))]
    truth = {
        "about": " ".join(program.__doc__.split()), "module": module,
        "topology": program.TOPOLOGY + (f"*{slices}" if slices > 1 else ""), "mesh": axes, "options": options,
        "memory": {ours: getattr(memory, theirs + "_in_bytes") for ours, theirs in MEMORY.items()},
        "host_memory": {ours: getattr(memory, theirs + "_in_bytes") for ours, theirs in HOST_MEMORY.items()},
        "arguments": values(avals, shardings, arguments),
        "results": values(inside.out_avals if hasattr(inside, "out_avals") else jax.tree.leaves(lowered.out_info),
                          inside._out_shardings, results),
        "reused": compiled_text.reused(text), "collectives": compiled_text.collectives(text, axes, slices)}
    write(folder / f"{name}.json", truth)
    return truth


def write(path, truth):
    """One line for each member, and for each value and collective."""
    def line(value):
        return json.dumps(value)

    members = []
    for key, value in truth.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            members.append(f' "{key}": [\n  ' + ",\n  ".join(map(line, value)) + "\n ]")
        else:
            members.append(f' "{key}": {line(value)}')
    path.write_text("{\n" + ",\n".join(members) + "\n}\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--libtpu")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    os.environ.update(TPU_LIBRARY_PATH=arguments.libtpu or newest_libtpu(), TPU_SKIP_MDS_QUERY="1", JAX_PLATFORMS="cpu",
                      TF_CPP_MIN_LOG_LEVEL="3")
    sys.path.insert(0, str(HERE))
    import jax

    # Paths in the modules begin at the programs' folder, or at the packages' folder, wherever these are.
    jax.config.update("jax_hlo_source_file_canonicalization_regex",
                      rf"^{re.escape(str(HERE))}/|^.*(?=/site-packages/)")
    for name in arguments.names or program_names():
        truth = record(name, arguments.folder)
        print(f"{name}: {len(truth['collectives'])} collectives", flush=True)


if __name__ == "__main__":
    main()
