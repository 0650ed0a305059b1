"""Python functions that programs call, printing, and reports to handlers."""

import collections
import dataclasses
import threading
import time

import numpy as np
import pytest

import meshard as ms
from meshard import P, _meshard

ops = _meshard.ops
DATA = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)


def tensor(array=DATA):
    return ms.from_dlpack(np.array(array))


@pytest.fixture
def lines():
    """The lines of debug_print(), in the order of their arrival."""
    printed = []
    ms.set_debug_print_handler(printed.append)
    yield printed
    ms.sync()
    ms.set_debug_print_handler(None)


# --- pure_callback -------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [lambda f: f, ms.jit])
def test_values_of_a_callback(transform):
    threads = set()

    def f(a, b):
        threads.add(threading.get_ident())
        assert isinstance(a, np.ndarray) and not a.flags.writeable
        return np.sin(a) + b

    call = transform(lambda x, y: ms.pure_callback(f, ms.abstract_tensor((3, 4), np.float32), x, y) * 2)
    np.testing.assert_allclose(call(tensor(), tensor(DATA[0])).numpy(), 2 * (np.sin(DATA) + DATA[0]), rtol=1e-6)
    assert len(threads) == 1


Pair = collections.namedtuple("Pair", "low high")


@dataclasses.dataclass
class Found:
    values: object
    counts: object


@pytest.mark.parametrize("transform", [lambda f: f, ms.jit])
def test_structures_of_arguments_and_results(transform):
    i32 = np.empty((), np.int32)  # an array stands for its type

    def f(tree, pair):
        assert set(tree) == {"a", "b"} and pair[1].dtype == np.int32
        return {"pair": Pair(tree["a"].min(), tree["a"].max()), "found": Found(tree["b"] * 2, 7), "list": [pair[0]],
                "none": None}

    scalar = ms.abstract_tensor((), np.float32)
    found = Found(ms.abstract_tensor((4,), np.float32), ms.asarray(i32))
    types = {"pair": Pair(scalar, scalar), "found": found, "list": [tensor()], "none": None}
    result = transform(lambda tree, pair: ms.pure_callback(f, types, tree, pair))(
        {"a": tensor(), "b": tensor(DATA[1])}, (tensor(), np.int32(3)))
    assert isinstance(result["pair"], Pair) and isinstance(result["found"], Found)
    assert result["pair"].low.item() == 0 and result["pair"].high.item() == 1
    np.testing.assert_array_equal(result["found"].values.numpy(), DATA[1] * 2)
    assert result["found"].counts.item() == 7 and result["found"].counts.dtype == np.int32
    np.testing.assert_array_equal(result["list"][0].numpy(), DATA)
    assert result["none"] is None


def test_result_types_of_jax():
    jax = pytest.importorskip("jax")
    y = ms.pure_callback(lambda x: x.sum(0), jax.ShapeDtypeStruct((4,), np.float32), tensor())
    np.testing.assert_allclose(y.numpy(), DATA.sum(0), rtol=1e-6)


def test_callbacks_of_sharded_programs_get_the_whole_value():
    mesh = ms.Mesh({"x": 4})
    shapes = []

    def f(x):
        shapes.append(x.shape)
        return x.cumsum(0)

    x = ms.mark_sharding(np.ones((8, 2), np.float32), mesh, P("x"))
    y = ms.jit(lambda x: ms.pure_callback(f, x, x))(x)
    np.testing.assert_array_equal(y.numpy(), np.ones((8, 2)).cumsum(0))
    assert set(shapes) == {(8, 2)}


def test_callbacks_inside_manual_functions_get_local_values():
    mesh = ms.Mesh({"x": 4})
    f = ms.manual(mesh, P("x"), P("x"), lambda part: ms.pure_callback(lambda v: v - v.mean(), part, part))
    data = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(ms.jit(f)(data).numpy(), np.tile([-0.5, 0.5], 4))


def test_callbacks_under_vmap_are_called_for_each_member():
    calls = []

    def f(row):
        calls.append(row.shape)
        return row[::-1].copy()

    y = ms.vmap(lambda row: ms.pure_callback(f, row, row))(tensor())
    np.testing.assert_array_equal(y.numpy(), DATA[:, ::-1])
    assert calls == [(4,)] * 3


def test_a_derivative_of_its_own():
    host_square = ms.custom_vjp(lambda x: ms.pure_callback(np.square, x, x))
    host_square.defvjp(lambda x: (ms.pure_callback(np.square, x, x), x), lambda x, g: (2 * x * g,))
    gradient = ms.grad(lambda x: ops.sum(host_square(x)))(tensor())
    np.testing.assert_allclose(gradient.numpy(), 2 * DATA)


def boom(x):
    raise KeyError("a key that is missing")


def test_exceptions_at_once_are_the_same_exceptions():
    with pytest.raises(KeyError, match="a key that is missing"):
        ms.pure_callback(boom, tensor(), tensor())


@pytest.mark.parametrize("devices", [1, 4])
def test_exceptions_of_programs_are_errors_with_the_text_and_the_line(devices):
    x = ms.mark_sharding(tensor(), ms.Mesh({"x": devices}), P())
    f = ms.jit(lambda x: ms.pure_callback(boom, x, x))
    line = boom.__code__.co_firstlineno + 1
    with pytest.raises(ms.Error, match=rf"KeyError: 'a key that is missing' \(in .*test_callbacks.py:{line}\)"):
        f(x).numpy()
    ms.restart_runtime()
    np.testing.assert_array_equal((tensor() + 1).numpy(), DATA + 1)


