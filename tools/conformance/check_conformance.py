"""Runs meshard-conformance on small golden folders: counts, rules, skipped tags, unknown files, failures."""
import json
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

PROGRAM = sys.argv[1]
checks = 0


def expect(what, condition, shown=""):
    global checks
    checks += 1
    if not condition:
        sys.exit(f"failed: {what}\n{shown}")


def run(files, *options, before=None):
    """Exit code, standard output and the output of --observe, for a folder of `files`: path -> JSON or text."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            path = pathlib.Path(folder, "data", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        observed = pathlib.Path(folder, "observed.json")
        done = subprocess.run([PROGRAM, "--data", f"{folder}/data", "--observe", observed, *options],
                              capture_output=True, encoding="utf-8", timeout=60, preexec_fn=before)
        return done.returncode, done.stdout, json.loads(observed.read_text(encoding="utf-8"))


def size_case(name, recorded, tags=()):
    """The size of (2,3):(3,1), which is 6."""
    return {"name": name, "tags": list(tags), "expect": recorded,
            "input": {"fn": "size", "layout": {"shape": [2, 3], "stride": [3, 1]}}}


def composition_case(recorded):
    """(3,4):(100,1) composed with 6:1, which is not a layout: 0 1 2 3 100 101."""
    return {"name": "cut", "tags": [], "expect": recorded,
            "input": {"fn": "composition", "a": {"shape": [3, 4], "stride": [100, 1]},
                      "b": {"shape": 6, "stride": 1}}}


# Cases that pass, that pass by a rule, and that are unknown.
words = {"name": "in_words", "tags": [], "input": {"fn": "fold"}, "expect": 1}
code, out, observed = run({"pycute.json": [size_case("right", 6), size_case("odd", 7, ["quirk"]), words],
                           "notes/other.json": {"meta": {}, "cases": [1, 2, 3]}})
expect("exit code 0", code == 0, out)
expect("the counts of a file", "pycute.json: 1 passed, 0 failed, 1 by rule, 1 unknown\n" in out, out)
expect("the rule and its count", "  by rule quirk: 1\n" in out, out)
expect("a file nobody knows", "notes/other.json: 0 passed, 0 failed, 0 by rule, 3 unknown; no suite" in out, out)
expect("the last line", out.endswith("\n2 passed, 0 failed\n"), out)
expect("raw answers", observed == {"pycute.json": [{"name": "right", "answer": {"expect": 6}},
                                                   {"name": "odd", "answer": {"expect": 6}},
                                                   {"name": "in_words", "answer": None}]}, observed)

# A flat case has an id and is its own input; meta is next to the cases. An invalid case fails.
flat = {"meta": {"made_by": "hand"}, "cases": [{"id": "flat", "fn": "fold"}, {"fn": "fold"}]}
code, out, observed = run({"a/pycute.json": flat, "b/pycute.json": [size_case("right", 6)]})
expect("a case without a name", code == 1 and "a/pycute.json: 0 passed, 1 failed, 0 by rule, 1 unknown\n" in out
       and "FAILED (a case): has no name" in out, out)
expect("files of one name are observed together", observed == {"pycute.json": [
    {"id": "flat", "answer": None}, {"name": "right", "answer": {"expect": 6}}]}, observed)

# A failure names the case and both values.
code, out, _ = run({"pycute.json": [size_case("wrong", 7), size_case("right", 6)]})
expect("exit code 1", code == 1, out)
expect("the failure", "  FAILED wrong: ours 6, recorded 7\n" in out, out)
expect("failures are counted", out.endswith("\n1 passed, 1 failed\n"), out)
code, out, _ = run({"pycute.json": "[{"})
expect("a broken file fails", code == 1 and "FAILED (the file)" in out, out)

# The rule exact-composition checks the recorded values, not the case.
code, out, observed = run({"pycute.json": [composition_case({"shape": 4, "stride": 1})]})
expect("a recorded result that is too short", code == 0 and "by rule exact-composition: 1" in out, out)
expect("its raw answer is an error", "expect_error" in observed["pycute.json"][0]["answer"], observed)
code, out, _ = run({"pycute.json": [composition_case({"shape": 6, "stride": 1})]})
expect("a recorded result with a wrong value", code == 0 and "by rule exact-composition: 1" in out, out)
right = {"shape": 4, "stride": 1}
case = composition_case(right)
case["input"]["b"] = {"shape": 4, "stride": 1}
code, out, _ = run({"pycute.json": [case | {"expect": right | {"values": [0, 1, 2, 3]}}]})
expect("no rule where ours is right", code == 0 and "by rule" not in out.replace("0 by rule", ""), out)

# Tags.
cases = [size_case("wrong", 7, ["slow"]), size_case("odd", 7, ["quirk"]), size_case("right", 6, ["x"])]
code, out, observed = run({"pycute.json": cases}, "--skip-tag", "slow", "--skip-tag", "quirk")
expect("skipped", code == 0 and "1 passed, 0 failed, 0 by rule, 0 unknown, 2 skipped\n" in out, out)
expect("skipped cases are not observed", len(observed["pycute.json"]) == 1, observed)

# Less memory than the cases need.
code, out, _ = run({"gpt12_losses.json": [{"id": "large"}]},
                   before=lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30)))
expect("too little memory", code == 0 and "1 skipped" in out and "2098 MiB of memory, 1024 MiB are available" in out, out)



def reversed_mesh(group_ranks, local_rank, group_id, other_id):
    """A program over devices 1, 0 in this order, observed from rank 0: makes a mesh, and queries its group."""
    common = {"ndim": 1, "shape": [2], "size": 2, "names": ["a"], "layout": [[[2], [1]]], "root": "self",
              "same_object_as": None, "equal_to": [], "groups_by_dim": [[[1, 0]]], "new_groups": 0}
    view = {"mesh": [1, 0], "coordinate": [1], "group_ranks": [group_ranks], "group_ids": [group_id],
            "local_ranks": [local_rank]}
    ops = [{"op": "mesh", "as": "m", "ranks": [1, 0], "names": ["a"]},
           {"op": "get_group", "on": "m", "dim": "a"}]
    answers = [{"common": common, "views": {"0": view}},
               {"views": {"0": {"group_ranks": group_ranks, "group_id": other_id}}}]
    return {"name": "reversed", "tags": [], "expect": answers,
            "input": {"world_size": 2, "observe": [0], "ops": ops}}


# Programs: the reference sorts a group and shares that of the world; anything else fails.
code, out, _ = run({"mesh_ops.json": [reversed_mesh([1, 0], 1, "0.0", "0.0")]})
expect("a program without a rule", code == 0 and "mesh_ops.json: 1 passed, 0 failed, 0 by rule" in out, out)
code, out, _ = run({"mesh_ops.json": [reversed_mesh([0, 1], 0, "world", "world")]})
expect("two rules in a program", code == 0 and "mesh_ops.json: 0 passed, 0 failed, 1 by rule" in out
       and "by rule group-in-mesh-order: 1" in out and "by rule one-group-per-axis: 1" in out, out)
code, out, _ = run({"mesh_ops.json": [reversed_mesh([0, 1], 1, "0.0", "0.0")]})
expect("a place that is in neither order", code == 1 and "local rank: ours 1, recorded 1" in out, out)
code, out, _ = run({"mesh_ops.json": [reversed_mesh([0, 2], 0, "0.0", "0.0")]})
expect("other ranks in a group", code == 1 and "group_ranks" in out, out)
sliced = {"name": "order", "tags": [], "expect": [{}, {"error": {"type": "KeyError", "code": "slice_order"}}],
          "input": {"world_size": 4, "observe": [],
                    "ops": [{"op": "init", "as": "m", "shape": [2, 2], "names": ["a", "b"]},
                            {"op": "slice", "as": "s", "on": "m", "names": ["b", "a"]}]}}
code, out, _ = run({"mesh_ops.json": [sliced]})
expect("the rule slice-any-order", code == 0 and "by rule slice-any-order: 1" in out, out)
sliced["expect"][1]["error"]["code"] = "slice_overlap"
code, out, _ = run({"mesh_ops.json": [sliced]})
expect("no rule for another refusal", code == 1 and "ours is an answer" in out, out)
sliced["input"]["ops"][1]["op"] = "fold"
code, out, _ = run({"mesh_ops.json": [sliced]})
expect("an unknown operation", code == 0 and "0 by rule, 1 unknown" in out, out)

# Scenarios run in separate processes.
MESH = {"op": "mesh", "out": "m", "device_ids": [0, 1], "mesh_shape": [2], "axis_names": ["x"]}
HOST = {"op": "host", "out": "a", "shape": [4], "dtype": "float32", "data": {"iota": 1}}
SPLIT, WHOLE = "{devices=[2]0,1}", "{replicated}"


def mark_step(spec):
    return {"op": "mark", "t": "a", "mesh": "m", "spec": spec}


def did(delta=None, **results):
    return {"ok": True, "delta": delta or {}, "state": {}} | results


def refusal(category):
    return {"ok": False, "error": {"category": category}, "delta": {}, "state": {}}


def sharded(spec, kind, count=2):
    return {"a": {"where": "device", "spec": spec, "type": kind, "data_sharding": spec, "num_shards": count,
                  "shape": [4]}}


def scenario(name, *steps, devices=2):
    """Steps with their recorded results, after steps that make a mesh and a tensor."""
    steps = [(MESH, did()), (HOST, did()), *steps]
    return {"name": name, "input": {"num_devices": devices, "steps": [step for step, _ in steps]},
            "expect": {"steps": [recorded for _, recorded in steps]}}


SENT = {"CreateDataHandles": 2, "OutboundData.bytes": 16}
MARKED = (mark_step(["x"]), did(SENT, state=sharded(SPLIT, "TILED")))
READ = ({"op": "read", "t": "a"}, did({"InboundData.bytes": 16}, values=[1, 2, 3, 4]))
ADD = ({"op": "inplace", "t": "a", "fn": "add_", "arg": 2},
       did({"CreateDataHandles": 2, "OutboundData.bytes": 8}))
code, out, _ = run({"virtual_device.json": [scenario("plain", MARKED, READ)]})
if "no plugin" in out:
    print("scenarios are not checked: there is no plugin")
    expect("cases without a plugin are skipped", code == 0 and "1 skipped; no plugin" in out, out)
else:
    expect("a scenario", code == 0 and "virtual_device.json: 1 passed, 0 failed, 0 by rule" in out, out)
    many = [scenario("added", MARKED, ADD),
            scenario("again", MARKED, (mark_step([None]), refusal("already_sharded_differently"))),
            scenario("short", (mark_step([]), refusal("spec_rank_mismatch"))),
            scenario("odd", ({"op": "fold"}, did())), scenario("none", devices=-1), scenario("after it", MARKED)]
    code, out, observed = run({"virtual_device.json": many})
    expect("rules of scenarios, and one that cannot run", code == 1 and "1 passed, 1 failed, 3 by rule, 1 unknown" in out, out)
    for rule in ("fewer-transfers", "reshard-on-remark", "short-spec"):
        expect(rule, f"  by rule {rule}: 1\n" in out, out)
    expect("the case that cannot run is named", "FAILED none: the suite failed: [client options]" in out, out)
    raw = observed["virtual_device.json"][1]["answer"]["expect"]["steps"][3]
    expect("raw answers of scenarios", raw["ok"] and raw["state"]["a"]["spec"] == WHOLE, raw)
    wrong = {"values": (READ[0], did({"InboundData.bytes": 16}, values=[1, 2, 3, 5])),
             "state": (mark_step(["x"]), did(SENT, state=sharded(SPLIT, "PARTIAL"))),
             "bytes": (mark_step(["x"]), did({"CreateDataHandles": 2, "OutboundData.bytes": 15})),
             "more bytes than needed": (mark_step(["x"]), did({"CreateDataHandles": 2, "OutboundData.bytes": 32})),
             "an error": (mark_step(["x"]), refusal("other")),
             "a longer spec": (mark_step(["x", None]), did(SENT))}
    for what, step in wrong.items():
        before = [] if step[0]["op"] == "mark" else [MARKED]
        code, out, _ = run({"virtual_device.json": [scenario("wrong", *before, step)]})
        expect(f"{what} of a scenario", code == 1 and "FAILED wrong: step " in out, out)


def op_sharding_case(text, devices):
    """Rows split over a 2x2 mesh of devices 3, 2, 1, 0: the replicas are 3 2 and 1 0."""
    fields = {"type": "OTHER", "tile_assignment_dimensions": [2, 1, 2], "tile_assignment_devices": devices,
              "replicate_on_last_tile_dim": True}
    return {"name": "rows", "input": {"num_devices": 4, "device_ids": [3, 2, 1, 0], "mesh_shape": [2, 2],
                                      "axis_names": None, "partition_spec": [0, None]},
            "expect": {"translated_spec": [0, None], "sharding_type": "PARTIAL", "tile_assignment": [[3, 2], [1, 0]],
                       "tile_assignment_shape": [2, 2], "group_assignment": [[0], [1]],
                       "replication_groups": [[3, 2], [1, 0]], "hlo_sharding": text, "canonical_type": "PARTIAL",
                       "op_sharding": fields}}


# Replicas: in our order, in the reference's order, and in another one.
for devices, result in (([3, 2, 1, 0], "1 passed, 0 failed, 0 by rule"),
                        ([2, 3, 0, 1], "0 passed, 0 failed, 1 by rule"),
                        ([2, 3, 1, 0], "0 passed, 1 failed, 0 by rule")):
    shown = ",".join(map(str, devices))
    case = op_sharding_case(f"{{devices=[2,1,2]{shown} last_tile_dim_replicate}}", devices)
    code, out, _ = run({"op_sharding.json": [case]})
    expect(f"replicas {shown}", result in out, out)
case["expect_error"] = {"class": "ValueError", "category": "spec_axis_repeated"}
del case["expect"]
code, out, _ = run({"op_sharding.json": [case]})
expect("no error where one is recorded", code == 1, out)
case["input"]["partition_spec"] = [0, 0]
code, out, _ = run({"op_sharding.json": [case]})
expect("the recorded error", code == 0, out)
case["input"]["partition_spec"] = [0, 2]
code, out, _ = run({"op_sharding.json": [case]})
expect("another error", code == 1 and "spec_axis_out_of_range" in out, out)


def named_sharding(size, recorded):
    """A vector over two devices; `recorded` has the fields that depend on its size."""
    mesh, text = '@mesh = <["x"=2]>', '<@mesh, [{"x"}]>'
    case = {"id": "vector", "mesh": "m", "spec": ["x"], "shape": [size], "is_fully_replicated": False,
            "hlo": "{devices=[2]<=[2]}", "sdy_constraint": {"mesh_ops": [mesh], "constraints": [text]}}
    meta = {"meshes": {"m": {"axis_names": ["x"], "axis_sizes": [2], "device_ids": [0, 1]}}}
    return {"named_sharding.json": {"meta": meta, "cases": [case | recorded]}}


# JAX rejects a size that is not divisible; the rule does not apply to a divisible one.
refused = dict.fromkeys(["shard_shape", "indices", "sdy_in_out"], {"error": "IndivisibleError"})
code, out, observed = run(named_sharding(3, refused))
expect("the rule uneven-kept", code == 0 and "by rule uneven-kept: 1" in out, out)
expect("our raw answer has shards", observed["named_sharding.json"][0]["answer"]["indices"] == [[[0, 2]], [[2, 3]]],
       observed)
code, out, _ = run(named_sharding(4, refused))
expect("no rule for an even size", code == 1 and "FAILED vector" in out, out)

# Missing or null parameters are not guessed.
for params in ({}, {"k": None}):
    top = {"id": "top", "op": "top_k", "in_shapes": [[4]], "in_specs": [["x"]], "params": params, "out_shape": [2]}
    meta = {"mesh": {"axis_names": ["x"], "axis_sizes": [2]}}
    code, out, _ = run({"explicit_rules.json": {"meta": meta, "cases": [top]}})
    expect("top_k of how many", code == 0 and "0 failed, 0 by rule, 1 unknown" in out, out)

# A sum that is 24 units of f32 away from the recorded one: more than the default allows.
away = {"id": "sum-1", "op": "sum", "at": {"keepdims": False, "dimensions": [0]}, "x": [{"d": "f32", "s": [2], "v": [0.5, 0.5]}],
        "out": [{"d": "f32", "s": [], "v": [1 + 24 * 2.0**-23]}]}
code, out, _ = run({"calls_reductions.json": [away]})
if "1 skipped" not in out:
    expect("24 units are too many", code == 1 and "FAILED sum-1" in out, out)
    code, out, _ = run({"calls_reductions.json": [away]}, "--roundings", "f32=32")
    expect("32 units are allowed", code == 0 and "1 passed, 0 failed" in out, out)

for wrong in ([], ["--data"], ["--data", "/nowhere/at/all"], ["--all"], ["--data", ".", "--roundings", "f32"],
              ["--data", ".", "--roundings", "i32=4"], ["--data", ".", "--roundings", "f32=-1"]):
    done = subprocess.run([PROGRAM, *wrong], capture_output=True, encoding="utf-8", timeout=60)
    expect(f"usage after {wrong}", done.returncode == 2 and "usage:" in done.stderr, done.stderr)
print(f"{checks} passed, 0 failed")
