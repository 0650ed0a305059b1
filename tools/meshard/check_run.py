"""Runs `meshard run` on programs that JAX exported, and compares with what JAX computed.

usage: check_run.py MESHARD FOLDER (tests/golden/exported/run)
"""
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import zipfile

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

TOOL, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
ENVIRONMENT = {**os.environ, "MESHARD_PROGRAM_CACHE_MB": "0", "TF_CPP_MIN_LOG_LEVEL": "3"}
# Not on the first devices, in another order.
DEVICES = {8: "5,2,7,0,3,6,1,4", 1: "6"}
NEEDS_LAPACK = {"lapack": "lapack_sgetrf_ffi"}
passed = 0


def run(*arguments):
    done = subprocess.run([TOOL, "run", *map(str, arguments)], capture_output=True, encoding="utf-8", timeout=300,
                          env=ENVIRONMENT)
    return done.returncode, done.stdout, done.stderr


def expect(what, condition, *shown):
    global passed
    if not condition:
        sys.exit("\n".join([f"failed: {what}", *map(str, shown)]))
    passed += 1


def first_number(path, name):
    """The first element of a float32 array in a .npz file."""
    with zipfile.ZipFile(path) as archive:
        expect("Python reads the archive", archive.testzip() is None)
        data = archive.read(name + ".npy")
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack("<f", data[begin:begin + 4])[0]


programs = sorted(FOLDER.glob("*.bin"))
expect("the programs", len(programs) >= 12)
for program in programs:
    name, values = program.stem, program.with_suffix(".npz")
    code, out, err = run(program, "--inputs", values, "--expect", values)
    if name in NEEDS_LAPACK and code == 2 and "needs LAPACK" in err:  # which may be missing
        expect(name, NEEDS_LAPACK[name] in err and "record_run.py:" in err, err)
        continue
    expect(name, code == 0 and "results are as expected" in out, code, out, err)
    devices = int(re.search(r"devices ([\d,]+)", out)[1].count(",")) + 1
    code, out, err = run(program, "--inputs", values, "--expect", values, "--devices", DEVICES[devices], "--quiet")
    expect(f"{name} on other devices", code == 0 and out == "", code, out, err)

by_name, values = FOLDER / "by_name.bin", FOLDER / "by_name.npz"
with tempfile.TemporaryDirectory() as folder:
    saved = pathlib.Path(folder) / "out.npz"
    code, out, err = run(by_name, "--random", 1, "--repeat", 3, "--save", saved)
    expect("what is printed", code == 0 and "median of 2 more" in out and "temporaries" in out and "out0 f32[4]" in out,
           code, out, err)
    number = first_number(saved, "out0")
    code, out, err = run(by_name, "--random", 1, "--expect", saved, "--tolerance", 0)
    expect("equal seeds give equal results", code == 0, code, out, err)
    code, out, err = run(by_name, "--random", 2, "--expect", saved)
    expect("a difference", code == 1 and "out0" in out and f"expected {number:.3g}"[:13] in out, code, out, err)
    code, out, err = run(by_name, "--zeros", "--save", saved)
    expect("zeros", code == 0 and first_number(saved, "out0") == 0, code, out, err)
code, out, err = run(by_name)
expect("an argument is missing", code == 2 and "in0 (x), f32[4], is not given" in err, err)
code, out, err = run(by_name, "--inputs", FOLDER / "complex.npz")
expect("another program's arguments", code == 2 and "c64[4,8]" in err and "f32[4]" in err, err)
code, out, err = run(by_name, "--zeros", "--devices", "1,2")
expect("too many devices", code == 2 and "1 device" in err, err)

# A program that returns the parts of two devices as if they were equal, and one that adds them up.
REGION = """module @m attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<2xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%arg1: tensor<2xf32>) {
      sdy.return %arg1 : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<2xf32> loc("model.py":7:3)
    return %0 : tensor<2xf32>
  }
}
"""  # noqa: E501
PRODUCT = """module @m attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<4x4xf32> {
    %0 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}
"""  # noqa: E501
with tempfile.TemporaryDirectory() as folder:
    for name, text in (("region", REGION), ("product", PRODUCT)):
        (pathlib.Path(folder) / f"{name}.mlir").write_text(text)
    code, out, err = run(f"{folder}/product.mlir", "--random", 1, "--check", "--devices", "5,2")
    expect("a right program", code == 0 and "1 result agrees" in out, code, out, err)
    code, out, err = run(f"{folder}/region.mlir", "--random", 1, "--check", "--quiet")
    expect("replicas that differ", code == 1 and "sdy.manual_computation f32[2] at model.py:7" in out
           and "on device 1" in out, code, out, err)
print(f"{passed} passed, 0 failed")
