#!/usr/bin/env python3
"""Compares random calls of the array API's functions with NumPy: shapes, dtypes and values.

usage: compare_numpy.py [COUNT] [--seed SEED]

NumPy computes in float64 or complex128 what meshard computes in a narrower dtype; its result is then rounded. Two
numbers agree if |a - b| <= tolerance * max(1, |b|), with the tolerance of the dtype and the function below. Integers,
bools, NaN, infinities, shapes and dtypes must be equal.
"""

import argparse
import sys
import zlib

import meshard as ms
import numpy as np

# For float32 and float64, also as parts of complex numbers.
TOLERANCES = {"exact": (0, 0), "close": (4e-6, 1e-13), "loose": (2e-4, 1e-9)}

INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SIGNED = INTS[:4]
REAL = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
INEXACT = REAL + COMPLEX
NUMERIC = INTS + INEXACT
ORDERED = INTS + REAL
ALL = ("bool",) + NUMERIC
PAIRS = [("int8", "int32"), ("int16", "uint8"), ("int64", "uint32"), ("uint8", "uint64"), ("float32", "float64"),
         ("complex64", "float64"), ("complex64", "complex128")]


class Draw:
    """Random arguments."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def integer(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def choice(self, options):
        return options[self.integer(0, len(options) - 1)]

    def chance(self, probability):
        return self.rng.random() < probability

    def shape(self, min_rank=0, max_rank=3, min_size=1):
        sizes = [1, 2, 3, 4, 7] + ([0] if min_size == 0 else [])
        return tuple(self.choice(sizes) for _ in range(self.integer(min_rank, max_rank)))

    def axis(self, rank):
        return self.integer(-rank, rank - 1)

    def axes(self, rank):
        """None, one dimension or several."""
        kind = self.integer(0, 2)
        if kind == 0 or rank == 0:
            return None
        if kind == 1:
            return self.axis(rank)
        return tuple(sorted(self.rng.permutation(rank)[:self.integer(1, rank)].tolist()))

    def broadcastable(self, shape):
        shape = tuple(1 if self.chance(0.25) else size for size in shape)
        return shape[self.integer(0, len(shape)):] if self.chance(0.3) else shape

    def array(self, dtype, shape, low=-8.0, high=8.0, specials=False):
        dtype = np.dtype(dtype)
        if dtype == bool:
            return self.rng.random(shape) < 0.5
        if dtype.kind in "iu":
            low = max(low, 0) if dtype.kind == "u" else low
            return self.rng.integers(int(np.ceil(low)), int(high) + 1, shape).astype(dtype)
        values = self.rng.uniform(low, high, shape)
        if dtype.kind == "c":
            values = values + 1j * self.rng.uniform(low, high, shape)
        elif specials and self.chance(0.3):
            some = self.rng.random(shape) < 0.4
            values = np.where(some, self.rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0], shape), values)
        return np.asarray(values).astype(dtype)


def wide(array):
    """An array in the dtype in which NumPy computes."""
    kinds = {"f": np.float64, "c": np.complex128}
    return array.astype(kinds[array.dtype.kind]) if array.dtype.kind in kinds else array


class Call:
    """One call: the functions, the arrays, and what the result must be."""

    def __init__(self, ours, theirs, arrays, dtype=None, tolerance="close", show="", widened=True):
        self.ours, self.theirs, self.arrays, self.dtype = ours, theirs, arrays, dtype
        self.tolerance, self.show, self.widened = tolerance, show, widened

    def difference(self):
        """A description of the first difference; None if there is none."""
        with np.errstate(all="ignore"):
            expected = self.theirs(*(wide(a) for a in self.arrays) if self.widened else self.arrays)
        found = self.ours(*(ms.asarray(a) for a in self.arrays))
        pairs = list(zip(found, expected, strict=True)) if isinstance(expected, (tuple, list)) else [(found, expected)]
        dtypes = self.dtype if isinstance(self.dtype, (tuple, list)) else [self.dtype] * len(pairs)
        for (one, other), dtype in zip(pairs, dtypes, strict=True):
            text = self._compared(one, np.asarray(other), dtype)
            if text:
                return text
        return None

    def _compared(self, found, expected, dtype):
        dtype = np.dtype(dtype if dtype is not None else np.result_type(*self.arrays))
        if found.dtype != dtype:
            return f"dtype {found.dtype}, expected {dtype}"
        if found.shape != expected.shape:
            return f"shape {found.shape}, expected {expected.shape}"
        with np.errstate(all="ignore"):
            expected = expected.astype(dtype)
        found = found.numpy()
        if dtype.kind in "biu":
            same = found == expected
        else:
            narrow = dtype.itemsize == (4 if dtype.kind == "f" else 8)
            tolerance = TOLERANCES[self.tolerance][0 if narrow else 1]
            with np.errstate(all="ignore"):
                near = np.abs(found - expected) <= tolerance * np.maximum(1, np.abs(expected))
            same = near | (found == expected) | (np.isnan(found) & np.isnan(expected))
        if np.all(same):
            return None
        at = np.argwhere(~np.atleast_1d(same))[0]
        return (f"element {at.tolist()}: {np.atleast_1d(found)[tuple(at)]!r}, expected "
                f"{np.atleast_1d(expected)[tuple(at)]!r}")


# --- generators: from Draw to Call ---------------------------------------------------------------

CASES = {}


def case(name):
    def register(function):
        CASES[name] = function
        return function

    return register


def unary(name, theirs=None, dtypes=INEXACT, low=-8, high=8, specials=True, dtype=None, tolerance="close"):
    theirs = theirs or getattr(np, name)

    def make(draw):
        x = draw.array(draw.choice(dtypes), draw.shape(min_size=0), low, high, specials)
        result = dtype(x.dtype) if callable(dtype) else dtype
        return Call(getattr(ms, name), theirs, [x], result or x.dtype, tolerance)

    CASES[name] = make


def binary(name, theirs=None, dtypes=NUMERIC, low=-8, high=8, specials=True, dtype=None, tolerance="close", second=None):
    theirs = theirs or getattr(np, name)

    def make(draw):
        pairs = [pair for pair in PAIRS if pair[0] in dtypes and pair[1] in dtypes]
        one, other = draw.choice(pairs) if pairs and draw.chance(0.3) else [draw.choice(dtypes)] * 2
        shape = draw.shape(min_size=0)
        x1 = draw.array(one, draw.broadcastable(shape), low, high, specials)
        x2 = draw.array(other, draw.broadcastable(shape), *(second or (low, high)), specials)
        if second and second[0] is not None and np.dtype(other).kind in "iu":
            x2 = np.maximum(x2, x2.dtype.type(second[0]))
        ours = getattr(ms, name)
        if draw.chance(0.2) and one != "bool" and np.dtype(one).kind != "u":  # a Python number
            number = draw.integer(max(1, int(np.ceil((second or (low, high))[0]))), 3)
            return Call(lambda x: ours(x, number), lambda x: theirs(x, x.dtype.type(number)), [x1], dtype or x1.dtype,
                        tolerance, f"x2={number}")
        return Call(ours, theirs, [x1, x2], dtype, tolerance)

    CASES[name] = make


def real_part(dtype):
    return {"complex64": "float32", "complex128": "float64"}.get(str(dtype), dtype)


def summed(dtype):
    """The dtype of a sum."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return "int32"
    return ("int32" if dtype.kind == "i" else "uint32") if dtype.kind in "iu" and dtype.itemsize < 4 else dtype


