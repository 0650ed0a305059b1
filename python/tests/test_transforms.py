"""Derivatives and batches: values against finite differences, closed forms and JAX."""

import dataclasses
import typing

import numpy as np
import pytest

import meshard
from meshard._meshard import ops


def close(got, expected, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(got.numpy() if hasattr(got, "numpy") else got), expected, rtol=tolerance,
                               atol=tolerance)


def mlp(weights, x):
    for w, b in weights:
        x = ops.tanh(x @ w + b)
    return x


def jax_mlp(weights, x):
    jnp = pytest.importorskip("jax.numpy")
    for w, b in weights:
        x = jnp.tanh(x @ w + b)
    return x


def mlp_arguments(floats):
    return [(floats(4, 8), floats(8)), (floats(8, 3), floats(3))], floats(5, 4)


# --- first derivatives -------------------------------------------------------------------------


def test_grad_of_closed_forms(floats):
    x = floats(7)
    close(meshard.grad(lambda x: ops.sum(x * x * x))(x), 3 * x * x)
    close(meshard.grad(lambda x: ops.sum(ops.exp(x)))(x), np.exp(x))
    close(meshard.jit(meshard.grad(lambda x: ops.sum(ops.sin(x))))(x), np.cos(x))


def test_value_and_grad_returns_the_structure_of_the_argument(floats):
    @dataclasses.dataclass
    class Model:
        w: typing.Any
        inner: dict

    w, b, x = floats(3), floats(3), floats(3)
    value, gradient = meshard.value_and_grad(lambda model, x: ops.sum(model.w * x + model.inner["b"]))(Model(w, {"b": b}), x)
    close(value, np.sum(w * x + b))
    assert isinstance(gradient, Model)
    close(gradient.w, x)
    close(gradient.inner["b"], np.ones(3))


def test_argnums_and_keyword_arguments(floats):
    a, b, c = floats(3), floats(3), floats(3)

    def f(a, b, *, c):
        return ops.sum(a * b * c)

    close(meshard.grad(f, argnums=1)(a, b, c=c), a * c)
    close(meshard.grad(f, argnums=-1)(a, b, c=c), a * c)
    first, second = meshard.grad(f, argnums=(0, 1))(a, b, c=c)
    close(first, b * c)
    close(second, a * c)
    with pytest.raises(ValueError, match="argument 2"):
        meshard.grad(f, argnums=2)(a, b, c=c)


def test_auxiliary_results(floats):
    x = floats(3)

    def f(x):
        return ops.sum(x * x), {"doubled": x * 2, "name": "aux"}

    (value, auxiliary), gradient = meshard.value_and_grad(f, has_aux=True)(x)
    close(value, np.sum(x * x))
    close(auxiliary["doubled"], x * 2)
    close(gradient, 2 * x)
    assert auxiliary["name"] == "aux"
    gradient, auxiliary = meshard.grad(f, has_aux=True)(x)
    close(gradient, 2 * x)
    with pytest.raises((TypeError, meshard.Error)):
        meshard.grad(f)(x)


def test_only_scalars_have_gradients(floats):
    with pytest.raises(meshard.Error, match=r"test_transforms.py:\d+"):
        meshard.grad(lambda x: x * 2)(floats(3))
    with pytest.raises(meshard.Error):
        meshard.grad(lambda x: ops.sum(x))(np.arange(3))


def test_vjp_and_jvp_are_transposes(floats):
    weights, x = mlp_arguments(floats)
    result, pullback = meshard.vjp(mlp, weights, x)
    cotangent = floats(5, 3)
    (weights_back, x_back) = pullback(cotangent)
    tangents = ([(floats(4, 8), floats(8)), (floats(8, 3), floats(3))], floats(5, 4))
    pushed_result, pushed = meshard.jvp(mlp, (weights, x), tangents)
    close(pushed_result, result.numpy())
    forward = np.vdot(pushed.numpy(), cotangent)
    backward = np.vdot(x_back.numpy(), tangents[1]) + sum(
        np.vdot(got.numpy(), t) for pair, given in zip(weights_back, tangents[0]) for got, t in zip(pair, given))
    assert forward == pytest.approx(backward, rel=1e-4)


