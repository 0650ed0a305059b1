"""Compares the programs for ranks of the catalog with LocalTensorMode.

usage: rank_database.py [--only llama_tensor_parallel,ring_attention] [--topology v5p:2x2x2] [--verbose]

A line per program has the largest error of a result, and the number of collectives: those that the program calls, which
those of the recorded program have to equal in kind, axes, count and bytes, and those that XLA left after it combined
some. With a topology, each program is also printed beside what is inserted where only parameters and inputs are marked.
"""

import argparse
import collections
import os
import time
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import rank_collective_programs  # noqa: F401: adds its programs
from rank_comparison import Comparison, by_axes
from rank_programs import PROGRAMS

import meshard as ms
import meshard.torch as mt


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="names of programs")
    parser.add_argument("--topology", default="", help="print each program beside one that is only marked")
    parser.add_argument("--verbose", action="store_true", help="tracebacks of errors")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    if unknown := only - set(PROGRAMS):
        parser.error(f"unknown {', '.join(sorted(unknown))}: choose of {', '.join(PROGRAMS)}")
    mesh, totals = ms.Mesh({"data": 2, "model": 4}), collections.Counter()
    for name in [each for each in PROGRAMS if not only or each in only]:
        begin = time.time()
        try:
            compared = Comparison(PROGRAMS[name], mesh)
            wanted, called = compared.wanted()
            error = compared.error(wanted)
            recorded, reported = compared.recorded(), compared.reported()
            same = recorded == called and by_axes(reported) == by_axes(called)
            kind = "right" if error <= 1e-4 and same else "wrong"
            text = f"{error:.1e}  {called.total()} collectives, {reported.total()} compiled"
            if not same:
                text += f"\n  called {dict(called)}\n  recorded {dict(recorded)}\n  reported {dict(reported)}"
            if options.topology:
                text += "\n" + str(mt.compare_with_marks(compared.per_rank, compared.program.whole,
                                                         *compared.program.arguments, topology=options.topology))
        except ImportError as found:
            kind, text = "skipped", f"{found.name} is not installed"
        except Exception as found:  # noqa: BLE001  (the line says what it is)
            kind, text = "error", f"{type(found).__name__}: {' '.join(str(found).split())[:300]}"
            if options.verbose:
                traceback.print_exc()
        totals[kind] += 1
        print(f"{kind:8}{name:40}{time.time() - begin:6.1f} s  {text}", flush=True)
    print(dict(totals))
    raise SystemExit(totals["right"] + totals["skipped"] != totals.total())


if __name__ == "__main__":
    main()
