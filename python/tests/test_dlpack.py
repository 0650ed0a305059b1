"""DLPack with NumPy, JAX and PyTorch: values, memory that is shared, and how long it lives."""

import gc
import time
import weakref

import ml_dtypes
import numpy as np
import pytest

import meshard as ms
from meshard import P

CPU = (1, 0)


def address(array):
    return array.__array_interface__["data"][0]


def placed(array, spec=P(), **axes):
    return ms.mark_sharding(array, ms.Mesh(axes or {"x": 1}), spec)


# --- NumPy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                                   "float16", "float32", "float64", "complex64", "complex128"])
def test_numpy_both_ways_without_a_copy(dtype):
    array = (np.arange(24).reshape(2, 3, 4) % 3).astype(dtype)
    x = ms.from_dlpack(array)
    assert x.shape == (2, 3, 4) and x.dtype == array.dtype
    back = np.from_dlpack(x)
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype and address(back) == address(array)


def test_what_is_exported_cannot_be_written():
    back = np.from_dlpack(ms.from_dlpack(np.zeros(3)))
    assert not back.flags.writeable
    copy = np.from_dlpack(ms.from_dlpack(np.zeros(3)), copy=True)
    copy[0] = 1
    assert copy.flags.writeable


def test_read_only_arrays_are_imported():
    array = np.arange(4.0)
    array.flags.writeable = False
    x = ms.from_dlpack(array)
    assert address(np.from_dlpack(x)) == address(array)


@pytest.mark.parametrize("view", [lambda a: a.T, lambda a: a[::2], lambda a: a[:, 1:3], lambda a: a[::-1],
                                  lambda a: np.broadcast_to(a[0], (5, 6)), lambda a: a[:, ::-2].T])
def test_strided_arrays_are_copied(view):
    array = view(np.arange(24, dtype=np.int16).reshape(4, 6))
    np.testing.assert_array_equal(ms.from_dlpack(array).numpy(), array)
    with pytest.raises(BufferError, match="strided"):
        ms.from_dlpack(array, copy=False)


def test_dense_views_are_not_copied():
    array = np.arange(24.0).reshape(4, 6)
    rows = array[1:3]
    assert address(np.from_dlpack(ms.from_dlpack(rows, copy=False))) == address(rows)
    one = array[:1, 3:4].T  # strides of dimensions of size 1 do not matter
    assert address(np.from_dlpack(ms.from_dlpack(one, copy=False))) == address(one)


def test_copy_is_a_copy():
    array = np.arange(3.0)
    x = ms.from_dlpack(array, copy=True)
    array[:] = 7
    np.testing.assert_array_equal(x.numpy(), [0, 1, 2])
    exported = np.from_dlpack(x, copy=True)
    assert address(exported) != address(np.from_dlpack(x))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 4), ()])
def test_empty_and_scalar(shape):
    array = np.ones(shape, np.float32)
    x = ms.from_dlpack(array)
    assert x.shape == shape
    back = np.from_dlpack(x)
    assert back.shape == shape and back.dtype == np.float32
    np.testing.assert_array_equal(np.from_dlpack(x + 1), array + 1)


def test_unaligned_arrays_are_copied():
    raw = np.zeros(17, np.uint8)
    array = raw[1:].view(np.float64) if address(raw) % 8 == 0 else raw[:16].view(np.float64)
    array[:] = [1.5, 2.5]
    np.testing.assert_array_equal(ms.from_dlpack(array).numpy(), [1.5, 2.5])
    if address(array) % 8:
        with pytest.raises(BufferError, match="aligned"):
            ms.from_dlpack(array, copy=False)


def test_types_that_do_not_exist():
    with pytest.raises((BufferError, TypeError)):
        ms.from_dlpack(np.array(["text"]))
    with pytest.raises(TypeError):
        ms.from_dlpack(3)
    with pytest.raises(ValueError, match="device"):
        ms.from_dlpack(np.zeros(3), device="gpu")


# --- the protocol --------------------------------------------------------------------------------


def test_capsules_are_used_once():
    x = ms.from_dlpack(np.arange(3.0))
    capsule = x.__dlpack__()
    assert "dltensor" in repr(capsule) and "versioned" not in repr(capsule)
    np.testing.assert_array_equal(ms.from_dlpack(capsule).numpy(), [0, 1, 2])
    with pytest.raises(TypeError, match="used before"):
        ms.from_dlpack(capsule)
    versioned = x.__dlpack__(max_version=(1, 0), dl_device=CPU, copy=None, stream=None)
    assert "dltensor_versioned" in repr(versioned)
    np.testing.assert_array_equal(ms.from_dlpack(versioned).numpy(), [0, 1, 2])
    assert x.__dlpack_device__() == CPU
    with pytest.raises(BufferError):
        x.__dlpack__(stream=1)
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))


