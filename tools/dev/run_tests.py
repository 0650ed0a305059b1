#!/usr/bin/env python3
"""Runs the CTest programs of a build folder, and counts single tests.

usage: run_tests.py --build FOLDER [--jobs N] [--only REGEX] [--timeout SECONDS] [NAME]

For a GoogleTest program, each of its tests counts (read from its XML output); for another program, the counts of its
last line `N passed, N failed` (lines `FAILED NAME` or `failed: NAME` name its failures); any other program counts as
one test. A program that crashes or exceeds its time limit counts as one more failure, and the running test is named. If gdb or eu-stack is installed, the stacks of a program's
threads are printed when it exceeds its limit. For each failed test, its assertions and the command that repeats it are
printed; the complete output of a program is in test-results/NAME.log.
NAME selects programs, or otherwise single tests, whose name contains it. --only REGEX selects programs.
--timeout SECONDS replaces the limits of all programs; the default is CTest's limit, or 600 s. --under COMMAND runs
each program through a command, which is given the program's command line. Each program has its own temporary folder,
which is removed. The last line is `N passed, N failed`, with `, N skipped` if some were skipped.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fetch"))
import file_trust  # noqa: E402

COUNTS = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")
NAMED = re.compile(r"^(?:FAILED|failed:) (.+)$", re.MULTILINE)  # how our own programs name what failed


RUNNING = re.compile(r"^\[ RUN      \] (\S+)$")
ENDED = re.compile(r"^\[ {6,7}OK \] |^\[  FAILED  \] |^\[  SKIPPED \] ")
MOST_LINES = 100  # of one failure; the log has all lines
LINES_AT_THE_END = 6  # of one failure, after its name
DEFAULT_LIMIT = 600
QUICK_COMPILER = "--xla_cpu_use_fusion_emitters=false"  # one of the flags of meshard_quick_compiler in CMake


class Outcome:
    """The result of one program: counts, failures, the names of skipped tests, and its output."""

    def __init__(self, name, log=None):
        self.name, self.passed, self.seconds, self.log = name, 0, 0.0, log
        self.failures, self.skips = [], []  # failures: (name, lines to show, filter that repeats it)
        self.output = ""
        self.repeat = lambda test_filter: ""  # the command line

    def fail(self, name, shown="", test_filter=None):
        self.failures.append((name, shown, test_filter))

    def read_xml(self, path):
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            test = f"{case.get('classname')}.{case.get('name')}"
            name = f"{self.name}: {test}"
            if case.get("status") == "notrun":
                continue
            broken = case.findall("failure") + case.findall("error")
            if broken:
                self.fail(name, "\n".join(entry.text or entry.get("message") or "" for entry in broken), test)
            elif case.find("skipped") is not None or case.get("result") == "skipped":
                reason = (case.find("skipped").get("message") or "").strip().split("\n")[-1] \
                    if case.find("skipped") is not None else ""
                self.skips.append(f"{name}: {reason}" if reason else name)
            else:
                self.passed += 1

    def read_lines(self):
        """Counts the tests of a GoogleTest program that ended before it wrote its XML, from the lines it printed."""
        test, since = None, []
        for line in self.output.split("\n"):
            if match := RUNNING.match(line):
                test, since = match[1], []
            elif test and ENDED.match(line):
                if "FAILED" in line[:12]:
                    self.fail(f"{self.name}: {test}", "\n".join(since), test)
                elif "OK" in line[:12]:
                    self.passed += 1
                else:
                    self.skips.append(f"{self.name}: {test}")
                test = None
            else:
                since.append(line)

    def running_test(self):
        """The test that was running when the program ended, and its output; None outside tests."""
        test, since = None, []
        for line in self.output.split("\n"):
            if match := RUNNING.match(line):
                test, since = match[1], []
            elif test and ENDED.match(line):
                test, since = None, []
            else:
                since.append(line)
        return test, "\n".join(since)

    def read_counts(self, line):
        passed, failed, skipped = (int(text or 0) for text in COUNTS.match(line).groups())
        self.passed += passed
        names = NAMED.findall(self.output)
        for i in range(failed):
            name = names[i] if len(names) == failed else f"failure {i + 1}"
            self.fail(f"{self.name}: {name}", self.output if i == 0 else "")
        self.skips += [f"{self.name}: skip {i + 1}" for i in range(skipped)]


def ctest_programs(build):
    """Name, command and properties of each test, from CTest."""
    text = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                          capture_output=True, encoding="utf-8").stdout
    programs = []
    for test in json.loads(text)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        programs.append((test["name"], test.get("command", []), properties))
    return programs


def is_gtest(command):
    """Whether the program is a GoogleTest program, which supports --gtest_list_tests."""
    try:
        with open(command[0], "rb") as file:
            return b"gtest_list_tests" in file.read()
    except OSError:
        return False


def stacks_of(process):
    """The stacks of all threads of all processes of a session, from gdb or eu-stack, or one line if neither is installed."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.getsid(int(entry.name)) == process.pid:
                found.append(entry.name)
        except OSError:
            continue  # the process has ended
    if shutil.which("gdb"):
        command = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "thread apply all bt 40", "-p"]
    elif shutil.which("eu-stack"):
        command = ["eu-stack", "-n", "40", "-p"]
    else:
        return "(no stacks: neither gdb nor eu-stack is installed)"
    texts = []
    for pid in sorted(found, key=int):
        try:
            done = subprocess.run([*command, pid], capture_output=True, encoding="utf-8", errors="replace", timeout=120)
            texts.append(f"stacks of process {pid}:\n{done.stdout.strip() or done.stderr.strip()}")
        except subprocess.TimeoutExpired:
            texts.append(f"stacks of process {pid}: {command[0]} took too long")
    return "\n".join(texts)


