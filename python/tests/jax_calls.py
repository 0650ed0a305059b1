"""The calls that compare_jax.py draws: functions of a namespace, meshard or jax.numpy, and arrays."""

import jax
import jax.numpy as jnp
import meshard as ms
import numpy as np



class Draw:
    """Random shapes and, of another source, elements: calls with the same shapes can have other elements."""

    def __init__(self, shapes, elements):
        shapes, elements = np.random.default_rng(shapes), np.random.default_rng(elements)
        self.integers, self.choice, self.random = shapes.integers, shapes.choice, shapes.random
        self.uniform, self.whole = elements.uniform, elements.integers


class Call:
    """A function of a namespace and arrays, and how to draw the arrays."""

    def __init__(self, function, draw, is_differentiable):
        self.function, self.draw, self.is_differentiable = function, draw, is_differentiable


FUNCTIONS = {}  # name -> Call


def shape(rng, low=0, high=3):
    return tuple(int(n) for n in rng.choice([1, 2, 3, 4], rng.integers(low, high + 1)))


def one(low=-2.0, high=2.0, min_rank=0):
    """One array of a random shape."""
    return lambda rng: [rng.uniform(low, high, shape(rng, min_rank))]


def two(low=-2.0, high=2.0):
    """Two arrays that broadcast."""

    def draw(rng):
        whole = shape(rng)
        part = tuple(1 if rng.random() < 0.3 else size for size in whole)
        return [rng.uniform(low, high, whole), rng.uniform(low, high, part[rng.integers(0, len(part) + 1):])]

    return draw


def matrices(columns=None):
    """A batch of matrices that are far from singular."""

    def draw(rng):
        n = int(rng.integers(1, 5))
        arrays = [rng.uniform(-1, 1, (*shape(rng, 0, 1), n, n)) + 2 * n * np.eye(n)]
        return arrays + ([rng.uniform(-1, 1, (n, columns))] if columns else [])

    return draw


def integers(low=-9, high=10, dtype=np.int32, count=1):
    """Arrays of integers of one random shape."""

    def draw(rng):
        whole = shape(rng, 1)
        return [rng.whole(low, high, whole).astype(dtype) for _ in range(count)]

    return draw


REAL = [np.bool_, np.int8, np.uint8, np.int16, np.int32, jnp.bfloat16, np.float16, np.float32]


def mixed(dtypes, numbers=False):
    """Two arrays of random dtypes that broadcast. The elements are small integers, which all dtypes have.

    With `numbers`, they are not both bools: arithmetic on two bools is an error of meshard's.
    """

    def draw(rng):
        whole = shape(rng)
        first, second = (dtypes[i] for i in rng.integers(0, len(dtypes), 2))
        if numbers and first is second is np.bool_:
            second = np.int32
        part = whole[rng.integers(0, len(whole) + 1):]
        return [rng.whole(0, 4, whole).astype(first), rng.whole(0, 4, part).astype(second)]

    return draw


def add(name, function, draw, is_differentiable=True):
    FUNCTIONS[name] = Call(function, draw, is_differentiable)


def pair(name, ours, theirs, draw, is_differentiable=True):
    """A function that has another name or other parameters in JAX."""
    add(name, lambda xp, *arrays: ours(*arrays) if xp is ms else theirs(*arrays), draw, is_differentiable)


def unary(names, low, high):
    for name in names.split():
        add(name, lambda xp, x, name=name: getattr(xp, name)(x), one(low, high))


unary("exp expm1 sin cos atan sinh cosh tanh asinh square negative abs sign", -2, 2)
unary("log log1p log2 log10 sqrt reciprocal", 0.2, 3)
unary("tan asin acos atanh", -0.9, 0.9)
unary("acosh", 1.2, 3)
for _name in "add subtract multiply atan2 hypot logaddexp maximum minimum copysign".split():
    add(_name, lambda xp, x, y, name=_name: getattr(xp, name)(x, y), two())
for _name in "divide pow remainder".split():
    add(_name, lambda xp, x, y, name=_name: getattr(xp, name)(x, y), two(0.3, 3))
for _name in "sum mean max min prod var std".split():
    add(_name, lambda xp, x, name=_name: getattr(xp, name)(x), one(0.2, 2))
    add(_name + " axis", lambda xp, x, name=_name: getattr(xp, name)(x, axis=-1, keepdims=True), one(0.2, 2, 1))
