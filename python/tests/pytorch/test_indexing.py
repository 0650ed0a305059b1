"""What op_db does not test: ties, NaN, signed zeros, negative indices, strides. PyTorch is the reference."""

import pytest

torch = pytest.importorskip("torch")

import meshard.torch as mt  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

NAN, INF = float("nan"), float("inf")
VECTORS = {
    "zeros and NaN": torch.tensor([0.0, -0.0, NAN, 1, -0.0, -INF, NAN, -NAN, INF]),
    "ties": torch.tensor([3.0, 1, 3, -1, 1, -1, 3, 0]),
    "integers": torch.tensor([3, 1, 3, -1, 1, -1, 3, 0]),
    "booleans": torch.tensor([True, False, True, False]),
    "only NaN": torch.tensor([NAN, NAN]),
}
FUNCTIONS = {
    "extremes": lambda x: (x.max(0), x.min(0), x.argmax(), x.argmin(), x.amax(), x.amin(), x.aminmax()),
    "running extremes": lambda x: (x.cummax(0), x.cummin(0)),
    "medians": lambda x: (x.median(0).values, x.nanmedian(0).values),
    "sorts": lambda x: (x.sort(stable=True), x.sort(stable=True, descending=True), x.argsort(stable=True)),
    "largest": lambda x: x.topk(2).values,
    "smallest": lambda x: (x.topk(2, largest=False).values, x.kthvalue(1).values),
    "truth": lambda x: (x.any(), x.all(), x.count_nonzero()),
}


def check(function, *inputs):
    wanted, made = tree_leaves(function(*inputs)), tree_leaves(mt.compile(function)(*inputs))
    for want, got in zip(wanted, made, strict=True):
        assert want.dtype == got.dtype and want.shape == got.shape
        torch.testing.assert_close(got, want, equal_nan=True)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("vector", VECTORS)
def test_ties_and_nan(function, vector):
    if vector == "booleans" and function in ("extremes", "medians", "largest", "smallest", "running extremes"):
        pytest.skip("PyTorch has no such operation of booleans, or not on CPUs")
    check(FUNCTIONS[function], VECTORS[vector])


def test_indices_count_from_the_end_and_broadcast():
    x = torch.arange(24.0).reshape(2, 3, 4)
    i, j = torch.tensor([[0], [-1]]), torch.tensor([1, -2])
    check(lambda x, i, j: (x[i, j], x[:, i], x[i, :, j], x[..., j], x[None, j], x.take(i - 3)), x, i, j)
    check(lambda x, i, j: x.index_put((i, j), torch.ones(4), accumulate=True), x, i, j)
    check(lambda x, j: torch.ops.aten.index_put(x, [None, None, j], torch.zeros(2, 3, 2)), x, j)


def test_masks_select_where_a_write_goes():
    x = torch.arange(12.0).reshape(3, 4)
    mask = x % 3 == 0
    check(lambda x, m: x.index_put((m,), torch.tensor(9.0)), x, mask)
    check(lambda x, m: x.index_put((m,), torch.arange(4.0)), x, mask)
    check(lambda x, m: x.index_put((m,), torch.arange(4.0), accumulate=True), x, mask[:, 0])
    check(lambda x, m: torch.ops.aten.index_put(x, [None, m], torch.tensor([[5.0]])), x, mask[0])
    check(lambda x, m: x.masked_scatter(m, torch.arange(20.0)), x, mask)


def test_masks_beside_other_indices():
    x, mask = torch.arange(24.0).reshape(3, 4, 2), torch.tensor([True, False, True])

    def written(index, values, accumulate=False):
        def f(x, m, i, values):
            places = tuple(m if each == "m" else i if each == "i" else each for each in index)
            return torch.ops.aten.index_put(x, list(places), values, accumulate)

        check(f, x, mask, torch.tensor(1), values)

    written(["m", "i"], torch.tensor(9.0))
    written(["m", "i"], torch.tensor([[1.0, 2], [3, 4]]))
    written(["m", None, "i"], torch.arange(8.0).reshape(2, 4), accumulate=True)
    with pytest.raises(NotImplementedError, match="several elements"):
        mt.compile(lambda x, m: x.index_put((m, torch.tensor([0, 1])), torch.tensor(1.0)))(x, mask)


