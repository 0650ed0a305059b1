"""Arrays of other libraries wherever a tensor is expected, and what cannot be a leaf of a structure."""

import array
import collections
import dataclasses
import enum
import fractions
import pathlib
import sys

import ml_dtypes
import numpy as np
import pytest

import meshard as ms
from meshard import P

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import compare_foreign  # noqa: E402
from foreign_arrays import LIBRARIES, OfArray, OfDlpack, OfInterface, made_by  # noqa: E402

DATA = np.array([1.0, 2.0, 3.0], np.float32)


@pytest.fixture(params=sorted(set(LIBRARIES) - {"scalar"}))
def foreign(request):
    """A function that makes an array of a library."""
    return lambda values: made_by(request.param, values)


def test_random_programs_are_the_same_with_arrays_of_any_library():
    assert compare_foreign.compare(30, seed=3) == []


def test_derivatives(foreign):
    f = lambda x: ms.sum(ms.asarray(x) ** 2)  # noqa: E731
    np.testing.assert_array_equal(ms.grad(f)(foreign(DATA)).numpy(), [2, 4, 6])
    assert ms.jvp(f, (foreign(DATA),), (foreign(DATA),))[1].item() == 28
    np.testing.assert_array_equal(ms.hessian(f)(foreign(DATA)).numpy(), 2 * np.eye(3))
    both = ms.grad(lambda p: ms.sum(p["w"] * p["b"] ** 2))({"w": ms.ones((3,)), "b": foreign(DATA)})
    np.testing.assert_array_equal(both["b"].numpy(), [2, 4, 6])


@pytest.mark.parametrize("make", [OfDlpack, OfArray, OfInterface, lambda values: memoryview(values),
                                  lambda values: array.array("f", values.tolist())])
def test_jit_traces_arrays_once_and_reads_them_at_each_call(make):
    g = ms.jit(lambda w, x: w * x)
    for i in range(3):
        np.testing.assert_array_equal(g(ms.ones((3,)), make(DATA + i)).numpy(), DATA + i)
    assert g.stats.traces == 1
    values = DATA.copy()
    seen = OfDlpack(values)
    seen._values = values
    first = g(ms.ones((3,)), seen)
    values[0] = 5
    assert g(ms.ones((3,)), seen).numpy()[0] == 5 and first.numpy()[0] == 1


def test_arrays_cannot_be_static():
    f = ms.jit(lambda x, n: x * ms.asarray(n), static_argnums=1)
    for array_ in (OfArray(DATA), memoryview(DATA), DATA):
        with pytest.raises(TypeError, match="static|unhashable|hashable"):
            f(DATA, array_)


def test_indices_are_arrays_of_any_library(foreign):
    x = np.arange(10, 16)
    for index in (np.array([1]), np.array([2, 0]), np.array([True, False] * 3)):
        np.testing.assert_array_equal(ms.asarray(x)[foreign(index)].numpy(), x[index])
        target, expected = ms.asarray(x), x.copy()
        target[foreign(index)] = 0
        expected[index] = 0
        np.testing.assert_array_equal(target.numpy(), expected)


def test_other_functions_take_arrays(foreign, tmp_path):
    mesh = ms.Mesh({"d": 3})
    ms.io.save_npy(tmp_path / "a.npy", foreign(DATA))
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), DATA)
    np.testing.assert_array_equal(ms.from_local([foreign(DATA)] * 3, mesh, P("d")).numpy(), np.tile(DATA, 3))
    np.testing.assert_array_equal(ms.from_shards([foreign(DATA)] * 3, mesh, P("d")).numpy(), np.tile(DATA, 3))
    made = ms.from_callback((3,), ms.Sharding(mesh, P("d")), lambda index: foreign(DATA[index]), np.float32)
    np.testing.assert_array_equal(made.numpy(), DATA)
    assert ms.result_type(foreign(DATA), 1) == np.float32
    chosen = ms.optim.chosen(np.bool_(True), {"a": foreign(DATA)}, {"a": foreign(DATA * 2)})
    np.testing.assert_array_equal(chosen["a"].numpy(), DATA)
    with pytest.raises(ms.InvalidArgumentError, match=r"missing from the second structure: \[\"a\"\]"):
        ms.optim.chosen(np.bool_(True), {"a": DATA}, {"b": DATA})


