#!/usr/bin/env python3
"""Runs programs in N processes under mpirun, and in one process with N devices; their output must be equal.

usage: check_across.py PROGRAM RANDOM EXAMPLES_FOLDER MPI_LIBRARY

Skipped (status 77) without mpirun, libmeshard_mpi.so or a plugin. MESHARD_ACROSS_PROGRAMS is the number of random
programs (default 30; 500 in `./dev nightly`). The last line is `N passed, N failed`.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAM, RANDOM, EXAMPLES, LIBRARY = (os.path.abspath(path) for path in sys.argv[1:])
NIGHTLY = os.environ.get("MESHARD_NIGHTLY")
PROGRAMS = int(os.environ.get("MESHARD_ACROSS_PROGRAMS") or (500 if NIGHTLY else 30))
SEED = os.environ.get("MESHARD_TEST_SEED", "1")
SKIPPED = 77
LIMIT = 900
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|inf")


class Failed(Exception):
    pass


def expect(holds, *what):
    if not holds:
        raise Failed(" ".join(str(w) for w in what))


def environment(variables):
    """Without the variables of another run, with the library of this build."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("MESHARD_PROCESS_", "OMPI_", "PMIX_"))}
    return ours | {"MESHARD_MPI_LIBRARY": LIBRARY, "MESHARD_PROGRAM_CACHE_MB": "0",
                   "TF_CPP_MIN_LOG_LEVEL": "3"} | variables


def run(count, *command, folder=None, limit=LIMIT, **variables):
    """Runs the command in `count` processes. @return status, output, errors"""
    words = [str(word) for word in command]
    if count > 1:
        words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(count)] + words
    child = subprocess.Popen(words, env=environment(variables), cwd=folder, encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        output, errors = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, 9)
        output, errors = child.communicate()
        raise Failed(f"{words} still runs after {limit} s: {output}{errors}") from None
    return child.returncode, output, errors


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


def scenario(count, *names):
    status, one, errors = run(1, PROGRAM, count, *names)
    expect(status == 0 and "== " in one, "one process:", status, one, errors)
    status, many, errors = run(count, PROGRAM, count, *names)
    expect(status == 0, f"{count} processes: status {status}: {many}{errors}")
    expect_equal(one, many)


def printing():
    status, output, errors = run(4, PROGRAM, 4, "printing")
    expect(status == 0, output, errors)
    expect("f32[8] on devices 0,1,2,3, of which this process has device 0 with [0:2]:\n[0, 1] f32[2]" in output, output)
    expect("devices 0,1,2,3\n28 f32[]" in output, output)


def programs_on_disk():
    cache = pathlib.Path(os.environ.get("MESHARD_CACHE") or
                         pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "meshard"))
    with tempfile.TemporaryDirectory() as folder:
        if (cache / "plugins").exists():
            (pathlib.Path(folder) / "plugins").symlink_to(cache / "plugins")
        hits = []
        for _ in range(2):
            status, output, errors = run(2, PROGRAM, 2, "train", "disk_hits", MESHARD_CACHE=folder,
                                         MESHARD_PROGRAM_CACHE_MB="100")
            expect(status == 0, output, errors)
            hits.append(output.split("disk hits: "))
        expect(hits[0][0] == hits[1][0], hits)
        expect(int(hits[0][1]) == 0 and int(hits[1][1]) > 0, hits)


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


PRINTED_ONCE = {"digits": "final loss", "gpt": "loss on the held-out text", "heat": "recovered initial state:"}


def example(count, name, *arguments):
    """The losses of an example are those of one process, and only process 0 prints."""
    with tempfile.TemporaryDirectory() as folder:
        losses = {}
        for processes in (1, count):
            file = pathlib.Path(folder) / f"{processes}.txt"
            more = ["--losses", file] if name != "heat" else []
            status, output, errors = run(processes, pathlib.Path(EXAMPLES) / name, *arguments, *more, folder=folder)
            expect(status == 0, f"{processes} processes: status {status}: {output}{errors}")
            losses[processes] = file.read_text() if more else output
            expect(output.count(PRINTED_ONCE[name]) == 1, output)
        expect_equal(losses[1], losses[count])


def random_programs(first, count):
    status, output, errors = run(4, RANDOM, first, count, MESHARD_PROGRAM_DEVICES="4", limit=60 + 20 * count)
    expect(status == 0 and f"{count} programs in 4 processes" in output, f"status {status}: {output}{errors}")


def main():
    if shutil.which("mpirun") is None or not os.path.exists(LIBRARY):
        print("skipped: no mpirun (Debian package openmpi-bin), or no libmeshard_mpi.so (libopenmpi-dev)")
        return SKIPPED
    status, output, errors = run(1, PROGRAM, 4, "lazy")
    if status != 0 and "no plugin" in errors:
        print("skipped: no plugin")
        return SKIPPED
    tests = [(f"{name} of {count}", scenario, count, name)
             for name in ("train", "uneven", "resharding", "explicit_axes", "loops", "parts", "lazy", "collectives")
             for count in (4,)]
    tests += [("train of 2", scenario, 2, "train"), ("train of 8", scenario, 8, "train"),
              ("uneven of 3", scenario, 3, "uneven", "parts", "lazy"), ("submeshes", scenario, 4, "submeshes")]
    tests += [(test.__name__, test)
              for test in (printing, programs_on_disk, differing_programs, other_program, absent_process, other_host_data)]
    digits = ("--steps", 15, "--mesh")
    gpt = ("--steps", 5, "--layers", 2, "--width", 32, "--heads", 2, "--hidden", 48, "--context", 32, "--batch", 8,
           "--sample", 4, "--mesh")
    tests += [("digits of 2", example, 2, "digits", *digits, "2x1"), ("digits of 4", example, 4, "digits", *digits, "2x2"),
              ("digits of 8", example, 8, "digits", *digits, "2x4"), ("gpt of 2", example, 2, "gpt", *gpt, "data=1,model=2"),
              ("gpt of 4", example, 4, "gpt", *gpt, "data=2,model=2"), ("gpt of 8", example, 8, "gpt", *gpt, "data=4,model=2"),
              ("heat of 4", example, 4, "heat", "--mesh", "2x2", "--size", 16, "--steps", 4)]
    tests += [(f"random programs from {first}", random_programs, first, min(10, int(SEED) + PROGRAMS - first))
              for first in range(int(SEED), int(SEED) + PROGRAMS, 10)]
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


if __name__ == "__main__":
    sys.exit(main())
