"""The docstrings of what is bound: every function has one, and none has the notation of C++."""

import importlib.util
import pathlib
import re

import pytest

from meshard import _meshard

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "bindings"
NOT_PYTHON = r"::|[{}]|@\w|\bk[A-Z]\w|`dimension`|\boptions\.|C\+\+ number|//"


@pytest.mark.parametrize("module", ["ops", "random"])
def test_docs_are_in_python(module):
    bound = getattr(_meshard, module)
    for name in (name for name in dir(bound) if not name.startswith("_")):
        text = getattr(bound, name).__doc__ or ""
        text = text.partition("\n>>> ")[0]  # the example
        own = "\n".join(line for line in text.splitlines() if "->" not in line).strip()
        assert own, name
        assert not re.search(NOT_PYTHON, own), (name, own)


@pytest.fixture(scope="module")
def op_docs():
    if not (FOLDER / "ops" / "op_docs.py").exists():
        pytest.skip("needs the repository")
    spec = importlib.util.spec_from_file_location("op_docs", FOLDER / "ops" / "op_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("comment, expected", [
    ("/// Joins: `concat({a, b}, 1)`.", "Joins: `concat([a, b], 1)`."),
    ("/// One.\n/// @error it is\n/// two", "One.\n\nErrors: it is\ntwo."),
    ("/// One. @error as other", "One.\n\nErrors: as other."),
    ("/// One.\n///\n///     f(x, {.strides = {2, 2}, .padding = Padding::kSameLower})  // y",
     'One.\n\n    f(x, strides=(2, 2), padding="same_lower")  # y'),
    ("/// Along `dimension`.\n/// @param dimension the one\n/// @pre x is sorted",
     "Along `axis`.\n\n`axis`: the one\n\nRequires: x is sorted."),
    ("/// One.\n/// @code\n/// Tensor x = ones({2});\n/// @endcode\n/// @error no.", "One.\n\nErrors: no."),
    ("/// Of DType::bf16 in f({4}, DType::u8).", 'Of DType::bf16 in f((4,), "uint8").'),
    ("///     f({x.dim(1), 3}, {.dimension = 0})", "    f((x.shape[1], 3), axis=0)"),
])
def test_docstring(op_docs, comment, expected):
    assert op_docs.docstring(comment) == expected


@pytest.mark.parametrize("text, expected", [
    ("a - floor(a / b) * b, of a with b's sign", "x1 - floor(x1 / x2) * x2, of x1 with x2's sign"),
    ("a to the power b; a negative exponent, a float", "x1 to the power x2; a negative exponent, a float"),
    ("gives a\nvector, a\nto", "gives a\nvector, x1\nto"),
    ("`a` is not square: a x = b", "`x1` is not square: x1 x = x2"),
])
def test_operands(op_docs, text, expected):
    assert op_docs.with_operands(text) == expected
