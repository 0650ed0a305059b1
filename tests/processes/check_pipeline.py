#!/usr/bin/env python3
"""Runs pipelines whose stages are on the devices of several processes, under mpirun.

usage: check_pipeline.py PROGRAM MPI_LIBRARY

Skipped (status 77) without mpirun, libmeshard_mpi.so or a plugin. The last line is `N passed, N failed`.
"""

import os
import sys

from across_runs import expect, run, run_all

PROGRAM = os.path.abspath(sys.argv[1])
SCHEDULES = {"gpipe": "GPipe", "1f1b": "1F1B", "interleaved": "interleaved 1F1B", "zero_bubble": "ZB-H1"}


def training(devices, workers):
    """Losses and parameters are those of the model without stages. `workers` has the devices of each worker."""
    status, output, errors = run(devices, PROGRAM, "training", workers, *SCHEDULES)
    expect(status == 0, output, errors)
    count = devices if isinstance(devices, int) else len(devices)
    expected = [f"process {k} has trained by {name}{tied}"
                for k in range(count) for name in SCHEDULES.values() for tied in ("", ", tied")]
    expect(sorted(output.splitlines()) == sorted(expected), output)


def main():
    tests = [(f"training of {devices} by {workers}", training, devices, workers)
             for devices, workers in ((2, "0/1"), (3, "0/1/2"), (4, "0/1/2/3"),
                                      (4, "0/1,2,3"),                   # uneven; a stage on three processes
                                      (3, "0,1/1,2"),                   # stages that share a process
                                      ((2, 2, 2, 2), "0/1,2,3/4,5/6,7"),  # a stage on parts of two processes
                                      ((1, 3), "0,1/2/3"))]
    return run_all(PROGRAM, tests, ("plugin",))


if __name__ == "__main__":
    sys.exit(main())