for _name in "cumulative_sum cumulative_prod".split():
    add(_name, lambda xp, x, name=_name: getattr(xp, name)(x, axis=0), one(0.2, 2, 1))
    add(_name + " initial", lambda xp, x, name=_name: getattr(xp, name)(x, axis=-1, include_initial=True),
        one(0.2, 2, 1))
add("reshape", lambda xp, x: xp.reshape(x, (-1,)), one())
add("permute_dims", lambda xp, x: xp.permute_dims(x, tuple(reversed(range(x.ndim)))), one())
add("flip", lambda xp, x: xp.flip(x, axis=0), one(min_rank=1))
add("roll", lambda xp, x: xp.roll(x, 2, axis=-1), one(min_rank=1))
add("tile", lambda xp, x: xp.tile(x, (2,)), one(min_rank=1))
add("repeat", lambda xp, x: xp.repeat(x, 3, axis=0), one(min_rank=1))
add("expand_dims", lambda xp, x: xp.expand_dims(x, axis=-1), one())
add("broadcast_to", lambda xp, x: xp.broadcast_to(x, (2, *x.shape)), one())
add("concat", lambda xp, x: xp.concat([x, x * 2], axis=-1), one(min_rank=1))
add("stack", lambda xp, x: xp.stack([x, x * x], axis=0), one())
add("where", lambda xp, x, y: xp.where(x > 0, x * y, y), two())
add("clip", lambda xp, x: xp.clip(x, -0.7, 0.9), one())
add("sort", lambda xp, x: xp.sort(x, axis=-1), one(min_rank=1))
add("sort descending", lambda xp, x: xp.sort(x, axis=0, descending=True), one(min_rank=1))
add("argsort", lambda xp, x: xp.take_along_axis(x, xp.argsort(x, axis=-1), axis=-1), one(min_rank=1))
add("argmax", lambda xp, x: x * xp.astype(xp.argmax(x, axis=-1, keepdims=True), x.dtype), one(min_rank=1))
add("take", lambda xp, x: xp.take(x, xp.asarray([0, 0, -1]), axis=0), one(min_rank=1))
add("diff", lambda xp, x: xp.diff(x, axis=-1), one(min_rank=1))
add("index row", lambda xp, x: x[0], one(min_rank=1))
add("index reversed", lambda xp, x: x[::-1, ...], one(min_rank=1))
add("index array", lambda xp, x: x[xp.asarray([[0], [-1]])], one(min_rank=1))
add("index new", lambda xp, x: x[None, ..., -1], one(min_rank=1))
for _name in ("tril", "triu"):
    add(_name, lambda xp, x, name=_name: getattr(xp, name)(x, k=1), matrices())
add("matmul", lambda xp, x, y: xp.matmul(x, y), matrices(3))
add("tensordot", lambda xp, x, y: xp.tensordot(x, y, axes=1), matrices(3))
add("vecdot", lambda xp, x: xp.vecdot(x, x + 1), one(min_rank=1))
add("outer", lambda xp, x: xp.linalg.outer(xp.reshape(x, (-1,)), xp.reshape(x * x, (-1,))), one())
add("cross", lambda xp, x: xp.linalg.cross(x, x[::-1] + 1), lambda rng: [rng.uniform(-2, 2, 3)])
for _name in "det inv cholesky trace diagonal matrix_transpose".split():
    add(_name, lambda xp, x, name=_name: getattr(xp.linalg, name)((x + xp.matrix_transpose(x)) / 2), matrices())
add("slogdet", lambda xp, x: xp.linalg.slogdet(x).logabsdet, matrices())
add("eigvalsh", lambda xp, x: xp.linalg.eigvalsh((x + xp.matrix_transpose(x)) / 2), matrices())
add("solve", lambda xp, x, y: xp.linalg.solve(x, y), matrices(2))
add("qr", lambda xp, x: xp.abs(xp.linalg.qr(x)[1]), matrices())
add("matrix_norm", lambda xp, x: xp.linalg.matrix_norm(x), matrices())
add("matrix_power", lambda xp, x: xp.linalg.matrix_power(x / 8, 3), matrices())
for _order in (1, 2, 3, np.inf):
    add(f"vector_norm {_order}", lambda xp, x, order=_order: xp.linalg.vector_norm(x, axis=-1, ord=order),
        one(0.2, 2, 1))
