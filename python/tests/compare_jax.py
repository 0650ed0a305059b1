#!/usr/bin/env python3
"""Compares random calls with JAX: values and dtypes, gradients, and vmap.

usage: compare_jax.py [COUNT] [--seed SEED] [--first FIRST]

jax.numpy has the names of the array API too, so that each function is written once, for either namespace. Everything is
computed in float32. Two numbers agree if |a - b| <= 2e-4 * max(1, |b|); shapes and dtypes must be equal.

Most of the time goes into compiling. So 64 calls are one program on either side, each program runs with 2 draws of the
elements, and the compilers use their quickest settings. A program that cannot be recorded, compiled or run is repeated
call by call.
"""

import os
import sys
import zlib

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
                      " --xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("MESHARD_PROGRAM_CACHE_MB", "0")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import meshard as ms  # noqa: E402
import numpy as np  # noqa: E402
import random_calls  # noqa: E402
from jax_calls import FUNCTIONS, Draw  # noqa: E402

TOLERANCE = 2e-4
CALLS_OF_A_PROGRAM = 64
DRAWS = 2  # of the elements, for each program


class Drawn:
    """One call: its function, the arrays, and the members of a batch."""

    def __init__(self, i, seed):
        block, rest = divmod(i, CALLS_OF_A_PROGRAM * DRAWS)
        self.place = block * CALLS_OF_A_PROGRAM + rest % CALLS_OF_A_PROGRAM  # of the function and the shapes
        names = sorted(FUNCTIONS)
        name = names[self.place % len(names)]
        self.name, self.call = f"call {i}: {name}", FUNCTIONS[name]
        self.seeds = [seed, self.place, zlib.crc32(name.encode())]
        draw = Draw(self.seeds, [*self.seeds, rest // CALLS_OF_A_PROGRAM])
        drawn = [np.asarray(array) for array in self.call.draw(draw)]
        self.arrays = [array.astype(np.float32) if array.dtype == np.float64 else array for array in drawn]
        if self.call.is_differentiable:
            self.batch = [np.stack([x, x * np.float32(0.9), x * np.float32(1.05)]) for x in self.arrays]
        else:
            self.batch = [np.stack([x, np.flip(x), x]) for x in self.arrays]

    def results(self, xp, transforms, inputs):
        """The value, the gradient by each array, and the results of the batch, as a list; with names for messages."""
        arrays, batch = inputs

        def function(*x):
            return self.call.function(xp, *x)

        if not self.call.is_differentiable:
            return [function(*arrays), transforms.vmap(function)(*batch)]
        value, pullback = transforms.vjp(function, *arrays)
        weights = np.random.default_rng([*self.seeds, 1]).uniform(0.5, 1.5, value.shape).astype(np.float32)
        return [value, *pullback(xp.asarray(weights)), transforms.vmap(function)(*batch)]

    def difference(self, found, expected):
        """The first difference of the results."""
        for k, results in enumerate(zip(found, expected, strict=True)):
            what = "value" if k == 0 else "vmap" if k == len(found) - 1 else f"gradient {k - 1}"
            if text := compared(*map(np.asarray, results), what):
                return f"{self.name} of {', '.join(f'{a.dtype}{list(a.shape)}' for a in self.arrays)}: {text}"
        return None


def compared(found, expected, what):
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"{what}: {found.dtype}{found.shape}, expected {expected.dtype}{expected.shape}"
    if expected.dtype.kind not in "fc":  # integers, and the narrow floats of ml_dtypes: equal
        same = found == expected
    else:
        with np.errstate(all="ignore"):
            same = (np.abs(found - expected) <= TOLERANCE * np.maximum(1, np.abs(expected))) | (found == expected)
        same |= np.isnan(found) & np.isnan(expected)
    if np.all(same):
        return None
    at = tuple(np.argwhere(~np.atleast_1d(same))[0])
    return f"{what}: {np.atleast_1d(found)[at]!r}, expected {np.atleast_1d(expected)[at]!r}"


def differences(draws):
    """The differences of lists of calls, which have the same functions and shapes: one program on either side.

    @error what a call raises
    """
    ours, theirs, texts = ms.jit(program_of(draws[0], ms, ms)), jax.jit(program_of(draws[0], jnp, jax)), []
    for calls in draws:
        inputs = [(call.arrays, call.batch) for call in calls]
        for call, *results in zip(calls, ours(inputs), theirs(inputs), strict=True):
            texts.append(call.difference(*results))
    return [text for text in texts if text]


def program_of(calls, xp, transforms):
    return lambda inputs: [call.results(xp, transforms, each) for call, each in zip(calls, inputs, strict=True)]


def found_in(draws):
    """The differences; what a call raises is one."""
    try:
        return differences(draws)
    except Exception:
        found = []
        for call in [call for calls in draws for call in calls]:
            text = random_calls.guarded(lambda call=call: differences([[call]]))
            found += text if isinstance(text, list) else [f"{call.name}: {text}"]
        return found


def compare(count, seed, report=None, first=0):
    """Makes `count` calls, the same for the same seed. Returns the descriptions of the differences."""
    all_found, size = [], CALLS_OF_A_PROGRAM * DRAWS
    for block in range(first // size, -(-(first + count) // size)):
        numbers = [i for i in range(block * size, (block + 1) * size) if first <= i < first + count]
        draws = {}  # the number of the draw -> its calls
        for i in numbers:
            draws.setdefault(i % size // CALLS_OF_A_PROGRAM, []).append(Drawn(i, seed))
        alike = {}  # the places of the calls -> draws; those at the ends may have fewer calls
        for calls in draws.values():
            alike.setdefault(tuple(call.place for call in calls), []).append(calls)
        found = [text for each in alike.values() for text in found_in(each)]
        for text in found:
            if report:
                report(text)
        all_found += found
    return all_found


if __name__ == "__main__":
    sys.exit(random_calls.main(__doc__, FUNCTIONS, compare, has_first=True))
