"""What the tests of meshard.torch share. Each of their files is skipped where PyTorch is missing."""

import pathlib
import sys

import pytest

import meshard as ms

sys.path.insert(0, str(pathlib.Path(__file__).parent))


@pytest.fixture
def mesh():
    return ms.Mesh({"data": 2, "model": 4})


@pytest.fixture
def mlp():
    import torch
    from torch_support import Mlp

    torch.manual_seed(0)
    return Mlp()
