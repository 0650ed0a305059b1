"""explain, predict, check_sharded, module_text and differences, for functions and modules."""

import html
import inspect
import json
import os
import pathlib
import pickle
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from report_support import needs_compiler, needs_tpu

import meshard
from meshard import P, _meshard, _progress
from meshard.__main__ import find_program

ops = _meshard.ops

MODULE = """module @product attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=2, "model"=4]>
  func.func public @main(
      %arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>} loc("x"),
      %arg1: tensor<32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>} loc("w")) -> tensor<16x8xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
        : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32> loc("dot"("model.py":12:3))
    return %0 : tensor<16x8xf32>
  }
}
"""


@pytest.fixture(scope="module")
def mesh():
    return meshard.Mesh({"data": 2, "model": 4})


def placed(mesh, shape, *spec):
    values = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    return meshard.mark_sharding(ops.add(values, np.float32(0)), mesh, P(*spec))


def layer(x, v, w):
    hidden = ops.tanh(ops.matmul(x, v))
    return ops.matmul(hidden, w)


LAST_LINE = f"test_reports.py:{inspect.getsourcelines(layer)[1] + 2}"


@pytest.fixture(scope="module")
def arguments(mesh):
    return (placed(mesh, (16, 32), "data", None), placed(mesh, (32, 64), None, "model"),
            placed(mesh, (64, 32), "model", None))


