"""Topologies and meshes over them: JAX's and torch_xla's recorded meshes, hops, errors, pickling."""

import copy
import pickle

import numpy as np
import pytest
from golden_support import cases, meta

import meshard as ms
from meshard import DeviceAttributes, Mesh, Topology, hybrid_mesh, ring_mesh, torus_mesh, tpu_topology

# What Python's references raise for our errors.
EXCEPTIONS = {ms.UnimplementedError: "NotImplementedError", ms.FailedPreconditionError: "AssertionError",
              ms.InvalidArgumentError: "ValueError"}


def recorded_topologies():
    read = {}
    for name, fields in meta("jax/tpu_topologies.json")["topologies"].items():
        read[name] = Topology([DeviceAttributes(i, coords=(x, y, z), core_on_chip=core, slice_index=part,
                                                process_index=process, kind=fields["device_kind"])
                               for i, x, y, z, core, part, process in fields["devices"]])
    return read


def test_tpu_topologies():
    compared = 0
    for name, recorded in recorded_topologies().items():
        made = tpu_topology(name)
        assert made.devices == recorded.devices, name
        assert len(made) == made.size == len(recorded.devices) and made.has_coords
        compared += 1
    assert compared == 60


def test_topology():
    made = tpu_topology("v5e:4x4*2")
    assert made.size == 32 and made.kind == "TPU v5 lite" and str(made) == "32 devices of TPU v5 lite, 4x4x1 chips"
    assert made.extent == (4, 4, 1) and made.wrap == [False, False, False]
    assert [len(part) for part in ms.granules_of(made)] == [16, 16]
    assert [len(part) for part in ms.granules_of(made, "process")] == [4] * 8
    again = pickle.loads(pickle.dumps(made))
    assert again == made and hash(again) == hash(made) and made != tpu_topology("v5e:4x4") and made != 1
    assert copy.copy(made) is made
    device = made.devices[3]
    assert (device.id, device.coords, device.slice_index, device.process_index, device.core_on_chip) == (
        100005, (1, 1, 0), 0, 0, 0)
    again = pickle.loads(pickle.dumps(device))
    assert eval(repr(device)) == device == again and hash(device) == hash(again)
    ring = Topology([DeviceAttributes(i, coords=(i,)) for i in range(4)], wrap=[True])
    assert ring.wrap == [True] and pickle.loads(pickle.dumps(ring)) == ring
    assert ring != Topology(ring.devices, wrap=[False])
    assert "v5e" in ms.tpu_generations() and ms.tpu_generations()[0] == "v2"
    assert Topology([DeviceAttributes(0)]).wrap is None


def test_runtime_topology():
    made = ms.runtime_topology()
    assert made.size == ms.mesh_1d().size >= 1
    assert ms.mesh_1d(name="data").axis_names == ("data",)


def test_recorded_device_meshes():
    topologies, compared, errors = recorded_topologies(), 0, 0
    for case in cases("jax/part1/device_mesh.json", "jax/part2/device_mesh.json"):
        topology = topologies[case["topology"]]
        if topology.size > 300:
            continue
        split = "where_needed" if case["allow_split_physical_axes"] else "never"
        try:
            if case["fn"] == "create_device_mesh":
                made = torus_mesh(topology, case["mesh_shape"], split=split,
                                  contiguous_processes=case["contiguous_submeshes"])
            else:
                made = hybrid_mesh(topology, case["mesh_shape"], case["dcn_mesh_shape"], split=split,
                                   granule="process" if case["process_is_granule"] else "slice")
        except ms.Error as error:
            assert EXCEPTIONS[type(error)] == case.get("error"), case["id"]
            errors += 1
            continue
        if case.get("error") == "AssertionError":  # JAX has no mesh of chips with two devices
            assert sorted(made.device_ids) == sorted(device.id for device in topology.devices)
            continue
        assert made.device_ids.tolist() == case["ids"], case["id"]
        compared += 1
    assert compared > 500 and errors > 50


def test_recorded_torus_assignments():
    refused = 0
    for case in cases("txla/torus_assignment.json"):
        given = case["input"]
        for variant, split in (("split_axes", "where_needed"), ("no_split", "never")):
            expect = case["expect"][variant]
            if expect["ok"]:
                taken = ms.assign_torus(given["physical_shape"], given["logical_shape"], split)
                assert [list(each) for each in taken] == expect["assignment"], (case["name"], variant)
            else:
                with pytest.raises(ms.Error):
                    ms.assign_torus(given["physical_shape"], given["logical_shape"], split)
                refused += 1
    assert refused > 10


