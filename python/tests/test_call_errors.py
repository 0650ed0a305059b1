"""Errors of calls name the argument that is wrong."""

import re

import pytest

import meshard as ms
from meshard import P

X = ms.ones((2, 3))
MESH = ms.Mesh({"data": 2, "model": 4})

CASES = {
    "a missing argument": (lambda: ms.matmul(X), "matmul(): the argument b is missing"),
    "no argument at all": (lambda: ms.exp(), "exp(): the argument x is missing"),
    "too many": (lambda: ms.exp(X, X), "exp(): it takes at most 1 argument by position (x), not 2"),
    "a string for a tensor": (lambda: ms.matmul(X, "a"), "matmul(): b must be a tensor or a number, not 'a' (str)"),
    "a string for a shape": (lambda: ms.reshape(X, "ab"), "reshape(): shape must be an integer or a sequence of integers, not 'ab' (str)"),
    "a float in a shape": (lambda: ms.zeros((2, 1.5)), "zeros(): shape must be an integer or a sequence of integers, not (2, 1.5) (tuple)"),
    "a string for an integer": (lambda: ms.concat([X], axis="x"), "concat(): axis must be an integer, not 'x' (str)"),
    "a name that is spelled otherwise": (lambda: ms.matmul(X, X, result_shardings=None),
                                         "matmul(): there is no argument 'result_shardings': the nearest is 'result_sharding'"),
    "a name given twice": (lambda: ms.matmul(X, X, a=X), "matmul(): a is given twice"),
    "several forms": (lambda: ms.nn.linear(X), "linear(): the argument weight is missing"),
    "a number for a sharding": (lambda: ms.mark_sharding(X, MESH, 1), "mark_sharding(): "),
    "marking without a sharding": (lambda: ms.mark_sharding(X), "mark_sharding(): after the value, it takes a mesh and specs"),
    "an unknown dtype": (lambda: ms.zeros((2,), dtype="f99"), "zeros(): dtype must be a dtype that meshard has, not 'f99' (str)"),
    "a method": (lambda: X.reshape("ab"), "reshape(): shape must be"),
    "a method's name": (lambda: X.sum(axs=1), "Tensor.sum() got an unexpected keyword argument 'axs'"),
    "a short method's name": (lambda: X.swapaxes(1), "Tensor.swapaxes() missing 1 required positional argument: 'axis2'"),
    "jit of a number": (lambda: ms.jit(3), "jit(): the first argument must be a function, not 3 (int)"),
    "grad of a tensor": (lambda: ms.grad(X), "grad(): the first argument must be a function"),
    "hessian of a number": (lambda: ms.hessian(3), "jacrev(): the first argument must be a function"),
    "vmap of a number": (lambda: ms.vmap(3), "vmap(): the first argument must be a function"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_argument_is_named(name):
    call, text = CASES[name]
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value).startswith(text), str(caught.value)
    assert "incompatible function arguments" not in str(caught.value)


def test_errors_of_functions_that_are_called_are_theirs():
    def wrong(x):
        return ms.matmul(x)

    for call in (ms.jit(wrong), ms.grad(wrong), ms.vmap(wrong)):
        with pytest.raises(TypeError, match=re.escape("matmul(): the argument b is missing")):
            call(X)

    def own(x):
        raise TypeError("own(): incompatible function arguments")

    with pytest.raises(TypeError, match=r"^own\(\): incompatible"):
        ms.jit(own)(X)


def test_right_calls_are_unchanged():
    assert ms.matmul(X, ms.ones((3, 2))).shape == (2, 2)
    assert ms.mark_sharding(X, MESH, P("data", None)).sharding.spec == P("data", None)
    assert X.swapaxes(0, 1).shape == (3, 2)
