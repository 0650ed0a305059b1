#!/usr/bin/env python3
"""Runs programs that JAX exported by load_program, and compares their results with JAX's.

usage: export_database.py PYTHON [NAME ...] [--folder FOLDER] [--with-one-device]

PYTHON is an interpreter with JAX (any version from 0.10; with flatbuffers, and optax, flax, equinox for their
programs), which need not be able to import meshard. It exports the programs of export_programs.py whose names begin
with NAME, and runs them. Here each runs on the first devices and on shuffled ones, by their place in the list of
arguments, and as a part of a program that meshard compiles; if it was exported with a derivative, that runs too. Prints
each difference and error; ends with the counts, and with an error if a result was wrong, or a program ended in an error
that its entry does not expect.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

# Relative to the largest magnitude of the value: what sums in another order change. Of narrow types, one rounding.
TOLERANCE = {
    "float32": 2e-5,
    "complex64": 2e-5,
    "float64": 1e-12,
    "float16": 2e-3,
    "bfloat16": 1e-2,
    "float8_e4m3fn": 0.13,
    "float8_e5m2": 0.26,
}
DERIVATIVE = "g"


# --- in the interpreter with JAX ----------------------------------------------------------------------


def storable(value):
    """What .npz can hold: types that NumPy lacks as their bytes."""
    import numpy as np

    value = np.asarray(value)
    if str(value.dtype) == "int4":
        return value.astype(np.int8)
    return value.view(f"u{value.dtype.itemsize}") if value.dtype.kind == "V" or value.dtype.num > 255 else value


def write_program(program, folder):
    """Exports and runs one program. Returns what the check needs to know."""
    import contextlib

    import jax
    import numpy as np
    from jax import export

    values = {}
    with jax.set_mesh(program.mesh) if program.mesh else contextlib.nullcontext():
        exported = export.export(jax.jit(program.function, **program.of_jit), **program.of_export)(
            *program.arguments, **program.named
        )
        (folder / f"{program.name}.bin").write_bytes(exported.serialize(vjp_order=int(program.derivative)))
        leaves = jax.tree.leaves((program.arguments, program.named))
        values.update({f"in{i}": np.array(leaf) for i, leaf in enumerate(leaves)})
        if not program.refused:
            function = jax.jit(program.function)
            results = function(*program.arguments, **program.named)
            values.update({f"out{i}": leaf for i, leaf in enumerate(jax.tree.leaves(results))})
            if program.derivative:
                results, pull = jax.vjp(function, *program.arguments)
                draw = np.random.default_rng(7)
                floats = lambda leaf: np.issubdtype(leaf.dtype, np.inexact)
                cotangents = jax.tree.map(
                    lambda r: (
                        jax.numpy.asarray(draw.standard_normal(r.shape), r.dtype)
                        if floats(r)
                        else np.zeros(r.shape, jax.dtypes.float0)
                    ),
                    results,
                )
                values.update(
                    {
                        f"ct{i}": np.zeros(leaf.shape, bool) if leaf.dtype == jax.dtypes.float0 else leaf
                        for i, leaf in enumerate(jax.tree.leaves(cotangents))
                    }
                )
                for i, leaf in enumerate(jax.tree.leaves(pull(cotangents))):
                    if leaf.dtype != jax.dtypes.float0:
                        values[f"{DERIVATIVE}{i}"] = leaf
    dtypes = {name: str(np.asarray(value).dtype) for name, value in values.items()}
    np.savez(folder / f"{program.name}.npz", **{name: storable(value) for name, value in values.items()})
    return {"dtypes": dtypes, "refused": program.refused, "derivative": program.derivative}


def write(folder, names):
    import traceback

    import jax

    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    import export_programs

    entries = {}
    for program in export_programs.programs():
        if names and not program.name.startswith(tuple(names)):
            continue
        try:
            entries[program.name] = write_program(program, folder)
        except Exception as error:  # this version of JAX cannot export or run it
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{os.path.basename(place.filename)}:{place.lineno}"
            entries[program.name] = {"skipped": f"{type(error).__name__}: {str(error)[:200]} ({where})"}
    missing = export_programs.missing_libraries()
    (folder / "entries.json").write_text(
        json.dumps({"jax": jax.__version__, "missing": missing, "programs": entries}), encoding="utf-8"
    )


# --- here -----------------------------------------------------------------------------------------------


def values_of(folder, name, dtypes):
    import ml_dtypes
    import numpy as np

    values = {}
    with np.load(folder / f"{name}.npz") as stored:
        for key in stored.files:
            dtype = np.dtype(getattr(ml_dtypes, dtypes[key], dtypes[key]))
            values[key] = stored[key].astype(dtype) if dtypes[key] == "int4" else stored[key].view(dtype)
    return values


def numbered(values, prefix):
    return {int(key[len(prefix) :]): value for key, value in values.items() if key.rstrip("0123456789") == prefix}


def compare(got, want):
    """How two arrays differ by more than their dtype's tolerance; empty if they do not."""
    import numpy as np

    got = np.asarray(got)
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    tolerance = TOLERANCE.get(str(want.dtype), 0)
    wide = got.dtype if not tolerance else np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    scale = np.max(np.abs(want[np.isfinite(want)]), initial=0) if tolerance else 0
    near = np.isclose(got, want, rtol=0, atol=tolerance * scale, equal_nan=True) if tolerance else got == want
    if near.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~near)[0])
    return f"{int((~near).sum())} of {want.size} elements differ; at {list(at)} {got[at]} instead of {want[at]}"


