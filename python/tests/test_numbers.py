"""Numbers: powers of integers, scalars of NumPy, weak types, comparisons, and what narrows."""

import ml_dtypes
import numpy as np
import pytest

import meshard as ms

MESH = ms.Mesh({"x": 8})
SIGNED, UNSIGNED = ["int8", "int16", "int32", "int64"], ["uint8", "uint16", "uint32", "uint64"]


# --- powers of integers --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_powers_of_integers_wrap_as_in_numpy(dtype):
    limits = np.iinfo(dtype)
    base = np.array([0, 1, 2, 3, 7, limits.max, limits.min, limits.max - 1], dtype)
    x = ms.asarray(base)
    placed = ms.mark_sharding(x, MESH, ms.P("x"))
    for n in (0, 1, 2, 5, 63, 64, 65, 100, 127):
        expected = np.power(base, np.array(n, dtype))
        for powers in (x**n, placed**n, ms.jit(lambda x, n=n: x**n)(x), x**ms.full((8,), n, dtype=dtype),
                       ms.jit(lambda x, n: x**n)(placed, ms.asarray(n, dtype=dtype))):
            np.testing.assert_array_equal(powers.numpy(), expected, strict=True)
    exponents = np.array([0, 3, 64, 65, 100, limits.max, 70, limits.max - 1], dtype)
    np.testing.assert_array_equal((x**ms.asarray(exponents)).numpy(), np.power(base, exponents))
    np.testing.assert_array_equal((3**ms.asarray(exponents)).numpy(), np.power(np.array(3, dtype), exponents))


def test_a_power_beyond_the_dtype():
    x = ms.asarray([0, 1, 2, -1, 3])
    assert (x**2**40).tolist() == [0, 1, 0, 1, pow(3, 2**40, 2**32) - (2**32 if pow(3, 2**40, 2**32) >= 2**31 else 0)]
    with pytest.raises(ms.InvalidArgumentError, match="float"):
        x**-1
    negative = x**ms.asarray([-1, -2, -3, -3, -1])
    assert negative.tolist() == [0, 1, 0, -1, 0]


# --- scalars of NumPy ----------------------------------------------------------------------------

SCALARS = [np.float64(0.5), np.float32(0.5), np.float16(0.5), ml_dtypes.bfloat16(0.5), np.int64(2), np.int8(2),
           np.uint64(2), np.bool_(True)]
BINARY = [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a // b,
          lambda a, b: a % b, lambda a, b: a**b, lambda a, b: a < b, lambda a, b: a == b]


