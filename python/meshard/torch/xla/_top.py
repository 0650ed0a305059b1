"""torch_xla."""

import contextlib

import torch

import meshard as ms

from ..eager._registration import sync as _sync
from . import _metrics, _runtime

__version__ = "2.9.0+meshard"


def device(index=None):
    """The device that all tensors of the program are on; meshes say on which of the real ones."""
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
    """Runs what is recorded. The step's closures run after it."""
    _metrics.count("MarkStep")
    _sync()
    closures, _closures[:] = list(_closures), []
    for closure, args in closures:
        closure(*args)


_closures = []


@contextlib.contextmanager
def step():
    """Runs what a block records at its end."""
    yield
    sync()


def compile(f=None, full_graph=False, name=None, num_different_graphs_allowed=None):
    """A function after which sync() is called; without a function, as step()."""
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
