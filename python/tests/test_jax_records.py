"""The reader of JAX's compiled text, which the records of tests/exported come from, on texts whose answer is plain."""

import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPORTED = ROOT / "tests" / "exported"
RECORDS = ROOT / "tests" / "golden" / "exported" / "programs"
sys.path.insert(0, str(EXPORTED))
compiled_text = pytest.importorskip("compiled_text", reason="the source tree is not here")

# A loop of three runs with an all-reduce over pairs (0,4), (1,5), ...; a branch with a shift; a reduce-scatter that is
# spread over two fusions; and a start with the tuple (operand, result).
TEXT = """HloModule jit_step, is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias) }, \
entry_computation_layout={(s32[3]{0}, f32[32,8]{1,0:T(8,128)}, /*index=2*/pred[]{:T(128)})->(f32[32,8]{1,0:T(8,128)}, bf16[4]{0})}, num_partitions=8

FileNames
1 "programs/step.py"
2 "/site-packages/lib/layers.py"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=1 end_column=2}
2 {file_name_id=2 function_name_id=1 line=40 end_line=40 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}


%body (p: (f32[32,8])) -> (f32[32,8]) {
  %p = (f32[32,8]{1,0}) parameter(0)
  %g = f32[32,8]{1,0} get-tuple-element(%p), index=0
  %all-reduce.1 = f32[32,8]{1,0:T(8,128)} all-reduce(%g), channel_id=1, replica_groups={{0,4},{1,5},{2,6},{3,7}}, to_apply=%add, metadata={op_name="a" stack_frame_id=2}
  ROOT %t = (f32[32,8]{1,0}) tuple(%all-reduce.1)
}

%branch (q: f32[4]) -> f32[4] {
  %q = f32[4]{0} parameter(0)
  ROOT %collective-permute-start = (f32[4]{0}, f32[4]{0}, u32[], u32[]) collective-permute-start(%q), channel_id=2, source_target_pairs={{0,1},{1,2},{2,3},{3,0},{4,5},{5,6},{6,7},{7,4}}
}

%first (r: f32[32,8]) -> f32[16,8] {
  %r = f32[32,8]{1,0} parameter(0)
  ROOT %reduce-scatter.1 = f32[16,8]{1,0} reduce-scatter(%r), channel_id=3, replica_groups=[4,2]<=[2,4]T(1,0), dimensions={0}, to_apply=%add
}

%second (s: f32[32,8]) -> f32[16,8] {
  %s = f32[32,8]{1,0} parameter(0)
  ROOT %reduce-scatter.2 = f32[16,8]{1,0} reduce-scatter(%s), channel_id=3, replica_groups=[4,2]<=[2,4]T(1,0), dimensions={0}, to_apply=%add
}

ENTRY %main (x: f32[32,8]) -> f32[32,8] {
  %x = f32[32,8]{1,0} parameter(0)
  %t0 = (f32[32,8]{1,0}) tuple(%x)
  %while.1 = (f32[32,8]{1,0}) while(%t0), condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"3"}}
  %q0 = f32[4]{0} constant({1, 2, 3, 4})
  %c = f32[4]{0} conditional(%i, %q0, %q0), branch_computations={%branch, %other}
  %f1 = f32[16,8]{1,0} fusion(%x), kind=kOutput, calls=%first
  %f2 = f32[16,8]{1,0} fusion(%x), kind=kOutput, calls=%second
  ROOT %all-gather.1 = f32[32,8]{1,0} all-gather(%f1), channel_id=4, replica_groups=[2,4]<=[8], dimensions={0}
}
"""


def test_collectives():
    found = compiled_text.collectives(TEXT, {"data": 2, "model": 4})
    assert [(one["kind"], one["axes"], one["bytes_in"], one["bytes_out"], one["executions"], one["continues"],
             one["conditional"]) for one in found] == [
        ("all-reduce", ["data"], 1024, 1024, 3, False, False),
        ("collective-permute", ["model"], 16, 16, 1, False, True),
        ("reduce-scatter", ["data"], 1024, 512, 1, False, False),
        ("reduce-scatter", ["data"], 0, 0, 1, True, False),
        ("all-gather", ["model"], 512, 1024, 1, False, False)]
    assert found[0]["lines"] == ["/site-packages/lib/layers.py:40", "programs/step.py:7"]
    assert all(one["lines"] == [] for one in found[1:])


def test_a_loop_of_unknown_length():
    (first, *_) = compiled_text.collectives(TEXT.replace("known_trip_count", "trips").replace(
        "%body (p", "%condition (p: (f32[32,8])) -> pred[] {\n  ROOT %b = pred[] parameter(0)\n}\n\n%body (p"),
        {"data": 2, "model": 4})
    assert first["executions"] is None


def test_the_boundary():
    assert compiled_text.entry_types(TEXT) == (["i32[3]", "f32[32,8]", "pred[]"], ["f32[32,8]", "bf16[4]"])
    assert compiled_text.reused(TEXT) == [1]


def groups(*rows):
    return frozenset(frozenset(row) for row in rows)


@pytest.mark.parametrize("axes, slices, rows, expected", [
    ({"x": 8}, 1, [[0, 1], [2, 3], [4, 5], [6, 7]], [{"axis": "x", "pre_size": 4, "size": 2}]),
    ({"x": 8}, 1, [[0, 2, 4, 6], [1, 3, 5, 7]], [{"axis": "x", "pre_size": 1, "size": 4}]),
    ({"a": 2, "b": 4}, 1, [[0, 1, 2, 3, 4, 5, 6, 7]], ["a", "b"]),
    ({"a": 2, "b": 4}, 1, [[0, 3], [1, 2], [4, 7], [5, 6]], None),
    ({"dcn": 2, "a": 2, "b": 2}, 2, [[0, 2], [1, 3]], ["a"]),  # the groups of one slice
])
def test_axes_of_groups(axes, slices, rows, expected):
    assert compiled_text.axes_of("all-reduce", groups(*rows), axes, slices) == expected


def test_every_program_has_a_record():
    others = ("__init__", "common", "attention_block")
    programs = {path.stem for path in (EXPORTED / "programs").glob("*.py") if path.stem not in others}
    records = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in RECORDS.glob("*.json")}
    assert programs == set(records) and len(records) >= 24
    assert all((RECORDS / record["module"]).is_file() for record in records.values())