@pytest.mark.parametrize("scalar", SCALARS, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_a_scalar_of_numpy_is_typed_as_a_number_of_python(scalar, dtype):
    x = ms.ones((4,), dtype=dtype) + 1
    number = scalar.item()
    for f in BINARY:
        for a, b, c, d in ((x, scalar, x, number), (scalar, x, number, x)):
            try:
                expected = f(c, d)
            except (TypeError, ValueError) as error:
                with pytest.raises(type(error)):
                    f(a, b)
                continue
            result = f(a, b)
            assert isinstance(result, ms.Tensor) and result.dtype == expected.dtype
            np.testing.assert_array_equal(result.numpy(), expected.numpy())
            jitted = ms.jit(f)(a, b)
            assert jitted.dtype == expected.dtype
    same = ms.stack([ms.asarray(scalar), ms.asarray(scalar)])
    assert same.dtype == np.asarray(scalar).dtype


def test_in_place_operators_with_scalars_of_numpy():
    x = ms.ones((2,))
    x /= np.sqrt(4)
    x *= np.int64(3)
    assert x.dtype == ms.float32 and x.tolist() == [1.5, 1.5]


# --- numbers as arguments of jitted functions ----------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "uint32", "int64"])
@pytest.mark.parametrize("number", [0.1, 3, np.float64(0.1), np.int32(3)], ids=repr)
def test_a_number_is_weakly_typed_inside_jit(dtype, number):
    x = ms.asarray(np.arange(1, 5), dtype=dtype)

    def f(x, n):
        return x * n, 1 + 2 * n * x, x - n / 2 * x, ms.where(x > 2, x, n), n + x, ms.maximum(x, n), x // n

    for plain, jitted in zip(f(x, number), ms.jit(f)(x, number)):
        assert plain.dtype == jitted.dtype
        np.testing.assert_allclose(jitted.numpy().astype(np.float64), plain.numpy().astype(np.float64),
                                   rtol=1e-2 if dtype == "bfloat16" else 1e-3 if dtype == "float16" else 1e-6)


def test_a_number_keeps_its_precision_beside_float64():
    f = ms.jit(lambda x, n: (x + n, x * (n * 3), n * 1, x.astype("float32") * n))
    for n in (0.1, 1 / 3, 1e-9):
        exact, product, alone, single = f(ms.zeros((), dtype="float64") + 1, n)
        assert exact.item() == 1 + n and product.item() == n * 3
        assert alone.dtype == single.dtype == ms.float32
    assert f.stats.traces == 1


def test_a_number_that_is_weakly_typed_in_transformations_inside_jit():
    w = ms.ones((4,), dtype="bfloat16")

    @ms.jit
    def step(w, rate):
        g = ms.grad(lambda w: ms.sum(w * w * rate))(w)
        doubled = ms.vmap(lambda x: x * rate)(w)
        return w - rate * g, doubled, ms.fori_loop(0, 3, lambda i, c: c * rate, w)

    for result in step(w, 0.5):
        assert result.dtype == ms.bfloat16


# What JAX does: jax.lax.fori_loop(0, 3, lambda i, c: c + x, 0.0).dtype is that of x.
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_a_number_as_the_carry_of_a_loop_is_weakly_typed(dtype):
    x = ms.asarray(1.5, dtype=dtype)
    added = ms.fori_loop(0, 3, lambda i, c: c + x, 0.0)
    assert added.dtype == x.dtype and added.item() == 4.5
    counted, sums = ms.scan(lambda c, _: ((c[0] + 1, c[1] * x), c[1]), (0, 1), None, length=3)
    assert counted[0].dtype == ms.int32 and counted[0].item() == 3
    assert counted[1].dtype == x.dtype and sums.dtype == x.dtype and sums.tolist() == [1, 1.5, 2.25]
    big = ms.while_loop(lambda c: c["sum"] < 4, lambda c: {"sum": c["sum"] + x, "steps": c["steps"] + 1}, {"sum": 0, "steps": 0})
    assert big["sum"].dtype == x.dtype and big["steps"].dtype == ms.int32 and big["steps"].item() == 3
    loop = ms.jit(lambda x, c: ms.fori_loop(0, 3, lambda i, c: c + x, c))
    assert loop(x, 0.25).dtype == x.dtype and loop(x, 0.25).item() == 4.75
    gradient = ms.grad(lambda x: ms.fori_loop(0, 3, lambda i, c: c + x * x, 0))(x)
    assert gradient.dtype == x.dtype and gradient.item() == 9


def test_the_carry_of_a_loop_is_converted_from_the_number():
    zero = ms.zeros((), dtype="float64")
    assert ms.fori_loop(0, 3, lambda i, c: c + zero, 0.1).item() == 0.1
    with pytest.raises(ValueError, match=r"carry\[1\] enters the body as f32\[\], but the body returns it as i32"):
        ms.fori_loop(0, 3, lambda i, c: c.astype("int32"), 0.5)
    tensor = ms.asarray(0.5)  # not a number
    with pytest.raises(ValueError, match=r"enters the body as f32\[\], but the body returns it as f64"):
        ms.fori_loop(0, 3, lambda i, c: c + zero, tensor)


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_full_of_a_complex_value_needs_a_complex_dtype(dtype):
    value = ms.asarray(1 + 2j)
    for full in (lambda: ms.full((2,), value, dtype=dtype), lambda: ms.full_like(ms.ones(2, dtype=dtype), value),
                 lambda: ms.jit(lambda z: ms.full((2,), z, dtype=dtype))(value)):
        with pytest.raises(ValueError, match="the value is c64.*cannot hold"):
            full()
    assert ms.full((2,), value, dtype="complex128").tolist() == [1 + 2j] * 2


# --- comparisons ---------------------------------------------------------------------------------


def test_comparisons_with_lists_are_by_element():
    x = ms.asarray([1, 2, 3])
    assert (x == [1, 5, 3]).tolist() == [True, False, True]
    assert (x != (1, 5, 3)).tolist() == [False, True, False]
    assert ([1, 5, 3] == x).tolist() == [True, False, True]
    assert (x < [2, 2, 2]).tolist() == [True, False, False]
    with pytest.raises((ValueError, TypeError)):
        x == [1, 2]  # noqa: B015
    with pytest.raises((ValueError, TypeError)):
        x == ["a", "b", "c"]  # noqa: B015


@pytest.mark.parametrize("other", [None, "abc", b"abc", {}, set(), object(), ms], ids=repr)
def test_a_comparison_with_something_else_is_an_error(other):
    x = ms.asarray([1, 2, 3])
    for compare in (lambda: x == other, lambda: x != other, lambda: other == x, lambda: x < other):
        with pytest.raises(TypeError):
            compare()


def test_an_object_that_compares_itself():
    class Anything:
        def __eq__(self, other):
            return True
    assert ms.asarray([1]) == Anything()


# --- indices -------------------------------------------------------------------------------------


def test_known_indices_are_checked_and_others_are_clamped():
    x = ms.asarray([0.0, 1, 2])
    for wrong in (3, -4):
        for read in (lambda: x[wrong], lambda: ms.take(x, ms.asarray([wrong])), lambda: x[ms.asarray([0, wrong])],
                     lambda: ms.take_along_axis(x, ms.asarray([wrong])), lambda: ms.take(x, ms.full((2,), wrong), axis=0)):
            with pytest.raises(IndexError):
                read()
    i = ms.asarray([-1, 5, -9])
    clamped = [2, 2, 0]
    for f in (lambda x, i: x[i], lambda x, i: ms.take(x, i, axis=0), lambda x, i: ms.take_along_axis(x, i)):
        assert ms.jit(f)(x, i).tolist() == clamped
        assert f(x, i + 0).tolist() == clamped
