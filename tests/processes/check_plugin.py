#!/usr/bin/env python3
"""Runs of several processes over a plugin that connects them itself (GPU, TPU), played by the fake plugin: plain child
processes on a Unix socket, without MPI.

usage: check_plugin.py PLUGIN_PROGRAM FAKE_PLUGIN

The fake plugin returns argument k as result k, and gathers a sharded argument whose result is the whole value. The last
line is `N passed, N failed`.
"""

import os
import pathlib
import re
import select
import subprocess
import sys
import tempfile
import time

PROGRAM, FAKE = (os.path.abspath(path) for path in sys.argv[1:])
LIMIT = 60  # seconds until a run counts as hanging


class Failed(Exception):
    pass


def expect(holds, *what):
    if not holds:
        raise Failed(" ".join(str(w) for w in what))


class Run:
    """The processes of one run with these numbers of devices; all are killed at the end."""

    def __init__(self, folder, devices):
        self.address, self.devices, self.members = str(pathlib.Path(folder) / "socket"), devices, []
        ends = [sum(devices[:rank + 1]) for rank in range(len(devices))]
        self.ids = [list(range(end - count, end)) for end, count in zip(ends, devices)]

    def start(self, *scenarios, **variables):
        """`variables` of one process have its rank as a suffix: WAIT_1."""
        for rank, count in enumerate(self.devices):
            environment = {k: v for k, v in os.environ.items() if not k.startswith(("MESHARD_", "OMPI_", "PMIX_"))}
            environment |= {"MESHARD_PROCESS_ADDRESS": self.address, "MESHARD_PROCESS_RANK": str(rank),
                            "MESHARD_PROCESS_COUNT": str(len(self.devices)), "MESHARD_PLUGIN": FAKE,
                            "MESHARD_PLATFORM": "cuda", "MESHARD_FAKE_PLATFORM": "cuda",
                            "MESHARD_FAKE_DEVICES": str(count), "MESHARD_PROGRAM_CACHE_MB": "0",
                            "MESHARD_COLLECTIVES": "none"}
            for name, value in variables.items():
                match = re.fullmatch(r"(.*)_(\d)", name)
                if not match or int(match[2]) == rank:
                    environment[match[1] if match else name] = str(value)
            own = scenarios[rank] if scenarios and isinstance(scenarios[0], (list, tuple)) else scenarios
            self.members.append(subprocess.Popen([PROGRAM, *own], env=environment, text=True, stdin=subprocess.DEVNULL,
                                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE))

    def outputs(self):
        """The lines of each process; all must have ended well."""
        result = []
        for rank, child in enumerate(self.members):
            status, output, errors = ended(child)
            expect(status == 0 and not errors, f"process {rank} ended with {status}: {output}{errors}")
            expect(output.startswith(f"joined {rank}\n"), output)
            result.append(output.splitlines()[1:])
        return result

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in self.members:
            if child.poll() is None:
                child.kill()
            child.communicate()


def ended(child, seconds=LIMIT):
    try:
        output, errors = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Failed(f"a process still runs after {seconds} s: {child.args}") from None
    return child.returncode, output, errors


def shards(name, ids, value_of):
    """The line that shows the shards on these devices."""
    return name + "".join(f" device {i}: {' '.join(str(v) for v in value_of(i))}" for i in ids)


def all_devices(run):
    return " ".join(f"{i}/{rank}" for rank, own in enumerate(run.ids) for i in own)


def works(folder, devices):
    with Run(folder, devices) as run:
        run.start("devices", "place", "step", "read", "reduce", "explained", "end")
        count, printed = sum(devices), run.outputs()
        rows = lambda i: (2 * i, 2 * i + 1)
        whole = " ".join(str(i) for i in range(2 * count))
        for rank, own in enumerate(run.ids):
            expected = [
                f"process {rank} has {' '.join(map(str, own))} of cuda: {all_devices(run)}",
                shards("from_host", own, rows),
                shards("from_callback", own, lambda i: (i, i)),
                shards("from_local", own, lambda i: (10 * rank + own.index(i),)),
                f"[sharded_tensor] {len(own) + 1} shards for the {count} devices of mesh<x={count}>, of which this "
                f"process has {len(own)}",
                "donated", "donated", "donated",
                shards("step", own, rows),
                "replicated 7 7 7, 1 launch",
                f"to_host {whole}", f"gather {whole}", f"gather_to 1: {whole if rank == 1 else 'nothing'}",
                "grid " + " ".join(str(i) for i in range(4 * count)),
                f"printed: f32[{2 * count}] on devices {','.join(map(str, range(count)))}, of which this process has "
                f"device {own[0]} with [{2 * own[0]}:{2 * own[0] + 2}]:",
                f"local {whole}, 0 launches",
                shards("reduce", own, rows),
                f"explained for {count} devices"]
            for line, wanted in zip(printed[rank], expected):
                expect(line == wanted, f"process {rank} printed {line!r}, not {wanted!r}")
            expect(len(printed[rank]) == len(expected), printed[rank])


