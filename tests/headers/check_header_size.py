#!/usr/bin/env python3
"""Checks that the headers which every user includes stay cheap to compile.

usage: check_header_size.py --compiler CXX --include FOLDER [--include FOLDER ...]

For each header of LIMITS, no header of the standard library that it forbids may be reached, and neither our own
lines nor all lines after preprocessing may exceed the limit. Lines are counted, not seconds, so that a busy machine
changes nothing. The limits are about 5 % above the numbers of g++ 12; raise them only with a reason.
"""

import argparse
import re
import signal
import subprocess
import sys

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

STREAMS = {"iostream", "fstream", "sstream", "regex", "random", "filesystem"}
HEAVY = STREAMS | {"algorithm", "chrono", "cmath", "complex", "deque", "future", "thread"}
LIMITS = {  # header: (our lines, all lines, forbidden headers)
    "meshard/base/error.h": (400, 60_500, HEAVY | {"functional", "map", "set"}),
    "meshard/mesh/mesh.h": (1_510, 67_500, HEAVY | {"functional", "map", "set"}),
    "meshard/graph/tensor.h": (3_500, 86_000, HEAVY),
    "meshard/core.h": (9_900, 97_000, HEAVY),
    "meshard/meshard.h": (20_000, 116_000, (STREAMS - {"sstream"}) | {"cmath", "deque", "future", "thread"}),
}
MARK = re.compile(r'^# \d+ "([^"]*)"')


def count(compiler, folders, header):
    """(our lines, all lines, names of the standard library's headers) after preprocessing `header`."""
    command = [compiler, "-std=c++20", "-E", "-x", "c++", "-"]
    for folder in folders:
        command += ["-I", folder]
    done = subprocess.run(command, input=f'#include "{header}"\n', capture_output=True, encoding="utf-8")
    if done.returncode != 0:
        sys.exit(done.stderr)
    ours, total, names, file = 0, 0, set(), ""
    for line in done.stdout.splitlines():
        total += 1
        mark = MARK.match(line)
        if mark:
            file = mark[1]
            names.add(file.rsplit("/", 1)[-1])
        elif "/meshard/" in file or file.startswith("meshard/"):
            ours += 1
    return ours, total, names


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", action="append", required=True)
    args = parser.parse_args()
    failed = False
    for header, (most_ours, most, forbidden) in LIMITS.items():
        ours, total, names = count(args.compiler, args.include, header)
        print(f"{header}: {ours} lines of meshard (limit {most_ours}), {total} in all (limit {most})")
        for name in sorted(names & forbidden):
            print(f"{header} reaches <{name}>, which it must not")
            failed = True
        failed = failed or ours > most_ours or total > most
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
