"""Specs, shardings, placements and tile assignments: JAX's and torch_xla's recorded answers, JAX itself, errors."""

import copy
import json
import math
import os
import pickle
import random
import subprocess
import sys
import types

import numpy as np
import pytest
from golden_support import cases, meta

import meshard as ms
from meshard import (UNCONSTRAINED, AxisRef, Mesh, OpSharding, P, Partial, Placements, Replicate, Shard, Sharding,
                     ShardingSpec, TileAssignment)

MESH = Mesh({"data": 2, "model": 4})


def spec_of(entries):
    """A spec in JSON: None, an axis, a list of axes, or "*" for a dimension that is left to the compiler."""
    return P(*(UNCONSTRAINED if each == "*" else tuple(each) if isinstance(each, list) else each for each in entries))


def box_of(slices):
    return [[each.start, each.stop] for each in slices]


# --- specs -------------------------------------------------------------------------------------


def test_spec():
    spec = P("data", None, ("x", "y"), UNCONSTRAINED, ("z", UNCONSTRAINED), AxisRef("w", 2, 4), 0)
    assert list(spec) == ["data", None, ("x", "y"), UNCONSTRAINED, ("z", UNCONSTRAINED), AxisRef("w", 2, 4), 0]
    assert len(spec) == 7 and spec[-1] == 0 and spec[2] == ("x", "y")
    assert repr(spec) == "P('data', None, ('x', 'y'), UNCONSTRAINED, ('z', UNCONSTRAINED), AxisRef('w', 2, 4), 0)"
    assert eval(repr(spec)) == spec == P.parse(str(spec)) == pickle.loads(pickle.dumps(spec)) == P(*spec)
    assert str(P("data", None, ("x", "y"))) == 'P("data", none, {"x", "y"})'
    assert P(("x",)) == P("x") and P(()) == P(None) and P(["x", "y"]) == P(("x", "y"))
    assert P("x") != P("x", None) and P(0) != P("x") and P("x") != ("x",)
    assert {P("x"): 1}[P("x")] == 1 and copy.deepcopy(spec) is spec
    assert spec.axes(2) == ("x", "y") and spec.axes(9) == () and spec.is_open(3) and not spec.is_open(0)
    assert P.UNCONSTRAINED is UNCONSTRAINED is pickle.loads(pickle.dumps(UNCONSTRAINED))
    assert P(AxisRef("x")) == P("x") and ms.PartitionSpec is P
    with pytest.raises(IndexError):
        spec[7]


def test_plain_tuples_are_specs():
    assert Sharding(MESH, ("data", None)) == Sharding(MESH, P("data", None)) == Sharding(MESH, ["data", None])


# --- shardings ---------------------------------------------------------------------------------


def test_sharding():
    made = Sharding(MESH, P(None, "model"), 3)
    assert made.mesh == MESH and made.spec == P(None, "model", None) and made.ndim == 3
    assert made.axes(1) == ("model",) and made.axes(-2) == ("model",) and not made.is_open(0)
    assert made.unused_axes == ("data",) and made.num_tiles() == 4 and made.num_tiles(1) == 4 and made.num_tiles(7) == 1
    assert made.num_replicas == 2 and not made.is_fully_replicated
    assert made.shard_shape((2, 8, 5)) == (2, 2, 5) and made.padded_shape((2, 7, 5)) == (2, 8, 5)
    assert made.is_even((2, 8, 5)) and not made.is_even((2, 7, 5))
    assert made.slice((2, 7, 5), 3) == (slice(0, 2), slice(6, 7), slice(0, 5))
    assert made.replica_id(5) == 1 and made.tile_index(1, 5) == 1 and made.position_of((0, 1, 0), 1) == 5
    assert made.replica_id(3, (2, 3, 5)) == 0 and made.slice((2, 2, 5), 3)[1] == slice(2, 2)
    assert str(made) == 'Sharding(mesh<data=2, model=4>, P(none, "model", none))'
    assert Sharding(MESH, P("model")).with_ndim(3) == Sharding(MESH, P("model"), 3)
    assert Sharding.replicated(MESH, 2).is_fully_replicated
    assert Sharding(MESH, P(1, (0,))).spec == P("model", "data")


