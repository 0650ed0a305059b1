"""Factorizations of matrices that are spread over a two-dimensional grid of devices: `meshard.linalg.distributed`.

Each function takes a matrix with any placement, and gives matrices that are split as P(rows, columns). They are meant for
matrices that do not fit on one device: a device holds a few times its share of the matrix at a time. Numbers are float32,
float64, or, for `cholesky`, complex; narrower floats and integers are computed in float32. Sizes that the grid does not
divide are padded inside. docs/concepts/linalg.md says how, and what is sent.

    grid = MatrixGrid(Mesh({"rows": 2, "columns": 4}), "rows", "columns")
    eigenvalues, eigenvectors = linalg.distributed.eigh(x, grid)
"""

import typing

from . import _meshard
from ._array_api.linear_algebra import EighResult, QRResult

__all__ = ["MatrixGrid", "cholesky", "eigh", "qr"]


class MatrixGrid(typing.NamedTuple):
    """The grid of devices over which matrices are spread.

    Rows are split over one axis of the mesh, columns over another; the matrices are replicated over its other axes. `block`
    is the number of columns that one device contributes to a panel, which is factored at once; 0: such that a matrix has
    about 16 panels.
    """

    mesh: _meshard.Mesh
    rows: str
    columns: str
    block: int = 0


def _checked(grid):
    if not isinstance(grid, MatrixGrid):
        raise TypeError(f"a grid is MatrixGrid(mesh, rows, columns), not {grid!r}")
    return grid


def cholesky(x, /, grid):
    """The lower triangular Cholesky factor of a symmetric (Hermitian) positive definite matrix.

    Only its lower triangle is read. A matrix that is not positive definite gives NaN, from the panel on where that is found.

    Error: the matrix is not square, or of another rank; an axis that the mesh does not have, or one axis for both.
    """
    return _meshard.distributed.cholesky(x, *_checked(grid))


def qr(x, /, grid):
    """The reduced QR factors of a real [m, n] matrix: Q [m, k] and R [k, n], k = min(m, n). They have no derivative.

    Error: as `cholesky`, but for the square; complex numbers.
    """
    return QRResult(*_meshard.distributed.qr(x, *_checked(grid)))


def eigh(x, /, grid):
    """The eigenvalues, ascending, and eigenvectors of a real symmetric matrix, of which (x + x.T) / 2 is taken.

    The derivative of the eigenvectors needs distinct eigenvalues.

    Error: as `cholesky`; complex numbers.
    """
    return EighResult(*_meshard.distributed.eigh(x, *_checked(grid)))
