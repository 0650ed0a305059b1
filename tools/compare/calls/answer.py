"""JAX's answers to a call: in its operands' dtypes, in 64 bits, and how sensitive they are to small changes."""

import jax
import jax.numpy as jnp
import numpy as np

from calls import encode
from calls.draw import DTYPES, is_complex, is_inexact, name_of

UNIT = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52, "c64": 2.0**-23, "c128": 2.0**-52}
DIGITS = {"f16": 7, "bf16": 7, "f32": 10, "c64": 10, "f64": 17, "c128": 17}
LARGEST = {"f16": 65504.0, "bf16": 3.3895314e38, "f32": 3.4028235e38, "c64": 3.4028235e38,
           "f64": 1.7976931348623157e308, "c128": 1.7976931348623157e308}
CHANGE = 1e-7
MOVES = 3
NEIGHBORS = 3
BESIDE = 1e-6  # the step for limits
WAYS = 3  # the number of directions, each with both signs
JUMP = 1e5  # a change this much larger than all values is a jump, not a slope
PARTS = ("out", "vjp", "jvp", "hvp")


def widened(array):
    if is_inexact(array):
        return array.astype(np.complex128 if is_complex(array) else np.float64)
    return array


def needs_64(arrays):
    return any(name_of(a.dtype) in ("f64", "c128", "i64", "u64") for a in arrays)


def as_tuple(result):
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def program(f, inputs, parts):
    """A function of (inputs, cotangents, tangents) that computes `parts`."""
    chosen = [i for i, x in enumerate(inputs) if is_inexact(x)]

    def whole(inputs, cotangents, tangents):
        inputs = list(inputs)

        def inexact(*primals):
            operands = list(inputs)
            for i, primal in zip(chosen, primals):
                operands[i] = primal
            return tuple(r for r in as_tuple(f(*operands)) if jnp.issubdtype(r.dtype, jnp.inexact))

        def gradient(*primals):
            results, pull = jax.vjp(inexact, *primals)
            return pull(tuple(c.astype(r.dtype) for c, r in zip(cotangents, results)))

        primals = tuple(inputs[i] for i in chosen)
        answers = {}
        if "out" in parts:
            answers["out"] = as_tuple(f(*inputs))
        if "vjp" in parts:
            answers["vjp"] = gradient(*primals)
        if "jvp" in parts:
            answers["jvp"] = jax.jvp(inexact, primals, tuple(tangents))[1]
        if "hvp" in parts:
            answers["hvp"] = jax.jvp(gradient, primals, tuple(tangents))[1]
        return answers
    return jax.jit(whole)


def result_types(f, inputs):
    with jax.enable_x64(needs_64(inputs)):
        return [(tuple(r.shape), np.dtype(r.dtype)) for r in as_tuple(jax.eval_shape(f, *inputs))]


def to_numpy(answers):
    return {part: [np.asarray(r) for r in results] for part, results in answers.items()}