for _name in ("exp", "expm1", "sinh", "cosh", "tanh", "sin", "cos"):
    unary(_name, low=-4, high=4, tolerance="close")
unary("tan", low=-1.2, high=1.2)
for _name, _theirs in (("acos", np.arccos), ("asin", np.arcsin), ("atanh", np.arctanh)):
    unary(_name, _theirs, low=-0.95, high=0.95)
unary("acosh", np.arccosh, low=1.1, high=9)
unary("asinh", np.arcsinh)
unary("atan", np.arctan)
for _name in ("log", "log10", "log2", "log1p", "sqrt"):
    unary(_name, low=0.1, high=9)
for _name in ("ceil", "floor", "trunc", "round"):
    unary(_name, dtypes=INTS + REAL, tolerance="exact")
unary("abs", dtypes=NUMERIC, dtype=real_part)
unary("negative", dtypes=NUMERIC, tolerance="exact")
unary("positive", dtypes=NUMERIC, tolerance="exact")
unary("square", dtypes=NUMERIC)
unary("reciprocal", lambda x: 1 / x, low=0.2)
unary("sign", lambda x: x / np.abs(x) if x.dtype.kind == "c" else np.sign(x), dtypes=SIGNED + INEXACT)
unary("signbit", dtypes=REAL, dtype="bool")
unary("conj", dtypes=COMPLEX, tolerance="exact")
unary("real", dtypes=INEXACT, dtype=real_part, tolerance="exact")
unary("imag", dtypes=COMPLEX, dtype=real_part, tolerance="exact")
for _name in ("isfinite", "isinf", "isnan"):
    unary(_name, dtypes=NUMERIC, dtype="bool")
