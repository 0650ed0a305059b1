#!/usr/bin/env python3
"""Compares random calls of the array API's functions with NumPy: shapes, dtypes and values.

usage: compare_numpy.py [COUNT] [--seed SEED]

NumPy computes in float64 or complex128 what meshard computes in a narrower dtype; its result is then rounded. Two
numbers agree if |a - b| <= tolerance * max(1, |b|), with the tolerance of the dtype and the function below. Integers,
bools, NaN, infinities, shapes and dtypes must be equal.
"""

import argparse
import pathlib
import sys
import zlib

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import numpy_products  # noqa: E402, F401  (adds its cases)
from numpy_calls import CASES, Draw  # noqa: E402


def compare(count, seed, report=None):
    """Makes `count` calls, the same for the same seed. Returns the descriptions of the differences."""
    names, differences = sorted(CASES), []
    for i in range(count):
        name = names[i % len(names)]
        draw = Draw([seed, i, zlib.crc32(name.encode())])
        call = CASES[name](draw)
        types = ", ".join(f"{a.dtype}{list(a.shape)}" for a in call.arrays)
        try:
            text = call.difference()
        except Exception as error:  # a failure is a difference
            text = f"{type(error).__name__}: {error}"
        if text:
            differences.append(f"call {i}: {name}({types}) {call.show}: {text}")
            if report:
                report(differences[-1])
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=500, help="the number of calls (default: 500)")
    parser.add_argument("--seed", type=int, help="of the arguments (default: a new one, which is printed)")
    given = parser.parse_args()
    seed = int(np.random.SeedSequence().entropy % 2**32) if given.seed is None else given.seed
    print(f"{given.count} calls of {len(CASES)} functions, seed {seed}")
    differences = compare(given.count, seed, report=print)
    print(f"{len(differences)} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
