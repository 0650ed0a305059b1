"""PyTorch's own ways to run the programs of torch_models.py: eager, and torch.compile."""

import torch_models


def train_step(model, loss, optimizer):
    """A training step as it is written in PyTorch."""

    def step(*arguments, **named):
        optimizer.zero_grad()
        value = loss(model(**named)) if named else loss(model(arguments[0]), *arguments[1:])
        value.backward()
        optimizer.step()
        return value.detach()

    return step


class Eager:
    """Runs modules as they are; `compiled`: with torch.compile."""

    def __init__(self, compiled=False):
        import torch
        self._torch, self._compiled = torch, compiled

    def shard(self, module, spec_of):
        """Shards parameters and buffers on several devices. `spec_of(name)`: axes by dimension, or None."""

    def whole(self, tensor):
        """An input that all devices have."""
        return tensor

    def batch(self, tensor):
        """An input that is sharded over the axis "data" on several devices."""
        return tensor

    def _prepared(self, module):
        return self._torch.compile(module, dynamic=False) if self._compiled else module

    def train_step(self, model, loss, optimizer):
        """`step(*arguments)` of the model and the loss."""
        for group in optimizer.param_groups:
            if "fused" in group:
                group["fused"] = True  # the fastest of PyTorch's on CPUs
        return train_step(self._prepared(model), loss, optimizer)

    def inference(self, module):
        """`step(*arguments)` of the module."""
        return self._torch.inference_mode()(self._prepared(module))

    def wait(self, value):
        """Returns when the value, and what was started before, are there."""


WORKS = torch_models.works(Eager)
