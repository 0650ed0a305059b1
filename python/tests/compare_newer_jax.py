#!/usr/bin/env python3
"""Compares explain and plan with the compiles of another version of JAX, for programs that this version lowers.

usage: compare_newer_jax.py PYTHON [COUNT] [--seed SEED] [--first FIRST]

PYTHON is an interpreter with jax and numpy, which need not be able to import meshard: it lowers and compiles the programs of
jax_programs/ and COUNT random ones, and writes their texts. Each text, with and without locations, must then have the
collectives of JAX's own compile (kind, bytes, executions), the same of them asked for, and candidates of plan with the
names of the arguments.
"""

import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile

DEVICES = 8


# --- in the other interpreter -------------------------------------------------------------------------

def random_program(seed):
    """(function, abstract arguments): a few products, reductions, marks and shard_maps over a random mesh."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import AxisType, NamedSharding
    from jax.sharding import PartitionSpec as P

    draw = random.Random(seed)
    sizes = draw.choice([(8,), (2, 4), (4, 2), (2, 2, 2)])
    names = ("data", "model", "x")[:len(sizes)]
    mesh = jax.make_mesh(sizes, names, axis_types=(AxisType.Auto,) * len(sizes))

    def spec(rank):
        entries = [[] for _ in range(rank)]
        for name in names:
            if draw.random() < 0.6:
                entries[draw.randrange(rank)].append(name)
        return P(*(tuple(one) if len(one) > 1 else one[0] if one else None for one in entries))

    width = draw.choice([16, 32])
    arguments = [(16, width)] + [(width, width)] * draw.randint(1, 3)
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec(2))) for shape in arguments]
    steps = [draw.choice(["product", "product", "mark", "sum", "manual", "loop"]) for _ in range(draw.randint(2, 5))]
    marks = [NamedSharding(mesh, spec(2)) for _ in steps]
    axes = [draw.choice(names) for _ in steps]
    kinds = [draw.choice(["psum", "all_gather", "ppermute", "psum_scatter", "all_to_all"]) for _ in steps]

    def manual(axis, kind):
        n = sizes[names.index(axis)]

        def local(part):
            if kind == "psum":
                return jax.lax.psum(part, axis)
            if kind == "all_gather":
                return jax.lax.all_gather(part, axis, axis=0, tiled=True)[:part.shape[0]]
            if kind == "ppermute":
                return jax.lax.ppermute(part, axis, [(i, (i + 1) % n) for i in range(n)])
            if kind == "psum_scatter":
                return jnp.tile(jax.lax.psum_scatter(part, axis, scatter_dimension=1, tiled=True), (1, n))
            return jax.lax.all_to_all(part, axis, 1, 1, tiled=True)
        return jax.shard_map(local, mesh=mesh, in_specs=P(axis), out_specs=P(axis), check_vma=False)

    def program(x, *weights):
        for i, step in enumerate(steps):
            w = weights[i % len(weights)]
            if step == "product":
                x = jnp.tanh(x @ w)
            elif step == "mark":
                x = jax.lax.with_sharding_constraint(x * 2, marks[i])
            elif step == "sum":
                x = x - x.sum(axis=i % 2, keepdims=True)
            elif step == "manual":
                x = manual(axes[i], kinds[i])(x)
            else:
                x = jax.lax.fori_loop(0, 3, lambda _, v: jnp.tanh(v @ w), x)
        return x, x.sum()

    return jax.jit(program), arguments


def write_programs(folder, seeds):
    """Writes the texts, and compiled.json with the collectives that JAX's compiles have."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import importlib

    import jax
    from jax_programs import hlo_text, run

    def lowered_programs():
        for name in run.program_names():
            yield name, importlib.import_module(f"jax_programs.{name}").lower(jax.devices("cpu"))
        for seed in seeds:
            function, arguments = random_program(seed)
            yield f"random {seed}", function.lower(*arguments)

    compiled = {}
    for name, lowered in lowered_programs():
        for form, text in [("text", lowered.as_text(debug_info=True)), ("bare", lowered.as_text())]:
            with open(os.path.join(folder, f"{name}.{form}"), "w", encoding="utf-8") as file:
                file.write(text)
        found = hlo_text.collectives(lowered.compile().as_text())
        compiled[name] = [[one.kind, one.bytes, one.executions or 1] for one in found]
    with open(os.path.join(folder, "compiled.json"), "w", encoding="utf-8") as file:
        json.dump({"version": jax.__version__, "programs": compiled}, file)


# --- in this one --------------------------------------------------------------------------------------

def counted(items):
    return collections.Counter(tuple(item) for item in items)


def problems_of(folder, name, expected):
    import meshard as ms

    found, asked = [], {}
    for form in ("text", "bare"):
        with open(os.path.join(folder, f"{name}.{form}"), encoding="utf-8") as file:
            text = file.read()
        report = ms.explain(text, topology=f"cpu:{DEVICES}")
        ours = counted((one.kind, max(one.bytes_in, one.bytes_out), one.executions) for one in report.collectives)
        if ours != counted(expected):
            found.append(f"{form}: {dict(ours)}, JAX {dict(counted(expected))}")
        asked[form] = counted((one.kind, one.cause) for one in report.collectives)
        if form == "text":
            candidates, _ = ms.plan_candidates(text, topology=f"cpu:{DEVICES}", free="*", most_candidates=20)
            named = all(f"; {argument}: " in str(one) for one in candidates for argument in one.specs)
            if not candidates or not named:
                found.append(f"candidates: {[str(one) for one in candidates[:2]]}")
    if asked["text"] != asked["bare"]:
        found.append(f"causes: {dict(asked['text'])}, without locations {dict(asked['bare'])}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python")
    parser.add_argument("count", nargs="?", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--write", metavar="FOLDER", help="only write the programs, in this interpreter")
    given = parser.parse_args()
    seeds = [given.seed * 1_000_000 + i for i in range(given.first, given.first + given.count)]
    if given.write:
        write_programs(given.write, seeds)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        words = [given.python, os.path.abspath(__file__), given.python, str(given.count), "--seed", str(given.seed),
                 "--first", str(given.first), "--write", folder]
        subprocess.run(words, check=True, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})
        with open(os.path.join(folder, "compiled.json"), encoding="utf-8") as file:
            compiled = json.load(file)
        wrong = 0
        for name, expected in compiled["programs"].items():
            found = problems_of(folder, name, expected)
            wrong += bool(found)
            for problem in found:
                print(f"{name}: {problem}")
    print(f"JAX {compiled['version']}: {len(compiled['programs']) - wrong} passed, {wrong} failed")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