def test_capsules_that_nobody_uses_are_freed():
    array = np.arange(1000.0)
    alive = weakref.ref(array)
    x = ms.from_dlpack(array)
    capsules = [x.__dlpack__(), x.__dlpack__(max_version=(1, 1))]
    del x, array
    gc.collect()
    assert alive() is not None
    del capsules
    gc.collect()
    ms.from_dlpack(np.zeros(1))  # releases what other threads have dropped
    assert alive() is None


def test_producers_before_the_versions():
    class Old:
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return CPU

        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

    np.testing.assert_array_equal(ms.from_dlpack(Old(np.arange(3))).numpy(), [0, 1, 2])


def test_arrays_of_other_devices_are_copied_to_the_host():
    class OnDevice:
        def __dlpack_device__(self):
            return (2, 3)

        def __dlpack__(self, *, max_version=None, dl_device=None, copy=None, stream=None):
            assert dl_device == CPU and copy is None
            return np.arange(3.0).__dlpack__(max_version=max_version)

    np.testing.assert_array_equal(ms.from_dlpack(OnDevice()).numpy(), [0, 1, 2])
    with pytest.raises(BufferError):
        ms.from_dlpack(OnDevice(), copy=False)


# --- values on devices ---------------------------------------------------------------------------


def test_values_on_one_device_are_exported_in_place():
    x = placed(np.arange(4096, dtype=np.float32)) * 2
    x.block_until_ready()
    before = ms.runtime_counters()
    first, second = np.from_dlpack(x, copy=False), np.from_dlpack(x)
    assert (ms.runtime_counters() - before).bytes_read == 0
    assert address(first) == address(second)
    np.testing.assert_array_equal(first, np.arange(4096) * 2)


def test_replicated_values_are_exported_in_place_and_sharded_ones_copied():
    data = np.arange(16, dtype=np.float32)
    whole = placed(data, P(), x=4)
    np.testing.assert_array_equal(np.from_dlpack(whole, copy=False), data)
    parts = placed(data, P("x"), x=4)
    np.testing.assert_array_equal(np.from_dlpack(parts), data)
    with pytest.raises(BufferError, match="copy is False"):
        np.from_dlpack(parts, copy=False)


def test_recorded_values_are_computed():
    x = ms.from_dlpack(np.arange(3.0)) * 2 + 1
    np.testing.assert_array_equal(np.from_dlpack(x), [1, 3, 5])


def test_traced_values_cannot_be_exported():
    with pytest.raises(ms.FailedPreconditionError):
        ms.jit(lambda x: (x.__dlpack__(), x)[1])(np.zeros(3, np.float32))
    with pytest.raises(ms.FailedPreconditionError):
        np.from_dlpack(ms.abstract_tensor((3,), np.float32))


def test_imported_memory_is_used_in_place_by_devices():
    raw = np.empty((1 << 20) + 64, np.uint8)
    start = -address(raw) % 64
    array = raw[start:start + (1 << 20)].view(np.float32)
    array[:] = 1
    before = ms.runtime_counters()
    y = placed(ms.from_dlpack(array))
    assert (ms.runtime_counters() - before).bytes_aliased == 1 << 20
    assert (y * 2).numpy().sum() == 2 * (1 << 18)


# --- lifetimes -----------------------------------------------------------------------------------


def test_the_source_lives_as_long_as_the_tensor():
    array = np.arange(50000.0)
    alive = weakref.ref(array)
    x = ms.from_dlpack(array)
    del array
    gc.collect()
    assert alive() is not None
    np.testing.assert_array_equal(x.numpy(), np.arange(50000.0))
    y = x + 10  # recorded: needs the memory
    del x
    gc.collect()
    assert alive() is not None
    assert y.numpy()[0] == 10
    del y
    gc.collect()
    ms.sync()
    # A thread of the plugin drops the argument of a program shortly after its results are there.
    deadline = time.monotonic() + 20
    while alive() is not None and time.monotonic() < deadline:
        time.sleep(0.001)
        ms.from_dlpack(np.zeros(1))
    assert alive() is None


def test_the_value_lives_as_long_as_its_consumer():
    consumers = []
    for i in range(20):
        x = placed(np.full(3000, i, np.float32)) + 1
        consumers.append(np.from_dlpack(x))
        del x
    gc.collect()
    noise = [placed(np.full(3000, -1, np.float32)) + 1 for _ in range(20)]  # would reuse freed memory
    ms.sync(noise)
    for i, consumer in enumerate(consumers):
        np.testing.assert_array_equal(consumer, np.full(3000, i + 1))


