#!/usr/bin/env python3
"""Compares random calls of the array API's functions with NumPy: shapes, dtypes and values.

usage: compare_numpy.py [COUNT] [--seed SEED]

NumPy computes in float64 or complex128 what meshard computes in a narrower dtype; its result is then rounded. Two
numbers agree if |a - b| <= tolerance * max(1, |b|), with the tolerance of the dtype and the function below. Integers,
bools, NaN, infinities, shapes and dtypes must be equal.
"""

import pathlib
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import numpy_products  # noqa: E402, F401  (adds its cases)
import random_calls  # noqa: E402
from numpy_calls import CASES, Draw  # noqa: E402


def compare(count, seed, report=None):
    """Makes `count` calls, the same for the same seed. Returns the descriptions of the differences."""

    def describe(i, name):
        call = CASES[name](Draw([seed, i, zlib.crc32(name.encode())]))
        types = ", ".join(f"{a.dtype}{list(a.shape)}" for a in call.arrays)
        text = random_calls.guarded(call.difference)
        return text and f"({types}) {call.show}: {text}"

    return random_calls.differences(CASES, count, describe, report)


if __name__ == "__main__":
    sys.exit(random_calls.main(__doc__, CASES, compare))