def unequal_processes(folder):
    """Processes with different numbers of devices, one of which has all parts of a value."""
    with Run(folder, [1, 3]) as run:
        run.start("devices", "place", "step", "unequal", "end")
        for rank, lines in enumerate(run.outputs()):
            own = run.ids[rank]
            expect(lines[0] == f"process {rank} has {' '.join(map(str, own))} of cuda: {all_devices(run)}", lines)
            expect(shards("step", own, lambda i: (2 * i, 2 * i + 1)) in lines, lines)
            # Process 0 has one half only, so both processes run the program that gathers it.
            expect(lines[-1] == "halves 0 1 2 3, 1 launch", lines)


def submesh(folder):
    """A mesh of devices of process 1 only: the program is skipped in process 0."""
    with Run(folder, [2, 2]) as run:
        run.start("submesh", "end")
        for rank, lines in enumerate(run.outputs()):
            own = [2, 3] if rank == 1 else []
            expect(lines[0] == 'submesh P("y"), devices 2,3', lines)
            expect(lines[1] == shards("submesh", own, lambda i: (2 * i - 4, 2 * i - 3)), lines)
            expect(lines[2] == ("read 0 1 2 3" if rank == 1 else "[tensor] the value f32[4] on devices 2,3 is on "
                                "devices of process 1 only; read it there"), lines)
            expect(lines[3] == shards("moved", own, lambda i: range(4 * i - 8, 4 * i - 4)), lines)
            expect(lines[4].startswith("[transfer] f32[4] is on devices of process 1 and should move to those of processes "
                                       "0 and 1: on platform cuda only"), lines)


def restart(folder):
    with Run(folder, [2, 2]) as run:
        run.start("devices", "step", "restart", "step", "read", "end")
        for lines in run.outputs():
            expect(lines.count("donated") == 6 and lines.count("to_host 0 1 2 3 4 5 6 7") == 1, lines)
            expect(lines[0] == lines[6], lines)


def different_programs(folder):
    with Run(folder, [2, 2]) as run:
        run.start("differ", "end")
        for lines in run.outputs():
            expect(re.match(r'\[processes\] the processes are about to do different things: process 0: run "differs" at '
                            r'plugin_program\.cc:\d+; process 1: run "differs" at', lines[0]), lines)


def missing_process(folder):
    """Process 1 never creates its client."""
    with Run(folder, [1, 1, 1]) as run:
        run.start(["keep_running", "devices"], ["keep_running", "end"], ["keep_running", "devices"],
                  MESHARD_PROCESS_WAIT_SECONDS_0=1, MESHARD_PROCESS_WAIT_SECONDS_2=30)
        status, output, errors = ended(run.members[0])
        expect(status == 3 and "deadline exceeded" in errors, status, output, errors)
        expected = (r'no process has stored "local_topology/cuda/1" within 1 s; these have not begun to create their client '
                    r"of cuda: process 1 \(pid %d on " % run.members[1].pid)
        expect(re.search(expected, errors) and "process 2 (" not in errors, errors)
        # Process 2 waits for what process 0 would have stored, and hears that it has ended.
        status, output, errors = ended(run.members[2])
        expect(status == 3 and re.search(r"unavailable.*process 0 \(pid", errors), status, output, errors)


def wait_for_line(stream, text, seconds=LIMIT):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([stream], [], [], 0.1)[0]:
            line = stream.readline()
            expect(line, "the stream has ended before", text)
            if text in line:
                return
    raise Failed(f"no line with {text}")


def killed_in_creation(folder, keeps):
    """Process 1 is killed while it creates its client, and the others wait for it."""
    with Run(folder, [1, 1, 1]) as run:
        run.start(*(["keep_running"] if keeps else []), "devices", MESHARD_FAKE_ON_CREATE_1="hang")
        pid = run.members[1].pid
        wait_for_line(run.members[1].stderr, "fake plugin: hang")
        time.sleep(0.6)  # what it does is reported 4 times a second
        run.members[1].kill()
        for rank in (0, 2):
            status, output, errors = ended(run.members[rank], 20)
            lost = rf"process 1 \(pid {pid} on .*\) died; it was last in \"creation of the client of platform cuda\""
            if keeps:  # the wait ends with an error; process 2 may hear that process 0 has ended because of it
                expect(status == 3 and "unavailable" in errors and (rank == 2 or re.search(lost, errors)), status, errors)
            else:
                expect(status == 1 and re.search(rf"process {rank} of 3 ends: {lost}", errors), status, output, errors)


def main():
    tests = [("two processes", works, [2, 2]), ("four processes", works, [2, 2, 2, 2]),
             ("processes with four devices", works, [4, 4]), ("unequal processes", unequal_processes),
             ("submesh", submesh), ("restart", restart), ("different programs", different_programs),
             ("missing process", missing_process), ("killed in creation", killed_in_creation, False),
             ("killed in creation, others go on", killed_in_creation, True)]
    passed, failed = 0, 0
    wanted = os.environ.get("MESHARD_PLUGIN_TEST", "")
    for name, test, *arguments in tests:
        if wanted not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(folder, *arguments)
                passed += 1
            except Failed as failure:
                failed += 1
                print(f"FAILED {name}: {failure}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
