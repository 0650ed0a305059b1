"""Objects among the arguments of compiled functions, such as caches: their tensors are inputs, and may change."""

import copy

import pytest

torch = pytest.importorskip("torch")

import meshard.torch as mt  # noqa: E402


def close(got, wanted):
    torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)


class Layer:
    """A part of a cache: tensors that are written in place, replaced, and made by the first call."""

    def __init__(self):
        self.length, self.kept, self.last, self.calls = torch.zeros((), dtype=torch.int64), None, None, 0

    def update(self, x):
        if self.kept is None:
            self.kept = torch.zeros(4, *x.shape)
        self.kept.index_copy_(0, self.length.reshape(1), x.unsqueeze(0))
        self.length.add_(1)
        self.last = x * 2
        self.calls = min(self.calls + 1, 2)
        return self.kept


class Cache:
    """Layers that are made when they are needed, as those of `transformers`."""

    def __init__(self):
        self.layers, self.names = [], {}

    def update(self, x):
        if not self.layers:
            self.layers.append(Layer())
        self.names["last"] = self.layers[0]
        return self.layers[0].update(x)


def with_cache(x, cache):
    return {"sum": cache.update(x).sum(0), "cache": cache}


def test_objects_among_arguments_change():
    own, plain = Cache(), Cache()
    layers, compiled = own.layers, mt.compile(with_cache)
    for i in range(4):
        x = torch.randn(3)
        got, wanted = compiled(x, own), with_cache(x, plain)
        close(got["sum"], wanted["sum"])
        assert got["cache"] is own and own.layers is layers and own.names["last"] is layers[0]
        assert layers[0].calls == min(i + 1, 2)
        for name in ("length", "kept", "last"):
            close(getattr(layers[0], name), getattr(plain.layers[0], name))
    assert len(compiled._programs) == 3  # without a layer, and after one and two calls
    assert isinstance(layers[0].kept, mt.Held)


def test_what_pytorch_writes_to_an_object_is_seen():
    own, compiled = Cache(), mt.compile(with_cache)
    for _ in range(3):
        compiled(torch.ones(3), own)
    own.layers[0].kept.zero_()
    close(compiled(torch.ones(3), own)["sum"], torch.ones(3))


@pytest.mark.parametrize("is_seen", [False, True])
def test_tensors_that_an_object_had_before(is_seen):
    def f(x, cache):
        cache.kept.add_(x)
        return cache.kept * 2

    cache, kept = Layer(), torch.zeros(3)
    cache.kept = kept
    row, compiled = kept[:1] if is_seen else None, mt.compile(f)
    for i in range(1, 3):
        close(compiled(torch.ones(3), cache), torch.full((3,), 2.0 * i))
        assert cache.kept is kept and (not is_seen or row[0] == i)
    assert isinstance(kept, mt.Held) != is_seen  # the elements are in host memory while PyTorch has a view of them


def test_copies_of_objects_are_their_own():
    own, compiled = Cache(), mt.compile(with_cache)
    for _ in range(2):
        compiled(torch.ones(3), own)
    copied = copy.deepcopy(own)
    compiled(torch.ones(3), own)
    close(compiled(torch.ones(3) * 5, copied)["sum"], torch.ones(3) * 7)
    close(own.layers[0].kept.sum(), torch.tensor(9.0))


def test_objects_are_results():
    class Box:
        def __init__(self, x):
            self.x, self.both = x, [x, x + 1]

    compiled = mt.compile(lambda x: (Box(x * 2), Box(x)))
    x, y = torch.ones(3), torch.ones(3)
    (first, second), (third, _) = compiled(x), compiled(y)
    assert first is not third and second.x is x and first.both[0] is first.x
    close(first.both[1], torch.full((3,), 3.0))


def test_gradients_reach_tensors_in_objects():
    def f(x, cache):
        cache.kept = x * 2
        return cache.kept.sum() + cache.weight.square().sum()

    cache, x = Layer(), torch.ones(3, requires_grad=True)
    cache.weight = torch.ones(2, requires_grad=True)
    (mt.compile(f)(x, cache) + cache.kept.sum()).backward()
    close(x.grad, torch.full((3,), 4.0))
    close(cache.weight.grad, torch.full((2,), 2.0))


def test_an_error_changes_no_object():
    def f(x, cache):
        cache.update(x)
        raise RuntimeError("no")

    cache = Cache()
    with pytest.raises(RuntimeError, match="no"):
        mt.compile(f)(torch.ones(3), cache)
    assert cache.layers == [] and cache.names == {}


def test_a_written_tensor_shares_memory_with_another():
    def f(x, y):
        x.add_(1)
        return x + y

    x = torch.ones(4)
    compiled = mt.compile(f)
    close(compiled(x, x), torch.full((4,), 4.0))
    with pytest.raises(ValueError, match=r"writes to args\[0\], which shares memory with args\[1\]"):
        compiled(x, x[:])
    close(compiled(x[:2], x[2:]), torch.full((2,), 5.0))


def test_an_argument_whose_changes_are_not_seen():
    with pytest.raises(TypeError, match=r"args\[0\] is a numpy.ndarray"):
        mt.compile(lambda x: x)(torch.ones(2).numpy())
