"""Loops and branches: scan, map, while_loop, fori_loop, cond, switch_case."""

import numpy as np
import pytest

import meshard
from meshard._meshard import ops


def close(got, expected, tolerance=1e-5):
    np.testing.assert_allclose(got.numpy(), expected, rtol=tolerance, atol=tolerance)


def test_scan_with_structures(floats):
    xs = {"a": floats(6, 3), "b": floats(6)}

    def step(carry, x):
        total, count = carry
        total = total + x["a"] * x["b"]
        return (total, count + 1), {"so_far": total}

    (total, count), ys = meshard.scan(step, (np.zeros(3, np.float32), 0), xs)
    products = xs["a"] * xs["b"][:, None]
    close(total, products.sum(0))
    assert count.item() == 6
    close(ys["so_far"], np.cumsum(products, 0))


def test_scan_backwards_unrolled_and_without_slices(floats):
    xs = floats(5)
    _, ys = meshard.scan(lambda c, x: (c + x, c), 0.0, xs, reverse=True)
    close(ys, np.concatenate([np.cumsum(xs[::-1])[::-1][1:], [0]]))
    carry, _ = meshard.jit(lambda xs: meshard.scan(lambda c, x: (c * 0.5 + x, None), 0.0, xs, unroll=2))(xs)
    expected = 0.0
    for x in xs:
        expected = expected * 0.5 + x
    close(carry, expected)
    carry, ys = meshard.scan(lambda c, _: (c * 2, c), 1.0, length=4)
    assert carry.item() == 16.0 and ys.numpy().tolist() == [1, 2, 4, 8]


def test_scan_errors_name_the_line(floats):
    with pytest.raises((TypeError, ValueError), match="carry, y"):
        meshard.scan(lambda c, x: c + x, 0.0, floats(3))
    with pytest.raises(meshard.Error, match=r"test_control_flow.py:\d+"):
        meshard.scan(lambda c, x: (ops.concat([c, c]), x), np.zeros(2, np.float32), floats(3))


def test_derivative_of_scan_equals_that_of_the_loop(floats):
    w, xs = floats(3, 3), floats(4, 3)

    def step(h, x):
        h = ops.tanh(h @ w_now[0] + x)
        return h, h

    w_now = [None]

    def by_scan(w):
        w_now[0] = w
        h, hs = meshard.scan(step, np.zeros(3, np.float32), xs)
        return ops.sum(hs * hs) + ops.sum(h)

    def by_loop(w):
        w_now[0] = w
        h, total = ops.zeros((3,)), 0.0
        for i in range(4):
            h, _ = step(h, xs[i])
            total = ops.sum(h * h) + total
        return total + ops.sum(h)

    value, gradient = meshard.value_and_grad(by_scan)(w)
    expected_value, expected = meshard.value_and_grad(by_loop)(w)
    close(value, expected_value.numpy(), 1e-4)
    close(gradient, expected.numpy(), 1e-4)


def test_map(floats):
    xs = floats(5, 3)
    close(meshard.map(lambda x: ops.sum(x) * 2, xs), xs.sum(1) * 2)


def test_while_loop():
    def collatz(n):
        return meshard.while_loop(
            lambda state: state["n"] != 1,
            lambda state: {"n": ops.where(state["n"] % 2 == 0, state["n"] // 2, 3 * state["n"] + 1),
                           "steps": state["steps"] + 1}, {"n": n, "steps": 0})["steps"]

    f = meshard.jit(collatz)
    assert [f(n).item() for n in (1, 6, 27)] == [0, 8, 111]
    with pytest.raises(TypeError, match="one tensor"):
        meshard.while_loop(lambda x: (x, x), lambda x: x, 1.0)


def test_fori_loop_with_numbers_has_a_derivative(floats):
    x = floats(3)
    cubed = meshard.fori_loop(0, 3, lambda i, y: y * x, np.ones(3, np.float32))
    close(cubed, x**3)
    close(meshard.grad(lambda x: ops.sum(meshard.fori_loop(0, 3, lambda i, y: y * x, ops.ones((3,)))))(x), 3 * x * x)
    assert meshard.jit(lambda n: meshard.fori_loop(0, n, lambda i, total: total + i, 0))(5).item() == 10


def test_cond_runs_one_branch():
    f = meshard.jit(lambda x: meshard.cond(x > 0, lambda x: {"r": x * 2}, lambda x: {"r": -x}, x)["r"])
    assert f(3.0).item() == 6.0 and f(-3.0).item() == 3.0
    gradient = meshard.jit(meshard.grad(lambda x: meshard.cond(x > 0, lambda x: x * x, lambda x: -x, x)))
    assert gradient(3.0).item() == 6.0 and gradient(-3.0).item() == -1.0


def test_branches_with_different_results_are_an_error():
    with pytest.raises(Exception, match="branch|structure|cond") as caught:
        meshard.jit(lambda x: meshard.cond(x > 0, lambda x: (x, x), lambda x: x, x))(1.0)
    assert isinstance(caught.value, (meshard.Error, TypeError, ValueError))


def test_switch_case_clamps_its_index():
    f = meshard.jit(lambda i, x: meshard.switch_case(i, [lambda x: x, lambda x: x * 10, lambda x: x * 100], x))
    assert [f(i, 2.0).item() for i in (-5, 0, 1, 2, 9)] == [2.0, 2.0, 20.0, 200.0, 200.0]


def test_loops_equal_jaxs(floats):
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    w, xs = floats(3, 3), floats(6, 3)

    def ours(w):
        h, ys = meshard.scan(lambda h, x: (ops.tanh(h @ w + x), ops.sum(h)), ops.zeros((3,)), xs)
        return ops.sum(h) + ops.sum(ys * ys)

    def theirs(w):
        h, ys = jax.lax.scan(lambda h, x: (jnp.tanh(h @ w + x), h.sum()), jnp.zeros(3), xs)
        return h.sum() + (ys * ys).sum()

    value, gradient = meshard.jit(meshard.value_and_grad(ours))(w)
    jax_value, jax_gradient = jax.jit(jax.value_and_grad(theirs))(w)
    close(value, jax_value)
    close(gradient, jax_gradient, 1e-4)
    close(meshard.jit(meshard.vmap(ours))(np.stack([w, -w])), jax.vmap(theirs)(jnp.stack([w, -w])), 1e-4)
