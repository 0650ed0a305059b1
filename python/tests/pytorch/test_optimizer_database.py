"""A sample of PyTorch's optim_db; optimizer_database.py compares all of it."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # which PyTorch's own test data need

from optimizer_database import check, configurations  # noqa: E402
from torch.testing._internal.common_optimizers import optim_db  # noqa: E402

DENSE = [info for info in optim_db if not info.only_supports_sparse_grads]


@pytest.mark.parametrize("info", DENSE, ids=lambda info: info.name)
def test_optimizer(info):
    inputs = list(configurations(info))
    description, options = inputs[len(inputs) * 2 // 3]  # one that differs from the defaults
    check(info.optim_cls, options, sharded=True)


def test_differences_are_found():
    rates = iter((0.1, 0.2, 0.2))  # ours, PyTorch's, and PyTorch's in double precision
    with pytest.raises(AssertionError, match="loss|weight"):
        check(lambda parameters: torch.optim.SGD(parameters, lr=next(rates)), {}, sharded=False)
    assert len(DENSE) >= 14
