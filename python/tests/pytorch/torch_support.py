"""A module that several tests use, with lines that they look for in reports."""

import torch


class Mlp(torch.nn.Module):
    """Two layers."""

    def __init__(self, width=8, hidden=16, out=4):
        super().__init__()
        self.up = torch.nn.Linear(width, hidden)
        self.down = torch.nn.Linear(hidden, out)

    def forward(self, x):
        hidden = torch.relu(self.up(x))
        return self.down(hidden)
