"""Marking, manual regions and shards."""

import collections
import dataclasses

import numpy as np
import pytest

import meshard as ms
from meshard import P, _meshard

ops = _meshard.ops
MESH = ms.Mesh({"x": 4, "y": 2})
DATA = np.arange(32, dtype=np.float32).reshape(8, 4)


def tensor(array=DATA):
    return ms.from_dlpack(np.array(array))


# --- mark_sharding -------------------------------------------------------------------------------


@pytest.mark.parametrize("where, spec", [
    ((MESH, P("x", "y")), P("x", "y")),
    ((MESH, P("x")), P("x", None)),
    ((MESH, P(("x", "y"))), P(("x", "y"), None)),
    ((ms.Sharding(MESH, P(None, "y")),), P(None, "y")),
    ((MESH, [ms.Shard(0), ms.Replicate()]), P("x", None)),
    ((MESH, (ms.Replicate(), ms.Shard(0))), P("y", None)),
    ((MESH, ms.Placements([ms.Shard(1), ms.Shard(0)])), P("y", "x")),
])
def test_mark_one_tensor(where, spec):
    x = tensor()
    y = ms.mark_sharding(x, *where)
    assert y.sharding == ms.Sharding(MESH, spec)
    assert x.sharding is None
    np.testing.assert_array_equal(y.numpy(), DATA)
    for shard in y.local_shards():
        np.testing.assert_array_equal(shard.data, DATA[shard.index])


def test_marked_again_is_the_same_value():
    y = ms.mark_sharding(tensor(), MESH, P("x"))
    before = ms.runtime_counters()
    ms.mark_sharding(y, MESH, P("x"))
    done = ms.runtime_counters() - before
    assert done.buffers_sent == 0 and done.launches == 0


@dataclasses.dataclass
class Layer:
    w: object
    b: object
    name: str = dataclasses.field(default="", metadata={"static": True})


Pair = collections.namedtuple("Pair", "left right")


def test_specs_follow_a_structure_from_the_top():
    x = tensor()
    value = {"layers": [Layer(x, x[0], "first"), Layer(x, x[0], "second")], "pair": Pair(x, x), "rest": (x, None)}
    marked = ms.mark_sharding(value, MESH, {
        "layers": [P("x"), Layer(P(None, "y"), P("y"), None)], "pair": Pair(P("y"), None), "rest": P("x", "y")})
    assert marked["layers"][0].w.sharding == ms.Sharding(MESH, P("x", None))
    assert marked["layers"][0].b.sharding == ms.Sharding(MESH, P("x"))
    assert marked["layers"][1].w.sharding == ms.Sharding(MESH, P(None, "y"))
    assert marked["layers"][1].b.sharding == ms.Sharding(MESH, P("y"))
    assert marked["layers"][1].name == "second"
    assert marked["pair"].left.sharding == ms.Sharding(MESH, P("y", None))
    assert marked["pair"].right.sharding is None
    assert marked["rest"][0].sharding == ms.Sharding(MESH, P("x", "y")) and marked["rest"][1] is None


def test_structures_of_shardings_and_placements():
    other = ms.Mesh({"data": 2})
    marked = ms.mark_sharding([tensor(), tensor()], [ms.Sharding(MESH, P("x")), ms.Sharding(other, P("data"))])
    assert [m.sharding.mesh for m in marked] == [MESH, other]
    minibatch = ms.ShardingSpec(other, P("data"), minibatch=True)
    assert ms.mark_sharding((tensor(), tensor()), minibatch)[1].sharding == ms.Sharding(other, P("data", None))
    with pytest.raises(ms.InvalidArgumentError):
        ms.mark_sharding(tensor(DATA[:7]), minibatch)
    placed = ms.mark_sharding({"a": tensor()}, MESH, {"a": [ms.Replicate(), ms.Shard(1)]})
    assert placed["a"].sharding == ms.Sharding(MESH, P(None, "y"))


