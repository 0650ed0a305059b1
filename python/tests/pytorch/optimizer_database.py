"""Compares the optimizers of PyTorch's optim_db, as training steps of meshard.torch, with PyTorch on the CPU.

Each optimizer takes each of its inputs, alone and with foreach and fused, on one device and with sharded parameters:
losses, parameters and states of some steps, then some more after the state went through plain PyTorch. What is not
equal must be as close to the same steps in double precision, without bfloat16, as PyTorch's is (op_comparison.py); for
LBFGS, which takes double precision, to those from parameters that differ by a rounding.

usage: optimizer_database.py [--only Adam,SGD] [--samples N] [--part 0/1] [--verbose]
"""

import argparse
import collections
import copy
import os
import time
import traceback
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import torch
from op_comparison import is_as_close
from torch.testing._internal.common_optimizers import optim_db

import meshard as ms
import meshard.torch as mt
from meshard import P

STEPS = 3


class Matrices(torch.nn.Module):
    """Parameters with two dimensions, which every optimizer takes."""

    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(6, 8, bias=False)
        self.down = torch.nn.Linear(8, 4, bias=False)

    def forward(self, x):
        return self.down(torch.tanh(self.up(x)))


def configurations(info):
    """(description, options) of an optimizer: those for the CPU, and those for GPUs, also foreach and fused.

    Not "differentiable": PyTorch itself refuses it for parameters, which are leaves.
    """
    flags = [flag for flag in info.supported_impls if flag == "foreach" or "cpu" in info.supports_fused_on
             and flag == "fused"]
    for each in info.optim_inputs_func("cuda"):
        options = dict(each.kwargs)
        has_tensors = any(isinstance(value, torch.Tensor) for value in options.values())
        yield each.desc, options
        for flag in flags:
            if not (flag == "foreach" and has_tensors and not options.get("capturable")):
                yield f"{each.desc} & {flag}", {**options, flag: True}


def of_pytorch(options):
    """The options with which PyTorch computes the same on the CPU."""
    options = {name: value for name, value in options.items() if name not in ("capturable", "foreach")}
    betas = options.get("betas")
    return options if betas is None else {**options, "betas": tuple(float(beta) for beta in betas)}


def plain_step(model, optimizer, x, y):
    def closure():
        optimizer.zero_grad()
        value = torch.nn.functional.mse_loss(model(x), y)
        value.backward()
        return value

    return optimizer.step(closure).item()


class _Double(torch.overrides.TorchFunctionMode):
    """Computes in double precision what an optimizer would compute in bfloat16."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return args[0].double() if func is torch.Tensor.bfloat16 else func(*args, **(kwargs or {}))


def close(got, wanted, precise, what, tolerance):
    try:
        torch.testing.assert_close(got, wanted, rtol=10 * tolerance, atol=tolerance,
                                   msg=lambda text: f"{what}: {' '.join(text.split())}")
    except AssertionError:
        if not is_as_close(precise, wanted, got):
            raise


def same_state(ours, wanted, precise, tolerance):
    """Asserts that two states of optimizers have the same entries with the same elements."""
    def compare(got, want, exact, what):
        assert type(got) is type(want) or isinstance(got, torch.Tensor) == isinstance(want, torch.Tensor), what
        if isinstance(want, torch.Tensor):
            assert got.dtype == want.dtype, f"{what}: {got.dtype} for {want.dtype}"
            close(got + 0, want, exact, what, tolerance)
        elif isinstance(want, list):
            for one, other, third in zip(got, want, exact, strict=True):
                compare(one, other, third, what)
        elif isinstance(want, float):
            assert abs(got - want) <= 10 * tolerance * max(1.0, abs(want)), f"{what}: {got} for {want}"
        else:
            assert got == want, f"{what}: {got} for {want}"

    assert ours["state"].keys() == wanted["state"].keys()
    for index, entries in wanted["state"].items():
        assert list(ours["state"][index]) == list(entries), f"{list(ours['state'][index])} for {list(entries)}"
        for name, value in entries.items():
            compare(ours["state"][index][name], value, precise["state"][index][name], f"{name} of {index}")


def check(make, options, sharded):
    """Trains with and without meshard, and compares; also after the states were exchanged."""
    torch.manual_seed(0)
    dtype = torch.float64 if make is torch.optim.LBFGS else torch.float32  # its search amplifies rounding
    plain = Matrices().to(dtype)
    model = copy.deepcopy(plain)
    if sharded:
        mt.shard(model, ms.Mesh({"data": 2, "model": 4}), {"up.weight": P("model"), "down.weight": P("data", "model")})
    optimizer = make(model.parameters(), **copy.deepcopy(options))
    other = make(plain.parameters(), **copy.deepcopy(of_pytorch(options)))
    exact = copy.deepcopy(plain).double()
    if dtype == torch.float64:
        with torch.no_grad():
            for parameter in exact.parameters():
                parameter.copy_(torch.nextafter(parameter, torch.full_like(parameter, torch.inf)))
    third = make(exact.parameters(), **copy.deepcopy(of_pytorch(options)))
    step = mt.train_step(model, torch.nn.functional.mse_loss, optimizer)
    tolerance = 1e-3 if make is torch.optim.Muon else 1e-5  # Muon makes matrices orthogonal in bfloat16

    def batch():
        return torch.randn(8, 6, dtype=dtype), torch.randn(8, 4, dtype=dtype)

    only = batch()

    def train():
        for _ in range(STEPS):
            x, y = only if make is torch.optim.LBFGS else batch()  # its search needs the whole function
            with _Double():
                precise = plain_step(exact, third, x.double(), y.double())
            close(torch.tensor(float(step(x, y))), torch.tensor(plain_step(plain, other, x, y)),
                  torch.tensor(precise, dtype=torch.float64), "loss", tolerance)
        for name, parameter in model.named_parameters():
            close(parameter.detach() + 0, plain.get_parameter(name).detach(), exact.get_parameter(name).detach(), name,
                  tolerance)
        same_state(optimizer.state_dict(), other.state_dict(), third.state_dict(), tolerance)

    train()
    ours = copy.deepcopy(optimizer.state_dict()["state"])
    groups = [optimizer.state_dict()["param_groups"], other.state_dict()["param_groups"]]
    theirs = copy.deepcopy(other.state_dict()["state"])
    optimizer.load_state_dict({"state": theirs, "param_groups": groups[0]})
    other.load_state_dict({"state": ours, "param_groups": groups[1]})
    train()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--samples", type=int, default=1000, help="at most so many inputs of each optimizer")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    only = set(filter(None, arguments.only.split(",")))
    part, parts = map(int, arguments.part.split("/"))
    totals, begin = collections.Counter(), time.time()
    for number, info in enumerate(optim_db):
        if info.only_supports_sparse_grads or number % parts != part or only and info.name not in only:
            continue
        inputs = list(configurations(info))
        for description, options in inputs[::-(-len(inputs) // arguments.samples)]:
            for sharded in (False, True):
                try:
                    check(info.optim_cls, options, sharded)
                    totals["right"] += 1
                except Exception as error:
                    totals["error" if not isinstance(error, AssertionError) else "wrong"] += 1
                    where = "on 2x4" if sharded else "on one device"
                    print(f"{info.name} ({description}) {where}: {type(error).__name__}: "
                          f"{' '.join(str(error).split())[:220]}", flush=True)
                    if arguments.verbose:
                        traceback.print_exc()
                    break
        print(f"{info.name:12} {dict(totals)} {time.time() - begin:.0f} s", flush=True)
    raise SystemExit(totals["right"] != totals.total())


if __name__ == "__main__":
    main()
