"""A sample of PyTorch's op_db; op_database.py compares all of it."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # which PyTorch's own test data need

from op_comparison import compare, difference, name_of  # noqa: E402
from op_database import listed  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

DIFFERENTIABLE = [entry for entry in op_db if entry.supports_autograd]
OTHERS = [entry for entry in op_db if not entry.supports_autograd]
SAMPLE = [*DIFFERENTIABLE[3::16], *OTHERS[3::16]]


@pytest.mark.parametrize("entry", SAMPLE, ids=name_of)
def test_entry(entry):
    verdict = compare(entry, torch.float32, 2, gradients=entry.supports_autograd)
    limits = listed("gradient" if entry.supports_autograd else "forward")
    if verdict.kind == "skipped" or verdict.kind in ("error", "missing") and name_of(entry) in limits:
        pytest.skip(verdict.reason)
    assert verdict.kind == "right", verdict.reason


def test_limits_are_entries():
    names = {name_of(entry) for entry in op_db}
    for run in ("forward", "gradient", "int64", "bool", "bfloat16", "float64", "complex64"):
        assert listed(run) <= names


def test_differences_are_found():
    ones = torch.ones(2)
    assert len(SAMPLE) >= 40
    assert difference(ones, ones + 1).startswith("values")
    assert difference(ones, ones.double()).startswith("dtype")
    assert difference(ones, torch.ones(2, 1)).startswith("shape")
    assert not difference(ones, ones + 1e-7)