def test_linearize_is_linear(floats):
    x, t = floats(4), floats(4)
    result, push = meshard.linearize(ops.sin, x)
    close(result, np.sin(x))
    close(push(t), np.cos(x) * t)
    close(push(3 * t), 3 * np.cos(x) * t)


def test_jacobians(floats):
    a, x = floats(3, 4), floats(4)
    close(meshard.jacrev(lambda x: a @ x)(x), a)
    close(meshard.jacfwd(lambda x: a @ x)(x), a)
    got = meshard.jacrev(lambda x, y: {"product": x * y}, argnums=(0, 1))(x, np.float32(2))
    close(got["product"][0], 2 * np.eye(4))
    close(got["product"][1], x)


def test_hessian_and_its_product(floats):
    a, x, v = floats(4, 4), floats(4), floats(4)

    def quadratic(x):
        return ops.sum(x * (a @ x)) / 2

    symmetric = (a + a.T) / 2
    close(meshard.hessian(quadratic)(x), symmetric)
    close(meshard.hvp(quadratic, (x,), (v,))[0], symmetric @ v)


def test_third_derivative():
    third = meshard.grad(meshard.grad(meshard.grad(lambda x: x * x * x * x)))
    close(third(2.0), 48.0)


def test_derivatives_equal_jaxs(floats):
    jax = pytest.importorskip("jax")
    weights, x = mlp_arguments(floats)
    loss, jax_loss = (lambda w, x: ops.sum(mlp(w, x) ** 2)), (lambda w, x: (jax_mlp(w, x) ** 2).sum())
    value, gradient = meshard.jit(meshard.value_and_grad(loss))(weights, x)
    jax_value, jax_gradient = jax.value_and_grad(jax_loss)(weights, x)
    close(value, jax_value)
    for got, expected in zip(meshard.tree.leaves(gradient), jax.tree.leaves(jax_gradient), strict=True):
        close(got, expected, 1e-4)
    close(meshard.jacfwd(mlp, argnums=1)(weights, x), jax.jacfwd(jax_mlp, argnums=1)(weights, x), 1e-4)


# --- vmap --------------------------------------------------------------------------------------


def test_vmap_axes(floats):
    a, b = floats(5, 3, 4), floats(4, 2, 5)
    got = meshard.vmap(lambda a, b: a @ b, in_axes=(0, 2), out_axes=1)(a, b)
    close(got, np.einsum("nij,jkn->ink", a, b))
    close(meshard.vmap(lambda a, c: a * c, in_axes=(0, None))(a, 2.0), a * 2)
    nested = meshard.vmap(meshard.vmap(lambda x, y: ops.sum(x * y), in_axes=(0, None)), in_axes=(None, 0))
    close(nested(a[:, 0], a[:3, 1]), (a[:, 0] @ a[:3, 1].T).T)


def test_vmap_of_structures(floats):
    batch = {"x": floats(5, 3), "shared": floats(3)}
    got = meshard.vmap(lambda given: {"product": given["x"] * given["shared"], "same": given["shared"]},
                       in_axes=({"x": 0, "shared": None},), out_axes={"product": 0, "same": None})(batch)
    close(got["product"], batch["x"] * batch["shared"])
    close(got["same"], batch["shared"])


def test_vmap_of_grad_gives_a_gradient_for_each_member(floats):
    w, x = floats(3), floats(5, 3)
    per_member = meshard.jit(meshard.vmap(meshard.grad(lambda w, x: ops.sum(w * x) ** 2), in_axes=(None, 0)))(w, x)
    close(per_member, 2 * (x @ w)[:, None] * x, 1e-4)


def test_vmap_errors(floats):
    with pytest.raises((ValueError, meshard.Error)):
        meshard.vmap(lambda x, y: x + y)(floats(3), floats(4))
    with pytest.raises((ValueError, meshard.Error)):
        meshard.vmap(lambda x: x, in_axes=2)(floats(3))


