"""Dtypes, signs, NaN and ties as PyTorch has them."""

import pytest

torch = pytest.importorskip("torch")

import meshard.torch as mt  # noqa: E402

NAN, INF = float("nan"), float("inf")


def agree(function, *tensors):
    """Compares a compiled function with PyTorch, including dtypes."""
    torch.testing.assert_close(mt.compile(function)(*tensors), function(*tensors), equal_nan=True)


def test_integer_division_and_remainder():
    a, b = torch.tensor([7, -7, 7, -7, 0, -128, 127]), torch.tensor([3, 3, -3, -3, 5, 7, -7])
    for dtype in (torch.int8, torch.int64):
        agree(lambda a, b: (a // b, a % b, torch.fmod(a, b), torch.div(a, b, rounding_mode="trunc"), a / b, a // -3,
                            a % -3, torch.remainder(-7, b)), a.to(dtype), b.to(dtype))


def test_division_of_infinities_and_zeros():
    a = torch.tensor([7.5, -7.5, 7.5, -7.5, -0.0, INF, -INF, NAN, 1, 5, -1, 0.3])
    b = torch.tensor([3, 3, -3, -3, 5, 2, 2, 2, 0, -INF, INF, 0.1])
    for dtype in (torch.float16, torch.float32):
        agree(lambda a, b: (a // b, a % b, torch.fmod(a, b), torch.div(a, b, rounding_mode="floor")), a.to(dtype),
              b.to(dtype))
    zero = torch.zeros(1)
    assert not mt.compile(lambda x: x % -2.5)(zero).signbit().item()


def test_numbers_beyond_the_range_of_integers_wrap():
    x = torch.tensor([1, 2, 250], dtype=torch.uint8)
    agree(lambda x: (x + -1, x // -2, x % -3, x > -1, x == -6, x < 300), x)
    agree(lambda x: (x.to(torch.uint8), x.to(torch.int8), x.to(torch.bool)), torch.tensor([1.7, -1.7, 300.9, -0.2]))


def test_promotion():
    tensors = [torch.tensor([1, 2, 0]).to(dtype) for dtype in (torch.bool, torch.uint8, torch.int64, torch.float32,
                                                               torch.float64, torch.complex64)]

    def f(*tensors):
        scalars = [x[1] for x in tensors]
        return [x + y for x in tensors for y in (*tensors, *scalars)], [x * 2.5 for x in (*tensors, *scalars)], \
            [x + 1 for x in tensors], [x / 2 for x in tensors[:2]], torch.where(tensors[0], tensors[1], 2.5)

    agree(f, *tensors)


def test_nan_and_ties():
    x = torch.tensor([[1.0, NAN, 3, NAN], [2, 2, 1, 1], [INF, -INF, 0, -0.0], [3, 3, 3, 3]])

    def f(x):
        return (x.max(), x.min(), x.max(1), x.min(0), x.argmax(), x.argmin(1), x.amax((0, 1)),
                x.sort(dim=1, stable=True), x.sort(dim=1, descending=True, stable=True), x.topk(2, 1)[0],
                x.median(), x.nanmedian(), x.median(1)[0], x.mode(1), x.cummax(1), x.cummin(1), x.nansum(0),
                x.logcumsumexp(1), torch.maximum(x, x.flip(1)), torch.fmin(x, x.flip(1)), x.clamp(0, 1), x.sign(),
                x.relu(), x.nan_to_num())

    agree(f, x)


def test_narrow_floats():
    x = torch.tensor([0.0, -0.0, 1.3, -2.7, 447, 449, 1e6, -1e6, 1e-9, 0.001, INF, -INF, NAN])
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz):
        agree(lambda x, dtype=dtype: (x.to(dtype).float(), x.bfloat16().to(dtype).float()), x)


def test_conjugate_arguments():
    x = torch.tensor([1 + 2j, -3j, 4])
    agree(lambda x: (x * 2, x.abs()), x.conj())
    agree(lambda x: x * 2, x.conj().imag)
