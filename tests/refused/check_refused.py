#!/usr/bin/env python3
"""Checks that a program compiles, and with MESHARD_REFUSED defined does not, for the reason that it states.

usage: check_refused.py --compiler CXX --include FOLDER PROGRAM.cc
"""

import argparse
import re
import signal
import subprocess
import sys

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost


def compile_program(args, *more):
    command = [args.compiler, "-std=c++20", "-fsyntax-only", "-I", args.include, *more, args.program]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    return done.returncode, done.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("program")
    args = parser.parse_args()
    with open(args.program, encoding="utf-8") as file:
        reasons = re.findall(r"^\s*// refused: (.*)$", file.read(), re.MULTILINE)
    if not reasons:
        sys.exit(f"{args.program} has no line '// refused: TEXT'")
    code, messages = compile_program(args)
    if code != 0:
        sys.exit(f"{args.program} does not compile unchanged:\n{messages}")
    code, messages = compile_program(args, "-DMESHARD_REFUSED")
    if code == 0:
        sys.exit(f"{args.program} compiles with MESHARD_REFUSED")
    for reason in reasons:
        if reason not in messages:
            sys.exit(f"'{reason}' is not in what the compiler says of {args.program}:\n{messages}")


if __name__ == "__main__":
    main()
