"""Several threads use the package at once; the interpreter's lock is free while a program compiles and runs."""

import concurrent.futures
import threading

import numpy as np
import pytest

import meshard
from meshard._meshard import ops


def test_threads_share_a_jitted_function(floats):
    calls = []

    @meshard.jit
    def f(x):
        calls.append(threading.get_ident())
        return ops.tanh(x) + 1

    arrays = [floats(2 + i % 5) for i in range(100)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda a: f(a).numpy(), arrays))
    for a, result in zip(arrays, results):
        np.testing.assert_allclose(result, np.tanh(a) + 1, rtol=1e-5)
    assert 5 <= len(calls) <= 40 and f.stats.calls == 100


def test_threads_trace_at_the_same_time(floats):
    barrier = threading.Barrier(4)

    def work(i):
        def f(x):
            barrier.wait(timeout=60)  # all four are inside their traces: none waits for another
            return x * i

        return meshard.jit(f)(np.float32(2)).item()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [0.0, 2.0, 4.0, 6.0]


def test_recorded_values_of_several_threads(floats):
    shared = meshard.jit(lambda x: x)(floats(4))
    expected = shared.numpy()

    def work(i):
        y = shared
        for _ in range(50):
            y = y + i
        return y.numpy()

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for i, result in enumerate(pool.map(work, range(6))):
            np.testing.assert_allclose(result, expected + 50 * i, rtol=1e-5)


def test_tensors_are_dropped_by_other_threads(floats):
    made = [meshard.jit(lambda x: x + 1)(floats(3)) for _ in range(50)]
    while made:
        batch = [made.pop() for _ in range(10)]
        thread = threading.Thread(target=batch.clear)
        thread.start()
        thread.join()
    assert meshard.jit(lambda x: x + 1)(1.0).item() == 2.0


def test_an_error_in_one_thread_leaves_the_others_alone():
    @meshard.jit
    def f(x, fail):
        if fail:
            raise ValueError("asked for")
        return x * 2

    def work(i):
        if i % 2:
            with pytest.raises(ValueError, match="asked for"):
                f(float(i), "yes")
            return None
        return f(float(i), "").item()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(8))) == [0.0, None, 4.0, None, 8.0, None, 12.0, None]
