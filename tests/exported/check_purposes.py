#!/usr/bin/env python3
"""Explains the modules of tests/golden/exported/purposes, and compares what the collectives are for with their records.

usage: check_purposes.py --meshard PROGRAM --data FOLDER [--jobs N] [NAME...]

Compared are, for each gather of an argument, sum of gradients and gather of new weights: the purpose, the names of the
weights, the layer, and the phase. A line for each difference names the collective, the report's value and the record's.
Skips, with a message, without the TPU plugin. The last line is `N passed, N failed`.
"""

import argparse
import concurrent.futures
import gzip
import json
import pathlib
import signal
import subprocess
import sys
import tempfile

from check_exported import has_plugin

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost


def explained(program, truth, data):
    with tempfile.TemporaryDirectory() as folder:
        module, report = pathlib.Path(folder, "module.mlir"), pathlib.Path(folder, "report.json")
        module.write_bytes(gzip.decompress((data / truth["module"]).read_bytes()))
        done = subprocess.run([program, "explain", module, "--topology", truth["topology"], "--no-cache", "--json", report],
                              capture_output=True, encoding="utf-8", errors="replace")
        if not report.exists():
            raise RuntimeError(f"exit code {done.returncode}: {done.stdout}{done.stderr}")
        return json.loads(report.read_text(encoding="utf-8"))


def paired(report, truth):
    """(record, reported collective or None) of each. Names are numbers that a compiler may give in another order."""
    left, pairs = list(report["logical_collectives"]), []

    def same(one, record):
        return one["whole"]["kind"] == record["kind"] and one["whole"]["bytes_in"] == record["bytes_in"]

    def named(one, record):
        return bool(set(one["instructions"]) & set(record["instructions"]))

    waiting = truth["collectives"]
    for match in (lambda a, b: named(a, b) and same(a, b), same, named):
        rest = []
        for record in waiting:
            one = next((one for one in left if match(one, record)), None)
            if one is None:
                rest.append(record)
            else:
                left.remove(one)
                pairs.append((record, one))
        waiting = rest
    return pairs + [(record, None) for record in waiting]


def compared(report, truth):
    """(number of collectives that are right in weight and layer, lines about the others and about wrong phases)."""
    right, lines = 0, []
    for record, found in paired(report, truth):
        one = found and found["whole"]["purpose"]
        what = f"{record['instructions'][0]}: {record['purpose']} of {', '.join(record['names'])}"
        if one is None:
            lines.append(f"{what}: not in the report")
            continue
        wrong = []
        if one["kind"] != record["purpose"]:
            wrong.append(f"is called {one['kind']}")
        if sorted(one["names"]) != record["names"]:
            wrong.append(f"names {', '.join(one['names']) or 'nothing'}")
        if one["layer"] not in record["layers"]:
            wrong.append(f"layer {one['layer']!r}, not {' or '.join(map(repr, record['layers']))}")
        right += not wrong
        if one["phase"] != record["phase"]:
            wrong.append(f"phase {one['phase']!r}, not {record['phase']!r}")
        if wrong:
            lines.append(f"{what}: {'; '.join(wrong)}")
    return right, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meshard", required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    names = arguments.names or sorted(path.stem for path in arguments.data.glob("*.json"))
    if not has_plugin(arguments.meshard):
        print("SKIPPED: the TPU plugin is not here (meshard fetch tpu)")
        print(f"0 passed, 0 failed, {len(names)} skipped")
        return 0

    def check(name):
        truth = json.loads((arguments.data / f"{name}.json").read_text(encoding="utf-8"))
        try:
            return (*compared(explained(arguments.meshard, truth, arguments.data), truth), len(truth["collectives"]))
        except (RuntimeError, KeyError) as error:
            return 0, [f"no report: {error!r}"], len(truth["collectives"])

    failed, sums = 0, [0, 0]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for name, (right, lines, count) in zip(names, pool.map(check, names)):
            failed += bool(lines)
            sums = [sums[0] + right, sums[1] + count]
            print(f"{'FAILED' if lines else 'ok'} {name}: weight and layer of {right} of {count}", flush=True)
            for line in lines:
                print(f"  {line}")
    print(f"weight and layer of {sums[0]} of {sums[1]} collectives")
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
