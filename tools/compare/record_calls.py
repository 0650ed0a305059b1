"""Draws random calls, has JAX answer them, and writes them as cases for meshard-conformance.

usage: record_calls.py OUT_FOLDER [COUNT] [SEED] [FAMILY...]
"""

import collections
import importlib
import json
import os
import pathlib
import sys
import time
import warnings

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # noqa: E402
import numpy as np  # noqa: E402

from calls import answer, encode, recorded, wrap  # noqa: E402
from calls.call import OPERATIONS, Call  # noqa: E402
from calls.draw import COMPLEX, Draw, is_complex, is_inexact, name_of  # noqa: E402

FAMILIES = ("element_wise", "reductions", "movement", "contractions", "indexing", "windows", "order", "matrices",
            "frequencies", "networks", "optimizers", "programs")


def load_families(wanted):
    here = pathlib.Path(__file__).parent / "calls"
    for family in FAMILIES:
        if (here / f"{family}.py").exists() and (not wanted or family in wanted):
            importlib.import_module(f"calls.{family}")


def drawn_case(family, op, seed):
    """A case, or None if JAX has no answer to the call."""
    d = Draw(seed)
    call = OPERATIONS[family][op](d)
    types = answer.result_types(call.f, call.inputs)
    case = {"id": f"{op}-{seed}", "op": op, "at": call.at}
    if d.chance(0.3) and call.inputs:
        inputs, f, case["in"] = wrap.choose(d, call, types)
        call = Call(inputs, f, call.at, call.exact, call.derivative, call.mappable, call.positions)
        types = answer.result_types(call.f, call.inputs)
        call.exact = call.exact and case["in"]["wrap"] not in ("scan", "fori_loop")
    case["x"] = [encode.array(x) for x in call.inputs]
    if call.inputs and d.chance(0.25):
        case["mesh"] = mesh = d.mesh()
        case["specs"] = [d.spec(mesh, x.ndim) for x in call.inputs]
    if d.chance(0.15):
        case["jit"] = True
    parts = ["out"]
    inexact = [t for t in types if name_of(t[1]) in answer.UNIT]
    if call.derivative and inexact and any(is_inexact(x) for x in call.inputs) \
            and not any(is_complex(x) for x in call.inputs) and not any(name_of(t[1]) in COMPLEX for t in inexact):
        parts += [part for part, p in (("vjp", 0.5), ("jvp", 0.3), ("hvp", 0.3)) if d.chance(p)]
    cotangents = [d.direction(shape, name_of(dtype)) for shape, dtype in inexact] if set(parts) & {"vjp", "hvp"} else []
    tangents = [d.direction(x.shape, name_of(x.dtype)) for x in call.inputs if is_inexact(x)] \
        if set(parts) & {"jvp", "hvp"} else []
    if cotangents:
        case["ct"] = [encode.array(c) for c in cotangents]
    if tangents:
        case["tn"] = [encode.array(t) for t in tangents]
    case.update(recorded.recorded(answer.Answers(call, cotangents, tangents, parts, d.rng), call))
    return case


def write(folder, cases, seed):
    """A file for each family, a case a line."""
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    for family, list_ in cases.items():
        lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in list_)
        pathlib.Path(folder, f"calls_{family}.json").write_text(
            f'{{"meta":{{"jax":"{jax.__version__}","seed":{seed}}},"cases":[\n{lines}\n]}}\n')


def main(folder, count=2000, seed=0, *families):
    count, seed = int(count), int(seed)
    load_families(families)
    table = [(family, op) for family, ops in OPERATIONS.items() for op in ops]
    rng = np.random.default_rng(seed)
    cases, refused = collections.defaultdict(list), collections.Counter()
    start = time.monotonic()
    for k in range(count):
        family, op = table[k % len(table)] if k < len(table) else table[int(rng.integers(len(table)))]
        try:
            cases[family].append(drawn_case(family, op, seed + k))
        except Exception as error:  # JAX's answer is that it has none: such calls are counted, and shown
            refused[f"{op}: {type(error).__name__}: {str(error).splitlines()[0][:150]}"] += 1
        if k % 100 == 99:
            jax.clear_caches()
            write(folder, cases, seed)
            print(f"{k + 1} of {count}, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    write(folder, cases, seed)
    print(f"{sum(map(len, cases.values()))} cases, {sum(refused.values())} calls that JAX refuses")
    for why, times in refused.most_common():
        print(f"  {times} x {why}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
