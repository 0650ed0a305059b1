#!/usr/bin/env python3
"""Runs under mpirun: every collective for every element type, and processes that are killed or suspended.

usage: check_mpi.py MPI_PROGRAM MEMBER_PROGRAM MPI_LIBRARY

Skipped (status 77) without mpirun (Debian package openmpi-bin) or without libmeshard_mpi.so (libopenmpi-dev).
MESHARD_PROCESS_KILLS is how often processes are killed and suspended (default 2 each; 50 in `./dev nightly`). The last
line is `N passed, N failed`.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

from mpi_runs import Failed, ended, environment, expect, start

MPI_PROGRAM, MEMBER_PROGRAM, LIBRARY = sys.argv[1:]
NIGHTLY = os.environ.get("MESHARD_NIGHTLY")
KILLS = int(os.environ.get("MESHARD_PROCESS_KILLS") or (50 if NIGHTLY else 2))
SEED = os.environ.get("MESHARD_TEST_SEED") or "1"
if SEED == "random":
    SEED = str(random.randrange(1 << 32))
SKIPPED = 77
LIMIT = 300


def mpirun(count, *command, **variables):
    return start(count, command, environment(LIBRARY, variables))


def collectives(count, *arguments):
    status, output, errors = ended(mpirun(count, MPI_PROGRAM, *arguments), LIMIT)
    counts = re.search(r"^(\d+) passed, (\d+) failed$", output, re.MULTILINE)
    expect(counts and status in (0, 1), f"{count} processes: status {status}: {output}{errors}")
    expect(status == 0 and counts[2] == "0", f"{count} processes: {counts[0]}\n{errors}")
    expect(f": {count} processes" in output and int(counts[1]) > 1000 * count, output)


def members():
    status, output, errors = ended(mpirun(3, MEMBER_PROGRAM, "join", 20000, "communicator", "publish", "p", "v",
                                          "barrier", "b", 20000, "finalize"), LIMIT)
    expect(status == 0 and not errors, status, output, errors)
    for line, count in [("a communicator", 3), ("publish: ok; first v", 3), ("barrier b: ok", 3), ("finalize: ok", 3)]:
        expect(output.splitlines().count(line) == count, output)


def normal_end_without_finalize():
    status, output, errors = ended(mpirun(3, MEMBER_PROGRAM, "join", 20000), LIMIT)
    expect(status == 0 and not errors, status, output, errors)


def missing_library():
    status, output, _ = ended(mpirun(2, MEMBER_PROGRAM, "join", 20000, MESHARD_MPI_LIBRARY="/nowhere/x.so"), LIMIT)
    expect(status != 0 and "MESHARD_MPI_LIBRARY=/nowhere/x.so cannot be read" in output, output)


def other_launcher():
    """The launcher says 4, but this process alone is in its MPI; or it belongs to another MPI than the library."""
    for variables, words in (({"PMI_RANK": "1", "SLURM_STEP_NUM_TASKS": "4"}, "SLURM_STEP_NUM_TASKS is 4, but MPI has 1 processes"),
                             ({"PMI_RANK": "1", "PMI_SIZE": "4"}, "started by a launcher of MPICH or Intel MPI, but ")):
        child = subprocess.run([MEMBER_PROGRAM, "join", "20000"], env=environment(LIBRARY, variables), text=True,
                               capture_output=True, timeout=LIMIT)
        expect(child.returncode == 2 and words in child.stdout, child.stdout, child.stderr)


def lost(how, generator):
    """One of four processes in an all-reduce is killed or suspended. mpirun ends all after the first that ends, so not
    each of the others has time to say why; at least one must."""
    child = mpirun(4, MEMBER_PROGRAM, "join", 20000, "members", "barrier", "b", 20000, "reduces")
    pids, barriers = {}, 0
    while barriers < 4:
        line = child.stdout.readline()
        expect(line, "mpirun has ended")
        if match := re.match(r"process (\d) \(pid (\d+) on", line):
            pids[int(match[1])] = int(match[2])
        barriers += line == "barrier b: ok\n"
    time.sleep(0.8 + generator.random() * 0.5)
    victim = generator.randrange(4)
    os.kill(pids[victim], how)
    status, _, errors = ended(child, 30)
    words = "died" if how == signal.SIGKILL else "does not run any more: it gives no sign of life"
    line = (rf"^\[processes\] process \d of 4 ends: process {victim} \(pid {pids[victim]} on .+\) {words}; "
            r'it was last in "all-reduce %12, train\.cc:42", [\d.]+ s ago$')
    expect(status != 0 and re.search(line, errors, re.MULTILINE), f"victim {victim}: status {status}: {errors}")
    # mpirun lets the victim continue before it ends it, and then the victim misses the others.
    other_lines = re.sub(line, "", errors, flags=re.MULTILINE)
    expect(not re.search(rf"process (?!{victim})\d of 4 ends: ", other_lines), errors)
    for _ in range(500):
        left = [pid for pid in pids.values() if os.path.exists(f"/proc/{pid}/exe")]  # not of a zombie
        if not left:
            return
        time.sleep(0.01)
    raise Failed(f"processes are left: {left}")


def main():
    if shutil.which("mpirun") is None:
        print("skipped: no mpirun (Debian package openmpi-bin)")
        return SKIPPED
    if not os.path.exists(LIBRARY):
        print("skipped: libmeshard_mpi.so was not built (Debian package libopenmpi-dev)")
        return SKIPPED
    generator = random.Random(SEED)
    tests = [(f"{collectives.__name__} of {count}", collectives, count) for count in (2, 3, 4, 5)]
    tests += [("collectives of 2 in MPI that the program started", collectives, 2, "serialized")]
    tests += [(test.__name__, test) for test in (members, normal_end_without_finalize, missing_library, other_launcher)]
    tests += [(f"{how.name} {number}", lost, how, generator)
              for number in range(KILLS) for how in (signal.SIGKILL, signal.SIGSTOP)]
    passed, failed = 0, 0
    for name, test, *arguments in tests:
        try:
            test(*arguments)
            passed += 1
        except (Failed, subprocess.TimeoutExpired) as failure:
            failed += 1
            print(f"FAILED {name} (MESHARD_TEST_SEED={SEED}): {failure}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
