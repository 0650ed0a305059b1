"""The command `meshard`, also as `python -m meshard`: explain, plan, expect, mesh, fetch, doctor and more."""

import os
import pathlib
import sys


def main() -> None:
    """Replaces this process by the program `meshard` of the package, or by the one that fetches plugins.

    Both find what belongs to this Python environment: the compiler process of the package, and plugins in its
    site-packages.
    """
    package = pathlib.Path(__file__).parent
    program = package / "bin" / "meshard"
    if sys.argv[1:2] == ["fetch"] and not {"-h", "--help"} & set(sys.argv[2:]):
        fetch = package / "share" / "meshard" / "fetch_targets.py"
        if fetch.is_file():
            os.execv(sys.executable, [sys.executable, str(fetch), *sys.argv[2:]])
    if not program.is_file():
        sys.exit(f"meshard: {program} is missing: this package was built without the program meshard, which needs "
                 "the headers of CLI11")
    environment = dict(os.environ)
    environment.setdefault("MESHARD_COMPILE", str(package / "meshard-compile"))
    if sys.prefix != sys.base_prefix:
        environment.setdefault("VIRTUAL_ENV", sys.prefix)
    os.execve(program, [str(program), *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
