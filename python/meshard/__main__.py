"""The command: `python -m meshard fetch tpu`, `python -m meshard explain step.mlir --topology v5e:4x4`, ..."""

import os
import shutil
import sys


def find_program():
    """The path of the program `meshard`: in the package, beside the interpreter, or in PATH. None if there is none."""
    package = os.path.dirname(os.path.abspath(__file__))
    bundled = os.path.join(package, "bin", "meshard")
    if os.access(bundled, os.X_OK):
        return bundled
    own = os.path.realpath(sys.argv[0]) if sys.argv else ""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found = shutil.which("meshard", path=folder)
        # The console script of this package, which calls main(), is not the program.
        if found and os.path.realpath(found) != own and not _is_script(found):
            return found
    return None


def _is_script(path):
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def _fetch_program():
    """The path of the program that downloads plugins, which is Python; None if it is not in the package."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "share", "meshard", "fetch_targets.py")
    return path if os.path.isfile(path) else None


def main(arguments=None):
    """Runs the command with these arguments (default: those of the process) in place of this process."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    program = find_program()
    fetch = _fetch_program()
    if arguments[:1] == ["fetch"] and fetch and not {"-h", "--help"} & set(arguments):
        command = [sys.executable, fetch, *arguments[1:]]
    elif program:
        command = [program, *arguments]
    else:
        print("meshard: the program meshard is not in this package, and not in PATH", file=sys.stderr)
        return 2
    sys.stdout.flush()
    sys.stderr.flush()
    # The program finds what belongs to this environment: the interpreter for `fetch`, and plugins in site-packages.
    if sys.prefix != sys.base_prefix:
        os.environ.setdefault("VIRTUAL_ENV", sys.prefix)
    os.environ["PATH"] = os.pathsep.join(filter(None, [os.environ.get("PATH"), os.path.dirname(sys.executable)]))
    os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
