"""Runs `meshard same` on programs that JAX exported, and on changed ones.

usage: check_same.py MESHARD FOLDER (tests/golden/exported)
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

TOOL, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
STEP = """module @step {{
  func.func public @main(%{x}: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {{
    %0 = stablehlo.tanh %{x} : tensor<8xf32> loc("t"("step.py":3:0))
    %1 = stablehlo.{op} %0, %y : tensor<8xf32> loc("s"("step.py":4:0))
{more}    return %{result} : tensor<8xf32>
  }}
}}
"""


def same(*arguments):
    done = subprocess.run([TOOL, "same", *map(str, arguments)], capture_output=True, encoding="utf-8", timeout=300,
                          env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
    return done.returncode, done.stdout + done.stderr


def expect(outcome, code, *parts):
    if outcome[0] != code or not all(part in outcome[1] for part in parts):
        sys.exit(f"status {outcome[0]}, expected {code} with {parts}:\n{outcome[1]}")


with tempfile.TemporaryDirectory() as folder:
    def write(name, **changes):
        path = pathlib.Path(folder) / name
        path.write_text(STEP.format(**({"x": "x", "op": "add", "more": "", "result": "1"} | changes)))
        return path

    one = write("one.mlir")
    if (outcome := same(one, one))[0] == 2 and "no plugin" in outcome[1]:
        print("skipped: no CPU plugin")
        sys.exit(77)
    expect(outcome, 0, "are the same computation: ", " ops on 1 device")
    expect(same(one, write("names.mlir", x="value")), 0, "names.mlir are the same computation")
    other = write("other.mlir", op="subtract")
    expect(same(one, other), 1, "other.mlir is another computation. The first difference:", "one.mlir  add ",
           "other.mlir  subtract ", "(step.py:4)")
    expect(same("--run", one, other), 1, "other.mlir gives other results for random values: out0: ")
    twice = write("twice.mlir", result="3", more="    %2 = stablehlo.negate %1 : tensor<8xf32>\n"
                                                 "    %3 = stablehlo.negate %2 : tensor<8xf32>\n")
    expect(same("--run", one, twice), 0, "twice.mlir is another computation",
           f"twice.mlir gives the results of {one} for random values")
    # Forms of the same program, read by other versions.
    forms = [FOLDER / f"gpt12_scan_v5e_4x4.{form}" for form in ("mlir", "mlirbc", "portable")]
    expect(same(*forms), 0, "are the same computation: ", "on 16 devices")
    newer = FOLDER / "run" / "lapack.bin"  # with calls in a form that older plugins do not read
    expect(same(newer, newer), 0, "are the same computation: ")
    expect(same(FOLDER / "symbolic_exported.bin", one), 2, "symbolic sizes", "in ")
    expect(same(one), 2)
print("10 passed, 0 failed")
