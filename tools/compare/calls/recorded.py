"""A result as it is recorded: the truth in the result's dtype, and what is known of its error."""

import math

import numpy as np

from calls import encode
from calls.answer import DIGITS, JUMP, LARGEST, UNIT
from calls.draw import name_of



def element(value, digits):
    if isinstance(value, complex):
        return [encode.number(value.real, digits), encode.number(value.imag, digits)]
    return encode.number(value, digits)


def rounded_kind(value, dtype):
    """As the dtype would hold it: beyond its range it is infinite."""
    if isinstance(value, complex):
        return complex(rounded_kind(value.real, dtype), rounded_kind(value.imag, dtype))
    return math.copysign(math.inf, value) if abs(value) > LARGEST[dtype] else value


def kind_of(value):
    if isinstance(value, complex):
        return kind_of(value.real), kind_of(value.imag)
    return "nan" if math.isnan(value) else "finite" if math.isfinite(value) else value


def plain(value):
    return complex(value) if np.iscomplexobj(value) else float(value)


def is_finite(value):
    return np.isfinite(value)


def result(own, truth, scale, narrow, exact, reach):
    """`{d, s, v}` with `c`, `e` and `o` where they say something; the README tells what they are.

    narrow: the pair (in 32 bits, truth for it) if the dtype has 64 bits. reach: the largest operand.
    """
    dtype = name_of(own.dtype)
    if dtype not in UNIT or exact:
        return encode.array(own)
    wide = dtype in ("f64", "c128")
    values, others, scales, errors = [], {}, [], [0.0]
    flat_scale = scale.reshape(-1)
    largest = max([abs(t) for t in truth.reshape(-1) if is_finite(t)] + [reach], default=0)
    for i, (mine, right) in enumerate(zip(own.reshape(-1), (own if wide else truth).reshape(-1))):
        mine, right = plain(mine), rounded_kind(plain(right), dtype)
        slope = float(flat_scale[i])
        if not math.isfinite(slope) or slope > JUMP * largest:
            slope = 0.0
        if kind_of(mine) != kind_of(right):
            values.append(element(mine, DIGITS[dtype]))
            others[str(i)] = element(right, DIGITS[dtype])
            scales.append(0)
            continue
        values.append(element(right, DIGITS[dtype]))
        if not is_finite(right):
            scales.append(0)
            continue
        scales.append(float(f"{slope:.2g}") if slope > 3 * abs(right) else 0)
        distance, unit = abs(mine - right), UNIT[dtype]
        if wide and narrow is not None:
            low, unit = plain(narrow.reshape(-1)[i]), 2.0**-23
            distance = abs(low - right) if is_finite(low) and abs(right) > 1e-30 else 0
        base = abs(right) + slope
        if base > 0 and distance > smallest(dtype):
            errors.append(distance / (unit * base))
    fields = {"d": dtype, "s": list(own.shape), "v": values}
    if any(scales):
        fields["c"] = [encode.number(s) for s in scales]
    if max(errors) > 1:
        fields["e"] = float(f"{min(max(errors), 1e6):.2g}")
    if others:
        fields["o"] = others
    return fields


def limit(truth, sides, odd):
    """Element -> what the truth is to either side of it, if that is one number and not what it is there."""
    near = {}
    for i in np.flatnonzero(odd.reshape(-1)):
        here, (above, below) = plain(truth.reshape(-1)[i]), (plain(side.reshape(-1)[i]) for side in sides)
        if is_finite(above) and is_finite(below) and abs(above - below) <= 1e-4 * abs(above) + 1e-5 \
                and not abs(above - here) <= 1e-2 * abs(above):
            near[str(i)] = element(above, 7)
    return near


def smallest(dtype):
    return {"f16": 1e-7, "bf16": 1.2e-38, "f32": 1.2e-38, "c64": 1.2e-38}.get(dtype, 2.3e-308)


def recorded(answers, call):
    """Part -> results."""
    reach = max((float(np.max(np.abs(x[np.isfinite(x)]), initial=0)) for x in call.inputs
                 if np.issubdtype(np.asarray(x).dtype, np.inexact) or x.dtype.kind in "iuf"), default=0.0) \
        if call.inputs else 0.0
    fields = {}
    narrow = getattr(answers, "narrow", None)
    for part, results in answers.own.items():
        fields[part] = []
        for k, own in enumerate(results):
            truth = answers.truth[part][k]
            inexact = name_of(own.dtype) in UNIT
            entry = result(own, truth, answers.scale[part][k] if inexact else None,
                           narrow[part][k] if narrow else None, call.exact and part == "out", reach)
            if call.positions and part == "out" and entry["d"] == "i64":
                entry["d"] = "i32"
            if entry["d"] in UNIT and (part, k) in answers.limits:
                near = limit(truth, answers.limits[part, k], answers.is_odd(part, k))
                if near:
                    entry["n"] = near
            fields[part].append(entry)
    return fields