add("fft", lambda xp, x: xp.real(xp.fft.fft(x)) + xp.imag(xp.fft.fft(x, norm="ortho")), one(min_rank=1))
add("rfft", lambda xp, x: xp.abs(xp.fft.rfft(x + 3, axis=0)), one(min_rank=1))
add("irfft", lambda xp, x: xp.fft.irfft(xp.fft.rfft(x, n=6), n=6), one(min_rank=1))
add("fftshift", lambda xp, x: xp.fft.fftshift(x), one(min_rank=1))

# --- results without a derivative ----------------------------------------------------------------

for _names, _dtypes in [("add multiply equal", [*REAL, np.complex64]), ("maximum minimum less greater_equal", REAL)]:
    for _name in _names.split():
        add(f"{_name} mixed", lambda xp, x, y, name=_name: getattr(xp, name)(x, y),
            mixed(_dtypes, numbers=_name in ("add", "multiply", "maximum", "minimum")), False)
add("where mixed", lambda xp, x, y: xp.where(xp.astype(x, bool), x, y), mixed([*REAL, np.complex64]), False)
add("concat mixed", lambda xp, x, y: xp.concat([xp.reshape(x, (-1,)), xp.reshape(y, (-1,))], axis=0),
    mixed([*REAL, np.complex64]), False)
for _name in "bitwise_and bitwise_or bitwise_xor floor_divide remainder".split():
    add(f"{_name} integers", lambda xp, x, y, name=_name: getattr(xp, name)(x, y), integers(1, 50, count=2), False)
for _name in "bitwise_left_shift bitwise_right_shift".split():
    add(_name, lambda xp, x, y, name=_name: getattr(xp, name)(x, y), integers(0, 8, count=2), False)
for _name in "bitwise_invert sign abs negative square".split():
    add(f"{_name} integers", lambda xp, x, name=_name: getattr(xp, name)(x), integers(), False)
for _name in "logical_and logical_or logical_xor".split():
    add(_name, lambda xp, x, y, name=_name: getattr(xp, name)(x > 0, y > 0), two(), False)
for _name in "equal not_equal less less_equal greater greater_equal".split():
    add(_name, lambda xp, x, y, name=_name: getattr(xp, name)(xp.round(x), xp.round(y)), two(), False)
for _name in "isfinite isinf isnan".split():
    add(_name, lambda xp, x, name=_name: getattr(xp, name)(1 / (xp.round(x) * xp.round(x))), one(), False)
for _name in "sum prod max min any all".split():
    add(f"{_name} integers", lambda xp, x, name=_name: getattr(xp, name)(x, axis=-1), integers(-3, 4), False)
for _name in "sum cumulative_sum".split():
    add(f"{_name} int8", lambda xp, x, name=_name: getattr(xp, name)(x, axis=0), integers(-99, 99, np.int8), False)
for _name in "argmax argmin".split():
    add(f"{_name} integers", lambda xp, x, name=_name: getattr(xp, name)(x, axis=0), integers(-2, 3), False)
add("argsort integers", lambda xp, x: xp.argsort(x, axis=-1), integers(-2, 3), False)
add("argsort descending", lambda xp, x: xp.argsort(x, axis=0, descending=True), integers(-2, 3), False)
add("count_nonzero", lambda xp, x: xp.count_nonzero(x, axis=0), integers(-1, 2), False)
add("searchsorted", lambda xp, x, y: xp.searchsorted(xp.sort(xp.reshape(x, (-1,))), xp.reshape(y, (-1,)), side="right"),
    integers(count=2), False)
add("nextafter", lambda xp, x, y: xp.nextafter(x, y), two(), False)
add("signbit", lambda xp, x: xp.signbit(x), one(), False)
add("astype", lambda xp, x: xp.astype(x * 40, xp.int32), one(), False)
for _name in "exp log sqrt sin cosh tanh square abs negative conj reciprocal".split():
    add(f"{_name} complex", lambda xp, x, y, name=_name: getattr(xp, name)(x + 1j * y),
        lambda rng: [rng.uniform(0.2, 2, s) for s in [shape(rng)] for _ in range(2)], False)
for _name in "acos acosh asin asinh atan atanh sinh cosh tanh exp expm1 log log1p sqrt".split():
    # The derivatives are those of the parts of a complex function. Left of 0, that of acosh in JAX is on the other
    # branch of the square root (tests/conformance/complex_test.cc compares ours with differences of values).
    add(f"{_name} of parts", lambda xp, x, y, name=_name: xp.real(getattr(xp, name)(x + 1j * y)) + 2 * xp.imag(
        getattr(xp, name)(x - 1j * y)), lambda rng, low=0.2 if _name == "acosh" else -2.0: [
            rng.uniform(least, 2, size) for size in [shape(rng)] for least in (low, -2.0)])
