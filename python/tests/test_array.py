"""The array API: creation, dtypes, conversions, methods, linear algebra, transforms, and comparisons with NumPy."""

import inspect
import math
import pathlib
import sys

import numpy as np
import pytest

import meshard as ms

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import compare_numpy  # noqa: E402


def same(tensor, expected):
    """Equal shapes, dtypes and elements."""
    expected = np.asarray(expected)
    assert tensor.dtype == expected.dtype
    assert tensor.shape == expected.shape
    np.testing.assert_array_equal(tensor.numpy(), expected)


def test_random_calls_agree_with_numpy():
    assert compare_numpy.compare(500, seed=17) == []


def test_random_calls_agree_with_jax_also_their_gradients_and_batches():
    pytest.importorskip("jax")
    import compare_jax

    assert compare_jax.compare(30, seed=5) == []


# --- creation ------------------------------------------------------------------------------------


@pytest.mark.parametrize("value, dtype", [
    (True, "bool"), (3, "int32"), (2**31 - 1, "int32"), (2**31, "int64"), (-(2**31) - 1, "int64"), (0.5, "float32"),
    (1j, "complex64"), ([1, 2.5], "float32"), ([[1], [2]], "int32"), ([True, 2], "int32"), ([], "float32"),
    (range(3), "int32"), (np.float64(1), "float64"), (np.arange(3), "int64")])
def test_asarray_of_numbers_has_the_default_dtype_of_their_kind(value, dtype):
    same(ms.asarray(value), np.asarray(value).astype(dtype))


def test_asarray_of_nested_tensors_stacks_them():
    x = ms.asarray([1.0, 2.0])
    same(ms.asarray([x, [3.0, x[0]]]), np.asarray([[1, 2], [3, 1]], np.float32))
    same(ms.asarray([x, x], dtype=ms.int64), np.asarray([[1, 2], [1, 2]], np.int64))


def test_asarray_with_copy():
    x = ms.asarray([1, 2])
    assert ms.asarray(x) is x
    y = ms.asarray(x, copy=True)
    y[0] = 5
    same(x, np.asarray([1, 2], np.int32))
    with pytest.raises(ValueError, match="copy=False"):
        ms.asarray([1, 2], copy=False)
    with pytest.raises(ValueError, match="copy=False"):
        ms.asarray(x, dtype=ms.float32, copy=False)


def test_asarray_copies_an_array_that_may_be_written():
    array = np.zeros(3, np.float32)
    x = ms.asarray(array)
    array[0] = 1
    same(x, np.zeros(3, np.float32))


def test_asarray_of_objects_with_an_array_or_a_buffer():
    class Sized:
        def __array__(self, dtype=None, copy=None):
            return np.ones((2, 2), np.int16)

    same(ms.asarray(Sized()), np.ones((2, 2), np.int16))
    same(ms.asarray(memoryview(b"ab")), np.asarray([97, 98], np.uint8))


def test_an_integer_that_does_not_fit_the_dtype_is_an_error():
    with pytest.raises(OverflowError):
        ms.asarray(300, dtype=ms.uint8)


def test_dlpack_goes_both_ways():
    x = ms.asarray([[1, 2], [3, 4]], dtype=ms.int16)
    np.testing.assert_array_equal(np.from_dlpack(x), x.numpy())
    same(ms.from_dlpack(np.asarray([1.5, 2.5])), np.asarray([1.5, 2.5]))
    assert x.__dlpack_device__() == (1, 0)


def test_arange_does_not_round_its_bounds():
    same(ms.arange(2**31, 2**31 + 3), np.arange(2**31, 2**31 + 3))
    same(ms.arange(10, 0, -3, dtype=ms.uint8), np.arange(10, 0, -3).astype(np.uint8))
    same(ms.arange(2**63, 2**63 + 2, dtype=ms.uint64), np.asarray([2**63, 2**63 + 1], np.uint64))
    same(ms.arange(5, 1), np.zeros(0, np.int32))
    for start, step, dtype in ((3, 7, np.int64), (2**40, -3, np.int64), (2**63, 5, np.uint64), (5, 1, np.float64),
                               (-2**62, 2**40, np.int64)):
        stop = start + 70000 * step
        same(ms.arange(start, stop, step, dtype=dtype), np.array(range(start, stop, step), dtype=dtype))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_arange_rounds_whole_numbers_once(dtype):
    for bounds in ((0, 3000, 3), (5, -2000, -7), (2.0, 900.5, 1), (-4.0, 7), (3.0,)):
        made = ms.arange(*bounds, dtype=dtype)
        same(made, np.arange(*bounds, dtype=np.float64).astype(made.dtype))


