#!/usr/bin/env python3
"""Explains the modules of tests/golden/exported, and compares the reports with what JAX read from these modules.

usage: check_exported.py --meshard PROGRAM --data FOLDER [--all] [NAME...]

For each case, the bytes per device as counted by the compiler, and the number of collective instructions of each kind,
must be equal to JAX's. A program that does not fit must be reported as such, with the compiler's numbers. --all also
runs the cases that take minutes. Skips, with a message, without the TPU plugin. The last line is `N passed, N failed`.
"""

import argparse
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

BYTES = {"argument": "arguments", "output": "outputs", "alias": "aliased", "temp": "temporaries", "generated_code": "code",
         "peak_memory": "peak"}


def differences(case, report):
    """The differences, as text."""
    found = []
    for theirs, ours in BYTES.items():
        expected, answer = case["bytes_per_device"][theirs], (report["memory"] or {}).get(ours)
        if expected != answer:
            found.append(f"{ours}: {answer}, JAX read {expected}")
    counts = {}
    for collective in report["collectives"]:
        counts[collective["kind"]] = counts.get(collective["kind"], 0) + 1
    if counts != case["collectives"]:
        found.append(f"collectives: {counts}, JAX read {case['collectives']}")
    for collective in report["collectives"]:
        if collective["axes"] is None and collective["kind"] not in ("send", "recv"):
            found.append(f"{collective['instruction']}: no mesh axes")
    return found + placement_differences(case, report)


def placement_differences(case, report):
    """Shards that differ from JAX's, and shardings of the program that are called the compiler's choice."""
    found = []
    for role in ("arguments", "results"):
        if role not in case:
            continue
        shapes = [value["shard"] for value in report[role]]
        if shapes != case[role]:
            found.append(f"shards of {role}: {shapes}, JAX read {case[role]}")
        chosen = [value["chosen_by_compiler"] for value in report[role]]
        if chosen != case[f"chosen_{role}"]:
            found.append(f"chosen by the compiler, {role}: {chosen}, not {case[f'chosen_{role}']}")
    return found


def explain(program, case, data):
    """Exit code, error stream and report (None if there is none)."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "report.json"
        done = subprocess.run([program, "explain", data / case["module"], "--topology", case["topology"], "--no-cache", "--must-fit",
                               "--time-limit", "1500", "--json", path, *case.get("options", [])], capture_output=True, encoding="utf-8", errors="replace")
        report = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        return done.returncode, done.stdout + done.stderr, report


def check(program, case, data):
    """The errors of a case, as a list."""
    code, output, report = explain(program, case, data)
    if "does_not_fit" in case:
        wrong = [] if code == 1 else [f"exit code {code}, not 1"]
        return wrong + [f"{number} is not reported: {output}" for number in case["does_not_fit"].values() if number not in output]
    if code != 0 or report is None:
        return [f"exit code {code}: {output[-2000:]}"]
    return differences(case, report)


def has_plugin(program):
    return subprocess.run([program, "doctor", "--target", "tpu"], capture_output=True).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meshard", required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    cases = [case for name in ("expected.json", "compiled.json")
             for case in json.loads((arguments.data / name).read_text(encoding="utf-8"))["cases"]]
    chosen = [case for case in cases if case["name"] in arguments.names] if arguments.names else \
        [case for case in cases if arguments.all or case["quick"]]
    if not has_plugin(arguments.meshard):
        print("SKIPPED: the TPU plugin is not here (meshard fetch tpu)")
        print(f"0 passed, 0 failed, {len(chosen)} skipped")
        return 0
    failed = 0
    for case in chosen:
        begin = time.monotonic()
        wrong = check(arguments.meshard, case, arguments.data)
        failed += bool(wrong)
        print(f"{'FAILED' if wrong else 'ok'} {case['name']}  {time.monotonic() - begin:.1f} s", flush=True)
        for line in wrong:
            print(f"  {line}")
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
