#!/usr/bin/env python3
"""Explains the modules of tests/golden/exported/programs, and compares each report with what JAX got from its compile.

usage: check_programs.py --meshard PROGRAM --data FOLDER [--jobs N] [NAME...]

Compared are the memory to the byte (the host's too, if the report has it), every collective instruction (kind, axes,
bytes in and out, executions, whether it is in a branch, source line), and of each argument and result the shard, the
axes that split it, the kind of memory, and whether a result takes the argument's memory. A line for each difference
names the field, the report's value and JAX's. Skips, with a message, without the TPU plugin. The last line is
`N passed, N failed`.
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
import time

from check_exported import has_plugin

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

FIELDS = ("kind", "axes", "bytes_in", "bytes_out", "executions", "continues", "conditional")


def short(place):
    """A place without its folders, which a report may leave out."""
    return place.rsplit("/", 1)[-1]


def collective_of(one):
    """A reported collective in the terms of the records."""
    found = {field: one[field] for field in FIELDS}
    if not one["executions_known"]:
        found["executions"] = None
    return found


def line_differences(one, record):
    """Of a collective that exists on both sides: its source line, which is the innermost of the program's own."""
    own = [place for place in record["lines"] if "site-packages" not in place] or record["lines"]
    places = [short(place["place"]) for place in one["origin"]["places"] if place["place"]]
    certainty = one["origin"]["certainty"]
    if not own:
        wrong, wanted = places and certainty in ("exact", "merged"), "no line"
    else:
        wrong, wanted = short(own[0]) not in places, own[0]
    return [f"is {certainty}, from {places}; JAX's text has {wanted}"] if wrong else []


def paired(report, truth):
    """(reported collectives with their records, reported ones without a record, records without a reported one).

    Pairs have the same name or, since names are numbers that a compiler may give in another order, the same fields.
    """
    ours, theirs = list(report["collectives"]), list(truth["collectives"])
    pairs = []

    def same(one, record):
        fields = collective_of(one)
        return all(fields[f] == record[f] for f in FIELDS if f != "axes" or record["kind"] not in ("send", "recv"))

    def same_line(one, record):
        return same(one, record) and not line_differences(one, record)

    def named(one, record):
        return one["instruction"] == record["instruction"]

    for match in (lambda a, b: named(a, b) and same_line(a, b), same_line, lambda a, b: named(a, b) and same(a, b), same, named):
        for one in list(ours):
            record = next((record for record in theirs if match(one, record)), None)
            if record is not None:
                pairs.append((one, record))
                ours.remove(one)
                theirs.remove(record)
    return pairs, ours, theirs


def collective_differences(report, truth):
    pairs, ours, theirs = paired(report, truth)
    found = [f"collective {one['instruction']}: missing; JAX has {[one[field] for field in FIELDS]}" for one in theirs]
    found += [f"collective {one['instruction']}: JAX does not have it; reported {list(collective_of(one).values())}"
              for one in ours]
    for one, record in pairs:
        reported = collective_of(one)
        skipped = ("axes",) if record["kind"] in ("send", "recv") else ()
        found += [f"collective {one['instruction']}: {field} {reported[field]}, JAX {record[field]}"
                  for field in FIELDS if field not in skipped and reported[field] != record[field]]
        found += [f"collective {one['instruction']}: line {text}" for text in line_differences(one, record)]
    return found


def value_differences(kind, reported, recorded):
    if len(reported) != len(recorded):
        return [f"{kind}s: {len(reported)}, JAX {len(recorded)}"]
    found = []
    for i, (one, record) in enumerate(zip(reported, recorded)):
        what = f"{kind} {i} {one['name']}".strip()
        if one["shard"] != record["shard"]:
            found.append(f"{what}: shard {one['shard']}, JAX {record['shard']}")
        stored = one.get("memory_kind", record["memory"]) or "device"
        if stored != record["memory"]:
            found.append(f"{what}: memory {stored}, JAX {record['memory']}")
        if record["spec"] is None or one["sharding"] is None:
            continue
        spec = [dimension["axes"] for dimension in one["sharding"]["dimensions"]]
        if spec != record["spec"]:
            found.append(f"{what}: split by {spec}, JAX {record['spec']}")
    return found


def differences(report, truth):
    """The differences, as text."""
    found = []
    for part, expected in truth["memory"].items():
        answer = (report["memory"] or {}).get(part)
        if answer != expected:
            found.append(f"memory {part}: {answer}, JAX {expected}")
    for part, expected in truth["host_memory"].items():
        answer = (report["memory"] or {}).get(f"host_{part}", expected)
        if answer != expected:
            found.append(f"memory of the host, {part}: {answer}, JAX {expected}")
    found += value_differences("argument", report["arguments"], truth["arguments"])
    found += value_differences("result", report["results"], truth["results"])
    donated = [i for i, one in enumerate(report["arguments"]) if one["donated"]]
    if donated != truth["reused"]:
        found.append(f"donated arguments: {donated}, JAX {truth['reused']}")
    return found + collective_differences(report, truth)


def explain(program, truth, data):
    """Exit code, output and report (None if there is none)."""
    with tempfile.TemporaryDirectory() as folder:
        path, module = pathlib.Path(folder) / "report.json", data / truth["module"]
        if module.suffix == ".gz":
            module = pathlib.Path(folder) / "module.mlir"
            module.write_bytes(gzip.decompress((data / truth["module"]).read_bytes()))
        done = subprocess.run([program, "explain", module, "--topology", truth["topology"], *truth["options"],
                               "--no-cache", "--json", path], capture_output=True, encoding="utf-8", errors="replace")
        report = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        return done.returncode, done.stdout + done.stderr, report


def check(program, path, data):
    """The differences of a program, and the seconds it took."""
    begin = time.monotonic()
    truth = json.loads(path.read_text(encoding="utf-8"))
    code, output, report = explain(program, truth, data)
    wrong = [f"exit code {code}: {output[-1500:]}"] if code != 0 or report is None else differences(report, truth)
    return wrong, time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meshard", required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    paths = sorted(arguments.data.glob("*.json"))
    if arguments.names:
        paths = [arguments.data / f"{name}.json" for name in arguments.names]
    if not has_plugin(arguments.meshard):
        print("SKIPPED: the TPU plugin is not here (meshard fetch tpu)")
        print(f"0 passed, 0 failed, {len(paths)} skipped")
        return 0
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for path, (wrong, seconds) in zip(paths, pool.map(lambda one: check(arguments.meshard, one, arguments.data), paths)):
            failed += bool(wrong)
            print(f"{'FAILED' if wrong else 'ok'} {path.stem}  {seconds:.1f} s", flush=True)
            for line in wrong:
                print(f"  {line}")
    print(f"{len(paths) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
