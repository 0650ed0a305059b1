"""jit: signatures, static arguments, donation, keyword arguments, reasons, errors."""

import dataclasses
import gc
import re
import sys
import typing
import weakref

import numpy as np
import pytest

import meshard
from meshard._meshard import ops


def traced(calls):
    """A function to jit, which counts how often its body runs."""

    def f(x, *rest, **named):
        calls.append((rest, named))
        return x * 2

    return f


def test_the_body_runs_once_for_each_signature(floats):
    calls = []
    f = meshard.jit(traced(calls))
    a = floats(3)
    for _ in range(3):
        np.testing.assert_array_equal(f(a).numpy(), a * 2)
    assert len(calls) == 1
    f(floats(4))
    f(np.zeros(3, np.int32))
    assert len(calls) == 3
    assert f.stats.calls == 5 and f.stats.traces == 3


def test_reasons_name_what_changed(floats):
    f = meshard.jit(lambda weights, scale: weights["w"] * scale)
    f({"w": floats(3)}, 1.0)
    f({"w": floats(4)}, 1.0)
    f({"w": floats(4).astype(np.int32)}, 1.0)
    shape, dtype = f.stats.reasons
    assert 'weights["w"]' in shape and "[3]" in shape and "[4]" in shape
    assert 'weights["w"]' in dtype and "i32" in dtype


def errors_in(file):
    """The line of an error in code of this file."""
    code = compile("\n\nmeshard.ones((2, 3)) @ meshard.ones((2, 3))", file, "exec")
    with pytest.raises(meshard.InvalidArgumentError) as caught:
        exec(code, {"meshard": meshard})
    return str(caught.value).split(": ")[0]


def test_cells_of_notebooks_have_numbers(monkeypatch):
    assert errors_in("<ipython-input-3-4af2b1c0>") == "cell 3:3"
    assert errors_in("/home/me/model.py") == "model.py:3"
    assert errors_in("/tmp/ipykernel_123/456.py") == "456.py:3"

    class Shell:
        class compile:
            _filename_map = {"/tmp/ipykernel_123/457.py": 12}

    class IPython:
        get_ipython = staticmethod(Shell)

    monkeypatch.setitem(sys.modules, "IPython", IPython)
    assert errors_in("/tmp/ipykernel_123/457.py") == "cell 12:3"
    assert errors_in("/tmp/ipykernel_123/458.py") == "458.py:3"


def test_reasons_compare_with_the_nearest_signature():
    f = meshard.jit(lambda x, n: x * n)
    f(meshard.ones((3,)), 2)
    f(meshard.ones((4,)), 2)
    f(meshard.ones((3,)), 2.0)
    assert f.stats.reasons == ["x is f32[4], was f32[3]", "n is f32[], was i32[]"]
    g = meshard.jit(lambda x, y: (x, y))
    g(meshard.ones((3,)), meshard.ones((2,)))
    g(meshard.ones((4,)), meshard.ones((5,)))
    assert g.stats.reasons == ["x is f32[4], was f32[3]; y is f32[5], was f32[2]"]


def test_numbers_are_traced_and_not_part_of_the_program():
    calls = []

    @meshard.jit
    def f(x):
        calls.append(x)
        return x + 1

    assert [f(n).item() for n in (1, 2, 3)] == [2, 3, 4]
    assert len(calls) == 1
    assert f(1.5).item() == 2.5 and len(calls) == 2


def test_structures_in_and_out(floats):
    class Point(typing.NamedTuple):
        x: typing.Any
        y: typing.Any

    @dataclasses.dataclass
    class State:
        point: Point
        steps: typing.Any

    a = floats(2)

    @meshard.jit
    def step(state, *, by):
        return {"state": State(Point(state.point.y, state.point.x * by), state.steps + 1), "none": None, "text": "ok"}

    got = step(State(Point(a, 1.0), 3), by=2.0)
    assert isinstance(got["state"].point, Point) and got["none"] is None and got["text"] == "ok"
    np.testing.assert_array_equal(got["state"].point.y.numpy(), a * 2)
    assert got["state"].point.x.item() == 1.0 and got["state"].steps.item() == 4


def test_static_arguments_by_position_and_name():
    calls = []

    def power(x, n, *, negate=False):
        calls.append((n, negate))
        result = x
        for _ in range(n - 1):
            result = result * x
        return -result if negate else result

    f = meshard.jit(power, static_argnums=1, static_argnames="negate")
    assert f(2.0, 3).item() == 8.0
    assert f(3.0, 3).item() == 27.0
    assert f(2.0, 3, negate=True).item() == -8.0
    assert f(2.0, n=4).item() == 16.0
    assert calls == [(3, False), (3, True), (4, False)]
    by_name = meshard.jit(power, static_argnames=("n", "negate"))
    assert by_name(2.0, 5).item() == 32.0 and by_name(2.0, n=5).item() == 32.0


def test_static_values_equal_only_values_of_their_class():
    calls = []
    f = meshard.jit(lambda x, flag: (calls.append(flag), x)[1], static_argnums=1)
    f(1.0, 1)
    f(1.0, True)
    f(1.0, 1.0)
    assert [type(flag) for flag in calls] == [int, bool, float]


def test_unhashable_static_values_are_an_error():
    f = meshard.jit(lambda x, how: x, static_argnums=1)
    with pytest.raises(TypeError, match="hashable"):
        f(1.0, {"a", "b"})