def test_jit_in_place_gets_tensors_too():
    inner = ms.jit(lambda x: x.sum())
    got = ms.grad(lambda p: p * inner(OfArray(DATA)))(2.0)
    assert got.item() == 6
    assert ms.jit(lambda p: p * inner({"a": OfDlpack(DATA)}["a"]))(2.0).item() == 12


def test_marking_makes_tensors(foreign):
    mesh = ms.Mesh({"d": 3})
    for marked in (ms.mark_sharding({"w": foreign(DATA)}, mesh, P("d"))["w"], ms.mark_sharding(foreign(DATA), mesh, P("d"))):
        assert isinstance(marked, ms.Tensor) and marked.sharding == ms.Sharding(mesh, P("d"))
    assert len(ms.tree.leaves({"a": foreign(DATA), "b": ms.ones(2)})) == 2


def test_operators_take_arrays(foreign):
    np.testing.assert_array_equal((ms.ones((3,)) * foreign(DATA)).numpy(), DATA)
    np.testing.assert_array_equal(ms.sin(foreign(DATA)).numpy(), ms.sin(ms.asarray(DATA)).numpy())
    np.testing.assert_array_equal(ms.stack([foreign(DATA), DATA]).numpy(), np.stack([DATA, DATA]))


def test_files_hold_arrays_of_any_library(tmp_path, foreign):
    path = tmp_path / "a.safetensors"
    ms.io.save(path, {"w": foreign(DATA), "x": ms.ones((2,))})
    assert sorted(ms.io.load(path)) == ["w", "x"]
    back = ms.io.restore(path, like={"w": foreign(DATA * 0), "x": ms.zeros((2,))})
    np.testing.assert_array_equal(back["w"].numpy(), DATA)


def test_files_refuse_what_they_cannot_hold(tmp_path):
    with pytest.raises(TypeError, match=r"a checkpoint holds tensors and numbers, not \[\"name\"\], which is 'run-7'"):
        ms.io.save(tmp_path / "a.safetensors", {"w": DATA, "name": "run-7"})
    assert not (tmp_path / "a.safetensors").exists()
    ms.io.save(tmp_path / "a.safetensors", {"w": DATA})
    with pytest.raises(TypeError, match="name"):
        ms.io.restore(tmp_path / "a.safetensors", {"w": DATA, "name": "other"})
    with pytest.raises(TypeError, match=r"\[\"w\"\]: a set is neither"):
        ms.io.save(tmp_path / "b.safetensors", {"w": {1.0}})


def test_paths_of_ordered_dicts_are_their_keys(tmp_path):
    state = collections.OrderedDict([("z", DATA), ("a", DATA + 1)])
    ms.io.save(tmp_path / "a.safetensors", state)
    assert sorted(ms.io.load(tmp_path / "a.safetensors")) == ["a", "z"]
    other = collections.OrderedDict([("a", DATA), ("z", DATA)])
    assert ms.io.restore(tmp_path / "a.safetensors", other)["a"].numpy()[0] == 2


class Mode(enum.Enum):
    FAST = 1


class Plain:
    def __init__(self, w):
        self.w = w


class Valued:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Valued) and self.value == other.value

    def __hash__(self):
        return hash(self.value)


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize("leaf", ["text", b"bytes", np.str_("text"), Mode.FAST, len, lambda: 0, np.float32, np.dtype("f4"), P("x"),
                                  Valued(3), frozenset((1, "a")), range(3), pathlib.Path("a"), np.sin, ms.sin, ms.jit(abs)])
def test_constants_belong_to_the_structure(leaf):
    f = ms.jit(lambda x, other: (x * 2, other))
    assert f(DATA, leaf)[1] is leaf and f(DATA, leaf)[1] is leaf
    assert f.stats.traces == 1
    assert ms.grad(lambda p: ms.sum(p["x"]))({"x": DATA, "other": leaf})["other"] is leaf


