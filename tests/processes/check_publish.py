#!/usr/bin/env python3
"""Weights that go from the processes of one run to those of another: onto other layouts while further versions are
published, and with processes that are killed on either side.

usage: check_publish.py PROGRAM MPI_LIBRARY

Skipped (status 77) without mpirun or libmeshard_mpi.so. MESHARD_PUBLISH_TEST selects tests by a part of their name. The
last line is `N passed, N failed`.
"""

import contextlib
import os
import pathlib
import secrets
import signal
import sys
import tempfile
import time

from mpi_runs import Failed, ended, environment, expect, is_missing, start

PROGRAM, LIBRARY = (os.path.abspath(path) for path in sys.argv[1:])
SKIPPED = 77
LIMIT = 120
SMALL = 1 << 20
SECRET = secrets.token_hex(16)


def launch(count, *words):
    return start(count, [PROGRAM, *words], environment(LIBRARY, {"MESHARD_PUBLISH_SECRET": SECRET}))


def succeed(child):
    status, output, errors = ended(child, LIMIT)
    expect(status == 0, f"{child.args}: status {status}: {output}{errors}")
    return output.split("\n")


@contextlib.contextmanager
def publisher(count, mesh, interval, bytes_in_all=SMALL):
    """A run that publishes: (the process that starts it, its address, the file that ends it)."""
    with tempfile.TemporaryDirectory() as folder:
        stop = pathlib.Path(folder) / "stop"
        child = launch(count, "publish", "127.0.0.1:0", mesh, bytes_in_all, interval, stop)
        try:
            address = child.stdout.readline().strip()
            expect(address, "nothing is published:", ended(child, LIMIT) if not address else "")
            yield child, address, stop
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
            if child.folder_of_errors:
                child.folder_of_errors.cleanup()


def processes_of(child):
    """The processes of the program, which mpirun has started."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[0].decode() == PROGRAM and os.getsid(int(entry.name)) == os.getsid(child.pid):
                found.append(int(entry.name))
    return sorted(found)


def kill_one(child):
    found = processes_of(child)
    expect(len(found) > 1, "no processes of", child.args)
    os.kill(found[-1], signal.SIGKILL)


def layouts_and_versions():
    with publisher(4, "2x2", 30) as (child, address, stop):
        lines = succeed(launch(4, "receive", address, "1x4", SMALL, 6))
        versions = [int(line.split()[1]) for line in lines if line.startswith("version ")]
        expect(len(versions) == 6 and versions == sorted(set(versions)), lines)
        succeed(launch(1, "receive", address, "1x1", SMALL, 3))
        stop.touch()
        expect("receivers 0" in succeed(child), "somebody receives still")


def killed_receivers():
    """The publisher goes on, and others receive."""
    with publisher(2, "2x1", 30) as (child, address, stop):
        receiver = launch(2, "begin", address, "1x2", SMALL)
        expect(receiver.stdout.readline().startswith("began "), "it did not begin")
        for process in processes_of(receiver):
            os.kill(process, signal.SIGKILL)
        ended(receiver, LIMIT)
        succeed(launch(1, "receive", address, "1x1", SMALL, 2))
        stop.touch()
        expect("receivers 0" in succeed(child), "the version of a dead receiver is kept")


def killed_publishers():
    """A receiver that waits for a version gets an error within seconds, and so do all processes of its run."""
    with publisher(2, "2x1", 0) as (child, address, _):
        receiver = launch(2, "receive", address, "1x2", SMALL, 2)  # there is only one version
        expect(receiver.stdout.readline() == "version 0\n", "no version")
        time.sleep(0.2)
        kill_one(child)
        began = time.monotonic()
        status, output, errors = ended(receiver, LIMIT)
        expect(status != 0 and "unavailable" in errors and "publisher" in errors, status, output, errors)
        expect(time.monotonic() - began < 20, "it took", time.monotonic() - began, "s")


TESTS = [layouts_and_versions, killed_receivers, killed_publishers]


def main():
    if reason := is_missing(LIBRARY):
        print(f"skipped: {reason}")
        return SKIPPED
    failed = passed = 0
    for test in TESTS:
        if os.environ.get("MESHARD_PUBLISH_TEST", "") not in test.__name__:
            continue
        began = time.monotonic()
        try:
            test()
        except Failed as error:
            failed += 1
            print(f"FAILED {test.__name__}: {error}")
        else:
            passed += 1
            print(f"ok     {test.__name__} ({time.monotonic() - began:.1f} s)")
        sys.stdout.flush()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
