"""Draws a case and computes JAX's answer: the work of one process of the recorder."""

import collections
import importlib
import json
import pathlib
import warnings

import jax

from calls import answer, encode, recorded, wrap
from calls.call import OPERATIONS
from calls.draw import COMPLEX, Draw, is_complex, is_inexact, name_of

FAMILIES = ("element_wise", "reductions", "movement", "contractions", "indexing", "windows", "networks", "optimizers")


def load_families(wanted=()):
    """Fills OPERATIONS. @error a family that does not exist."""
    unknown = set(wanted) - set(FAMILIES)
    if unknown:
        raise SystemExit(f"unknown family {', '.join(sorted(unknown))}; the families are {', '.join(FAMILIES)}")
    for family in FAMILIES:
        if not wanted or family in wanted:
            importlib.import_module(f"calls.{family}")


def drawn_parts(d, call, types):
    """The recorded parts: the results, and some of the derivatives if there are any."""
    inexact = [t for t in types if name_of(t[1]) in answer.UNIT]
    real = not any(is_complex(x) for x in call.inputs) and not any(name_of(t[1]) in COMPLEX for t in inexact)
    if not (call.derivative and inexact and real and any(is_inexact(x) for x in call.inputs)):
        return ["out"], []
    return ["out"] + [part for part, p in (("vjp", 0.5), ("jvp", 0.3), ("hvp", 0.3)) if d.chance(p)], inexact


def drawn_case(family, op, seed):
    """Draws a case. @error any exception of JAX that rejects the call."""
    d = Draw(seed)
    call = OPERATIONS[family][op](d)
    types = answer.result_types(call.f, call.inputs)
    case = {"id": f"{op}-{seed}", "op": op, "at": call.at}
    if call.inputs and d.chance(0.3):
        call, case["in"] = wrap.wrapped(d, call, types)
        types = answer.result_types(call.f, call.inputs)
    case["x"] = [encode.array(x) for x in call.inputs]
    if call.inputs and d.chance(0.25):
        case["mesh"] = mesh = d.mesh()
        case["specs"] = [d.spec(mesh, x.ndim) for x in call.inputs]
    if d.chance(0.15):
        case["jit"] = True
    parts, inexact = drawn_parts(d, call, types)
    cotangents = [d.direction(shape, name_of(dtype)) for shape, dtype in inexact] if set(parts) & {"vjp", "hvp"} else []
    tangents = [d.direction(x.shape, name_of(x.dtype)) for x in call.inputs if is_inexact(x)] \
        if set(parts) & {"jvp", "hvp"} else []
    if cotangents:
        case["ct"] = [encode.array(c) for c in cotangents]
    if tangents:
        case["tn"] = [encode.array(t) for t in tangents]
    case.update(recorded.recorded(answer.Answers(call, cotangents, tangents, parts, d.rng), call))
    return case


def recorded_cases(drawn, families=()):
    """Answers a list of (family, op, seed): [(family, the case's JSON)], and how often JAX rejected which call."""
    load_families(families)
    lines, refused = [], collections.Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for family, op, seed in drawn:
            try:
                lines.append((family, json.dumps(drawn_case(family, op, seed), separators=(",", ":"))))
            except Exception as error:  # JAX rejects the call: such calls are counted and reported
                refused[f"{op}: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:150]}"] += 1
    jax.clear_caches()
    return lines, refused
