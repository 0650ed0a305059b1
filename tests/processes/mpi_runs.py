"""Starts programs in several processes under mpirun and waits for them: what the checks of processes have in common.

MESHARD_TEST_LAUNCHER is another launcher than mpirun: a KIND of start_processes.py.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# Two processes would else be bound to a core each, with all their threads, also those that give signs of life.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
KIND = os.environ.get("MESHARD_TEST_LAUNCHER")
LAUNCHER = [sys.executable, str(pathlib.Path(__file__).parent / "start_processes.py"), KIND] if KIND else MPIRUN
# What a process writes to its standard error goes to a file of its own: mpirun drops what arrives while it ends a run.
RANK = "".join("${%s:-" % name for name in ("MESHARD_PROCESS_RANK", "JAX_PROCESS_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                              "RANK", "SLURM_PROCID")) + "0" + "}" * 6
TO_FILE = ["sh", "-c", f'exec "$@" 2>"$0.{RANK}"']
LOOK = 3  # seconds between two looks at what still runs


class Failed(Exception):
    pass


def expect(holds, *what):
    if not holds:
        raise Failed(" ".join(str(w) for w in what))


def is_missing(library):
    """Why no processes can be started, or nothing."""
    if KIND is None and shutil.which("mpirun") is None:
        return "no mpirun (Debian package openmpi-bin)"
    if not os.path.exists(library):
        return f"{os.path.basename(library)} was not built (Debian: libopenmpi-dev, libgloo-dev)"
    return None


def environment(library, variables):
    """Without the variables of another run, with the library for MPI or Gloo of this build."""
    ours = {k: v for k, v in os.environ.items()
            if not k.startswith(("MESHARD_PROCESS_", "MESHARD_CPU_DEVICES", "OMPI_", "PMIX_", "PMI_", "JAX_"))}
    name = "MESHARD_GLOO_LIBRARY" if "gloo" in os.path.basename(library) else "MESHARD_MPI_LIBRARY"
    return ours | {name: library, "TF_CPP_MIN_LOG_LEVEL": "3"} | variables


def start(devices, words, variables, folder=None, launcher=LAUNCHER):
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
