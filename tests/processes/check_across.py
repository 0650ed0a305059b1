#!/usr/bin/env python3
"""Runs programs in N processes under mpirun, and in one process with N devices; their output must be equal.

usage: check_across.py PROGRAM RANDOM EXAMPLES_FOLDER MPI_LIBRARY

Skipped (status 77) without mpirun, libmeshard_mpi.so or a plugin. MESHARD_ACROSS_PROGRAMS is the number of random
programs (default 30; 500 in `./dev nightly`). The last line is `N passed, N failed`.
"""

import os
import re
import sys

from across_runs import example, programs_on_disk, random_programs, run, run_all, scenario
from mpi_runs import expect

PROGRAM, RANDOM, EXAMPLES = (os.path.abspath(path) for path in sys.argv[1:4])
NIGHTLY = os.environ.get("MESHARD_NIGHTLY")
PROGRAMS = int(os.environ.get("MESHARD_ACROSS_PROGRAMS") or (500 if NIGHTLY else 30))
SEED = os.environ.get("MESHARD_TEST_SEED", "1")


def printing():
    status, output, errors = run(4, PROGRAM, 4, "printing")
    expect(status == 0, output, errors)
    expect("f32[8] on devices 0,1,2,3, of which this process has device 0 with [0:2]:\n[0, 1] f32[2]" in output, output)
    expect("devices 0,1,2,3\n28 f32[]" in output, output)


def from_all(output, count):
    lines = [line for line in output.splitlines() if line.startswith("process ")]
    expect(sorted(line.split(":")[0] for line in lines) == [f"process {k}" for k in range(count)], output)
    return lines


def differing_programs():
    status, output, errors = run(3, PROGRAM, 3, "differ")
    expect(status == 0, output, errors)
    for line in from_all(output, 3):
        expect("processes 0 and 1: run \"differs\"" in line and "process 2: run \"differs\"" in line, line)
    first = r"the first difference is `.*stablehlo\.log .*` at .*across_program\.cc:(\d+) in process 0, and " \
            r"`.*stablehlo\.exponential .*` at .*across_program\.cc:(\d+) in process 2"
    found = re.findall(first, output)
    expect(len(found) == 3, output)
    expect(all(int(log) == int(exp) + 1 for log, exp in found), found)


def other_program():
    status, output, errors = run(3, PROGRAM, 3, "other_program")
    expect(status == 0, output, errors)
    for line in from_all(output, 3):
        expect('processes 0 and 1: run "lazy"' in line and 'process 2: run "lazy"' in line, line)


def absent_process():
    status, output, errors = run(3, PROGRAM, 3, "absent", MESHARD_PROCESS_WAIT_SECONDS="3")
    expect(status == 0, output, errors)
    for line in from_all(output, 2):
        expect("deadline exceeded" in line and "process 2 has not come within 3 s to run" in line, line)


def other_host_data():
    status, output, errors = run(3, PROGRAM, 3, "other_data", MESHARD_CHECK_HOST_DATA="1")
    expect(status == 0, output, errors)
    for line in from_all(output, 3):
        expect("processes 0 and 1: place f32[8]" in line and "process 2: place f32[8]" in line, line)
    status, output, errors = run(3, PROGRAM, 3, "other_data")
    expect(status == 0 and output.count("no error") == 3, output, errors)


def main():
    tests = [(f"{name} of {count}", scenario, PROGRAM, count, name)
             for name in ("train", "uneven", "resharding", "explicit_axes", "loops", "parts", "lazy", "collectives")
             for count in (4,)]
    tests += [("train of 2", scenario, PROGRAM, 2, "train"), ("train of 8", scenario, PROGRAM, 8, "train"),
              ("uneven of 3", scenario, PROGRAM, 3, "uneven", "parts", "lazy"),
              ("submeshes", scenario, PROGRAM, 4, "submeshes")]
    tests += [(test.__name__, test)
              for test in (printing, differing_programs, other_program, absent_process, other_host_data)]
    tests.append(("programs on disk", programs_on_disk, PROGRAM, 2))
    digits = ("--steps", 15, "--mesh")
    gpt = ("--steps", 5, "--layers", 2, "--width", 32, "--heads", 2, "--hidden", 48, "--context", 32, "--batch", 8,
           "--sample", 4, "--mesh")
    tests += [(f"{name} of {count}", example, EXAMPLES, count, name, *arguments)
              for count, name, *arguments in ((2, "digits", *digits, "2x1"), (4, "digits", *digits, "2x2"),
                                              (8, "digits", *digits, "2x4"), (2, "gpt", *gpt, "data=1,model=2"),
                                              (4, "gpt", *gpt, "data=2,model=2"), (8, "gpt", *gpt, "data=4,model=2"),
                                              (4, "heat", "--mesh", "2x2", "--size", 16, "--steps", 4))]
    tests += [(f"random programs from {first}", random_programs, RANDOM, 4, first, min(10, int(SEED) + PROGRAMS - first))
              for first in range(int(SEED), int(SEED) + PROGRAMS, 10)]
    return run_all(PROGRAM, tests)


if __name__ == "__main__":
    sys.exit(main())
