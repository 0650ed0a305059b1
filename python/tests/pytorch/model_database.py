"""Compares the models of the catalog, on one device and on a mesh of 2x4 with their plans, with PyTorch's CPU.

usage: model_database.py [--only llama,gpt2] [--part 0/1] [--check logits,gradients,train,generate]
                         [--on device,mesh] [--verbose]

A line per model and check has the largest error of a tensor, relative to that tensor (model_comparison.Errors), and
the tensor's name.
"""

import argparse
import collections
import importlib
import os
import pathlib
import time
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

from model_comparison import CHECKS, Comparison


def models():
    """All models of the catalog: the MODELS of the files models_*.py in this folder."""
    files = sorted(pathlib.Path(__file__).parent.glob("models_*.py"))
    return [model for file in files for model in importlib.import_module(file.stem).MODELS]


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="names of models")
    parser.add_argument("--part", default="0/1", help="every which model: 1/3 is the second of three parts")
    parser.add_argument("--check", default=",".join(CHECKS))
    parser.add_argument("--on", default="device,mesh")
    parser.add_argument("--verbose", action="store_true", help="tracebacks of errors")
    options = parser.parse_args()
    for chosen, known in ((options.check, CHECKS), (options.on, ("device", "mesh"))):
        if unknown := set(chosen.split(",")) - set(known):
            parser.error(f"unknown {', '.join(sorted(unknown))}: choose of {', '.join(known)}")
    return options


def verdict(comparison, check, on_mesh, verbose):
    """(right, wrong or error; what was found) of one check."""
    try:
        error, name, tolerance = comparison.check(check, on_mesh)
    except Exception as found:  # noqa: BLE001  (the line says what it is)
        if verbose:
            traceback.print_exc()
        return "error", f"{type(found).__name__}: {' '.join(str(found).split())[:220]}"
    if error <= tolerance:
        return "right", f"{error:.1e}  {name if tolerance else ''}"
    return "wrong", f"{error:.1e}  {name}"


def main():
    options = arguments()
    only = set(filter(None, options.only.split(",")))
    part, parts = map(int, options.part.split("/"))
    found = models()
    if unknown := only - {model.name for model in found}:
        raise SystemExit(f"unknown models {', '.join(sorted(unknown))}")
    totals, begin = collections.Counter(), time.time()
    for model in [each for each in found if not only or each.name in only][part::parts]:
        comparison = Comparison(model)
        for check in options.check.split(","):
            if check == "generate" and model.generate is None:
                continue
            for place in options.on.split(","):
                started = time.time()
                kind, reason = verdict(comparison, check, place == "mesh", options.verbose)
                totals[kind] += 1
                print(f"{kind:6}{model.name:16}{check:10}{place:7}{time.time() - started:6.1f} s  {reason}", flush=True)
    print(dict(totals), f"{time.time() - begin:.0f} s")
    raise SystemExit(totals["right"] != totals.total())


if __name__ == "__main__":
    main()