def test_arange_in_a_manual_function():
    x = np.arange(8, dtype=np.float32)
    f = ms.manual(ms.Mesh({"x": 4}), ms.P("x"), ms.P("x"))(lambda part: part + ms.arange(2.0) + ms.arange(3, 1, -1))
    same(f(x), x + np.tile([3, 3], 4).astype(np.float32))


def test_arange_of_more_elements_than_the_host_has_memory_for():
    f = ms.jit(lambda k: ms.arange(2**33)[::2**27] + k)
    np.testing.assert_array_equal(f(np.int64(0)).numpy(), np.arange(0, 2**33, 2**27))
    sharding = ms.Sharding(ms.Mesh({"x": 8}), ms.P("x"))
    f = ms.jit(lambda k: ms.mark_sharding(ms.arange(5, 2**33 + 5), sharding)[::2**27] + k)
    np.testing.assert_array_equal(f(np.int64(0)).numpy(), np.arange(5, 2**33 + 5, 2**27))
    f = ms.jit(lambda k: ms.arange(0.5, 2.0**32, dtype=np.float64)[::2**27] + k)
    np.testing.assert_array_equal(f(np.float64(0)).numpy(), np.arange(0.5, 2.0**32, 2**27))


def test_clip_shows_the_signature_of_the_standard():
    assert str(inspect.signature(ms.clip)) == "(x, /, min=None, max=None)"


def test_one_device():
    device = ms.__array_namespace_info__().default_device()
    x = ms.zeros(3, device=device)
    assert x.device is device
    assert x.to_device(device) is x
    with pytest.raises(ValueError, match="unsupported device"):
        ms.zeros(3, device="cpu")


# --- dtypes --------------------------------------------------------------------------------------


def test_result_type_counts_numbers_by_kind():
    assert ms.result_type(ms.int8, 3) == ms.int8
    assert ms.result_type(ms.float64, 1) == ms.float64
    assert ms.result_type(ms.int64, 1.5) == ms.float32
    assert ms.result_type(ms.float64, 1j) == ms.complex128
    assert ms.result_type(ms.bool, 1) == ms.int32
    assert ms.result_type(ms.ones(2, dtype=ms.int8), ms.uint8) == ms.int16
    with pytest.raises(ValueError):
        ms.result_type()


@pytest.mark.parametrize("a", ["int8", "uint8", "int64", "float32", "bfloat16", "complex64", "bool"])
@pytest.mark.parametrize("b", ["uint16", "int32", "float16", "float64", "bool"])
def test_operators_promote_as_result_type_does(a, b):
    x, y = (ms.ones(2, dtype=getattr(ms, name)) for name in (a, b))
    assert ms.where(True, x, y).dtype == ms.result_type(x, y)
    if a != "bool" or b != "bool":
        assert (x * y).dtype == ms.result_type(x, y)


def test_can_cast_follows_promotion():
    assert ms.can_cast(ms.int8, ms.int16)
    assert not ms.can_cast(ms.int16, ms.int8)
    assert ms.can_cast(ms.ones(1), ms.float64)


def test_isdtype():
    assert ms.isdtype(ms.int8, "signed integer")
    assert ms.isdtype(ms.int8, ("bool", "integral"))
    assert ms.isdtype(ms.bfloat16, "real floating")
    assert not ms.isdtype(ms.bool, "numeric")
    with pytest.raises(ValueError, match="unknown kind"):
        ms.isdtype(ms.int8, "float")


def test_limits_are_python_numbers():
    info = ms.finfo(ms.complex128)
    assert info.dtype == ms.float64 and info.eps == np.finfo(np.float64).eps and type(info.max) is float
    assert ms.finfo(ms.bfloat16).bits == 16
    assert ms.iinfo(ms.ones(1, dtype=ms.uint8)).max == 255