unary("logical_not", dtypes=("bool",))
unary("bitwise_invert", np.invert, dtypes=("bool",) + INTS)

for _name in ("add", "subtract", "multiply"):
    binary(_name)
binary("divide", dtypes=INEXACT, second=(0.3, 8))
binary("floor_divide", dtypes=ORDERED, specials=False, second=(1, 8), tolerance="exact")
binary("remainder", dtypes=ORDERED, specials=False, second=(1, 8), tolerance="loose")
binary("pow", np.power, dtypes=REAL + COMPLEX, low=0.3, high=4, tolerance="loose")
binary("atan2", np.arctan2, dtypes=REAL)
for _name in ("hypot", "copysign", "logaddexp"):
    binary(_name, dtypes=REAL)
binary("nextafter", lambda a, b: np.nextafter(a, b), dtypes=("float64",), tolerance="exact")
for _name in ("maximum", "minimum"):
    binary(_name, dtypes=ORDERED, tolerance="exact")
for _name in ("less", "less_equal", "greater", "greater_equal"):
    binary(_name, dtypes=ORDERED, dtype="bool", low=-2, high=2)
for _name in ("equal", "not_equal"):
    binary(_name, dtypes=ALL, dtype="bool", low=-2, high=2)
for _name in ("logical_and", "logical_or", "logical_xor"):
    binary(_name, dtypes=("bool",))
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    binary(_name, dtypes=("bool",) + INTS)
for _name, _theirs in (("bitwise_left_shift", np.left_shift), ("bitwise_right_shift", np.right_shift)):
    binary(_name, _theirs, dtypes=INTS, second=(0, 6))


def reduction(name, theirs=None, dtypes=NUMERIC, dtype=None, min_size=1, low=-4, high=4, tolerance="loose", specials=False):
    theirs = theirs or getattr(np, name)

    def make(draw):
        shape = draw.shape(min_size=min_size)
        x = draw.array(draw.choice(dtypes), shape, low, high, specials)
        arguments = {"axis": draw.axes(len(shape)), "keepdims": draw.chance(0.5)}
        if name in ("var", "std") and draw.chance(0.5):
            arguments["correction"] = 0.5
        theirs_arguments = {("ddof" if key == "correction" else key): value for key, value in arguments.items()}
        result = dtype(x.dtype) if callable(dtype) else dtype
        if name in ("sum", "prod"):
            theirs_arguments["dtype"] = summed(x.dtype) if x.dtype.kind in "biu" else None
        return Call(lambda a: getattr(ms, name)(a, **arguments), lambda a: theirs(a, **theirs_arguments), [x],
                    result or x.dtype, tolerance, str(arguments))

    CASES[name] = make


reduction("sum", dtype=summed, min_size=0, dtypes=ALL)
reduction("prod", dtype=summed, min_size=0, low=-2, high=2)
reduction("max", dtypes=ORDERED, tolerance="exact", specials=True)
reduction("min", dtypes=ORDERED, tolerance="exact", specials=True)
reduction("mean", dtypes=INEXACT)
reduction("var", dtypes=REAL)
reduction("std", dtypes=REAL)
reduction("all", dtypes=ALL, dtype="bool", min_size=0, low=-1, high=1)
reduction("any", dtypes=ALL, dtype="bool", min_size=0, low=-1, high=1)
reduction("count_nonzero", dtypes=ALL, dtype="int32", min_size=0, low=-1, high=1)


