#!/usr/bin/env python3
"""Builds the documentation site, or shows it on this machine.

usage: build_site.py [--out FOLDER] [--serve [PORT]]

Runs in the environment of site.lock. A broken link or anchor and a page that the navigation lacks end the build.
--serve builds it again after each change of a page.
"""

import argparse
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--serve", nargs="?", const="8000")
    arguments = parser.parse_args()
    os.environ["PYTHONPATH"] = str(HERE)
    os.environ["NO_MKDOCS_2_WARNING"] = "1"  # a message of the theme about another program
    command = [sys.executable, "-m", "mkdocs"]
    if arguments.serve:
        command += ["serve", "--dev-addr", f"127.0.0.1:{arguments.serve}", "--watch", str(HERE), "--watch", str(HERE.parents[1] / "README.md")]
    else:
        command += ["build", "--strict", "--quiet", "--clean"]
        command += ["--site-dir", str(arguments.out.resolve())] if arguments.out else []
    os.execv(sys.executable, [*command, "--config-file", str(HERE / "mkdocs.yml")])


if __name__ == "__main__":
    main()