@pytest.mark.parametrize("leaf, text", [
    ({1.0}, "a set is neither a tensor, a number nor a structure"), (Plain(DATA), "a Plain is neither"),
    (collections.Counter("a"), "a Counter is neither"), (collections.UserDict(), "a UserDict is neither"),
    ((x for x in ()), "a generator is neither"), (object(), "an object is neither"),
    (fractions.Fraction(1, 2), "a Fraction is neither .*convert it with float"),
    (Valued([]), "a Valued is neither"),
    (np.array(["a"]), "no element type for NumPy's <U1"), (np.array([object()]), "no element type for NumPy's object"),
    (np.zeros(2, "f4,i4"), "no element type"), (np.array(["2020-01-01"], "M8[D]"), "no element type"),
    (np.ma.masked_array(DATA, [0, 1, 0]), "elements of this MaskedArray are masked"), (np.ma.masked, "masked"),
    (memoryview(b"ab").cast("c"), "cannot become a tensor|no element type"), (OfArray(np.array(["a"])), "no element type"),
    (OfArray(np.ma.masked_array(DATA, [0, 1, 0])), "masked"), (OfArray([object()]), "dtype object"),
])
def test_anything_else_is_an_error_with_its_path(leaf, text):
    p = {"a": [DATA, leaf]}
    path = r"\[\"a\"\]\[1\]: .*"
    with pytest.raises(TypeError, match=r"^argument \[0\]\[\"a\"\]\[1\]: "):
        ms.vjp(lambda q: q["a"][0], p)
    calls = [lambda: ms.tree.flatten(p), lambda: ms.grad(lambda q: ms.sum(q["a"][0]))(p), lambda: ms.io.save("unused", p),
             lambda: ms.vjp(lambda q: q["a"][0], p), lambda: ms.scan(lambda c, x: (c, x), p, DATA),
             lambda: ms.cond(True, lambda q: q, lambda q: q, p), lambda: ms.optim.Sgd().init(p)]
    for call in calls:
        with pytest.raises(TypeError, match=path + "(" + text + ")"):
            call()
    with pytest.raises(TypeError, match=r"params\[\"a\"\]\[1\]: .*(" + text + ")"):
        ms.jit(lambda params: params["a"][0])(p)
    with pytest.raises(TypeError, match=r"result\[\"a\"\]\[1\]: .*(" + text + ")"):
        ms.jit(lambda x: {"a": [x, leaf]})(DATA)


def test_declared_statics_may_be_anything():
    @dataclasses.dataclass
    class Model:
        w: object
        config: object = dataclasses.field(metadata={"static": True})

    model = Model(DATA, {1, 2})
    assert ms.grad(lambda m: ms.sum(m.w))(model).config == {1, 2}
    plain = Plain(3)
    f = ms.jit(lambda x, other: x * other.w, static_argnums=1)
    assert f(DATA, plain).numpy()[0] == 3


def test_an_unmasked_array_and_other_subclasses():
    np.testing.assert_array_equal(ms.asarray(np.ma.masked_array(DATA)).numpy(), DATA)
    np.testing.assert_array_equal(ms.sin(np.matrix([[1.0]], dtype=np.float32)).shape, (1, 1))

    class Meters(np.ndarray):
        def __array_ufunc__(self, *args, **kwargs):
            raise NotImplementedError

    with pytest.raises(TypeError, match="a Meters says what its elements mean"):
        ms.asarray(DATA.view(Meters))
    with pytest.raises(TypeError, match="masked"):
        ms.ones((3,)) + np.ma.masked_array(DATA, [0, 1, 0])


def test_producers_of_dlpack_that_fail_are_asked_otherwise():
    class Both(OfDlpack):
        def __dlpack__(self, **_):
            raise BufferError("no")

        def __array__(self, dtype=None, copy=None):
            return self._values

    np.testing.assert_array_equal(ms.sin(Both(DATA)).numpy(), ms.sin(DATA).numpy())

    class Elsewhere(OfDlpack):
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, *, stream=None):
            raise AssertionError

    with pytest.raises(TypeError, match="in the memory of a device"):
        ms.tree.flatten(Elsewhere(DATA))


def test_arrays_on_other_devices_are_copied():
    class Cupy(OfDlpack):
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
            assert dl_device == (1, 0)
            return self._values.__dlpack__()

    class Numba:
        __cuda_array_interface__ = {"shape": (3,)}

        def copy_to_host(self):
            return DATA

    for array_ in (Cupy(DATA), Numba()):
        np.testing.assert_array_equal(ms.grad(lambda x: ms.sum(x * x))(array_).numpy(), DATA * 2)


def test_small_floats_of_dlpack_and_arrays():
    for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        got = ms.jit(lambda x: x)(OfArray(DATA.astype(dtype)))
        assert got.dtype == dtype and got.numpy().tobytes() == DATA.astype(dtype).tobytes()


torch = pytest.importorskip("torch", reason="without PyTorch") if "torch" in LIBRARIES else None
needs_torch = pytest.mark.skipif(torch is None, reason="without PyTorch")