def test_numpy_arrays_are_marked():
    y = ms.mark_sharding(DATA, MESH, P("x"))
    assert y.sharding == ms.Sharding(MESH, P("x", None))
    np.testing.assert_array_equal(y.numpy(), DATA)


def test_errors_name_the_place():
    with pytest.raises(ms.Error, match='no axis "q"') as raised:
        ms.mark_sharding({"w": [tensor(), tensor()]}, MESH, {"w": [P("x"), P("q")]})
    assert raised.value.__notes__ == ['while marking ["w"][1]']
    with pytest.raises(ms.InvalidArgumentError):
        ms.mark_sharding(tensor(), MESH, P("x", None, "y"))
    with pytest.raises(ValueError, match="keys"):
        ms.mark_sharding({"w": tensor()}, MESH, {"v": P("x")})
    with pytest.raises(ValueError, match="lengths"):
        ms.mark_sharding([tensor()], MESH, [P("x"), P("x")])
    with pytest.raises(TypeError):
        ms.mark_sharding(tensor(), MESH, P("x"), P("y"))


def test_strict_specs():
    x = tensor()
    with ms.StrictSpecs():
        with pytest.raises(ms.InvalidArgumentError):
            ms.mark_sharding(x, MESH, P("x"))
        with ms.StrictSpecs():
            pass
        with pytest.raises(ms.InvalidArgumentError):
            ms.mark_sharding(x, MESH, P("x"))
        ms.mark_sharding(x, MESH, P("x", None))
    ms.mark_sharding(x, MESH, P("x"))


def test_clear_sharding():
    y = ms.mark_sharding(tensor(), MESH, P("x"))
    cleared = ms.clear_sharding({"y": [y, y]})
    assert cleared["y"][1].sharding is None and ms.clear_sharding(y).sharding is None
    np.testing.assert_array_equal(cleared["y"][0].numpy(), DATA)


def test_constraints_are_recorded_only():
    x = tensor()
    before = ms.runtime_counters()
    y = ms.sharding_constraint(x, MESH, P("x"))
    many = ms.sharding_constraint({"a": x, "b": x}, {"a": ms.Sharding(MESH, P("y")), "b": None})
    assert (ms.runtime_counters() - before).buffers_sent == 0
    assert y.sharding == ms.Sharding(MESH, P("x", None))
    assert many["a"].sharding == ms.Sharding(MESH, P("y", None)) and many["b"].sharding is None
    np.testing.assert_array_equal(y.numpy(), DATA)


def test_marks_inside_jit_give_the_results_shardings():
    f = ms.jit(lambda x: ms.mark_sharding(x * 2, MESH, P("y", "x")))
    y = f(ms.mark_sharding(tensor(), MESH, P("x")))
    assert y.sharding == ms.Sharding(MESH, P("y", "x"))
    np.testing.assert_array_equal(y.numpy(), DATA * 2)


# --- manual regions ------------------------------------------------------------------------------


def test_manual_sum():
    total = ms.manual(MESH, P("x", "y"), P(), lambda part: ops.all_reduce(ops.sum(part), ("x", "y")))
    assert total(tensor()).item() == DATA.sum()
    assert ms.jit(total)(tensor()).item() == DATA.sum()


def test_manual_decorator_structures_and_prefixes():
    shapes = []

    @ms.manual(MESH, in_specs=(P("x"), {"bias": P(), "scale": P(None)}), out_specs={"y": P("x"), "sums": (P(), P())})
    def layer(part, weights):
        """Scales."""
        shapes.append(part.shape)
        y = part * weights["scale"] + weights["bias"]
        return {"y": y, "sums": (ops.all_reduce(ops.sum(y), "x"), ops.all_reduce(ops.max(y), "x", kind="max"))}

    assert layer.__name__ == "layer" and layer.__doc__ == "Scales."
    result = layer(tensor(), {"bias": tensor(DATA[0]), "scale": tensor(DATA[1])})
    expected = DATA * DATA[1] + DATA[0]
    assert shapes == [(2, 4)]
    np.testing.assert_array_equal(result["y"].numpy(), expected)
    assert result["sums"][0].item() == expected.sum() and result["sums"][1].item() == expected.max()