def test_replicated_and_unreduced():
    made = Sharding(MESH, P(UNCONSTRAINED), replicated="data", unreduced=("model",))
    assert made.replicated_axes == ("data",) and made.unreduced_axes == ("model",) and made.is_open(0)
    assert made == Sharding(MESH, P(UNCONSTRAINED)).with_replicated("data").with_unreduced("model")
    for each in (made, Sharding(MESH, P(("model", AxisRef("data", 1, 2)))), Sharding(MESH, P())):
        again = pickle.loads(pickle.dumps(each))
        assert again == each == Sharding.parse(str(each)) == eval(repr(each))
        assert hash(again) == hash(each) and copy.copy(each) is each
    assert made != Sharding(MESH, P(UNCONSTRAINED)) and made != 1
    most = Sharding(MESH, P(), 1, unreduced="model", unreduced_kind="max")
    assert most.unreduced_kind == "max" and made.unreduced_kind == "sum"
    assert most == Sharding(MESH, P(), 1).with_unreduced("model", "max") == eval(repr(most)) != most.with_unreduced("model")
    assert Placements(Replicate(), Partial("max")).sharding(MESH, 1) == most
    # A sharding as JAX 0.12 has it.
    spec = types.SimpleNamespace(partitions=(None,), unreduced={"model"}, unreduced_kind=types.SimpleNamespace(name="max"))
    assert Sharding(types.SimpleNamespace(mesh={"data": 2, "model": 4}, spec=spec)) == most
    spec.unreduced_kind.name = "median"
    with pytest.raises(ms.InvalidArgumentError):
        Sharding(types.SimpleNamespace(mesh={"data": 2, "model": 4}, spec=spec))
    with pytest.raises(ms.InvalidArgumentError, match='"sum", "max" or "min"; got "mean"'):
        Sharding(MESH, P(), 1, unreduced="model", unreduced_kind="mean")
    with pytest.raises(ms.InvalidArgumentError, match="has none"):
        Sharding(MESH, P(), 1, unreduced_kind="max")


def test_slices_index_arrays():
    array = np.arange(7 * 6).reshape(7, 6)
    made = Sharding(MESH, P("model", "data"))
    whole = np.full(array.shape, -1)
    for box in made.distinct_slices(array.shape):
        whole[box] = array[box]
    assert np.array_equal(whole, array)
    assert made.slices(array.shape) == [made.slice(array.shape, i) for i in range(8)]


def test_derived_meshes_are_stored_on_the_base():
    made = Sharding(MESH.flatten("all"), P("all"))
    assert made.mesh == MESH and made.spec == P(("data", "model"))
    part = Sharding(MESH["model"], P("model"))
    assert part.mesh == MESH and part.unused_axes == ("data",)


def test_equivalence():
    turned = MESH.permute(("model", "data"))
    a, b = Sharding(MESH, P("data")), Sharding(turned, P("data"))
    assert a.same_placement(b, 1)
    other = Sharding(Mesh({"x": 8}), P(AxisRef("x", 1, 2)))
    assert a != other and a.is_equivalent_to(other, 1)
    assert not a.is_equivalent_to(Sharding(MESH, P("model")), 1)


def test_tensor_has_a_sharding():
    x = ms._meshard.ops.sharding_constraint(ms._meshard.ops.zeros((8, 4)), Sharding(MESH, P("data", None)))
    assert x.sharding == Sharding(MESH, P("data", None))
    assert ms._meshard.ops.zeros((8, 4)).sharding is None


def test_sharding_spec():
    spec = ShardingSpec(MESH, P("data"))
    assert spec.mesh == MESH and spec.spec == P("data") and not spec.is_minibatch
    assert spec.sharding((8, 3)) == Sharding(MESH, P("data", None)) and spec.can_apply((8,)) and not spec.can_apply(())
    assert spec.find_sharding(()) is None and spec.can_apply(ms._meshard.ops.zeros((8, 4)))
    batch = ShardingSpec(Mesh({"data": 4}), P("data"), minibatch=True)
    assert batch.is_minibatch and batch.can_apply((8, 3)) and batch.find_sharding((6, 3)) is None
    for each in (spec, batch):
        assert pickle.loads(pickle.dumps(each)) == each == eval(repr(each)) == ShardingSpec.parse(str(each))
    assert len({spec, batch, eval(repr(spec))}) == 2


# --- pictures ----------------------------------------------------------------------------------


