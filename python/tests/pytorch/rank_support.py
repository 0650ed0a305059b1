"""What the tests of programs for ranks share: 8 ranks, their values, and a comparison with LocalTensorMode."""

import collections
import re

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

import meshard as ms  # noqa: E402
import meshard.torch as mt  # noqa: E402

if not dist.is_available():
    pytest.skip("this PyTorch has no torch.distributed", allow_module_level=True)

from torch.distributed import _functional_collectives as funcol  # noqa: E402
from torch.distributed._local_tensor import LocalTensor, LocalTensorMode  # noqa: E402

MESH = ms.Mesh({"data": 2, "model": 4})


@pytest.fixture(scope="module", autouse=True)
def device_mesh():
    yield mt.simulated_device_mesh(MESH)
    dist.destroy_process_group()


def values(of_rank):
    return LocalTensor({rank: of_rank(rank) for rank in range(8)})


def random_values(*shape):
    torch.manual_seed(3)
    return values(lambda rank: torch.randn(*shape))


def collectives(f, *args):
    """How many collectives of each kind are in the program as it was recorded."""
    found = re.findall(r"stablehlo\.(all_reduce|all_gather|reduce_scatter|all_to_all|collective_permute)\b",
                       ms.module_text(f, *args))
    return dict(collections.Counter(found))


def assert_equals_local_tensors(function, *args, mesh=MESH, reference=None):
    with LocalTensorMode(8):
        wanted = (reference or function)(*args)
    results = mt.per_rank(function, mesh)(*args)
    for want, got in zip(*(each if isinstance(each, tuple) else (each,) for each in (wanted, results)), strict=True):
        want = want.wait() if isinstance(want, funcol.AsyncCollectiveTensor) else want
        for rank in range(8):
            torch.testing.assert_close(got[rank], want._local_tensors[rank])
