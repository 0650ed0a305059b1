#!/usr/bin/env python3
"""Collectives, programs and faults of processes that Gloo connects, without MPI.

usage: check_gloo.py PROGRAM RANDOM EXAMPLES_FOLDER MPI_PROGRAM MEMBER_PROGRAM GLOO_LIBRARY

Skipped (status 77) without libmeshard_gloo.so (Debian: libgloo-dev) or a plugin. In `./dev nightly`, all of
check_across.py, check_across_faults.py, check_devices.py and the pipelines run over Gloo, too, and digits and random
programs under the launchers that are installed. The last line is `N passed, N failed`.
"""

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("MESHARD_TEST_LAUNCHER", "variables")

import across_runs as runs
import check_across as across
import check_across_faults as faults
from mpi_runs import Failed, ended, environment, expect, start
from start_processes import free_port

MPI_PROGRAM, MEMBER_PROGRAM, LIBRARY = (os.path.abspath(path) for path in sys.argv[4:7])


def collectives(count):
    status, output, errors = ended(start(count, [MPI_PROGRAM, "run", "100000"], environment(LIBRARY, {})), runs.LIMIT)
    counts = re.search(r"^(\d+) passed, (\d+) failed$", output, re.MULTILINE)
    expect(status == 0 and counts and counts[2] == "0" and int(counts[1]) > 1000 * count, status, output, errors)


def lost(how):
    """One of three processes in an all-reduce is killed or suspended; each of the others names it."""
    child = start(3, [MEMBER_PROGRAM, "join", 20000, "members", "barrier", "b", 20000, "reduces"], environment(LIBRARY, {}))
    pids, barriers = {}, 0
    while barriers < 3:
        line = child.stdout.readline()
        expect(line, "the processes have ended")
        if match := re.match(r"process (\d) \(pid (\d+) on", line):
            pids[int(match[1])] = int(match[2])
        barriers += line == "barrier b: ok\n"
    time.sleep(0.8)
    begin = time.monotonic()
    os.kill(pids[1], how)
    if how == signal.SIGSTOP:
        time.sleep(8)
        os.kill(pids[1], signal.SIGKILL)
    status, _, errors = ended(child, 60)
    words = "died" if how == signal.SIGKILL else "does not run any more: it gives no sign of life"
    for rank in (0, 2):
        line = rf'^\[processes\] process {rank} of 3 ends: process 1 \(pid {pids[1]} on .+\) {words}; it was last in "all-reduce'
        expect(re.search(line, errors, re.MULTILINE), status, errors, time.monotonic() - begin)
    expect(status != 0, errors)


def without_library(folder):
    """CPU programs of several processes need Gloo; the error says which process has none, and what to install."""
    status, _, errors = runs.run(2, across.PROGRAM, 2, "train", MESHARD_GLOO_LIBRARY=os.path.join(folder, "none.so"))
    expect(status != 0 and "need collectives, but process 0 (pid" in errors and "none.so cannot be read" in errors and
           "install Gloo" in errors, status, errors)
    other = os.path.join(folder, "other.so")
    shutil.copy(os.path.join(os.path.dirname(LIBRARY), "libmeshard_fake_plugin.so"), other)
    status, _, errors = runs.run(2, across.PROGRAM, 2, "train", MESHARD_GLOO_LIBRARY=other)
    expect(status != 0 and "belongs to another version of meshard: its interface is unknown" in errors, status, errors)


def variables_of_torchrun():
    """Those that torchrun sets in each of its processes."""
    with tempfile.TemporaryDirectory() as folder:
        children = []
        port = str(free_port())
        for rank in range(2):
            ours = {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 2, "MASTER_ADDR": "localhost",
                    "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": os.path.basename(folder), "TORCHELASTIC_RESTART_COUNT": 0}
            variables = environment(LIBRARY, {name: str(value) for name, value in ours.items()})
            children.append(subprocess.Popen([MEMBER_PROGRAM, "join", "20000", "communicator", "finalize"], env=variables,
                                             text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE))
        for rank, child in enumerate(children):
            output = child.communicate(timeout=runs.LIMIT)[0]
            expect(child.returncode == 0 and output.startswith(f"joined {rank} of 2\na communicator\n"), output)


