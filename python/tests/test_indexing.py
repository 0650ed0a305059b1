"""x[...] and x[...] = value against NumPy."""

import numpy as np
import pytest

import meshard as ms

A = np.arange(120, dtype=np.int32).reshape(2, 3, 4, 5)
I = np.asarray  # noqa: E741  (short names make the keys readable)

KEYS = [
    0, -1, (1, 2), (slice(None), 1), (Ellipsis, 0), (0, Ellipsis, slice(1, 4, 2)), (slice(None, None, -1),),
    (slice(None), slice(None), slice(None, None, -2)), None, (None, 1, None), (slice(2, 1),),
    (slice(None), slice(None), slice(-10, 10)), (Ellipsis,), (),
    I([1, 0]), I([[0, 1], [1, 1]]), [1, 0, 1], (slice(None), [0, 2]), (slice(None), I([-1, -3])),
    (0, I([0, 2])), (I([0, 1]), I([1, 2])), (I([[0], [1]]), I([0, 2])), (I([0, 1]), slice(None), I([3, 3])),
    (slice(None), I([0, 1]), I([2, 3])), (slice(None), I([0, 1]), 2), (0, slice(None), I([0, 1])),
    (slice(None), 1, I([0, 1]), 2), (Ellipsis, I([0, 4, 4])), (None, I([0, 1]), None), (I([0, 1]), None, I([0, 1])),
    (slice(0, 1), I([0, 1]), slice(None, None, 2), I([0, 1])), (I(1), I([0, 2])), (I(1), I(2)), I(-1),
    (slice(None), I([True, False, True])), (I([True, False]), I([True, False, False])), A > 60, (A[..., 0] > 60),
    (slice(None), A[0, :, :, 0] > 30), True, False, (True, 0), (slice(None), True), (I([], np.int32),),
    (slice(None), I([False, False, False])), (slice(1, None), A[1] % 2 == 0),
]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: str(key).replace("\n", "")[:60])
def test_getitem_as_numpy(key):
    x = ms.asarray(A)
    found, expected = x[key], A[key]
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.numpy(), expected)
    assert found.shape == expected.shape


@pytest.mark.parametrize("key", KEYS, ids=lambda key: str(key).replace("\n", "")[:60])
@pytest.mark.parametrize("kind", ["number", "row", "full"])
def test_setitem_as_numpy(key, kind):
    part = A[key]
    if kind == "number":
        value = -7
    elif kind == "row":
        value = np.full(part.shape[-1:], -3, np.int32)
    else:
        value = np.broadcast_to(-np.arange(1, part.size + 1, dtype=np.int32).reshape(part.shape), part.shape)
        positions = np.arange(A.size).reshape(A.shape)[key]
        if len(np.unique(positions)) != positions.size:
            pytest.skip("NumPy does not define which of several values an element keeps")
    expected = A.copy()
    expected[key] = value
    x = ms.asarray(A)
    kept = x[...]
    x[key] = ms.asarray(value) if isinstance(value, np.ndarray) else value
    np.testing.assert_array_equal(x.numpy(), expected)
    assert x.dtype == ms.int32
    np.testing.assert_array_equal(kept.numpy(), A)


@pytest.mark.parametrize("key, error", [
    (2, IndexError), ((0, 0, 0, 0, 0), (IndexError, ValueError)), ((0, -4), IndexError), (I([0, 2]),
                                                                                          IndexError), (I([-3]),
                                                                                                        IndexError),
    ((slice(None), I([True, False])), IndexError), (I([0.5]), IndexError), ("a", IndexError), (0.5, IndexError),
    ((I([0, 1]), I([0, 1, 2])), IndexError), ((Ellipsis, Ellipsis), (IndexError, ValueError)),
    ((Ellipsis, I([0]), Ellipsis), (IndexError, ValueError))])
def test_invalid_keys(key, error):
    x = ms.asarray(A)
    with pytest.raises(error):
        x[key].numpy()
    with pytest.raises(error):
        x[key] = 0


def test_values_that_do_not_fit():
    x = ms.asarray([1, 2, 3])
    with pytest.raises(ValueError):
        x[:2] = ms.asarray([1, 2, 3])
    with pytest.raises(TypeError):
        x[0] = 1j
    with pytest.raises(TypeError):
        del x[0]
    x[0] = 2.9  # as NumPy: the integer part
    assert x.tolist() == [2, 2, 3]


@pytest.mark.parametrize("key", [1, slice(1, 3), (slice(None), -1), (slice(None, None, 2),), I([2, 0]), (I([0, 1]),
                                                                                                         I([1, 1]))],
                         ids=str)