@case("argmax")
@case("argmin")
def _(draw, name=None):
    name = draw.choice(("argmax", "argmin"))
    shape = draw.shape()
    x = draw.array(draw.choice(ORDERED), shape, -3, 3)
    arguments = {"axis": draw.axis(len(shape)) if shape and draw.chance(0.7) else None, "keepdims": draw.chance(0.5)}
    return Call(lambda a: getattr(ms, name)(a, **arguments), lambda a: getattr(np, name)(a, **arguments), [x], "int32",
                show=f"{name} {arguments}")


@case("cumulative_sum")
@case("cumulative_prod")
def _(draw):
    name, theirs = draw.choice((("cumulative_sum", np.cumsum), ("cumulative_prod", np.cumprod)))
    shape = draw.shape(1)
    axis, initial = draw.axis(len(shape)), draw.chance(0.5)
    x = draw.array(draw.choice(NUMERIC), shape, -2, 2)

    def reference(a):
        result = theirs(a, axis=axis, dtype=summed(x.dtype) if x.dtype.kind in "iu" else None)
        first = list(shape)
        first[axis] = 1
        start = np.full(first, 0 if name == "cumulative_sum" else 1, result.dtype)
        return np.concatenate([start, result], axis) if initial else result

    return Call(lambda a: getattr(ms, name)(a, axis=axis, include_initial=initial), reference, [x], summed(x.dtype),
                "loose", f"{name} axis={axis}")


@case("sort")
@case("argsort")
def _(draw):
    name = draw.choice(("sort", "argsort"))
    shape = draw.shape(1)
    axis, descending = draw.axis(len(shape)), draw.chance(0.5)
    x = draw.array(draw.choice(ORDERED + ("bool",)), shape, -3, 3)

    def reference(a):
        if not descending:
            return getattr(np, name)(a, axis=axis, kind="stable")
        order = np.flip(np.flip(a, axis).argsort(axis=axis, kind="stable"), axis)
        order = a.shape[axis] - 1 - order
        return order if name == "argsort" else np.take_along_axis(a, order, axis)

    return Call(lambda a: getattr(ms, name)(a, axis=axis, descending=descending), reference, [x],
                "int32" if name == "argsort" else x.dtype, "exact", f"{name} axis={axis} descending={descending}")


@case("unique")
def _(draw):
    x = draw.array(draw.choice(ALL), draw.shape(), -2, 2)
    if x.dtype.kind in "fc":
        x = np.round(x.real).astype(x.dtype)

    def reference(a):
        values, indices, inverse, counts = np.unique(a, return_index=True, return_inverse=True, return_counts=True)
        return values, indices, inverse.reshape(a.shape), counts

    return Call(ms.unique_all, reference, [x], (x.dtype, "int32", "int32", "int32"), "exact")


@case("nonzero")
def _(draw):
    x = draw.array(draw.choice(ALL), draw.shape(1), -1, 1)
    return Call(ms.nonzero, np.nonzero, [x], "int32")


@case("searchsorted")
def _(draw):
    dtype, side = draw.choice(ORDERED), draw.choice(("left", "right"))
    x1 = np.sort(draw.array(dtype, draw.shape(1, 1)))
    x2 = draw.array(dtype, draw.shape(1))
    return Call(lambda a, b: ms.searchsorted(a, b, side=side), lambda a, b: np.searchsorted(a, b, side), [x1, x2], "int32",
                show=side)


@case("where")
def _(draw):
    shape, dtype = draw.shape(min_size=0), draw.choice(ALL)
    arrays = [draw.array("bool", draw.broadcastable(shape))]
    arrays += [draw.array(dtype, draw.broadcastable(shape)) for _ in range(2)]
    return Call(ms.where, np.where, arrays, dtype, "exact")


@case("clip")
def _(draw):
    x = draw.array(draw.choice(ORDERED), draw.shape(min_size=0))
    low, high = (draw.integer(0, 2) if draw.chance(0.7) else None), draw.integer(2, 5)
    return Call(lambda a: ms.clip(a, low, high), lambda a: np.clip(a, low, high), [x], x.dtype, "exact",
                f"min={low} max={high}")