def check_layer(report):
    (one,) = report.collectives
    assert (one.kind, one.axes, one.bytes, one.executions) == ("all-reduce", ("model",), 16 // 2 * 32 * 4, 1)
    assert one.places == [LAST_LINE]
    assert f"{one.file}:{one.line}" == LAST_LINE
    assert [value.name for value in report.arguments] == ["x", "v", "w"]
    assert [value.shard_shape for value in report.arguments] == [(8, 32), (32, 16), (16, 32)]
    assert report.memory.arguments == (8 * 32 + 32 * 16 + 16 * 32) * 4


# --- functions ----------------------------------------------------------------------------------------

def test_a_function(arguments, mesh):
    report = meshard.explain(layer, *arguments)
    check_layer(report)
    (one,) = report.collectives
    assert (one.certainty, one.cause, one.group_size) == ("exact", "inserted", 4)
    assert one.reason == meshard.predict(layer, *arguments).moves[0].cause and "split by" in one.reason
    (group,) = report.groups
    assert (group.kind, group.axes, group.count, group.places) == ("all-reduce", ("model",), 1, [LAST_LINE])
    assert group.example == one and report.collectives_of("all-reduce", ["model"]) == [one]
    assert report.collectives_of("all-reduce", ["data"]) == report.collectives_of("all-gather") == []
    assert report.mesh == mesh and report.mesh_axes == {"data": 2, "model": 4}
    assert report.arguments[1].sharding == meshard.Sharding(mesh, P(None, "model"))
    assert [value.chosen_by_compiler for value in report.arguments] == [False] * 3
    assert report.results[0].spec == 'P("data", none)'
    assert report.fits and not report.out_of_memory
    assert f'1 all-reduce on axis "model", 1 KiB, from {LAST_LINE} (exact)' in str(report)
    assert report.collective_bytes == 1024
    (row,) = report.table()
    assert (row["kind"], row["axes"], row["count"], row["bytes"]) == ("all-reduce", ("model",), 1, 1024)


def test_the_newest_program_of_a_jitted_function(arguments):
    jitted = meshard.jit(layer)
    with pytest.raises(meshard.FailedPreconditionError, match="call it first"):
        meshard.explain(jitted)
    jitted(*arguments)
    check_layer(meshard.explain(jitted))


@needs_compiler
def test_a_function_for_a_target(arguments):
    check_layer(meshard.explain(layer, *arguments, topology="cpu:8"))


@needs_compiler
def test_abstract_arguments(mesh):
    def abstract(shape, *spec):
        return meshard.abstract_tensor(shape, "float32", mesh, P(*spec))

    check_layer(meshard.explain(layer, abstract((16, 32), "data", None), abstract((32, 64), None, "model"),
                                abstract((64, 32), "model", None), topology=meshard.Target.parse("cpu:8")))


def test_donated_arguments(mesh):
    x = placed(mesh, (16, 32), "data", None)
    report = meshard.explain(lambda x, y: ops.add(x, y), x, placed(mesh, (16, 32), "data", None), donate=0)
    assert [value.donated for value in report.arguments] == [True, False]
    assert report.memory.aliased == 8 * 32 * 4
    jitted = meshard.jit(lambda x: ops.exp(x), donate_argnums=0)
    assert meshard.explain(jitted, x).memory.aliased == 8 * 32 * 4
    with pytest.raises(ValueError, match="meshard.jit"):
        meshard.explain(jitted, x, donate=0)


def test_structures_and_keyword_arguments(mesh):
    def step(params, *, x):
        return {"y": ops.matmul(x, params["w"])}

    report = meshard.explain(step, {"w": placed(mesh, (32, 8), "model", None)},
                             x=placed(mesh, (16, 32), "data", "model"))
    assert [value.name for value in report.arguments] == ['params["w"]', "x"]
    assert [one.bytes for one in report.collectives] == [8 * 8 * 4]


def test_static_arguments(mesh):
    jitted = meshard.jit(lambda x, how: getattr(ops, how)(x), static_argnums=1, name="chosen")
    report = meshard.explain(jitted, placed(mesh, (16, 32), "data", None), "exp")
    assert report.name == "chosen" and [value.name for value in report.arguments] == ["x"]
    assert report.cost.transcendentals == 8 * 32


def test_what_the_function_raises_comes_out():
    def wrong(x):
        raise KeyError("the user's own")

    with pytest.raises(KeyError, match="the user's own"):
        meshard.explain(wrong, np.zeros(3, np.float32))
    with pytest.raises(TypeError, match="expected a function"):
        meshard.explain(17)


def test_links(arguments):
    report = meshard.explain(layer, *arguments, links={"device": "1MB/s,1ms"})
    # 8 rows of 32 floats in a ring of four: 2 * 3/4 of the bytes, in 6 messages.
    assert report.roofline.seconds == pytest.approx(1.5 * 8 * 32 * 4 / 1e6 + 6e-3)
    assert report.roofline.bound_by == "communication"
    with pytest.raises(ValueError, match="process and device"):
        meshard.explain(layer, *arguments, links={"disk": "1MB/s"})
    with pytest.raises(meshard.InvalidArgumentError):
        meshard.explain(layer, *arguments, links={"device": "fast"})


@needs_compiler
def test_suggestions(mesh):
    x = placed(mesh, (16, 32), None, "model")

    def flat(x):
        return ops.reshape(x, (512,))

    (one,) = meshard.explain(flat, x).collectives
    (move,) = meshard.predict(flat, x).moves
    assert (one.kind, one.axes, one.bytes) == (move.kind, move.axes, move.bytes) == ("all-gather", ("model",), 2048)
    assert "needs all of a dimension that is split" in one.reason
    assert one.suggestion == move.suggestion and one.suggestion.startswith("split the outermost of the dimensions")
    assert meshard.explain(meshard.module_text(flat, x), topology="cpu:8").collectives[0].suggestion == ""


# --- modules ------------------------------------------------------------------------------------------

def check_module(report):
    (one,) = report.collectives
    assert (one.kind, one.axes, one.bytes, one.places) == ("all-reduce", ("model",), 8 * 8 * 4, ["model.py:12"])
    assert report.name == "product"
    assert report.target.name == "cpu:8" and report.target.devices == 8


@needs_compiler
def test_text_bytes_and_files(tmp_path):
    path = tmp_path / "product.mlir"
    path.write_text(MODULE)
    for form in (MODULE, MODULE.encode(), bytearray(MODULE.encode()), str(path), path):
        check_module(meshard.explain(form, topology="cpu:8"))
    with pytest.raises(FileNotFoundError):
        meshard.explain(str(tmp_path / "absent.mlir"), topology="cpu:8")
    with pytest.raises(TypeError, match="topology="):
        meshard.explain(MODULE)
    with pytest.raises(meshard.DataLossError):
        meshard.explain("module { this is not a module", topology="cpu:8")
    with pytest.raises(TypeError, match="no arguments"):
        meshard.explain(MODULE, 1, topology="cpu:8")


@needs_compiler
def test_the_command_line_tool_says_the_same(tmp_path):
    program = find_program()
    if program is None:
        pytest.skip("no program meshard in PATH")
    path = tmp_path / "product.mlir"
    path.write_text(MODULE)

    def tool(*words):
        return subprocess.run([program, "explain", str(path), "--topology", "cpu:8", *words], capture_output=True,
                              text=True, check=True, timeout=100, env={**os.environ, "COLUMNS": "1000"}).stdout

    def without_time(text):
        return re.sub(r"compiled( before|[^\n,]* in [\d.]+ m?s)", "compiled", text)

    report = meshard.explain(path, topology="cpu:8")
    assert without_time(tool()) == without_time(str(report))
    known = json.loads(tool("--json", "-"))
    mine = report.to_dict()
    known["target"].pop("compile_seconds")
    mine["target"].pop("compile_seconds")
    assert mine == known
    page = tmp_path / "page.html"
    tool("--html", str(page))
    assert len(report.to_html()) == pytest.approx(len(page.read_text()), rel=0.01)


@needs_compiler
def test_json_follows_the_schema(tmp_path):
    report = meshard.explain(MODULE, topology="cpu:8")
    content = report.to_dict()
    assert content == json.loads(report.to_json(indent=2))
    assert content["schema"] == "meshard.report" and content["version"] == 1
    schema = pathlib.Path(__file__).parents[2] / "docs" / "report-schema.json"
    assert set(json.loads(schema.read_text())["required"]) <= set(content)
    report.save_json(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text()) == content


@needs_compiler
def test_pages(tmp_path):
    report = meshard.explain(MODULE, topology="cpu:8")
    report.save_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page == report.to_html() and page.startswith("<!DOCTYPE html>") and "model.py:12" in page
    shown = report._repr_html_()
    assert shown.startswith("<iframe ") and html.unescape(re.search(r'srcdoc="([^"]*)"', shown)[1]) == page


@needs_compiler
def test_the_mesh_and_the_devices():
    report = meshard.explain(MODULE, topology="cpu:8", device_ids=[7, 6, 5, 4, 3, 2, 1, 0])
    assert report.device_ids == [7, 6, 5, 4, 3, 2, 1, 0]
    check_module(report)
    assert report.arguments[0].sharding.mesh == report.mesh
    report = meshard.explain(MODULE, topology="cpu:16", device_ids=range(4, 12))
    assert report.device_ids == list(range(4, 12))
    report = meshard.explain(MODULE, topology="cpu:16", part_of_target=True)
    assert report.device_ids == list(range(8))
    for text in ("replica=2,column=4", {"replica": 2, "column": 4}, [("replica", 2), ("column", 4)],
                 meshard.Mesh({"replica": 2, "column": 4})):
        assert meshard.explain(MODULE, topology="cpu:8", mesh=text).mesh_axes == {"replica": 2, "column": 4}
    with pytest.raises(meshard.InvalidArgumentError, match=r"part_of_target=True"):
        meshard.explain(MODULE, topology="cpu:16")
    with pytest.raises(meshard.InvalidArgumentError, match="7 device ids for the 8 devices"):
        meshard.explain(MODULE, topology="cpu:8", device_ids=range(7))
    with pytest.raises(meshard.InvalidArgumentError, match="device 1 is twice"):
        meshard.explain(MODULE, topology="cpu:8", device_ids=[0, 1, 2, 3, 4, 5, 6, 1])
    with pytest.raises(meshard.InvalidArgumentError, match="device 8 is not a device of cpu:8"):
        meshard.explain(MODULE, topology="cpu:8", device_ids=range(1, 9))
    with pytest.raises(ValueError, match="data=4"):
        meshard.explain(MODULE, topology="cpu:8", mesh="data")


@needs_compiler
def test_processes():
    report = meshard.explain(MODULE, topology="cpu:8", processes=4, links={"process": "1GB/s", "device": "2GB/s"})
    (one,) = report.collectives
    assert one.across_processes
    assert not meshard.explain(MODULE, topology="cpu:8", processes=2).collectives[0].across_processes
    assert {time.link: time.bytes for time in report.roofline.links} == {"device link": 256, "process link": 128}


@needs_compiler
def test_options_are_checked():
    for wrong in (dict(partitioner="mine"), dict(device_order="random"), dict(partitions=4), dict(plugin="/absent.so")):
        with pytest.raises(meshard.Error):
            meshard.explain(MODULE, topology="cpu:8", use_cache=False, **wrong)
    with pytest.raises(meshard.InvalidArgumentError, match="xla_no_such_option"):
        meshard.explain(MODULE, topology="cpu:8", overrides={"xla_no_such_option": True})
    with pytest.raises(meshard.InvalidArgumentError, match="known targets"):
        meshard.explain(MODULE, topology="v9:1x1")
    # GSPMD, too, may choose the sharding of the result, and then needs no gather.
    with_gspmd = meshard.explain(MODULE, topology="cpu:8", partitioner="gspmd")
    assert str(with_gspmd.collectives) == str(meshard.explain(MODULE, topology="cpu:8").collectives)


@needs_compiler
def test_costs_and_traces_are_checked(tmp_path):
    with pytest.raises(meshard.InvalidArgumentError, match="no custom calls"):
        meshard.explain(MODULE, topology="cpu:8", costs={"kernel": (2e9, "64MiB")})
    with pytest.raises(meshard.InvalidArgumentError, match="invalid cost `kernel=fast`"):
        meshard.explain(MODULE, topology="cpu:8", costs={"kernel": "fast"})
    trace = tmp_path / "host.trace.json"
    events = [{"ph": "X", "pid": 1, "tid": 1, "ts": 10 * device, "dur": 3 + device, "name": "x",
               "args": {"hlo_op": one.instruction, "device_ordinal": str(device)}}
              for device in range(2) for one in meshard.explain(MODULE, topology="cpu:8").collectives]
    trace.write_text(json.dumps({"traceEvents": events}))
    measured = meshard.explain(MODULE, topology="cpu:8", measured=trace).measured
    assert (measured.devices, measured.runs, measured.matched_events) == (2, 1, 2)
    assert measured.links.exposed_seconds == pytest.approx(3.5e-6)  # the mean of 3 and 4 us
    trace.write_text(json.dumps({"traceEvents": []}))
    with pytest.raises(meshard.InvalidArgumentError, match="no step of the program"):
        meshard.explain(MODULE, topology="cpu:8", measured=trace)


@needs_tpu
def test_a_tpu_that_is_not_here():
    report = meshard.explain(MODULE, topology="v5e:2x4")
    (one,) = report.collectives
    assert (one.kind, one.axes, one.bytes) == ("all-reduce", ("model",), 256)
    assert report.target.device_kind == "TPU v5 lite"
    assert report.memory.capacity > 15 * 2**30 and report.memory.spare == report.memory.capacity - report.memory.total
    assert report.roofline.bound_by in ("communication", "memory") and report.roofline.links[0].link == "ICI"
    assert report.roofline.seconds == max(report.roofline.link_seconds, report.roofline.memory_seconds)
    schedule = report.schedule
    assert schedule.seconds >= report.roofline.seconds
    assert schedule.seconds == pytest.approx(schedule.busy_seconds + schedule.links.exposed_seconds)
    (kind,) = schedule.communication
    assert (kind.kind, kind.axes, kind.executions) == ("all-reduce", '"model"', 1)
    assert (report.custom_calls, report.host_transfers, report.measured) == ([], None, None)
    assert report.cost.total_flops >= 2 * 8 * 8 * 8
    big = MODULE.replace("16x32", "16x33554432").replace("32x8xf32", "33554432x8192xf32")
    big = big.replace("16x8xf32", "16x8192xf32")
    report = meshard.explain(big, topology="v5e:2x4")
    assert not report.fits and report.out_of_memory


# --- progress and Ctrl-C ------------------------------------------------------------------------------

def compile_children():
    """The compile programs that this process has started and that still run."""
    children = []
    for task in pathlib.Path("/proc/self/task").iterdir():
        children += (task / "children").read_text().split()
    names = [pathlib.Path(f"/proc/{child}/comm").read_text().strip() for child in children]
    return [name for name in names if name.startswith("meshard-compil")]


@needs_compiler
def test_progress():
    steps = []
    meshard.explain(MODULE, topology="cpu:8", use_cache=False, progress=steps.append)
    assert "compiling" in steps

    def failing(step):
        raise OSError("the callback's own")

    with pytest.raises(OSError, match="the callback's own"):
        meshard.explain(MODULE, topology="cpu:8", use_cache=False, progress=failing)
    assert compile_children() == []
    with pytest.raises(TypeError, match="progress must be"):
        meshard.explain(MODULE, topology="cpu:8", progress="yes")


@needs_compiler
def test_ctrl_c_ends_a_compile():
    with pytest.raises(KeyboardInterrupt):
        meshard.explain(MODULE, topology="cpu:8", use_cache=False,
                        progress=lambda step: signal.raise_signal(signal.SIGINT))
    assert compile_children() == []
    check_module(meshard.explain(MODULE, topology="cpu:8", use_cache=False))


def test_the_progress_line():
    class Stream:
        text = ""

        def write(self, text):
            self.text += text

        def flush(self):
            pass

    stream = Stream()
    with _progress.ProgressLine(stream) as show:
        show("compiling, 12 s")
        show("done")
    shown = stream.text.split("\r")
    assert shown == ["", "compiling, 12 s", "done           ", "    ", ""]


# --- differences --------------------------------------------------------------------------------------

@needs_compiler
def test_differences():
    before = meshard.explain(MODULE, topology="cpu:8")
    after = meshard.explain(MODULE.replace('[{"model"}, {}]', '[{}, {"model"}]'), topology="cpu:8")
    changes = before.diff(after)
    assert not changes.same
    changed = {(c.kind, c.before.count, c.after.count) for c in changes.collectives if c.changed}
    assert changed and all(old != new for _, old, new in changed)
    assert {(one.kind, one.axes) for one in after.collectives} != {(one.kind, one.axes) for one in before.collectives}
    assert [p.value for p in changes.placements][0] == "argument 1 w"
    assert changes.to_dict()["schema"] == "meshard.diff"
    assert changes.over_limits("shardings") == [f"shardings: {len(changes.placements)} changed"]
    assert changes.over_limits("") == [] == before.diff(before).over_limits("collectives; bytes; shardings")
    page = changes.to_markdown("shardings")
    assert page.startswith("### <code>") and "Over the limits:\n\n- <code>shardings: " in page
    assert "Over the limits" not in changes.to_markdown()
    with pytest.raises(meshard.InvalidArgumentError, match="percentage"):
        changes.to_markdown("bytes 5")
    assert "argument w" in str(changes) and changes.to_html().startswith("<!doctype html>")
    assert before.diff(before).same


# --- predictions, checks, text ------------------------------------------------------------------------

def test_predictions(arguments):
    prediction = meshard.predict(layer, *arguments)
    (move,) = prediction.moves
    assert (move.kind, move.axes, move.bytes, move.executions) == ("all-reduce", ("model",), 1024, 1)
    assert move.place.startswith(LAST_LINE) and move.op == "dot_general" and "split" in move.cause
    assert prediction.bytes == 1024 and prediction.moves_of("all-gather") == []
    assert meshard.predict(meshard.trace_program(layer, *arguments)).bytes == 1024


def test_a_mark_that_gathers(mesh):
    x = placed(mesh, (16, 32), "data", "model")
    assert meshard.predict(ops.exp, x).moves == []
    moves = meshard.predict(lambda x: meshard.mark_sharding(x, mesh, P(None, None)), x).moves
    assert {move.kind for move in moves} == {"all-gather"} and {move.who for move in moves} == {"asked for"}
    assert sum(move.bytes for move in moves) >= 16 * 32 * 4


def test_sharded_and_unsharded_runs(arguments):
    check = meshard.check_sharded(layer, *arguments)
    assert check and check.ok and check.compared == 1 and check.difference is None and "agree" in str(check)
    # No sum is the same in two orders, to the last bit, for all of 512 elements.
    check = meshard.check_sharded(layer, *arguments, max_ulps=-1)
    assert not check and check.difference.ulps >= 0
    assert check.difference.file.endswith("test_reports.py")
    lines, first = inspect.getsourcelines(layer)
    assert first < check.difference.line < first + len(lines)
    assert str(check.difference.line) in str(check)


@needs_compiler
def test_the_text_of_a_function(arguments):
    text = meshard.module_text(layer, *arguments)
    assert text.startswith("module @layer") and 'loc("x")' in text and LAST_LINE.replace(":", '":') in text
    read = meshard.explain(text, topology="cpu:8")
    check_layer(read)
    here = meshard.explain(layer, *arguments, topology="cpu:8")
    assert here.diff(read).same and read.device_ids == here.device_ids
    assert [(v.name, v.place) for v in read.arguments] == [(v.name, v.place) for v in here.arguments]
    assert meshard.module_text(MODULE) == MODULE
    traced = meshard.trace_program(layer, *arguments)
    assert traced.module_text() == text and traced.name == "layer" and traced.parameter_names == ["x", "v", "w"]


# --- targets ------------------------------------------------------------------------------------------

def test_targets():
    target = meshard.Target.parse("v5e:4x4")
    assert (target.platform, target.size, len(target.device_ids)) == ("tpu", 16, 16)
    assert target.memory == target.figures.memory_bytes > 15 * 2**30
    assert target.figures.matrix_rates["bf16"] == 197e12
    assert pickle.loads(pickle.dumps(target)) == target
    assert target == meshard.Target.parse("v5e:4x4") != meshard.Target.parse("v5e:4x8")
    assert meshard.Target.parse("h100:2x8").size == 16 and meshard.Target.parse("cpu:3").figures is None
    with pytest.raises(meshard.InvalidArgumentError, match="known targets"):
        meshard.Target.parse("nothing")


# --- the command --------------------------------------------------------------------------------------

def test_the_command():
    if find_program() is None:
        pytest.skip("no program meshard in PATH")

    def run(*words):
        folder = os.path.dirname(os.path.dirname(meshard.__file__))
        return subprocess.run([sys.executable, "-m", "meshard", *words], capture_output=True, text=True, timeout=60,
                              check=False, env={**os.environ, "PYTHONPATH": folder})

    done = run("layout", "(2,4):(4,1)")
    assert done.returncode == 0 and "(2,4):(4,1)" in done.stdout
    assert run("nonsense").returncode == 2
    done = run("fetch", "--help")
    assert done.returncode == 0 and "platforms" in done.stdout


def test_the_command_without_the_program(tmp_path, monkeypatch, capsys):
    from meshard import __main__

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(__main__, "__file__", str(tmp_path / "__main__.py"))
    assert __main__.main(["explain"]) == 2
    assert "not in PATH" in capsys.readouterr().err
    script = tmp_path / "meshard"
    script.write_text("#!/usr/bin/python3\n")
    script.chmod(0o755)
    assert __main__.find_program() is None  # the console script of the package
