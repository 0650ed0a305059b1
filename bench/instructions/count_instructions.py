#!/usr/bin/env python3
"""Counts the instructions of a jitted call, by function, with valgrind's callgrind.

usage: count_instructions.py PROGRAM PLUGIN [--record | --check] [--compiler TEXT] [--functions N]

PROGRAM is meshard-call-instructions, PLUGIN the fake plugin. Counted are the instructions of meshard, and CALL_COST for each
call that it makes to another library except the plugin: what malloc takes depends on the state of the heap, and on the
system's library. Unlike times, they repeat. The process has one core, so that the calling thread also destroys the buffers, which
another thread does elsewhere. --record writes recorded.json beside this file;
--check compares with it: a call that takes more than 5 % (and 500) more instructions fails, with the functions that grew. The
counts depend on the compiler, which --compiler names; those of another one are not compared.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

RECORDED = pathlib.Path(__file__).with_name("recorded.json")
CALLS = 10
CALL_COST = 100  # about what one of malloc or free takes; most of the calls are these
ALLOWED = 1.05
# Whether a launch is seen as done by the next call depends on threads.
SLACK = 500
# (parameters, devices, donated)
CASES = [(2, 1, 0), (20, 1, 0), (200, 1, 0), (2000, 1, 0), (2, 8, 0), (20, 8, 0), (200, 8, 0), (2000, 8, 0), (200, 8, 1)]


def case_name(parameters, devices, donated):
    return f"{parameters} parameters on {devices} device{'s' if devices > 1 else ''}" + (", donated" if donated else "")


def counts_of(dump, own_object):
    """Instructions by function of `own_object`: its own, and CALL_COST for each call of another object, but not the plugin's."""
    names = {}  # compressed names: ("fn", "12") -> text

    def full(kind, text):
        number, name = re.fullmatch(r"\((\d+)\)(?: (.*))?", text).groups()
        if name is not None:
            names[kind, number] = name
        return names[kind, number]

    counts = collections.Counter()
    here = function = called_object = None
    calls = 0
    for line in dump.splitlines():
        key, _, value = line.partition("=")
        if key == "ob":
            here = full("ob", value)
        elif key == "fn":
            function = full("fn", value)
        elif key == "cob":
            called_object = full("ob", value)
        elif key == "cfn":
            full("fn", value)
        elif key in ("fl", "fi", "fe", "cfi", "cfl"):
            full("fl", value)
        elif key == "calls":
            calls = int(value.split()[0])
        elif re.match(r"[+\-*\d]", line):
            cost = int(line.split()[1])
            if calls:
                # A call within the object is counted where it arrives.
                if here == own_object and called_object not in (None, own_object) and "fake_plugin" not in called_object:
                    counts[function] += calls * CALL_COST
                calls, called_object = 0, None
            elif here == own_object:
                counts[function] += cost
    return counts


def measure(program, plugin, case):
    with tempfile.TemporaryDirectory() as folder:

        def run(calls):
            out = pathlib.Path(folder, f"callgrind.{calls}")
            done = subprocess.run(
                ["valgrind", "--tool=callgrind", "--toggle-collect=*meshard_measured_calls*",
                 f"--callgrind-out-file={out}", program, *map(str, case), str(calls)],
                capture_output=True, encoding="utf-8", check=False, env={**os.environ, "MESHARD_PLUGIN": plugin},
                preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}))
            if done.returncode != 0:
                sys.exit(f"{' '.join(done.args)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
            return counts_of(out.read_text(encoding="utf-8"), os.path.realpath(program))

        # callgrind counts how often a function is called from the beginning of the process.
        counts = run(2 * CALLS)
        counts.subtract(run(CALLS))
    large = {name: round(count / CALLS) for name, count in counts.most_common() if count * 200 >= counts.total()}
    return large | {"(others)": round(counts.total() / CALLS) - sum(large.values())}


def short(name):
    """A function's name without its parameters and template arguments."""
    if name == "(others)":
        return name
    while "<" in (shorter := re.sub(r"<[^<>]*>", "", name)) and shorter != name:
        name = shorter
    return re.sub(r"\(.*", "", re.sub(r"<[^<>]*>|\(anonymous namespace\)::", "", name))


def show(counts, most):
    for name, count in list(counts.items())[:most]:
        print(f"  {count:>9}  {short(name)}")


def compare(case, now, before, most):
    """Whether the case takes as many instructions as before; prints what grew otherwise."""
    total, old = sum(now.values()), sum(before.values())
    good = total <= ALLOWED * old + SLACK
    print(f"{'ok' if good else 'FAILED'}: {case}: {total} instructions, recorded {old} ({total / old:.3f})")
    if not good:
        grown = sorted(((now[name] - before.get(name, 0), name) for name in now), reverse=True)
        for more, name in grown[:most]:
            if more > 0:
                print(f"  +{more:<8} {short(name)} ({before.get(name, 0)} before)")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("plugin")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--record", action="store_true")
    what.add_argument("--check", action="store_true")
    parser.add_argument("--compiler", default="")
    parser.add_argument("--functions", type=int, default=12)
    arguments = parser.parse_args()
    recorded = json.loads(RECORDED.read_text(encoding="utf-8")) if arguments.check else {}
    why_not = ("valgrind is not installed" if shutil.which("valgrind") is None else
               f"the counts are of {recorded['compiler']}, this is {arguments.compiler}"
               if arguments.check and recorded["compiler"] != arguments.compiler else "")
    if why_not:
        print(f"skipped: {why_not}\n0 passed, 0 failed, {len(CASES)} skipped")
        return 0 if arguments.check else 1
    results, failed = {}, 0
    for case in CASES:
        name = case_name(*case)
        counts = results[name] = measure(arguments.program, arguments.plugin, case)
        if arguments.check:
            failed += not compare(name, counts, recorded["calls"][name], arguments.functions)
        else:
            print(f"{name}: {sum(counts.values())} instructions for each call")
            show(counts, arguments.functions)
    if arguments.record:
        RECORDED.write_text(json.dumps({"compiler": arguments.compiler, "calls": results}, indent=1) + "\n", encoding="utf-8")
    if arguments.check:
        print(f"{len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
