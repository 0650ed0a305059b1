"""Programs with torch_xla's names, beside what torch_xla did (tests/golden/txla).

    python -m meshard.torch.xla -m pytest torch_xla_programs.py
"""

import copy
import importlib
import pathlib
import sys

import numpy as np
import pytest
import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.spmd as xs
import torch_xla.runtime as xr
from torch_xla.experimental.spmd_fully_sharded_data_parallel import SpmdFullyShardedDataParallel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from golden_support import cases  # noqa: E402

xr.use_spmd()
_sharding_text = torch_xla._XLAC._get_xla_sharding_spec


def _spec(given):
    return tuple(tuple(each) if isinstance(each, list) else each for each in given)


def _mesh(given):
    return xs.Mesh(given["device_ids"], tuple(given["mesh_shape"]), given["axis_names"])


def _on_eight(name):
    return [each for each in cases(f"txla/{name}.json") if each["input"].get("num_devices") == 8]


def test_meshes():
    found = _on_eight("mesh")
    assert len(found) >= 20
    for case in found:
        expected = case["expect"]["pr9514"]
        if not expected["ok"]:
            with pytest.raises(AssertionError):
                _mesh(case["input"])
            continue
        mesh = _mesh(case["input"])
        assert str(mesh) == expected["str"], case["name"]
        assert mesh.get_logical_mesh().tolist() == expected["logical_mesh"]
        assert [list(each) for each in mesh.shape().items()] == expected["shape"]


def test_sharding_texts():
    found = [each for each in _on_eight("op_sharding") if "hlo_sharding" in each.get("expect", {})]
    assert len(found) >= 50
    for case in found:
        op_sharding = _mesh(case["input"]).get_op_sharding(_spec(case["input"]["partition_spec"]))
        assert str(op_sharding) == case["expect"]["hlo_sharding"], case["name"]


def test_shards():
    found = _on_eight("shards")[::4]
    assert len(found) >= 20
    for case in found:
        given, expected = case["input"], case["expect"]
        if not isinstance(given["data"], str):
            continue
        shape = given["global_shape"]
        t = torch.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).to(getattr(torch, given["dtype"])).to("xla")
        marked = xs.mark_sharding(t, _mesh(given), _spec(given["partition_spec"]))
        assert marked.sharding_spec == expected["hlo_sharding"], case["name"]
        shards = marked.local_shards
        for shard, wanted in zip(shards, expected["shards"], strict=True):
            assert shard.shard_device == f"CPU:{wanted['device']}" and shard.replica_id == wanted["replica_id"]
            assert list(shard.data.shape) == wanted["shape"], case["name"]
            places = "all" if shard.indices is ... else [[each.start, each.stop] for each in shard.indices]
            assert places == wanted["indices"], case["name"]
            if isinstance(wanted.get("data"), list):
                assert shard.data.flatten().tolist() == wanted["data"], case["name"]


def test_the_device():
    assert torch_xla.device() == torch.device("xla:0") == xm.xla_device()
    assert xr.global_runtime_device_count() == 8 and xr.world_size() == 1
    for made in (torch.ones(2, device="xla"), torch.ones(2).to("xla:0"), torch.nn.Linear(2, 2).to("xla").weight):
        assert made.device == torch_xla.device()
    with torch.device("xla"):
        assert torch.zeros(3).device.type == "xla"