def test_pictures():
    made = Sharding(Mesh({"x": 2, "y": 2}), P("y", None))
    assert "dimension 0: y ↓ │ 0,2 │" in ms.picture(made)
    drawn = ms.picture(made, (4, 6))
    assert "│ [0:2, 0:6] on 0,2 │" in drawn and "│ [2:4, 0:6] on 1,3 │" in drawn
    assert drawn.svg.startswith("<svg")
    assert "[0:2, 0:6, 0:5] on 0,2" in ms.picture(made, (4, 6, 5))
    assert made._repr_html_().startswith("<svg")
    x = ms._meshard.ops.sharding_constraint(ms._meshard.ops.zeros((4, 6)), made)
    assert ms.picture(x) == drawn
    with pytest.raises(ValueError, match="no sharding"):
        ms.picture(ms._meshard.ops.zeros((4, 6)))
    with pytest.raises(ms.Error):
        ms.picture(made, (4,))


# --- DTensor -----------------------------------------------------------------------------------


def test_placements():
    made = Placements(Shard(0), Replicate())
    assert made.sharding(MESH, 2) == Sharding(MESH, P("data", None)) and Placements.of(made.sharding(MESH, 2)) == made
    assert list(made) == [Shard(0), Replicate()] and len(made) == 2 and made[0].dim == 0
    assert made == Placements([Shard(0), Replicate()]) == Placements.parse("[Shard(0), Replicate()]")
    assert str(made) == "(Shard(dim=0), Replicate())" and eval(repr(made)) == made
    partial = Placements(Partial(), Shard(-1))
    assert partial.sharding(MESH, 2) == Sharding(MESH, P(None, "model"), unreduced="data")
    for each in (made, partial, Shard(2), Replicate(), Partial("max")):
        assert pickle.loads(pickle.dumps(each)) == each == eval(repr(each)) and hash(each) == hash(eval(repr(each)))
    assert Shard(0) != Shard(1) and Shard(0) != Replicate() and Partial().reduce_op == "sum"


# --- XLA's and Shardy's forms ------------------------------------------------------------------


def test_tile_assignment():
    made = Sharding(MESH, P("model", None))
    tiles = ms.tile_assignment(made)
    assert str(tiles) == "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"
    assert (tiles.kind, tiles.dims, tiles.reshape_dims, tiles.transpose_perm) == ("tiled", (4, 1, 2), (2, 4), (1, 0))
    assert tiles.replicate_on_last_tile_dim and tiles.is_iota and tiles.ndim == 2 and tiles.devices == ()
    assert tiles.device_list() == [0, 4, 1, 5, 2, 6, 3, 7] == list(tiles.listed().devices)
    assert tiles.iota_layout() == ms.Layout((4, 2), (1, 4))
    assert ms.sharding_from_tiles(MESH, tiles, 2) == made
    assert ms.sharding_from_tiles(tiles, 2, 8).same_placement(made, 2)
    by_hand = TileAssignment("tiled", dims=(4, 1, 2), reshape_dims=(2, 4), transpose_perm=(1, 0),
                             replicate_on_last_tile_dim=True)
    assert by_hand == tiles == eval(repr(tiles)) == TileAssignment.parse(str(tiles))
    assert pickle.loads(pickle.dumps(tiles)) == tiles
    assert by_hand.canonical() == tiles.canonical() and len({tiles, by_hand}) == 1
    manual = TileAssignment("{devices=[2,2,2]<=[8] last_tile_dims={manual, replicated}}")
    assert manual.last_tile_dims == ("manual", "replicated") and TileAssignment("replicated").kind == "replicated"
    there = TileAssignment("{devices=[2]0,1}").with_device_ids(Mesh({"x": 2}, [5, 3]))
    assert there.devices == (5, 3) and there.with_positions(Mesh({"x": 2}, [5, 3])).devices == (0, 1)
    both = OpSharding([tiles, TileAssignment("{replicated}")])
    assert both.is_tuple and both.type == "TUPLE" and both.elements[0] == tiles and len(both.elements) == 2
    assert OpSharding(str(both)) == both == pickle.loads(pickle.dumps(both)) == eval(repr(both))
    assert OpSharding(tiles).type == "PARTIAL" and OpSharding(tiles).canonical() == OpSharding(tiles.canonical())


