"""Devices, counters, waiting and traces."""

import atexit
import contextlib

from . import _meshard
from ._array_api.creation import as_tensor
from ._meshard import (
    Device, MemoryStats, PlatformOptions, RuntimeCounters, TraceEvent, TraceSession, compute, platforms)
from ._progress import compile_line

__all__ = ["configure_runtime", "PlatformOptions", "restart_runtime", "devices", "Device", "platforms",
           "platform_version", "check_devices", "RuntimeCounters", "runtime_counters", "reset_runtime_counters",
           "MemoryStats", "memory_stats", "log_level", "set_log_level", "set_check_nans", "checks_nans", "check_nans",
           "set_compile_progress",
           "block_until_ready", "sync", "compute", "gather_to_all", "gather_to", "start_trace", "TraceSession",
           "TraceEvent"]


def configure_runtime(*, plugin="", platform="", cpu_devices=0, client_options=None, log=None, check_host_data=None,
                      platforms=()):
    """Configures the runtime. Call it before the first tensor is computed or placed.

    `plugin` is the path of the plugin, and `platform` the name of the default platform (`cpu`, `cuda`, `tpu`); without
    them, the variables MESHARD_PLUGIN and MESHARD_PLATFORM and the installed plugins decide. `cpu_devices` is the
    number of virtual devices of the CPU platform (0: MESHARD_CPU_DEVICES, otherwise 8). `client_options` are passed to the
    plugin after a check. `log` is a level of set_log_level(). `check_host_data` compares the data that the processes of
    a run place. `platforms` lists further platforms as PlatformOptions.

    Raises FailedPreconditionError if the runtime has already started.
    """
    _meshard.configure_runtime(plugin, platform, cpu_devices, dict(client_options or {}), log, check_host_data,
                               list(platforms))


def restart_runtime():
    """Replaces the clients of all platforms by new ones, for example after a failure inside a plugin.

    Values on the host do not change, and values on the old devices can still be read. Programs are compiled again.
    """
    _meshard.restart_runtime()


def devices(device_type="", *, local=False):
    """The devices of a platform (by default of the default one), with `local` only those of this process.

    >>> len(ms.devices()) == len(ms.devices(local=True))
    True
    """
    return _meshard.devices(device_type, local)


def platform_version(device_type=""):
    """What a platform's plugin says about its version."""
    return _meshard.platform_version(device_type)


def check_devices(mesh):
    """Raises NotFoundError unless all devices of the mesh exist, with the missing and the existing ones."""
    _meshard.check_devices(mesh)


def runtime_counters():
    """The totals of the runtime's work so far. Subtract two to see what a step did.

        before = runtime_counters()
        step(params, batch)
        print(runtime_counters() - before)

    >>> before = ms.runtime_counters()
    >>> _ = (ms.ones(3) + 1).numpy()
    >>> (ms.runtime_counters() - before).launches
    1
    """
    return _meshard.runtime_counters()


def reset_runtime_counters():
    """Sets the counters to 0, for all threads."""
    _meshard.reset_runtime_counters()


def memory_stats(where, device_type=""):
    """The memory of a device (its id) now, or of each device of a mesh in this process, as a list.

    Launches in flight may still hold or release some: call sync() first.
    """
    if isinstance(where, int):
        return _meshard.memory_stats(where, device_type)
    return _meshard.mesh_memory_stats(where)


def log_level():
    """What is written to the standard error stream: "off", "error", "warning" or "info"."""
    return _meshard.log_level()


def set_log_level(level):
    """Sets the log level: "off", "error" (the default), "warning" (also advice), "info" (also lines of plugins)."""
    _meshard.set_log_level(level)


def set_check_nans(on):
    """Turns NaN checks on or off, for all threads: a program that makes a NaN raises OutOfRangeError at its line.

    Checked programs wait for their results and are slow.

    >>> ms.set_check_nans(True)
    >>> try:
    ...     ms.log(ms.asarray(-1.0)).item()
    ... except ms.OutOfRangeError:
    ...     print("found")
    found
    >>> ms.set_check_nans(False)
    """
    _meshard.set_check_nans(on)


def checks_nans():
    """Whether NaN checks are on."""
    return _meshard.checks_nans()


@contextlib.contextmanager
def check_nans(on=True):
    """NaN checks in a `with` block, for all threads."""
    before = checks_nans()
    set_check_nans(on)
    try:
        yield
    finally:
        set_check_nans(before)


def set_compile_progress(progress):
    """Shows what is compiled for jit and for recorded values, in all threads.

    `progress` is a function of a text: `compiling "step"` when a compile begins, `compiling "step", 3 s` after each second
    (in the main thread), and `compiled "step" in 3.2 s`. With a bar of tqdm, it can be `bar.set_postfix_str`. True writes
    one line to the standard error stream, which disappears; None or False shows nothing, as at first. What the function
    raises ends the wait for the compile.
    """
    if progress is True:
        progress = compile_line()
    elif progress is False:
        progress = None
    elif progress is not None and not callable(progress):
        raise TypeError(f"progress must be a function, True, False or None, not {progress!r}")
    _meshard.set_compile_progress(progress)


def block_until_ready(*values):
    """Computes the tensors of structures and waits until they are on their devices; returns nothing.

    Without arguments it waits until every program launched so far has finished. Ctrl-C ends the wait; the programs run
    on in the background.

    >>> x = ms.ones(3) + 1
    >>> ms.block_until_ready(x)
    >>> x.is_recorded
    False
    """
    if values:
        _meshard.sync_tree(values)
    else:
        _meshard.sync_all()


def sync(*values):
    """The former name of block_until_ready(), for one more release."""
    block_until_ready(*values)


def gather_to_all(x):
    """The whole value as a NumPy array in all processes of the run, which all call this at the same place."""
    return _meshard.gather_to_all(as_tensor(x))


def gather_to(x, process):
    """The whole value as a NumPy array in one process, None in the others. All processes call it at the same place."""
    return _meshard.gather_to(as_tensor(x), process)


def start_trace(*, most_events=1_000_000):
    """Starts recording the runtime's activity, in all threads, and returns the TraceSession, also for `with`.

        with start_trace() as trace:
            step(params, batch)
        trace.write("trace.json")                     # for ui.perfetto.dev

    Later events than `most_events` are dropped and counted. Raises FailedPreconditionError if a trace is already on.
    """
    return _meshard.start_trace(most_events)


def _block_until_ready(self):
    """Computes the value, waits until it is on its devices, and returns the tensor. Ctrl-C ends the wait."""
    _meshard.block_until_ready(self)
    return self


_meshard.Tensor.block_until_ready = _block_until_ready
atexit.register(_meshard.finish_work)
