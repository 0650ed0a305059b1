#!/usr/bin/env python3
"""Starts the processes of a run as mpirun does, by other launchers.

usage: start_processes.py KIND -n N [-x NAME=VALUE] PROGRAM [ARGUMENT...] [: -n N ...]

KIND is variables (MESHARD_PROCESS_*, a Unix socket), jax (the variables of jax.distributed), torchrun, mpich
(mpiexec.hydra) or slurm (srun). `:` begins further processes with other words; only for variables and jax. When a
process fails, those that still run after a while are ended. The status is that of the first process that failed.
MESHARD_TEST_TORCHRUN is the program torchrun.
"""

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE = 15  # seconds that the others have after a failure: the product itself ends them within 5


def parts_of(words):
    """[(count, variables, command)]"""
    parts = []
    while words:
        end = words.index(":") if ":" in words else len(words)
        part, words = words[:end], words[end + 1:]
        count, variables = 1, {}
        while part and part[0] in ("-n", "-x"):
            if part[0] == "-n":
                count = int(part[1])
            else:
                name, _, value = part[1].partition("=")
                variables[name] = value
            part = part[2:]
        parts.append((count, variables, part))
    return parts


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_all(kind, parts, folder):
    total, children = sum(count for count, _, _ in parts), []
    secret, port = secrets.token_hex(16), free_port()
    for count, variables, command in parts:
        for _ in range(count):
            rank = str(len(children))
            if kind == "jax":
                ours = {"JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}", "JAX_PROCESS_ID": rank,
                        "JAX_NUM_PROCESSES": str(total), "MESHARD_PROCESS_SECRET": secret}
            else:
                ours = {"MESHARD_PROCESS_ADDRESS": os.path.join(folder, "socket"), "MESHARD_PROCESS_RANK": rank,
                        "MESHARD_PROCESS_COUNT": str(total)}
            children.append(subprocess.Popen(command, env=os.environ | variables | ours))
    return children


def wait_for_all(children):
    status, deadline = 0, None
    while any(child.poll() is None for child in children):
        failed = [child.returncode for child in children if child.returncode]
        if failed and deadline is None:
            status, deadline = failed[0], time.monotonic() + PATIENCE
        if deadline is not None and time.monotonic() > deadline:
            for child in children:
                child.kill()
        time.sleep(0.02)
    failed = [child.returncode for child in children if child.returncode]
    return status or (failed[0] if failed else 0)


def main():
    kind, parts = sys.argv[1], parts_of(sys.argv[2:])
    if kind in ("variables", "jax"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        with tempfile.TemporaryDirectory() as folder:
            status = wait_for_all(start_all(kind, parts, folder))
        return 128 - status if status < 0 else status
    (count, variables, command), = parts
    os.environ.update(variables)
    launchers = {"torchrun": [os.environ.get("MESHARD_TEST_TORCHRUN", "torchrun"), "--nproc-per-node", str(count),
                              "--master-port", str(free_port()), "--no-python"],
                 "mpich": ["mpiexec.hydra", "-n", str(count)],
                 "slurm": ["srun", "--mpi=none", "--overcommit", "--quiet", "-n", str(count)]}
    words = [*launchers[kind], *command]
    os.execvp(words[0], words)


if __name__ == "__main__":
    sys.exit(main())