class Answers:
    """The answers to one call.

    own: in the dtypes of the operands. truth: for the same operands in 64 bits. scale: for each element of truth, how
    much it changes relative to a small change of the operands; the error of a stable algorithm can be as large. limits:
    (part, result) -> the truth at nearby points in several directions, where one of its elements is NaN or jumps, or may
    do so because an operand has a 0.
    """

    def __init__(self, call, cotangents, tangents, parts, rng):
        self.own_program = program(call.f, call.inputs, parts)
        with jax.enable_x64(needs_64(call.inputs)):
            self.own = to_numpy(self.own_program(call.inputs, cotangents, tangents))
        wide = [widened(x) for x in call.inputs]
        self.is_wide = any(name_of(x.dtype) in ("f64", "c128") for x in call.inputs)
        self.limits = {}
        # For infinity minus infinity, JAX's results are arbitrary; and functions have kinks at 0.
        self.is_special = any(is_inexact(x) and np.any(np.isinf(x) | (x == 0)) for x in wide)
        with jax.enable_x64(True):
            run = program(call.f, wide, parts)
            ct, tn = [widened(c) for c in cotangents], [widened(t) for t in tangents]
            self.truth = to_numpy(run(wide, ct, tn))
            self.scale = {part: [np.zeros(np.shape(r)) for r in results] for part, results in self.truth.items()}
            for _ in range(0 if call.exact and parts == ["out"] else MOVES):
                moved = [[changed(x, rng, call.matrix) for x in list_] for list_ in (wide, ct, tn)]
                self._widen_scale(to_numpy(run(*moved)))
            self._find_limits(call, lambda inputs: to_numpy(run(inputs, ct, tn)), wide)
        self.errors = []
        if not call.exact or parts != ["out"]:
            self._find_errors(call, cotangents, tangents, parts, rng, run)

    def _widen_scale(self, moved):
        with np.errstate(all="ignore"):
            for part, results in moved.items():
                for k, result in enumerate(results):
                    if np.issubdtype(result.dtype, np.inexact):
                        change = np.abs(result - self.truth[part][k]) / CHANGE
                        change = np.where(np.isfinite(change), change, 0)
                        self.scale[part][k] = np.maximum(self.scale[part][k], change)

    def _find_limits(self, call, run, wide):
        """For a derivative by one operand, that operand moves in both directions; otherwise all operands move together."""
        inexact = [i for i, x in enumerate(wide) if is_inexact(x)]
        around = {}
        for part, results in self.truth.items():
            for k, result in enumerate(results):
                if not np.issubdtype(result.dtype, np.inexact) or not np.any(self.is_odd(part, k)):
                    continue
                by_operand = part in ("vjp", "hvp") or part == "out" and call.by_operand
                who = inexact[k] if by_operand else None
                if who not in around:
                    around[who] = [run([beside(x, sign, who in (None, i), way, i) for i, x in enumerate(wide)])
                                   for way in range(WAYS) for sign in (1, -1)]
                self.limits[part, k] = [side[part][k] for side in around[who]]

    def is_odd(self, part, k):
        """Where the truth is NaN, or differs from its value at nearby points."""
        truth, scale = self.truth[part][k], self.scale[part][k]
        if self.is_special:
            return np.ones(truth.shape, bool)
        finite = np.abs(truth[np.isfinite(truth)])
        return np.isnan(truth) | (scale > JUMP * np.max(finite, initial=1e-3))

    def _find_errors(self, call, cotangents, tangents, parts, rng, run):
        """JAX's answers and the truth, for these operands and nearby ones, because one answer may be right by chance.

        There is nothing more precise than 64 bits; for these, compares with the same program in 32 bits.
        """
        def down(list_):
            return [c.astype({"f64": np.float32, "c128": np.complex64}.get(name_of(c.dtype), c.dtype)) for c in list_]
        directions = [down(cotangents), down(tangents)] if self.is_wide else [cotangents, tangents]
        own = program(call.f, call.inputs, parts) if self.is_wide else self.own_program
        for k in range(1 + NEIGHBORS):
            with np.errstate(all="ignore"):
                near = [x * (1 + rng.integers(-9, 9, x.shape) / 1024).astype(x.dtype) if k and is_inexact(x) else x
                        for x in call.inputs]
            with jax.enable_x64(needs_64(call.inputs) and not self.is_wide):
                mine = to_numpy(own(down(near) if self.is_wide else near, *directions))
            with jax.enable_x64(True):
                right = to_numpy(run(*([widened(x) for x in list_] for list_ in (near, cotangents, tangents))))
            self.errors.append((mine, right))


def changed(x, rng, matrix=False):
    """Changes every inexact element by a random fraction of itself, or in a matrix, of the largest element."""
    if not is_inexact(x):
        return x
    with np.errstate(all="ignore"):
        if matrix and x.size and np.all(np.isfinite(x)):
            return x + CHANGE * np.max(np.abs(x)) * rng.uniform(-1, 1, x.shape)
        return x * np.where(np.isfinite(x), 1 + CHANGE * rng.uniform(-1, 1, x.shape), 1)


def beside(x, sign, moves, way, operand):
    """If `moves`, every element is slightly larger or smaller, each by another fraction.

    Infinite elements become large; for each `way`, those of some operands become larger than those of the others.
    """
    if not is_inexact(x):
        return x
    parts = np.linspace(1, 2, x.size)
    if way:
        parts = np.random.default_rng(way).permutation(parts)
    with np.errstate(all="ignore"):
        moved = np.where(np.isfinite(x) & moves,
                         x + sign * BESIDE * parts.reshape(x.shape) * np.maximum(np.abs(x), 1), x)
        large = 10.0 ** (30 + 10 * sign + (4 if operand % 2 == way % 2 else 0))
        return moved if is_complex(x) else np.where(np.isinf(x), np.copysign(large, x), moved)
