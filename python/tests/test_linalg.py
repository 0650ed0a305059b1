"""Linear algebra: random calls beside NumPy, derivatives beside JAX, splits over devices, errors."""

import pathlib
import sys

import numpy as np
import pytest

import meshard as ms

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import compare_linalg  # noqa: E402


def test_random_calls_are_within_backward_error_bounds():
    assert compare_linalg.compare(75, seed=11) == []


def test_derivatives_agree_with_jax():
    pytest.importorskip("jax")
    import compare_linalg_jax

    assert compare_linalg_jax.compare(10, seed=3) == []


def test_a_split_batch_needs_no_collectives():
    mesh = ms.Mesh({"d": 8})
    x = np.random.default_rng(0).normal(size=(16, 4, 4)).astype(np.float32)
    split = ms.mark_sharding(ms.asarray(x), mesh, ms.P("d"))

    def all_of(x):
        symmetric = x + ms.matrix_transpose(x)
        positive = ms.matmul(x, ms.matrix_transpose(x)) + ms.eye(4)
        return (ms.linalg.solve(x, x), ms.linalg.inv(x), ms.linalg.qr(x)[1], *ms.linalg.eigh(symmetric)[:1],
                ms.linalg.svdvals(x), ms.linalg.det(x), ms.linalg.cholesky(positive), ms.linalg.pinv(x))

    assert [group.kind for group in ms.explain(ms.jit(all_of), split).groups] == []
    for found, expected in zip(ms.jit(all_of)(split), ms.jit(all_of)(ms.asarray(x)), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-3, atol=2e-3)
    gradient = ms.jit(ms.grad(lambda x: ms.sum(ms.linalg.inv(x)**2)))
    assert [group.kind for group in ms.explain(gradient, split).groups] == []


def test_explicit_axes_split_batches():
    mesh = ms.Mesh({"d": 8}).with_axis_kind(["d"], "explicit")
    x = ms.mark_sharding(ms.ones((16, 4, 4)) + 3 * ms.eye(4), mesh, ms.P("d"))
    w, v = ms.linalg.eigh(x)
    assert w.shape == (16, 4)
    np.testing.assert_allclose(w.numpy()[0], [3, 3, 3, 7], rtol=1e-5)
    assert ms.linalg.solve(x, x).sharding.spec == ms.P("d", None, None)


@pytest.mark.parametrize("call, match", [
    (lambda x: ms.linalg.solve(x, x), "square"), (lambda x: ms.linalg.eig(x), "square"),
    (lambda x: ms.linalg.expm(x), "square"), (lambda x: ms.linalg.svd(x[0]), "rank 1"),
    (lambda x: ms.linalg.lstsq(x, ms.ones(3)), "2 rows do not match"),
    (lambda x: ms.linalg.matrix_norm(x, ord=3), "unknown ord of matrix_norm=3"),
    (lambda x: ms.linalg.lu_solve(x[:, :2], ms.asarray([0, 1, 2]), x), "pivots"),
    (lambda x: ms.linalg.tensorsolve(x, ms.ones(2)), "tensorsolve")])
def test_errors_say_what_does_not_fit(call, match):
    with pytest.raises(ValueError, match=match):
        call(ms.ones((2, 3)))


def test_repeated_singular_values_have_a_derivative_of_values():
    x = ms.eye(3, dtype=ms.float64)
    np.testing.assert_allclose(ms.grad(lambda x: ms.sum(ms.linalg.svdvals(x)))(x).numpy(), np.eye(3), atol=1e-14)
    np.testing.assert_allclose(ms.grad(lambda x: ms.sum(ms.linalg.eigvalsh(x)))(x).numpy(), np.eye(3), atol=1e-14)
    np.testing.assert_allclose(ms.grad(lambda x: ms.sum(ms.linalg.pinv(x)))(x).numpy(), -np.ones((3, 3)), atol=1e-14)


def test_vmap_of_decompositions_is_that_of_a_batch():
    x = np.random.default_rng(2).normal(size=(3, 4, 2))
    for name in ("svd", "qr", "lu", "pinv"):
        function = getattr(ms.linalg, name)
        each = ms.vmap(function)(ms.asarray(x))
        whole = function(ms.asarray(x))
        for found, expected in zip(each, whole, strict=True) if isinstance(whole, tuple) else [(each, whole)]:
            np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-14)
