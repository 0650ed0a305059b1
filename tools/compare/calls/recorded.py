"""A recorded result: the truth in the result's dtype, and bounds of its error."""

import math

import numpy as np

from calls import encode
from calls.answer import DIGITS, JUMP, LARGEST, UNIT
from calls.draw import name_of

CANCELS = 16  # units of an element and its slope; larger errors come from larger intermediate values



def element(value, digits):
    if isinstance(value, complex):
        return [encode.number(value.real, digits), encode.number(value.imag, digits)]
    return encode.number(value, digits)


def rounded_kind(value, dtype):
    """The value in the dtype: infinite beyond its range."""
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


def error_of(errors, part, k, scale, dtype, reach):
    """(e, a) of the README: JAX's errors in units; relative, and absolute where large values cancel."""
    wide = dtype in ("f64", "c128")
    unit = 2.0**-23 if wide else UNIT[dtype]
    relative, absolute = 0.0, 0.0
    with np.errstate(all="ignore"):
        for mine, right in errors:
            low, high = (np.asarray(side[part][k], complex if np.iscomplexobj(side[part][k]) else float)
                         for side in (mine, right))
            distance, base = np.abs(low - high), np.abs(high) + scale
            counts = np.isfinite(distance) & (distance > smallest(dtype)) & (base > 0)
            if not np.any(counts):
                continue
            ratios = distance[counts] / (unit * base[counts])
            relative = max(relative, float(np.max(ratios)))
            canceled = (ratios > CANCELS) & (distance[counts] < 4096 * unit * max(1.0, reach))
            absolute = max(absolute, float(np.max(distance[counts], where=canceled, initial=0)))
    return min(relative, 1e6), absolute * (UNIT[dtype] / unit)


def result(own, truth, scale, errors, exact, reach, matrix):
    """`{d, s, v}`, with `c`, `e`, `a` and `o` if they are not trivial; the README defines them.

    errors: a function of the slopes to e and a. reach: the largest operand.
    """
    dtype = name_of(own.dtype)
    if dtype not in UNIT or exact:
        return encode.array(own)
    wide = dtype in ("f64", "c128")
    values, others, scales, slopes = [], {}, [], []
    if matrix:  # an element may have the error of the largest one
        with np.errstate(all="ignore"):
            sizes = np.abs(truth) + scale
        scale = np.full(scale.shape, np.max(sizes, where=np.isfinite(sizes), initial=0))
    largest = max([abs(t) for t in truth.reshape(-1) if is_finite(t)] + [reach], default=0)
    for mine, right, slope in zip(own.reshape(-1), (own if wide else truth).reshape(-1), scale.reshape(-1)):
        mine, right, slope = plain(mine), rounded_kind(plain(right), dtype), float(slope)
        if not math.isfinite(slope) or slope > JUMP * largest:
            slope = 0.0
        slopes.append(slope)
        if kind_of(mine) != kind_of(right):
            others[str(len(values))] = element(right, DIGITS[dtype])
            values.append(element(mine, DIGITS[dtype]))
            scales.append(0)
            continue
        values.append(element(right, DIGITS[dtype]))
        scales.append(float(f"{slope:.2g}") if is_finite(right) and slope > 3 * abs(right) else 0)
    fields = {"d": dtype, "s": list(own.shape), "v": values}
    if any(scales):
        fields["c"] = [encode.number(s) for s in scales]
    relative, absolute = errors(np.reshape(slopes, own.shape), dtype)
    if relative > 1:
        fields["e"] = float(f"{relative:.2g}")
    if absolute:
        fields["a"] = float(f"{absolute:.2g}")
    if others:
        fields["o"] = others
    return fields


def limits(truth, sides, odd):
    """(n, k) of the README: the truth next to an element: one value that it does not have at the element, or several."""
    near, kinks = {}, {}
    for i in np.flatnonzero(odd.reshape(-1)):
        here, around = plain(truth.reshape(-1)[i]), [plain(side.reshape(-1)[i]) for side in sides]
        if not all(is_finite(each) for each in around):
            continue
        largest = max(abs(each) for each in around)
        apart = max(abs(each - around[0]) for each in around)
        if apart <= 1e-4 * largest + 1e-5:
            if not abs(around[0] - here) <= 1e-2 * largest:
                near[str(i)] = element(around[0], 7)
        elif (apart > 1e-2 * largest or not is_finite(here)) and not isinstance(here, complex):
            kinks[str(i)] = [element(min(around), 7), element(max(around), 7)]
    return near, kinks


def smallest(dtype):
    return {"f16": 1e-7, "bf16": 1.2e-38, "f32": 1.2e-38, "c64": 1.2e-38}.get(dtype, 2.3e-308)


def recorded(answers, call):
    """A dict from each part to its results."""
    reach = max((float(np.max(np.abs(x[np.isfinite(x)]), initial=0)) for x in call.inputs
                 if np.issubdtype(np.asarray(x).dtype, np.inexact) or x.dtype.kind in "iuf"), default=0.0) \
        if call.inputs else 0.0
    fields = {}
    for part, results in answers.own.items():
        fields[part] = []
        for k, own in enumerate(results):
            truth = answers.truth[part][k]
            inexact = name_of(own.dtype) in UNIT
            def errors(slopes, dtype, part=part, k=k):
                return error_of(answers.errors, part, k, slopes, dtype, reach)
            entry = result(own, truth, answers.scale[part][k] if inexact else None, errors,
                           call.exact and part == "out", reach, call.matrix)
            if call.positions and part == "out" and entry["d"] == "i64":
                entry["d"] = "i32"
            if entry["d"] in UNIT and (part, k) in answers.limits:
                near, kinks = limits(truth, answers.limits[part, k], answers.is_odd(part, k))
                if near:
                    entry["n"] = near
                if kinks and (part != "out" or call.by_operand):  # a value that jumps is defined at the jump
                    entry["k"] = kinks
            fields[part].append(entry)
    return fields
