#!/usr/bin/env python3
"""Follows pages of the docs like a reader: writes their files, runs their commands, and compares the output.

usage: run_page.py [--bin FOLDER] [--folder FOLDER] PAGE.md...

  ```LANGUAGE file NAME  the block becomes the file NAME in the page's folder
  ```sh run              the commands, in bash, in the page's folder, with the programs of --bin before all others
  ```sh run exit N       the same, and the exit status must be N
  ```text output         directly after such a block: its output, line by line; a line `...` stands for any lines,
                         `...` within a line for any text
  <!-- needs COMMAND -->  the page is skipped, with a message, unless this command succeeds

Each page has its own empty folder, which is removed afterward; --folder keeps it. A page ends at the first block that
fails. The last line is `N passed, N failed`, with `, N skipped` if pages were skipped; blocks and files are counted.
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from doc_examples import blocks  # noqa: E402

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

LIMIT = 600  # seconds for one block


class Step:
    """A file to write, or commands to run."""

    def __init__(self, line, text, file=None, status=0):
        self.line, self.text, self.file, self.status, self.output = line, text, file, status, None


def read_steps(page, text):
    """The steps of a page. @error ValueError for unknown words, or an output that does not follow a command."""
    steps, last = [], None
    for info, line, body, adjacent in blocks(text):
        words = info.split()
        if words[1:2] == ["file"] and len(words) == 3:
            steps.append(Step(line, body + "\n", file=words[2]))
            last = None
        elif words[:2] == ["sh", "run"]:
            if words[2:] and (words[2] != "exit" or len(words) != 4 or not words[3].isdigit()):
                raise ValueError(f"{page}:{line - 1}: `{info}`: sh run, or sh run exit N")
            last = Step(line, body, status=int(words[3]) if words[2:] else 0)
            steps.append(last)
        elif words == ["text", "output"] and last is not None and adjacent:
            last.output, last = body, None
        else:
            last = None
    return steps


def pattern_of(expected):
    """A regular expression for an output in which `...` stands for any text."""
    pattern = ""
    for line in expected.strip("\n").split("\n"):
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += r".*?".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ \t]*\n"
    return re.compile(pattern)


def matches(expected, printed):
    return pattern_of(expected).fullmatch(printed.strip("\n") + "\n") is not None


def missing_need(text, environment):
    """The first `needs` command that fails, or None."""
    for command in re.findall(r"^<!-- needs (.*?) -->$", text, re.MULTILINE):
        done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            return command
    return None


def run_step(step, folder, environment):
    """The error of a step, or None."""
    if step.file is not None:
        path = folder / step.file
        if folder.resolve() not in path.resolve().parents:
            return f"{step.file} would be outside the page's folder"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step.text)
        return None
    try:
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", step.text], cwd=folder, env=environment, timeout=LIMIT,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                              errors="replace")
    except subprocess.TimeoutExpired:
        return f"it did not end within {LIMIT} s"
    printed = f"it printed\n{done.stdout}{done.stderr}"
    if done.returncode != step.status:
        return f"it ended with {done.returncode}, not {step.status}; {printed}"
    # Errors are printed to the error stream; a page that shows a failure shows that stream.
    printed = done.stdout if step.status == 0 else done.stdout + done.stderr
    if step.output is not None and not matches(step.output, printed):
        return f"the page expects\n{step.output}\n{printed}"
    return None


def run_page(page, folder, environment):
    """(passed, failed, skipped)"""
    text = pathlib.Path(page).read_text(encoding="utf-8")
    need = missing_need(text, environment)
    if need:
        print(f"SKIPPED {page}: `{need}` fails")
        return 0, 0, 1
    passed = 0
    for step in read_steps(page, text):
        begin = time.monotonic()
        wrong = run_step(step, folder, environment)
        what = step.file or step.text.strip().split("\n")[0]
        if wrong:
            print(f"FAILED {page}:{step.line}: {what}: {wrong}")
            return passed, 1, 0
        print(f"{page}:{step.line}: {what}  {time.monotonic() - begin:.1f} s", flush=True)
        passed += 1
    return passed, 0, 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", action="append", default=[])
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("pages", nargs="+")
    arguments = parser.parse_args()
    environment = dict(os.environ)
    paths = [str(pathlib.Path(path).resolve()) for path in arguments.bin]
    environment["PATH"] = ":".join([*paths, environment.get("PATH", "")])
    total = [0, 0, 0]
    for page in arguments.pages:
        with tempfile.TemporaryDirectory(prefix="page") as temporary:
            folder = arguments.folder or pathlib.Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            total = [a + b for a, b in zip(total, run_page(page, folder, environment))]
    print(f"{total[0]} passed, {total[1]} failed" + (f", {total[2]} skipped" if total[2] else ""))
    return 1 if total[1] else 0


if __name__ == "__main__":
    sys.exit(main())