def test_manual_over_some_axes_and_nested():
    inner = ms.manual(MESH, P("y"), P(), lambda part: ops.all_reduce(ops.sum(part), ("x", "y")), axes="y")
    outer = ms.manual(MESH, P("x"), P(), inner, axes=["x"])
    assert outer(tensor()).item() == DATA.sum()


def test_manual_uneven_sizes():
    double = ms.manual(MESH, P("x"), P("x"), lambda part: part * 2, axes="x", out_shapes=(6, 4), pad=0)
    np.testing.assert_array_equal(double(tensor(DATA[:6])).numpy(), DATA[:6] * 2)
    both = ms.manual(MESH, P("x"), P("x"), lambda part: [part, part + 1], axes="x", pad=0,
                     out_shapes=[(6, 4), (6, 4)])
    np.testing.assert_array_equal(both(tensor(DATA[:6]))[1].numpy(), DATA[:6] + 1)


@pytest.mark.parametrize("pad, reduce, kind", [
    (0, ops.sum, "sum"), ("sum", ops.sum, "sum"), ("prod", ops.prod, "prod"), (1, ops.prod, "prod"),
    ("max", ops.max, "max"), (-np.inf, ops.max, "max"), ("min", ops.min, "min"), (np.float32(9), ops.min, "min"),
])
def test_manual_pads_uneven_sizes(pad, reduce, kind):
    x = tensor(DATA[:7, 0] / 4 - 8)
    f = ms.manual(MESH, P("x"), P(), lambda part: ops.all_reduce(reduce(part), "x", kind), axes="x", pad=pad)
    assert float(f(x)) == float(reduce(x))


def test_manual_without_padding():
    f = ms.manual(MESH, P("x"), P(), lambda part: ops.all_reduce(ops.sum(part + 1), "x"), axes="x")
    with pytest.raises(ms.InvalidArgumentError, match=r"dimension 0 of f32\[7\].* is 7.*4 devices.*pad"):
        f(tensor(DATA[:7, 0]))
    for pad in ("mean", [0], int):
        with pytest.raises((TypeError, ms.Error)):
            ms.manual(MESH, P("x"), P(), lambda part: ops.all_reduce(ops.sum(part), "x"), axes="x", pad=pad)(tensor())
    with pytest.raises(ms.InvalidArgumentError, match="is 7"):
        ms.enable_manual_sharding(tensor(DATA[:7, 0]), MESH, P("x"))
    assert ms.enable_manual_sharding(tensor(DATA[:7, 0]), MESH, P("x"), pad="max").shape == (2,)


def test_valid_size():
    def mean_of(part):
        return ops.all_reduce(ops.sum(part), "x") / ops.all_reduce(ms.valid_size(part, 0), "x")
    f = ms.manual(MESH, P("x"), P(), mean_of, axes="x", pad=0)
    assert float(f(tensor(DATA[:7, 0]))) == DATA[:7, 0].mean()
    sizes = ms.manual(MESH, P("x"), P("x"), lambda part: ops.reshape(ms.valid_size(part, 0), (1,)), axes="x", pad=0)
    assert sizes(tensor(DATA[:5, 0])).tolist() == [2, 2, 1, 0]


