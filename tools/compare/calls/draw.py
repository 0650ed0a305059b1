"""Random shapes, dtypes, values and meshes, all from one seed."""

import math

import ml_dtypes
import numpy as np

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
          "c64": np.complex64, "c128": np.complex128, "bool": np.bool_,
          "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
          "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
FLOATS, COMPLEX = ("f32", "f32", "f32", "bf16", "f16", "f64"), ("c64", "c64", "c128")
INTEGERS = ("i32", "i32", "i8", "i16", "i64", "u8", "u16", "u32", "u64")
MANNERS = ("plain", "plain", "plain", "ties", "wide", "special")


def name_of(dtype):
    return NAMES[np.dtype(dtype)]


def is_float(array):
    return name_of(array.dtype) in ("f16", "bf16", "f32", "f64")


def is_complex(array):
    return np.dtype(array.dtype).kind == "c"


def is_inexact(array):
    return is_float(array) or is_complex(array)


class Draw:
    """Draws the parts of a case. `manner` selects the float values of this case."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.manner = self.one_of(MANNERS)

    def chance(self, probability):
        return self.rng.random() < probability

    def integer(self, low, high):
        """low to high, inclusive."""
        return int(self.rng.integers(low, high + 1))

    def one_of(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def shuffled(self, items):
        items = list(items)
        self.rng.shuffle(items)
        return items

    def shape(self, low=0, high=4, limit=24, empty=0.04):
        """Sizes of a tensor of rank low to high with at most `limit` elements; rarely empty."""
        rank = self.integer(low, high)
        while True:
            sizes = tuple(self.one_of((1, 2, 2, 3, 3, 4, 5, 7)) for _ in range(rank))
            if math.prod(sizes) <= limit:
                break
        if rank and self.chance(empty):
            at = self.integer(0, rank - 1)
            sizes = sizes[:at] + (0,) + sizes[at + 1:]
        return sizes

    def dtype(self, floats=1.0, integers=0.0, complexes=0.0, bools=0.0):
        """A dtype; the arguments are the weights of the kinds."""
        kinds = (FLOATS, INTEGERS, COMPLEX, ("bool",))
        weights = np.array([floats, integers, complexes, bools], float)
        return self.one_of(kinds[int(self.rng.choice(4, p=weights / weights.sum()))])

    def dimension(self, rank, negative=True):
        at = self.integer(0, rank - 1)
        return at - rank if negative and self.chance(0.3) else at

    def dimensions(self, rank, least=0):
        """Some dimensions, in any order, some of them negative."""
        count = self.integer(min(least, rank), rank)
        return [at - rank if self.chance(0.2) else at for at in self.shuffled(range(rank))[:count]]

    def broadcast_to(self, shape):
        """A shape that broadcasts to `shape`."""
        if not self.chance(0.4):
            return shape
        sizes = tuple(1 if self.chance(0.4) else size for size in shape)
        return sizes[self.integer(0, len(sizes)):] if self.chance(0.4) else sizes

    def values(self, shape, dtype="f32", low=None, high=None, manner=None):
        """An array. With low and high: floats between them, or integers from low to high."""
        kind = np.dtype(DTYPES[dtype]).kind
        count = math.prod(shape)
        if dtype == "bool":
            data = self.rng.random(count) < 0.5
        elif kind in "iu":
            data = self._integers(count, dtype, low, high)
        elif kind == "c":
            parts = [self._floats(count, "f32", low, high, manner or self.manner) for _ in range(2)]
            data = np.empty(count, complex)
            data.real, data.imag = parts
        else:
            data = self._floats(count, dtype, low, high, manner or self.manner)
        with np.errstate(all="ignore"):
            return np.asarray(data).astype(DTYPES[dtype]).reshape(shape)

    def _integers(self, count, dtype, low, high):
        limits = np.iinfo(DTYPES[dtype])
        if low is None and self.chance(0.15):  # any value of the dtype
            return self.rng.integers(limits.min, limits.max, count, DTYPES[dtype], endpoint=True)
        low, high = -7 if low is None else low, 7 if high is None else high
        return self.rng.integers(max(low, limits.min), min(high, limits.max), count, endpoint=True)

    def _floats(self, count, dtype, low, high, manner):
        if low is not None:
            return np.round(low + (high - low) * self.rng.random(count), 3)
        if manner == "ties":
            return self.rng.integers(-2, 2, count, endpoint=True).astype(float)
        plain = np.round(self.rng.normal(size=count) * 2, 3)
        if manner == "wide":
            reach = 3 if dtype == "f16" else 8
            return np.array([float(f"{v:.4g}") for v in plain * 10 ** self.rng.uniform(-reach, reach, count)])
        if manner == "special":
            limits = ml_dtypes.finfo(DTYPES[dtype])
            odd = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0]
            # At the limits of f64, there is no wider dtype that could give the right answer.
            odd += [1e100, 1e-100] if dtype == "f64" else [float(limits.max), float(limits.tiny)]
            for at in range(count):
                if self.chance(0.4):
                    plain[at] = self.one_of(odd)
        return plain

    def floats(self, low=0, high=4, **bounds):
        return self.values(self.shape(low, high), self.dtype(), **bounds)

    def direction(self, shape, dtype):
        """A cotangent or a tangent: multiples of a quarter, which every dtype can represent."""
        numbers = self.rng.integers(-8, 8, math.prod(shape), endpoint=True) / 4
        if np.dtype(DTYPES[dtype]).kind == "c":
            numbers = numbers + 1j * self.rng.integers(-8, 8, math.prod(shape), endpoint=True) / 4
        return np.asarray(numbers).astype(DTYPES[dtype]).reshape(shape)

    def mesh(self):
        """Axes over some of eight devices, in any order."""
        sizes = self.one_of(((2,), (4,), (8,), (2, 2), (2, 4), (4, 2), (3, 2), (2, 2, 2)))
        axes = [[name, size] for name, size in zip("abc", sizes)]
        return {"axes": axes, "devices": self.shuffled(range(8))[:math.prod(sizes)]}

    def spec(self, mesh, rank):
        """The axes that split each dimension."""
        axes = self.shuffled([name for name, _ in mesh["axes"]])
        entries = []
        for _ in range(rank):
            count = self.one_of((0, 0, 1, 1, 2))
            entries.append(axes[:count])
            axes = axes[count:]
        return entries
