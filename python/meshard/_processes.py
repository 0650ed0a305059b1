"""Runs of several processes: a program that is started several times, on one machine or many."""

from . import _meshard
from ._meshard import ProcessInfo, ProcessLoss, Processes

__all__ = ["initialize_processes", "processes", "Processes", "ProcessInfo", "ProcessLoss"]


def initialize_processes(*, address="", rank=-1, count=0, secret="", local_devices=0, join_seconds=300.0,
                         silence_seconds=0.0, on_loss=None):
    """Joins the run, and returns this process's place in it. Call it once, in the main thread, before other work.

    Started by mpirun or srun, processes find each other by MPI; otherwise by `address` (host:port of process 0, or the
    path of a Unix socket), `rank`, `count` and `secret`, or the variables MESHARD_PROCESS_ADDRESS, _RANK, _COUNT and
    _SECRET. A program that is started once is one process. `local_devices` is the number of CPU devices of this process
    (0: MESHARD_CPU_DEVICES, otherwise 1). All processes have joined when it returns, or `join_seconds` have passed.
    A process that gives no sign of life for `silence_seconds` is lost (0: MESHARD_PROCESS_SILENCE_SECONDS, otherwise
    3.5); use more where machines may pause, such as virtual machines that move to another host.

    `on_loss` is called, in a thread of its own, with a ProcessLoss for each process that is lost; without it, the loss
    is printed and this process ends with status 1.

    Raises InvalidArgumentError for contradictory options, DeadlineExceededError naming missing processes.
    """
    return _meshard.initialize_processes(address, rank, count, secret, local_devices, join_seconds, silence_seconds,
                                         on_loss)


def processes():
    """The run that this process takes part in; one process before initialize_processes()."""
    return _meshard.processes()