def test_recorded_hybrid_meshes():
    compared = 0
    for case in cases("txla/hybrid_mesh.json"):
        given = case["input"]
        devices = [DeviceAttributes(int(each["name"].split(":")[1]), coords=each["coords"],
                                    core_on_chip=each["core_on_chip"], slice_index=each.get("slice_index"))
                   for each in given["device_attributes"]]
        for variant, split in (("split_axes", "where_needed"), ("no_split", "never")):
            expect = case["expect"][variant]
            if not expect["ok"]:
                continue
            made = hybrid_mesh(Topology(devices), given["ici_mesh_shape"], given["dcn_mesh_shape"] or (),
                               given["axis_names"], split=split)
            assert list(made.shape) == expect["mesh_shape"], (case["name"], variant)
            assert ms.get_logical_mesh(made).tolist() == expect["logical_mesh"], (case["name"], variant)
            compared += 1
    assert compared > 250


def test_hybrid_mesh_of_cpus():
    cpus = Topology([DeviceAttributes(i) for i in range(8)])
    made = hybrid_mesh(cpus, (1, 4), (2, 1), ("dp", "tp"), allow_no_coords=True)
    assert made == Mesh({"dp": 2, "tp": 4})
    with pytest.raises(ms.FailedPreconditionError):
        hybrid_mesh(cpus, (2, 4))


def test_rings():
    ring = ring_mesh(tpu_topology("v5e:8x8"), (64,), ("ring",))
    assert ring.mesh.shape == (64,) and ring.hops.axes[0].mean == 1 and ring.hops.axes[0].worst == 1
    assert str(ring.hops) == "1 (worst 1)" and ring.hops.to_string(ring.mesh) == "ring 1 (worst 1)"
    assert ring.hops.worst_mean == ring.hops.mean == 1 and ring.hops.wrap_known and "hops ring 1" in str(ring)
    again = pickle.loads(pickle.dumps(ring))
    assert again.mesh == ring.mesh and str(again) == str(ring) and again.hops.axes[0].steps == 64
    line = ms.mesh_hops(Mesh({"x": 64}), tpu_topology("v5e:8x8"))
    steps = [(i, (i + 1) % 64) for i in range(64)]
    far = [abs(a % 8 - b % 8) + abs(a // 8 - b // 8) for a, b in steps]
    assert line.axes[0].mean == pytest.approx(np.mean(far)) and line.axes[0].worst == max(far)
    assert line.axes[0].steps == 64 and line.axes[0].between_slices == 0
    two = ring_mesh(tpu_topology("v5e:4x4*2"), (2, 16), outer=(2, 1))
    assert two.hops.axes[0].between_slices == 16
    assert ring_mesh(Topology([DeviceAttributes(i) for i in range(4)]), (2, 2)).hops is None


@pytest.mark.parametrize("wrong, error, words", [
    (lambda: tpu_topology("v9:2x2"), ms.Error, "v9"),
    (lambda: tpu_topology("v5e:0x2"), ms.Error, "0"),
    (lambda: Topology([]), ms.InvalidArgumentError, "list of devices is empty"),
    (lambda: Topology([DeviceAttributes(1), DeviceAttributes(1)]), ms.InvalidArgumentError, "twice|1"),
    (lambda: Topology([DeviceAttributes(1, coords=(1,))], wrap=[True, True]), ms.InvalidArgumentError, "coord"),
    (lambda: hybrid_mesh(tpu_topology("v5e:4x4"), (4, 4), (2,)), ms.InvalidArgumentError, "2"),
    (lambda: hybrid_mesh(tpu_topology("v5e:4x4"), (4, 3)), ms.InvalidArgumentError, "16"),
    (lambda: hybrid_mesh(tpu_topology("v5e:4x4"), (4, 4), granule="rack"), ms.InvalidArgumentError, "'rack'"),
    (lambda: hybrid_mesh(tpu_topology("v5e:4x4"), (4, 4), split="always"), ms.InvalidArgumentError, "'always'"),
    (lambda: torus_mesh(tpu_topology("v5e:4x4"), (2, 2, 4), split="never"), ms.UnimplementedError,
     "allow split='where_needed'"),
    (lambda: torus_mesh(tpu_topology("v5e:4x4"), (4, 4), ("x",)), ms.InvalidArgumentError, "names"),
    (lambda: ms.assign_torus((0, 4), (4,)), ms.InvalidArgumentError, "size 0"),
    (lambda: ms.assign_torus((2, 4), (4,)), ms.InvalidArgumentError, "4"),
    (lambda: ring_mesh(tpu_topology("v5e:4x4"), (15,)), ms.InvalidArgumentError, "15"),
    (lambda: ms.mesh_hops(Mesh({"x": 2}, [98, 99]), tpu_topology("v5e:2x2")), ms.Error, "98"),
    (lambda: ms.mesh_1d(0), ms.InvalidArgumentError, "0"),
    (lambda: ms.mesh_on(2, {"x": 2}, [0, 5]), ms.InvalidArgumentError, "5"),
])
def test_errors(wrong, error, words):
    with pytest.raises(error, match=words) as caught:
        wrong()
    assert caught.value.filename == __file__ and caught.value.lineno
