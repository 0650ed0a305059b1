#!/usr/bin/env python3
"""Checks rules about files.

usage: check_files.py [ROOT]

1. No source file is longer than 600 lines.
2. Every meshard/**/x.cc has an x_test.cc next to it, or one of its first lines is `// Tested in PATH.` and that file
   exists, for code that can be tested only on a plugin, or through another file of its folder.
3. No file is larger than 1 MB, and only pictures and test data are binary.
4. No file contains paths of one machine, registry hosts, or markers of unfinished work.
5. Names of files and folders use plain characters and begin with a letter, a digit, `.` or `_`: a program that takes
   `-` for a file name may create such a file.
6. No source in meshard/ compares the name of an op with a string: it compares with the op's constant, or reads a trait.

Checks files that git tracks or would add, except third_party/. Each problem is one line, `file:line: text`.
"""

import pathlib
import re
import signal
import subprocess
import sys

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

MAX_LINES = 600
MAX_BYTES = 1_000_000
SOURCE = {".cc", ".h", ".py", ".inc", ".cmake"}
BINARY = {".portable", ".mlirbc", ".png", ".npy", ".npz", ".safetensors", ".bin", ".gz"}

NAME = re.compile(r"[\w.][\w.-]*", re.ASCII)

# Split into pieces, so that this file does not contain the words.
WORDS = [
    (re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b"), "finish it, or describe it in docs/dev/state.md"),
    (re.compile(r"(?<![\w.$}])/(work|root|opt/wh" r"eels)/"), "a path of one machine"),
    (re.compile(r"\b(py" r"pi\.org|python" r"hosted\.org|deb\.deb" r"ian\.org|pkg\.go\.d" r"ev|"
                r"crates" r"\.io|npm" r"js\.(com|org))\b"), "a registry host; packages go by name"),
]


COMPARED_NAME = re.compile(r'\bop(\(\)\.|->)name\s*[!=]=\s*"')


def listed_files(root):
    """The files that git tracks, and new files that it does not ignore. Without git (a source archive), every file
    outside the build folders."""
    done = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"],
                          capture_output=True)
    if done.returncode == 0:
        names = {name for name in done.stdout.decode().split("\0") if name}
    else:
        names = {str(path.relative_to(root)) for path in root.rglob("*")}
        names = {name for name in names if not re.match(r"build|\.git/", name) and "__pycache__" not in name}
    return sorted(name for name in names if (root / name).is_file())


def check_file(root, name):
    path = root / name
    if not all(NAME.fullmatch(part) for part in name.split("/")):
        yield f"{name}:1: invalid file name"
    size = path.stat().st_size
    if size > MAX_BYTES:
        yield f"{name}:1: {size:,} bytes; the limit is {MAX_BYTES:,}"
        return
    data = path.read_bytes()
    if b"\0" in data:
        if path.suffix not in BINARY:
            yield f"{name}:1: binary files of this kind are not allowed"
        return
    lines = data.decode(errors="replace").splitlines()
    if path.suffix in SOURCE and len(lines) > MAX_LINES:
        yield f"{name}:{MAX_LINES + 1}: {len(lines)} lines; a file holds one concept in at most {MAX_LINES}"
    if path.name == "LICENSE":
        return
    for number, line in enumerate(lines, 1):
        for pattern, reason in WORDS:
            match = pattern.search(line)
            if match:
                yield f"{name}:{number}: '{match[0]}': {reason}"


def check_op_names(root, names):
    """Rule 6."""
    for name in names:
        if not re.fullmatch(r"meshard/.*\.(cc|h)", name) or re.search(r"_(test|testutil)\.", name):
            continue
        for number, line in enumerate((root / name).read_text(errors="replace").splitlines(), 1):
            if COMPARED_NAME.search(line):
                yield f"{name}:{number}: compare with the op's constant, or read a trait (OpTraits)"


def tested_elsewhere(root, name, present):
    """Whether the file names an existing file that tests it."""
    head = (root / name).read_text(errors="replace").splitlines()[:5]
    match = re.search(r"// Tested in (\S+)\.$", "\n".join(head), re.MULTILINE)
    return match is not None and match[1] in present


def check_test_pairs(root, names):
    """Rule 2."""
    present = set(names)
    for name in names:
        if not name.startswith("meshard/") or not name.endswith(".cc"):
            continue
        stem = name[:-3]
        if not re.search(r"_(test|testutil)$", stem) and f"{stem}_test.cc" not in present \
                and not tested_elsewhere(root, name, present):
            yield f"{name}:1: {pathlib.PurePath(stem).name}_test.cc is not in the same folder"


def check(root, names=None):
    """All problems in `root`, in a fixed order."""
    root = pathlib.Path(root)
    names = listed_files(root) if names is None else names
    names = [name for name in names if not name.startswith("third_party/")]
    problems = [problem for name in names for problem in check_file(root, name)]
    return problems + list(check_test_pairs(root, names)) + list(check_op_names(root, names))


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    problems = check(root)
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