def test_a_collective_in_a_branch_that_varies():
    def local(axis):
        def f(part):
            return ms.cond(ops.axis_index("x") == 0, lambda t: ops.vary(ops.all_reduce(t, axis), axis),
                           lambda t: t * 2, part)
        return ms.manual(MESH, P("x", "y"), P("x", "y"), f)
    with pytest.raises(ms.InvalidArgumentError, match="runs over .*x.* in a branch at .*test_marking.py"):
        local("x")(tensor())
    with pytest.raises(ms.InvalidArgumentError, match="predicate varies over"):
        ms.jit(ms.grad(lambda x: ops.sum(local("x")(x))))(tensor())
    expected = DATA * 2
    expected[:2] = np.tile(DATA[:2, :2] + DATA[:2, 2:], 2)
    np.testing.assert_array_equal(local("y")(tensor()).numpy(), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_a_mark_of_unreduced_axes_keeps_the_value(dtype):
    partial = ms.Sharding(MESH, P("x"), unreduced="y")
    data = DATA.astype(dtype)
    placed = ms.mark_sharding(tensor(data), MESH, P("x"))
    ms.sync(placed)
    np.testing.assert_array_equal(ms.mark_sharding(tensor(data), partial).numpy(), data)
    np.testing.assert_array_equal(ms.mark_sharding(placed, partial).numpy(), data)
    np.testing.assert_array_equal(ms.mark_sharding(tensor(data), MESH, [ms.Shard(0), ms.Partial()]).numpy(), data)
    np.testing.assert_array_equal(ms.transfer(placed, partial).numpy(), data)
    made = ms.jit(lambda x: ms.sharding_constraint(x + 1, partial))(placed)
    assert made.sharding == ms.Sharding(MESH, P("x", None), unreduced="y")
    np.testing.assert_array_equal(made.numpy(), data + 1)
    np.testing.assert_array_equal((made * 2).numpy(), data * 2 + 2)
    rows = ms.from_callback((8, 4), partial, lambda index: data[index], dtype)
    np.testing.assert_array_equal(rows.numpy(), data)


def test_manual_derivative():
    f = ms.manual(MESH, P("x"), P(), lambda part: ops.all_reduce(ops.sum(part * part), "x"), axes="x")
    np.testing.assert_allclose(ms.grad(f)(tensor()).numpy(), 2 * DATA)


def test_manual_errors():
    with pytest.raises(ms.Error, match="varies"):
        ms.manual(MESH, P("x"), P(), lambda part: ops.sum(part), axes="x")(tensor())
    with pytest.raises(ValueError):
        ms.manual(MESH, (P("x"), P()), P(), lambda part: part)(tensor())
    with pytest.raises(ZeroDivisionError):
        ms.manual(MESH, P(), P(), lambda part: 1 / 0)(tensor())
    assert (tensor() + 1).numpy()[0, 1] == 2  # the thread records full values again


def test_manual_sharding_by_hand():
    local = ms.enable_manual_sharding(tensor(), MESH, P("x"))
    assert local.shape == (2, 4)
    np.testing.assert_array_equal(ms.disable_manual_sharding(local * 2, MESH, P("x"), (8, 4)).numpy(), DATA * 2)
    same = ms.mark_manual_sharding(tensor(), MESH)
    assert same.shape == (8, 4)


# --- abstract tensors and shards -----------------------------------------------------------------


def test_abstract_tensors():
    x = ms.abstract_tensor((8, 4), "bfloat16", MESH, P("x"))
    assert ms.is_abstract(x) and not ms.is_abstract(tensor())
    assert x.shape == (8, 4) and x.sharding == ms.Sharding(MESH, P("x", None))
    assert ms.abstract_tensor((3,), np.float64).dtype == np.float64
    assert ms.abstract_tensor((8,), np.int8, ms.Sharding(MESH, P("y"))).sharding == ms.Sharding(MESH, P("y"))
    with pytest.raises(ms.FailedPreconditionError):
        x.numpy()


def test_shards_of_an_uneven_dimension():
    rows = ms.mark_sharding(np.arange(10.0, dtype=np.float32), ms.Mesh({"x": 4}), P("x"))
    indices = [s.index for s in rows.addressable_shards]
    assert indices == [(slice(0, 3),), (slice(3, 6),), (slice(6, 9),), (slice(9, 10),)]
    assert [s.replica_id for s in rows.addressable_shards] == [0] * 4


def test_shards_have_device_index_replica_and_data():
    y = ms.mark_sharding(tensor(), MESH, P(None, "y"))
    shards = y.local_shards()
    assert [s.device_id for s in shards] == list(range(8)) == [s.position for s in shards]
    assert [s.replica_id for s in shards] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert shards[1].index == (slice(0, 8), slice(2, 4))
    np.testing.assert_array_equal(shards[5].data, DATA[:, 2:4])
    assert "device 5" in repr(shards[5])
    uneven = ms.mark_sharding(tensor(DATA[:6]), ms.Mesh({"x": 4}), P("x")).local_shards()
    assert [s.data.shape[0] for s in uneven] == [2, 2, 2, 0]
    assert {s.padded_data.shape for s in uneven} == {(2, 4)}
    assert ms.local_shards(tensor()) == []


def test_from_shards():
    parts = [DATA[2 * i:2 * i + 2] for i in range(4)]
    mesh = ms.Mesh({"x": 4})
    x = ms.from_shards(parts, mesh, P("x"))
    np.testing.assert_array_equal(x.numpy(), DATA)
    assert x.sharding == ms.Sharding(mesh, P("x", None))
    uneven = ms.from_shards([DATA[0:2], DATA[2:4], DATA[4:5], DATA[:0]], mesh, P("x"), (5, 4))
    np.testing.assert_array_equal(uneven.numpy(), DATA[:5])
    with pytest.raises(ms.InvalidArgumentError):
        ms.from_shards(parts[:3], mesh, P("x"))
    np.testing.assert_array_equal(ms.from_shards([[1.5], [2.5], [3.5], [4.5]], mesh, P("x")).numpy(),
                                  [1.5, 2.5, 3.5, 4.5])


def test_from_callback_asks_for_each_part_once():
    asked = []

    def part(index):
        asked.append(index)
        return DATA[index]

    x = ms.from_callback((8, 4), ms.Sharding(MESH, P("x")), part, np.float32)
    np.testing.assert_array_equal(x.numpy(), DATA)
    assert sorted(i[0].start for i in asked) == [0, 2, 4, 6]
    np.testing.assert_array_equal(
        ms.from_callback((4,), ms.Sharding(MESH, P("x")), lambda i: [i[0].start], np.int64).numpy(), [0, 1, 2, 3])
    with pytest.raises(ZeroDivisionError):
        ms.from_callback((8, 4), ms.Sharding(MESH, P("x")), lambda index: 1 / 0, np.float32)
    with pytest.raises(ms.InvalidArgumentError):
        ms.from_callback((8, 4), ms.Sharding(MESH, P("x")), lambda index: DATA, np.float32)


def test_from_local_keeps_tensors_on_their_devices():
    mesh = ms.Mesh({"x": 2})
    first = ms.Mesh({"one": 1})
    parts = [ms.transfer(tensor(DATA[:4]), first, P()), ms.transfer(tensor(DATA[4:]), first, P())]
    ms.sync(parts)
    before = ms.runtime_counters()
    x = ms.from_local(parts, mesh, P("x"))
    np.testing.assert_array_equal([s.data for s in x.local_shards()], [DATA[:4], DATA[4:]])
    assert (ms.runtime_counters() - before).buffers_sent == 0  # device to device
    np.testing.assert_array_equal(ms.from_local([tensor(DATA[:4]), tensor(DATA[4:])], mesh, P("x")).numpy(), DATA)


def test_load_local_shards_keeps_the_old_value():
    x = ms.mark_sharding(tensor(), ms.Mesh({"x": 4}), P("x"))
    y = ms.load_local_shards(x, [s.data + 1 for s in x.local_shards()])
    np.testing.assert_array_equal(y.numpy(), DATA + 1)
    np.testing.assert_array_equal(x.numpy(), DATA)
    with pytest.raises(ms.FailedPreconditionError):
        ms.load_local_shards(ms.mark_sharding(tensor(), ms.Mesh({"x": 4}), P()), [DATA] * 4)


def test_held_parts():
    x = ms.mark_sharding(tensor(), MESH, P(None, "y"))
    assert ms.held_parts(x) == [((slice(0, 8), slice(0, 2)), [0]), ((slice(0, 8), slice(2, 4)), [0])]