def test_keys_inside_jit(key):
    array = np.arange(12, dtype=np.float32).reshape(4, 3)

    @ms.jit
    def f(x, value):
        part = x[key]
        x[key] = value
        return part, x

    part, changed = f(ms.asarray(array), ms.asarray(-1.0))
    expected = array.copy()
    expected[key] = -1
    np.testing.assert_array_equal(part.numpy(), array[key])
    np.testing.assert_array_equal(changed.numpy(), expected)


def test_traced_indices_and_masks():
    x = np.arange(12, dtype=np.float32).reshape(4, 3)

    @ms.jit
    def f(x, i, mask):
        y = x[i]
        x[mask] = 0.0
        x[i, 0] = 100.0
        return y, x

    y, changed = f(ms.asarray(x), ms.asarray([-1, 2]), ms.asarray(x > 6))
    np.testing.assert_array_equal(y.numpy(), x[[-1, 2]])
    expected = np.where(x > 6, 0, x)
    expected[[-1, 2], 0] = 100
    np.testing.assert_array_equal(changed.numpy(), expected)


@pytest.mark.parametrize("key", [0, (slice(None), slice(None, None, 2)), I([1, 1, 0]), (I([0, 1]), I([2, 0]))], ids=str)
def test_gradients_of_parts(key):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    gradient = ms.grad(lambda x: ms.sum(x[key] * x[key]))(ms.asarray(array)).numpy()
    expected = np.zeros_like(array)
    np.add.at(expected, key, 2 * array[key])
    np.testing.assert_allclose(gradient, expected)


def test_gradient_of_an_assignment():
    def f(x, value):
        y = x * 2
        y[1] = value
        return ms.sum(y * y)

    dx, dvalue = ms.grad(f, argnums=(0, 1))(ms.asarray([1.0, 2.0, 3.0]), ms.asarray(5.0))
    np.testing.assert_allclose(dx.numpy(), [8, 0, 24])
    assert dvalue.item() == 10


def test_reading_elements_of_computed_values():
    # Elements are taken on the host; chains of parts, reversed and strided ones give the same as NumPy.
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = ms.asarray(array)
    y = x * 2
    y.numpy()
    for tensor, expected in ((x, array), (y, array * 2)):
        assert [float(tensor[i, j,
                             k]) for i in range(2) for j in range(3) for k in range(4)] == expected.ravel().tolist()
        np.testing.assert_array_equal(tensor[1][::-1][:, ::-2].numpy(), expected[1][::-1][:, ::-2])
        np.testing.assert_array_equal(tensor[:, None, 2, 1:3].numpy(), expected[:, None, 2, 1:3])
        assert tensor[1][2][3].item() == expected[1, 2, 3]
        assert tensor[0:0].tolist() == []


def test_parts_of_known_values_need_no_program():
    array = np.arange(90000.0).reshape(300, 300)
    x = ms.asarray(array)
    small = ms.asarray(array[:4, :4]) * 2
    placed = ms.mark_sharding(ms.asarray(array[:8]), ms.Mesh({"x": 8}), ms.P("x"))
    ms.sync(small, placed)
    before = ms.runtime_counters()
    for i in range(3):
        np.testing.assert_array_equal(x[i:i + 64].numpy(), array[i:i + 64])
        np.testing.assert_array_equal(x[::-7, i].numpy(), array[::-7, i])
        assert small[i, 1].item() == 2 * array[i, 1]
    np.testing.assert_array_equal(x[None, 2:, ..., 5].numpy(), array[None, 2:, ..., 5])
    assert (ms.runtime_counters() - before).launches == 0


def test_elements_of_placed_values_need_no_program():
    array = np.arange(16.0).reshape(8, 2)
    x = ms.mark_sharding(ms.asarray(array), ms.Mesh({"x": 8}), ms.P("x"))
    y = x + 1
    y.numpy()
    before = ms.runtime_counters()
    assert [y[i, 1].item() for i in range(8)] == (array[:, 1] + 1).tolist()
    assert y[3][::-1].tolist() == [8, 7]
    assert (ms.runtime_counters() - before).launches == 0


def test_a_part_is_the_value_at_the_time_of_the_index():
    x = ms.asarray([1, 2, 3])
    part = x[1]
    x[1] = 9
    assert (part.item(), x[1].item()) == (2, 9)


def test_take_and_take_along_axis():
    x = ms.asarray(A)
    np.testing.assert_array_equal(ms.take(x, ms.asarray([-1, 0]), axis=2).numpy(), np.take(A, [-1, 0], 2))
    order = np.argsort(-A, axis=1).astype(np.int32)
    along = ms.take_along_axis(x, ms.asarray(order), axis=1)
    np.testing.assert_array_equal(along.numpy(), np.take_along_axis(A, order, 1))
    with pytest.raises(ValueError, match="axis"):
        ms.take(x, ms.asarray([0]))
    with pytest.raises(IndexError):
        ms.take(x, ms.asarray([5]), axis=3)
