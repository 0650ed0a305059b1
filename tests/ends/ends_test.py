#!/usr/bin/env python3
"""Ends processes with programs in flight in every way that end_program supports.

usage: ends_test.py --program PATH

MESHARD_ENDS=n sets how often each way is tested (default: 2; `./dev nightly` uses 100). Each process must end with the
right status and complete output, and soon. The last line is `N passed, N failed`.
"""

import argparse
import collections
import os
import resource
import signal
import subprocess
import sys

WAYS = {
    "return": 3, "exit": 4, "exit-in-a-thread": 5, "static": 6, "launch-in-a-destructor": 7, "launch-in-a-handler": 8,
    "fork": 9, "quick-exit": 10, "exec": 11, "detached-thread": 12, "main-thread-first": 13, "exception": -signal.SIGABRT, "interrupt": -signal.SIGINT,
    "terminate": -signal.SIGTERM,
}
TWO_PLATFORMS = {**WAYS, "platform-starts": 14}
LIMIT = 120  # seconds; a process takes about one


def end(program, way, status, *arguments):
    """Returns the errors; an empty list if there are none."""
    try:
        done = subprocess.run([program, way, *arguments], capture_output=True, encoding="utf-8", timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"{way} {arguments}: still there after {LIMIT} s"
    if done.returncode == 77 or "no plugin for platform" in done.stderr:
        return None
    if done.returncode != status:
        return f"{way} {arguments}: status {done.returncode}, not {status}: {done.stderr.strip()[-500:]}"
    if done.stdout != "said before the end":
        return f"{way} {arguments}: said {done.stdout!r}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", required=True)
    program = parser.parse_args().program
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    outcomes = collections.Counter()
    for _ in range(int(os.environ.get("MESHARD_ENDS", "2"))):
        ways = list(WAYS.items())
        ways += [(way, status, "two-platforms") for way, status in TWO_PLATFORMS.items()]
        for way, status, *arguments in ways:
            wrong = end(program, way, status, *arguments)
            if wrong is None:
                print("no plugin: nothing to end")
                print("0 passed, 0 failed, 1 skipped")
                return 0
            outcomes[bool(wrong)] += 1
            if wrong:
                print(f"FAILED {wrong}", flush=True)
    print(f"{outcomes[False]} passed, {outcomes[True]} failed")
    return 1 if outcomes[True] else 0


if __name__ == "__main__":
    sys.exit(main())
