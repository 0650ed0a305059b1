"""Runs programs in several processes under mpirun, and in one process, and compares their output: what check_across.py
and check_devices.py have in common.
"""

import os
import pathlib
import re
import sys
import tempfile

from mpi_runs import Failed, ended, environment, expect, is_missing, start

LIBRARY = os.path.abspath(sys.argv[-1])
SKIPPED = 77
LIMIT = 900
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|inf")
PRINTED_ONCE = {"digits": "final loss", "gpt": "loss on the held-out text", "heat": "recovered initial state:"}


def environment_of(variables):
    """That of a process: nothing is kept from run to run."""
    return environment(LIBRARY, {"MESHARD_PROGRAM_CACHE_MB": "0"} | variables)


def run(devices, *command, folder=None, limit=LIMIT, **variables):
    """Runs the command in several processes: `devices` is how many of them, with one device each, or the number of
    devices of each. 1: without mpirun. @return status, output, errors"""
    # If the machine pauses, the program has no fault.
    variables = environment_of({"MESHARD_PROCESS_SILENCE_SECONDS": "300"} | variables)
    return ended(start(devices, command, variables, folder), limit)


def expect_equal(one, many, tolerance=1e-6):
    """The same text, with numbers that differ by at most `tolerance` of the largest in their line."""
    one, many = one.splitlines(), many.splitlines()
    expect(len(one) == len(many), f"{len(one)} lines in one process, {len(many)} in several:",
           "\n".join(["", *one, "--", *many]))
    for a, b in zip(one, many):
        expect(NUMBER.sub("#", a) == NUMBER.sub("#", b), f"in one process: {a}; in several: {b}")
        in_a, in_b = ([float(n) for n in NUMBER.findall(line)] for line in (a, b))
        most = max([1.0] + [abs(n) for n in in_a])
        expect(all(abs(x - y) <= tolerance * most for x, y in zip(in_a, in_b)),
               f"in one process: {a}; in several: {b}")


def scenario(program, devices, *names):
    """The output of across_program in several processes (run()) is that of one with as many devices."""
    total = devices if isinstance(devices, int) else sum(devices)
    with tempfile.TemporaryDirectory() as folder:
        status, one, errors = run(1, program, total, *names, folder=folder)
        expect(status == 0 and "== " in one, "one process:", status, one, errors)
        status, many, errors = run(devices, program, total, *names, folder=folder)
    expect(status == 0, f"processes with {devices} devices: status {status}: {many}{errors}")
    expect_equal(one, many)


def example(examples, devices, name, *arguments):
    """The losses of an example are those of one process, and only process 0 prints."""
    with tempfile.TemporaryDirectory() as folder:
        losses = []
        for processes in (1, devices):
            file = pathlib.Path(folder) / f"{len(losses)}.txt"
            more = ["--losses", file] if name != "heat" else []
            status, output, errors = run(processes, pathlib.Path(examples) / name, *arguments, *more, folder=folder)
            expect(status == 0, f"{processes}: status {status}: {output}{errors}")
            # Reports mark what crosses processes.
            losses.append(file.read_text() if more else output.replace(", across processes", ""))
            expect(output.count(PRINTED_ONCE[name]) == 1, output)
        expect_equal(*losses)


def random_programs(program, devices, first, count):
    total = devices if isinstance(devices, int) else sum(devices)
    processes = devices if isinstance(devices, int) else len(devices)
    status, output, errors = run(devices, program, first, count, MESHARD_PROGRAM_DEVICES=str(total), limit=60 + 20 * count)
    expect(status == 0 and f"{count} programs in {processes} processes" in output, f"status {status}: {output}{errors}")


def programs_on_disk(program, devices):
    total = devices if isinstance(devices, int) else sum(devices)
    cache = pathlib.Path(os.environ.get("MESHARD_CACHE") or
                         pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "meshard"))
    with tempfile.TemporaryDirectory() as folder:
        if (cache / "plugins").exists():
            (pathlib.Path(folder) / "plugins").symlink_to(cache / "plugins")
        hits = []
        for _ in range(2):
            status, output, errors = run(devices, program, total, "train", "disk_hits", MESHARD_CACHE=folder,
                                         MESHARD_PROGRAM_CACHE_MB="100")
            expect(status == 0, output, errors)
            hits.append(output.split("disk hits: "))
        expect(hits[0][0] == hits[1][0], hits)
        expect(int(hits[0][1]) == 0 and int(hits[1][1]) > 0, hits)


def missing(program, probe):
    """Why nothing can be run, or nothing."""
    if reason := is_missing(LIBRARY):
        return reason
    status, _, errors = run(1, program, *probe)
    return "no plugin" if status != 0 and "no plugin" in errors else None


def run_all(program, tests, probe=(4, "lazy")):
    """Runs (name, function, arguments...) whose name contains MESHARD_ACROSS_TEST. @return the status of the program
    @param probe arguments with which the program does little, to find out whether there is a plugin"""
    if reason := missing(program, probe):
        print(f"skipped: {reason}")
        return SKIPPED
    passed, failed = 0, 0
    wanted = os.environ.get("MESHARD_ACROSS_TEST", "")
    for name, test, *arguments in tests:
        if wanted not in name:
            continue
        try:
            test(*arguments)
            passed += 1
        except Failed as failure:
            failed += 1
            print(f"FAILED {name}: {failure}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0
