#!/usr/bin/env python3
"""Builds the documentation site, or shows it on this machine.

usage: build_site.py [--out FOLDER] [--serve [PORT]] [--release FOLDER]

Runs in the environment of site.lock. A broken link or anchor and a page that the navigation lacks end the build.
--serve builds it again after each change of a page. --release adds the site of this version to a folder with one site for
each version: FOLDER/VERSION/, a list that the sites offer, and a first page that leads to the newest.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import pages  # noqa: E402


def build(command):
    """Runs mkdocs and prints what is wrong; its exit status."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    lines = done.stdout.splitlines()
    wrong = [line for line in lines if not line.startswith("INFO")]
    print("\n".join(wrong), end="\n" if wrong else "")
    return done.returncode


def add_version(folder, version):
    """Lists a version in versions.json, in the form that the theme reads, and makes the newest the first page."""
    file = folder / "versions.json"
    names = {each["version"] for each in json.loads(file.read_text(encoding="utf-8"))} if file.is_file() else set()
    names = sorted(names | {version}, key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    file.write_text(json.dumps([{"version": name, "title": name, "aliases": ["latest"] if name == names[0] else []} for name in names], indent=1) + "\n",
                    encoding="utf-8")
    (folder / "index.html").write_text(f'<!doctype html><title>meshard</title><meta http-equiv="refresh" content="0; url={names[0]}/index.html">\n'
                                       f'<a href="{names[0]}/index.html">meshard {names[0]}</a>\n', encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--serve", nargs="?", const="8000", metavar="PORT")
    parser.add_argument("--release", type=pathlib.Path, metavar="FOLDER")
    arguments = parser.parse_args()
    os.environ["PYTHONPATH"] = str(HERE)  # mkdocs.yml names a function of pages.py
    os.environ["NO_MKDOCS_2_WARNING"] = "1"  # a message of the theme about another program
    out = arguments.out and arguments.out.resolve()
    if arguments.release:
        version, folder = pages.version(HERE.parents[1]), arguments.release.resolve()
        os.environ["SITE_RELEASE"] = version  # read by mkdocs.yml
        out = folder / version
    os.chdir(HERE)
    mkdocs = [sys.executable, "-m", "mkdocs"]
    if arguments.serve:
        os.execv(sys.executable, [*mkdocs, "serve", "--dev-addr", f"127.0.0.1:{arguments.serve}", "--watch", str(HERE),
                                  "--watch", str(HERE.parents[1] / "README.md")])
    status = build([*mkdocs, "build", "--strict", "--clean", *(["--site-dir", out] if out else [])])
    if arguments.release and status == 0:
        add_version(folder, version)
    return status


if __name__ == "__main__":
    sys.exit(main())
