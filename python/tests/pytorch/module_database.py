"""Compares the modules of PyTorch's module_db, compiled, with PyTorch on the CPU: results, gradients and buffers.

usage: module_database.py [--only Linear,nn.Conv2d] [--dtype float32] [--samples 4] [--part 0/1] [--verbose]
                          [--dynamo]

It ends with an error if a module is not right.
"""

import argparse
import collections
import copy
import inspect
import os
import time
import traceback
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import torch
from torch.testing._internal.common_modules import module_db
from torch.utils import _pytree as pytree

import meshard.torch as mt
from meshard.torch._dynamo import backend


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--dynamo", action="store_true", help="torch.compile(backend='meshard'), not mt.compile")
    return parser.parse_args()


def difference(expected, actual):
    """How two results differ; empty if they do not."""
    if not isinstance(expected, torch.Tensor):
        return "" if expected == actual else f"{actual} for {expected}"
    if not isinstance(actual, torch.Tensor):
        return f"{type(actual)} for a tensor"
    try:
        torch.testing.assert_close(actual.detach(), expected.detach(), rtol=1e-4, atol=1e-4, equal_nan=True,
                                   check_stride=False)
    except AssertionError as error:
        return " ".join(str(error).split())[:150]
    return ""


def run(module, call, args, kwargs):
    """The results of a module, and the gradients of its inputs and parameters, and its buffers."""
    flat, structure = pytree.tree_flatten((args, kwargs))
    inputs = [each.detach().clone().requires_grad_(each.requires_grad) if isinstance(each, torch.Tensor) else each
              for each in flat]
    torch.manual_seed(0)
    results = pytree.tree_leaves(call(*pytree.tree_unflatten(inputs, structure)[0],
                                      **pytree.tree_unflatten(inputs, structure)[1]))
    tensors = [each for each in results if isinstance(each, torch.Tensor) and each.requires_grad]
    leaves = [each for each in (*inputs, *module.parameters()) if isinstance(each, torch.Tensor) and each.requires_grad]
    generator = torch.Generator().manual_seed(1)
    seeds = [torch.randn(each.shape, generator=generator, dtype=torch.float64).to(each.dtype) for each in tensors]
    gradients = torch.autograd.grad(tensors, leaves, seeds, allow_unused=True) if tensors and leaves else ()
    gradients = [torch.zeros_like(leaf) if each is None else each for leaf, each in zip(leaves, gradients)]
    return results, gradients, list(module.buffers())


def through_dynamo(module):
    torch._dynamo.reset()
    return torch.compile(module, backend=backend)


def check(info, dtype, training, samples, compiled):
    """(verdict, reason) for one module in one mode."""
    torch.manual_seed(0)
    cases = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
    for case in cases[::max(1, len(cases) // samples)]:
        if case.forward_input is None:
            continue
        made = case.constructor_input
        takes_dtype = "dtype" in inspect.signature(info.module_cls.__init__).parameters and "dtype" not in made.kwargs
        module = info.module_cls(*made.args, **made.kwargs, **({"dtype": dtype} if takes_dtype else {}))
        module = module.to(dtype).train(training)
        args, kwargs = case.forward_input.args, case.forward_input.kwargs
        if info.is_lazy:
            module(*args, **kwargs)
        other = copy.deepcopy(module)
        expected = run(module, module, args, kwargs)
        actual = run(other, compiled(other), args, kwargs)
        for kind, left, right in zip(("result", "gradient", "buffer"), expected, actual):
            if len(left) != len(right):
                return "wrong", f"{len(right)} of {len(left)} {kind}s"
            for x, y in zip(left, right):
                found = difference(x, y)
                if found:
                    return "wrong", f"{kind}: {found}"
    return "right", ""


def main():
    options = arguments()
    dtype = getattr(torch, options.dtype)
    only = set(filter(None, options.only.split(",")))
    part, parts = map(int, options.part.split("/"))
    totals, begin = collections.Counter(), time.time()
    for number, info in enumerate(module_db):
        if number % parts != part or only and not only & {info.name, info.module_cls.__name__}:
            continue
        if dtype not in info.dtypes:
            totals["dtype"] += 1
            continue
        for training in ((True, False) if info.train_and_eval_differ else (True,)):
            try:
                verdict, reason = check(info, dtype, training, options.samples,
                                        through_dynamo if options.dynamo else mt.compile)
            except Exception as error:
                reason = f"{type(error).__name__}: {' '.join(str(error).split())[:220]}"
                verdict = "missing" if "has no lowering" in reason else "error"
                if options.verbose:
                    traceback.print_exc()
            if verdict != "right":
                break
        totals[verdict] += 1
        if verdict != "right" or options.verbose:
            print(f"{verdict:8}{info.name:40}{reason}", flush=True)
    print(dict(totals), f"{time.time() - begin:.0f} s")
    raise SystemExit(totals["right"] + totals["dtype"] != totals.total())


if __name__ == "__main__":
    main()
