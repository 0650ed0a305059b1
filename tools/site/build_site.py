#!/usr/bin/env python3
"""Builds the documentation site, or shows it on this machine.

usage: build_site.py [--out FOLDER] [--serve [PORT]]

Runs in the environment of site.lock. A broken link or anchor and a page that the navigation lacks end the build.
--serve builds it again after each change of a page.
"""

import argparse
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def build(command):
    """Runs mkdocs and prints what is wrong; its exit status."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    lines = done.stdout.splitlines()
    wrong = [line for line in lines if not line.startswith("INFO")]
    print("\n".join(wrong), end="\n" if wrong else "")
    return done.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--serve", nargs="?", const="8000", metavar="PORT")
    arguments = parser.parse_args()
    os.environ["PYTHONPATH"] = str(HERE)  # mkdocs.yml names a function of pages.py
    os.environ["NO_MKDOCS_2_WARNING"] = "1"  # a message of the theme about another program
    out = arguments.out and arguments.out.resolve()
    os.chdir(HERE)
    mkdocs = [sys.executable, "-m", "mkdocs"]
    if arguments.serve:
        os.execv(sys.executable, [*mkdocs, "serve", "--dev-addr", f"127.0.0.1:{arguments.serve}", "--watch", str(HERE),
                                  "--watch", str(HERE.parents[1] / "README.md")])
    return build([*mkdocs, "build", "--strict", "--clean", *(["--site-dir", out] if out else [])])


if __name__ == "__main__":
    sys.exit(main())