for _name in "popcnt count_leading_zeros".split():
    _theirs = {"popcnt": jax.lax.population_count, "count_leading_zeros": jax.lax.clz}[_name]
    pair(_name, getattr(ms, _name), _theirs, integers(), False)

# --- more functions of the array API -------------------------------------------------------------

for _name in "ceil floor round trunc".split():
    add(_name, lambda xp, x, name=_name: getattr(xp, name)(x * 3), one())
add("floor_divide", lambda xp, x, y: xp.floor_divide(x * 3, y), two(0.3, 3), False)
add("squeeze", lambda xp, x: xp.squeeze(x[None], axis=0), one())
add("moveaxis", lambda xp, x: xp.moveaxis(x, 0, -1), one(min_rank=1))
add("unstack", lambda xp, x: xp.unstack(x, axis=-1)[0], one(min_rank=1))
add("meshgrid", lambda xp, x, y: xp.meshgrid(xp.reshape(x, (-1,)), xp.reshape(y, (-1,)))[1] * 2, two())
add("clip arrays", lambda xp, x, y: xp.clip(x, y, y + 1), two())
add("real", lambda xp, x: xp.real(x * (1 + 2j)) + xp.imag(x * (3 - 1j)), one())
add("sum axes", lambda xp, x: xp.sum(x, axis=(0, -1)), one(min_rank=2))
add("std correction", lambda xp, x: xp.std(x, axis=0, correction=0.5), one(0.2, 2, 1))
add("diff twice", lambda xp, x: xp.diff(x, axis=0, n=2), one(min_rank=1))
add("take_along_axis", lambda xp, x: xp.take_along_axis(x, xp.zeros_like(x[:1], dtype=xp.int32), axis=0),
    one(min_rank=1))
add("index step", lambda xp, x: x[..., ::2], one(min_rank=1))
add("index negative step", lambda xp, x: x[::-2], one(min_rank=1))
add("matmul batch", lambda xp, x: xp.matmul(x, xp.matrix_transpose(x)), one(min_rank=2))
add("kron", lambda xp, x, y: xp.reshape(x[:, None, :, None] * y[None, :, None, :], (-1,)), lambda rng: [
    rng.uniform(-2, 2, shape(rng, 2, 2)) for _ in range(2)])
add("fftn", lambda xp, x: xp.abs(xp.fft.fftn(x)), one(0.5, 2, 1))
add("hfft", lambda xp, x: xp.fft.hfft(x, n=5), one(min_rank=1))
add("ihfft", lambda xp, x: xp.real(xp.fft.ihfft(x)), one(min_rank=1))
add("rfftn", lambda xp, x: xp.real(xp.fft.rfftn(x)), one(min_rank=1))
add("einsum", lambda xp, x, y: xp.einsum("...ij,jk->...ki", x, y), matrices(3))
add("eigh", lambda xp, x: xp.abs(xp.linalg.eigh(x + xp.matrix_transpose(x)).eigenvectors), lambda rng: [
    np.diag(np.arange(1, 4)) * 2.0 + rng.uniform(-0.3, 0.3, (3, 3))])

# --- functions under other names in JAX ----------------------------------------------------------

for _ours, _theirs in [("erf", jax.lax.erf), ("erfc", jax.lax.erfc), ("logistic", jax.nn.sigmoid), ("cbrt", jnp.cbrt),
                       ("exp2", jnp.exp2)]:
    pair(_ours, getattr(ms, _ours), _theirs, one())
for _ours, _theirs in [("lgamma", jax.lax.lgamma), ("digamma", jax.lax.digamma), ("rsqrt", jax.lax.rsqrt)]:
    pair(_ours, getattr(ms, _ours), _theirs, one(0.3, 4))
pair("erf_inv", ms.erf_inv, jax.lax.erf_inv, one(-0.9, 0.9))
pair("fmod", ms.fmod, jnp.fmod, two(0.3, 3))
for _ours, _theirs in [("softmax", jax.nn.softmax), ("log_softmax", jax.nn.log_softmax),
                       ("logsumexp", lambda x: jax.nn.logsumexp(x, axis=-1))]:
    pair(_ours, lambda x, name=_ours: getattr(ms, name)(x, axis=-1), _theirs, one(min_rank=1))