def test_places_that_a_tensor_has():
    def f(x, i):
        y = x.clone()
        y[i] = 7
        y[:, i] += 1
        return y, x[i], x[:, i]

    for i in (1, -1):
        check(f, torch.arange(12.0).reshape(3, 4), torch.tensor(i))


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatters_combine_with_what_was_there(reduce, include_self):
    x, source = torch.arange(1.0, 13).reshape(3, 4), torch.arange(1.0, 9).reshape(4, 2) - 3
    index = torch.tensor([[0, 2], [0, 2], [1, 2], [0, 0]])
    f = lambda x, i, s: x.scatter_reduce(0, i, s, reduce, include_self=include_self)
    check(f, x, index, source)
    check(f, x.long(), index, source.long())


def test_strides_of_dense_tensors_in_any_order():
    x = torch.arange(24.0).reshape(4, 6)
    f = lambda x: x.as_strided((3, 4), (2, 3), 1) + 1
    check(f, x)
    check(f, x.t())
    check(lambda x: x.as_strided_scatter(torch.zeros(2, 3), (2, 3), (6, 2), 2), x.t())


def test_strides_that_leave_the_tensor_are_errors():
    base = torch.arange(24.0).reshape(4, 6)
    with pytest.raises(Exception, match="not in the tensor"):
        mt.compile(lambda x: x[2:].as_strided((2,), (1,), 0) + 1)(base)
    with pytest.raises(Exception, match="gaps"):
        mt.compile(lambda x: x.as_strided((2,), (1,), 0) + 1)(base[:, 1:3])


def test_sizes_that_depend_on_elements_are_errors():
    with pytest.raises(Exception, match="nonzero"):
        mt.compile(lambda x: x.nonzero() + 1)(torch.ones(3))


def test_places_in_the_storage_of_an_argument():
    base = torch.arange(12.0)

    def f(x):
        return x.as_strided((2,), (1,), 5) * 2

    compiled = mt.compile(f)
    torch.testing.assert_close(compiled(base[4:8]), f(base[4:8]))
    with pytest.raises(NotImplementedError, match="storage_offset"):
        compiled(base[5:9])
    with pytest.raises(NotImplementedError, match="not in the tensor"):
        mt.compile(f)(base[6:9])

    def g(x):
        return x.as_strided((2,), (1,)) * 2, x[1:]

    compiled = mt.compile(g)
    for part in (base[:4], base[4:8], base[5:9]):
        torch.testing.assert_close(compiled(part), g(part))


def test_gradients_at_a_place_that_a_tensor_has():
    x, y = (torch.arange(12.0).reshape(3, 4).requires_grad_() for _ in range(2))
    f, i = lambda x, i: x[i] * x[:, 0].sum(), torch.tensor(-1)
    f(x, i).sum().backward()
    mt.compile(f)(y, i).sum().backward()
    torch.testing.assert_close(y.grad, x.grad)
    with pytest.raises(NotImplementedError, match="read from a tensor"):
        mt.compile(lambda x, i: x.roll(i.item(), 0))(torch.ones(3), i)


def test_inverse_short_time_fourier_transform_of_a_batch():
    torch.manual_seed(0)
    check(lambda x: torch.istft(x, 8), torch.randn(3, 5, 6, dtype=torch.complex64))


def test_a_tensor_in_place_of_an_argument_is_an_error():
    def assigned(x, y):
        x.data = y
        return x * 1

    with pytest.raises(NotImplementedError, match="copy_"):
        mt.compile(assigned)(torch.zeros(3), torch.ones(3))
    with pytest.raises(NotImplementedError, match="strides of an argument"):
        mt.compile(lambda x: x.t_() * 1)(torch.ones(2, 3))
    x = torch.arange(3.0)
    assert mt.compile(lambda x: x.unsqueeze_(0) * 1)(x).shape == x.shape == (1, 3)