def test_replica_groups():
    groups = ms.replica_groups(MESH, "data")
    assert str(groups) == "[4,2]<=[2,4]T(1,0)" and groups.listed() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert (groups.count, groups.group_size, len(groups)) == (4, 2, 4)
    by_hand = ms.IotaGroups(4, 2, (2, 4), (1, 0))
    assert groups == by_hand == eval("ms." + repr(groups)) == pickle.loads(pickle.dumps(groups))
    assert hash(groups) == hash(by_hand) and ms.IotaGroups(2, 4).listed() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert ms.axes_of_groups(MESH, groups) == ("data",) == ms.axes_of_groups(MESH, groups.listed())
    assert ms.axes_of_groups(MESH, [[0, 1], [2, 3], [4, 5], [6, 7]]) == (AxisRef("model", 2, 2),)
    assert ms.axes_of_groups(MESH, [[0, 7], [1, 2], [3, 4], [5, 6]]) is None


def test_shardy_texts():
    made = Sharding(MESH, P("data", UNCONSTRAINED), replicated="model")
    text = ms.shardy_text(made)
    assert text == '#sdy.sharding<@mesh, [{"data"}, {?}], replicated={"model"}>'
    assert ms.parse_shardy_sharding(text, MESH) == made and "@m8" in ms.shardy_text(made, "m8")


def test_recorded_op_shardings():
    compared = 0
    for case in cases("txla/op_sharding.json"):
        given, expect = case["input"], case.get("expect")
        if expect is None or [] in given["partition_spec"]:  # torch_xla counts an empty tuple as a split
            continue
        mesh = Mesh(given["mesh_shape"], given["axis_names"], given["device_ids"])
        made = Sharding(mesh, spec_of(given["partition_spec"]))
        assert ms.sharding_type(made) == expect["sharding_type"], case["name"]
        assert ms.canonical_type(made) == expect["canonical_type"], case["name"]
        tiles = ms.tile_assignment(made).with_device_ids(mesh)
        recorded = TileAssignment(expect["hlo_sharding"])
        assert tiles.with_sorted_replicas() == recorded.with_sorted_replicas(), case["name"]
        if made.ndim:
            shape, ids = ms.tile_array(made)
            assert list(shape) == expect["tile_assignment_shape"]
            assert np.reshape(ids, shape).tolist() == expect["tile_assignment"]
        if expect["sharding_type"] == "PARTIAL":
            assert ms.tile_groups(made)[1] == expect["replication_groups"]
        compared += 1
    assert compared > 300


def test_recorded_iotas():
    for case in cases("txla/op_sharding_v2_iota.json"):
        given, expect = case["input"], case["expect"]
        made = Sharding(Mesh(given["mesh_shape"], given["axis_names"]), spec_of(given["partition_spec"]))
        assert str(ms.tile_assignment(made)) == expect["hlo_sharding_v2"], case["name"]
        assert ms.axis_tile_assignment(made).shortest() == ms.tile_assignment(made)


def test_recorded_shards():
    compared = 0
    for case in cases("txla/shards.json"):
        given, expect = case["input"], case.get("expect")
        if expect is None:
            continue
        mesh = Mesh(given["mesh_shape"], given["axis_names"], given["device_ids"])
        shape = given["global_shape"]
        made = Sharding(mesh, spec_of(given["partition_spec"]), len(shape))
        assert list(made.shard_shape(shape)) == expect["shard_shape"]
        for shard in expect["shards"]:
            if shard["indices"] == "all" or not isinstance(shard["indices"], list):
                continue
            box = made.slice(shape, mesh.position(shard["device"]))
            recorded = [[each["start"], each["stop"]] if isinstance(each, dict) else each for each in shard["indices"]]
            assert box_of(box) == [list(each)[:2] for each in recorded], (case["name"], shard)
            compared += 1
    assert compared > 100


# --- JAX ---------------------------------------------------------------------------------------


def jax_meshes():
    read = meta("jax/named_sharding.json")["meta"]["meshes"]
    return {name: Mesh(each["axis_sizes"], each["axis_names"], each["device_ids"]) for name, each in read.items()}


