"""Runs `meshard plan` on a small program for 8 virtual CPU devices, whose best mesh and specs are known. A killed search
continues where it stopped. Passes, with a message, if there is no CPU plugin."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from expectations import Checks

MODULE = """module @mlp attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=2, "model"=4]>
  func.func public @main(%arg0: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"),
      %arg1: tensor<32x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>} loc("v"),
      %arg2: tensor<256x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>} loc("w"))
      -> (tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x256xf32>) -> tensor<64x256xf32>
    %1 = stablehlo.tanh %0 : tensor<64x256xf32>
    %2 = stablehlo.dot_general %1, %arg2, contracting_dims = [1] x [0] : (tensor<64x256xf32>, tensor<256x32xf32>) -> tensor<64x32xf32>
    return %2 : tensor<64x32xf32>
  }
}
"""

checks = Checks("plan")
doctor = subprocess.run([sys.argv[1], "doctor"], capture_output=True, encoding="utf-8", timeout=120).stdout
if "cpu" not in doctor:
    print("skipped: no CPU plugin\n0 passed, 0 failed")
    sys.exit(0)

with tempfile.TemporaryDirectory() as folder:
    module, journal = f"{folder}/mlp.mlir", f"{folder}/journal"
    pathlib.Path(module).write_text(MODULE)
    common = [module, "--topology", "cpu:8", "--pin", "model=4", "--journal", journal, "--cache", f"{folder}/cache", "--quiet"]
    best = 'data=2,model=4; w: P("model", none)'

    def ends(arguments, code, *parts):
        found, out, err = checks.run(*arguments)
        checks.check(f"{arguments} ends with {code}", found == code, out + err)
        for part in parts:
            checks.check(f"{arguments}: {part!r}", part in out + err, out + err)
        return out

    # w: data and model can each split rows, columns or neither.
    listed = ends([*common, "--list"], 0, best)
    checks.check("9 candidates", len(listed.splitlines()) == 9, listed)

    search = subprocess.Popen([sys.argv[1], "plan", *common], stdout=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 50
    while time.monotonic() < deadline and search.poll() is None:
        if pathlib.Path(journal).exists() and len(pathlib.Path(journal).read_text(encoding="utf-8").splitlines()) >= 4:
            break
        time.sleep(0.01)
    if search.poll() is None:
        os.killpg(search.pid, signal.SIGKILL)
    search.wait()
    known = len([line for line in pathlib.Path(journal).read_text(encoding="utf-8").splitlines()[1:] if line.endswith("\t.")])
    checks.check("verdicts before the end", known >= 3, known)

    # One all-reduce of 32 rows of 32 floats is the minimum if v does not change. The given program, whose w the compiler
    # may shard as it likes, is a tenth candidate, and compiled first.
    first = pathlib.Path(journal).read_text(encoding="utf-8").splitlines()[1]
    checks.check("the given program comes first", first.startswith("as given: "), first)
    out = ends([*common, "--best", f"{folder}/best.mlir", "--json", f"{folder}/reports"], 0, f"{known} read from the journal",
               "as given: data=2,model=4; w: P(unconstrained, unconstrained)", f"1. {best}", "4 KiB in collectives")
    checks.check("the rest is compiled", f"{10 - known} compiled" in out, out)
    text = pathlib.Path(folder, "best.mlir").read_text(encoding="utf-8")
    checks.check("the best module", '[{"model"}, {}]>} loc("w")' in text, text)
    checks.check("a report", pathlib.Path(folder, "reports/plan-1.json").exists())
    all_found = json.loads(pathlib.Path(folder, "reports/plan.json").read_text(encoding="utf-8"))
    checks.check("all candidates as JSON", all_found["schema"] == "meshard.plan" and len(all_found["candidates"]) == 10
                 and [one["as_given"] for one in all_found["candidates"]].count(True) == 1, all_found)
    checks.check("the best is first", all_found["candidates"][0]["specs"] == [{"name": "w", "spec": 'P("model", none)'}])
    ends(common, 0, "0 compiled, 10 read from the journal", f"1. {best}")

    # With the best shardings given, there is nothing better.
    fixed = f"{folder}/fixed.mlir"
    pathlib.Path(fixed).write_text(MODULE.replace("[{?}, {?}]", '[{"model"}, {}]'))
    ends([fixed, "--topology", "cpu:8", "--pin", "model=4", "--free", "w", "--cache", f"{folder}/cache", "--quiet", "--journal",
          f"{folder}/fixed.journal", "--best", f"{folder}/same.mlir"], 0, f"as given: {best}", f"1. as given: {best}",
         "nothing better than the given program was found", "9 candidates")
    checks.check("the best is the file itself",
                 pathlib.Path(folder, "same.mlir").read_text(encoding="utf-8") == pathlib.Path(fixed).read_text(encoding="utf-8"))

    ends([module, "--topology", "cpu:8", "--free", "v", "--journal", journal], 2, "belongs to another search")
    ends([module, "--topology", "cpu:8", "--free", "nobody"], 2, "no argument matches `nobody`")
    ends([module, "--topology", "cpu:8", "--axes", "data"], 2, "axis `model`")
    ends([f"{folder}/nowhere", "--topology", "cpu:8"], 2, "cannot read")
    ends([module, "--topology", "v9:1"], 2)
checks.end()