def test_namespace_of_a_tensor():
    x = ms.ones(1)
    assert x.__array_namespace__() is ms
    assert x.__array_namespace__(api_version="2024.12") is ms
    with pytest.raises(ValueError, match="unsupported version"):
        x.__array_namespace__(api_version="1999.12")


# --- operators and methods -----------------------------------------------------------------------


def test_in_place_operators_keep_the_dtype_and_rebind_one_handle():
    x = ms.asarray([1, 2, 3])
    kept = x[...]
    alias = x
    x += 1
    x *= ms.asarray(2, dtype=ms.int8)
    x **= 2
    same(x, np.asarray([16, 36, 64], np.int32))
    assert alias is x
    same(kept, np.asarray([1, 2, 3], np.int32))
    with pytest.raises(TypeError, match="in-place"):
        x += 0.5
    with pytest.raises(TypeError, match="in-place"):
        x += ms.ones((2, 3), dtype=ms.int32)


def test_in_place_operators_of_a_traced_value():
    @ms.jit
    def f(x):
        y = x[...]
        y -= 1
        y[0] = 7
        return x, y

    x, y = f(ms.asarray([1.0, 2.0]))
    same(x, np.asarray([1, 2], np.float32))
    same(y, np.asarray([7, 1], np.float32))


def test_operators_with_numpy_arrays_give_tensors():
    x = ms.asarray([1.0, 2.0])
    for result in (np.ones(2, np.float32) + x, x + np.ones(2, np.float32), np.float32(1) + x):
        assert isinstance(result, ms.Tensor)
        same(result, np.asarray([2, 3], np.float32))


def test_methods_agree_with_numpy():
    array = np.asarray([[3, 1, 2], [6, 5, 4]], np.float32)
    x = ms.asarray(array)
    same(x.sum(axis=0), array.sum(axis=0))
    same(x.max(1, keepdims=True), array.max(1, keepdims=True))
    same(x.mean(), array.mean())
    same(x.std(axis=1, correction=1), array.std(axis=1, ddof=1))
    same(x.reshape(3, -1), array.reshape(3, -1))
    same(x.reshape((6,)), array.reshape(6))
    same(x.transpose(), array.T)
    same(x.transpose(1, 0), array.T)
    same(x.T, array.T)
    same(x.argsort(axis=0), array.argsort(axis=0).astype(np.int32))
    same(x.cumsum(), array.cumsum())
    same(x.astype(ms.int8), array.astype(np.int8))
    same(x.clip(2, 4), array.clip(2, 4))
    same(x[None].squeeze(), array)
    assert x.tolist() == array.tolist()
    assert x.argmax().item() == 3 and 5 in x and 9 not in x
    assert len(x) == 2 and [row.shape for row in x] == [(3,), (3,)]


def test_conversions_to_python_numbers():
    assert int(ms.asarray(3.7)) == 3 and float(ms.asarray(3)) == 3.0 and complex(ms.asarray(2)) == 2 + 0j
    assert bool(ms.asarray([[0.0]])) is False and [10, 20][ms.asarray(1)] == 20
    assert f"{ms.asarray(0.25):.3f}" == "0.250"
    with pytest.raises(TypeError):
        float(ms.ones(2))
    with pytest.raises(TypeError):
        [1][ms.asarray(0.0)]
    with pytest.raises(TypeError):
        iter(ms.asarray(1))


def test_printing():
    assert repr(ms.asarray([1, 2])) == "Tensor([1, 2], dtype=int32)"
    assert repr(ms.zeros((0, 3))) == "Tensor([], shape=(0, 3), dtype=float32)"
    assert repr(ms.asarray([0.5], dtype=ms.bfloat16)) == "Tensor([0.5], dtype=bfloat16)"
    assert str(ms.asarray([1.5, 2])) == "[1.5 2. ]"
    seen = []
    ms.jit(lambda x: (seen.append(repr(x)), x)[1])(ms.ones((2, 3)))
    assert seen == ["Tensor(f32[2,3] (traced))"]