def test_recorded_named_shardings():
    meshes, compared, refused = jax_meshes(), 0, 0
    for case in cases("jax/named_sharding.json"):
        mesh, shape = meshes[case["mesh"]], case["shape"]
        if "ctor" in case:
            try:
                Sharding(mesh, spec_of(case["spec"]), len(shape))
            except ms.Error:
                refused += 1
            continue
        if len(case["spec"]) > len(shape):
            assert "error" in case["sdy_in_out"]  # JAX fails later, when the sharding is used
            with pytest.raises(ms.InvalidArgumentError):
                Sharding(mesh, spec_of(case["spec"]), len(shape))
            continue
        made = Sharding(mesh, spec_of(case["spec"]), len(shape))
        assert made.is_fully_replicated == case["is_fully_replicated"], case["id"]
        assert ms.tile_assignment(made).canonical() == TileAssignment(case["hlo"]).canonical(), case["id"]
        if isinstance(case["shard_shape"], list):
            assert list(made.shard_shape(shape)) == case["shard_shape"]
            assert [box_of(each) for each in made.slices(shape)] == case["indices"], case["id"]
            assert [made.replica_id(i, shape) for i in range(mesh.size)] == case["replica_id_mesh_order"]
            compared += 1
        text = case["sdy_constraint"].get("constraints") if isinstance(case["sdy_constraint"], dict) else None
        if text and "unreduced" not in text[0]:
            assert ms.shardy_text(made) == "#sdy.sharding" + text[0], case["id"]
    assert compared > 700 and refused > 50


def test_recorded_equivalence():
    meshes = jax_meshes()
    both = set()
    for case in cases("jax/sharding_equivalence.json"):
        a = Sharding(meshes[case["mesh_a"]], spec_of(case["spec_a"]))
        b = Sharding(meshes[case["mesh_b"]], spec_of(case["spec_b"]))
        assert a.is_equivalent_to(b, case["rank"]) == case["equivalent"], case["id"]
        both.add(case["equivalent"])
    assert both == {True, False}


JAX_PROGRAM = """
import json, random, sys
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
rng = random.Random(11)
devices = {d.id: d for d in jax.devices()}
rows = []
for _ in range(200):
    shape = rng.choice([(8,), (2, 4), (4, 2), (2, 2, 2), (1, 8), (2, 1, 4)])
    names = tuple("xyz"[:len(shape)])
    ids = rng.sample(range(8), 8)
    mesh = Mesh(np.array([devices[i] for i in ids]).reshape(shape), names)
    axes = list(names)
    rng.shuffle(axes)
    spec, dims = [], []
    for _ in range(rng.randint(1, 3)):
        took = [axes.pop() for _ in range(rng.randint(0, min(2, len(axes))))]
        spec.append(None if not took else took[0] if len(took) == 1 else took)
        dims.append(int(np.prod([mesh.shape[a] for a in took])) * rng.randint(1, 3))
    sharding = NamedSharding(mesh, P(*[tuple(e) if isinstance(e, list) else e for e in spec]))
    boxes = {d.id: [list(s.indices(n)[:2]) for s, n in zip(box, dims)]
             for d, box in sharding.devices_indices_map(tuple(dims)).items()}
    rows.append({"shape": shape, "names": names, "ids": ids, "spec": spec, "dims": dims, "boxes": boxes,
                 "shard_shape": sharding.shard_shape(tuple(dims)), "replicated": sharding.is_fully_replicated})
json.dump(rows, sys.stdout)
"""


def test_against_jax():
    pytest.importorskip("jax")
    settings = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", JAX_PROGRAM], capture_output=True, text=True, timeout=120, check=True,
                          env={**os.environ, **settings})
    rows = json.loads(done.stdout)
    assert len(rows) == 200
    for row in rows:
        mesh = Mesh(row["shape"], row["names"], row["ids"])
        made = Sharding(mesh, spec_of(row["spec"]))
        assert list(made.shard_shape(row["dims"])) == row["shard_shape"]
        assert made.is_fully_replicated == row["replicated"]
        for device, box in row["boxes"].items():
            assert box_of(made.slice(row["dims"], mesh.position(int(device)))) == box, row