@needs_torch
def test_views_of_torch():
    x = torch.arange(6.0).reshape(2, 3)
    c = torch.complex(x, x + 1)
    views = [x.T, x[:, 1:], x.expand(4, 2, 3), x.requires_grad_(), torch.nn.Parameter(torch.ones(2)), c.conj(),
             c.conj().imag, c.mH, torch.ones(3, dtype=torch.bool), torch.ones(2).to(torch.bfloat16),
             torch.ones(0, 3), torch.tensor(2)]
    for view in views:
        expected = view.detach().resolve_conj().resolve_neg()
        expected = expected.float() if expected.dtype == torch.bfloat16 else expected
        got = ms.tree.leaves([view])[0]
        np.testing.assert_array_equal(got.numpy().astype(expected.numpy().dtype), expected.numpy())
    eight = torch.tensor([1.0, -2.0]).to(torch.float8_e4m3fn)
    assert ms.asarray(eight).dtype == ms.asarray(DATA.astype(ml_dtypes.float8_e4m3fn)).dtype


@needs_torch
@pytest.mark.parametrize("make, text", [
    (lambda: torch.eye(2).to_sparse(), "to_dense"), (lambda: torch.ones(2, device="meta"), "device meta"),
    (lambda: torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8), "dequantize"),
    (lambda: torch.ones(2, dtype=torch.complex32), "cannot become")])
def test_tensors_of_torch_without_elements(make, text):
    with pytest.raises(TypeError, match=r"\[\"x\"\]: .*" + text):
        ms.tree.flatten({"x": make()})


def test_arrays_of_jax():
    jax = pytest.importorskip("jax")
    keys = jax.random.key(0)
    with pytest.raises(TypeError, match=r"\[0\]: "):
        ms.tree.flatten([keys])

    def traced(x):
        with pytest.raises(TypeError, match="Tracer"):
            ms.grad(lambda p: ms.sum(p))(x)
        return x

    jax.jit(traced)(jax.numpy.ones(3))
    np.testing.assert_array_equal(ms.grad(lambda x: ms.sum(x * x))(jax.numpy.ones(3)).numpy(), [2, 2, 2])


# --- structures that must match --------------------------------------------------------------------------

def test_optimizers_match_gradients_by_path():
    sgd = ms.optim.Sgd(rate=1.0)
    params = {"a": ms.zeros(()), "b": ms.zeros(())}
    with pytest.raises(ms.InvalidArgumentError, match=r"missing from the gradients: \[\"b\"\] f32\[\]; unexpected in "
                                                      r"the gradients: \[\"0\"\] f32\[\]"):
        sgd.update(params, {"a": 1.0, "0": 100.0}, sgd.init(params))
    with pytest.raises(ms.InvalidArgumentError, match=r"missing from the gradients: \[0\]"):
        sgd.update([ms.zeros(())], {"x": 1.0}, sgd.init([ms.zeros(())]))
    adam = ms.optim.Adam()
    with pytest.raises(ms.InvalidArgumentError, match=r"missing from the means: \[\"b\"\]"):
        adam.update(params, params, adam.init({"a": ms.zeros(()), "c": ms.zeros(())}))
    with pytest.raises(ms.InvalidArgumentError, match=r"parameter \[\"b\"\] is f32\[\], but its gradient is f32\[2\]"):
        sgd.update(params, {"a": 1.0, "b": ms.ones((2,))}, sgd.init(params))


def test_the_order_of_keys_does_not_matter():
    sgd = ms.optim.Sgd(rate=1.0, momentum=0.5)
    ordered = collections.OrderedDict
    params = ordered([("z", ms.zeros(())), ("a", ms.zeros(()))])
    new, state = sgd.update(params, ordered([("a", 1.0), ("z", 2.0)]), sgd.init(params))
    assert (new["a"].item(), new["z"].item()) == (-1, -2) and state.velocity["z"].item() == 2
    mixed = {1: ms.zeros(()), "b": ms.zeros(())}
    new, _ = sgd.update(mixed, {"b": 3.0, 1: 4.0}, sgd.init(mixed))
    assert (new[1].item(), new["b"].item()) == (-4, -3)


def test_registered_classes_with_other_keys_do_not_match():
    class Frozen:
        def __init__(self, **parts):
            self.parts = parts

    ms.tree.register(Frozen, lambda f: (list(f.parts.values()), tuple(f.parts)),
                     lambda keys, parts: Frozen(**dict(zip(keys, parts))))
    sgd, params = ms.optim.Sgd(), Frozen(a=1.0, b=2.0)
    with pytest.raises(ms.InvalidArgumentError, match="missing from the gradients"):
        sgd.update(params, Frozen(a=1.0, c=2.0), sgd.init(params))


