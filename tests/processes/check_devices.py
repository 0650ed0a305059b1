#!/usr/bin/env python3
"""Runs programs in processes that have several devices each, and in one process; their output must be equal.

usage: check_devices.py PROGRAM RANDOM EXAMPLES_FOLDER MPI_LIBRARY

Skipped (status 77) without mpirun, libmeshard_mpi.so or a plugin. MESHARD_ACROSS_PROGRAMS is the number of random
programs (default 10; 500 in `./dev nightly`). The last line is `N passed, N failed`.
"""

import os
import sys

from across_runs import example, programs_on_disk, random_programs, run, run_all, scenario
from mpi_runs import expect

PROGRAM, RANDOM, EXAMPLES = (os.path.abspath(path) for path in sys.argv[1:4])
NIGHTLY = os.environ.get("MESHARD_NIGHTLY")
PROGRAMS = int(os.environ.get("MESHARD_ACROSS_PROGRAMS") or (500 if NIGHTLY else 10))
SEED = int(os.environ.get("MESHARD_TEST_SEED", "1"))
SCENARIOS = ("some_devices", "rounds", "train", "uneven", "resharding", "submeshes", "explicit_axes", "loops", "parts", "lazy",
             "collectives", "checkpoint")


def printing():
    status, output, errors = run((3, 1), PROGRAM, 4, "printing")
    expect(status == 0, output, errors)
    expect("f32[8] on devices 0,1,2,3, of which this process has device 0 with [0:2]:\n[0, 1] f32[2], device 1 with [2:4]:\n"
           "[2, 3] f32[2], device 2 with [4:6]:\n[4, 5] f32[2]\ndevices 0,1,2,3\n28 f32[]" in output, output)


def invalid_number():
    status, output, errors = run(2, PROGRAM, 2, "lazy", MESHARD_CPU_DEVICES="many")
    expect(status != 0 and "MESHARD_CPU_DEVICES is 'many'" in errors, status, output, errors)


def other_devices():
    """A mesh of more devices than the run has."""
    status, output, errors = run((2, 1), PROGRAM, 4, "lazy")
    expect(status != 0 and "device 3 does not exist: platform cpu has devices 0,1,2 in the processes of the run" in errors,
           status, output, errors)


def main():
    tests = [(f"scenarios of {devices}", scenario, PROGRAM, devices, *SCENARIOS) for devices in ((2, 2), (1, 3))]
    tests += [(f"train of {devices}", scenario, PROGRAM, devices, "train") for devices in ((4, 4), (2, 2, 2, 2))]
    tests += [(test.__name__, test) for test in (printing, invalid_number, other_devices)]
    tests.append(("programs on disk", programs_on_disk, PROGRAM, (2, 2)))
    digits = ("--steps", 15, "--mesh", "2x4")
    gpt = ("--steps", 3, "--layers", 1, "--width", 32, "--heads", 2, "--hidden", 48, "--context", 32, "--batch", 8,
           "--sample", 4, "--mesh", "data=4,model=2")
    heat = ("--mesh", "2x4", "--size", 16, "--steps", 4)
    tests += [(f"{name} of {devices}", example, EXAMPLES, devices, name, *arguments)
              for devices, name, *arguments in (((4, 4), "digits", *digits), ((2, 2, 2, 2), "digits", *digits),
                                                ((4, 4), "gpt", *gpt), ((2, 2, 2, 2), "heat", *heat))]
    for first in range(SEED, SEED + PROGRAMS, 5):
        devices = ((2, 2), (1, 3))[(first - SEED) // 5 % 2]
        tests.append((f"random programs from {first} on {devices}", random_programs, RANDOM, devices, first,
                      min(5, SEED + PROGRAMS - first)))
    return run_all(PROGRAM, tests)


if __name__ == "__main__":
    sys.exit(main())
