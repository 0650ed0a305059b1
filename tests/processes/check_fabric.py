#!/usr/bin/env python3
"""Runs fabric_program, which checks what every fabric must do, over each implementation: devices of one process and
its fast path, processes that meshard joins (MPI), and processes that the plugin joins (played by the fake plugin).

usage: check_fabric.py FABRIC_PROGRAM FAKE_PLUGIN MPI_LIBRARY

Implementations that the machine lacks (no plugin, no mpirun) are skipped. The last line is `N passed, N failed`.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from across_runs import environment_of, run
from mpi_runs import Failed, expect

PROGRAM, FAKE, LIBRARY = (os.path.abspath(path) for path in sys.argv[1:])
LIMIT = 120  # seconds until a run counts as hanging
TRAITS = ("computes", "sends")


class Skipped(Exception):
    pass


def real(processes, devices):
    """With the machine's plugin; `devices` of each process."""
    if processes > 1 and (shutil.which("mpirun") is None or not os.path.exists(LIBRARY)):
        raise Skipped("no mpirun (Debian package openmpi-bin), or no libmeshard_mpi.so (libopenmpi-dev)")
    counts = processes if processes == 1 else [devices] * processes
    status, output, errors = run(counts, PROGRAM, processes * devices, *TRAITS, limit=LIMIT,
                                 MESHARD_PROCESS_WAIT_SECONDS="60")
    if "no plugin" in output:
        raise Skipped("no plugin")
    expect(status == 0 and output.count("\n0 of ") + output.startswith("0 of ") == processes, output, errors)


def fake(processes, devices):
    traits = TRAITS[1:] if processes == 1 else ()
    with tempfile.TemporaryDirectory() as folder:
        variables = {"MESHARD_PLUGIN": FAKE, "MESHARD_PLATFORM": "cuda", "MESHARD_FAKE_PLATFORM": "cuda",
                     "MESHARD_FAKE_DEVICES": str(devices), "MESHARD_PROCESS_WAIT_SECONDS": "60",
                     "MESHARD_COLLECTIVES": "none"}
        children = []
        for rank in range(processes):
            if processes > 1:
                variables |= {"MESHARD_PROCESS_ADDRESS": str(pathlib.Path(folder) / "socket"),
                              "MESHARD_PROCESS_RANK": str(rank), "MESHARD_PROCESS_COUNT": str(processes)}
            children.append(subprocess.Popen([PROGRAM, str(processes * devices), *traits], text=True,
                                             env=environment_of(variables), stdin=subprocess.DEVNULL,
                                             stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        try:
            ends = [(child.communicate(timeout=LIMIT), child) for child in children]
        except subprocess.TimeoutExpired:
            raise Failed(f"a process still runs after {LIMIT} s") from None
        finally:
            for child in children:
                child.kill()
    for (output, errors), child in ends:
        expect(child.returncode == 0, output, errors)


INSTANCES = [("fake plugin, one process", fake, 1, 4), ("fake plugin, processes that it joins: 2", fake, 2, 2),
             ("fake plugin, processes that it joins: 4", fake, 4, 1), ("real plugin, one process", real, 1, 4),
             ("real plugin, processes that meshard joins: 2", real, 2, 2),
             ("real plugin, processes that meshard joins: 4", real, 4, 1)]


def main():
    passed, failed = 0, 0
    wanted = os.environ.get("MESHARD_FABRIC_TEST", "")
    for name, check, processes, devices in INSTANCES:
        if wanted not in name:
            continue
        try:
            check(processes, devices)
            passed += 1
        except Skipped as reason:
            print(f"skipped {name}: {reason}")
        except Failed as failure:
            failed += 1
            print(f"FAILED {name}: {failure}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