def test_values_of_jax():
    jax = pytest.importorskip("jax")
    from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

    mesh = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Explicit))
    mine = Mesh({"data": 2, "model": 4}, explicit=["model"])
    assert Mesh(mesh) == mine
    spec = PartitionSpec(("data",), None, PartitionSpec.UNCONSTRAINED)
    assert Sharding(mine, spec) == Sharding(mine, P("data", None, UNCONSTRAINED))
    assert P(*spec) == P("data", None, UNCONSTRAINED)
    assert Sharding(NamedSharding(mesh, PartitionSpec("data", "model"))) == Sharding(mine, P("data", "model"))
    partial = NamedSharding(mesh, PartitionSpec("data", unreduced={"model"}))
    with pytest.raises(ms.InvalidArgumentError, match="a spec is P"):
        Sharding(mine, partial.spec)
    assert Sharding(partial) == Sharding(mine, P("data"), unreduced="model")
    if kinds := getattr(jax.sharding, "UnreducedKind", None):  # since 0.12
        most = NamedSharding(mesh, PartitionSpec("data", unreduced={"model"}, unreduced_kind=kinds.max))
        assert Sharding(most) == Sharding(mine, P("data"), unreduced="model", unreduced_kind="max")
    device = jax.devices()[0]
    assert Mesh(jax.sharding.Mesh(np.array([[device]]), ("x", "y"))) == Mesh({"x": 1, "y": 1}, [device.id])


# --- random properties -------------------------------------------------------------------------


def test_random_shardings():
    rng = random.Random(9)
    for _ in range(300):
        sizes = [rng.choice((1, 2, 3, 4)) for _ in range(rng.randint(1, 3))]
        names = list("xyz"[:len(sizes)])
        mesh = Mesh(sizes, names)
        free = rng.sample(names, len(names))
        spec = P(*(tuple(free.pop() for _ in range(rng.randint(0, min(2, len(free))))) for _ in range(3)))
        made = Sharding(mesh, spec)
        shape = [rng.randint(0, 9) for _ in range(3)]
        counts = np.zeros(shape, dtype=int)
        holders = {}
        for position in range(mesh.size):
            box = made.slice(shape, position)
            counts[box] += 1
            assert all(part.stop - part.start <= most for part, most in zip(box, made.shard_shape(shape)))
            tile = tuple(made.tile_index(d, position) for d in range(3))
            assert made.position_of(tile, made.replica_id(position)) == position
            holders.setdefault(tile, []).append(position)
        assert (counts == made.num_replicas).all()
        assert len(holders) == made.num_tiles() == math.prod(made.num_tiles(d) for d in range(3))
        assert sorted(holders.values()) == sorted(sorted(group) for group in ms.tile_groups(made)[1])
        assert ms.sharding_from_tiles(mesh, ms.tile_assignment(made), 3).is_equivalent_to(made, 3)
        assert pickle.loads(pickle.dumps(made)) == made == eval(repr(made))
        assert ms.parse_shardy_sharding(ms.shardy_text(made), mesh) == made
        assert made.padded_shape(shape) == tuple(n * made.num_tiles(d) for d, n in enumerate(made.shard_shape(shape)))


