#!/usr/bin/env python3
"""Tools for runs of several processes, under mpirun: traces of all processes in one file, reports that mark what crosses
processes, and meshes whose outer axes are processes or machines.

usage: check_run_tools.py PROGRAM MPI_LIBRARY

Skipped (status 77) without mpirun, libmeshard_mpi.so or a plugin. The last line is `N passed, N failed`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from mpi_runs import Failed, ended, environment, expect, start

PROGRAM, LIBRARY = (os.path.abspath(path) for path in sys.argv[1:])
SKIPPED = 77
LIMIT = 300


def run(count, *words, wrapper=()):
    """@return the output of the program in `count` processes, each of which the wrapper starts"""
    variables = environment(LIBRARY, {"MESHARD_PROGRAM_CACHE_MB": "0"})
    status, output, errors = ended(start(count, [*wrapper, PROGRAM, *words], variables), LIMIT)
    expect(status == 0, f"status {status}: {output}{errors}")
    return output


def trace(count):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        expect("written" in run(count, "trace", path), "not written")
        expect(sorted(os.listdir(folder)) == ["trace.json", "trace.json.1"], os.listdir(folder))
        for file in (path, path + ".1"):
            with open(file, encoding="utf-8") as opened:
                check_trace(json.load(opened), count)


def wrapped(ranks, wrapper):
    """Starts the processes with these ranks by the command `wrapper`."""
    case = f'case $OMPI_COMM_WORLD_RANK in {ranks}) exec {wrapper} "$@";; esac; exec "$@"'
    return "sh", "-c", case, "sh"


def other_clock():
    """Process 1 has a clock that is 5000 s ahead of the others'."""
    shift = "unshare --time --monotonic 5000 --fork"
    if subprocess.run([*shift.split(), "true"], capture_output=True).returncode != 0:
        print("processes with another clock cannot be made here (unshare --time)")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        run(3, "trace", path, wrapper=wrapped("1", shift))
        with open(path, encoding="utf-8") as opened:
            check_trace(json.load(opened), 3, measured=(1,))


def check_trace(whole, count, measured=()):
    events = [event for event in whole["traceEvents"] if event["ph"] == "X"]
    ranks = list(range(count))
    names = {event["pid"]: event["args"]["name"] for event in whole["traceEvents"] if event["name"] == "process_name"}
    host = os.uname().nodename
    expect(names == {rank: f"process {rank} on {host}" for rank in ranks}, names)
    facts = whole["otherData"]["processes"]
    expect([each["rank"] for each in facts] == ranks and len({each["pid"] for each in facts}) == count, facts)
    # Where the clocks are the same one, nothing is estimated. One process has begun first.
    expect([rank for rank in ranks if facts[rank]["clock_precision_us"] > 0] == list(measured), facts)
    expect(min(each["begin_us"] for each in facts) == 0 and max(each["begin_us"] for each in facts) < 1e9, facts)
    error = max(each["clock_precision_us"] for each in facts)
    for rank in ranks:
        own = {(event["cat"], event["name"]) for event in events if event["pid"] == rank}
        for wanted in (("barrier", "barrier first"), ("barrier", "barrier second"), ("execute", "execute total"),
                       ("collective", "collective all-reduce"), ("exchange", "exchange f32[%d]" % (2 * count))):
            expect(wanted in own, rank, wanted, "not in", own)
        expect("collective partition-id" not in {name for _, name in own}, own)
        devices = {event["args"]["name"] for event in whole["traceEvents"]
                   if event["name"] == "thread_name" and event["pid"] == rank and event["args"]["name"].startswith("device")}
        expect(devices == {f"device {rank}"}, devices)
    for name in ("barrier first", "barrier second", "collective all-reduce"):
        spans = [(event["ts"], event["ts"] + event["dur"]) for event in events if event["name"] == name]
        expect(len(spans) == count, name, spans)
        # Nobody leaves before the last one has come.
        expect(max(begin for begin, _ in spans) <= min(end for _, end in spans) + error, name, spans, error)
    # Process k begins its trace 50 k ms after process 0, and they reach the first barrier together.
    begins = [each["begin_us"] for each in facts]
    expect(all(begins[k] - begins[0] > -error for k in ranks[1:]), begins)
    tracks = {}
    for event in events:
        expect(event["ts"] >= 0 and event["dur"] >= 0 and event["tid"] >= 1, event)
        tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    for track, spans in tracks.items():  # nested or apart
        for i, (a, b) in enumerate(spans):
            expect(all(c >= b or d <= a or (a <= c and d <= b) or (c <= a and b <= d) for c, d in spans[i + 1:]), track, spans)


def no_trace():
    output = run(3, "no_trace", "/nowhere/at/all.json")
    lines = sorted(output.splitlines())
    expect(len(lines) == 3 and all("cannot write /nowhere/at/all.json" in line for line in lines), output)
    expect(["in process 0" in line for line in lines] == [False, True, True], output)


def hybrid():
    one, many = run(1, "hybrid"), run(4, "hybrid")
    expect(one == many and one.count("mesh<") == 3, one, many)
    # The columns of 0 to 15 in four rows, doubled, and the rows.
    expect(one.count("[48, 56, 64, 72]") == 3 and one.count("[6, 22, 38, 54]") == 3, one)


def machines():
    expect(run(1, "machines") == "0,1,2,3: 28\n", "one process")
    expect(run(4, "machines") == "0,1,2,3: 28\n", "one machine")
    if subprocess.run(["unshare", "--uts", "hostname", "beta"], capture_output=True).returncode != 0:
        print("machines with other names cannot be made here (unshare --uts)")
        return
    # Processes 1 and 3 are on another machine, as with `mpirun --map-by node`.
    rename = """unshare --uts sh -c 'hostname beta && exec "$@"' sh"""
    expect(run(4, "machines", wrapper=wrapped("1|3", rename)) == "0,2,1,3: 28\n", "two machines")


def report():
    one, many = run(1, "report"), run(4, "report")
    expect("cross" not in one and 'on axis "model"' in one, one)
    expect('4 processes; axes "data" and "model" cross them' in many, many)
    expect(re.search(r'all-reduce on axis "model", 64 B, across processes', many), many)
    # 4 rows of 4 floats, in a ring of two devices: as many bytes over the link, in two messages.
    seconds = [float(text.split("seconds ")[1]) for text in (one, many)]
    expect(abs(seconds[0] - 64 / 1e6) < 1e-9 and abs(seconds[1] - (64 / 1e3 + 2 * 0.5)) < 1e-9, seconds)


def main():
    if shutil.which("mpirun") is None or not os.path.exists(LIBRARY):
        print("skipped: no mpirun (Debian package openmpi-bin), or no libmeshard_mpi.so (libopenmpi-dev)")
        return SKIPPED
    try:
        run(1, "hybrid")
    except Failed as failure:
        if "no plugin" in str(failure):
            print("skipped: no plugin")
            return SKIPPED
    passed, failed = 0, 0
    for test, *arguments in ((trace, 2), (trace, 4), (other_clock,), (no_trace,), (hybrid,), (machines,), (report,)):
        try:
            test(*arguments)
            passed += 1
        except Failed as failure:
            failed += 1
            print(f"FAILED {test.__name__} {arguments}: {failure}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
