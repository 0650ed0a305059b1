#!/usr/bin/env python3
"""Runs every lint check.

usage: lint.py --build FOLDER [--jobs N] [--all] [--budget SECONDS]

Prints one line per check, followed by its problems; the last line is `N passed, N failed`. clang-tidy uses the compile
commands of FOLDER. Because it is slow, it first checks the sources changed against the main branch (on the main branch:
in the last commit and the working tree), then a sample of the other sources that differs for each commit and whose
problems are shown without failing. It starts no further file after SECONDS (default 150). --all checks every source.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_claims  # noqa: E402
import check_environment  # noqa: E402
import check_files  # noqa: E402
import check_layers  # noqa: E402
import check_links  # noqa: E402
import check_words  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = 8
# The compile commands may be those of g++, with flags that clang does not use, or of which clang takes the last one.
# Tests ignore the tensors of calls that must fail; elsewhere, the build warns.
CLANG_FLAGS = ["--extra-arg=-Wno-unused-command-line-argument", "--extra-arg=-Wno-unused-result"]


def git(*arguments):
    """The output of a git command, or None if it fails."""
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, encoding="utf-8")
    return done.stdout.strip() if done.returncode == 0 else None


def sources():
    return [name for name in check_files.listed_files(ROOT)
            if name.endswith((".cc", ".h")) and not name.startswith("third_party/")]


def check_format():
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", "--ferror-limit=1", *sources()],
                          cwd=ROOT, capture_output=True, encoding="utf-8")
    files = re.findall(r"^([^:\n]+):(\d+):\d+: error", done.stderr, re.MULTILINE)
    problems = [f"{name}:{line}: not formatted (./dev fmt)" for name, line in files]
    return problems or ([] if done.returncode == 0 else [done.stderr.strip()])


def check_spelling():
    """American spelling and common typos, also in code. .codespellrc lists the skipped files and other exceptions."""
    done = subprocess.run(["codespell", *check_files.listed_files(ROOT)], cwd=ROOT, capture_output=True, encoding="utf-8")
    problems = done.stdout.strip().splitlines()
    return problems or ([] if done.returncode in (0, 65) else [done.stderr.strip()])


def check_site():
    """Builds the site where its packages are installed: broken links and anchors, pages that the navigation lacks."""
    sys.path.insert(0, str(ROOT / "tools/site"))
    import environment
    python = environment.existing_interpreter()
    if python is None:
        return [], "not built: `./dev site` installs what it needs"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([python, ROOT / "tools/site/build_site.py", "--out", folder], capture_output=True, encoding="utf-8")
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return said or (["the build failed"] if done.returncode else []), ""


def changed_files():
    """Paths changed against main (on main: in the last commit), and in the working tree."""
    base = None
    for main in ("origin/main", "main"):
        base = git("merge-base", "HEAD", main)
        if base:
            break
    if base is None or base == git("rev-parse", "HEAD"):
        base = git("rev-parse", "HEAD~1")
    names = (git("diff", "--name-only", base) or "" if base else "").split("\n")
    names += (git("ls-files", "-o", "--exclude-standard") or "").split("\n")
    return {name for name in names if name}


def tidy_order(compiled):
    """The changed sources (for a changed header, its source), and a sample of the others."""
    changed = changed_files()
    wanted = {re.sub(r"\.h$", ".cc", name) for name in changed}
    first = sorted(name for name in compiled if name in wanted)
    head = git("rev-parse", "HEAD") or ""
    rest = [name for name in compiled if name not in wanted and not name.endswith("_test.cc")]
    rest.sort(key=lambda name: hashlib.sha256((head + name).encode()).hexdigest())
    # Sources before tests, because tests take the most time and have the fewest interfaces.
    first.sort(key=lambda name: name.endswith("_test.cc"))
    return first, rest[:SAMPLE]


def tidy_one(build, name):
    done = subprocess.run(["clang-tidy", "-p", build, "--quiet", *CLANG_FLAGS, name], cwd=ROOT,
                          capture_output=True, encoding="utf-8")
    found = re.findall(r"^(.*?:\d+):\d+: (?:warning|error): (.*)$", done.stdout, re.MULTILINE)
    problems = [f"{os.path.relpath(place, ROOT)}: {text}" for place, text in found]
    if done.returncode != 0 and not problems:
        problems.append(f"{name}:1: clang-tidy failed: {done.stderr.strip()[-300:]}")
    return problems


def check_tidy(arguments):
    """The problems, and a note with the number of checked files."""
    entries = json.loads((pathlib.Path(arguments.build) / "compile_commands.json").read_text(encoding="utf-8"))
    names = [os.path.relpath(os.path.join(e["directory"], e["file"]), ROOT) for e in entries]
    listed = set(sources())  # generated sources are checked through their templates
    compiled = sorted(name for name in set(names) if name in listed)
    # Changed files must have no problems. Problems of the sample are older; they are shown so that
    # they can be fixed.
    first, sample = (compiled, []) if arguments.all else tidy_order(compiled)
    deadline = time.monotonic() + (1e9 if arguments.all else arguments.budget)
    looked, problems, older = 0, set(), set()

    def job(name):
        return None if time.monotonic() > deadline else tidy_one(arguments.build, name)

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for name, found in zip(first + sample, pool.map(job, first + sample)):
            if found is not None:
                looked += 1
                (problems if name in first else older).update(found)
    note = f"{looked} of {len(compiled)} files"
    return sorted(problems), note + "".join(f"\n    older: {problem}" for problem in sorted(older))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--budget", type=float, default=150)
    arguments = parser.parse_args()
    arguments.build = str(pathlib.Path(arguments.build).resolve())

    checks = [("folder directions", lambda: (check_layers.check(ROOT), "")),
              ("file rules and words", lambda: (check_files.check(ROOT), "")),
              ("links of the docs", lambda: (check_links.check(ROOT), "")),
              ("words of the field", lambda: (check_words.problems(), "")),
              ("claims of the docs", lambda: (check_claims.check(ROOT), "")),
              ("environment variables", lambda: (list(check_environment.check(ROOT)), "")),
              ("documentation site", check_site),
              ("spelling", lambda: (check_spelling(), "")),
              ("clang-format", lambda: (check_format(), "")),
              ("clang-tidy", lambda: check_tidy(arguments))]
    passed = 0
    for name, check in checks:
        start = time.monotonic()
        problems, note = check()
        passed += not problems
        verdict = f"FAILED, {len(problems)} problems" if problems else "passed"
        print(f"  {name:<24} {verdict}{', ' + note if note else ''}  {time.monotonic() - start:.1f} s")
        for problem in problems:
            print(f"    {problem}")
        sys.stdout.flush()
    print(f"{passed} passed, {len(checks) - passed} failed")
    return 0 if passed == len(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