# --- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong, error, words", [
    (lambda: P(3.5), ms.InvalidArgumentError, r"each dimension is None, an axis .* got \(3.5,\)"),
    (lambda: P(-1), ms.InvalidArgumentError, "each dimension is"),
    (lambda: P(("x", None)), ms.InvalidArgumentError, "each dimension is"),
    (lambda: P((UNCONSTRAINED, "x")), ms.InvalidArgumentError, "each dimension is"),
    (lambda: P(True), ms.InvalidArgumentError, "each dimension is"),
    (lambda: P.parse("P(x"), ms.InvalidArgumentError, "parse"),
    (lambda: Sharding(MESH, P("x")), ms.NotFoundError, 'no axis "x"; the mesh has the axes data, model'),
    (lambda: Sharding(MESH, P("data", "data")), ms.InvalidArgumentError, 'axis "data" is used twice'),
    (lambda: Sharding(MESH, P(("data", "data"))), ms.InvalidArgumentError, "twice"),
    (lambda: Sharding(MESH, P(7)), ms.Error, "7"),
    (lambda: Sharding(MESH, "data"), ms.InvalidArgumentError, "a spec is P.* got 'data'"),
    (lambda: Sharding(MESH), ms.InvalidArgumentError, "takes a mesh and a spec"),
    (lambda: Sharding(MESH, P(), unreduced={"data"}), ms.InvalidArgumentError, "got {'data'}"),
    (lambda: Sharding(MESH, ("data", 2.5)), ms.InvalidArgumentError, "each dimension is"),
    (lambda: Sharding(MESH, P("data", None), 1), ms.InvalidArgumentError, "2 dimensions"),
    (lambda: Sharding(MESH, P(AxisRef("model", 1, 3))), ms.InvalidArgumentError, "3"),
    (lambda: Sharding(MESH, P("data"), unreduced="data"), ms.InvalidArgumentError, "data"),
    (lambda: Sharding(MESH, P("data"), unreduced=("data", 2.5)), ms.InvalidArgumentError, "an axis is a name"),
    (lambda: Sharding(MESH, P("data", None)).shard_shape((8,)), ms.InvalidArgumentError, "dimension"),
    (lambda: Sharding(MESH, P("data")).shard_shape((-8,)), ms.InvalidArgumentError, "negative|-8"),
    (lambda: Sharding(MESH, P("data")).slice((8,), 8), ms.OutOfRangeError, "8"),
    (lambda: Sharding(MESH, P("data")).tile_index(0, 8), ms.OutOfRangeError, "8"),
    (lambda: Sharding(MESH, P("data")).replica_id(-1), ms.OutOfRangeError, "-1"),
    (lambda: Sharding(MESH, P("data")).position_of((2,)), ms.OutOfRangeError, "no replica 0 of tile"),
    (lambda: Sharding(MESH, P("data")).axes(1), ms.OutOfRangeError, "no dimension 1"),
    (lambda: Sharding(MESH, P("data", None)).with_ndim(1), ms.InvalidArgumentError, "1"),
    (lambda: Sharding(MESH, P("data", None)).is_equivalent_to(Sharding(MESH, P()), 1), ms.InvalidArgumentError, "1"),
    (lambda: ShardingSpec(MESH, P("data"), minibatch=True), ms.InvalidArgumentError, "minibatch"),
    (lambda: ShardingSpec(MESH, P("data")).sharding(()), ms.InvalidArgumentError, "dimension"),
    (lambda: ShardingSpec(MESH, P("data")).sharding("x"), ms.InvalidArgumentError, "a shape or a tensor"),
    (lambda: Placements(Shard(0)).sharding(MESH, 2), ms.InvalidArgumentError, "placement"),
    (lambda: Placements(Shard(5), Replicate()).sharding(MESH, 2), ms.InvalidArgumentError, "5"),
    (lambda: Placements("x"), ms.InvalidArgumentError, "a placement is"),
    (lambda: Placements.of(Sharding(MESH, P(("model", "data")))), ms.InvalidArgumentError, "permute the mesh"),
    (lambda: TileAssignment("tiled", dims=(2, 2), devices=(0, 1)), ms.InvalidArgumentError, "2 devices for 4 tiles"),
    (lambda: TileAssignment("tiled", dims=(2,), devices=(0, 0)), ms.InvalidArgumentError, "listed twice"),
    (lambda: TileAssignment("split"), ms.InvalidArgumentError, "no kind 'split'"),
    (lambda: TileAssignment("{devices=[2]"), ms.InvalidArgumentError, "parse"),
    (lambda: TileAssignment("{replicated}").device_list(), ms.InvalidArgumentError, "device_list"),
    (lambda: TileAssignment("{devices=[2]0,9}").with_device_ids(MESH), ms.OutOfRangeError, "9"),
    (lambda: ms.sharding_from_tiles(MESH, TileAssignment("{manual}"), 1), ms.InvalidArgumentError, "manual"),
    (lambda: ms.IotaGroups(4, 2, (2, 3), (1, 0)), ms.InvalidArgumentError, "6 devices for 8 tiles"),
    (lambda: ms.IotaGroups(4, 2, (2, 4), (1, 1)), ms.InvalidArgumentError, "permutation"),
    (lambda: ms.IotaGroups(0, 2), ms.InvalidArgumentError, "below 1"),
    (lambda: ms.replica_groups(MESH, "x"), ms.Error, "x"),
    (lambda: ms.parse_shardy_sharding("<@m, [{]>", MESH), ms.InvalidArgumentError, "parse"),
])
def test_errors(wrong, error, words):
    with pytest.raises(error, match=words) as caught:
        wrong()
    assert caught.value.filename == __file__ and caught.value.lineno
