"""Products of matrices."""

import meshard as ms

from .._dtypes import to_torch
from .._table import lowers
from ._helpers import as_dtype, is_number


@lowers("aten.mm", "aten.bmm", "aten.mv", "aten.dot")
def matmul(a, b):
    return ms.matmul(a, b)


@lowers("aten.addmm", "aten.baddbmm", "aten.addmv")
def addmm(bias, a, b, beta=1, alpha=1):
    product = ms.matmul(a, b)
    dtype = to_torch(product.dtype)
    if not is_number(alpha, 1):
        product = product * as_dtype(alpha, dtype)
    if is_number(beta, 0):
        return product
    return product + (bias if is_number(beta, 1) else bias * as_dtype(beta, dtype))
