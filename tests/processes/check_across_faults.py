#!/usr/bin/env python3
"""Programs across processes under bad conditions: processes that are killed or suspended while they train, processes
that do different things, two machines, and many more processes than cores.

usage: check_across_faults.py PROGRAM RANDOM EXAMPLES_FOLDER MPI_LIBRARY

Skipped (status 77) as check_across.py. Two network namespaces that are joined by a virtual cable count as two machines;
those tests are skipped with a message without root and `ip`. MESHARD_PROCESS_KILLS is how often processes are killed and
suspended (default 2 each; 50 in `./dev nightly`). The last line is `N passed, N failed`.
"""

import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import across_runs as runs
import check_across as across
from mpi_runs import MPIRUN, Failed, ended, expect, start

KILLS = int(os.environ.get("MESHARD_PROCESS_KILLS") or (50 if across.NIGHTLY else 2))
SEED = os.environ.get("MESHARD_TEST_SEED") or "1"
if SEED == "random":
    SEED = str(random.randrange(1 << 32))
ENDS = 30  # seconds after which processes must have ended; they should within 5
worst = {}  # the longest time until all had ended, by signal


def mpirun(count, *command, **variables):
    return start(count, command, runs.environment_of(variables))


def wait_for_training(child, count):
    """@return the process ids by rank"""
    pids = {}
    while len(pids) < count:
        line = child.stdout.readline()
        expect(line, "mpirun has ended")
        if match := re.match(r"process (\d+) \(pid (\d+) on .*\) trains$", line):
            pids[int(match[1])] = int(match[2])
    return pids


def expect_no_process(pids):
    for _ in range(500):
        left = [pid for pid in pids if os.path.exists(f"/proc/{pid}/exe")]  # not of a zombie
        if not left:
            return
        time.sleep(0.01)
    raise Failed(f"processes are left: {left}")


def lost_in_training(how, victim, generator):
    """One of four processes is killed or suspended between or in the launches of a loop of jitted steps. mpirun ends all
    after the first that ends, so not each of the others has time to say why; at least one must."""
    child = mpirun(4, across.PROGRAM, 4, "endless")
    watchdog = threading.Timer(runs.LIMIT, os.killpg, (child.pid, signal.SIGKILL))
    watchdog.start()
    pids = wait_for_training(child, 4)
    watchdog.cancel()
    time.sleep(0.4 + generator.random())  # what it does is reported 4 times a second
    begin = time.monotonic()
    os.kill(pids[victim], how)
    status, _, errors = ended(child, ENDS)
    worst[how.name] = max(worst.get(how.name, 0), time.monotonic() - begin)
    words = "died" if how == signal.SIGKILL else "does not run any more: it gives no sign of life"
    line = (rf"^\[processes\] process \d of 4 ends: process {victim} \(pid {pids[victim]} on .+\) {words}; it was last in "
            r'"([a-z-]+ [^"]*\(across_program\.cc:\d+\); )?launch \d+ is "train" at across_program\.cc:\d+", [\d.]+ s ago$')
    expect(status != 0 and re.search(line, errors, re.MULTILINE), f"victim {victim}: status {status}: {errors}")
    # mpirun lets the victim continue before it ends it, and then the victim misses the others. A survivor that has ended
    # may be noticed by one that has not heard of the victim yet.
    expect_no_process(pids.values())


def out_of_step(scenario, first, second):
    """The last process launches two programs in another order. Their collectives fit each other, so that the values are
    wrong, or they do not fit, so that all processes hang."""
    status, output, errors = ended(mpirun(3, across.PROGRAM, 3, scenario), ENDS)
    # On a fast machine, one process may be further ahead of what it compares with than it remembers single launches.
    line = (rf'^\[processes\] process \d of 3 ends: process \d \(pid \d+ on .+\) launches other programs: '
            rf'(launch \d+ that both take part in is "({first}|{second})" at across_program\.cc:\d+ in process \d, and '
            rf'"({first}|{second})" at |the first \d+ launches that both take part in differ between processes \d and \d)')
    found = re.search(line, errors, re.MULTILINE)
    expect(status != 0 and found and (found[2] is None or found[2] != found[3]), status, output, errors)


