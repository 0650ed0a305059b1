"""Loops that are never synced, or seldom: they run in parts while they are recorded."""

import concurrent.futures

import numpy as np
import pytest

import meshard as ms
from meshard import P

MESH = ms.Mesh({"x": 4})


def compiles():
    return ms.runtime_counters().compiles


def numpy_loop(x, steps):
    for _ in range(steps):
        x = np.tanh(x + 1, dtype=np.float32) * np.float32(0.5)
    return x


def loop(x, steps):
    for _ in range(steps):
        x = ms.tanh(x + 1) * 0.5
    return x


@pytest.mark.parametrize("sharded", [False, True])
def test_any_number_of_steps_compiles_the_same_programs(sharded):
    start = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)

    def given():
        x = ms.asarray(start)
        return ms.mark_sharding(x, MESH, P("x")) if sharded else x

    before = compiles()
    np.testing.assert_allclose(loop(given(), 1003).numpy(), numpy_loop(start, 1003), rtol=1e-5)
    assert compiles() - before <= 5
    before = compiles()
    for steps in (500, 777, 3000):
        np.testing.assert_allclose(loop(given(), steps).numpy(), numpy_loop(start, steps), rtol=1e-5)
    assert compiles() == before


def test_a_counter_and_slices_are_arguments():
    data = np.arange(600 * 4, dtype=np.float32).reshape(600, 4) % 7
    rows, x, expected = ms.asarray(data), ms.zeros((4,)), np.zeros(4, np.float32)
    before = compiles()
    for i in range(600):
        x = x * 0.5 + rows[i] + i
        expected = expected * np.float32(0.5) + data[i] + i
    np.testing.assert_allclose(x.numpy(), expected, rtol=1e-5)
    assert compiles() - before <= 6


def test_collected_values_are_computed_on_the_way():
    x, sums = ms.ones((8,)), []
    for _ in range(500):
        x = ms.tanh(x + 1) * 0.5
        sums.append(ms.sum(x))
    assert sum(s.placement != "recorded" for s in sums) > 250
    host = np.ones(8, np.float32)
    for i, each in enumerate(sums):
        host = numpy_loop(host, 1)
        if i % 50 == 0:
            np.testing.assert_allclose(each.item(), host.sum(), rtol=1e-5)


def test_loops_that_call_python():
    x = ms.ones((4,))
    for _ in range(300):
        x = ms.pure_callback(lambda a: np.asarray(a) * np.float32(0.5), x, x) + 1
    np.testing.assert_allclose(x.numpy(), np.full(4, 2), rtol=1e-5)


def test_loops_of_several_threads():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda n: loop(ms.ones((4,)), 500 + n).numpy(), range(4)))
    for n, result in enumerate(results):
        np.testing.assert_allclose(result, numpy_loop(np.ones(4, np.float32), 500 + n), rtol=1e-5)


def test_training_steps():
    w, losses = ms.full((4,), 2.0), []
    expected = np.full(4, 2, np.float32)
    for _ in range(200):
        loss, slope = ms.value_and_grad(lambda w: ms.sum(w * w))(w)
        w = w - 0.01 * slope
        losses.append(loss)
        expected -= np.float32(0.02) * expected
    np.testing.assert_allclose(w.numpy(), expected, rtol=1e-4)
    assert losses[0].item() == 16