for _name, _theirs in [("cumulative_max", jax.lax.cummax), ("cumulative_min", jax.lax.cummin),
                       ("cumulative_logsumexp", jax.lax.cumlogsumexp)]:
    pair(_name, lambda x, name=_name: getattr(ms, name)(x, 0), lambda x, theirs=_theirs: theirs(x, axis=0),
         one(min_rank=1))
for _name, _theirs in [("relu", "relu"), ("relu6", "relu6"), ("leaky_relu", "leaky_relu"), ("elu", "elu"),
                       ("celu", "celu"), ("selu", "selu"), ("gelu", "gelu"), ("silu", "silu"), ("mish", "mish"),
                       ("softplus", "softplus"), ("log_sigmoid", "log_sigmoid"), ("soft_sign", "soft_sign"),
                       ("hard_tanh", "hard_tanh"), ("hard_sigmoid", "hard_sigmoid"), ("hard_silu", "hard_silu")]:
    pair(_name, getattr(ms.nn, _name), getattr(jax.nn, _theirs), one(-3, 3))
pair("gelu erf", lambda x: ms.nn.gelu(x, form="erf"), lambda x: jax.nn.gelu(x, approximate=False), one(-3, 3))
pair("pad", lambda x: ms.pad(x, 0.5, [1], [2], [1]), lambda x: jax.lax.pad(x, jnp.float32(0.5), [(1, 2, 1)]),
     lambda rng: [rng.uniform(-2, 2, int(rng.integers(1, 6)))])
pair("top_k", lambda x: ms.top_k(x, 1)[0], lambda x: jax.lax.top_k(x, 1)[0], one(min_rank=1))
pair("one_hot", lambda x: ms.one_hot(x, 5), lambda x: jax.nn.one_hot(x, 5), integers(0, 5), False)
pair("segment_sum", lambda x: ms.segment_sum(x, ms.asarray([0, 2, 0, 1]), 3),
     lambda x: jax.ops.segment_sum(x, jnp.asarray([0, 2, 0, 1]), 3), lambda rng: [rng.uniform(-2, 2, (4, *shape(rng)))])
pair("dynamic_slice", lambda x: ms.dynamic_slice(x, [1], [2]), lambda x: jax.lax.dynamic_slice(x, [1], [2]),
     lambda rng: [rng.uniform(-2, 2, int(rng.integers(2, 7)))])
pair("dynamic_update_slice", lambda x, y: ms.dynamic_update_slice(x, y, [2]),
     lambda x, y: jax.lax.dynamic_update_slice(x, y, [2]),
     lambda rng: [rng.uniform(-2, 2, int(rng.integers(2, 7))), rng.uniform(-2, 2, 2)])
pair("triangular_solve", lambda x, y: ms.linalg.triangular_solve(ms.tril(x), y),
     lambda x, y: jax.lax.linalg.triangular_solve(jnp.tril(x), y, left_side=True, lower=True),
     lambda rng: [rng.uniform(-1, 1, (n, n)) + 2 * n * np.eye(n) if k == 0 else rng.uniform(-1, 1, (n, 2))
                  for n in [int(rng.integers(1, 5))] for k in range(2)])


def images(rng):
    """A batch of images with two channels, and kernels."""
    sizes = rng.integers(3, 7, 2)
    return [rng.uniform(-1, 1, (2, *sizes, 2)), rng.uniform(-1, 1, (2, int(rng.integers(1, 4)), 2, 3))]


pair("conv2d", lambda x, y: ms.nn.conv2d(x, y), lambda x, y: jax.lax.conv_general_dilated(
    x, y, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")), images)
pair("max_pool", lambda x: ms.nn.max_pool(x, (2, 2)), lambda x: jax.lax.reduce_window(
    x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), lambda rng: images(rng)[:1])
pair("avg_pool", lambda x: ms.nn.avg_pool(x, (2, 2)), lambda x: jax.lax.reduce_window(
    x, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4, lambda rng: images(rng)[:1])
for _causal in (False, True):
    pair(f"dot_product_attention {_causal}",
         lambda q, k, v, causal=_causal: ms.nn.dot_product_attention(q, k, v, causal=causal),
         lambda q, k, v, causal=_causal: jax.nn.dot_product_attention(q, k, v, is_causal=causal),
         lambda rng: [rng.uniform(-1, 1, (2, n, 2, 4)) for n in [int(rng.integers(1, 6))] for _ in range(3)])
