"""Compares PyTorch's op_db (703 entries), compiled by meshard.torch, or on its device, with PyTorch's CPU.

usage: op_database.py [--only NAME,...] [--dtype DTYPE] [--samples 8] [--grad] [--part I/N] [--verbose] [--out FILE]
                      [--device [--variant "in place"|out]]

Without a dtype, each entry is compared in float32, or in one that it has. --device runs the samples eagerly on the
device "meshard"; with --variant, those that write to their first argument, or to out=.
It prints the entries that are not right with their reasons, and how many are what. The entries that are known not to be
right are those of the table in docs/guides/pytorch-limits.md: an entry that is not right and not there, or there and
right in all its samples, is a failure. --part 1/4 takes the second of four parts; --out writes the verdicts as JSON.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import sys
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
warnings.filterwarnings("ignore")

import torch  # noqa: E402
from op_comparison import compare, name_of, run_on_device, variant  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

LIMITS = pathlib.Path(__file__).resolve().parents[3] / "docs" / "guides" / "pytorch-limits.md"


def listed(run):
    """The entries that the table of limits has for a run: "forward", "gradient", "device", or another dtype."""
    section = LIMITS.read_text(encoding="utf-8").split("\n## Operations\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines()
            if line.startswith("| `")]
    wanted = {run} if run == "device" else {run, "all"}
    return {name for names, runs, _ in rows if wanted & set(re.split(", *", runs))
            for name in re.findall("`([^`]+)`", names)}


def own_dtype(entry, gradients):
    """float32, or what comes nearest to it of what an entry has."""
    has = entry.supported_backward_dtypes("cpu") if gradients else entry.supported_dtypes("cpu")
    return next((each for each in (torch.float32, torch.complex64, torch.int64, torch.bool, torch.bfloat16,
                                   torch.float8_e4m3fn) if each in has), torch.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--dtype")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--grad", action="store_true")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--device", action="store_true")
    parser.add_argument("--variant", choices=("plain", "in place", "out"), default="plain")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--out")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    only = set(filter(None, options.only.split(",")))
    run = "device" if options.device else "gradient" if options.grad else options.dtype or "forward"
    limits = listed(run)
    known = {name for entry in op_db for name in (entry.name, name_of(entry))}
    for names, source in ((only, "--only"), (limits, LIMITS.name)):
        if names - known:
            parser.error(f"op_db has no entry {', '.join(sorted(names - known))} ({source})")
    counts, verdicts, failures = collections.Counter(), {}, []
    for entry in op_db[part::parts]:
        name = name_of(entry)
        if only and not only & {entry.name, name}:
            continue
        dtype = getattr(torch, options.dtype) if options.dtype else own_dtype(entry, options.grad)
        op = variant(entry, options.variant)
        if op is None:
            continue
        verdict = compare(entry, dtype, options.samples, options.grad, op=op,
                          **({"run": run_on_device} if options.device else {}))
        counts[verdict.kind] += 1
        verdicts[name] = (verdict.kind, verdict.reason)
        if options.verbose or verdict.kind not in ("right", "skipped"):
            print(f"{verdict.kind:8}{name:45}{verdict.reason}", flush=True)
        if verdict.kind not in ("right", "skipped") and name not in limits:
            failures.append(f"{name} is not right, and not in {LIMITS.name}")
        elif verdict.kind == "right" and verdict.of_all and name in limits and run in ("forward", "gradient") \
                and not options.device:
            failures.append(f"{name} is right, but in {LIMITS.name}")
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    print("\n".join(failures))
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(verdicts, file, indent=1)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