def test_cotangents_and_tangents_match_by_path():
    f = lambda p: {"x": p["a"] * 2, "y": p["b"] * 3}  # noqa: E731
    p = {"a": 1.0, "b": 1.0}
    pull = ms.vjp(f, p)[1]
    assert pull({"y": 1.0, "x": 5.0})[0]["a"].item() == 10
    with pytest.raises(ms.InvalidArgumentError, match=r"missing from the cotangent: \[\"y\"\]"):
        pull({"x": 1.0, "z": 1.0})
    with pytest.raises(ms.InvalidArgumentError, match="missing from the tangents"):
        ms.jvp(f, (p,), ({"a": 1.0, "c": 1.0},))

    @ms.custom_vjp
    def own(q):
        return q["a"] * q["b"]

    own.defvjp(lambda q: (q["a"] * q["b"], q), lambda q, g: ({"a": g * q["b"], "c": g * q["a"]},))
    with pytest.raises(ms.InvalidArgumentError, match=r"missing from the cotangents: .*\"b\""):
        ms.grad(own)(p)


def test_carries_match_by_path():
    with pytest.raises(ms.InvalidArgumentError, match=r"missing from the carry that the body returns: .*\[\"b\"\]"):
        ms.while_loop(lambda c: c["a"] < 3, lambda c: {"a": c["a"] + 1, "c": c["b"]}, {"a": 0.0, "b": 1.0})
    with pytest.raises(ms.InvalidArgumentError, match="the initial carry has 1 tensors, but the carry that the body"):
        ms.scan(lambda c, x: ((c, c), x), 0.0, DATA)
    with pytest.raises(ms.InvalidArgumentError, match=r"\[\"mode\"\] is 'on' and 'off'"):
        ms.fori_loop(0, 2, lambda i, c: {"x": c["x"], "mode": "off"}, {"x": 0.0, "mode": "on"})


def test_branches_match_by_path():
    with pytest.raises(ms.InvalidArgumentError, match=r"missing from the result of another function: \[\"b\"\]"):
        ms.cond(True, lambda x: {"a": x}, lambda x: {"b": x}, DATA)
    with pytest.raises(ms.InvalidArgumentError, match=r"\[1\] is 'no' and 'yes'"):
        ms.cond(True, lambda x: (x, "yes"), lambda x: (x, "no"), DATA)
    one = lambda x: collections.OrderedDict([("a", x), ("b", x * 2)])  # noqa: E731
    other = lambda x: collections.OrderedDict([("b", x * 3), ("a", x * 4)])  # noqa: E731
    for on, a, b in ((True, 1, 2), (False, 4, 3)):
        got = ms.cond(on, one, other, 1.0)
        assert (got["a"].item(), got["b"].item()) == (a, b)


def test_prefixes_follow_the_order_of_the_leaves():
    mesh = ms.Mesh({"d": 2})
    data = collections.OrderedDict([("z", np.ones((2, 3), np.float32)), ("a", np.ones((3,), np.float32))])
    marked = ms.mark_sharding(data, mesh, {"a": P(None), "z": P("d")})
    assert marked["z"].sharding.shard_shape((2, 3)) == (1, 3) and marked["a"].sharding.is_fully_replicated
    got = ms.vmap(lambda p: p["z"] * ms.sum(p["a"]), in_axes=({"a": None, "z": 0},))(data)
    assert got.shape == (2, 3)
    mixed = {1: np.ones((2,), np.float32), "b": np.ones((3,), np.float32)}
    assert ms.vmap(lambda p: p[1] * ms.sum(p["b"]), in_axes=({"b": None, 1: 0},))(mixed).shape == (2,)


def test_map_lists_what_differs():
    with pytest.raises(ValueError, match=r"only in the first: \[\"b\"\]; only in the other: \[\"c\"\]"):
        ms.tree.map(lambda a, b: a, {"a": 1, "b": 2}, {"a": 1, "c": 2})
    with pytest.raises(ValueError, match=r"\[\"b\"\] is 'x' and 'y'"):
        ms.tree.map(lambda a, b: a, {"a": 1, "b": "x"}, {"a": 1, "b": "y"})
    with pytest.raises(ValueError, match="same paths"):
        ms.tree.map(lambda a, b: a, [1], (1,))
