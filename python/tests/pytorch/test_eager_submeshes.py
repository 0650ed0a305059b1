"""Eager programs on meshes of some of the devices, and how often elements are sent to devices."""

import pytest

torch = pytest.importorskip("torch")

import meshard as ms  # noqa: E402
import meshard.torch as mt  # noqa: E402
from meshard import P  # noqa: E402

DEVICE = mt.device()
SUBMESHES = ([0, 1], [2, 3], [4, 5, 6, 7], [1, 5], [7, 5, 6, 4])
SPEC = P("x", "y")


def of_host(tensor):
    """A tensor that is sent to the device."""
    return tensor.clone().to(DEVICE)


def on_device(tensor):
    """A tensor that is on the devices before it is marked."""
    made = of_host(tensor).add_(0)
    mt.sync()
    assert made.tolist() == tensor.tolist()
    return made


# Each marks, computes, and reads or syncs; `a` and `b` are tensors of the device, `mark` marks one of them.


def both_marked(a, b, mark):
    mark(a), mark(b)
    return a @ b


def first_marked(a, b, mark):
    mark(a)
    return a @ b


def written_then_both_marked(a, b, mark):
    a += 2
    mark(a), mark(b)
    return a @ b


def written_then_first_marked(a, b, mark):
    a += 2
    mark(a)
    return a @ b


def one_tensor(a, b, mark):
    mark(a)
    return a + 4.2


def three_tensors(a, b, mark):
    c = b.clone()
    mark(a), mark(b), mark(c)
    return (a + b) @ c


def written_after_the_mark(a, b, mark):
    mark(a), mark(b)
    a *= 2
    a += b
    return a


PATTERNS = (both_marked, first_marked, written_then_both_marked, written_then_first_marked, one_tensor, three_tensors,
            written_after_the_mark)


@pytest.mark.parametrize("ids", SUBMESHES, ids=str)
@pytest.mark.parametrize("make", (of_host, on_device), ids=("host", "device"))
def test_patterns(ids, make):
    mesh = ms.Mesh({"x": len(ids) // 2, "y": 2}, ids)
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    for pattern in PATTERNS:
        marked = []
        result = pattern(make(a), make(b), lambda tensor: marked.append(mt.mark_sharding(tensor, mesh, SPEC)))
        if make is on_device:
            mt.sync()
        torch.testing.assert_close(result.cpu(), pattern(a.clone(), b.clone(), lambda tensor: None),
                                   msg=pattern.__name__)
        for each in marked:
            assert {shard.device_id for shard in each.value.addressable_shards} == set(ids)


def test_several_submeshes_in_one_script():
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    results = []
    for ids in SUBMESHES:
        x = mt.mark_sharding(of_host(a), ms.Mesh({"x": len(ids) // 2, "y": 2}, ids), SPEC)
        results.append(x @ of_host(b))
    for each in results:
        torch.testing.assert_close(each.cpu(), a @ b)


def test_tensors_on_different_submeshes_meet():
    """They are computed where the first one is, or it is an error that names both."""
    x, y = (mt.mark_sharding(of_host(torch.ones(4, 4)), ms.Mesh({"x": 1, "y": 2}, ids), SPEC)
            for ids in ([0, 1], [2, 3]))
    try:
        assert (x + y).tolist() == [[2.0] * 4] * 4
    except ms.Error as error:
        assert "0" in str(error) and "2" in str(error)


def counted(function):
    """What the runtime did while a function ran."""
    before = ms.runtime_counters()
    function()
    return ms.runtime_counters() - before


def test_a_host_tensor_waits_for_its_sharding():
    mesh = ms.Mesh({"x": 4, "y": 2})
    x = torch.randn(8, 8).to(DEVICE)
    before = counted(lambda: (mt.sync(), x.cpu(), x.detach(), repr(x)))
    assert before.buffers_sent == before.bytes_sent == 0
    marked = counted(lambda: (mt.mark_sharding(x, mesh, SPEC), mt.sync()))
    assert (marked.buffers_sent, marked.bytes_sent) == (8, 8 * 8 * 4)
    again = counted(lambda: (mt.mark_sharding(x, mesh, SPEC), mt.sync(), x.data, x.sum().item()))
    assert again.buffers_sent == again.buffers_moved == 0
    # A parameter that is made of it, and its gradient, are on the devices already.
    weight = torch.nn.Parameter(x)
    step = counted(lambda: ((weight * 2).sum().backward(), mt.sync(weight.grad)))
    assert step.bytes_sent < 64


def test_a_batch_is_sent_where_it_is_marked():
    mesh = ms.Mesh({"x": 4, "y": 2})
    x = mt.mark_sharding(torch.zeros(8, 8).to(DEVICE), mesh, SPEC)
    mt.sync()
    batch = torch.randn(8, 8)
    copied = counted(lambda: (x.copy_(batch), mt.sync()))
    assert copied.bytes_sent == 8 * 8 * 4
    assert torch.equal(x.cpu(), batch) and x.value.sharding == ms.Sharding(mesh, SPEC, 2)
