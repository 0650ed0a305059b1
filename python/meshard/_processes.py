"""Runs of several processes: a program that is started several times, on one machine or many."""

from . import _meshard
from ._meshard import ProcessInfo, ProcessLoss, Processes

__all__ = ["initialize_processes", "processes", "Processes", "ProcessInfo", "ProcessLoss"]


def initialize_processes(*, address="", rank=-1, count=0, secret="", local_devices=0, collectives="automatic",
                         join_seconds=300.0, silence_seconds=0.0, on_loss=None):
    """Joins the run, and returns this process's place in it. Call it once, in the main thread, before other work.

    Started by mpirun, processes find each other by MPI; otherwise by `address` (host:port of process 0, or the path of
    a Unix socket), `rank`, `count` and `secret`, by the variables MESHARD_PROCESS_ADDRESS, _RANK, _COUNT and _SECRET,
    or by those of torchrun, srun, an indexed Job of Kubernetes or JAX. A program that is started once is one process.
    `collectives` carry what CPU devices of different processes exchange: "mpi", "gloo", "none", or "automatic", which is
    MESHARD_COLLECTIVES, otherwise MPI if it has started the processes, else Gloo. `local_devices` is the number of CPU devices of this process
    (0: MESHARD_CPU_DEVICES, otherwise 1). All processes have joined when it returns, or `join_seconds` have passed.
    A process that gives no sign of life for `silence_seconds` is lost (0: MESHARD_PROCESS_SILENCE_SECONDS, otherwise
    3.5); use more where machines may pause, such as virtual machines that move to another host.

    `on_loss` is called, in a thread of its own, with a ProcessLoss for each process that is lost; without it, the loss
    is printed and this process ends with status 1.

    Raises InvalidArgumentError for contradictory options, DeadlineExceededError naming missing processes.
    """
    return _meshard.initialize_processes(address, rank, count, secret, local_devices, collectives, join_seconds,
                                         silence_seconds, on_loss)


def processes():
    """The run that this process takes part in; one process before initialize_processes()."""
    return _meshard.processes()
