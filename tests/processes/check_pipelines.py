#!/usr/bin/env python3
"""Trains pipelines in several processes, and in one; losses and parameters must be equal to 1e-6 over 20 steps.

usage: check_pipelines.py PROGRAM EXAMPLES_FOLDER MPI_LIBRARY

Also transfers random values between random shardings: MESHARD_ACROSS_PROGRAMS times (default 70) on each set of processes.

Skipped (status 77) without mpirun, libmeshard_mpi.so or a plugin. The last line is `N passed, N failed`.
"""

import os
import sys
import tempfile

from across_runs import example, expect_equal, run, run_all
from mpi_runs import expect

PROGRAM, EXAMPLES = (os.path.abspath(path) for path in sys.argv[1:3])
NIGHTLY = os.environ.get("MESHARD_NIGHTLY")
TRANSFERS = int(os.environ.get("MESHARD_ACROSS_PROGRAMS") or (500 if NIGHTLY else 70))
SEED = os.environ.get("MESHARD_TEST_SEED", "1")


def trains(devices, stages, schedule, *options):
    """`devices`: the number of processes with one device each, or the number of devices of each."""
    total = devices if isinstance(devices, int) else sum(devices)
    with tempfile.TemporaryDirectory() as folder:
        status, one, errors = run(1, PROGRAM, total, stages, schedule, *options, folder=folder)
        expect(status == 0 and one.count("loss ") == 20, "one process:", status, one, errors)
        status, many, errors = run(devices, PROGRAM, total, stages, schedule, *options, folder=folder)
    expect(status == 0, f"processes with {devices} devices: status {status}: {many}{errors}")
    expect_equal(one, many)


def transfers(devices, count):
    total = devices if isinstance(devices, int) else sum(devices)
    status, output, errors = run(devices, PROGRAM, total, count, "transfers", SEED)
    expect(status == 0 and f"{count} transfers, 0 wrong" in output, status, output, errors)


def main():
    runs = [(2, 2, "gpipe"), (2, 2, "1f1b", "tied"), (2, 2, "zb-h1", "clipped"),
            (3, 3, "1f1b", "clipped", "tied"), (3, 3, "zb-h1", "even"), ((1, 1), 4, "interleaved", "even"),
            # Stages of several processes, and several stages of one.
            (4, 2, "1f1b", "tied"), (4, 3, "gpipe", "clipped"), (4, 4, "1f1b", "even"), (4, 4, "zb-h1", "even", "tied"),
            ((2, 2), 3, "zb-h1"), ((1, 3), 2, "gpipe", "even"),
            # Eight devices of four processes.
            ((2, 2, 2, 2), 4, "1f1b", "even", "tied", "clipped"), ((2, 2, 2, 2), 4, "zb-h1"),
            ((2, 2, 2, 2), 4, "gpipe", "even"), ((2, 2, 2, 2), 4, "interleaved", "even", "tied"),
            ((2, 2, 2, 2), 3, "1f1b"), ((4, 4), 2, "1f1b", "even")]
    gpt = ("--steps", 20, "--layers", 4, "--width", 32, "--heads", 2, "--hidden", 48, "--context", 32, "--batch", 16,
           "--sample", 4, "--microbatches", 4)
    digits = ("--steps", 20)
    four = (2, 2, 2, 2)
    examples = [(four, "gpt", *gpt, "--pipeline", 4, "--mesh", "data=2", "--schedule", "1f1b"),
                (four, "digits", *digits, "--pipeline", 4, "--mesh", "2x1"),
                (four, "digits", *digits, "--pipeline", 2, "--mesh", "2x2", "--schedule", "zb-h1")]
    if NIGHTLY:
        examples += [(four, "gpt", *gpt, "--pipeline", 4, "--mesh", "data=2", "--schedule", "zb-h1"),
                     (four, "gpt", *gpt, "--pipeline", 3, "--mesh", "data=2", "--schedule", "gpipe"),
                     (four, "gpt", *gpt, "--pipeline", 4, "--mesh", "data=4", "--schedule", "interleaved"),
                     (four, "gpt", *gpt, "--pipeline", 2, "--mesh", "data=2,model=2")]
    tests = [(f"transfers of {devices}", transfers, devices, TRANSFERS) for devices in (3, (2, 2), (3, 1, 4))]
    tests += [(f"{name} on {devices} {' '.join(map(str, arguments[-6:]))}", example, EXAMPLES, devices, name, *arguments)
              for devices, name, *arguments in examples]
    tests += [(f"{schedule} with {stages} stages on {devices} {' '.join(options)}", trains, devices, stages, schedule,
               *options) for devices, stages, schedule, *options in runs]
    return run_all(PROGRAM, tests, probe=(2, 2, "1f1b"))


if __name__ == "__main__":
    sys.exit(main())
