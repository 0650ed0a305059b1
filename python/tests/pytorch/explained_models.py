"""Explains the models of the catalog for hardware that is not here, and checks what is known of each collective.

usage: explained_models.py [--only llama,gpt2] [--part 0/1] [--topology v5e:4x4,h100:8] [--what forward,train] [--list]

Each collective must have mesh axes, bytes, lines of the model's own Python files, and what it moves: a parameter,
the module that computes it, or a result. The compilers are those of `meshard fetch tpu` and `meshard fetch cuda`.
"""

import argparse
import collections
import inspect
import math
import pathlib
import time

import torch
from model_comparison import Model
from model_database import models

import meshard as ms
import meshard.torch as mt
from meshard import P

_TESTS = pathlib.Path(__file__).parent


def mesh_of(topology):
    """The mesh of a target's devices: four for "model", the others for "data"."""
    size = len(ms.Target.parse(topology).device_ids)
    return ms.Mesh({"data": size // 4, "model": 4})


def explained(model: Model, topology, train):
    """The report of a model's forward pass or training step with its plan, and the module."""
    mesh = mesh_of(topology)
    torch.manual_seed(0)
    module = model.build()
    model.plan(module, mesh)
    inputs = model.inputs()
    for name, value in inputs.items():
        if isinstance(value, torch.Tensor) and (model.split is None or name in model.split):
            repeats = math.lcm(value.shape[0], mesh.axis_size("data")) // value.shape[0]
            inputs[name] = mt.mark_sharding(value.repeat(repeats, *[1] * (value.ndim - 1)), mesh, P("data"))
    if not train:
        return ms.explain(module.eval(), topology=topology, **inputs), module
    optimizer = torch.optim.AdamW(module.parameters())
    step = mt.train_step(module.train(), model.loss, optimizer)
    return ms.explain(step, topology=topology, **inputs), module


def own_files(module):
    """The names of the Python files in the packages of a model, and of the tests'."""
    names = {file.name for file in _TESTS.glob("*.py")}
    for each in module.modules():
        package = type(each).__module__.partition(".")[0]
        if package not in ("torch", "__main__"):
            root = pathlib.Path(inspect.getfile(__import__(package)))
            if root.parent != _TESTS:
                names |= _files(root.parent)
    return names


_FILES = {}


def _files(folder):
    if folder not in _FILES:
        _FILES[folder] = {file.name for file in folder.rglob("*.py")}
    return _FILES[folder]


def collectives(report):
    """The collectives, without the later fragments of those that a compiler writes as several instructions."""
    return [each for each in report.collectives if not each.continues]


def unknown(report, module):
    """What is not known of a report's collectives, as lines of text."""
    axes, modules, files = set(report.mesh_axes), dict(module.named_modules()), own_files(module)
    found = []
    for each in collectives(report):
        problems = []
        if not each.axes or any(axis.partition(":")[0].strip('"') not in axes for axis in each.axes):
            problems.append(f"axes {each.axes}")
        if each.bytes <= 0:
            problems.append("no bytes")
        strange = [place for place in each.places if place.rpartition(":")[0].rpartition("/")[2] not in files]
        if not each.places or strange:
            problems.append(f"lines {strange or 'none'}")
        layer = each.purpose.layer.removeprefix("loop").strip("/").replace("/", ".")
        if not each.purpose.names and (not layer or layer not in modules) and not each.tensor:
            problems.append("moves an unknown value")
        if problems:
            found.append(f"{each.kind} {each.instruction}: {', '.join(problems)}; {each.purpose} {each.tensor}")
    return found


def named(report, module):
    """How many collectives have a parameter or result, a module, and only a value."""
    counts = collections.Counter()
    for each in collectives(report):
        counts["named" if each.purpose.names else "in a module" if each.purpose.layer else "a value"] += 1
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="names of models")
    parser.add_argument("--part", default="0/1", help="every which model: 1/3 is the second of three parts")
    parser.add_argument("--topology", default="v5e:4x4,h100:8")
    parser.add_argument("--what", default="forward,train")
    parser.add_argument("--list", action="store_true", help="prints the reports")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    part, parts = map(int, options.part.split("/"))
    totals = collections.Counter()
    for model in [each for each in models() if not only or each.name in only][part::parts]:
        for topology in options.topology.split(","):
            for what in options.what.split(","):
                begin = time.time()
                try:
                    report, module = explained(model, topology, what == "train")
                    problems = unknown(report, module)
                    kind = "lacks" if problems else "known"
                    text = f"{len(collectives(report))} collectives: {named(report, module)}"
                    totals["collectives"] += len(collectives(report))
                    totals["collectives that lack something"] += len(problems)
                except Exception as error:  # noqa: BLE001  (the line says what it is)
                    kind, text, problems = "error", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}", []
                totals[kind] += 1
                print(f"{kind:6}{model.name:16}{topology:9}{what:8}{time.time() - begin:6.1f} s  {text}", flush=True)
                for problem in problems[:8]:
                    print("     ", problem, flush=True)
                if options.list and kind != "error":
                    print(report)
    print(dict(totals))
    raise SystemExit(totals["error"] or totals["lacks"])


if __name__ == "__main__":
    main()
