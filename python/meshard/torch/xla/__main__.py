"""Runs a program of torch_xla: `python -m meshard.torch.xla script.py ...` or `-m module ...`."""

import os
import runpy
import sys

from . import install

_USAGE = "usage: python -m meshard.torch.xla (script.py | -m module) [arguments]"


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        print(_USAGE, file=sys.stdout if arguments[:1] in (["-h"], ["--help"]) else sys.stderr)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    if arguments[0].startswith("-"):
        print(f"unknown option {arguments[0]}\n{_USAGE}", file=sys.stderr)
        return 2
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
