#!/usr/bin/env python3
"""Writes meshard/array/dtype/small_float_test_data.inc: the values of small floats according to ml_dtypes and numpy.

    python3 -m venv venv && venv/bin/pip install ml_dtypes numpy
    venv/bin/python tools/dev/make_small_float_table.py > meshard/array/dtype/small_float_test_data.inc

For each format: the float32 bits of every code (all codes of 8-bit formats, a hash for 16-bit formats), and the
codes of the float32 numbers at, directly below and directly above the midpoint of each pair of neighboring codes.
"""
import ml_dtypes
import numpy as np

FORMATS = [
    ("Half", np.float16),
    ("BFloat16", ml_dtypes.bfloat16),
    ("Float8E4M3FN", ml_dtypes.float8_e4m3fn),
    ("Float8E5M2", ml_dtypes.float8_e5m2),
    ("Float8E4M3", ml_dtypes.float8_e4m3),
    ("Float8E3M4", ml_dtypes.float8_e3m4),
    ("Float8E4M3FNUZ", ml_dtypes.float8_e4m3fnuz),
    ("Float8E5M2FNUZ", ml_dtypes.float8_e5m2fnuz),
    ("Float8E4M3B11FNUZ", ml_dtypes.float8_e4m3b11fnuz),
    ("Float8E8M0FNU", ml_dtypes.float8_e8m0fnu),
]


def fnv1a(data):
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def decoded(dtype, codes):
    values = codes.view(dtype).astype(np.float32)
    bits = values.view(np.uint32).copy()
    bits[np.isnan(values)] = 0x7FC00000
    return values, bits


def middles(values, positive):
    """The numbers below, at and above the midpoint of each pair of neighbors; the last step occurs twice."""
    finite = values[positive].astype(np.float64)
    steps = np.append(np.diff(finite), finite[-1] - finite[-2])
    with np.errstate(over="ignore"):
        middle = (finite + steps / 2).astype(np.float32)
    below = np.nextafter(middle, np.float32(0))
    above = np.nextafter(middle, np.float32(np.inf))
    return np.stack([below, middle, above], axis=1).reshape(-1)


def row(name, dtype):
    unsigned = np.uint16 if np.dtype(dtype).itemsize == 2 else np.uint8
    codes = np.arange(1 << (8 * np.dtype(dtype).itemsize), dtype=np.uint32).astype(unsigned)
    values, bits = decoded(dtype, codes)
    half = len(codes) if name == "Float8E8M0FNU" else len(codes) // 2
    positive = np.flatnonzero(np.isfinite(values[:half]))
    if name == "Float8E8M0FNU":
        positive = positive[1:]  # ml_dtypes 0.6.0 rounds the subnormal 0x1.7ffffcp-127 up, to 2^-126
    inputs = middles(values, positive)
    if name != "Float8E8M0FNU":
        inputs = np.concatenate([inputs, -inputs])
    with np.errstate(all="ignore"):
        rounded = inputs.astype(dtype).view(unsigned)
    little = fnv1a(bits.astype("<u4").tobytes())
    codes_hash = fnv1a(rounded.astype(f"<u{unsigned().itemsize}").tobytes())
    table = ""
    if unsigned is np.uint8:
        table = "".join(
            '\n    "' + "".join(f"{b:08x}" for b in bits[i : i + 8]) + '"' for i in range(0, 256, 8)
        )
    return f"SMALL_FLOAT({name}, 0x{little:016x}, {len(inputs)}, 0x{codes_hash:016x}, \"\"{table})"


def main():
    print("// Written by tools/dev/make_small_float_table.py from "
          f"ml_dtypes {ml_dtypes.__version__} and numpy {np.__version__}; do not edit.")
    print("// SMALL_FLOAT(type, hash of all decoded codes, inputs rounded, hash of their codes, "
          "float32 bits of each code)")
    for name, dtype in FORMATS:
        print(row(name, dtype))


if __name__ == "__main__":
    main()
