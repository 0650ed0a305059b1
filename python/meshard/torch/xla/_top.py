"""torch_xla."""

import contextlib

import torch

import meshard as ms

from ..eager._registration import sync as _sync
from . import _metrics, _runtime

__version__ = "2.9.0+meshard"


def device(index=None):
    """The device of all tensors of the program; their meshes select the real devices."""
    if index:
        raise IndexError(f"Device index {index} out of range: there is one device, xla:0; a mesh names the real ones")
    return torch.device("xla:0")


def devices():
    return [device()]


def real_devices():
    return [f"{_runtime.device_type()}:{each.id}" for each in ms.devices(local=True)]


def device_count():
    return len(real_devices())


def sync(wait=False, reset_scope=True):
    """Runs the recorded operations, then the step's closures."""
    _metrics.count("MarkStep")
    _sync()
    closures, _closures[:] = list(_closures), []
    for closure, args in closures:
        closure(*args)


_closures = []


@contextlib.contextmanager
def step():
    """At the end of a block, runs the operations that it recorded."""
    yield
    sync()


def compile(f=None, full_graph=False, name=None, num_different_graphs_allowed=None):
    """Wraps a function so that sync() is called after it; without a function, like step()."""
    if f is None:
        return step()

    def compiled(*args, **kwargs):
        with step():
            return f(*args, **kwargs)

    return compiled


def manual_seed(seed, device=None):
    torch.manual_seed(seed)


def launch(fn, args=(), start_method="spawn", debug_single_process=False):
    """Calls `fn(0, *args)`: one process has all devices."""
    fn(0, *args)
