#!/usr/bin/env python3
"""Steps of pipelines in several processes, under mpirun: their results, who waits for whom, and what happens if a process
fails or does not come.

usage: check_pipeline_steps.py PROGRAM MPI_LIBRARY

Skipped (status 77) without mpirun, libmeshard_mpi.so or a plugin. The last line is `N passed, N failed`.
"""

import os
import re
import sys

from across_runs import run, run_all
from mpi_runs import expect

PROGRAM = os.path.abspath(sys.argv[1])
NIGHTLY = os.environ.get("MESHARD_NIGHTLY")
TRANSFERS = 1000 if NIGHTLY else 50  # in each run
SEED = int(os.environ.get("MESHARD_TEST_SEED", "1"))
SCHEDULES = {"gpipe": "GPipe", "1f1b": "1F1B", "interleaved": "interleaved 1F1B", "zero_bubble": "ZB-H1"}


def training(devices, workers):
    """Losses and parameters are those of the model without stages. `workers` has the devices of each worker."""
    status, output, errors = run(devices, PROGRAM, "training", workers, *SCHEDULES)
    expect(status == 0, output, errors)
    count = devices if isinstance(devices, int) else len(devices)
    expected = [f"process {k} has trained by {name}{tied}"
                for k in range(count) for name in SCHEDULES.values() for tied in ("", ", tied")]
    expect(sorted(output.splitlines()) == sorted(expected), output)


def transfers(devices, seed, count):
    """Values that move between random shardings are where they should be, and equal those of the host."""
    total = devices if isinstance(devices, int) else sum(devices)
    status, output, errors = run(devices, PROGRAM, "transfers", seed, count, total)
    expect(status == 0, output, errors)
    expect(output.count(f" has moved {count} values") == (devices if isinstance(devices, int) else len(devices)), output)


LAYERS = r"f32\[6,3,12\]"  # what goes between stages


def lines_of(output):
    """The lines `process K what: text`, by process and what."""
    found = (re.match(r"process (\d+) (fails(?: again)?): (.*)", line) for line in output.splitlines())
    return {(int(match[1]), match[2]): match[3] for match in found if match}


def ahead(devices, workers):
    """A process launches all of its work before another one has begun."""
    status, output, errors = run(devices, PROGRAM, "ahead", workers)
    expect(status == 0 and output.count(" was ahead") == (devices if isinstance(devices, int) else len(devices)), output, errors)


def failing():
    """A step that fails in one process fails in all of them, and says where and why. Nothing waits for ever."""
    status, output, errors = run(2, PROGRAM, "failing", "0/1", 1, limit=120)
    expect(status == 0, output, errors)
    lines = lines_of(output)
    cause = r"the function fails here"
    expect(re.search(rf"data loss: .*{cause}.*note: in stage 1, forward of microbatch 1$", lines[1, "fails"]), output)
    expect(re.search(rf"aborted: .*process 1 \(pid \d+ on .*\) has failed: .*{cause}.*"
                     r"note: in stage 1, send backward of microbatch 1$", lines[0, "fails"]), output)
    for process in (0, 1):
        expect(cause in lines[process, "fails again"], output)


def absent(process):
    """A process that does not take part is named when the time is over."""
    status, output, errors = run(2, PROGRAM, "absent", "0/1", process, limit=120, MESHARD_PROCESS_WAIT_SECONDS="2")
    expect(status == 0, output, errors)
    send = "stage 0, send forward of microbatch 0" if process == 0 else "stage 1, send backward of microbatch 0"
    expect(re.search(rf"deadline exceeded: .*{LAYERS} has not come from process {process} within 2 s.*note: in {send}$",
                     lines_of(output)[1 - process, "fails"]), output)


def failing_in_collective():
    """One of the processes of a stage fails, and the other one waits for it in a collective, which nothing but its end
    can end."""
    status, output, errors = run(3, PROGRAM, "failing", "0/1,2", 1, limit=120)
    expect(status != 0 and "the function fails here" in lines_of(output)[1, "fails"], status, output, errors)
    expect(re.search(r"^\[processes\] process 2 of 3 ends: process 1 \(pid \d+ on .*\) has ended its main program normally, and "
                     r"others wait for it", errors, re.MULTILINE), output, errors)
    expect(re.search(r"^  process [02] \(pid \d+ on .*\) waits for process 1 in ", errors, re.MULTILINE), output, errors)


def main():
    tests = [(f"training of {devices} by {workers}", training, devices, workers)
             for devices, workers in ((2, "0/1"),
                                      (3, "0,1/1,2"),                     # stages that share a process
                                      ((2, 2, 2, 2), "0/1,2,3/4,5/6,7"))]  # uneven; a stage on parts of two processes
    tests += [(f"transfers of {devices} from {seed}", transfers, devices, seed, TRANSFERS)
              for seed, devices in enumerate((4, (2, 2), (1, 3), (2, 2, 2, 2)), SEED)]
    tests += [(f"ahead with {workers}", ahead, devices, workers)
              for devices, workers in ((2, "0/1"), (3, "0/1/2"), ((2, 2), "0,1/2,3"))]
    tests += [("failing", failing), ("absent 0", absent, 0), ("absent 1", absent, 1),
              ("failing in a collective", failing_in_collective)]
    return run_all(PROGRAM, tests, ("plugin",))


if __name__ == "__main__":
    sys.exit(main())
