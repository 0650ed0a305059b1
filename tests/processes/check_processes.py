#!/usr/bin/env python3
"""Runs of several processes over a Unix socket and over 127.0.0.1: store, barrier, strangers, and processes that are
killed or suspended at random moments.

usage: check_processes.py MEMBER_PROGRAM

MESHARD_PROCESS_KILLS is how often processes are killed and suspended (default 4 each; 50 in `./dev nightly`).
MESHARD_TEST_SEED=n repeats the moments. The last line is `N passed, N failed`.
"""

import os
import pathlib
import random
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time

PROGRAM = sys.argv[1]
NIGHTLY = os.environ.get("MESHARD_NIGHTLY")
KILLS = int(os.environ.get("MESHARD_PROCESS_KILLS") or (50 if NIGHTLY else 4))
SEED = os.environ.get("MESHARD_TEST_SEED") or "1"
if SEED == "random":
    SEED = str(random.randrange(1 << 32))
LIMIT = 60  # seconds until a run counts as hanging


class Failed(Exception):
    pass


def expect(holds, *what):
    if not holds:
        raise Failed(" ".join(str(w) for w in what))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Run:
    """The processes of one run; all are killed at the end."""

    def __init__(self, folder, size, transport="unix"):
        self.size, self.transport, self.members = size, transport, {}
        self.secret = secrets.token_hex(16)
        self.port = free_port() if transport == "tcp" else None
        self.address = f"127.0.0.1:{self.port}" if self.port else str(pathlib.Path(folder) / secrets.token_hex(4))

    def start(self, rank, *steps, secret=None, keep=True, **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MESHARD_PROCESS")}
        environment |= {"MESHARD_PROCESS_ADDRESS": self.address, "MESHARD_PROCESS_RANK": str(rank),
                        "MESHARD_PROCESS_COUNT": str(self.size)}
        if self.transport == "tcp" or secret:
            environment["MESHARD_PROCESS_SECRET"] = secret or self.secret
        environment |= {"MESHARD_COLLECTIVES": "none"} | variables  # check_gloo.py has those
        child = subprocess.Popen([PROGRAM, *[str(step) for step in steps]], env=environment, text=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if keep:
            self.members[rank] = child
        return child

    def start_all(self, *steps):
        for rank in range(self.size):
            self.start(rank, *steps)

    def wait_until_joined(self):
        """Each member has printed its first line."""
        for rank, child in self.members.items():
            line = child.stdout.readline()
            expect(line == f"joined {rank} of {self.size}\n", f"process {rank} printed", repr(line))

    def end(self):
        for child in self.members.values():
            if child.poll() is None:
                child.kill()
                child.send_signal(signal.SIGCONT)
            child.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def ended(child, seconds=LIMIT):
    """(status, output, errors) of a process."""
    try:
        output, errors = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Failed(f"a process still runs after {seconds} s: {child.args[1:]}")
    return child.returncode, output, errors


def outputs(run):
    """What each process printed; all must have ended well."""
    result = {}
    for rank, child in run.members.items():
        status, output, errors = ended(child)
        expect(status == 0 and not errors, f"process {rank} ended with {status}: {output}{errors}")
        result[rank] = output.splitlines()
    return result


def check_named_by_survivors(run, victim, pid, patterns, begin, wait=8.0):
    """All others end with status 1 within 5 s and name the victim. Time is not measured but limited, generously: the
    machine may be busy."""
    for rank, child in run.members.items():
        if rank == victim:
            continue
        status, _, errors = ended(child, max(0.1, begin + wait - time.monotonic()))
        lines = [line for line in errors.splitlines() if line.startswith("[processes]")]
        expect(status == 1, f"process {rank} ended with {status}: {errors}")
        expect(len(lines) == 1, f"process {rank} printed {len(lines)} lines: {errors}")
        expected = rf"\[processes\] process {rank} of {run.size} ends: process {victim} \(pid {pid} on .+\) "
        expect(re.match(expected + patterns, lines[0]), f"{lines[0]!r} does not match {expected + patterns!r}")


# --- the store and barriers ---------------------------------------------------------------------------------------

def store(folder, transport):
    with Run(folder, 3, transport) as run:
        run.start(0, "join", 20000, "get", "from 1", 20000, "put", "from 0", "zero", "barrier", "b", 20000,
                  "publish", "p", "same", "try", "nothing here", "members", "communicator")
        run.start(1, "join", 20000, "put", "from 1", "one", "get", "from 0", 20000, "barrier", "b", 20000,
                  "publish", "p", "same", "barrier", "b", 20000)
        run.start(2, "join", 20000, "get", "from 0", 20000, "get", "missing", 50, "barrier", "b", 20000,
                  "publish", "p", "same", "publish", "p", "other", "barrier", "b", 300)
        pids = {rank: child.pid for rank, child in run.members.items()}
        printed = outputs(run)
    expect(printed[0][:6] == ["joined 0 of 3", "get: one", "put: ok", "barrier b: ok", "publish: ok; first same",
                              "try: nothing"], printed[0])
    hosts = {line.split(" on ")[1].split(")")[0] for line in printed[0][6:9]}
    expect(printed[0][6:] == [f"process {r} (pid {pids[r]} on {host}) with 1" for host in hosts for r in range(3)]
           + ["no communicator"], printed[0])
    expect(printed[1][:4] == ["joined 1 of 3", "put: ok", "get: zero", "barrier b: ok"], printed[1])
    expect(printed[2][2].startswith('get: deadline exceeded: [store] get "missing": no process'), printed[2])
    expect(re.match(r'publish: already exists: \[store\] publish "p": process \d \(pid \d+ on .*\) has stored another '
                    "value; first same$", printed[2][5]), printed[2])


def missing_in_barrier(folder, transport):
    with Run(folder, 3, transport) as run:
        # Those that wait stay after that, because one would hear of the other's end before its own limit.
        run.start(0, "join", 20000, "barrier", "late", 1500, "sleep", 2000)
        run.start(1, "join", 20000, "entering", "compile of step, train.cc:7", "sleep", 4500)
        run.start(2, "join", 20000, "barrier", "late", 1500, "sleep", 2000)
        pid = run.members[1].pid
        printed = outputs(run)
    expected = (r'barrier late: deadline exceeded: \[barrier\] "late" was not reached within 1\.5 s by'
                r'|   *process 1 \(pid %d on .*\); it was last in "compile of step, train\.cc:7", [\d.]+ s ago' % pid)
    gave_up = r'   *process [02] \(pid \d+ on .*\) gave up after 1\.5 s'  # the second, perhaps, of the first
    texts = ["\n".join(printed[rank][1:]) for rank in (0, 2)]
    for text in texts:
        expect(len(re.findall(expected, text)) == 2, text)
        expect(not re.search("process [02] ", re.sub(gave_up, "", text)), text)
    expect(sum(len(re.findall(gave_up, text)) for text in texts) <= 1, printed)


def missing_in_join(folder, transport):
    with Run(folder, 3, transport) as run:
        run.start(0, "join", 1000)
        run.start(2, "join", 1000)
        for rank, child in run.members.items():
            status, output, errors = ended(child)
            expect(status == 2, status, output, errors)
        # Process 2 may also hear that process 0 has given up.


def missing_is_named(folder, transport):
    with Run(folder, 3, transport) as run:
        run.start(0, "join", 1000)
        run.start(1, "join", 20000)
        status, output, _ = ended(run.members[0])
        expect(status == 2 and "not all of 3 processes have joined within 1 s: process 2 has not joined" in output, output)
        status, output, errors = ended(run.members[1])
        expect(status == 2 and re.search(r"process 0 \(pid \d+ on .*\) ended with status 1", output), output, errors)


# --- who may take part ----------------------------------------------------------------------------------------------

def wrong_secret(folder, transport):
    with Run(folder, 2, transport) as run:
        secret = secrets.token_hex(16)
        run.start(0, "join", 20000, "barrier", "b", 20000, secret=secret)
        status, output, _ = ended(run.start(1, "join", 20000, secret=secrets.token_hex(16), keep=False))
        expect(status == 2 and "unauthenticated" in output and "the secret is not that of process 0" in output, output)
        run.start(1, "join", 20000, "barrier", "b", 20000, secret=secret)
        outputs(run)


def wrong_variables(folder, transport):
    with Run(folder, 2, transport) as run:
        for variables, text in [({"MESHARD_PROCESS_RANK": "2"}, "process 2 of 2 processes"),
                                ({"MESHARD_PROCESS_COUNT": ""}, "MESHARD_PROCESS_COUNT must be set, too"),
                                ({"MESHARD_PROCESS_ADDRESS": "nowhere"}, "invalid address"),
                                ({"MESHARD_PROCESS_ADDRESS": "127.0.0.1:1", "MESHARD_PROCESS_SECRET": "x"},
                                 "needs at least 16")]:
            status, output, _ = ended(run.start(0, "join", 1000, keep=False, **variables))
            expect(status == 2 and text in output, output)
        run.start(0, "join", 20000)
        # Another idea of how many there are.
        status, output, _ = ended(run.start(1, "join", 20000, keep=False, MESHARD_PROCESS_COUNT="3"))
        expect(status == 2 and "one of 3 processes, process 0 as one of 2" in output, output)


def strangers(folder, transport):
    """Connections that say nothing, say it slowly, or talk nonsense."""
    generator = random.Random(SEED)
    with Run(folder, 3, transport) as run:
        run.start(0, "join", 20000, *(["barrier", "b", 20000] * 30))
        open_ones = []

        def connect():
            for _ in range(400):
                try:
                    stranger = socket.socket(socket.AF_INET if run.port else socket.AF_UNIX)
                    stranger.connect(("127.0.0.1", run.port) if run.port else run.address)
                    open_ones.append(stranger)
                    return stranger
                except OSError:
                    time.sleep(0.01)
            raise Failed("no connection")

        for _ in range(280):  # more than are kept
            connect()
        for rank in (1, 2):
            run.start(rank, "join", 20000, *(["barrier", "b", 20000] * 30))
        for _ in range(60):
            stranger = connect()
            kind = generator.randrange(4)
            data = generator.randbytes(generator.randrange(1, 2000))
            if kind == 0:
                data = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
            if kind == 1:  # a plausible size
                data = generator.randrange(25, 512).to_bytes(4, "little") + data
            if kind == 2:  # a hello, then nonsense
                name, challenge = b"meshard processes 2", generator.randbytes(32)
                body = (b"\x01" + bytes(8) + generator.randrange(3).to_bytes(8, "little")
                        + len(name).to_bytes(4, "little") + len(challenge).to_bytes(4, "little") + name + challenge)
                data = len(body).to_bytes(4, "little") + body + data
            try:
                stranger.sendall(data)
            except OSError:
                pass
        for lines in outputs(run).values():
            expect(lines[1:] == ["barrier b: ok"] * 30, lines)
        for stranger in open_ones:
            stranger.close()


# --- ends -----------------------------------------------------------------------------------------------------------

def normal_ends(folder, transport):
    with Run(folder, 3, transport) as run:
        run.start(0, "join", 20000, "end", 0)  # waits for the others
        run.start(1, "join", 20000, "finalize")
        run.start(2, "join", 20000, "sleep", 1500, "put", "k", "v", "barrier", "b", 20000)
        printed = outputs(run)
    expect(printed[1][1:] == ["finalize: ok"], printed[1])
    expect(printed[2][1] == "put: ok" and re.match(r"barrier b: unavailable: \[barrier\] \"b\": process [01] .* has ended",
                                                  printed[2][2]), printed[2])


def failed_end(folder, transport):
    for victim in (0, 1):
        with Run(folder, 3, transport) as run:
            for rank in range(3):
                last = ["entering", "loading, data.cc:3", "sleep", 600, "end", 3] if rank == victim else ["steps"]
                run.start(rank, "join", 20000, *last)
            pid, begin = run.members[victim].pid, time.monotonic()
            expect(ended(run.members[victim])[0] == 3, "the status is kept")
            check_named_by_survivors(run, victim, pid, r'ended with status 3; it was last in "', begin, LIMIT)


def busy_is_not_lost(folder, transport):
    """A thread that computes, or all of a run's processes suspended together (as by Ctrl-Z)."""
    with Run(folder, 3, transport) as run:
        run.start(0, "join", 20000, "compute", 5000, "barrier", "b", 20000)
        run.start(1, "join", 20000, "compute", 5000, "barrier", "b", 20000)
        run.start(2, "join", 20000, "barrier", "b", 20000)
        run.wait_until_joined()
        time.sleep(0.3)
        for child in run.members.values():
            child.send_signal(signal.SIGSTOP)
        time.sleep(5)
        for child in run.members.values():
            child.send_signal(signal.SIGCONT)
        for lines in outputs(run).values():
            expect(lines == ["barrier b: ok"], lines)


def pauses(folder, transport):
    """Processes that pause, with a limit that allows it."""
    with Run(folder, 2, transport) as run:
        for rank in range(2):
            run.start(rank, "join", 20000, "compute", 7000, "barrier", "b", 20000, MESHARD_PROCESS_SILENCE_SECONDS="30")
        run.wait_until_joined()
        for child in run.members.values():  # process 0, and one that it watches
            child.send_signal(signal.SIGSTOP)
            time.sleep(5)
            child.send_signal(signal.SIGCONT)
        for lines in outputs(run).values():
            expect(lines == ["barrier b: ok"], lines)
    with Run(folder, 1, transport) as run:
        status, output, errors = ended(run.start(0, "join", 2000, MESHARD_PROCESS_SILENCE_SECONDS="0.5"))
        expect("MESHARD_PROCESS_SILENCE_SECONDS" in output + errors, status, output, errors)


def callback(folder, transport):
    with Run(folder, 3, transport) as run:
        for rank in range(3):
            steps = ["abort"] if rank == 1 else ["sleep", 1500, "put", "k", "v", "barrier", "b", 20000]
            run.start(rank, "callback", "join", 20000, "entering", "step", "sleep", 600, *steps)
        pid = run.members[1].pid
        expect(ended(run.members[1])[0] == -signal.SIGABRT)
        del run.members[1]
        for lines in outputs(run).values():
            expect(re.match(rf'lost process 1 \(pid {pid} on .*\) died; it was last in "step"', lines[1]), lines)
            expect(lines[2] == "put: ok" and "unavailable" in lines[3], lines)


def forked_child(folder, transport):
    """A child that still has the connection does not hide the death of its parent."""
    with Run(folder, 2, transport) as run:
        run.start(0, "join", 20000, "steps")
        run.start(1, "join", 20000, "child", 10000, "sleep", 600, "_exit")
        pid = run.members[1].pid
        # The child has the pipes, too, so that their end is not waited for.
        expect(run.members[1].wait(LIMIT) == 0)
        check_named_by_survivors(run, 1, pid, "(died|does not run any more)", time.monotonic())


def killed(folder, transport, how, generator):
    """One of four processes is killed or suspended at a random moment."""
    with Run(folder, 4, transport) as run:
        run.start_all("join", 20000, "steps")
        run.wait_until_joined()
        victim = generator.randrange(4)
        time.sleep(0.8 + generator.random() * 0.5)  # what it does is reported 4 times a second
        pid, begin = run.members[victim].pid, time.monotonic()
        run.members[victim].send_signal(how)
        words = "died" if how == signal.SIGKILL else "does not run any more: it gives no sign of life"
        check_named_by_survivors(run, victim, pid, words + r'; it was last in "(step \d+, train\.cc:42|barrier "step" at member_program\.cc:\d+)", '
                                 r"\d+(\.\d)? s ago$", begin)
        if how == signal.SIGSTOP:  # when it continues, it ends as well
            run.members[victim].send_signal(signal.SIGCONT)
            status, _, errors = ended(run.members[victim])
            expect(status == 1 and "[processes]" in errors, status, errors)


def main():
    generator = random.Random(SEED)
    passed, failed = 0, 0

    def attempt(name, function, *arguments):
        nonlocal passed, failed
        with tempfile.TemporaryDirectory() as folder:
            try:
                function(folder, *arguments)
                passed += 1
            except Failed as failure:
                failed += 1
                print(f"FAILED {name} (MESHARD_TEST_SEED={SEED}): {failure}", flush=True)

    for transport in ("unix", "tcp"):
        for function in (store, missing_in_barrier, missing_in_join, missing_is_named, wrong_secret, wrong_variables,
                         strangers, normal_ends, failed_end, busy_is_not_lost, pauses, callback, forked_child):
            attempt(f"{function.__name__} over {transport}", function, transport)
    for number in range(KILLS):
        for how in (signal.SIGKILL, signal.SIGSTOP):
            transport = ("unix", "tcp")[number % 2]
            attempt(f"{how.name} {number} over {transport}", killed, transport, how, generator)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