@case("isin")
def _(draw):
    dtype, invert = draw.choice(ORDERED), draw.chance(0.5)
    arrays = [draw.array(dtype, draw.shape(), -3, 3), draw.array(dtype, draw.shape(), -3, 3)]
    return Call(lambda a, b: ms.isin(a, b, invert=invert), lambda a, b: np.isin(a, b, invert=invert), arrays, "bool")


@case("diff")
def _(draw):
    shape = draw.shape(1)
    axis, n = draw.axis(len(shape)), draw.integer(1, 2)
    x = draw.array(draw.choice(NUMERIC), shape)
    return Call(lambda a: ms.diff(a, axis=axis, n=n), lambda a: np.diff(a, axis=axis, n=n), [x], x.dtype, "close",
                f"axis={axis} n={n}")


def manipulation(name, arguments, theirs, min_rank=1):
    """A function of one array whose arguments are drawn from its shape."""

    def make(draw):
        shape = draw.shape(min_rank, min_size=0)
        x = draw.array(draw.choice(ALL), shape)
        given = arguments(draw, shape)
        return Call(lambda a: getattr(ms, name)(a, *given[0], **given[1]), lambda a: theirs(a, *given[0], **given[1]), [x],
                    x.dtype, "exact", str(given))

    CASES[name] = make


manipulation("reshape", lambda d, s: (((int(np.prod(s)),) if d.chance(0.5) else s[::-1],), {}), np.reshape)
manipulation("permute_dims", lambda d, s: ((tuple(d.rng.permutation(len(s)).tolist()),), {}), np.transpose)
manipulation("flip", lambda d, s: ((), {"axis": d.axes(len(s))}), np.flip)
manipulation("roll", lambda d, s: ((d.integer(-9, 9),), {"axis": d.axis(len(s)) if d.chance(0.7) else None}), np.roll)
manipulation("expand_dims", lambda d, s: ((), {"axis": d.axis(len(s) + 1)}), np.expand_dims)
manipulation("repeat", lambda d, s: ((d.integer(0, 3),), {"axis": d.axis(len(s)) if d.chance(0.7) else None}), np.repeat)
manipulation("tile", lambda d, s: ((d.shape(1, 3),), {}), np.tile)
manipulation("moveaxis", lambda d, s: ((d.axis(len(s)), d.axis(len(s))), {}), np.moveaxis)
manipulation("broadcast_to", lambda d, s: ((d.shape(0, 1) + s,), {}), np.broadcast_to)
manipulation("unstack", lambda d, s: ((), {"axis": d.axis(len(s))}), lambda a, axis: list(np.moveaxis(a, axis, 0)))
manipulation("tril", lambda d, s: ((), {"k": d.integer(-3, 3)}), np.tril, min_rank=2)
manipulation("triu", lambda d, s: ((), {"k": d.integer(-3, 3)}), np.triu, min_rank=2)
manipulation("matrix_transpose", lambda d, s: ((), {}), lambda a: np.swapaxes(a, -1, -2), min_rank=2)


@case("squeeze")
def _(draw):
    shape = draw.shape(0, 2) + (1,)
    x = draw.array(draw.choice(ALL), shape)
    return Call(lambda a: ms.squeeze(a, -1), lambda a: np.squeeze(a, -1), [x], x.dtype, "exact")


@case("concat")
@case("stack")
def _(draw):
    name, theirs = draw.choice((("concat", np.concatenate), ("stack", np.stack)))
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    arrays = [draw.array(dtype, shape) for dtype in draw.choice(PAIRS)]
    return Call(lambda *a: getattr(ms, name)(a, axis=axis), lambda *a: theirs(a, axis=axis), arrays, None, "exact", name)


@case("meshgrid")
def _(draw):
    dtype, indexing = draw.choice(NUMERIC), draw.choice(("xy", "ij"))
    arrays = [draw.array(dtype, draw.shape(1, 1)) for _ in range(draw.integer(1, 3))]
    return Call(lambda *a: ms.meshgrid(*a, indexing=indexing), lambda *a: list(np.meshgrid(*a, indexing=indexing)), arrays,
                dtype, "exact", indexing)


@case("take")
def _(draw):
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    x = draw.array(draw.choice(ALL), shape)
    indices = draw.rng.integers(-shape[axis], shape[axis], draw.shape(1, 1)).astype(draw.choice(("int32", "int64")))
    return Call(lambda a, i: ms.take(a, i, axis=axis), lambda a, i: np.take(a, i, axis), [x, indices], x.dtype, "exact")