class TwoMachines(faults.TwoMachines):
    """Processes that meet at an address of the first machine."""

    def run(self, count, *command, **variables):
        secret, port, children = secrets.token_hex(16), free_port(), []
        for rank in range(count):
            name = self.names[rank * 2 // count]
            ours = {"MESHARD_PROCESS_ADDRESS": f"10.77.0.1:{port}", "MESHARD_PROCESS_RANK": str(rank),
                    "MESHARD_PROCESS_COUNT": str(count), "MESHARD_PROCESS_SECRET": secret}
            words = ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", f'hostname {name}; exec "$@"', "sh", *command]
            children.append(start(1, words, runs.environment_of(variables) | ours))
        results = [ended(child, runs.LIMIT) for child in children]
        return max(status for status, _, _ in results), "".join(out for _, out, _ in results), \
            "".join(errors for _, _, errors in results)


def two_machines():
    """Each process listens at the address of its own machine, and the losses are those of one process."""
    with TwoMachines() as machines:
        faults.digits(4, "2x2", 5, machines.run)


def in_a_child(script, arguments, launcher, wanted=""):
    """A check, or those of its tests whose name contains a text, with another launcher."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), script)
    variables = os.environ | {"MESHARD_TEST_LAUNCHER": launcher, "MESHARD_ACROSS_TEST": wanted}
    child = subprocess.run([sys.executable, path, *arguments], env=variables, text=True, capture_output=True)
    expect(child.returncode == 0 and child.stdout.rstrip().endswith(" 0 failed"), child.stdout, child.stderr)


def nightly_tests():
    """Digits, scenarios and random programs under the launchers that are here, and everything over Gloo."""
    programs = [across.PROGRAM, across.RANDOM, across.EXAMPLES]
    mpich = os.path.join(os.path.dirname(LIBRARY), "libmeshard_mpich.so")
    is_there = {"jax": True, "torchrun": shutil.which(os.environ.get("MESHARD_TEST_TORCHRUN", "torchrun")),
                "mpich": shutil.which("mpiexec.hydra") and os.path.exists(mpich),
                "slurm": shutil.which("sinfo") and subprocess.run(["sinfo"], capture_output=True).returncode == 0}
    tests = []
    for launcher, there in is_there.items():
        if not there:
            print(f"skipped: {launcher}, which is not installed or not running")
            continue
        library = mpich if launcher == "mpich" else LIBRARY
        for wanted in ("of 4", "random"):
            tests.append((f"{launcher} {wanted}", in_a_child, "check_gloo.py",
                          [*programs, MPI_PROGRAM, MEMBER_PROGRAM, library], launcher, wanted))
    return tests + [(f"{script} over Gloo", in_a_child, script, [*programs, LIBRARY], "variables")
                    for script in ("check_across.py", "check_devices.py", "check_across_faults.py")]


def main():
    if not os.path.exists(LIBRARY):
        print("skipped: libmeshard_gloo.so was not built (Debian: libgloo-dev)")
        return runs.SKIPPED
    digits = ("--steps", 15, "--mesh", "2x2")
    gpt = ("--steps", 3, "--layers", 1, "--width", 32, "--heads", 2, "--hidden", 48, "--context", 16, "--batch", 4, "--sample",
           2, "--mesh", "data=1,model=2")
    with tempfile.TemporaryDirectory() as folder:
        tests = [(f"collectives of {n}", collectives, n) for n in ((2, 3, 4, 5) if across.NIGHTLY else (2,))]
        tests += [("killed", lost, signal.SIGKILL), ("suspended", lost, signal.SIGSTOP),
                 ("variables of torchrun", variables_of_torchrun), ("without library", without_library, folder),
                 ("scenarios of 4", runs.scenario, across.PROGRAM, 4, "train", "collectives"),
                 ("2 and 1 devices", runs.scenario, across.PROGRAM, [2, 1], "uneven"),
                 ("random programs", runs.random_programs, across.RANDOM, 4, int(across.SEED), 3), ("hangs", faults.hangs)]
        if across.NIGHTLY:  # by day, two machines train the digits
            tests += [("digits of 4", runs.example, across.EXAMPLES, 4, "digits", *digits),
                      ("gpt of 2", runs.example, across.EXAMPLES, 2, "gpt", *gpt)]
        if faults.has_two_machines():
            tests.append(("two machines", two_machines))
        else:
            print("skipped: two machines, which need root and network namespaces (ip netns)")
        if across.NIGHTLY and os.environ["MESHARD_TEST_LAUNCHER"] == "variables":
            tests += nightly_tests()
        return runs.run_all(across.PROGRAM, tests)


if __name__ == "__main__":
    sys.exit(main())
