"""Random calls of the array API's functions, with what NumPy returns."""

import numpy as np

import meshard as ms

# For float32 and float64, also as parts of complex numbers.
TOLERANCES = {"exact": (0, 0), "close": (4e-6, 1e-13), "loose": (2e-4, 1e-9),
              "jacobi": (2e-4, 1e-7)}  # eigenvalues and eigenvectors, which eigh computes to about 9 digits

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
        if dtype.kind == "b":
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


def binary(name, theirs=None, dtypes=NUMERIC, low=-8, high=8, specials=True, dtype=None, tolerance="close",
           second=None):
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


def reduction(name, theirs=None, dtypes=NUMERIC, dtype=None, min_size=1, low=-4, high=4, tolerance="loose",
              specials=False):
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
    return Call(lambda a, b: ms.searchsorted(a, b, side=side), lambda a, b: np.searchsorted(a, b, side), [x1, x2],
                "int32",
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
        return Call(lambda a: getattr(ms, name)(a, *given[0], **given[1]), lambda a: theirs(a, *given[0], **given[1]),
                    [x],
                    x.dtype, "exact", str(given))

    CASES[name] = make


manipulation("reshape", lambda d, s: (((int(np.prod(s)),) if d.chance(0.5) else s[::-1],), {}), np.reshape)
manipulation("permute_dims", lambda d, s: ((tuple(d.rng.permutation(len(s)).tolist()),), {}), np.transpose)
manipulation("flip", lambda d, s: ((), {"axis": d.axes(len(s))}), np.flip)
manipulation("roll", lambda d, s: ((d.integer(-9, 9),), {"axis": d.axis(len(s)) if d.chance(0.7) else None}), np.roll)
manipulation("expand_dims", lambda d, s: ((), {"axis": d.axis(len(s) + 1)}), np.expand_dims)
manipulation("repeat", lambda d, s: ((d.integer(0, 3),), {"axis": d.axis(len(s)) if d.chance(0.7) else None}),
             np.repeat)
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
    return Call(lambda *a: getattr(ms, name)(a, axis=axis), lambda *a: theirs(a, axis=axis), arrays, None, "exact",
                name)


@case("meshgrid")
def _(draw):
    dtype, indexing = draw.choice(NUMERIC), draw.choice(("xy", "ij"))
    arrays = [draw.array(dtype, draw.shape(1, 1)) for _ in range(draw.integer(1, 3))]
    return Call(lambda *a: ms.meshgrid(*a, indexing=indexing), lambda *a: list(np.meshgrid(*a, indexing=indexing)),
                arrays,
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
    return Call(lambda a, i: ms.take_along_axis(a, i, axis=axis), lambda a, i: np.take_along_axis(a, i, axis),
                [x, indices], x.dtype, "exact")


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


# Expressions of an array and a number, as functions of the module that has `where` and `maximum`.
MIXTURES = {
    "x * n": lambda xp, x, n: x * n, "n + x": lambda xp, x, n: n + x, "x / n": lambda xp, x, n: x / n,
    "(n + n) * x": lambda xp, x, n: (n + n) * x, "x + 2 * n": lambda xp, x, n: x + 2 * n,
    "n * 0.5 + x": lambda xp, x, n: n * 0.5 + x, "x - x * n": lambda xp, x, n: x - x * n,
    "where(x > 1, x, n)": lambda xp, x, n: xp.where(x > 1, x, n), "maximum(x, n)": lambda xp, x, n: xp.maximum(x, n),
    "x < n": lambda xp, x, n: x < n, "n == x": lambda xp, x, n: n == x, "x // n": lambda xp, x, n: x // n,
}


def mixed_dtype(array, result):
    """The dtype of an expression of an array and a number of Python, which is weakly typed."""
    if result.dtype.kind == "b" or array.dtype.kind == result.dtype.kind:
        return result.dtype if result.dtype.kind == "b" else array.dtype
    return {"i": np.dtype("int32"), "u": np.dtype("int32"), "f": np.dtype("float32")}[result.dtype.kind]


@case("numbers")
def _(draw):
    array = draw.array(draw.choice(INTS + REAL), draw.shape(), -5, 5)
    number = draw.choice([draw.integer(1, 4), draw.integer(1, 4) * 0.25, True])
    given = draw.choice([lambda n: n, np.float64, np.float32] if isinstance(number, float) else [lambda n: n, np.asarray])
    given = given(number)[()] if given is np.asarray else given(number)
    show, f = draw.choice(sorted(MIXTURES.items()))
    ours = {"plain": lambda x: f(ms, x, given), "argument": lambda x: ms.jit(lambda x, n: f(ms, x, n))(x, given),
            "captured": lambda x: ms.jit(lambda x: f(ms, x, given))(x),
            "sharded": lambda x: ms.jit(lambda x, n: f(ms, ms.mark_sharding(x, ms.Mesh({"x": 2}), ms.P()), n))(x, given)}
    way = draw.choice(sorted(ours))
    with np.errstate(all="ignore"):
        dtype = mixed_dtype(array, f(np, array, number))
    return Call(ours[way], lambda x: f(np, x, number), [array], dtype, show=f"{show}, n = {given!r}, {way}")


@case("integer_power")
def _(draw):
    array = draw.array(draw.choice(INTS), draw.shape(), -5, 5)
    if draw.chance(0.5):
        n = draw.choice([draw.integer(0, 8), draw.integer(60, 70), draw.integer(0, 127)])
        return Call(lambda x: x**n, lambda x: np.power(x, np.asarray(n, x.dtype)), [array], show=f"x ** {n}")
    most = np.iinfo(array.dtype).max
    n = draw.rng.integers(0, min(most, draw.choice([7, 100, 2**62])), array.shape, endpoint=True).astype(array.dtype)
    power = ms.jit(ms.pow) if draw.chance(0.5) else ms.pow
    return Call(power, np.power, [array, n])


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