@case("take_along_axis")
def _(draw):
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    x = draw.array(draw.choice(ALL), shape)
    indices = draw.rng.integers(-shape[axis], shape[axis], shape).astype("int32")
    return Call(lambda a, i: ms.take_along_axis(a, i, axis=axis), lambda a, i: np.take_along_axis(a, i, axis), [x, indices],
                x.dtype, "exact")


@case("index")
@case("index_assign")
def _(draw):
    shape = draw.shape(1)
    key = []
    for size in shape[:draw.integer(1, len(shape))]:
        kind = draw.integer(0, 4)
        if kind == 0:
            key.append(draw.integer(-size, size - 1))
        elif kind == 1:
            step = draw.choice((-2, -1, 1, 2))
            key.append(slice(draw.choice((None, 0, 1, -1)), draw.choice((None, 2, -1)), step))
        elif kind == 2:
            key.append(draw.rng.integers(-size, size, draw.choice(((2,), (3, 1), (3, 2)))))
        elif kind == 3:
            key.append(draw.array("bool", (size,)))
        else:
            key.append(slice(None))
    if draw.chance(0.2):
        key.insert(draw.integer(0, len(key)), None)
    key = tuple(key)
    x = draw.array(draw.choice(ALL), shape)
    try:
        part = x[key]
    except IndexError:  # arrays that do not broadcast
        key = key[0]
        part = x[key]
    if draw.chance(0.5):
        return Call(lambda a: a[key], lambda a: a[key], [x], x.dtype, "exact", f"index {key}")
    # One value for all elements: which of several values a repeated index keeps is not defined.
    value = draw.array(x.dtype, ()) if draw.chance(0.5) or not part.shape else draw.array(x.dtype, (1,) * part.ndim)

    def assigned(a, v):
        a = a.copy()
        a[key] = v
        return a

    return Call(assigned, assigned, [x, value], x.dtype, "exact", f"assign {key}")


@case("arange")
def _(draw):
    start, stop, step = draw.integer(-9, 9), draw.integer(-9, 9), draw.choice((-2, -1, 1, 3))
    if draw.chance(0.5):
        start, step = start + 0.25, step / 2
        return Call(lambda: ms.arange(start, stop, step), lambda: np.arange(start, stop, step), [], "float32", "close",
                    f"{start} {stop} {step}")
    return Call(lambda: ms.arange(start, stop, step), lambda: np.arange(start, stop, step), [], "int32",
                show=f"{start} {stop} {step}")


@case("linspace")
def _(draw):
    start, stop, num = draw.integer(-9, 9), draw.integer(-9, 9) + 0.5, draw.integer(0, 9)
    dtype, endpoint = draw.choice(REAL), draw.chance(0.5)
    return Call(lambda: ms.linspace(start, stop, num, dtype=dtype, endpoint=endpoint),
                lambda: np.linspace(start, stop, num, endpoint=endpoint), [], dtype, "close", f"{start} {stop} {num}")


@case("eye")
def _(draw):
    rows, columns, k, dtype = draw.integer(0, 5), draw.integer(0, 5), draw.integer(-4, 4), draw.choice(ALL)
    return Call(lambda: ms.eye(rows, columns, k=k, dtype=dtype), lambda: np.eye(rows, columns, k), [], dtype)


@case("full")
def _(draw):
    shape, dtype = draw.shape(min_size=0), draw.choice(NUMERIC)
    name, value = draw.choice((("zeros", 0), ("ones", 1), ("full", 3)))
    arguments = (value,) if name == "full" else ()
    return Call(lambda: getattr(ms, name)(shape, *arguments, dtype=dtype), lambda: np.full(shape, value), [], dtype)


@case("astype")
def _(draw):
    x, to = draw.array(draw.choice(ORDERED), draw.shape(min_size=0), 0, 9), draw.choice(ALL)
    return Call(lambda a: ms.astype(a, getattr(ms, to)), lambda a: a.astype(to), [x], to)


# --- products and linear algebra -----------------------------------------------------------------