def test_keyword_arguments_are_named_in_reasons():
    f = meshard.jit(lambda x, *, scale: x * scale)
    f(1.0, scale=np.asarray(2, np.float32))
    f(1.0, scale=np.ones(2, np.float32))
    assert "scale" in f.stats.reasons[0]


def test_donated_arguments_cannot_be_used_afterwards(floats):
    f = meshard.jit(lambda state, x: state + x, donate_argnums=0)
    state = meshard.jit(lambda x: x + 0)(floats(8, 8))
    result = f(state, 1.0)
    assert result.shape == (8, 8)
    with pytest.raises(meshard.Error, match="donated"):
        state.numpy()
    with pytest.raises(ValueError, match="no parameter 'other'"):
        meshard.jit(lambda state: state, donate_argnames="other")
    by_name = meshard.jit(lambda x, state: x + state, donate_argnames="state")
    state = meshard.jit(lambda x: x + 0)(floats(8, 8))
    by_name(1.0, state)
    with pytest.raises(meshard.Error, match="donated"):
        state.numpy()


def test_the_line_of_an_error_is_the_users(floats):
    @meshard.jit
    def f(x, y):
        z = x * 2
        return z + y  # the line of the error

    line = f.__wrapped__.__code__.co_firstlineno + 3
    with pytest.raises(meshard.InvalidArgumentError, match=rf"test_jit.py:{line}") as caught:
        f(floats(2, 3), floats(4))
    assert "[2, 3] and [4]" in str(caught.value)
    # The function works for other arguments afterwards.
    np.testing.assert_array_equal(f(np.float32(1), np.float32(2)).numpy(), 4)


def test_exceptions_of_the_function_reach_the_caller(floats):
    class Special(Exception):
        pass

    @meshard.jit
    def f(x):
        raise Special("from inside")

    with pytest.raises(Special, match="from inside"):
        f(floats(2))
    assert f.stats.traces == 0 or f.stats.calls >= 1


def test_traced_values_cannot_be_read():
    @meshard.jit
    def f(x):
        return x if x > 0 else -x

    with pytest.raises(meshard.Error) as caught:
        f(1.0)
    assert re.search(r"test_jit\.py:\d+", str(caught.value))


def test_traced_values_cannot_leave_the_trace():
    kept = []
    meshard.jit(lambda x: (kept.append(x), x)[1])(1.0)
    with pytest.raises(meshard.Error):
        kept[0].numpy()


def test_jit_inside_jit_is_recorded_in_place(floats):
    inner = meshard.jit(lambda x: x * 3)
    a = floats(4)
    outer = meshard.jit(lambda x: inner(x) + inner(x))
    np.testing.assert_allclose(outer(a).numpy(), a * 6, rtol=1e-6)
    assert inner.stats.traces == 0


def test_captured_tensors_are_part_of_the_program(floats):
    a, b = floats(3), floats(3)
    captured = meshard.jit(lambda x: x)(b)
    np.testing.assert_allclose(meshard.jit(lambda x: x + captured)(a).numpy(), a + b, rtol=1e-6)


def test_decorator_forms_keep_name_and_documentation():
    @meshard.jit(static_argnums=(1,), name="named")
    def f(x, n):
        """What f does."""
        return x * n

    assert f.__name__ == "f" and f.__doc__ == "What f does." and f.__wrapped__(2, 3) == 6
    assert f(2.0, 3).item() == 6.0


def test_functions_are_released_with_their_programs():
    def make():
        def f(x):
            return x + 1

        jitted = meshard.jit(f)
        jitted(1.0)
        return jitted, weakref.ref(f)

    jitted, alive = make()
    assert alive() is not None
    del jitted
    for _ in range(3):
        gc.collect()
        meshard.jit(lambda x: x)(1.0)  # what is released without the lock goes at the next call
    assert alive() is None


def test_many_results_and_parameters(floats):
    arrays = [floats(2) for _ in range(200)]
    got = meshard.jit(lambda all_of_them: [x * 0.5 + i for i, x in enumerate(all_of_them)])(arrays)
    assert len(got) == 200
    np.testing.assert_allclose(got[137].numpy(), arrays[137] * 0.5 + 137, rtol=1e-6)


def test_no_results_and_no_parameters():
    assert meshard.jit(lambda: None)() is None
    assert meshard.jit(lambda: {"a": ops.zeros((2,))})()["a"].shape == (2,)
    assert meshard.jit(lambda x: ())(1.0) == ()


def test_results_of_python_numbers_become_tensors():
    got = meshard.jit(lambda x: (x, 2, 3.0))(1.0)
    assert [part.item() for part in got] == [1.0, 2, 3.0]


def test_missing_and_extra_arguments_are_type_errors():
    f = meshard.jit(lambda x, y: x + y)
    with pytest.raises(TypeError, match="y"):
        f(1.0)
    with pytest.raises(TypeError):
        f(1.0, 2.0, 3.0)
    with pytest.raises(TypeError, match="z"):
        f(1.0, y=2.0, z=1.0)


def test_strings_are_part_of_the_program():
    calls = []

    @meshard.jit
    def f(x, mode):
        calls.append(mode)
        return x + 1 if mode == "up" else x - 1

    assert f(1.0, "up").item() == 2.0 and f(1.0, "down").item() == 0.0 and f(2.0, "up").item() == 3.0
    assert calls == ["up", "down"]
