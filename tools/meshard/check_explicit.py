"""Runs `meshard explicit` on programs that JAX exported.

usage: check_explicit.py MESHARD FOLDER (tests/golden/exported)
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

TOOL, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])


def meshard(*arguments):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, encoding="utf-8", timeout=300,
                          env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
    return done.returncode, done.stdout + done.stderr


def expect(outcome, code, *parts):
    if outcome[0] != code or not all(part in outcome[1] for part in parts):
        sys.exit(f"status {outcome[0]}, expected {code} with {parts}:\n{outcome[1]}")


def collectives(path):
    code, text = meshard("explain", path, "--topology", "cpu:8", "--json", "-")
    if code != 0:
        sys.exit(text)
    wholes = [one["whole"] for one in json.loads(text)["logical_collectives"]]
    return sorted([one[key] for key in ("kind", "axes", "bytes_in", "bytes_out", "executions")] for one in wholes)


with tempfile.TemporaryDirectory() as folder:
    module, found = pathlib.Path(folder) / "explicit.mlir", pathlib.Path(folder) / "explicit.json"
    program = FOLDER / "shardy_results.mlir"
    outcome = meshard("explicit", program, "--topology", "cpu:8", "--write", module, "--json", found, "--run")
    if outcome[0] == 2 and "no plugin" in outcome[1]:
        print("skipped: no CPU plugin")
        sys.exit(77)
    # The second product sums over what both operands may split, and the sharding of the last argument is free.
    expect(outcome, 0, "program jit_layer: the compiler chose ", "jax.lax.with_sharding_constraint(", "in_shardings of argument 2",
           "run with random values, it gives the same results")
    listed = json.loads(found.read_text())
    assert listed["schema"] == "meshard.explicit" and listed["offered"] and not listed["dropped"], listed
    assert collectives(module) == collectives(program), module.read_text()
    expect(meshard("explicit", module, "--topology", "cpu:8"), 0, "the compiler chose 0 shardings")
    expect(meshard("explicit", program, "--topology", "cpu:8", "--words", "pytorch"), 0, "meshard.torch.mark_sharding(")
    expect(meshard("explicit", FOLDER / "shardy_exported.bin", "--topology", "cpu:8", "--quiet"), 0)
    expect(meshard("explicit", FOLDER / "gspmd_results.mlir", "--topology", "cpu:8"), 2, "older partitioner")
    expect(meshard("explicit", program, "--topology", "cpu:4"), 2)
print("8 passed, 0 failed")