def in_jit(program, arguments, values):
    """(results, gradients) of the program as a part of a compiled one."""
    import meshard as ms

    def run(*given):
        return program.flat(list(given))

    wanted = numbered(values, DERIVATIVE)
    results = ms.jit(run)(*arguments)
    if not wanted:
        return results, {}
    places = sorted(wanted)

    def of_floats(*floats):
        given = list(arguments)
        for place, value in zip(places, floats, strict=True):
            given[place] = value
        return run(*given)

    def pull(floats, cotangents):
        return ms.vjp(of_floats, *floats)[1](cotangents)

    gradients = ms.jit(pull)([arguments[place] for place in places], list(numbered(values, "ct").values()))
    return results, dict(zip(places, gradients, strict=True))


def check(folder, name, entry, with_one_device):
    """The problems of one program."""
    import meshard as ms

    values = values_of(folder, name, entry["dtypes"])
    arguments = list(numbered(values, "in").values())
    problems = []
    program = ms.load_program(folder / f"{name}.bin")

    def add(results, gradients, where):
        for prefix, words, got in (("out", "result", results), (DERIVATIVE, "derivative", gradients)):
            for i, want in numbered(values, prefix).items():
                if problem := compare(got[i], want):
                    problems.append(f"{words} {i}{where}: {problem}")

    for devices in (None, random.Random(name).sample(range(8), program.num_devices)):
        results = program.flat(arguments, devices=devices)
        gradients = {}
        if entry["derivative"]:
            gradients = program.vjp().flat([*arguments, *numbered(values, "ct").values()], devices=devices)
        add(results, gradients, f" on devices {devices}" if devices else "")
    add(*in_jit(program, arguments, values), " inside jit")
    if with_one_device and not (found := program.check(arguments)):
        problems.append(f"beside one device: {found}")
    return problems


def check_all(folder, with_one_device):
    import meshard as ms

    read = json.loads((folder / "entries.json").read_text(encoding="utf-8"))
    counts = dict.fromkeys(("right", "refused", "skipped", "wrong", "failed"), 0)
    for name, entry in read["programs"].items():
        kind, words = "right", ""
        if "skipped" in entry:
            kind, words = "skipped", entry["skipped"]
        else:
            try:
                if problems := check(folder, name, entry, with_one_device):
                    kind, words = "wrong", "; ".join(problems)
            except Exception as error:
                expected = entry["refused"] and entry["refused"] in str(error)
                kind, words = "refused" if expected else "failed", f"{type(error).__name__}: {str(error)[:400]}"
        counts[kind] += 1
        if kind != "right":
            print(f"{kind} {name}: {words}", flush=True)
    print(
        f"JAX {read['jax']}: "
        + ", ".join(f"{count} {kind}" for kind, count in counts.items())
        + "".join(f"; {library} is not installed" for library in read["missing"])
    )
    return counts["wrong"] + counts["failed"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python")
    parser.add_argument("names", nargs="*")
    parser.add_argument(
        "--folder", type=pathlib.Path, help="keeps the exports here; those that are there already are not written again"
    )
    parser.add_argument(
        "--with-one-device", action="store_true", help="also compares each, op by op, with a run on one device"
    )
    parser.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        return write(arguments.folder, arguments.names)
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "entries.json").exists():
            environment = {
                **os.environ,
                "JAX_PLATFORMS": "cpu",
                "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
            }
            subprocess.run(
                [arguments.python, __file__, "--write", "--folder", folder, arguments.python, *arguments.names],
                check=True,
                env=environment,
            )
        return check_all(folder, arguments.with_one_device)


if __name__ == "__main__":
    sys.exit(min(main() or 0, 1))