@case("matmul")
def _(draw):
    n, dtype = draw.integer(1, 5), draw.choice(NUMERIC)
    batch = draw.shape(0, 1)
    x1 = draw.array(dtype, batch + (draw.integer(1, 4), n) if draw.chance(0.8) else (n,), -3, 3)
    x2 = draw.array(dtype, (n, draw.integer(1, 4)) if draw.chance(0.8) else (n,), -3, 3)
    return Call(ms.matmul, np.matmul, [x1, x2], dtype, "loose")


@case("tensordot")
def _(draw):
    dtype, axes = draw.choice(NUMERIC), draw.integer(0, 2)
    shared = draw.shape(axes, axes)
    arrays = [draw.array(dtype, draw.shape(0, 1) + shared, -3, 3), draw.array(dtype, shared + draw.shape(0, 1), -3, 3)]
    return Call(lambda a, b: ms.tensordot(a, b, axes=axes), lambda a, b: np.tensordot(a, b, axes), arrays, dtype, "loose")


@case("vecdot")
def _(draw):
    dtype, shape = draw.choice(NUMERIC), draw.shape(1)
    arrays = [draw.array(dtype, shape, -3, 3) for _ in range(2)]
    return Call(ms.vecdot, lambda a, b: (np.conj(a) * b).sum(-1, dtype=a.dtype), arrays, dtype, "loose")


def matrices(name, theirs, dtypes=REAL, square=True, symmetric=False, positive=False, dtype=None, results=1, **arguments):
    def make(draw):
        n = draw.integer(1, 5)
        shape = draw.shape(0, 1) + ((n, n) if square else (n, draw.integer(1, 5)))
        x = draw.array(draw.choice(dtypes), shape, -1, 1)
        if square:
            x = x + (2 * n) * np.eye(n, dtype=x.dtype)  # far from singular
        if symmetric or positive:
            x = (x + np.conj(np.swapaxes(x, -1, -2))) / 2
        result = dtype(x.dtype) if callable(dtype) else x.dtype
        return Call(lambda a: getattr(ms.linalg, name)(a, **arguments), theirs, [x], result, "loose", str(arguments))

    CASES["linalg." + name + "".join(map(str, arguments.values()))] = make


matrices("det", np.linalg.det, dtypes=INEXACT)
matrices("inv", np.linalg.inv, dtypes=INEXACT)
matrices("slogdet", lambda a: tuple(np.linalg.slogdet(a)))
matrices("cholesky", np.linalg.cholesky, dtypes=INEXACT, positive=True)
matrices("eigvalsh", np.linalg.eigvalsh, dtypes=INEXACT, symmetric=True, dtype=real_part)
matrices("svdvals", lambda a: np.linalg.svd(a, compute_uv=False), dtypes=INEXACT, square=False, dtype=real_part)
matrices("pinv", np.linalg.pinv, dtypes=INEXACT, square=True)
matrices("matrix_rank", np.linalg.matrix_rank, dtypes=INEXACT, square=True, dtype=lambda _: "int32")
matrices("trace", lambda a: np.trace(a, axis1=-2, axis2=-1), dtypes=INEXACT, square=False)
matrices("diagonal", lambda a: np.diagonal(a, 1, -2, -1), dtypes=INEXACT, square=False, offset=1)
for _ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
    matrices("matrix_norm", lambda a, o=_ord: np.linalg.norm(a, o, (-2, -1)), dtypes=INEXACT, square=False, dtype=real_part,
             ord=_ord)


@case("linalg.products")
def _(draw):
    """q @ r, v diag(w) v^H and u diag(s) vh are the matrices."""
    name = draw.choice(("qr", "eigh", "svd"))
    dtype, rows, columns = draw.choice(INEXACT), draw.integer(1, 5), draw.integer(1, 5)
    x = draw.array(dtype, (rows, rows if name == "eigh" else columns), -1, 1)
    if name == "eigh":
        x = (x + np.conj(x.T)) / 2

    def product(a):
        if name == "qr":
            return ms.matmul(*ms.linalg.qr(a))
        if name == "eigh":
            w, v = ms.linalg.eigh(a)
            return ms.matmul(v * w, ms.conj(v.mT))
        u, s, vh = ms.linalg.svd(a, full_matrices=False)
        return ms.matmul(u * s, vh)

    return Call(product, lambda a: a, [x], dtype, "loose", name)


