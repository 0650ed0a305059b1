"""Starts programs in several processes under mpirun and waits for them: what the checks of processes have in common."""

import os
import pathlib
import signal
import subprocess
import tempfile
import time

# Two processes would else be bound to a core each, with all their threads, also those that give signs of life.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
# What a process writes to its standard error goes to a file of its own: mpirun drops what arrives while it ends a run.
TO_FILE = ["sh", "-c", 'exec "$@" 2>"$0.$OMPI_COMM_WORLD_RANK"']
LOOK = 3  # seconds between two looks at what still runs


class Failed(Exception):
    pass


def expect(holds, *what):
    if not holds:
        raise Failed(" ".join(str(w) for w in what))


def environment(library, variables):
    """Without the variables of another run, with libmeshard_mpi.so of this build."""
    ours = {k: v for k, v in os.environ.items()
            if not k.startswith(("MESHARD_PROCESS_", "MESHARD_CPU_DEVICES", "OMPI_", "PMIX_"))}
    return ours | {"MESHARD_MPI_LIBRARY": library, "TF_CPP_MIN_LOG_LEVEL": "3"} | variables


def start(devices, words, variables, folder=None, launcher=MPIRUN):
    """Starts a program in several processes: `devices` is how many of them, or the number of devices of each. 1: without
    mpirun. `variables` is the environment. Its end is waited for with ended()."""
    words = [str(word) for word in words]
    errors = None
    if devices != 1:
        errors = tempfile.TemporaryDirectory()
        words = [*TO_FILE, os.path.join(errors.name, "errors"), *words]
    if isinstance(devices, int):
        words = [*launcher, "-n", str(devices), *words] if devices > 1 else words
    else:
        parts = [["-n", "1", "-x", f"MESHARD_CPU_DEVICES={count}", *words] for count in devices]
        words = [*launcher, *parts[0]] + [word for part in parts[1:] for word in [":", *part]]
    child = subprocess.Popen(words, env=variables, cwd=folder, encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    child.folder_of_errors = errors
    return child


def has_no_running_child(pid):
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = entry.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            return False
    return True


def waits_for_nobody(child):
    """Whether mpirun has started processes, and none of them runs any more, whether or not mpirun has noticed."""
    return (child.folder_of_errors is not None and any(pathlib.Path(child.folder_of_errors.name).iterdir())
            and has_no_running_child(child.pid))


def ended(child, limit):
    """Waits for what start() started.
    @return status, output, errors; the status is that of a kill if all processes had ended but mpirun had not: of Open
    MPI 4.1, it may wait for ever in PMIx_server_finalize when it has ended a run
    """
    deadline, looks = time.monotonic() + limit, 0
    while True:
        try:
            output, errors = child.communicate(timeout=max(0.01, min(LOOK, deadline - time.monotonic())))
            break
        except subprocess.TimeoutExpired:
            looks = looks + 1 if waits_for_nobody(child) else 0
            late = time.monotonic() >= deadline
            if looks < 3 and not late:
                continue
        os.killpg(child.pid, signal.SIGKILL)
        output, errors = child.communicate()
        if late:
            raise Failed(f"{child.args} still runs after {limit} s: {output}{errors}")
        break
    if child.folder_of_errors:
        files = sorted(pathlib.Path(child.folder_of_errors.name).iterdir(), key=lambda file: int(file.suffix[1:]))
        errors = "".join(file.read_text(errors="replace") for file in files) + errors
        child.folder_of_errors.cleanup()
    return child.returncode, output, errors