def test_donated_values_cannot_be_exported_but_exported_ones_stay():
    x = placed(np.arange(3000, dtype=np.float32))
    view = np.from_dlpack(x)
    double = ms.jit(lambda v: v * 2, donate_argnums=0)
    y = double(x)
    np.testing.assert_array_equal(y.numpy(), np.arange(3000) * 2)
    np.testing.assert_array_equal(view, np.arange(3000))
    with pytest.raises(ms.FailedPreconditionError, match="donated"):
        np.from_dlpack(x)


def test_tensors_are_returned():
    x = placed(np.arange(4, dtype=np.float32), P("x"), x=4)
    assert ms.from_dlpack(x).sharding == x.sharding == ms.from_dlpack(x, copy=True).sharding
    copy = ms.from_dlpack(x, copy=True)
    ms.sync(ms.jit(lambda v: v + 1, donate_argnums=0)(x))
    np.testing.assert_array_equal(copy.numpy(), [0, 1, 2, 3])


def test_asarray_copies_what_others_may_write():
    torch = pytest.importorskip("torch")
    array = torch.zeros(3)
    copied, shared = ms.asarray(array), ms.from_dlpack(array)
    array += 1
    assert copied.numpy().tolist() == [0, 0, 0] and shared.numpy().tolist() == [1, 1, 1]


def test_a_chain_of_owners():
    array = np.arange(3000.0)
    alive = weakref.ref(array)
    last = np.from_dlpack(ms.from_dlpack(np.from_dlpack(ms.from_dlpack(array))))
    assert address(last) == address(array)
    del array
    gc.collect()
    assert last[2999] == 2999 and alive() is not None
    del last
    for _ in range(3):
        gc.collect()
        ms.from_dlpack(np.zeros(1))
    assert alive() is None


# --- JAX and PyTorch -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "bfloat16", "float16", "complex64", "uint8"])
def test_jax_both_ways(dtype):
    jax = pytest.importorskip("jax")
    array = jax.numpy.asarray(np.arange(12).reshape(3, 4) % 2, dtype=dtype)
    x = ms.from_dlpack(array)
    assert x.dtype == array.dtype
    np.testing.assert_array_equal(x.numpy(), np.asarray(array))
    assert address(x.numpy().view(np.uint8)) == array.unsafe_buffer_pointer()
    back = jax.numpy.from_dlpack(x)
    assert back.dtype == array.dtype and bool((back == array).all())
    computed = placed(x, P()) if dtype == "bool" else placed(x, P()) + placed(x, P())
    jax_one = jax.numpy.from_dlpack(computed)
    del computed
    gc.collect()
    expected = np.asarray(array) if dtype == "bool" else np.asarray(array) + np.asarray(array)
    np.testing.assert_array_equal(np.asarray(jax_one), expected)


def test_the_tensor_outlives_the_array_of_jax():
    jax = pytest.importorskip("jax")
    array = jax.numpy.arange(5000.0) * 3
    x = ms.from_dlpack(array)
    del array
    gc.collect()
    np.testing.assert_array_equal((x + 0).numpy(), np.arange(5000, dtype=np.float32) * 3)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16", "float16", "complex64", "uint8",
                                   "float8_e4m3fn", "float8_e5m2"])
def test_pytorch_both_ways_without_a_copy(dtype):
    torch = pytest.importorskip("torch")
    array = (torch.arange(12).reshape(3, 4) % 2).to(getattr(torch, dtype))
    x = ms.from_dlpack(array)
    np.testing.assert_array_equal(x.numpy().astype(np.complex64), array.to(torch.complex64).numpy())
    back = torch.from_dlpack(x)
    assert back.dtype == array.dtype and back.data_ptr() == array.data_ptr()
    del x, array
    gc.collect()
    assert back.to(torch.complex64).sum().item() == 6


def test_pytorch_lifetimes():
    torch = pytest.importorskip("torch")
    x = ms.from_dlpack(torch.arange(5000.0) * 2)
    gc.collect()
    np.testing.assert_array_equal(x.numpy(), np.arange(5000.0) * 2)
    t = torch.from_dlpack(placed(np.arange(5000, dtype=np.float32)) + 1)
    gc.collect()
    assert t.sum().item() == 5000 * 5001 / 2
    np.testing.assert_array_equal(ms.from_dlpack(torch.arange(12.0).reshape(3, 4).T).numpy(),
                                  np.arange(12.0).reshape(3, 4).T)
    assert torch.from_dlpack(ms.from_dlpack(torch.zeros(0, 3))).shape == (0, 3)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu])
def test_small_floats_between_tensors(dtype):
    x = ms.asarray(np.array([1, 2, 4], dtype))
    again = ms.from_dlpack(x.__dlpack__())
    assert again.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(again.numpy(), x.numpy())
    assert address(again.numpy().view(np.uint8)) == address(x.numpy().view(np.uint8))