@pytest.mark.parametrize("ids", [[0, 1, 2, 3], [2, 3], [7, 5, 6, 4]])
def test_training_on_some_devices(ids):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    x, y = torch.randn(16, 8), torch.randn(16, 4)

    def trained(model, x, y):
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            xm.optimizer_step(optimizer, barrier=True)
        return loss

    mesh = xs.Mesh(ids, (len(ids),), ("data",))
    moved, batch = copy.deepcopy(model).to("xla"), x.to("xla")
    xs.mark_sharding(moved[0].weight, mesh, ("data", None))
    xs.mark_sharding(batch, mesh, ("data", None))
    torch.testing.assert_close(trained(moved, batch, y.to("xla")).cpu(), trained(model, x, y))
    for ours, theirs in zip(moved.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(ours.detach().cpu(), theirs.detach())
    text = f"{{devices=[{len(ids)},1]{','.join(map(str, ids))}}}"
    assert _sharding_text(moved[0].weight) == text == _sharding_text(moved[0].weight.grad)


def test_marks():
    mesh = xs.Mesh(range(8), (2, 4), ("x", "y"))
    t = torch.randn(8, 8)
    moved = t.to("xla")
    met.clear_all()
    marked = xs.mark_sharding(moved, mesh, ("x", None))
    assert met.counter_value("VirtualDeviceUsage") == 1
    assert met.metric_data("OutboundData")[:2] == (8, 4.0 * t.nbytes)
    assert isinstance(marked, xs.XLAShardedTensor) and marked.global_tensor is moved
    assert isinstance(marked + 1, xs.XLAShardedTensor) and not isinstance(moved + 1, xs.XLAShardedTensor)
    assert marked.sharding_type == xs.ShardingType.PARTIAL
    with pytest.raises(RuntimeError, match="clear_sharding"):
        xs.mark_sharding(moved, mesh, ("y", None))
    with pytest.raises(AssertionError, match="Partition spec length"):
        xs.mark_sharding(moved, mesh, ("y",))
    with pytest.raises(RuntimeError, match="not an XLA tensor"):
        xs.mark_sharding(t, mesh, ("y", None))
    xs.clear_sharding(moved)
    assert _sharding_text(moved) == "" and xs.wrap_if_sharded(moved) is moved
    xs.mark_sharding(moved, mesh, ("y", None))
    torch.testing.assert_close(moved.cpu(), t)


def test_marks_of_views():
    mesh = xs.Mesh(range(8), (8,))
    t = torch.arange(64.0).reshape(8, 8)
    whole = t.to("xla")
    xs.mark_sharding(whole, mesh, (0, None))
    view = whole.t()
    xs.annotate_custom_sharding(view, mesh, (0, None))
    assert _sharding_text(view) == _sharding_text(whole) == "{devices=[8,1]0,1,2,3,4,5,6,7}"
    torch.testing.assert_close(view.cpu(), t.t())
    xs.clear_sharding(view)
    assert _sharding_text(whole) == "{devices=[8,1]0,1,2,3,4,5,6,7}"
    with pytest.raises(RuntimeError, match="is a view"):
        xs._mark_manual_sharding((whole * 2).t())


def test_gradients_are_marked():
    mesh = xs.get_1d_mesh("x")
    x = torch.ones(8, device="xla", requires_grad=True)
    y = xs.mark_sharding_with_gradients(x * 2, mesh, ("x",))
    y.retain_grad()
    (y * y).sum().backward()
    assert _sharding_text(y) == _sharding_text(y.grad) == "{devices=[8]0,1,2,3,4,5,6,7}"
    torch.testing.assert_close(x.grad.cpu(), torch.full((8,), 8.0))


def test_manual_regions():
    mesh = xs.Mesh(range(8), (8,))
    x = torch.arange(16.0).reshape(8, 2)
    part = xs.enable_manual_sharding(x.to("xla"), (0, None), mesh=mesh)
    assert part.shape == (1, 2) and part.sharding_spec == "{manual}"
    whole = xs.disable_manual_sharding(part * 10, (0, None), x.shape, mesh=mesh)
    torch.testing.assert_close(whole.cpu().global_tensor, x * 10)


def test_loader():
    mesh, batch = xs.get_1d_mesh("data"), {"x": torch.randn(16, 4), "y": torch.randn(16)}
    specs = {"x": xs.ShardingSpec(mesh, ("data", None)), "y": xs.ShardingSpec(mesh, ("data",), minibatch=True)}
    loader = pl.MpDeviceLoader([batch, batch], torch_xla.device(), input_sharding=specs)
    found = list(loader)
    assert len(found) == len(loader) == 2
    assert _sharding_text(found[0]["y"]) == "{devices=[8]0,1,2,3,4,5,6,7}"
    torch.testing.assert_close(found[1]["x"].cpu(), batch["x"])
    with pytest.raises(RuntimeError, match="divisible by local runtime device count"):
        next(iter(pl.MpDeviceLoader([torch.ones(6)], torch_xla.device(), input_sharding=specs["y"])))


def test_fully_sharded():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
    x = torch.randn(16, 16)
    expected = model(x)
    expected.square().sum().backward()
    sharded = SpmdFullyShardedDataParallel(copy.deepcopy(model), mesh=xs.Mesh(range(8), (8,), ("fsdp",)))
    output = sharded(x.to("xla"))
    output.square().sum().backward()
    assert _sharding_text(output) == "{devices=[8,1]0,1,2,3,4,5,6,7}" == _sharding_text(sharded[0].weight)
    torch.testing.assert_close(output.detach().cpu(), expected.detach())
    torch.testing.assert_close(sharded[0].weight.grad.cpu(), model[0].weight.grad)


def test_missing_names_say_what_to_use():
    with pytest.raises(AttributeError, match=r"xla_model\.all_reduce .*meshard\.manual"):
        xm.all_reduce  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match=r"torch_xla\.stablehlo .*module_text"):
        importlib.import_module("torch_xla.stablehlo")
    assert not hasattr(xs, "nothing")
    with pytest.raises(RuntimeError, match="XLA_HLO_DEBUG=1"):
        torch_xla._XLAC._get_xla_tensors_hlo([torch.ones(2, device="xla")])


def test_classes_may_be_floats():
    scores = torch.randn(4, 3)
    made = torch.nn.functional.cross_entropy(scores.to("xla"), torch.tensor([0.0, 2, 1, 2]).to("xla"))
    torch.testing.assert_close(made.cpu(), torch.nn.functional.cross_entropy(scores, torch.tensor([0, 2, 1, 2])))
