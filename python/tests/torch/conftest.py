"""The tests of meshard.torch are skipped where PyTorch is missing."""

import pytest

pytest.importorskip("torch")

import torch  # noqa: E402

import meshard as ms  # noqa: E402


class Mlp(torch.nn.Module):
    """Two layers, with lines that tests look for in reports."""

    def __init__(self, width=8, hidden=16, out=4):
        super().__init__()
        self.up = torch.nn.Linear(width, hidden)
        self.down = torch.nn.Linear(hidden, out)

    def forward(self, x):
        hidden = torch.relu(self.up(x))
        return self.down(hidden)


@pytest.fixture
def mesh():
    return ms.Mesh({"data": 2, "model": 4})


@pytest.fixture
def mlp():
    torch.manual_seed(0)
    return Mlp()


@pytest.fixture
def make_mlp():
    return Mlp
