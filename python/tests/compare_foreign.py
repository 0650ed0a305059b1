#!/usr/bin/env python3
"""Runs random programs twice, with meshard's tensors and with each array of a random library, and compares the results.

usage: compare_foreign.py [COUNT] [--seed SEED]

The libraries are NumPy, small ones with one protocol each (DLPack, __array__, __array_interface__, buffers), and of
PyTorch and JAX those that are installed (foreign_arrays.py). The results must be equal bit for bit, and the structures
too.
"""

import pathlib
import sys
import zlib

import numpy as np

import meshard as ms

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import random_calls  # noqa: E402
from foreign_arrays import LIBRARIES, made_by, same  # noqa: E402
from foreign_programs import PROGRAMS  # noqa: E402


def _mapped(function, p):
    """The structure with `function` of each leaf, which may be any object."""
    leaves, around = ms.tree.flatten(p)
    return around.unflatten([function(leaf.numpy()) for leaf in leaves])


def compare(count, seed, report=None):
    """Runs `count` programs, the same for the same seed. Returns the descriptions of the differences."""
    names = sorted(LIBRARIES)

    def describe(i, name):
        draw, program = PROGRAMS[name]
        rng = np.random.default_rng([seed, i, zlib.crc32(name.encode())])
        drawn, used = draw(rng), []

        def foreign(values):
            used.append(f"{names[rng.integers(len(names))]}:{values.dtype}{list(values.shape)}")
            return made_by(used[-1].partition(":")[0], values)

        given = _mapped(foreign, drawn)

        def difference():
            expected = program(*_mapped(ms.asarray, drawn))
            found = program(*given)
            return None if same(expected, found) else f"{found} and {expected}"

        text = random_calls.guarded(difference)
        return text and f"({', '.join(used)}): {text}"

    return random_calls.differences(PROGRAMS, count, describe, report)


if __name__ == "__main__":
    sys.exit(random_calls.main(__doc__, PROGRAMS, compare))
