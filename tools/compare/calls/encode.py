"""Writes arrays and answers as JSON."""

import math

import numpy as np

from calls.draw import is_complex, is_float, name_of


def number(value, digits=None):
    """A float as JSON; non-finite floats are strings."""
    value = float(value)
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if digits:
        value = float(f"{value:.{digits}g}")
    return int(value) if value == int(value) and abs(value) < 1e15 and not (value == 0 and math.copysign(1, value) < 0) \
        else value


def shortest(value, dtype):
    """The shortest decimal that represents this value in its dtype."""
    wide = float(value)
    if name_of(dtype) == "f64" or not math.isfinite(wide):
        return number(wide)
    for digits in range(1, 12):
        rounded = float(f"{wide:.{digits}g}")
        with np.errstate(all="ignore"):
            if np.asarray(rounded).astype(dtype) == np.asarray(value):
                return number(rounded)
    return number(wide)


def array(values):
    """`{d, s, v}` of an operand, exactly."""
    values = np.asarray(values)
    flat = values.reshape(-1)
    if is_complex(values):
        part = np.float32 if values.dtype == np.complex64 else np.float64
        data = [[shortest(v.real, part), shortest(v.imag, part)] for v in flat]
    elif is_float(values):
        data = [shortest(v, values.dtype) for v in flat]
    else:
        data = [bool(v) if values.dtype == bool else int(v) for v in flat]
    return {"d": name_of(values.dtype), "s": list(values.shape), "v": data}
