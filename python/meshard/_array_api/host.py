"""Functions that NumPy computes on the host, because no plugin of every kind has them."""

import numpy

from .. import _meshard
from .._errors import UnimplementedError
from .common import made_by_numpy


def on_host(name, function, *arguments):
    """The tuple of results of a NumPy function of tensors, as tensors.

    @error a traced value, or a function that is being differentiated: there it would be a constant
    """
    if any(x.is_traced for x in arguments) or _meshard.is_differentiating():
        raise UnimplementedError(
            f"[{name}] is computed by NumPy on the host: it cannot be traced by jit or vmap, and has no derivative. "
            f"Compute it outside, or use eigh(), qr() or cholesky(), which are ops")
    with numpy.errstate(all="ignore"):
        results = function(*(x.numpy() for x in arguments))
    return tuple(made_by_numpy(each) for each in results)