def test_array_protocol():
    x = ms.asarray([1, 2])
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    copied = np.array(x, copy=True)
    copied[0] = 9
    assert x.tolist() == [1, 2]
    np.testing.assert_array_equal(np.concatenate([x, x]), [1, 2, 1, 2])


# --- special values ------------------------------------------------------------------------------


def test_floor_division_and_remainder_of_special_values():
    x = ms.asarray([math.inf, -0.0, 1.0, 7.0])
    y = ms.asarray([2.0, 2.0, -math.inf, 2.0])
    quotient = (x // y).numpy()
    np.testing.assert_array_equal(quotient, [math.inf, -0.0, -0.0, 3])
    assert np.signbit(quotient).tolist() == [False, True, True, False]
    rest = (ms.asarray([-0.0, 0.0, -4.0]) % ms.asarray([3.0, -3.0, 3.0])).numpy()
    np.testing.assert_array_equal(rest, [0, 0, 2])
    assert np.signbit(rest).tolist() == [False, True, False]


@pytest.mark.parametrize("name, theirs", [
    ("acos", np.arccos), ("acosh", np.arccosh), ("asin", np.arcsin), ("asinh", np.arcsinh), ("atan", np.arctan),
    ("atanh", np.arctanh), ("exp", np.exp), ("sqrt", np.sqrt), ("tanh", np.tanh), ("cosh", np.cosh), ("sinh", np.sinh)])
def test_complex_functions_far_from_and_near_to_zero(name, theirs):
    parts = np.asarray([1e-12, 1e-3, 0.5, 2.0, 30.0, 1e3])
    parts = np.concatenate([-parts, parts])
    x = (parts[:, None] + 1j * parts).ravel()
    found = getattr(ms, name)(ms.asarray(x)).numpy()
    with np.errstate(all="ignore"):
        expected = theirs(x)
    finite = np.isfinite(expected)
    np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-9)


def test_complex_functions_have_derivatives():
    def length(x):
        return ms.sum(ms.real(ms.asinh(x)) + ms.imag(ms.acos(x)))

    gradient = ms.grad(length)(ms.asarray([0.3 + 0.4j], dtype=ms.complex128)).item()
    # The conjugate derivatives of f(z): d asinh = 1 / sqrt(1 + z^2), d acos = -1 / sqrt(1 - z^2).
    z = 0.3 + 0.4j
    step = 1e-6
    numeric = [(length(ms.asarray([z + h], dtype=ms.complex128)) - length(ms.asarray([z - h],
                                                                                     dtype=ms.complex128))).item()
               / (2 * step) for h in (step, 1j * step)]
    assert abs(gradient.real - numeric[0]) < 1e-7
    assert abs(abs(gradient.imag) - abs(numeric[1])) < 1e-7


# --- results that depend on elements, and functions on the host ----------------------------------


@pytest.mark.parametrize("function, hint", [
    (ms.nonzero, "where"), (ms.unique_values, "size="), (ms.unique_all, "size="), (lambda x: x[x > 0], "where"),
    (lambda x: ms.repeat(x, ms.astype(x, ms.int32)), "integer")])
def test_functions_of_elements_cannot_be_traced(function, hint):
    with pytest.raises(ms.UnimplementedError, match=hint):
        ms.jit(function)(ms.asarray([1.0, 2.0, 3.0, 4.0]))


def test_unique_with_a_size_can_be_traced():
    values, counts = ms.jit(lambda x: tuple(ms.unique_counts(x, size=3)))(ms.asarray([2, 1, 2, 1, 1]))
    same(values, np.asarray([1, 2, 2], np.int32))
    same(counts, np.asarray([3, 2, 0], np.int32))


def test_unique_counts_each_nan():
    values = ms.unique_values(ms.asarray([math.nan, 1.0, math.nan]))
    assert values.shape == (3,)


def test_unique_values_have_a_derivative():
    gradient = ms.grad(lambda x: ms.sum(ms.unique_values(x) ** 2))(ms.asarray([3.0, 1.0, 3.0]))
    same(gradient, np.asarray([6, 2, 0], np.float32))