def hangs():
    """Processes that wait for one that has ended, or for each other, are named with both lines; one that is slow is not.
    All at once, because they only wait."""
    line = r"\(across_program\.cc:\d+\); launch \d+ is \"step\" at across_program\.cc:\d+"
    left = rf'process 2 \(pid \d+ on .+\) has ended its main program normally, and others wait for it; it was last in "launch 6 is "step" at across_program\.cc:\d+", [\d.]+ s ago\n  process [01] .* waits for process 2 in "all-reduce n\d+ {line}"'
    expected = {
        "ends_early": left,
        "evaluates_alone": rf'process 2 .* does not come: it waits elsewhere\n(  process .*\n)+  process 2 .* waits for process [01] in "run "lazy" at across_program\.cc:\d+", for',
        "saves_alone": r'process 2 .* does not come: it waits elsewhere\n(  process .*\n)+  process 2 .* waits for process [01] in "save of .*never_saved.* at across_program\.cc:\d+", for',
        "other_barrier": r'waits for process 2 in "barrier "even" at across_program\.cc:\d+", for .*\n(  process .*\n)*  process 2 .* waits for process [01] in "barrier "odd" at across_program\.cc:\d+"',
        "waits_for_a_value": r'process [12] .* has ended its main program normally, and others wait for it; .*\n  process 0 .* in "the value of "never"", for',
        "slow_process": None,
    }
    begin = time.monotonic()
    children = {name: mpirun(3, across.PROGRAM, 3, name) for name in expected}
    for name, words in expected.items():
        status, output, errors = ended_in_time(children[name], begin)
        if words is None:
            expect(status == 0 and "done" in output, name, status, output, errors)
        else:
            expect(status != 0 and re.search(words, errors), name, status, output, errors)


def ended_in_time(child, begin):
    return ended(child, max(1, begin + 4 * ENDS - time.monotonic()))


def failing_callback():
    """The error of a function that fails in one process ends all of them."""
    status, output, errors = ended(mpirun(3, across.PROGRAM, 3, "failing_callback"), ENDS)
    expect(status != 0 and "process 2: across_program.cc" in errors and "the function fails here" in errors, output, errors)


def nans():
    """A NaN on the device of one process is the same error in all."""
    status, output, errors = runs.run(2, across.PROGRAM, 2, "nans")
    expect(status == 0, output, errors)
    for line in across.from_all(output, 2):
        expect(re.search(r"\[check_nans\] the first operation that produced a NaN is log, f32\[4\]", line), line)
    expect("after f32[4]: 1 2 3 4" in output, output)


class TwoMachines:
    """Two network namespaces with a virtual cable, each with a host name of its own."""

    def __enter__(self):
        self.names = [f"meshard{os.getpid()}{side}" for side in "ab"]
        self.folder = tempfile.TemporaryDirectory()
        a, b = self.names
        for name in self.names:
            self.ip("netns", "add", name)
        self.ip("link", "add", "cable", "netns", a, "type", "veth", "peer", "name", "cable", "netns", b)
        for number, name in enumerate(self.names, 1):
            self.ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", "cable")
            self.ip("-n", name, "link", "set", "lo", "up")
            self.ip("-n", name, "link", "set", "cable", "up")
        # In place of ssh: its arguments are the machine and a command.
        self.agent = pathlib.Path(self.folder.name) / "agent"
        self.agent.write_text(f'#!/bin/sh\nshift\nexec ip netns exec {b} unshare --uts sh -c '
                              f"'hostname {b}; exec sh -c \"$0\"' \"$*\"\n")
        self.agent.chmod(0o700)
        return self

    def ip(self, *words):
        subprocess.run(["ip", *words], check=True, capture_output=True)

    def run(self, count, *command, **variables):
        a = self.names[0]
        environment = runs.environment_of(variables)
        exported = [word for name in environment if name.startswith(("MESHARD_", "TF_")) for word in ("-x", name)]
        launcher = ["ip", "netns", "exec", a, "unshare", "--uts", "sh", "-c", f'hostname {a}; exec "$@"', "sh", *MPIRUN,
                    "--host", f"10.77.0.1:{count // 2},10.77.0.2:{count // 2}", "--mca", "plm_rsh_agent", str(self.agent),
                    "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "cable", "--mca", "oob_tcp_if_include", "cable",
                    *exported]
        return ended(start(count, command, environment, launcher=launcher), runs.LIMIT)

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        self.folder.cleanup()


