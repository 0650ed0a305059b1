"""Runs `meshard explain`: its errors, and, if there is a CPU plugin, the report of a sharded product."""
import json
import os
import tempfile

from expectations import Checks

MODULE = """module @product {
  sdy.mesh @mesh = <["data"=2, "model"=2]>
  func.func public @main(
      %x: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>} loc("x"),
      %w: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>} loc("w"))
      -> (tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32> loc("product")
    return %0 : tensor<64x16xf32>
  }
}
"""
SUM = 64 // 2 * 16 * 4  # bytes of one device's part of the result

checks = Checks("explain")
folder = tempfile.TemporaryDirectory()


def file(name, text):
    path = os.path.join(folder.name, name)
    with open(path, "w") as out:
        out.write(text)
    return path


def no_report(arguments, *parts):
    """Expects exit status 2, an error message, and no report."""
    code, out, err = checks.run(*arguments)
    checks.check(f"{arguments} has no report", code == 2 and out == "" and err.startswith("meshard explain: "),
                 f"{code} {out} {err}")
    for part in parts:
        checks.check(f"{arguments}: {part!r}", part in err, err)


module = file("product.mlir", MODULE)
no_report([os.path.join(folder.name, "none.mlir"), "--topology", "cpu:4"], "cannot read")
no_report([file("empty.mlir", ""), "--topology", "cpu:4"], "empty")
no_report([file("cut.mlir", MODULE[:400]), "--topology", "cpu:4"], "data loss")
no_report([file("words.mlir", "hello"), "--topology", "cpu:4"], "main")
no_report([module, "--topology", "v9:4x4"], "v9:4x4")
no_report([module, "--topology", "cpu:8"], "4 devices", "cpu:8 has 8", "--devices")
no_report([module, "--topology", "cpu:4", "--mesh", "x=3"], "x=3")
no_report([module, "--topology", "cpu:4", "--expect", "1 all-reduc"], "all-reduc")
no_report([module, "--topology", "cpu:4", "--option", "no_value"], "NAME=VALUE")

no_report([module, "--topology", "cpu:4", "--json", "-", "--html", "-"], "only one report")
no_report([module, "--topology", "cpu:4", "--device-ids", "3,1,0"], "3 device ids for the 4 devices")
no_report([module, "--topology", "cpu:4", "--device-ids", "3,1,0,4"], "device 4 is not a device of cpu:4")
no_report([module, "--topology", "cpu:4", "--device-ids", "3,1,0,3"], "device 3 is twice")

no_report([module, "--topology", "cpu:4", "--processes", "3"], "4 devices cannot be divided into 3 processes")
no_report([module, "--topology", "cpu:4", "--link", "process=1GB/s"], "all devices of cpu:4 are in one process")
no_report([module, "--topology", "cpu:4", "--link", "process"], "--link process", "BANDWIDTH")
no_report([module, "--topology", "cpu:4", "--link", "device=fast"], "invalid link `fast`")
no_report([module, "--topology", "cpu:4", "--cost", "kernel=many"], "invalid cost `kernel=many`", "FLOPS,BYTES")
no_report([module, "--topology", "cpu:4", "--measured", os.path.join(folder.name, "none.json")], "none.json")
no_report([module, "--topology", "cpu:4", "--measured", file("words.json", "hello")], "data loss", "traceEvents")

no_report([module, "--topology", "cpu:4", "--try", "v: P(data)"], "no argument matches `v`", "the nearest names are x, w")
no_report([module, "--topology", "cpu:4", "--try", "w: P(dta)"], 'axis "dta"', "data=2,model=2")
no_report([module, "--topology", "cpu:4", "--try", "w"], "w: P(data, none)")
no_report([module, "--topology", "cpu:4", "--try-mesh", "data=1,model=64"], "argument 0 x", "does not divide")
no_report([module, "--topology", "cpu:4", "--try", "w: P()", "--mesh", "a=4"], "--try-mesh")

cache = ["--cache", os.path.join(folder.name, "cache")]
report = os.path.join(folder.name, "report.json")
page = os.path.join(folder.name, "report.html")
code, out, err = checks.run(module, "--topology", "cpu:4", "--json", report, "--html", page, "--text", *cache)
if code == 2 and "plugin" in err:
    print(f"no CPU plugin, so nothing was compiled: {err.strip()}")