def test_functions_on_the_host_run_in_jit():
    x = np.random.default_rng(0).normal(size=(2, 3, 2)).astype(np.float32)
    u, s, vh = ms.jit(lambda a: tuple(ms.linalg.svd(a, full_matrices=False)))(ms.asarray(x))
    np.testing.assert_allclose((u * s[:, None] @ vh).numpy(), x, atol=1e-5)
    assert ms.jit(ms.linalg.matrix_rank)(ms.asarray(x)).tolist() == [2, 2]
    square = x[:, :2]
    values = ms.jit(ms.linalg.eigvals)(ms.asarray(square)).numpy()
    np.testing.assert_allclose(np.sort(values), np.sort(np.linalg.eigvals(square).astype(np.complex64)), rtol=1e-5)


def test_a_decomposition_without_a_derivative_is_an_error():
    with pytest.raises(ms.Error, match="derivative|differentia"):
        ms.grad(lambda x: ms.sum(ms.linalg.schur(x)[0]))(ms.ones((2, 2)))


def test_decompositions_of_empty_matrices():
    empty = ms.zeros((2, 0, 0))
    same(ms.linalg.det(empty), np.ones(2, np.float32))
    assert ms.linalg.inv(empty).shape == (2, 0, 0)
    assert ms.linalg.matrix_power(empty, -1).shape == (2, 0, 0)
    assert ms.linalg.solve(empty, ms.zeros((2, 0, 3))).shape == (2, 0, 3)
    q, r = ms.linalg.qr(ms.zeros((3, 0)), mode="complete")
    assert q.shape == (3, 3) and r.shape == (3, 0)


def test_complete_qr_and_named_results():
    x = ms.asarray(np.random.default_rng(0).normal(size=(4, 2)))
    q, r = ms.linalg.qr(x, mode="complete")
    assert q.shape == (4, 4) and r.shape == (4, 2)
    np.testing.assert_allclose((q @ r).numpy(), x.numpy(), atol=1e-12)
    result = ms.linalg.svd(x, full_matrices=False)
    np.testing.assert_allclose((result.U * result.S @ result.Vh).numpy(), x.numpy(), atol=1e-12)
    assert ms.linalg.eigh(x.mT @ x).eigenvalues.shape == (2,)


def test_pseudo_inverse_and_rank_with_a_tolerance():
    x = ms.asarray(np.diag([1.0, 1e-3, 0.0]))
    assert ms.linalg.matrix_rank(x).item() == 2
    assert ms.linalg.matrix_rank(x, rtol=0.01).item() == 1
    assert ms.linalg.matrix_rank(x, rtol=ms.asarray(0.01)).item() == 1
    np.testing.assert_allclose(ms.linalg.pinv(x, rtol=0.01).numpy(), np.diag([1.0, 0, 0]), atol=1e-12)


def test_norms_of_orders_that_the_dtype_cannot_hold():
    x = ms.asarray([1.0, 2.0])
    assert ms.linalg.vector_norm(x, ord=1e-45).item() == math.inf  # the number of elements to a power of infinity
    assert ms.linalg.vector_norm(x[:1], ord=1e-45).item() == 1
    assert ms.linalg.vector_norm(x, ord=1e300).item() == 2
    assert ms.linalg.vector_norm(x, ord=-1e300).item() == 1


def test_transform_norms():
    x = ms.asarray(np.random.default_rng(0).normal(size=8))
    for norm in ("backward", "ortho", "forward"):
        np.testing.assert_allclose(ms.fft.irfft(ms.fft.rfft(x, norm=norm), norm=norm).numpy(), x.numpy(), atol=1e-12)
    with pytest.raises(ValueError, match="unknown norm"):
        ms.fft.fft(x, norm="unitary")


def test_general_ops():
    x = ms.asarray([[1.0, 2.0], [3.0, 4.0]])
    same(ms.einsum("ij,kj->ik", x, x), np.asarray([[5, 11], [11, 25]], np.float32))
    np.testing.assert_allclose(ms.softmax(x, axis=0).sum(axis=0).numpy(), [1, 1], rtol=1e-6)
    same(ms.one_hot(ms.asarray([1, 0]), 3), np.asarray([[0, 1, 0], [1, 0, 0]], np.float32))
    values, indices = ms.top_k(ms.asarray([1, 5, 3]), 2)
    assert values.tolist() == [5, 3] and indices.tolist() == [1, 2]