def test_vmap_equals_jaxs(floats):
    jax = pytest.importorskip("jax")
    weights, x = mlp_arguments(floats)
    stacked = [(np.stack([w, 2 * w], 1), np.stack([b, -b])) for w, b in weights]
    axes = ([(1, 0), (1, 0)], None)
    close(meshard.vmap(mlp, in_axes=axes)(stacked, x), jax.vmap(jax_mlp, in_axes=axes)(stacked, x), 1e-4)


# --- checkpoint and custom derivatives -----------------------------------------------------------


@pytest.mark.parametrize("policy", ["nothing", "dots", "everything"])
def test_checkpoint_changes_no_value(floats, policy):
    weights, x = mlp_arguments(floats)
    plain = meshard.grad(lambda w: ops.sum(mlp(w, x)))(weights)
    kept = meshard.grad(lambda w: ops.sum(meshard.checkpoint(mlp, policy=policy)(w, x)))(weights)
    for one, other in zip(meshard.tree.leaves(plain), meshard.tree.leaves(kept), strict=True):
        close(one, other.numpy())


def test_checkpoint_as_decorator_and_with_names(floats):
    @meshard.checkpoint(policy="named", names=["hidden"])
    def f(x, *, scale):
        return ops.sum(ops.checkpoint_name(ops.tanh(x), "hidden") * scale)

    x = floats(3)
    close(meshard.grad(f)(x, scale=2.0), 2 * (1 - np.tanh(x) ** 2))
    with pytest.raises(ValueError, match="unknown checkpoint policy 'all'"):
        meshard.checkpoint(lambda x: x, policy="all")


def test_custom_vjp(floats):
    @meshard.custom_vjp
    def clipped(x, limit):
        return x * limit

    clipped.defvjp(lambda x, limit: (x * limit, {"limit": limit}),
                   lambda residuals, g: (ops.clip(g, -1.0, 1.0) * residuals["limit"], ops.zeros_like(g)))
    x = floats(4)
    close(clipped(x, np.ones(4, np.float32)), x)
    gradient = meshard.grad(lambda x: ops.sum(clipped(x, np.full(4, 2, np.float32)) * 5.0))(x)
    close(gradient, np.full(4, 2.0))


def test_custom_vjp_whose_forward_calls_the_function():
    @meshard.custom_vjp
    def square(x):
        return x * x

    square.defvjp(lambda x: (square(x), x), lambda x, g: (10 * x * g,))
    value, gradient = meshard.value_and_grad(square)(3.0)
    assert (value.item(), gradient.item()) == (9, 30)


def test_custom_vjp_without_a_derivative():
    @meshard.custom_vjp
    def f(x):
        return x

    with pytest.raises(RuntimeError, match="defvjp"):
        f(1.0)


def test_custom_vjp_must_return_a_pair(floats):
    f = meshard.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x,), lambda residuals, g: (g,))
    with pytest.raises((TypeError, ValueError), match="residuals"):
        f(floats(2))


def test_stop_gradient(floats):
    x = floats(3)
    close(meshard.grad(lambda x: ops.sum(x * ops.stop_gradient(x)))(x), x)


def test_backward_barrier_changes_no_value(floats):
    x = floats(3)
    f = meshard.apply_backward_optimization_barrier(lambda x: ops.sum(x * x))
    close(meshard.grad(f)(x), 2 * x)


def test_optimization_barrier_keeps_structures_and_derivatives(floats):
    x = floats(3)
    kept = meshard.optimization_barrier({"a": x, "b": (x * 2, None)})
    close(kept["a"], x)
    close(kept["b"][0], 2 * x)
    assert kept["b"][1] is None
    close(meshard.grad(lambda x: ops.sum(meshard.optimization_barrier(x * x)))(x), 2 * x)
    text = meshard.module_text(meshard.optimization_barrier, x)
    assert "stablehlo.optimization_barrier" in text


def test_exceptions_inside_a_derivative_reach_the_caller(floats):
    def f(x):
        raise LookupError("inside")

    for transformed in (meshard.grad(f), meshard.vmap(f), meshard.checkpoint(f), meshard.jacrev(f)):
        with pytest.raises(LookupError, match="inside"):
            transformed(floats(3))