@case("linalg.solve")
def _(draw):
    n, dtype = draw.integer(1, 5), draw.choice(INEXACT)
    x1 = draw.array(dtype, (n, n), -1, 1) + 2 * n * np.eye(n, dtype=dtype)
    x2 = draw.array(dtype, (n, draw.integer(1, 3)) if draw.chance(0.7) else (n,), -1, 1)
    return Call(ms.linalg.solve, np.linalg.solve, [x1.astype(dtype), x2], dtype, "loose")


@case("linalg.vector_norm")
def _(draw):
    shape, order = draw.shape(1), draw.choice((0, 1, 2, 3, np.inf, -np.inf, 0.5))
    axis, keepdims = draw.axis(len(shape)), draw.chance(0.5)
    x = draw.array(draw.choice(INEXACT), shape, -2, 2)
    return Call(lambda a: ms.linalg.vector_norm(a, axis=axis, keepdims=keepdims, ord=order),
                lambda a: np.linalg.norm(a, order, axis, keepdims), [x], real_part(x.dtype), "loose", f"ord={order}")


@case("linalg.cross")
def _(draw):
    dtype, shape = draw.choice(NUMERIC), draw.shape(0, 2) + (3,)
    arrays = [draw.array(dtype, shape, -3, 3) for _ in range(2)]
    return Call(ms.linalg.cross, np.cross, arrays, dtype, "loose")


@case("linalg.outer")
def _(draw):
    dtype = draw.choice(NUMERIC)
    return Call(ms.linalg.outer, np.outer, [draw.array(dtype, draw.shape(1, 1)) for _ in range(2)], dtype, "close")


def transform(name, dtypes, dtype, several=False):
    def make(draw):
        shape = draw.shape(1)
        arguments = {"norm": draw.choice(("backward", "ortho", "forward"))}
        if several:
            arguments["axes"] = tuple(sorted(draw.rng.permutation(len(shape))[:draw.integer(1, len(shape))].tolist()))
            if draw.chance(0.5):
                arguments["s"] = [draw.integer(2, 5) for _ in arguments["axes"]]
        else:
            arguments["axis"] = draw.axis(len(shape))
            if draw.chance(0.5):
                arguments["n"] = draw.integer(2, 8)
        if name in ("irfft", "hfft", "irfftn"):  # a result of no elements is an error
            if several:
                arguments["s"] = [draw.integer(2, 5) for _ in arguments["axes"]]
            else:
                arguments["n"] = draw.integer(2, 8)
        x = draw.array(draw.choice(dtypes), shape, -2, 2)
        return Call(lambda a: getattr(ms.fft, name)(a, **arguments), lambda a: getattr(np.fft, name)(a, **arguments), [x],
                    dtype(x.dtype), "loose", str(arguments))

    CASES["fft." + name] = make


def complex_of(dtype):
    return {"float32": "complex64", "float64": "complex128"}.get(str(dtype), dtype)


for _name in ("fft", "ifft"):
    transform(_name, COMPLEX, complex_of)
    transform(_name + "n", COMPLEX, complex_of, several=True)
for _name in ("rfft", "ihfft"):
    transform(_name, REAL, complex_of)
for _name in ("irfft", "hfft"):
    transform(_name, COMPLEX, real_part)
transform("rfftn", REAL, complex_of, several=True)
transform("irfftn", COMPLEX, real_part, several=True)


@case("fft.frequencies")
def _(draw):
    name, n, d = draw.choice(("fftfreq", "rfftfreq")), draw.integer(1, 9), draw.choice((0.5, 1.0, 3.0))
    return Call(lambda: getattr(ms.fft, name)(n, d=d), lambda: getattr(np.fft, name)(n, d), [], "float32", "close", name)


@case("fft.shifts")
def _(draw):
    name, shape = draw.choice(("fftshift", "ifftshift")), draw.shape(1)
    axes = draw.axes(len(shape))
    x = draw.array(draw.choice(INEXACT), shape)
    return Call(lambda a: getattr(ms.fft, name)(a, axes=axes), lambda a: getattr(np.fft, name)(a, axes), [x], x.dtype, "exact",
                name)


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
