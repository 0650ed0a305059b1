"""meshard.linalg.distributed, beside NumPy. The algorithms have their tests in tests/e2e/distributed_linalg_test.cc."""

import numpy as np
import pytest

import meshard as ms
from meshard.linalg import distributed

MESH = ms.Mesh({"rows": 2, "columns": 2})
GRID = distributed.MatrixGrid(MESH, "rows", "columns")
MATRIX = np.random.default_rng(48).normal(size=(6, 6)).astype(np.float32)


def test_factorizations():
    positive = MATRIX @ MATRIX.T + np.eye(6, dtype=np.float32)
    factor = distributed.cholesky(ms.asarray(positive), GRID)
    assert factor.sharding == ms.Sharding(MESH, ms.P("rows", "columns"))
    np.testing.assert_allclose(factor.numpy(), np.linalg.cholesky(positive), rtol=1e-4, atol=1e-5)
    q, r = distributed.qr(MATRIX[:, :4], GRID)
    np.testing.assert_allclose(q.numpy() @ r.numpy(), MATRIX[:, :4], atol=1e-5)
    np.testing.assert_allclose(q.numpy().T @ q.numpy(), np.eye(4), atol=1e-5)
    symmetric = MATRIX + MATRIX.T
    found = ms.jit(lambda x: distributed.eigh(x, GRID))(symmetric)
    np.testing.assert_allclose(found.eigenvalues.numpy(), np.linalg.eigvalsh(symmetric), atol=1e-5)
    vectors = found.eigenvectors.numpy()
    np.testing.assert_allclose(symmetric @ vectors, vectors * found.eigenvalues.numpy(), atol=1e-5)


def test_errors():
    with pytest.raises(ms.InvalidArgumentError, match="not square") as caught:
        distributed.cholesky(MATRIX[:4], GRID)
    assert "test_distributed_linalg.py" in str(caught.value)
    with pytest.raises(ms.InvalidArgumentError, match='no axis "cols"'):
        distributed.eigh(MATRIX, GRID._replace(columns="cols"))
    with pytest.raises(TypeError, match="MatrixGrid"):
        distributed.qr(MATRIX, MESH)
