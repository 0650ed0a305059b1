"""Buffers that a compiled module changes: where they are, and what PyTorch sees."""

import pytest

torch = pytest.importorskip("torch")

import meshard as ms  # noqa: E402
import meshard.torch as mt  # noqa: E402
from meshard import P  # noqa: E402


class Counter(torch.nn.Module):
    """Adds to a buffer and returns its sum."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.total += x
        return self.total.sum()


def test_changed_buffers_stay_on_the_devices_in_their_memory():
    module = Counter()
    compiled = mt.compile(module)
    with torch.inference_mode():
        compiled(torch.ones(3))
        before = module.total.value
        assert compiled(torch.ones(3)).item() == 6
    with pytest.raises(ms.FailedPreconditionError, match="donated"):
        before.numpy()
    module.total.mul_(10)  # outside inference mode: PyTorch writes, and the program reads it
    assert compiled(torch.ones(3)).item() == 63
    assert module.state_dict()["total"].tolist() == [21, 21, 21]


def test_changed_buffers_are_seen_through_views_in_host_memory():
    module = Counter()
    compiled = mt.compile(module)
    compiled(torch.ones(3))
    seen = module.total.numpy()
    compiled(torch.ones(3))
    assert seen.tolist() == [2, 2, 2]
    seen[0] = 5
    assert compiled(torch.ones(3)).item() == 6 + 3 + 3


def test_a_changed_buffer_keeps_its_sharding():
    mesh = ms.Mesh({"data": 2})
    module = Counter()
    module.total = torch.zeros(4)
    mt.mark_sharding(module.total, mesh, P("data"))
    compiled = mt.compile(module)
    for _ in range(2):
        compiled(torch.ones(4))
        assert module.total.value.sharding == ms.Sharding(mesh, P("data"), 1)
    assert module.total.tolist() == [2, 2, 2, 2]


def test_a_buffer_that_the_backward_program_needs_keeps_its_old_value():
    class Scaled(Counter):
        def forward(self, x):
            y = (self.total.clone() * x).sum()
            self.total += 1
            return y

    module = Scaled()
    compiled = mt.compile(module)
    for step in range(3):
        x = torch.ones(3, requires_grad=True)
        compiled(x).backward()
        assert x.grad.tolist() == [step] * 3


def test_a_buffer_that_is_passed_to_its_module():
    class Adding(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(2))

        def forward(self, x):
            self.total.add_(x)
            return 2 * x

    module = Adding()
    compiled = mt.compile(module)
    for _ in range(2):
        compiled(torch.ones(2))
    assert type(module.total) is mt.Held  # its elements are on the devices, as those of the argument below
    with pytest.raises(ValueError, match="writes to total, which shares memory with args"):
        compiled(module.total.detach())
    assert module.total.tolist() == [2.0, 2.0]
