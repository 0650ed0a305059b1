"""Runs `meshard doctor --processes` alone, with MESHARD_PROCESS_* and under mpirun, in working and broken runs.

usage: check_doctor_processes.py TOOL FAKE_PLUGIN MPI_LIBRARY

Tests under mpirun are left out without mpirun (Debian package openmpi-bin) or libmeshard_mpi.so. The last line is
`N passed, N failed`.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

TOOL, FAKE, LIBRARY = (os.path.abspath(path) for path in sys.argv[1:])
LIMIT = 120
LAUNCHERS = ("MESHARD_PROCESS_ADDRESS", "MESHARD_PROCESS_RANK", "MESHARD_PROCESS_COUNT", "MESHARD_PROCESS_SECRET", "OMPI_", "PMIX_", "PMI_", "SLURM_")
DOCTOR = [TOOL, "doctor", "--processes"]
passed = failed = 0


def check(what, holds, *shown):
    global passed, failed
    passed, failed = passed + bool(holds), failed + (not holds)
    if not holds:
        print(f"FAILED {what}:", *shown, flush=True)


def start(command, **variables):
    ours = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS)}
    ours |= {"MESHARD_MPI_LIBRARY": LIBRARY, "MESHARD_PLUGIN": FAKE} | variables
    return subprocess.Popen(command, env={k: v for k, v in ours.items() if v is not None}, encoding="utf-8", errors="replace",
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def ended(child):
    try:
        output, errors = child.communicate(timeout=LIMIT)
        return child.returncode, output, errors
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, 9)
        child.communicate()
        return -1, "", f"still runs after {LIMIT} s"


def run(*words, **variables):
    return ended(start([*DOCTOR, *words], **variables))


def mpirun(*words, **variables):
    return ended(start(["mpirun", "--allow-run-as-root", "--oversubscribe", *words], **variables))


def by_variables(port, secrets, *words):
    """One process for each secret, that is not None."""
    children = [start([*DOCTOR, *words], MESHARD_PROCESS_ADDRESS="127.0.0.1:" + port, MESHARD_PROCESS_RANK=str(rank),
                      MESHARD_PROCESS_COUNT=str(len(secrets)), MESHARD_PROCESS_SECRET=secret, MESHARD_COLLECTIVES="none")
                for rank, secret in enumerate(secrets) if secret]
    return [ended(child) for child in children]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def alone(empty):
    status, output, errors = run()
    check("alone", status == 0 and errors == "" and "Run of one process" in output, status, output, errors)
    for part in ("mpirun -n 4 meshard doctor --processes", "srun --mpi=pmix", "MESHARD_PROCESS_ADDRESS", "plugin      " + FAKE):
        check(f"alone: {part}", part in output, output)
    if os.path.exists(LIBRARY):
        check("alone: MPI", f"library     {LIBRARY}\n" in output and re.search(r"MPI         \S", output), output)
    status, output, errors = run(MESHARD_MPI_LIBRARY=os.path.join(empty, "none.so"), PATH=empty, HOME=empty, MESHARD_PLUGIN=None,
                                 MESHARD_CACHE=empty)
    for part in ("mpirun      not on PATH", "srun        not on PATH", "none.so cannot be read"):
        check(f"nothing installed: {part}", status == 0 and part in output, status, output, errors)


def variables():
    secret = "0123456789abcdef"
    both = by_variables(free_port(), [secret, secret])
    check("by variables", [status for status, _, _ in both] == [0, 0] and both[1][1] == "", both)
    for part in ("Run of 2 processes", "launcher    MESHARD_PROCESS_ADDRESS\n", "none between CPU devices",
                 "barrier     ", "everything works"):
        check(f"by variables: {part}", part in both[0][1], both)
    both = by_variables(free_port(), [secret, "another secret!!"], "--limit", "2")
    check("wrong secret", [status for status, _, _ in both] == [2, 2], both)
    check("wrong secret: the message of the other", "unauthenticated" in both[1][2] or "secret" in both[1][2], both)
    check("wrong secret: process 0 names it", "process 1" in both[0][2], both)
    first, = by_variables(free_port(), [secret, None], "--limit", "1")
    check("a missing process", first[0] == 2 and "within 1 s" in first[2] and "process 1" in first[2], first)
    status, output, errors = run(MESHARD_PROCESS_RANK="0")
    check("incomplete variables", status == 2 and "MESHARD_PROCESS_ADDRESS" in errors, status, output, errors)
    status, output, errors = run(RANK="5", WORLD_SIZE="4", MASTER_ADDR="alpha", MASTER_PORT="29500")
    check("contradiction", status == 2 and "RANK=5 with WORLD_SIZE=4" in errors, status, output, errors)
    status, output, errors = run(RANK="0", WORLD_SIZE="1", MASTER_ADDR="alpha", MASTER_PORT="29500")
    check("launchers", status == 0 and re.search(r"^  torchrun +recognized from RANK=0, WORLD_SIZE=1", output, re.M) and
          re.search(r"^  mpirun \(Open MPI\) +OMPI_COMM_WORLD_RANK is not set$", output, re.M), status, output, errors)


def under_mpirun(empty):
    status, output, errors = mpirun("-n", "3", *DOCTOR, "--limit", "60", MESHARD_PLUGIN=os.environ.get("MESHARD_PLUGIN"))
    if "no plugin" in output:
        print("no CPU plugin: no program ran over the processes")
    else:
        check("3 processes", status == 0 and "3 processes, everything works" in output, status, output, errors)
        check("the program", "program     works" in output, output)
    check("one report", output.count("Run of 3 processes") == 1 and output.count("all-reduce") == 1, output)
    rows = re.findall(r"^  (\d) +(\S+) +(\d+) +1 +\d+ of (\d+) +(?:(-?\d+) us \+- (\d+) us)?$", output, re.M)
    check("a row for each process", [row[0] for row in rows] == ["0", "1", "2"] and len({row[2] for row in rows}) == 3, output)
    # All of them read one clock, so the true offset is 0. Both numbers are rounded down.
    check("clocks", all(abs(int(row[4])) <= int(row[5]) + 1 for row in rows[1:]), rows)
    crowded = 3 > int(rows[0][3]) if rows else None
    check("crowding", ("has 3 processes and" in output) == crowded, output)
    status, output, errors = mpirun("-n", "3", *DOCTOR, MESHARD_MPI_LIBRARY=os.path.join(empty, "none.so"))
    check("no library", status != 0 and output == "" and errors.count("none.so cannot be read") == 1, status, output, errors)
    status, output, errors = mpirun("-n", "1", *DOCTOR, "--limit", "2", ":", "-n", "1", "sleep", "60")
    check("a process that does not start MPI", status != 0 and "the start of MPI in all processes" in errors, status, output, errors)
    other = os.path.join(empty, "other.so")
    shutil.copy(FAKE, other)
    with open(other, "ab") as file:
        file.write(b"\n")
    status, output, errors = mpirun("-n", "2", *DOCTOR, ":", "-n", "1", "-x", "MESHARD_PLUGIN=" + other, *DOCTOR)
    check("different plugins", status != 0 and "the plugins differ" in output, status, output, errors)
    found = re.findall(r"^    (process(?:es)? [\d and]+): .*sha256 (\w+)$", output, re.M)
    check("different plugins: who has which", sorted(who for who, _ in found) == ["process 2", "processes 0 and 1"] and
          found[0][1] != found[1][1], output)
    check("different plugins: the rest is checked", "all-reduce" in output and "program" not in output, output)
    status, output, errors = mpirun("-n", "2", *DOCTOR, MESHARD_PLUGIN=os.path.join(empty, "absent.so"))
    check("no such plugin", status != 0 and "processes 0 and 1: MESHARD_PLUGIN names" in output, output)
    status, output, errors = mpirun("-n", "2", *DOCTOR, MESHARD_PLUGIN=None, HOME=empty, MESHARD_CACHE=empty, PYTHONPATH=None,
                                    VIRTUAL_ENV=None)
    check("no plugin", "no plugin for CPUs" not in output or (status != 0 and "processes 0 and 1: no plugin" in output), output)


with tempfile.TemporaryDirectory() as folder:
    alone(folder)
    variables()
    if shutil.which("mpirun") and os.path.exists(LIBRARY):
        under_mpirun(folder)
    else:
        print("no mpirun (Debian package openmpi-bin) or no libmeshard_mpi.so (libopenmpi-dev): runs by MPI are not tested")
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
