#!/usr/bin/env python3
"""Runs the CTest programs of a build folder and counts single tests.

usage: run_tests.py --build FOLDER [--jobs N] [--only REGEX] [--timeout SECONDS] [NAME]

A GoogleTest program counts with each of its tests (from the XML it writes), another program with the
`N passed, N failed` line it ends with, and any other as one test. A program that crashes or exceeds its
time limit is one failure more. NAME selects programs, or else single tests, whose name contains it.
--only REGEX selects programs. The last line is `N passed, N failed`, with `, N skipped` where some were.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

COUNTS = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")


class Outcome:
    """What one program did: counts, the names of failed and skipped tests, and its output."""

    def __init__(self, name):
        self.name, self.passed, self.seconds, self.output = name, 0, 0.0, ""
        self.failures, self.skips = [], []

    def read_xml(self, path):
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            name = f"{self.name}: {case.get('classname')}.{case.get('name')}"
            if case.get("status") == "notrun":
                continue
            if case.find("failure") is not None or case.find("error") is not None:
                self.failures.append(name)
            elif case.find("skipped") is not None or case.get("result") == "skipped":
                reason = (case.find("skipped").get("message") or "").strip().split("\n")[-1] \
                    if case.find("skipped") is not None else ""
                self.skips.append(f"{name}: {reason}" if reason else name)
            else:
                self.passed += 1

    def read_counts(self, line):
        passed, failed, skipped = (int(text or 0) for text in COUNTS.match(line).groups())
        self.passed += passed
        self.failures += [f"{self.name}: failure {i + 1}" for i in range(failed)]
        self.skips += [f"{self.name}: skip {i + 1}" for i in range(skipped)]


def ctest_programs(build):
    """Name, command and properties of each test, as CTest knows them."""
    text = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                          capture_output=True, text=True).stdout
    programs = []
    for test in json.loads(text)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        programs.append((test["name"], test.get("command", []), properties))
    return programs


def is_gtest(command):
    """A GoogleTest program answers --gtest_list_tests with test suites; others are left alone."""
    try:
        with open(command[0], "rb") as file:
            return b"gtest_list_tests" in file.read()
    except OSError:
        return False


def execute(command, environment, folder, limit):
    """Exit status (None after the time limit) and output; the whole process group ends with it."""
    process = subprocess.Popen(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    try:
        output, _ = process.communicate(timeout=limit)
        return process.returncode, output.decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return None, output.decode(errors="replace")


def run_program(name, command, properties, results, limit, test_filter):
    outcome = Outcome(name)
    if not command or not pathlib.Path(command[0]).exists():
        outcome.failures.append(f"{name}: its program was not built")
        return outcome
    environment = dict(os.environ)
    for setting in properties.get("ENVIRONMENT", []):
        key, _, value = setting.partition("=")
        environment[key] = value
    xml = results / f"{name}.xml"
    xml.unlink(missing_ok=True)
    gtest = is_gtest(command)
    if gtest:
        environment["GTEST_OUTPUT"] = f"xml:{xml}"
        environment["GTEST_COLOR"] = "no"
        if test_filter:
            command = command + [f"--gtest_filter=*{test_filter}*"]
    elif test_filter:
        return outcome
    limit = float(properties.get("TIMEOUT", limit))
    start = time.monotonic()
    status, outcome.output = execute(command, environment,
                                     properties.get("WORKING_DIRECTORY", os.getcwd()), limit)
    outcome.seconds = time.monotonic() - start
    judge(outcome, status, xml, properties, limit, gtest)
    return outcome


def judge(outcome, status, xml, properties, limit, gtest):
    """Turns exit status, XML and output into counts."""
    lines = outcome.output.strip().split("\n")
    if xml.exists():
        try:
            outcome.read_xml(xml)
        except ElementTree.ParseError:
            outcome.failures.append(f"{outcome.name}: unreadable XML")
    elif not gtest and COUNTS.match(lines[-1]):
        outcome.read_counts(lines[-1])
    elif not gtest and status is not None and status == properties.get("SKIP_RETURN_CODE"):
        outcome.skips.append(f"{outcome.name}: {lines[-1]}")
        return
    elif status == 0:
        outcome.passed += 0 if gtest else 1
    if status is None:
        outcome.failures.append(f"{outcome.name}: exceeded {limit:.0f} s")
    elif status < 0:
        outcome.failures.append(f"{outcome.name}: killed by signal {-status}")
    elif status != 0 and not outcome.failures:
        outcome.failures.append(f"{outcome.name}: exit status {status}")
    elif gtest and not xml.exists():
        outcome.failures.append(f"{outcome.name}: ended without writing its results")


def report(outcome):
    text = f"  {outcome.name:<32} {outcome.passed:>5} passed"
    text += f", {len(outcome.failures)} failed" if outcome.failures else ""
    text += f", {len(outcome.skips)} skipped" if outcome.skips else ""
    print(f"{text}  {outcome.seconds:.1f} s", flush=True)
    if outcome.failures:
        lines = outcome.output.rstrip().split("\n")
        shown = lines if len(lines) <= 200 else ["..."] + lines[-200:]
        print("\n".join("    | " + line for line in shown), flush=True)


def choose(programs, arguments):
    """The programs to run and the filter for single tests, or None."""
    if arguments.only:
        programs = [p for p in programs if re.search(arguments.only, p[0])]
    if not arguments.name:
        return programs, None
    named = [p for p in programs if arguments.name in p[0]]
    return (named, None) if named else (programs, arguments.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("name", nargs="?")
    arguments = parser.parse_args()

    build = pathlib.Path(arguments.build).resolve()
    results = build / "test-results"
    results.mkdir(exist_ok=True)
    programs, test_filter = choose(ctest_programs(str(build)), arguments)
    # Programs that must run alone (they use several devices or measure memory) come after the others.
    alone = [p for p in programs if p[2].get("RUN_SERIAL")]
    together = [p for p in programs if not p[2].get("RUN_SERIAL")]
    outcomes = []

    def job(program):
        return run_program(*program, results, arguments.timeout, test_filter)

    for group, workers in ((together, arguments.jobs), (alone, 1)):
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            for future in concurrent.futures.as_completed([pool.submit(job, p) for p in group]):
                outcome = future.result()
                outcomes.append(outcome)
                if outcome.passed or outcome.failures or outcome.skips:
                    report(outcome)

    failures = sorted(f for o in outcomes for f in o.failures)
    skips = sorted(s for o in outcomes for s in o.skips)
    passed = sum(o.passed for o in outcomes)
    for skip in skips:
        print(f"SKIPPED {skip}")
    for failure in failures:
        print(f"FAILED {failure}")
    if not (passed or failures or skips):
        print(f"no test matches {arguments.name!r}" if arguments.name else "there are no tests")
    print(f"{passed} passed, {len(failures)} failed" + (f", {len(skips)} skipped" if skips else ""))
    return 0 if passed and not failures else 1


if __name__ == "__main__":
    sys.exit(main())