def has_two_machines():
    if shutil.which("ip") is None or shutil.which("unshare") is None or os.geteuid() != 0:
        return False
    try:
        with TwoMachines():
            return True
    except (subprocess.CalledProcessError, OSError):
        return False


def scenarios_on_two_machines(*names):
    status, one, errors = runs.run(1, across.PROGRAM, 4, *names)
    expect(status == 0 and "== " in one, status, one, errors)
    with TwoMachines() as machines:
        status, many, errors = machines.run(4, across.PROGRAM, 4, *names, "hosts")
    expect(status == 0, status, many, errors)
    many, hosts = many.split("== hosts\n")
    expect(len(set(hosts.split())) == 2 and len(hosts.split()) == 4, hosts)
    runs.expect_equal(one, many)


def digits(count, mesh, steps, run):
    with tempfile.TemporaryDirectory() as folder:
        losses = []
        for processes, start in ((1, runs.run), (count, run)):
            file = pathlib.Path(folder) / f"{processes}.txt"
            status, output, errors = start(processes, pathlib.Path(across.EXAMPLES) / "digits", "--steps", steps, "--mesh",
                                           mesh, "--losses", file)
            expect(status == 0, status, output, errors)
            losses.append(file.read_text())
        expect(len(losses[0].splitlines()) >= steps, losses)
        runs.expect_equal(*losses)


def digits_on_two_machines():
    with TwoMachines() as machines:
        digits(4, "2x2", 15 if across.NIGHTLY else 5, machines.run)


def many_processes(count):
    """Far more processes than cores; a step with collectives over all of them."""
    runs.scenario(across.PROGRAM, count, "explicit_axes")


def main():
    if reason := runs.is_missing(runs.LIBRARY):
        print(f"skipped: {reason}")
        return runs.SKIPPED
    status, _, errors = runs.run(1, across.PROGRAM, 2, "disk_hits")
    if status != 0 and "no plugin" in errors:
        print("skipped: no CPU plugin")
        return runs.SKIPPED
    generator = random.Random(SEED)
    tests = [(f"{how.name} {number} of process {(2 * number + k) % 4}", lost_in_training, how, (2 * number + k) % 4, generator)
             for number in range(KILLS) for k, how in enumerate((signal.SIGKILL, signal.SIGSTOP))]
    tests += [("out of order", out_of_step, "out_of_order", "first", "second"), ("stuck", out_of_step, "stuck", "first", "second"),
              ("hangs", hangs), ("failing callback", failing_callback), ("NaNs", nans),
              ("host calls", runs.scenario, across.PROGRAM, 2, "host_calls"), ("16 processes", many_processes, 16)]
    if across.NIGHTLY:
        tests += [("digits of 16", digits, 16, "4x4", 3, runs.run), ("training of 16", runs.scenario, across.PROGRAM, 16, "train")]
    if has_two_machines():
        tests += [("two machines", scenarios_on_two_machines, "train", "submeshes",
                   *(("resharding", "collectives", "loops", "parts") if across.NIGHTLY else ())),
                  ("digits on two machines", digits_on_two_machines)]
    else:
        print("skipped: tests with two machines, which need root and network namespaces (ip netns)")
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
            print(f"FAILED {name} (MESHARD_TEST_SEED={SEED}): {failure}", flush=True)
    for name, seconds in worst.items():
        print(f"all had ended {seconds:.1f} s after {name}, at most")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