@pytest.mark.parametrize("result, message", [
    (lambda x: x[:2], r"f32\[2,4\], not f32\[3,4\]"), (lambda x: x.astype(np.float64), "f64"),
    (lambda x: [x, x], None), (lambda x: None, None)])
def test_wrong_results(result, message):
    with pytest.raises((ms.InvalidArgumentError, ValueError, TypeError), match=message):
        ms.pure_callback(result, tensor(), tensor())
    with pytest.raises(TypeError, match="the keys"):
        ms.pure_callback(result, {"a": tensor()}, tensor())
    with pytest.raises(TypeError, match="a sequence of 3"):
        ms.pure_callback(lambda x: (x, x), [tensor()] * 3, tensor())
    with pytest.raises(TypeError, match="a result type"):
        ms.pure_callback(result, "f32", tensor())


def test_other_threads_run_while_a_callback_does():
    seen = threading.Event()

    def f(x):
        assert seen.wait(20)  # set by the thread that called the program
        return x

    x = ms.mark_sharding(tensor(), ms.Mesh({"x": 2}), P())
    y = ms.jit(lambda x: ms.pure_callback(f, x, x))(x)
    seen.set()
    np.testing.assert_array_equal(y.numpy(), DATA)


# --- debug_print ---------------------------------------------------------------------------------


def test_print_at_once(lines):
    ms.debug_print("x = {}, y = {y}, {{again}} {0} and {}", np.int32(3), 2.5, y=tensor(DATA[0]))
    ms.debug_print("no values")
    ms.debug_print("a {} b", tensor([1.0, 2.0]))
    assert lines[1:] == ["no values", "a [1, 2] b"]
    assert lines[0].startswith("x = 3, y = [0, 0.0909") and lines[0].endswith("], {again} 3 and 2.5")


def test_print_goes_to_sys_stdout(capsys):
    ms.debug_print("hello {}", 3)
    f = ms.jit(lambda x: (ms.debug_print("in the program {}", x), x)[1])
    f(ms.mark_sharding(np.arange(3), ms.Mesh({"x": 2}), P())).block_until_ready()
    assert capsys.readouterr().out == "hello 3\n" "in the program [0, 1, 2]\n"


def test_print_in_programs_each_time_they_run(lines):
    f = ms.jit(lambda x: (ms.debug_print("sum {}", ops.sum(x)), x * 2)[1])
    for i in range(3):
        ms.sync(f(np.full((2,), i, np.float32)))
    assert lines == ["sum 0", "sum 2", "sum 4"]


def test_print_in_loops_and_manual_functions(lines):
    ms.sync(ms.jit(lambda x: ms.scan(lambda c, v: (ms.debug_print("v {}", v), (c + v, None))[1], 0.0, x)[0])(
        np.arange(3, dtype=np.float32)))
    assert sorted(lines) == ["v 0", "v 1", "v 2"]
    lines.clear()
    mesh = ms.Mesh({"x": 2})

    def local(part):
        ms.debug_print("part {}", part)
        return part

    ms.sync(ms.jit(ms.manual(mesh, P("x"), P("x"), local))(np.arange(4, dtype=np.float32)))
    assert sorted(lines) == ["[device 0, x=0] part [0, 1]", "[device 1, x=1] part [2, 3]"]


def test_print_errors():
    for format, values in [("{} {}", (1,)), ("{", ()), ("{x}", ()), ("{:.3f}", (1,)), ("{1}", (1,)), ("}", ())]:
        with pytest.raises((ValueError, ms.InvalidArgumentError)):
            ms.debug_print(format, *values)


def test_errors_of_the_handler():
    def fail(line):
        raise RuntimeError("the handler's text")

    ms.set_debug_print_handler(fail)
    try:
        with pytest.raises(RuntimeError, match="the handler's text"):
            ms.debug_print("x")
    finally:
        ms.set_debug_print_handler(None)


# --- advice and long waits -----------------------------------------------------------------------


def test_advice_reaches_the_handler():
    given = []
    ms.set_advice_handler(given.append)
    try:
        f = ms.jit(lambda x: x + 1)
        for size in range(1, 80):  # a program for each shape
            f(np.zeros(size, np.float32))
    finally:
        ms.set_advice_handler(None)
    assert given and given[0].topic.startswith("jit") and given[0].text in repr(given[0])
    assert given[0].where is None or given[0].where[0].endswith(".py")
    assert repr(given[0]) in [repr(each) for each in ms.all_advice()]


def test_long_waits_are_reported():
    before = ms.stall_seconds()
    reports = []
    ms.set_stall_handler(reports.append)
    ms.set_stall_seconds(0.2)
    try:
        x = ms.mark_sharding(tensor(), ms.Mesh({"x": 2}), P())
        f = ms.jit(lambda x: ms.pure_callback(lambda v: (time.sleep(0.8), v)[1], x, x))
        f(x).block_until_ready()
    finally:
        ms.set_stall_seconds(before)
        ms.set_stall_handler(None)
    assert len(reports) == 1 and "test_callbacks.py" in reports[0]