def execute(command, environment, folder, limit, log):
    """Exit status (None after the time limit) and stacks. The output is in `log`. Also kills the process group."""
    with open(log, "wb") as out:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
    # The process id cannot be reused until the process is reaped, so the group is killed before
    # that.
    deadline = time.monotonic() + limit
    while not (ended := has_ended(process)) and time.monotonic() < deadline:
        time.sleep(0.02)
    stacks = "" if ended else stacks_of(process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return (process.returncode if ended else None), stacks


def has_ended(process):
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def repeating_command(command, settings, folder, gtest):
    """Returns a function that gives the shell command line to repeat a program, or one of its tests."""
    def line(test_filter):
        words = ["env", *(f"{key}={value}" for key, value in settings.items())] if settings else []
        words += command
        if gtest and test_filter:
            words = [word for word in words if not word.startswith("--gtest_filter=")]
            words.append(f"--gtest_filter={test_filter}")
        return f"cd {shlex.quote(str(folder))} && {shlex.join(words)}"
    return line


def left_out(command):
    """The negative part of the program's own filter: these tests run under another name, with other settings."""
    for word in command:
        if word.startswith("--gtest_filter=-"):
            return word.removeprefix("--gtest_filter=")
    return ""


def uses_default_compiler():
    """Whether tests that compile quickly use the settings that users get instead."""
    return "MESHARD_NIGHTLY" in os.environ or os.environ.get("MESHARD_TEST_COMPILER") == "default"


def run_program(name, command, properties, results, limit, test_filter, under):
    outcome = Outcome(name, results / f"{name}.log")
    if not command or not pathlib.Path(command[0]).exists():
        outcome.log = None
        outcome.fail(f"{name}: its program was not built")
        return outcome
    # The settings that determine how a test runs: those of the caller, then those of CTest.
    settings = {key: value for key, value in os.environ.items()
                if key.startswith(("MESHARD_", "GTEST_SHARD", "GTEST_TOTAL", "XLA_", "TF_CPP_", "PJRT_", "NPROC"))}
    # Programs that earlier runs kept on disk would hide what compiles and how often.
    settings.setdefault("MESHARD_PROGRAM_CACHE_MB", "0")
    for setting in properties.get("ENVIRONMENT", []):
        key, _, value = setting.partition("=")
        if key == "XLA_FLAGS" and QUICK_COMPILER in value and uses_default_compiler():
            continue
        settings[key] = value
    environment = {**os.environ, **settings}
    gtest = is_gtest(command)
    if gtest:
        environment["GTEST_COLOR"] = "no"
        if test_filter:
            command = command + [f"--gtest_filter=*{test_filter}*{left_out(command)}"]
    elif test_filter:
        return outcome
    limit = float(limit or properties.get("TIMEOUT", DEFAULT_LIMIT))
    folder = properties.get("WORKING_DIRECTORY", os.getcwd())
    command = under + command
    # With two shards, the filter determines which one a test is in, so a repeated test runs without
    # shards.
    outcome.repeat = repeating_command(
        command, {key: value for key, value in settings.items() if not (gtest and key.startswith("GTEST_"))}, folder, gtest)
    temporary = tempfile.mkdtemp(prefix="test-")
    environment["TMPDIR"] = environment["TEST_TMPDIR"] = temporary
    xml = pathlib.Path(temporary) / "results.xml"
    environment["GTEST_OUTPUT"] = f"xml:{xml}"
    start = time.monotonic()
    status, stacks = execute(command, environment, folder, limit, outcome.log)
    outcome.seconds = time.monotonic() - start
    outcome.output = outcome.log.read_text(errors="replace")
    if stacks:
        with open(outcome.log, "a", encoding="utf-8") as log:
            log.write(f"\n{stacks}\n")
    judge(outcome, status, stacks, xml, properties, limit, gtest)
    shutil.rmtree(temporary, ignore_errors=True)
    return outcome


def judge(outcome, status, stacks, xml, properties, limit, gtest):
    """Counts the results from exit status, XML and output."""
    lines = outcome.output.strip().split("\n")
    if gtest and xml.exists():
        try:
            outcome.read_xml(xml)
        except ElementTree.ParseError:
            outcome.fail(f"{outcome.name}: unreadable XML")
    elif gtest:
        outcome.read_lines()
    elif COUNTS.match(lines[-1]):
        outcome.read_counts(lines[-1])
    elif status is not None and status == properties.get("SKIP_RETURN_CODE"):
        outcome.skips.append(f"{outcome.name}: {lines[-1]}")
        return
    elif status == 0:
        outcome.passed += 1
    test, said = outcome.running_test() if gtest else (None, outcome.output)
    where = f" in {test}" if test else ""
    if status is None:
        outcome.fail(f"{outcome.name}: exceeded {limit:.0f} s{where}", f"{said}\n{stacks}", test)
    elif status < 0:
        outcome.fail(f"{outcome.name}: killed by signal {-status}{where}", said, test)
    elif status != 0 and not outcome.failures:
        outcome.fail(f"{outcome.name}: exit status {status}{where}", said, test)
    elif gtest and not xml.exists():
        outcome.fail(f"{outcome.name}: ended without writing its results{where}", said, test)


def lines_of(shown):
    return shown.strip("\n").split("\n") if shown.strip() else []


def report(outcome):
    text = f"  {outcome.name:<32} {outcome.passed:>5} passed"
    text += f", {len(outcome.failures)} failed" if outcome.failures else ""
    text += f", {len(outcome.skips)} skipped" if outcome.skips else ""
    print(f"{text}  {outcome.seconds:.1f} s", flush=True)
    for name, shown, test_filter in outcome.failures:
        print(f"    {name}")
        lines = lines_of(shown)
        if len(lines) > MOST_LINES:
            lines = [*lines[:MOST_LINES // 2], f"... {len(lines) - MOST_LINES} lines ...", *lines[-MOST_LINES // 2:]]
        for line in lines:
            print(f"    | {line}")
        if repeat := outcome.repeat(test_filter):
            print(f"    repeat: {repeat}")
    if outcome.failures and outcome.log:
        print(f"    output: {outcome.log}", flush=True)


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
    parser.add_argument("--timeout", type=float)
    parser.add_argument("--under", default="")
    parser.add_argument("name", nargs="?")
    arguments = parser.parse_args()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, the system keeps no exit statuses

    build = pathlib.Path(arguments.build).resolve()
    try:
        file_trust.check(build)
    except file_trust.Untrusted as error:  # plugins of the build tree would be rejected
        print(f"{error}. The tests take what is there all the same", flush=True)
        os.environ["MESHARD_TRUST_FILES"] = "1"
    results = build / "test-results"
    results.mkdir(exist_ok=True)
    programs, test_filter = choose(ctest_programs(str(build)), arguments)
    # Programs that must run alone (they use several devices or measure memory) run after the
    # others.
    alone = [p for p in programs if p[2].get("RUN_SERIAL")]
    together = [p for p in programs if not p[2].get("RUN_SERIAL")]
    # Long ones first, so that no core is idle at the end.
    together.sort(key=lambda program: -float(program[2].get("COST", 0)))
    outcomes = []

    def job(program):
        return run_program(*program, results, arguments.timeout, test_filter, shlex.split(arguments.under))

    for group, workers in ((together, arguments.jobs), (alone, 1)):
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            for future in concurrent.futures.as_completed([pool.submit(job, p) for p in group]):
                outcome = future.result()
                outcomes.append(outcome)
                if outcome.passed or outcome.failures or outcome.skips:
                    report(outcome)

    failures = sorted((f[0], f[1]) for o in outcomes for f in o.failures)
    skips = sorted(s for o in outcomes for s in o.skips)
    passed = sum(o.passed for o in outcomes)
    for skip in skips:
        print(f"SKIPPED {skip}")
    for name, shown in failures:
        print(f"FAILED {name}")
        for line in lines_of(shown)[:LINES_AT_THE_END]:
            print(f"    {line}")
    if not (passed or failures or skips):
        print(f"no test matches {arguments.name!r}" if arguments.name else "there are no tests")
    print(f"{passed} passed, {len(failures)} failed" + (f", {len(skips)} skipped" if skips else ""))
    return 0 if passed and not failures else 1


if __name__ == "__main__":
    sys.exit(main())