else:
    checks.check("the report", code == 0 and 'all-reduce on axis "model"' in out and "cpu:4" in out, out + err)
    with open(report) as read:
        written = json.load(read)
    sums = [one for one in written["collectives"] if one["kind"] == "all-reduce"]
    checks.check("one sum", len(sums) == 1 and sums[0]["bytes_out"] == SUM, str(sums))
    with open(page) as read:
        checks.check("the page", "<html" in read.read())
    base = [module, "--topology", "cpu:4", *cache]
    checks.prints([*base, "--mesh", "a=2,b=2"], "mesh<a=2, b=2>")
    checks.prints([*base, "--expect", "1 all-reduce over model"], "expectations hold")
    code, _, err = checks.run(*base, "--quiet", "--expect", "no collectives")
    checks.check("a broken expectation", code == 1 and "all-reduce" in err, err)
    code, out, err = checks.run(*base, "--json", "-", "--text", "--expect", "1 all-reduce over model", "--device-ids", "3,1,0,2")
    checks.check("only JSON on standard output", code == 0 and json.loads(out)["meshes"][0]["device_ids"] == [3, 1, 0, 2], out)
    checks.check("the text on standard error", "expectations hold" in err and "program product" in err, err)
    code, out, _ = checks.run(*base, "--html", "-")
    checks.check("the page on standard output", code == 0 and out.startswith("<!DOCTYPE html>") and out.rstrip().endswith("</html>"), out)
    # Two trials: a whole w is cut by its rows at no cost; x by its rows alone needs no sum.
    code, out, _ = checks.run(*base, "--try", "w: P(none, none)", "--try", "x: P(data); w: P()")
    checks.check("two trials", code == 0 and 'try w: P(none, none)' in out and 'try x: P("data"); w: P()' in out, out)
    second = out[out.find("try x"):]
    checks.check("the sum is gone", "- 1 all-reduce" in second and "argument 0 x" in second, second)
    checks.prints([*base, "--try", "x: P(data); 1: P()", "--expect", "no collectives"], "expectation holds")
    code, out, _ = checks.run(*base, "--try", "x: P(data); 1: P()", "--json", "-")
    tried = json.loads(out)
    checks.check("trials as JSON", code == 0 and tried["schema"] == "meshard.trials"
                 and tried["trials"][0]["diff"]["after"]["collectives"] == 0, out)
    code, out, _ = checks.run(*base, "--try-mesh", "data=1,model=4")
    checks.check("another mesh", code == 0 and "mesh<data=1, model=4>" in out, out)
    # Devices 0 and 1 are in process 0, 2 and 3 in process 1.
    checks.prints([*base, "--processes", "2"], '2 processes; axis "data" crosses them')
    code, out, _ = checks.run(*base, "--processes", "2")
    checks.check("sums over model stay inside", code == 0 and "across processes" not in out and "at least" not in out, out)
    # One device in each: an all-reduce of SUM bytes in a ring of two, 2 * 1/2 * SUM at 1 MB/s and two messages of 1 ms.
    each = [*base, "--processes", "4", "--link", "process=1MB/s,1ms", "--link", "device=1GB/s"]
    time = f"{1000 * (SUM / 1e6 + 2e-3):.3g} ms"
    checks.prints(each, f"communication at least {time} a run; the rates of the device are unknown")
    checks.prints(each, f'process link along "model" {time}')
    checks.prints(each, 'axes "data" and "model" cross them')
    code, out, _ = checks.run(*each, "--json", "-")
    written = json.loads(out)
    checks.check("the JSON names processes", written["processes"] == {"count": 4, "axes": ["data", "model"]}, str(written["processes"]))
    checks.check("the JSON marks the sum", [one["across_processes"] for one in written["collectives"]] == [True], out)
    checks.check("the JSON has the time", abs(written["roofline"]["seconds"] - (SUM / 1e6 + 2e-3)) < 1e-9, str(written["roofline"]))
    events = [{"ph": "X", "pid": 1, "tid": 1, "ts": 5, "dur": 2, "name": "x", "args": {"hlo_op": one["instruction"]}}
              for one in written["collectives"]]
    trace = file("trace.json", json.dumps({"traceEvents": events}))
    checks.prints([*each, "--measured", trace], "measured 2 us a run (mean of 1 run on 1 device): 2 us exposed communication")
    checks.check("nothing is left", sorted(os.listdir(folder.name)) == sorted(
        ["cache", "cut.mlir", "empty.mlir", "product.mlir", "report.html", "report.json", "trace.json",
         "words.json", "words.mlir"]),
        str(os.listdir(folder.name)))
checks.end()
